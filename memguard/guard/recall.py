"""Recall: which memories of which namespaces a read looks at.

LangGraph's `search` is by prefix, so it brings what lies below a namespace too; only items of
exactly the namespaces asked for are kept, and pages are fetched until there are enough of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, cast

from langgraph.store.base import BaseStore, GetOp, Op, SearchItem, SearchOp

from memguard.errors import ErrorCode, MemguardError, StoreConfigurationError, StoreError
from memguard.guard.recall_items import memory_of, text_of
from memguard.policy.cues import looks_like_safety
from memguard.policy.dedupe import same_text_form
from memguard.schema.base import Namespace, is_blank
from memguard.schema.read import RecalledMemory
from memguard.schema.recall import Recall, Recalled
from memguard.store_calls import call_store

SAFETY_QUERY = "allergy, intolerance, medication, illness, disability, accessibility need"
"""What safety constraints are searched by; what is found is kept only if its wording says so."""

_ALL = 2**31
_LEAST_PAGE = 20
_MOST_PAGE = 1_000
_QUERY_CHARS = 4_000
"""Characters of a query at its beginning and at its end that are searched by; embedding models read
no more, and some refuse more."""

_MOST_COPIES = 5
"""Copies of one text that go onto the receipt; of more, only how many."""

_BLANK = "the query is blank: nothing was recalled"
_OLDEST = datetime.min.replace(tzinfo=UTC)

Finding = Literal["query", "safety"]
"""Why a memory is looked for: as one of those nearest to the query, or as a safety constraint."""


@dataclass
class _Lane:
    """One search in one namespace, page by page."""

    namespace: Namespace
    query: str | None
    want: int
    found_by: Finding
    offset: int = 0
    limit: int = 0
    done: bool = False
    found: dict[str, list[RecalledMemory]] = field(default_factory=dict[str, list[RecalledMemory]])
    inside: int = 0

    def __post_init__(self) -> None:
        """Ask for some more than wanted: what lies below the namespace comes along."""
        self.limit = min(_MOST_PAGE, max(_LEAST_PAGE, self.want))

    @property
    def op(self) -> SearchOp:
        # Not every item that is looked at is read: TTLs are prolonged for those chosen only.
        return SearchOp(
            self.namespace,
            limit=self.limit,
            offset=self.offset,
            query=self.query,
            refresh_ttl=False,
        )

    @property
    def full(self) -> bool:
        return len(self.found) >= self.want

    def keep(self, memory: RecalledMemory) -> None:
        self.found.setdefault(same_text_form(memory.text), []).append(memory)


@dataclass
class _Counts:
    superseded: int = 0
    outside: int = 0
    below: int = 0
    textless: int = 0


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
    text = _searchable(query) if ranked else None
    # A store lists by its own order; the latest are known when all were seen.
    until = want if ranked else _ALL
    lanes = [_Lane(place, text, until, "query") for place in places]
    if spec.safety_k and ranked:
        lanes += [_Lane(place, SAFETY_QUERY, spec.safety_k, "safety") for place in places]
    counts = _Counts()
    while open_lanes := [lane for lane in lanes if not lane.done]:
        pages = await _search(store, [lane.op for lane in open_lanes])
        for lane, page in zip(open_lanes, pages, strict=True):
            _take(lane, page, spec=spec, now=now, counts=counts)
    if ranked:
        _require_scores(store, lanes)
    found = _chosen(lanes, want=want, spec=spec)
    await _prolong(store, found.memories)
    return found.model_copy(update={"namespaces": places, **vars(counts)})


def _take(
    lane: _Lane,
    page: Sequence[SearchItem],
    *,
    spec: Recall,
    now: datetime,
    counts: _Counts,
) -> None:
    """Keep what belongs here, and say whether another page is needed."""
    for item in page:
        if tuple(item.namespace) != lane.namespace or lane.full:
            continue
        lane.inside += 1
        if lane.found_by == "safety" and not looks_like_safety(text_of(item.value)):
            continue
        memory = memory_of(item, now=now)
        if lane.found_by == "safety":
            # Safety constraints count whenever they were said; only superseded ones do not.
            if memory is not None and _is_current(memory, spec=spec):
                lane.keep(memory)
        elif memory is None:
            counts.textless += 1
        elif not _is_current(memory, spec=spec):
            counts.superseded += 1
        elif not _in_window(memory, spec=spec):
            counts.outside += 1
        elif memory.score is not None and memory.score < spec.min_score:
            counts.below += 1
        else:
            lane.keep(memory)
    lane.offset += lane.limit
    exhausted = len(page) < lane.limit
    # Safety constraints are near their query or are not there: one page that holds only other
    # things is enough, unless none of it was of this namespace.
    looked = lane.found_by == "safety" and lane.inside >= _LEAST_PAGE
    lane.done = exhausted or looked or lane.full
    lane.limit = min(_MOST_PAGE, lane.limit * 4)


def _is_current(memory: RecalledMemory, *, spec: Recall) -> bool:
    return not (spec.current_only and memory.superseded)


def _in_window(memory: RecalledMemory, *, spec: Recall) -> bool:
    at = memory.said_at
    if at is None:
        return spec.since is None and spec.until is None
    return (spec.since is None or at >= spec.since) and (spec.until is None or at < spec.until)


def _chosen(lanes: Sequence[_Lane], *, want: int, spec: Recall) -> Recalled:
    """The nearest of all namespaces, then the safety constraints beside them, then copies."""
    nearest = _by_text(lanes, "query")[:want]
    known = {same_text_form(group[0].text) for group in nearest}
    beside = [
        group for group in _by_text(lanes, "safety") if same_text_form(group[0].text) not in known
    ][: spec.safety_k]
    groups = [*nearest, *beside]
    copies = [copy for group in groups for copy in group[1 : 1 + _MOST_COPIES]]
    more = sum(max(0, len(group) - 1 - _MOST_COPIES) for group in groups)
    return Recalled(
        memories=tuple(group[0] for group in groups) + tuple(copies),
        beside=len(beside),
        notes=(f"{more} more copies of the same texts were left out",) if more else (),
    )


def _by_text(lanes: Sequence[_Lane], found_by: Finding) -> list[list[RecalledMemory]]:
    """What was found, one group per text, the best of each group first."""
    groups: dict[str, list[RecalledMemory]] = {}
    for lane in lanes:
        for form, memories in lane.found.items() if lane.found_by == found_by else ():
            groups.setdefault(form, []).extend(memories)
    return sorted(
        (sorted(group, key=_rank) for group in groups.values()), key=lambda g: _rank(g[0])
    )


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


def _require_scores(store: BaseStore, lanes: Sequence[_Lane]) -> None:
    """Refuse what a store returns unranked: it would be an arbitrary choice."""
    found = [memory for lane in lanes for group in lane.found.values() for memory in group]
    if found and all(memory.score is None for memory in found):
        raise _no_index(store)


def _no_index(store: BaseStore) -> StoreConfigurationError:
    msg = (
        f"the store {type(store).__name__} cannot rank memories by similarity: it has no index, or "
        "these items were put without one. Give it one (`index=...`), use "
        "`ChromaStore.local(path)`, or recall the latest memories with `Recall(order='latest')`"
    )
    return StoreConfigurationError(msg, code=ErrorCode.STORE_INDEX)
