"""Recall: which memories of which namespaces a read looks at.

LangGraph's `search` is by prefix, so it brings what lies below a namespace too; only items of
exactly the namespaces asked for are kept, and pages are fetched until there are enough of them.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import cast

from langgraph.store.base import BaseStore, GetOp, Op, SearchItem, SearchOp

from memguard.errors import ErrorCode, MemguardError, StoreConfigurationError, StoreError
from memguard.guard.recall_lanes import Counts, Lane, Texts, take
from memguard.policy.dedupe import same_text_form
from memguard.schema.base import Namespace, is_blank
from memguard.schema.read import RecalledMemory
from memguard.schema.recall import Recall, Recalled
from memguard.store_calls import call_store

SAFETY_QUERIES = (
    "allergy, food intolerance, medication, illness, pregnancy",
    "disability, wheelchair, hearing or sight loss, accessibility",
    "alergia, Allergie, аллергия, 过敏, アレルギー, 알레르기",
)
"""What safety constraints are searched by; what is found is kept only if its wording says so.

Of 60 memories of PersistBench that are such by their wording, one list of these words had 49 among
its 20 nearest beside 200 other memories and 38 beside 1,000; the three have 60 and 52 (built-in
embedder, each constraint ranked by itself). The lists were chosen with these figures in view, so
expect less of other memories.
"""

_ALL = 2**31
_QUERY_CHARS = 4_000
"""Characters of a query at its beginning and at its end that are searched by; embedding models read
no more, and some refuse more."""

_MOST_COPIES = 5
"""Copies of one text that go onto the receipt; of more, only how many."""

_MORE_COPIES = "{} more copies of the same texts were left out"
_MORE_SAFETY = "{} more memories read as safety constraints; raise `safety_k` to recall them"
_CUT = "a search for safety constraints ended after {} memories, the last of them still such"
_BLANK = "the query is blank: nothing was recalled"
_OLDEST = datetime.min.replace(tzinfo=UTC)


async def recall(
    store: BaseStore,
    *,
    query: str,
    namespaces: Sequence[Namespace],
    spec: Recall,
    k: int,
    now: datetime,
) -> Recalled:
    """The memories that a read looks at.

    Args:
        store: Any LangGraph store.
        query: What the user asks; a blank one recalls nothing.
        namespaces: Where to look; each exactly, nothing above or below it.
        spec: In which order, from when, and what is left out.
        k: How many texts at most, unless the spec says.
        now: The time of the read.

    Raises:
        StoreConfigurationError: If memories are wanted by similarity from a store without an index.
        StoreError: If the store failed.
    """
    places = tuple(dict.fromkeys(namespaces))
    if is_blank(query):
        return Recalled(namespaces=places, notes=(_BLANK,))
    ranked, want = spec.order == "similarity", spec.k or k
    if ranked:
        _require_index(store)
    lanes = _lanes(places, query=query, spec=spec, want=want)
    counts = Counts()
    while open_lanes := [lane for lane in lanes if not lane.done]:
        pages = await _search(store, [lane.op for lane in open_lanes])
        for lane, page in zip(open_lanes, pages, strict=True):
            take(lane, page, spec=spec, now=now, counts=counts)
    if ranked:
        _require_scores(store, lanes)
    found = _chosen(lanes, want=want, spec=spec)
    await _prolong(store, found.memories)
    return found.model_copy(update={"namespaces": places, **vars(counts)})


def _lanes(places: Sequence[Namespace], *, query: str, spec: Recall, want: int) -> list[Lane]:
    """The searches of each namespace: for the query, and for safety constraints."""
    if spec.order == "latest":
        # A store lists by its own order; the latest are known when all were seen, and with them
        # all that is about safety.
        safety = spec.safety_k > 0
        return [Lane(each, None, _ALL, _ALL, for_query=True, for_safety=safety) for each in places]
    text = _searchable(query)
    lanes = [Lane(each, text, want, want, for_query=True) for each in places]
    if spec.safety_k:
        # The nearest may hold some of them, and are not to take the room of those beside.
        most, least = spec.safety_k + want, spec.safety_k
        lanes += [
            Lane(each, words, most, least, for_safety=True)
            for each in places
            for words in SAFETY_QUERIES
        ]
    return lanes


def _chosen(lanes: Sequence[Lane], *, want: int, spec: Recall) -> Recalled:
    """The nearest of all namespaces, then the safety constraints beside them, then copies."""
    everything = _groups(lane.nearest for lane in lanes)
    nearest = everything[:want]
    known = {same_text_form(group[0].text) for group in nearest}
    safe = [
        group
        for group in _groups(lane.safe for lane in lanes)
        if same_text_form(group[0].text) not in known
    ]
    beside = [_with_nearness(group, everything) for group in safe[: spec.safety_k]]
    groups = [*nearest, *beside]
    copies = [copy for group in groups for copy in group[1 : 1 + _MOST_COPIES]]
    more = sum(max(0, len(group) - 1 - _MOST_COPIES) for group in groups)
    left = len(safe) - len(beside)
    looked = max((lane.inside for lane in lanes if lane.cut), default=0)
    said = ((more, _MORE_COPIES), (left, _MORE_SAFETY), (looked, _CUT))
    return Recalled(
        memories=tuple(group[0] for group in groups) + tuple(copies),
        beside=len(beside),
        notes=tuple(note.format(count) for count, note in said if count),
    )


def _with_nearness(
    group: Sequence[RecalledMemory], everything: Sequence[Sequence[RecalledMemory]]
) -> list[RecalledMemory]:
    """With the nearness to the query, where it is known: theirs is to what they were found by."""
    scores = {each.id: each.score for found in everything for each in found}
    return [each.model_copy(update={"score": scores.get(each.id)}) for each in group]


def _groups(found: Iterable[Texts]) -> list[list[RecalledMemory]]:
    """What was found, one group per text, the best of each group first."""
    groups: Texts = {}
    for texts in found:
        for form, memories in texts.items():
            groups.setdefault(form, []).extend(memories)
    return sorted(map(_ranked, groups.values()), key=lambda group: _rank(group[0]))


def _ranked(group: Sequence[RecalledMemory]) -> list[RecalledMemory]:
    """The best first; a memory that several searches found once, by the best of them."""
    found: dict[str, RecalledMemory] = {}
    for memory in sorted(group, key=_rank):
        found.setdefault(memory.id, memory)
    return list(found.values())


def _rank(memory: RecalledMemory) -> tuple[float, float, Namespace, str]:
    """Nearest first, what was not ranked last; then the latest; then by place, to be the same."""
    score = -1.0 if memory.score is None else memory.score
    age = -(memory.said_at or _OLDEST).timestamp()
    return (-score, age, memory.namespace, memory.key)


def _searchable(query: str) -> str:
    if len(query) <= 2 * _QUERY_CHARS:
        return query
    return f"{query[:_QUERY_CHARS]} {query[-_QUERY_CHARS:]}"


async def _search(store: BaseStore, ops: Sequence[SearchOp]) -> list[list[SearchItem]]:
    return cast("list[list[SearchItem]]", await _abatch(store, ops))


async def _abatch(store: BaseStore, ops: Sequence[Op]) -> list[object]:
    try:
        return await call_store(store, ops)
    except MemguardError:
        raise
    except Exception as error:  # a store of any make may raise anything
        msg = f"the memory store failed: {type(error).__name__}: {error}; nothing was recalled"
        raise StoreError(msg, code=ErrorCode.STORE_FAILED) from error


async def _prolong(store: BaseStore, memories: Sequence[RecalledMemory]) -> None:
    """What was read lives on, where the store says that reading prolongs."""
    config = (store.ttl_config if store.supports_ttl else None) or {}
    if memories and config.get("refresh_on_read"):
        await _abatch(
            store, [GetOp(each.namespace, each.key, refresh_ttl=True) for each in memories]
        )


def _require_index(store: BaseStore) -> None:
    """Refuse a store that says of itself that it has no index; it would ignore the query."""
    if hasattr(store, "index_config") and not store.index_config:  # pyright: ignore[reportAttributeAccessIssue]
        raise _no_index(store)


def _require_scores(store: BaseStore, lanes: Sequence[Lane]) -> None:
    """Refuse what a store returns unranked: it would be an arbitrary choice."""
    texts = [each for lane in lanes for each in (lane.nearest, lane.safe)]
    found = [memory for each in texts for group in each.values() for memory in group]
    if found and all(memory.score is None for memory in found):
        raise _no_index(store)


def _no_index(store: BaseStore) -> StoreConfigurationError:
    msg = (
        f"the store {type(store).__name__} cannot rank memories by similarity: it has no index, or "
        "these items were put without one. Give it one (`index=...`), use "
        "`ChromaStore.local(path)`, or recall the latest memories with `Recall(order='latest')`"
    )
    return StoreConfigurationError(msg, code=ErrorCode.STORE_INDEX)
