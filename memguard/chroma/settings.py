"""What a store is told at construction, checked there: where its data is, and how it behaves."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypedDict, cast

from langgraph.store.base import IndexConfig, TTLConfig

from memguard.chroma.embedding import Embed, Embedder, check_embed
from memguard.errors import ErrorCode, InvalidInputError

Clock = Callable[[], datetime]

DEFAULT_COLLECTION = "memguard"
DEFAULT_SHARDS = 64
"""Collections a new store spreads its items over.

Each costs 2.9 MB and four open files while in use; 64 stay below the 1,024 files that a process
may usually open, and hold 1,500 items each at 100,000.
"""
DEFAULT_CACHE_BYTES = 256 * 2**20

_MAX_SHARDS = 100
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{1,500}[a-zA-Z0-9]")
_INDEX_KEYS = ("dims", "embed", "fields")
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
    """A Chroma of its own in this process, gone when it is closed."""

    serial: int

    def __str__(self) -> str:
        return "memory"


@dataclass(frozen=True, kw_only=True)
class Server:
    """A `chroma run` somewhere."""

    host: str
    port: int
    ssl: bool = False
    headers: tuple[tuple[str, str], ...] = ()
    """Sorted, since headers in any order are the same headers."""
    tenant: str = "default_tenant"
    database: str = "default_database"

    def __str__(self) -> str:
        return f"server {self.host}:{self.port}"


Location = Local | Memory | Server
"""Where a Chroma is. Values that can be compared: stores at one location share a connection."""


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
    """Collections a new store spreads its items over; a store keeps the number it was made with."""
    cache_bytes: int
    """Memory for namespaces in use; 0 to ask Chroma every time."""


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
    def is_indexed(self) -> bool:
        """Whether anything is ever embedded."""
        return self.embedder is not None

    def moment(self) -> datetime:
        """Now, by the store's clock.

        Raises:
            InvalidInputError: If the clock gives a time without a zone.
        """
        now = self.clock()
        if now.tzinfo is None:
            msg = f"The clock returned {now!r}, which has no time zone. Return an aware datetime"
            raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
        return now


def utc_now() -> datetime:
    """The time in UTC, whatever zone the machine is in."""
    return datetime.now(UTC)


def check_options(options: StoreOptions) -> Settings:
    """Options to settings; opens nothing and makes no embedder.

    Raises:
        InvalidInputError: If an option cannot be used.
    """
    unknown = sorted(set(options) - set(StoreOptions.__annotations__))
    if unknown:
        msg = (
            f"{unknown!r} are not options of a store. Use {', '.join(StoreOptions.__annotations__)}"
        )
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    collection = options.get("collection", DEFAULT_COLLECTION)
    if not _NAME.fullmatch(collection):
        msg = (
            f"{collection!r} cannot name a collection. Use 3 to 500 of letters, digits, '.', '_' "
            f"and '-', the first and the last a letter or digit"
        )
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    index = options.get("index")
    return Settings(
        embedder=_embedder(options, index),
        fields=check_fields((index or {}).get("fields")),
        ttl=check_ttl_config(options.get("ttl")),
        collection=collection,
        clock=options.get("clock", utc_now),
        shards=_whole("shards", options.get("shards", DEFAULT_SHARDS), 1, _MAX_SHARDS),
        cache_bytes=_whole("cache_bytes", options.get("cache_bytes", DEFAULT_CACHE_BYTES), 0, None),
    )


def _embedder(options: StoreOptions, index: object) -> Embedder | None:
    embed = options.get("embed")
    check_embed(embed)
    # `False` is a choice; `None` is the built-in embedder.
    if index is False:
        if embed is not None:
            msg = "`index=False` means that nothing is embedded, yet `embed=` was given. Drop one"
            raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
        return None
    if index is not None and not isinstance(index, Mapping):
        msg = f"`index` is a dict of {', '.join(_INDEX_KEYS)}, False or None, not {index!r}"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    config = dict(cast("Mapping[str, Any]", index or {}))
    unknown = sorted(set(config) - set(_INDEX_KEYS))
    if unknown:
        msg = f"{unknown!r} are not settings of an index. Use {', '.join(_INDEX_KEYS)}"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    inner = config.get("embed")
    check_embed(inner)
    if inner is not None and embed is not None and inner is not embed:
        msg = "Both `embed=` and `index['embed']` were given. Pass one embedder"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    dims = config.get("dims")
    return Embedder(
        embed=embed if embed is not None else inner,
        name=options.get("embed_name"),
        dims=None if dims is None else _whole("dims", dims, 1, None),
    )


def _whole(name: str, number: object, minimum: int, maximum: int | None) -> int:
    top = math.inf if maximum is None else maximum
    # `True` is an int in Python and never a number of anything here.
    if isinstance(number, int) and not isinstance(number, bool) and minimum <= number <= top:
        return number
    span = f"from {minimum} up" if maximum is None else f"from {minimum} to {maximum}"
    msg = f"`{name}` is a whole number {span}, not {number!r}"
    raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)


def check_ttl(ttl: object) -> float | None:
    """Minutes to live, or `None` for ever.

    Raises:
        InvalidInputError: If it is not a positive, finite number.
    """
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 0 < ttl < math.inf:
        msg = f"`ttl` is a positive number of minutes or None, not {ttl!r}"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    return float(ttl)


def check_ttl_config(config: Mapping[str, object] | TTLConfig | None) -> TTLConfig | None:
    """TTL settings with their defaults; `omit_expired` is on unless switched off.

    Raises:
        InvalidInputError: If a setting is unknown or cannot be used.
    """
    if config is None:
        return None
    unknown = sorted(set(config) - set(_TTL_KEYS))
    if unknown:
        msg = f"{unknown!r} are not TTL settings. Use {', '.join(_TTL_KEYS)}"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
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
    if isinstance(fields, str) or not isinstance(fields, Sequence):
        msg = f"`fields` is a list of paths, not {fields!r}. Pass ['text'] or ['meta.title']"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    paths: list[str] = []
    for path in fields:  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(path, str) or not path:
            msg = (
                f"{path!r} in `fields` is not a path. Pass strings such as 'text' or 'tags[*].name'"
            )
            raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
        paths.append(path)
    return tuple(paths) or (WHOLE,)
