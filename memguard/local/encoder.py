"""Sentence and token vectors of all-MiniLM-L6-v2 on the CPU: no key, no network, no torch.

The model has three limits. It reads little but English: other scripts are split into single
characters or `[UNK]`, and ranking there is weak. It reads 256 tokens and ignores the rest. Its
cosine cannot tell a wrong number or name from a paraphrase, so it can find memories but must never
decide whether to write one. Measured: "the flat costs 900 euros a month" and the same with "1900
euros" have a cosine of 0.92, and "Bob is allergic to peanuts" and the same of "Carol" 0.71. But
"the invoice is due on 3 March" and "payment of the bill is expected by March 3rd" have 0.68.
"""

import asyncio
import hashlib
import os
import re
import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from memguard import compat
from memguard.errors import ConfigurationError, ErrorCode, GuardError, InvalidInputError
from memguard.local.weights import WeightsFile, find_weights, read_weights

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

DIMS = 384
MAX_TOKENS = 256
"""`max_seq_length` in the model's `sentence_bert_config.json`; `[CLS]` and `[SEP]` count."""

# Padded tokens per run. Measured on 2 cores: up to here larger runs are faster per text, beyond it
# slower, and memory grows (32 texts of 256 tokens: 970 MB against 370 MB).
_BATCH_TOKENS = 512
# The cost of one more run, in tokens: reading the weights from memory takes as long as about twelve
# tokens (8.5 ms for a run of 12 tokens, 0.4 ms for each one more). Padding may cost no more.
_RUN_TOKENS = 12
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_SURROGATES = re.compile("[\ud800-\udfff]")

Matrix = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenVectors:
    """The tokens of one text and their vectors, with `[CLS]` and `[SEP]`."""

    text: str
    """The text that was encoded."""
    tokens: tuple[str, ...]
    """Word pieces, at most 256."""
    word_ids: tuple[int | None, ...]
    """The index of the word of each piece, from 0; `None` for `[CLS]` and `[SEP]`."""
    offsets: tuple[tuple[int, int], ...]
    """Start and end of each piece in `text`, in characters."""
    vectors: Matrix
    """Last hidden state, one row of 384 per token, not normalised, read-only."""


class _Model(NamedTuple):
    weights: WeightsFile
    tokenizer: "Tokenizer"
    session: Any  # onnxruntime has no types
    inputs: frozenset[str]


class _Forkable(Protocol):
    def after_fork(self) -> None: ...


# Objects with threads, locks or a session that a forked process must not use. Weak, so that the
# set does not keep them alive.
_forkables: "weakref.WeakSet[_Forkable]" = weakref.WeakSet()


class MiniLmEncoder:
    """The model: computes the token and sentence vectors of texts.

    All encoders of a process with the same weights and number of threads use one loaded model,
    which is opened on first use and stays open. Encoders may be shared between threads. Calls from
    several threads run in parallel, so a caller who needs a bounded load uses one thread. A forked
    process opens its own model. If its parent had one open, it has to end with `os._exit`, as those
    of `multiprocessing` do, because ONNX Runtime's clean-up never returns there.

    The arguments are those of `LocalEmbeddings`.
    """

    def __init__(
        self,
        *,
        path: str | os.PathLike[str] | None = None,
        sha256: str | None = None,
        download: bool = False,
        threads: int | None = None,
    ) -> None:
        if threads is not None and threads < 1:
            msg = f"`threads={threads!r}` runs nothing. Pass 1 or more"
            raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
        self._path = path
        self._sha256 = sha256
        self._download = download
        self._threads = threads or min(2, os.cpu_count() or 1)
        self._model: _Model | None = None
        _forkables.add(self)

    def warm(self) -> WeightsFile:
        """Load the weights and run the model once, so that the first text does not wait for it.

        Returns:
            The weights in use.
        """
        self.encode(["warm"])
        return self._load().weights

    def encode(self, texts: Sequence[str]) -> Matrix:
        """Sentence vectors: the mean over a text's tokens, scaled to length 1.

        Args:
            texts: Any strings, including the empty one.

        Returns:
            One row of 384 numbers per text, in the order of the texts.
        """
        rows: Matrix = np.empty((len(texts), DIMS), dtype=np.float32)
        for indices, hidden, mask in self._runs(self._tokenize(texts)):
            weights = mask[:, :, None].astype(np.float32)
            mean = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
            rows[indices] = mean / np.linalg.norm(mean, axis=1, keepdims=True)
        return rows

    def encode_tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Token vectors, for the alignment of words; up to 400 kB per text, so keep lists short."""
        encodings = self._tokenize(texts)
        vectors: dict[int, Matrix] = {}
        for indices, hidden, mask in self._runs(encodings):
            for row, index in enumerate(indices):
                # A copy, or the vectors of one short text would keep the whole run in memory.
                tokens = hidden[row, : int(mask[row].sum())].copy()
                tokens.setflags(write=False)
                vectors[index] = tokens
        return [
            TokenVectors(
                text=texts[index],
                tokens=tuple(encoding.tokens),
                word_ids=tuple(encoding.word_ids),
                offsets=tuple(encoding.offsets),
                vectors=vectors[index],
            )
            for index, encoding in enumerate(encodings)
        ]

    def _tokenize(self, texts: Sequence[str]) -> "list[Encoding]":
        checked = _check_texts(texts)
        if not checked:
            return []
        tokenizer = self._load().tokenizer
        # One at a time: `encode_batch` starts a thread per core, and costs more than it saves.
        return [tokenizer.encode(_SURROGATES.sub("\ufffd", text)) for text in checked]

    def _runs(
        self, encodings: "Sequence[Encoding]"
    ) -> Iterator[tuple[list[int], Matrix, NDArray[np.int64]]]:
        """Run texts of similar length together; yields their indices, hidden states and mask."""
        lengths = [len(encoding.ids) for encoding in encodings]
        for indices in _batches(lengths):
            # By rising length, so the last text of a batch is its longest.
            ids = np.zeros((len(indices), lengths[indices[-1]]), dtype=np.int64)
            mask = np.zeros_like(ids)
            for row, index in enumerate(indices):
                ids[row, : lengths[index]] = encodings[index].ids
                mask[row, : lengths[index]] = 1
            yield indices, self._run(ids, mask), mask

    def _run(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> Matrix:
        model = self._load()
        feeds = dict(zip(_INPUTS, (ids, mask, np.zeros_like(ids)), strict=True))
        try:
            hidden = model.session.run(
                None, {key: value for key, value in feeds.items() if key in model.inputs}
            )[0]
        except compat.onnxruntime_errors() as error:
            msg = f"The local embedder failed on {ids.shape[0]} texts: {error!r}. Try again"
            raise GuardError(msg, code=ErrorCode.EMBEDDER_FAILED) from error
        if hidden.shape != (*ids.shape, DIMS) or not np.isfinite(hidden).all():
            msg = (
                f"{str(model.weights.path)!r} returned an output of shape {hidden.shape!r}, or one "
                f"with NaN, instead of {(*ids.shape, DIMS)!r}. Use weights of all-MiniLM-L6-v2"
            )
            raise ConfigurationError(msg, code=ErrorCode.EMBEDDER_OUTPUT)
        return hidden

    def _load(self) -> _Model:
        model = self._model
        if model is None:
            with _models.lock:
                # Under the lock: finding the weights hashes 23 MB, once for all who wait.
                weights = find_weights(
                    path=self._path, sha256=self._sha256, download=self._download
                )
                model = self._model = _models.get(weights, threads=self._threads)
        return model

    def after_fork(self) -> None:
        """Drop the parent's model, because the threads of its session are not in this process."""
        self._model = None


class _Models:
    """The models that are loaded in this process.

    One model takes 125 MB and 0.7 s of CPU, so all users share it. It is never dropped: a process
    that embedded once will embed again, and a store that is closed does not know the other users.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._loaded: dict[tuple[Path, str, int], _Model] = {}
        self._inherited: list[object] = []

    def get(self, weights: WeightsFile, *, threads: int) -> _Model:
        """The model of these weights, opened by the first caller. Call it with the lock held."""
        key = (weights.path, weights.sha256, threads)
        if key not in self._loaded:
            self._loaded[key] = _open(weights, threads=threads)
        return self._loaded[key]

    def after_fork(self) -> None:
        """Start with a new lock, which a thread of the parent may have held, and no models."""
        self.lock = threading.Lock()
        # Not freed: a session that is freed waits for its threads, which do not exist here.
        self._inherited.append(self._loaded)
        self._loaded = {}


class LocalEmbeddings(Embeddings):
    """all-MiniLM-L6-v2 as LangChain embeddings: 384 numbers, length 1, at most 256 tokens read.

    It is mostly for English, and does not notice a changed number or name; see the module. The
    async methods run in one worker thread and never block the event loop. One object serves any
    number of loops and threads.

    Args:
        path: A file to use instead of the packaged one.
        sha256: The digest of that file; required if memguard does not know the file.
        download: Whether Chroma may download its copy if there are no weights on this machine.
        threads: Threads of one run; by default two, or one on a single core.
        cache_size: Number of vectors to cache, by a digest of their text; 0 for none.
    """

    name: ClassVar[str] = "minilm-l6-v2-int8"
    """The name in the stamp of a store, whatever the precision of the weights in use.

    It is the same for fp32 weights, so a store may be written with one and read with the other.
    Measured on 100 short facts and 40 questions: the two vectors of one text have a cosine of at
    least 0.9995, scores of int8 questions over fp32 facts differ by at most 0.006, and 99.5 % of
    the ten best facts are the same.
    """
    dims: ClassVar[int] = DIMS
    """Numbers in a vector."""

    def __init__(
        self,
        *,
        path: str | os.PathLike[str] | None = None,
        sha256: str | None = None,
        download: bool = False,
        threads: int | None = None,
        cache_size: int = 4096,
    ) -> None:
        self.encoder = MiniLmEncoder(path=path, sha256=sha256, download=download, threads=threads)
        self._cache_size = cache_size
        self.after_fork()
        _forkables.add(self)

    def after_fork(self) -> None:
        """Create the objects with locks and threads; called again in a forked process."""
        self._cache = RecentItems[bytes, Matrix](self._cache_size)
        # One thread, because parallel runs would compete for the same cores.
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="memguard-embedder")

    def warm(self) -> WeightsFile:
        """Load the weights and run the model once; returns the weights in use."""
        return self.encoder.warm()

    async def awarm(self) -> WeightsFile:
        """As `warm`, in the worker thread."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, self.warm)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Vectors of texts, in the same order; equal texts are computed once."""
        keys = [text_key(text) for text in _check_texts(texts)]
        rows = self._cache.get(keys)
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in rows}
        if missing:
            computed = self.encoder.encode(list(missing.values()))
            # Copies, or one cached row would keep its whole batch in memory.
            fresh = {key: row.copy() for key, row in zip(missing, computed, strict=True)}
            self._cache.put(fresh)
            rows |= fresh
        return [rows[key].tolist() for key in keys]

    def embed_query(self, text: str) -> list[float]:
        """Vector of one text, which is the same as that of a document."""
        return self.embed_documents([text])[0]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """As `embed_documents`, in the worker thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._worker, self.embed_documents, _check_texts(texts))

    async def aembed_query(self, text: str) -> list[float]:
        """As `embed_query`, in the worker thread."""
        return (await self.aembed_documents([text]))[0]


_models = _Models()


def _after_fork() -> None:
    # The models first, because nothing else may drop the last reference to a session.
    _models.after_fork()
    for forkable in tuple(_forkables):
        forkable.after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


def _open(weights: WeightsFile, *, threads: int) -> _Model:
    import onnxruntime  # noqa: PLC0415  # late: half a second, and not needed to ask for `name`
    from tokenizers import Tokenizer  # noqa: PLC0415

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Threads that wait should sleep. Measured for one short text on 2 cores that 3 other processes
    # keep busy: 17 ms, and 89 ms with onnxruntime's default of spinning. On idle cores 8 and 7 ms.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        # Bytes and not a path: the model that runs is the one that was hashed, and no other file is
        # read.
        session: Any = onnxruntime.InferenceSession(
            read_weights(weights), options, providers=["CPUExecutionProvider"]
        )
    except compat.onnxruntime_errors() as error:
        msg = f"{str(weights.path)!r} is not an ONNX model: {error!r}. Pass the right `path=`"
        raise ConfigurationError(msg, code=ErrorCode.EMBEDDER_MISSING) from error
    data = resources.files("memguard.local").joinpath("data", "tokenizer.json")
    tokenizer = Tokenizer.from_str(data.read_text(encoding="utf-8"))
    tokenizer.enable_truncation(MAX_TOKENS)
    inputs = frozenset(str(tensor.name) for tensor in session.get_inputs())
    return _Model(weights=weights, tokenizer=tokenizer, session=session, inputs=inputs)


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Indices by rising length, in batches of at most `_BATCH_TOKENS` padded tokens.

    A batch ends where its padding would cost more than another run.
    """
    batch: list[int] = []
    tokens = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        padded = (len(batch) + 1) * lengths[index]
        padding = padded - tokens - lengths[index]
        if batch and (padding > _RUN_TOKENS or padded > _BATCH_TOKENS):
            yield batch
            batch, tokens = [], 0
        batch.append(index)
        tokens += lengths[index]
    if batch:
        yield batch


def _check_texts(texts: Sequence[object]) -> list[str]:
    if isinstance(texts, str):
        msg = f"A list of texts is needed, not the one text {texts[:80]!r}. Wrap it in a list"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    checked = [text for text in texts if isinstance(text, str)]
    if len(checked) != len(texts):
        wrong = next(text for text in texts if not isinstance(text, str))
        msg = f"Only text can be embedded, not {wrong!r}. Pass strings"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    return checked


class RecentItems(Generic[K, V]):
    """The items that were used last; safe in any thread and any event loop.

    Nothing waits here: two callers who miss the same key at once both compute its value.

    Args:
        size: The largest number of items; 0 caches nothing.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._items: OrderedDict[K, V] = OrderedDict()

    def get(self, keys: Iterable[K]) -> dict[K, V]:
        """The cached items of these keys."""
        with self._lock:
            items = {key: self._items[key] for key in keys if key in self._items}
            for key in items:
                self._items.move_to_end(key)
            return items

    def put(self, items: Mapping[K, V]) -> None:
        """Cache items; the ones that were used longest ago are dropped."""
        with self._lock:
            for key, value in items.items():
                self._items[key] = value
                self._items.move_to_end(key)
            while len(self._items) > self._size:
                self._items.popitem(last=False)


def text_key(text: str) -> bytes:
    """A digest of a text, so that a long text costs no more memory than a short one."""
    # `surrogatepass`: a text from a model may have an unpaired surrogate.
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
