"""What a user chooses for a `ChromaStore`: location, embedder, index, time to live.

`check_options` checks the options of a constructor before anything is opened. `Embedder` gives
LangChain embeddings, functions and model names one interface, sync and async, and checks the
vectors that they return.
"""

import asyncio
import functools
import inspect
import math
import re
import threading
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NoReturn, TypedDict, cast

from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig, TTLConfig, ensure_embeddings

from memguard.errors import ErrorCode, InvalidInputError, MemguardError, StoreError
from memguard.local.encoder import RecentItems, text_key
from memguard.portal import run_sync
from memguard.schema.base import Clock

Vector = list[float]
EmbedFunction = Callable[[Sequence[str]], list[Vector]]
AsyncEmbedFunction = Callable[[Sequence[str]], Awaitable[list[Vector]]]
Embed = Embeddings | EmbedFunction | AsyncEmbedFunction | str
"""What may be passed as `embed=`; a string is `"provider:model"`."""

DEFAULT_COLLECTION = "memguard"
# Each collection costs 2.9 MB and four open files while in use. 64 stay below the 1,024 files that
# a process may usually open, and hold 1,500 items each at 100,000.
DEFAULT_SHARDS = 64
DEFAULT_CACHE_BYTES = 256 * 2**20
SECONDS_PER_MINUTE = 60.0
WHOLE = "$"
"""The path of the value as a whole, which LangGraph embeds as JSON text."""

# The names of shards end in two digits.
_MAX_SHARDS = 100
# Chroma's rule for names of collections, with room for the three characters of a shard's ending.
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{1,500}[a-zA-Z0-9]")
_INDEX_KEYS = ("dims", "embed", "fields")
_TTL_KEYS = ("refresh_on_read", "omit_expired", "default_ttl", "sweep_interval_minutes")

# Attributes with the name of an embedder's model, the most specific first.
_NAMES = ("name", "model", "model_name", "model_id", "deployment")

# A read searches twice: for its own query, and for safety constraints by one text that never
# changes. Through a network, that second search would cost a request per read. 64 vectors of 1,536
# numbers take about 3 MB.
MAX_QUERIES = 64


# -- embedding --------------------------------------------------------------------------------


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
    """Refuse a value whose type is not in `Embed`, before anything is opened."""
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


# -- locations and options -------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Local:
    """A directory of this machine."""

    path: Path

    def __str__(self) -> str:
        return f"path {str(self.path)!r}"


@dataclass(frozen=True, kw_only=True)
class Memory:
    """A Chroma in the memory of this process, whose data is lost when it is closed."""

    serial: int
    """Different for every store, because stores at equal locations share their data."""

    def __str__(self) -> str:
        return "memory"


@dataclass(frozen=True, kw_only=True)
class Server:
    """A Chroma server (`chroma run`)."""

    host: str
    port: int
    ssl: bool = False
    headers: tuple[tuple[str, str], ...] = ()
    """In the order of their names, so that equal headers compare equal."""
    tenant: str = "default_tenant"
    database: str = "default_database"

    def __str__(self) -> str:
        return f"server {self.host}:{self.port}"


Location = Local | Memory | Server
"""Where a Chroma is. Stores at equal locations share a connection."""


class StoreOptions(TypedDict, total=False):
    """Options every constructor takes."""

    embed: Embed | None
    """LangChain embeddings, a function (sync or async), `"provider:model"`, or `None` for the
    built-in embedder."""
    embed_name: str | None
    """The embedder's name in the store's stamp; by default derived from its class and model."""
    index: IndexConfig | Mapping[str, Any] | Literal[False] | None
    """`dims`, `embed` and `fields` as in LangGraph; `False` for a store that never embeds."""
    ttl: TTLConfig | Mapping[str, Any] | None
    """`default_ttl`, `refresh_on_read`, `sweep_interval_minutes`, `omit_expired`."""
    collection: str
    """Name of the store within one Chroma."""
    clock: Clock
    """Returns the time, as an aware datetime."""
    shards: int
    """Number of collections over which a new store spreads its items, from 1 to 100. An existing
    store keeps its number."""
    cache_bytes: int
    """Bytes of memory for the namespaces in use; 0 to ask Chroma every time."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Checked options."""

    embedder: Embedder | None
    """`None` if nothing is ever embedded."""
    fields: tuple[str, ...]
    ttl: TTLConfig | None
    collection: str
    clock: Clock
    shards: int
    cache_bytes: int

    @property
    def omits_expired(self) -> bool:
        """Whether readers do not see an item that has expired and is not yet deleted."""
        return (self.ttl or {}).get("omit_expired", True)

    def moment(self) -> datetime:
        """The current time of the store's clock.

        Raises:
            InvalidInputError: If the clock returns a time without a zone.
        """
        now = self.clock()
        if now.tzinfo is None:
            # Python would read it as local time, and another machine as another moment.
            _refuse(f"The clock returned {now!r}, which has no time zone. Return an aware datetime")
        return now


def check_options(options: StoreOptions) -> Settings:
    """Check the options of a store.

    Raises:
        InvalidInputError: If an option cannot be used.
    """
    _check_names(options, StoreOptions.__annotations__, "options of a store")
    collection = options.get("collection", DEFAULT_COLLECTION)
    if not _NAME.fullmatch(collection):
        _refuse(
            f"{collection!r} cannot name a collection. Use 3 to 500 of letters, digits, '.', '_' "
            f"and '-', the first and the last a letter or digit"
        )
    index = options.get("index")
    cache_bytes = options.get("cache_bytes", DEFAULT_CACHE_BYTES)
    return Settings(
        embedder=_embedder(options, index),
        fields=check_fields((index or {}).get("fields")),
        ttl=check_ttl_config(options.get("ttl")),
        collection=collection,
        clock=options.get("clock", functools.partial(datetime.now, UTC)),
        shards=check_whole("shards", options.get("shards", DEFAULT_SHARDS), 1, _MAX_SHARDS),
        cache_bytes=check_whole("cache_bytes", cache_bytes, 0, None),
    )


def _embedder(options: StoreOptions, index: object) -> Embedder | None:
    embed = options.get("embed")
    check_embed(embed)
    # `False` is a choice; `None` is the built-in embedder.
    if index is False:
        if embed is not None:
            _refuse(
                "`index=False` means that nothing is embedded, yet `embed=` was given. Drop one"
            )
        return None
    if index is not None and not isinstance(index, Mapping):
        _refuse(f"`index` is a dict of {', '.join(_INDEX_KEYS)}, False or None, not {index!r}")
    config = dict(cast("Mapping[str, Any]", index or {}))
    _check_names(config, _INDEX_KEYS, "settings of an index")
    inner = config.get("embed")
    check_embed(inner)
    if inner is not None and embed is not None and inner is not embed:
        _refuse("Both `embed=` and `index['embed']` were given. Pass one embedder")
    dims = config.get("dims")
    return Embedder(
        embed=embed if embed is not None else inner,
        name=options.get("embed_name"),
        dims=None if dims is None else check_whole("dims", dims, 1, None),
    )


def check_whole(name: str, number: object, minimum: int, maximum: int | None) -> int:
    """The number, if it is a whole number in the range; else an `InvalidInputError`."""
    top = math.inf if maximum is None else maximum
    # `True` is an int in Python, but never a count here.
    if isinstance(number, bool) or not isinstance(number, int) or not minimum <= number <= top:
        span = f"from {minimum} up" if maximum is None else f"from {minimum} to {maximum}"
        _refuse(f"`{name}` is a whole number {span}, not {number!r}")
    return number


def check_ttl(ttl: object) -> float | None:
    """Minutes to live, or `None` for ever; any other value is an `InvalidInputError`."""
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 0 < ttl < math.inf:
        _refuse(f"`ttl` is a positive number of minutes or None, not {ttl!r}")
    return float(ttl)


def check_ttl_config(config: Mapping[str, object] | TTLConfig | None) -> TTLConfig | None:
    """TTL settings with their defaults; `omit_expired` is on unless switched off."""
    if config is None:
        return None
    _check_names(config, _TTL_KEYS, "TTL settings")
    interval = check_ttl(config.get("sweep_interval_minutes"))
    checked = TTLConfig(
        refresh_on_read=bool(config.get("refresh_on_read", True)),
        omit_expired=bool(config.get("omit_expired", True)),
        default_ttl=check_ttl(config.get("default_ttl")),
        sweep_interval_minutes=None,
    )
    # LangGraph types it as a whole number of minutes; a fraction is useful in tests and harmless.
    checked["sweep_interval_minutes"] = interval  # pyright: ignore[reportGeneralTypeIssues]
    return checked


def check_fields(fields: object) -> tuple[str, ...]:
    """The indexed paths of a store; the whole value when none are named."""
    if fields is None:
        return (WHOLE,)
    # A string is a sequence of strings, and each of its letters would be a path.
    if isinstance(fields, str) or not isinstance(fields, Sequence):
        _refuse(f"`fields` is a list of paths, not {fields!r}. Pass ['text'] or ['meta.title']")
    paths: list[str] = []
    for path in fields:  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(path, str) or not path:
            _refuse(
                f"{path!r} in `fields` is not a path. Pass strings such as 'text' or 'tags[*].name'"
            )
        paths.append(path)
    return tuple(paths) or (WHOLE,)


def _check_names(options: Iterable[str], allowed: Iterable[str], kind: str) -> None:
    unknown = sorted(set(options) - set(allowed))
    if unknown:
        _refuse(f"{unknown!r} are not {kind}. Use {', '.join(allowed)}")


def _refuse(message: str) -> NoReturn:
    raise InvalidInputError(message, code=ErrorCode.INPUT_INVALID)
