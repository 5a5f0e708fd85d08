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
"""Where memory stores keep a memory's text; memguard and langmem use the first."""

_GONE = ("superseded_by", "superseded_at")
"""Fields that mark a record as superseded, whatever they hold."""

_ENDS = ("valid_until", "invalid_at")
"""Fields that hold the time from which a record no longer holds."""

_OWN = "memguard"
_MOMENT: TypeAdapter[datetime | None] = TypeAdapter(Moment)


def text_of(value: Mapping[str, Any]) -> str:
    """The memory's text: a text field, langmem's nested content, else the value as JSON."""
    for name in _TEXT_FIELDS:
        found = value.get(name)
        if isinstance(found, Mapping):
            inner = cast("Mapping[str, Any]", found)
            found = inner.get("content", json.dumps(inner, ensure_ascii=False, default=str))
        if isinstance(found, str) and not is_blank(found):
            return found
    rest = {key: each for key, each in value.items() if key not in {_OWN, *_TEXT_FIELDS}}
    return json.dumps(rest, ensure_ascii=False, default=str) if any(rest.values()) else ""


def memory_of(item: Item, *, now: datetime) -> RecalledMemory | None:
    """The memory that an item holds; `None` when it holds no text.

    `score` is the store's own, cut to [0, 1]: for `ChromaStore` and LangGraph's stores
    `min(1, max(0, cosine(query, item)))`. A score that is no number counts as none. `said_at` is
    when it was stored, where the record does not say more.

    Args:
        item: An item of a store, found or got.
        now: The time of the read, for records that end.
    """
    value: Mapping[str, Any] = item.value
    text = text_of(value)
    if is_blank(text):
        return None
    own = value.get(_OWN)
    record = cast("Mapping[str, Any]", own) if isinstance(own, Mapping) else {}
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
    if score is None or math.isnan(score):
        return None
    return min(1.0, max(0.0, float(score)))


def _is_superseded(fields: Mapping[str, Any], *, now: datetime) -> bool:
    if any(fields.get(name) for name in _GONE):
        return True
    ends = (_moment(fields.get(name)) for name in _ENDS)
    return any(end is not None and end <= now for end in ends)


def _provenance(record: Mapping[str, Any]) -> Provenance | None:
    """Where it came from, as far as this version can read it; other fields do no harm."""
    if not record:
        return None
    known = {name: record[name] for name in Provenance.model_fields if name in record}
    try:
        return Provenance.model_validate(known)
    except ValidationError:
        return None


def _moment(value: object) -> datetime | None:
    """A time, whatever shape the record has it in; what cannot be read counts as not known."""
    if value is None:
        return None
    try:
        return _MOMENT.validate_python(value)
    except ValidationError:
        return None
