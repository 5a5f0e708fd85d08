"""What an item looks like inside Chroma, and the check that a value survives the trip.

One item is one row, or one row per vector if several fields are indexed. The first row, the head,
carries everything; the others exist for their vector. Every row has the same metadata keys, because
Chroma's upsert merges metadata and would keep a key the new row lacks.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, NoReturn, cast

from langgraph.store.base import Item, SearchItem

from memguard.errors import ErrorCode, InvalidInputError
from memguard.schema.base import Namespace
from memguard.stores.chroma.namespaces import decode_namespace, encode_namespace

NS = "ns"
"""Metadata: the encoded namespace, on every row."""
RANKED = "q"
"""Metadata: the encoded namespace again if the row's vector has a meaning, else empty.

Rows without one (`index=False`, or no text) hold a vector derived from their id, which a query
must never rank; one equality on this key says both whose and whether.
"""
RECORD = "rec"
"""Metadata: the record as ASCII JSON on the head, the revision alone on the other rows."""
EXPIRES = "exp"
"""Metadata: when the item expires, in seconds since 1970; `NEVER` if it does not."""

NEVER = 4e18
"""Beyond any clock; Chroma drops infinity silently, so a finite number stands for it."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MAX_DEPTH = 200
"""Nesting of a value; far below what JSON readers of other languages accept."""


class Address(NamedTuple):
    """Where one item lives."""

    namespace: Namespace
    key: str

    @property
    def row_id(self) -> str:
        """Stem of the ids of its rows; two addresses never share one (160 bits of SHA-256)."""
        text = f"{encode_namespace(self.namespace)}\n{self.key}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One stored item, as its head row holds it."""

    key: str
    text: str
    """The value as JSON; parsed anew for each reader, so that no reader changes another's copy."""
    created: int
    """Microseconds since 1970, UTC."""
    updated: int
    """Microseconds since 1970, UTC."""
    ttl: float | None
    """Minutes from the last use to the end."""
    vectors: int
    """Rows with a vector that has a meaning; 0 for an item that is not indexed."""
    revision: str
    """New with every put; rows of an older one are left-overs and count as absent."""

    @property
    def rows(self) -> int:
        """How many rows the item has."""
        return max(1, self.vectors)

    def value(self) -> dict[str, Any]:
        """A fresh copy of the value."""
        return json.loads(self.text)

    def dumps(self) -> str:
        """The text `loads_record` reads."""
        head = json.dumps(
            [self.key, self.created, self.updated, self.ttl, self.vectors, self.revision]
        )
        return f"{head}\n{self.text}"


def loads_record(text: str) -> Record:
    """Read what `Record.dumps` wrote."""
    head, _, value = text.partition("\n")
    key, created, updated, ttl, vectors, revision = json.loads(head)
    return Record(
        key=key,
        text=value,
        created=created,
        updated=updated,
        ttl=ttl,
        vectors=vectors,
        revision=revision,
    )


def encode_value(value: object, *, address: Address) -> str:
    """A value as ASCII JSON, or a refusal that names the place inside it.

    Everything JSON can say comes back equal, NaN and infinity included (as Python's `json` writes
    them). Tuples, sets, bytes, dates and keys that are not strings would come back as something
    else or not at all, and are refused.

    Raises:
        InvalidInputError: With the code `STORE_VALUE`.
    """
    if not isinstance(value, Mapping):
        _refuse("$", value, address, "Pass a dict with string keys")
    content = dict(cast("Mapping[Any, Any]", value))
    _check(content, path="$", depth=0, address=address)
    try:
        return json.dumps(content)
    except ValueError as error:
        msg = f"The value of {address.key!r} in {address.namespace!r} cannot be written: {error}"
        raise InvalidInputError(msg, code=ErrorCode.STORE_VALUE) from error


def to_item(record: Record, namespace: Namespace) -> Item:
    """A record as LangGraph hands it out."""
    return Item(
        value=record.value(),
        key=record.key,
        namespace=namespace,
        created_at=from_microseconds(record.created),
        updated_at=from_microseconds(record.updated),
    )


def to_search_item(record: Record, namespace: Namespace, *, score: float | None) -> SearchItem:
    """A record as a search hands it out."""
    return SearchItem(
        value=record.value(),
        key=record.key,
        namespace=namespace,
        created_at=from_microseconds(record.created),
        updated_at=from_microseconds(record.updated),
        score=score,
    )


def to_microseconds(moment: datetime) -> int:
    """Microseconds since 1970, exact."""
    return (moment - _EPOCH) // _MICROSECOND


def from_microseconds(count: int) -> datetime:
    """The aware UTC moment, whatever zone the machine is in."""
    return _EPOCH + count * _MICROSECOND


def namespace_of(metadata: Mapping[str, Any]) -> Namespace:
    """The namespace a row says it belongs to."""
    return decode_namespace(str(metadata[NS]))


def _check(value: Any, *, path: str, depth: int, address: Address) -> None:
    # The commonest types first: this runs over every part of every value put.
    if value is None or isinstance(value, str | int | float):
        return
    if depth > _MAX_DEPTH:
        _refuse(path, value, address, f"Nest at most {_MAX_DEPTH} deep")
    if isinstance(value, list):
        for index, each in enumerate(cast("list[Any]", value)):
            _check(each, path=f"{path}[{index}]", depth=depth + 1, address=address)
    elif isinstance(value, dict):
        for key, each in cast("dict[Any, Any]", value).items():
            if not isinstance(key, str):
                _refuse(path, key, address, "Make every key a string")
            _check(each, path=f"{path}.{key}", depth=depth + 1, address=address)
    else:
        _refuse(path, value, address, "Convert it to text, a number, a list or a dict")


def _refuse(path: str, found: object, address: Address, remedy: str) -> NoReturn:
    shown = repr(found)
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."  # noqa: PLR2004
    msg = (
        f"The value of {address.key!r} in {address.namespace!r} holds at {path} a "
        f"{type(found).__name__}, {shown}, which JSON cannot keep unchanged. {remedy}"
    )
    raise InvalidInputError(msg, code=ErrorCode.STORE_VALUE)


def is_finite_ttl(ttl: float) -> bool:
    """Whether a time to live is a positive number of minutes."""
    return math.isfinite(ttl) and ttl > 0
