"""From an item of any store to a memory. Pure."""

import json
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from langgraph.store.base import Item, SearchItem
from pydantic import TypeAdapter, ValidationError

from memguard.schema.base import is_blank
from memguard.schema.memory import Moment, Provenance
from memguard.schema.read import RecalledMemory

_TEXT_FIELDS = ("content", "text", "memory")
"""Fields that memory stores use for a memory's text; memguard and langmem use the first."""

_SUPERSEDED_MARKS = ("superseded_by", "superseded_at")
"""Fields that mark a record as superseded, whatever their value."""

_ENDS = ("valid_until", "invalid_at")
"""Fields with the time from which a record is no longer valid."""

_MEMGUARD = "memguard"
_MOMENT: TypeAdapter[datetime | None] = TypeAdapter(Moment)


# Stores that memguard did not write are read as well, so the shape of a value is not known.
def text_of(value: Mapping[str, Any]) -> str:
    """The memory's text: a text field, langmem's nested content, else the value as JSON."""
    for name in _TEXT_FIELDS:
        text = value.get(name)
        if isinstance(text, Mapping):
            inner = cast("Mapping[str, Any]", text)
            text = inner.get("content", json.dumps(inner, ensure_ascii=False, default=str))
        if isinstance(text, str) and not is_blank(text):
            return text
    rest = {key: entry for key, entry in value.items() if key not in {_MEMGUARD, *_TEXT_FIELDS}}
    return json.dumps(rest, ensure_ascii=False, default=str) if any(rest.values()) else ""


def memory_of(item: Item, *, now: datetime) -> RecalledMemory | None:
    """The memory in an item; `None` when the item has no text.

    `score` is the store's, clipped to [0, 1]: for `ChromaStore` and LangGraph's stores
    `min(1, max(0, cosine(query, item)))`. NaN counts as no score. `said_at` is the time of storing
    where the record has no better one.

    Args:
        item: An item of a store, from a search or a get.
        now: The time of the read, for records that end.
    """
    value: Mapping[str, Any] = item.value
    text = text_of(value)
    if is_blank(text):
        return None
    fields = value.get(_MEMGUARD)
    record = cast("Mapping[str, Any]", fields) if isinstance(fields, Mapping) else {}
    return RecalledMemory(
        text=text,
        key=item.key,
        namespace=tuple(item.namespace),
        said_at=_moment(record.get("said_at")) or _moment(item.created_at),
        score=_score(item),
        superseded=_is_superseded(value, now=now) or _is_superseded(record, now=now),
        provenance=_provenance(record),
    )


def _score(item: Item) -> float | None:
    score = item.score if isinstance(item, SearchItem) else None
    # NaN compares with nothing, so it would leave the order of a sort undefined.
    if score is None or math.isnan(score):
        return None
    return min(1.0, max(0.0, float(score)))


def _is_superseded(fields: Mapping[str, Any], *, now: datetime) -> bool:
    if any(fields.get(name) for name in _SUPERSEDED_MARKS):
        return True
    ends = (_moment(fields.get(name)) for name in _ENDS)
    return any(end is not None and end <= now for end in ends)


def _provenance(record: Mapping[str, Any]) -> Provenance | None:
    """Where it came from, as far as this version can read it; other fields are ignored."""
    if not record:
        return None
    readable = {name: record[name] for name in Provenance.model_fields if name in record}
    # A newer version may have added fields; they must not make its records unreadable here.
    try:
        return Provenance.model_validate(readable)
    except ValidationError:
        return None


def _moment(value: object) -> datetime | None:
    """A time in any format that the record may use; what cannot be read counts as unknown."""
    if value is None:
        return None
    try:
        return _MOMENT.validate_python(value)
    except ValidationError:
        return None
