"""Vectors of texts, by the embedder that the caller passed as `embed=`.

An embedder may be LangChain embeddings, a sync or async function, or a name. `Embedder` calls each
of them from sync and async code, and checks what it returns. An embedder's name is stamped into the
store, because two models of one dimension return vectors that cannot be compared, and nothing but
the name distinguishes them.
"""

import asyncio
import functools
import inspect
import math
import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, NoReturn, cast

from langchain_core.embeddings import Embeddings
from langgraph.store.base import ensure_embeddings

from memguard.errors import ErrorCode, InvalidInputError, MemguardError, StoreError
from memguard.local.recent import RecentItems, text_key
from memguard.portal import run_sync

Vector = list[float]
EmbedFunction = Callable[[Sequence[str]], list[Vector]]
AsyncEmbedFunction = Callable[[Sequence[str]], Awaitable[list[Vector]]]
Embed = Embeddings | EmbedFunction | AsyncEmbedFunction | str
"""What may be passed as `embed=`; a string is `"provider:model"`."""

# Attributes with the name of an embedder's model, the most specific first.
_NAMES = ("name", "model", "model_name", "model_id", "deployment")

# A read searches twice: for its own query, and for safety constraints by one text that never
# changes. Through a network, that second search would cost a request per read. 64 vectors of 1,536
# numbers take about 3 MB.
MAX_QUERIES = 64


class Embedder:
    """An embedder of any kind, which is created on first use.

    Args:
        embed: The caller's embedder; `None` for the built-in one.
        name: The name in the stamp; by default derived from its class and model.
        dims: The length of its vectors, if known.
    """

    def __init__(self, *, embed: Embed | None, name: str | None, dims: int | None) -> None:
        self._embed = embed
        self._name = name
        self._dims = dims
        self._lock = threading.Lock()
        self._ready: Embeddings | EmbedFunction | AsyncEmbedFunction | None = None
        self._queries = RecentItems[bytes, Vector](MAX_QUERIES)

    @property
    def name(self) -> str:
        """The name in the store's stamp, which is the same in every process."""
        if self._name is None:
            self._name = _derive_name(self._embed if self._embed is not None else self._backend())
        return self._name

    @property
    def known_dims(self) -> int | None:
        """The length of a vector, if it is known without embedding anything."""
        if self._dims is None:
            declared = getattr(self._backend(), "dims", None)
            self._dims = declared if isinstance(declared, int) else None
        return self._dims

    def dims(self) -> int:
        """The length of a vector; embeds one word if it is not known."""
        dims = self.known_dims
        return dims if dims is not None else len(self.documents(["memguard"])[0])

    def documents(self, texts: Sequence[str]) -> list[Vector]:
        """Vectors of texts to store, called in a thread without an event loop.

        Raises:
            StoreError: If the embedder fails, or returns vectors that cannot be stored.
        """
        return self._checked(texts, self._call(list(texts)))

    async def adocuments(self, texts: Sequence[str], *, pool: Executor) -> list[Vector]:
        """As `documents`, on the caller's loop if the embedder is async, else in the pool."""
        await self._aready(pool)
        return self._checked(texts, await self._acall(list(texts), pool=pool))

    def query(self, text: str) -> Vector:
        """Vector of a search text, called in a thread without an event loop; it is cached."""
        key = text_key(text)
        vectors = self._queries.get([key])
        if not vectors:
            vectors = {key: self._query(text)}
            self._queries.put(vectors)
        return vectors[key]

    async def aquery(self, text: str, *, pool: Executor) -> Vector:
        """As `query`, on the caller's loop if the embedder is async, else in the pool."""
        key = text_key(text)
        vectors = self._queries.get([key])
        if not vectors:
            vectors = {key: await self._aquery(text, pool=pool)}
            self._queries.put(vectors)
        return vectors[key]

    def _query(self, text: str) -> Vector:
        backend = self._backend()
        if isinstance(backend, Embeddings):
            with self._reporting():
                row = backend.embed_query(_encodable(text))
            return self._checked([text], [row])[0]
        return self.documents([text])[0]

    async def _aquery(self, text: str, *, pool: Executor) -> Vector:
        backend = await self._aready(pool)
        if isinstance(backend, Embeddings):
            if not _is_natively_async(backend, "aembed_query"):
                return await _in_pool(pool, functools.partial(self._query, text))
            with self._reporting():
                row = await backend.aembed_query(_encodable(text))
            return self._checked([text], [row])[0]
        return (await self.adocuments([text], pool=pool))[0]

    def _call(self, texts: list[str]) -> Any:
        backend = self._backend()
        if not isinstance(backend, Embeddings) and _is_async(backend):
            # This thread has no loop. The portal's loop stays open, so that the function can reuse
            # its connections.
            return run_sync(self._await_function(cast("AsyncEmbedFunction", backend), texts))
        function = backend.embed_documents if isinstance(backend, Embeddings) else backend
        with self._reporting():
            return function([_encodable(text) for text in texts])

    async def _acall(self, texts: list[str], *, pool: Executor) -> Any:
        backend = self._backend()
        if isinstance(backend, Embeddings):
            if _is_natively_async(backend, "aembed_documents"):
                return await self._await_function(backend.aembed_documents, texts)
        elif _is_async(backend):
            return await self._await_function(cast("AsyncEmbedFunction", backend), texts)
        return await _in_pool(pool, functools.partial(self._call, texts))

    async def _await_function(
        self, function: Callable[[list[str]], Awaitable[Any]], texts: list[str]
    ) -> Any:
        with self._reporting():
            return await function([_encodable(text) for text in texts])

    @contextmanager
    def _reporting(self) -> Generator[None]:
        """Turn the errors of an embedder into a `StoreError`."""
        try:
            yield
        except MemguardError:
            raise
        except Exception as error:  # an embedder is the user's code and may raise anything
            msg = f"The embedder {self.name!r} raised {error!r}. Nothing was written; try again"
            raise StoreError(msg, code=ErrorCode.EMBEDDER_FAILED) from error

    def _checked(self, texts: Sequence[str], rows: Any) -> list[Vector]:
        vectors = [[float(number) for number in row] for row in rows]
        if len(vectors) != len(texts):
            self._refuse(f"returned {len(vectors)} vectors for {len(texts)} texts")
        for row in vectors:
            # The first vector decides the length of all others.
            if self._dims is None:
                self._dims = len(row)
            if len(row) != self._dims or not row:
                self._refuse(f"returned {len(row)} numbers where {self._dims} were expected")
            if not all(map(math.isfinite, row)):
                self._refuse("returned a vector with NaN or infinity")
            # Zeros have no cosine with anything, so the item would never be ranked.
            if not any(row):
                self._refuse("returned a vector of zeros only, which has no direction")
        return vectors

    def _refuse(self, fault: str) -> NoReturn:
        msg = f"The embedder {self.name!r} {fault}. Nothing was written; check the model or `dims`"
        raise StoreError(msg, code=ErrorCode.EMBEDDER_OUTPUT)

    async def _aready(self, pool: Executor) -> Embeddings | EmbedFunction | AsyncEmbedFunction:
        # Creating the embedder imports modules and reads files, which must not block the loop.
        return self._ready if self._ready is not None else await _in_pool(pool, self._backend)

    def _backend(self) -> Embeddings | EmbedFunction | AsyncEmbedFunction:
        # Checked twice, so that only the first callers wait for the lock.
        if self._ready is None:
            with self._lock:
                if self._ready is None:
                    self._ready = _resolve(self._embed)
        return self._ready


def check_embed(embed: object) -> None:
    """Check that a value may be an embedder, before anything is opened.

    Raises:
        InvalidInputError: If it is not of a type in `Embed`.
    """
    if embed is None or isinstance(embed, str | Embeddings) or callable(embed):
        return
    msg = (
        f"{embed!r} cannot embed. Pass LangChain embeddings, a function of a list of texts, "
        f"'provider:model', or None for the built-in embedder"
    )
    raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)


def _resolve(embed: Embed | None) -> Embeddings | EmbedFunction | AsyncEmbedFunction:
    if embed is None:
        # Late: only users of the built-in embedder need onnxruntime and its weights.
        from memguard.local.encoder import LocalEmbeddings  # noqa: PLC0415

        return LocalEmbeddings()
    if not isinstance(embed, str):
        return embed
    try:
        if embed.startswith("openai:"):
            return _openai(embed.removeprefix("openai:"))
        return ensure_embeddings(embed)
    except (ImportError, ValueError) as error:
        missing = isinstance(error, ImportError)
        hint = "Install its package" if missing else "Check the name and the key"
        msg = f"The embedder {embed!r} cannot be created: {error}. {hint}"
        raise InvalidInputError(msg, code=ErrorCode.EMBEDDER_MISSING) from error


def _openai(model: str) -> Embeddings:
    """OpenAI-compatible embeddings."""
    # Not by `ensure_embeddings`, which needs the `langchain` package; this one is installed anyway.
    from langchain_openai import OpenAIEmbeddings  # noqa: PLC0415 - loads the OpenAI SDK
    from openai import OpenAIError  # noqa: PLC0415 - as above

    try:
        # Counting tokens would download a vocabulary; the server refuses what is too long.
        return OpenAIEmbeddings(model=model, check_embedding_ctx_length=False)
    except OpenAIError as error:  # no key
        raise ValueError(str(error)) from error


def _is_natively_async(backend: Embeddings, method: str) -> bool:
    """Whether to await the embedder on the caller's loop, instead of in a thread."""
    # Not an OpenAI client: it is shared between event loops, and in the second one it raises "Event
    # loop is closed". Its sync methods, in a thread, work with every loop.
    if hasattr(backend, "async_client"):
        return False
    # LangChain's own async methods only call the sync ones in a thread.
    return getattr(type(backend), method) is not getattr(Embeddings, method)


def _derive_name(embed: object) -> str:
    if isinstance(embed, str):
        return embed
    if not isinstance(embed, Embeddings):
        named: Any = embed if hasattr(embed, "__qualname__") else type(embed)
        return f"{named.__module__}.{named.__qualname__}"
    values = (getattr(embed, attribute, None) for attribute in _NAMES)
    model = next((value for value in values if isinstance(value, str) and value), None)
    kind = type(embed).__name__
    return f"{kind}:{model}" if model else kind


def _is_async(function: object) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  # an object with an async __call__
    )


def _encodable(text: str) -> str:
    # Tokenizers and HTTP clients fail on unpaired surrogates.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


async def _in_pool(pool: Executor, call: Callable[[], Any]) -> Any:
    return await asyncio.get_running_loop().run_in_executor(pool, call)
