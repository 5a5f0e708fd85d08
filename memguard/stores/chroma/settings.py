"""What a store is told at construction, checked there."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypedDict, cast

from langgraph.store.base import IndexConfig, TTLConfig

from memguard.errors import ErrorCode, InvalidInputError
from memguard.stores.chroma.embedding import Embed, Embedder, check_embed
from memguard.stores.chroma.texts import check_fields
from memguard.stores.chroma.ttl import check_ttl_config

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


class StoreOptions(TypedDict, total=False):
    """Options every constructor takes."""

    embed: Embed | None
    """LangChain embeddings, a function (sync or async), `"provider:model"`, or `None` for the
    built-in embedder."""
    embed_name: str | None
    """What the store's stamp calls the embedder; derived from class and model when not given."""
    index: IndexConfig | Mapping[str, Any] | Literal[False] | None
    """`dims`, `embed` and `fields` as in LangGraph; `False` for a store that never embeds."""
    ttl: TTLConfig | Mapping[str, Any] | None
    """`default_ttl`, `refresh_on_read`, `sweep_interval_minutes`, `omit_expired`."""
    collection: str
    """Name of the store within one Chroma."""
    clock: Clock
    """Says what time it is; aware."""
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
            msg = f"The clock said {now!r}, which names no instant. Return an aware datetime"
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
            f"{unknown!r} are no options of a store. Use {', '.join(StoreOptions.__annotations__)}"
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
        msg = f"{unknown!r} are no settings of an index. Use {', '.join(_INDEX_KEYS)}"
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


def _whole(name: str, number: object, least: int, most: int | None) -> int:
    top = float("inf") if most is None else most
    if isinstance(number, int) and not isinstance(number, bool) and least <= number <= top:
        return number
    span = f"from {least} up" if most is None else f"from {least} to {most}"
    msg = f"`{name}` is a whole number {span}, not {number!r}"
    raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
