"""The options of a store and the location of its data, checked when the store is created.

Nothing here opens a file, imports Chroma or creates an embedder, so that a wrong option is reported
before any of that happens, also inside an event loop.
"""

import functools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NoReturn, TypedDict, cast

from langgraph.store.base import IndexConfig, TTLConfig

from memguard.chroma.embedding import Embed, Embedder, check_embed
from memguard.errors import ErrorCode, InvalidInputError

Clock = Callable[[], datetime]

DEFAULT_COLLECTION = "memguard"
# Each collection costs 2.9 MB and four open files while in use. 64 stay below the 1,024 files that
# a process may usually open, and hold 1,500 items each at 100,000.
DEFAULT_SHARDS = 64
DEFAULT_CACHE_BYTES = 256 * 2**20

# The names of shards end in two digits.
_MAX_SHARDS = 100
# Chroma's rule for names of collections, with room for the three characters of a shard's ending.
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{1,500}[a-zA-Z0-9]")
_INDEX_KEYS = ("dims", "embed", "fields")
SECONDS_PER_MINUTE = 60.0
_TTL_KEYS = ("refresh_on_read", "omit_expired", "default_ttl", "sweep_interval_minutes")

WHOLE = "$"
"""The path of the value as a whole, which LangGraph embeds as JSON text."""


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
    """A whole number in a range.

    Raises:
        InvalidInputError: If it is not.
    """
    top = math.inf if maximum is None else maximum
    # `True` is an int in Python, but never a count here.
    if isinstance(number, bool) or not isinstance(number, int) or not minimum <= number <= top:
        span = f"from {minimum} up" if maximum is None else f"from {minimum} to {maximum}"
        _refuse(f"`{name}` is a whole number {span}, not {number!r}")
    return number


def check_ttl(ttl: object) -> float | None:
    """Minutes to live, or `None` for ever.

    Raises:
        InvalidInputError: If it is not a positive, finite number.
    """
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 0 < ttl < math.inf:
        _refuse(f"`ttl` is a positive number of minutes or None, not {ttl!r}")
    return float(ttl)


def check_ttl_config(config: Mapping[str, object] | TTLConfig | None) -> TTLConfig | None:
    """TTL settings with their defaults; `omit_expired` is on unless switched off.

    Raises:
        InvalidInputError: If a setting is unknown or cannot be used.
    """
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
    """The indexed paths of a store; the whole value when none are named.

    Raises:
        InvalidInputError: If they are not a list of path strings.
    """
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
