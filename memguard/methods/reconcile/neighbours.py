"""The memories near a candidate: current ones of exactly its namespace, and what replaced others.

A store without an index cannot say what is near, so nothing is near there, and a note says so.
"""

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from langgraph.store.base import BaseStore, Item, SearchItem
from pydantic import TypeAdapter, ValidationError

from memguard.local.languages import language_of
from memguard.methods.reconcile.config import Reconcile
from memguard.methods.reconcile.rules import SpokenAt
from memguard.paging import search_exactly
from memguard.schema.base import Frozen, Namespace, is_blank
from memguard.schema.memory import CandidateMemory, Moment, Provenance, lifecycle_of
from memguard.schema.relations import Neighbour

NO_INDEX = "the store cannot rank by similarity, so no near memory was looked for"
_TEXT_FIELDS = ("content", "text", "memory")
ACROSS_LANGUAGES = 0.5
"""Share of `min_score` from which a memory in another language is near: embedders bring two
languages less together, some hardly at all."""
_MIN_SEARCHED = 20
_MAX_SEARCHED = 1_000
_GROWTH = 4
"""How many times as many items are searched if superseded ones take the room of current ones."""
_MOMENT: TypeAdapter[Any] = TypeAdapter(Moment)


Origins = Callable[[Namespace, Sequence[str]], Awaitable[Mapping[str, Provenance]]]
"""Gives the origins of items that do not contain theirs, by key."""


class NearMemories(Frozen):
    """What recall found."""

    current: tuple[Neighbour, ...] = ()
    """The nearest current memories, nearest first."""
    past: tuple[Neighbour, ...] = ()
    """Near memories that one of these has replaced, nearest first."""
    notes: tuple[str, ...] = ()
    """Notes for the receipt."""


def can_rank(store: BaseStore) -> bool:
    """Whether a store may rank by similarity; it cannot if it declares that it has no index."""
    return not hasattr(store, "index_config") or bool(store.index_config)  # pyright: ignore[reportAttributeAccessIssue]


async def find_neighbours(
    store: BaseStore, candidate: CandidateMemory, *, spec: Reconcile, but: str = ""
) -> NearMemories:
    """The memories near a candidate, from exactly its namespace.

    Args:
        store: The memory store.
        candidate: The candidate.
        spec: How many, and how near.
        but: The key under which the candidate is written; what is there now is written over.
    """
    if not can_rank(store):
        return NearMemories(notes=(NO_INDEX,))
    limit = max(_MIN_SEARCHED, 3 * spec.k)
    while True:
        items = await search_exactly(store, candidate.namespace, query=candidate.text, limit=limit)
        scores = [_score(item) for item in items]
        if items and all(score is None for score in scores):
            return NearMemories(notes=(NO_INDEX,))
        # Only what is near is read; in a large store that is little of what a search returns.
        near = [
            neighbour
            for item, score in zip(items, scores, strict=True)
            if score is not None and score >= ACROSS_LANGUAGES * spec.min_score and item.key != but
            if (neighbour := neighbour_of(item)) is not None
            and _is_near(candidate, neighbour, score, min_score=spec.min_score)
        ]
        current = [n for n in near if n.lifecycle.is_current][: spec.k]
        # Items come in the order of their scores.
        is_far = bool(scores) and (scores[-1] or 0.0) < ACROSS_LANGUAGES * spec.min_score
        exhausted = len(items) < limit or is_far
        if exhausted or len(current) == spec.k or limit >= _MAX_SEARCHED:
            break
        # Restatements that were superseded are as near as the current one.
        limit = min(_MAX_SEARCHED, _GROWTH * limit)
    keys = {neighbour.key for neighbour in near}
    past = [n for n in near if not n.lifecycle.is_current and n.lifecycle.superseded_by in keys]
    return NearMemories(current=tuple(current), past=tuple(past[: spec.k]))


def _is_near(
    candidate: CandidateMemory, neighbour: Neighbour, score: float, *, min_score: float
) -> bool:
    """Whether a memory is near enough; one in another language from a lower score."""
    if score >= min_score:
        return True
    return language_of(neighbour.text) != language_of(candidate.text)


async def with_origins(near: NearMemories, origins: Origins) -> NearMemories:
    """The same memories, with origins for those whose items contain none."""
    without = [n for n in (*near.current, *near.past) if n.provenance is None]
    if not without:
        return near
    by_key = await origins(without[0].namespace, [neighbour.key for neighbour in without])

    def fill(neighbour: Neighbour) -> Neighbour:
        origin = neighbour.provenance or by_key.get(neighbour.key)
        said_at = (origin.said_at if origin is not None else None) or neighbour.said_at
        return neighbour.model_copy(update={"provenance": origin, "said_at": said_at})

    return near.model_copy(
        update={
            "current": tuple(map(fill, near.current)),
            "past": tuple(map(fill, near.past)),
        }
    )


def neighbour_of(item: Item) -> Neighbour | None:
    """An item of a store as a memory that a candidate is compared with; `None` without a text."""
    value: Mapping[str, Any] = item.value
    texts = (value.get(name) for name in _TEXT_FIELDS)
    text = next((text for text in texts if isinstance(text, str) and not is_blank(text)), "")
    if not text:
        return None
    provenance = _provenance(value)
    created_at = _MOMENT.validate_python(item.created_at)
    return Neighbour(
        namespace=tuple(item.namespace),
        key=item.key,
        text=text,
        said_at=(provenance.said_at if provenance is not None else None) or created_at,
        score=_score(item),
        provenance=provenance,
        lifecycle=lifecycle_of(value),
    )


def _score(item: Item) -> float | None:
    score = item.score if isinstance(item, SearchItem) else None
    # NaN compares with nothing, so it counts as no score.
    return None if score is None or math.isnan(score) else min(1.0, max(0.0, float(score)))


def _provenance(value: Mapping[str, Any]) -> Provenance | None:
    """Where it came from; `None` for an item that memguard did not write."""
    fields = value.get("memguard")
    if not isinstance(fields, Mapping):
        return None
    record = cast("Mapping[str, Any]", fields)
    readable = {name: record[name] for name in Provenance.model_fields if name in record}
    try:
        return Provenance.model_validate(readable)
    except ValidationError:
        return None


def spoken_by_candidate(
    candidate: CandidateMemory, *, now: Moment, event_at: Moment, turn_order: tuple[str, ...]
) -> SpokenAt:
    """The times of a candidate; without a time of its own it counts as said now."""
    return SpokenAt(
        event_at=event_at,
        said_at=candidate.said_at,
        assumed_at=now,
        position=_position(candidate.turn_ids, turn_order),
    )


def spoken_by_neighbour(
    neighbour: Neighbour, *, conversation_id: str, turn_order: tuple[str, ...], same_run: bool
) -> SpokenAt:
    """The times of a stored memory; a memory that was confirmed was said then, too.

    Args:
        neighbour: The memory.
        conversation_id: The conversation of the candidate.
        turn_order: Ids of the turns of that conversation, in order.
        same_run: Whether the run of the candidate stored or confirmed the memory. Only then the
            turns of a conversation without an id can be compared.
    """
    origin, lifecycle = neighbour.provenance, neighbour.lifecycle
    times = [origin.said_at if origin is not None else None, lifecycle.confirmed_at]
    prefix = f"{conversation_id}:"
    turn_ids: list[str] = []
    if conversation_id or same_run:
        if origin is not None and origin.conversation_id == conversation_id:
            turn_ids += origin.turn_ids
        turn_ids += [
            name.removeprefix(prefix) for name in lifecycle.confirmed_by if name.startswith(prefix)
        ]
    return SpokenAt(
        event_at=lifecycle.event_at,
        said_at=max((time for time in times if time is not None), default=None),
        assumed_at=neighbour.said_at,
        position=_position(turn_ids, turn_order),
    )


def _position(turn_ids: Sequence[str], turn_order: tuple[str, ...]) -> int | None:
    """The place of the latest of some turns; `None` if the conversation has none of them."""
    if not turn_ids or not turn_order:
        return None
    places = _places(turn_order)
    return max((places[name] for name in turn_ids if name in places), default=None)


# All candidates of a run have the same turns.
@lru_cache(maxsize=16)
def _places(turn_order: tuple[str, ...]) -> dict[str, int]:
    return {name: index for index, name in enumerate(turn_order)}
