"""Text to vectors: whatever the caller passed as `embed=`, checked on the way in and out.

An embedder has a name, which is stamped into the store: two models of one dimension give vectors
that cannot be compared, and nothing but the name tells them apart.
"""

import asyncio
import functools
import hashlib
import inspect
import math
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Generator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, NoReturn, cast

from langchain_core.embeddings import Embeddings
from langgraph.store.base import ensure_embeddings

from memguard.errors import ErrorCode, InvalidInputError, MemguardError, StoreError
from memguard.portal import run_sync

Vector = list[float]
EmbedFunction = Callable[[Sequence[str]], list[Vector]]
AsyncEmbedFunction = Callable[[Sequence[str]], Awaitable[list[Vector]]]
Embed = Embeddings | EmbedFunction | AsyncEmbedFunction | str
"""What may be passed as `embed=`; a string is `"provider:model"`."""

_PROBE = "memguard"
_NAMES = ("name", "model", "model_name", "model_id", "deployment")
"""Attributes with the name of an embedder's model, the most specific first."""


MAX_QUERIES = 64
"""Vectors of queries that are kept; 1,536 numbers each make about 3 MB."""


class QueryVectors:
    """The vectors of the queries that were used last; safe in any thread and any event loop.

    A read searches twice: for its own query, and for safety constraints by one text that never
    changes. With an embedder behind a network that second search cost a request per read. Failures
    are not kept, and nothing waits here: two callers who miss at once both ask the embedder.

    Args:
        size: How many to keep.
    """

    def __init__(self, *, size: int = MAX_QUERIES) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._vectors: OrderedDict[bytes, list[float]] = OrderedDict()

    def get(self, text: str) -> list[float] | None:
        """The vector of a text, if it is kept; not to be changed."""
        key = _digest(text)
        with self._lock:
            vector = self._vectors.get(key)
            if vector is not None:
                self._vectors.move_to_end(key)
            return vector

    def keep(self, text: str, vector: list[float]) -> list[float]:
        """Keep the vector of a text, and give it back; the one used longest ago makes room."""
        key = _digest(text)
        with self._lock:
            self._vectors[key] = vector
            self._vectors.move_to_end(key)
            # A dictionary keeps its order, so the first entry is the one used longest ago.
            while len(self._vectors) > self._size:
                self._vectors.popitem(last=False)
        return vector


class Embedder:
    """One interface to any embedder, which is created on first use.

    Args:
        embed: The caller's embedder; `None` for the built-in one.
        name: Its name in the stamp; by default derived from its class and model.
        dims: Its dimension, if known.
    """

    def __init__(self, *, embed: Embed | None, name: str | None, dims: int | None) -> None:
        self._embed = embed
        self._name = name
        self._dims = dims
        self._lock = threading.Lock()
        self._ready: Embeddings | EmbedFunction | AsyncEmbedFunction | None = None
        self._queries = QueryVectors()

    @property
    def name(self) -> str:
        """What the store's stamp says; stable from one process to the next."""
        if self._name is None:
            self._name = _derive_name(self._embed if self._embed is not None else self._backend())
        return self._name

    @property
    def known_dims(self) -> int | None:
        """The dimension, if it is known without embedding anything."""
        if self._dims is None:
            declared = getattr(self._backend(), "dims", None)
            self._dims = declared if isinstance(declared, int) else None
        return self._dims

    def dims(self) -> int:
        """The dimension; embeds one word if nothing else tells."""
        dims = self.known_dims
        return dims if dims is not None else len(self.documents([_PROBE])[0])

    def documents(self, texts: Sequence[str]) -> list[Vector]:
        """Vectors of texts to store, from a thread without an event loop.

        Raises:
            StoreError: If the embedder fails, or what it returns cannot be stored.
        """
        return self._checked(texts, self._call(list(texts)))

    async def adocuments(self, texts: Sequence[str], *, pool: Executor) -> list[Vector]:
        """As `documents`, on the caller's loop if the embedder is async, else in the pool."""
        await self._aready(pool)
        return self._checked(texts, await self._acall(list(texts), pool=pool))

    def query(self, text: str) -> Vector:
        """Vector of a search text, from a thread without an event loop; kept for the next time."""
        vector = self._queries.get(text)
        return vector if vector is not None else self._queries.keep(text, self._query(text))

    async def aquery(self, text: str, *, pool: Executor) -> Vector:
        """As `query`, on the caller's loop if the embedder is async, else in the pool."""
        vector = self._queries.get(text)
        if vector is not None:
            return vector
        return self._queries.keep(text, await self._aquery(text, pool=pool))

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
            # This thread has no loop. On the portal's, the function can reuse its connections.
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
        """Turn what an embedder raises into our error; it is user code and may raise anything."""
        try:
            yield
        except MemguardError:
            raise
        except Exception as error:  # as the docstring says
            msg = f"The embedder {self.name!r} raised {error!r}. Nothing was written; try again"
            raise StoreError(msg, code=ErrorCode.EMBEDDER_FAILED) from error

    def _checked(self, texts: Sequence[str], rows: Any) -> list[Vector]:
        vectors = [[float(number) for number in row] for row in rows]
        if len(vectors) != len(texts):
            self._refuse(f"gave {len(vectors)} vectors for {len(texts)} texts")
        for row in vectors:
            # The first vector says how long all others must be.
            if self._dims is None:
                self._dims = len(row)
            if len(row) != self._dims or not row:
                self._refuse(f"gave {len(row)} numbers where {self._dims} were expected")
            if not all(map(math.isfinite, row)):
                self._refuse("gave a vector with NaN or infinity in it")
            if not any(row):
                self._refuse("gave a vector of zeros only, which has no direction")
        return vectors

    def _refuse(self, what: str) -> NoReturn:
        msg = f"The embedder {self.name!r} {what}. Nothing was written; check the model or `dims`"
        raise StoreError(msg, code=ErrorCode.EMBEDDER_OUTPUT)

    async def _aready(self, pool: Executor) -> Embeddings | EmbedFunction | AsyncEmbedFunction:
        # Creating the embedder imports modules and reads files, which must not block the loop.
        return self._ready if self._ready is not None else await _in_pool(pool, self._backend)

    def _backend(self) -> Embeddings | EmbedFunction | AsyncEmbedFunction:
        # Checked twice, so that only the first callers ever wait for the lock.
        if self._ready is None:
            with self._lock:
                if self._ready is None:
                    self._ready = _resolve(self._embed)
        return self._ready


def check_embed(embed: object) -> None:
    """Refuse what cannot be an embedder, before anything is opened.

    Raises:
        InvalidInputError: If it is none of the kinds `Embed` names.
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
        # Late: weights and numpy are needed only by those who use the built-in embedder.
        from memguard.local.encoder import LocalEmbeddings  # noqa: PLC0415

        return LocalEmbeddings()
    if not isinstance(embed, str):
        return embed
    try:
        if embed.startswith("openai:"):
            return _openai(embed.removeprefix("openai:"))
        return ensure_embeddings(embed)
    except (ImportError, ValueError) as error:
        hint = "Install what it needs" if isinstance(error, ImportError) else "See name and key"
        msg = f"The embedder {embed!r} cannot be created: {error}. {hint}"
        raise InvalidInputError(msg, code=ErrorCode.EMBEDDER_MISSING) from error


def _openai(model: str) -> Embeddings:
    """OpenAI-compatible embeddings with what memguard depends on anyway."""
    from langchain_openai import OpenAIEmbeddings  # noqa: PLC0415 - loads the OpenAI SDK
    from openai import OpenAIError  # noqa: PLC0415 - as above

    try:
        # Counting tokens would download a vocabulary; the server refuses what is too long.
        return OpenAIEmbeddings(model=model, check_embedding_ctx_length=False)
    except OpenAIError as error:  # no key
        raise ValueError(str(error)) from error


def _is_natively_async(backend: Embeddings, method: str) -> bool:
    """Whether to await the embedder on the caller's loop.

    Not where it holds an OpenAI client: that one is shared between event loops, and in the second
    loop it raises "Event loop is closed". Its sync half, in a thread, serves every loop.
    """
    if hasattr(backend, "async_client"):
        return False
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
    """The text with unpaired surrogates replaced: tokenizers and HTTP clients cannot take them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


async def _in_pool(pool: Executor, call: Callable[[], Any]) -> Any:
    return await asyncio.get_running_loop().run_in_executor(pool, call)


def _digest(text: str) -> bytes:
    """By digest: a long text costs no more to keep than a short one."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
