"""Recall: which memories a read looks at, from any LangGraph store.

Every namespace is searched for the query, page by page, and in addition for safety constraints,
because one that is far from the query in meaning may still limit the answer. `recall` joins the
searches: the nearest texts first, then further safety constraints, then copies of the same texts.
`memory_of` reads an item of a store, whoever wrote it, as a memory.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

from langgraph.store.base import BaseStore, GetOp, Item, Op, SearchItem, SearchOp
from pydantic import AliasChoices, Field, TypeAdapter, ValidationError

from memguard.errors import ErrorCode, MemguardError, StoreConfigurationError, StoreError
from memguard.instructions import find_instruction
from memguard.local.safety import looks_like_safety
from memguard.methods.adjudication.recalled_units import safety_sentences
from memguard.portal import call_store
from memguard.schema.base import Frozen, Namespace, is_blank
from memguard.schema.memory import Lifecycle, Moment, Provenance, same_text_form
from memguard.schema.read import Recall, RecalledMemory

SAFETY_QUERIES = (
    "allergy, food intolerance, medication, illness, pregnancy",
    "disability, wheelchair, hearing or sight loss, accessibility",
    "alergia, Allergie, аллергия, 过敏, アレルギー, 알레르기",
    "حساسية, एलर्जी, แพ้อาหาร, dị ứng, alerji, אלרגיה, αλλεργία",
)
"""What is searched for safety constraints; a match is used only if its own wording confirms it.

Of 60 memories of PersistBench that are such by their wording, one list of these words had 49 among
its 20 nearest in a store with 200 other memories, and 38 with 1,000; the first three have 60 and 52
(built-in embedder, each constraint ranked by itself). The lists were chosen with these figures in
view, so expect less of other memories.
"""

DEFAULT_SAFETY_K = 5
"""Safety constraints that are recalled in addition to the nearest memories."""

MAX_SAFETY_ITEMS = 400
"""Memories of a namespace that are examined for safety constraints. Pages are read whole, so in
practice it is 420. Beyond that they would cost more than the rest of the read."""

_MIN_PAGE = 20
_MAX_PAGE = 1_000
# Growing pages keep the round trips to the store few where many texts are needed.
_PAGE_GROWTH = 4
"""How many times as long the next page is."""

_ALL = 2**31
"""More texts than a store holds: no limit."""
_QUERY_CHARS = 4_000
"""Characters of a query, at its beginning and at its end, that are searched by. Embedding models
read no more, and some refuse more."""

_MAX_COPIES = 5
"""Copies of one text that go onto the receipt; the rest are only counted."""

_MORE_COPIES = "{} more copies of the same texts were left out"
_MORE_SAFETY = "{} more memories read as safety constraints; raise `safety_k` to recall them"
_SEARCH_ENDED = (
    "a search for safety constraints ended after {} memories, the last of them still such"
)
_OLDEST = datetime.min.replace(tzinfo=UTC)


class Recalled(Frozen):
    """The result of recall."""

    memories: tuple[RecalledMemory, ...] = ()
    """The nearest, then additional safety constraints, then superseded ones where the query may be
    about the past, then copies of the same text. An additional
    constraint has a score only if its similarity to the query is known."""
    namespaces: tuple[Namespace, ...] = ()
    """The namespaces that were searched."""
    superseded: int = 0
    """Records left out because they are marked as superseded."""
    outside: int = 0
    """Records left out because their source is outside the time window."""
    below: int = 0
    """Records left out because they scored less than `min_score`."""
    textless: int = 0
    """Items left out because they have no text."""
    additional: int = Field(default=0, validation_alias=AliasChoices("additional", "beside"))
    """Safety constraints that were not among the nearest."""
    past: int = 0
    """Superseded records among the memories, because the query may be about the past."""
    notes: tuple[str, ...] = ()
    """Notes for a reader."""


Texts = dict[str, list[RecalledMemory]]
"""Memories by the form of their text."""

TEXT_FIELDS = ("content", "text", "memory")
"""Fields that memory stores use for a memory's text; memguard and langmem use the first."""

_SUPERSEDED_MARKS = ("superseded_by", "superseded_at", "ended_as")
"""Fields that mark a record as superseded, whatever their value."""

_ENDS = ("valid_until", "invalid_at")
"""Fields with the time from which a record is no longer valid."""

_MEMGUARD = "memguard"
_MOMENT: TypeAdapter[datetime | None] = TypeAdapter(Moment)


@dataclass
class RecallSearch:
    """One search in one namespace, page by page: for the query, safety constraints, or both.

    Args:
        namespace: The namespace; items below it are left out.
        query: The text to search by; `None` lists everything.
        max_texts: Distinct texts after which it ends.
        min_items: Items that the first page should have at least.
        for_query: Whether it looks for the memories nearest to the query.
        for_safety: Whether it looks for safety constraints.
    """

    namespace: Namespace
    query: str | None
    max_texts: int
    min_items: int
    for_query: bool = False
    for_safety: bool = False
    offset: int = 0
    limit: int = 0
    examined: int = 0
    """Items of the namespace itself that were examined."""
    done: bool = False
    stopped_early: bool = False
    """Whether it ended while its results were still about safety."""
    nearest: Texts = field(default_factory=Texts)
    past: Texts = field(default_factory=Texts)
    """What a later record superseded, where the query may be about the past."""
    safe: Texts = field(default_factory=Texts)

    def __post_init__(self) -> None:
        """Ask for more than is needed: a store also returns items below the namespace."""
        self.limit = min(_MAX_PAGE, max(_MIN_PAGE, self.min_items))

    @property
    def op(self) -> SearchOp:
        """The next page."""
        # Examining an item is not reading it: the TTL is refreshed for the chosen memories only.
        return SearchOp(
            self.namespace,
            limit=self.limit,
            offset=self.offset,
            query=self.query,
            refresh_ttl=False,
        )

    @property
    def full(self) -> bool:
        """Whether there are enough texts."""
        return len(self.nearest if self.for_query else self.safe) >= self.max_texts


async def recall(
    store: BaseStore,
    *,
    query: str,
    namespaces: Sequence[Namespace],
    spec: Recall,
    k: int,
    now: datetime,
    past: bool = False,
) -> Recalled:
    """The memories that a read looks at.

    Args:
        store: Any LangGraph store.
        query: What the user asks; a blank one recalls nothing.
        namespaces: The namespaces to search; nothing above or below them.
        spec: The order, the time window, and what is left out.
        k: How many texts at most, unless the spec says.
        now: The time of the read.
        past: Whether what a later record superseded is recalled in addition, marked as such.

    Raises:
        StoreConfigurationError: If memories are to be ranked by a store without an index.
        StoreError: If the store failed.
    """
    unique = tuple(dict.fromkeys(namespaces))
    spec = with_safety_k(spec, DEFAULT_SAFETY_K)
    if is_blank(query):
        return Recalled(namespaces=unique, notes=("the query is blank: nothing was recalled",))
    ranked, max_texts = spec.order == "similarity", spec.k or k
    if ranked:
        _require_index(store)
    searches = _searches(unique, query=query, spec=spec, max_texts=max_texts)
    counts = Counter[str]()  # items that were left out, by the field of `Recalled`
    while pending := [search for search in searches if not search.done]:
        # One batch for all searches: a store may answer them at once, or in one round trip.
        results = await _abatch(store, [search.op for search in pending])
        pages = cast("list[list[SearchItem]]", results)
        for search, page in zip(pending, pages, strict=True):
            add_page(search, page, spec=spec, now=now, counts=counts, past=past)
    if ranked:
        _require_scores(store, searches)
    result = _choose(searches, max_texts=max_texts, spec=spec)
    await _refresh(store, result.memories)
    return result.model_copy(update={"namespaces": unique, **counts})


def with_safety_k(spec: Recall, safety_k: int) -> Recall:
    """The spec with a number of safety constraints, if it has none of its own."""
    return spec if spec.safety_k is not None else spec.model_copy(update={"safety_k": safety_k})


def _searches(
    namespaces: Sequence[Namespace], *, query: str, spec: Recall, max_texts: int
) -> list[RecallSearch]:
    """The searches of every namespace: for the query, and for safety constraints."""
    if spec.order == "latest":
        # A store lists in its own order, so the latest are known only when all were examined, and
        # with them all that is about safety: one search does both.
        safety = bool(spec.safety_k)
        return [
            RecallSearch(namespace, None, _ALL, _ALL, for_query=True, for_safety=safety)
            for namespace in namespaces
        ]
    text = _searchable(query)
    searches = [
        RecallSearch(namespace, text, max_texts, max_texts, for_query=True)
        for namespace in namespaces
    ]
    if spec.safety_k:
        # Some of the matches may already be among the nearest, and these do not count as
        # additional ones.
        searches += [
            RecallSearch(
                namespace, words, spec.safety_k + max_texts, spec.safety_k, for_safety=True
            )
            for namespace in namespaces
            for words in SAFETY_QUERIES
        ]
    return searches


def add_page(
    search: RecallSearch,
    page: Sequence[SearchItem],
    *,
    spec: Recall,
    now: datetime,
    counts: Counter[str],
    past: bool = False,
) -> None:
    """Add the items of a page to a search, and decide whether another page is needed.

    Args:
        search: The search.
        page: What the store returned.
        spec: The time window, and what is left out.
        now: The time of the read.
        counts: Where items that are left out are counted, by the reason.
        past: Whether what a later record superseded is recalled in addition.
    """
    # A store searches by the prefix of a namespace, so items of deeper namespaces come along.
    items = [item for item in page if tuple(item.namespace) == search.namespace]
    last_match = -1
    for index, item in enumerate(items):
        # The page is there already: what was superseded may stand behind the last text needed.
        if search.for_query and (past or not search.full):
            _add_nearest(search, memory_of(item, now=now), spec=spec, counts=counts, past=past)
        if search.for_safety and looks_like_safety(text_of(item.value)):
            last_match = index
            # Safety constraints count whenever they were said; only superseded ones do not.
            memory = memory_of(item, now=now)
            if memory is not None and _is_current(memory, spec=spec) and _states_safety(memory):
                search.safe.setdefault(same_text_form(memory.text), []).append(memory)
    search.examined += len(items)
    search.offset += search.limit
    exhausted = len(page) < search.limit
    ended = False
    if not search.for_query:
        # Results are ordered by nearness to the safety words: if the second half of a page has no
        # match, the next page will not have one either.
        has_more = last_match >= max(1, len(items)) // 2
        is_enough = search.full or search.examined >= MAX_SAFETY_ITEMS
        # A page with none of the namespace's own items says nothing about the next one.
        ended = is_enough or (search.examined >= _MIN_PAGE and bool(items) and not has_more)
        search.stopped_early = has_more and is_enough and not exhausted
    search.done = exhausted or ended or search.full
    search.limit = min(_MAX_PAGE, search.limit * _PAGE_GROWTH)


def _add_nearest(
    search: RecallSearch,
    memory: RecalledMemory | None,
    *,
    spec: Recall,
    counts: Counter[str],
    past: bool,
) -> None:
    is_over = memory is not None and not _is_current(memory, spec=spec)
    if memory is None:
        counts["textless"] += 1
    # What a person took back, or wrote anew, never was so.
    elif is_over and not (past and memory.lifecycle.ended_as in {None, "superseded"}):
        counts["superseded"] += 1
    elif not _in_window(memory, spec=spec):
        counts["outside"] += 1
    elif memory.score is not None and memory.score < spec.min_score:
        counts["below"] += 1
    elif is_over or not search.full:
        texts = search.past if is_over else search.nearest
        texts.setdefault(same_text_form(memory.text), []).append(memory)


def _is_current(memory: RecalledMemory, *, spec: Recall) -> bool:
    return not (spec.current_only and memory.superseded)


def _states_safety(memory: RecalledMemory) -> bool:
    """Whether a memory that mentions safety states something, apart from instructions."""
    # Planted rules that mention an allergy must not take the room of a real one.
    return find_instruction(memory.text) is None or bool(safety_sentences(memory.text))


def _in_window(memory: RecalledMemory, *, spec: Recall) -> bool:
    at = memory.said_at
    # A memory of unknown time is outside of every window.
    if at is None:
        return spec.since is None and spec.until is None
    return (spec.since is None or at >= spec.since) and (spec.until is None or at < spec.until)


def _choose(searches: Sequence[RecallSearch], *, max_texts: int, spec: Recall) -> Recalled:
    """The nearest of all namespaces, then safety constraints, then past ones, then copies."""
    ranked = _groups(search.nearest for search in searches)
    nearest = ranked[:max_texts]
    nearest_forms = {same_text_form(group[0].text) for group in nearest}
    safe = [
        group
        for group in _groups(search.safe for search in searches)
        if same_text_form(group[0].text) not in nearest_forms
    ]
    additional = [_with_nearness(group, ranked) for group in safe[: spec.safety_k]]
    shown = nearest_forms | {same_text_form(group[0].text) for group in additional}
    # In addition to the current ones, none of which they may displace.
    past = [
        group
        for group in _groups(search.past for search in searches)
        if same_text_form(group[0].text) not in shown
    ][:max_texts]
    groups = [*nearest, *additional, *past]
    # After all texts: copies add nothing to an answer, but the receipt names every record.
    copies = [copy for group in groups for copy in group[1 : 1 + _MAX_COPIES]]
    omitted_copies = sum(max(0, len(group) - 1 - _MAX_COPIES) for group in groups)
    omitted_safe = len(safe) - len(additional)
    examined = max((search.examined for search in searches if search.stopped_early), default=0)
    counts = (
        (omitted_copies, _MORE_COPIES),
        (omitted_safe, _MORE_SAFETY),
        (examined, _SEARCH_ENDED),
    )
    return Recalled(
        memories=tuple(group[0] for group in groups) + tuple(copies),
        additional=len(additional),
        past=len(past),
        notes=tuple(note.format(count) for count, note in counts if count),
    )


def _with_nearness(
    group: Sequence[RecalledMemory], ranked: Sequence[Sequence[RecalledMemory]]
) -> list[RecalledMemory]:
    """The group with its nearness to the query, where that is known.

    The scores that it came with are its nearness to `SAFETY_QUERIES`, which would mislead.
    """
    scores = {memory.id: memory.score for memories in ranked for memory in memories}
    return [memory.model_copy(update={"score": scores.get(memory.id)}) for memory in group]


def _groups(results: Iterable[Texts]) -> list[list[RecalledMemory]]:
    """The results of several searches, one group per text, the best of each group first."""
    groups: Texts = {}
    for texts in results:
        for form, memories in texts.items():
            groups.setdefault(form, []).extend(memories)
    return sorted(map(_ranked, groups.values()), key=lambda group: _rank(group[0]))


def _ranked(group: Sequence[RecalledMemory]) -> list[RecalledMemory]:
    """The best first; a memory from several searches once, with the best of its scores."""
    by_id: dict[str, RecalledMemory] = {}
    for memory in sorted(group, key=_rank):
        by_id.setdefault(memory.id, memory)
    return list(by_id.values())


def _rank(memory: RecalledMemory) -> tuple[float, float, Namespace, str]:
    """Nearest first, unranked last; then the latest; then by key, so that the order is stable."""
    score = -1.0 if memory.score is None else memory.score
    age = -(memory.said_at or _OLDEST).timestamp()
    return (-score, age, memory.namespace, memory.key)


def _searchable(query: str) -> str:
    if len(query) <= 2 * _QUERY_CHARS:
        return query
    return f"{query[:_QUERY_CHARS]} {query[-_QUERY_CHARS:]}"


async def _abatch(store: BaseStore, ops: Sequence[Op]) -> list[object]:
    try:
        return await call_store(store, ops)
    except MemguardError:
        raise
    except Exception as error:  # any store may raise anything
        msg = f"the memory store failed: {type(error).__name__}: {error}; nothing was recalled"
        raise StoreError(msg, code=ErrorCode.STORE_FAILED) from error


async def _refresh(store: BaseStore, memories: Sequence[RecalledMemory]) -> None:
    """Refresh the TTL of the memories that were read, where the store is configured to do so."""
    config = (store.ttl_config if store.supports_ttl else None) or {}
    if memories and config.get("refresh_on_read"):
        await _abatch(
            store, [GetOp(memory.namespace, memory.key, refresh_ttl=True) for memory in memories]
        )


def _require_index(store: BaseStore) -> None:
    """Refuse a store that declares that it has no index; it would ignore the query."""
    if hasattr(store, "index_config") and not store.index_config:  # pyright: ignore[reportAttributeAccessIssue]
        raise _no_index(store)


def _require_scores(store: BaseStore, searches: Sequence[RecallSearch]) -> None:
    """Refuse results that a store returns unranked: they would be an arbitrary choice."""
    results = (texts for search in searches for texts in (search.nearest, search.safe))
    scores = [memory.score for texts in results for group in texts.values() for memory in group]
    # One score is enough: a store may hold items with and without an index.
    if scores and all(score is None for score in scores):
        raise _no_index(store)


def _no_index(store: BaseStore) -> StoreConfigurationError:
    msg = (
        f"the store {type(store).__name__} cannot rank memories by similarity: it has no index, or "
        "these items were put without one. Give it one, for example `index={'dims': 384, 'embed': "
        "memguard.local.LocalEmbeddings()}`, use `ChromaStore.local(path)`, or recall the latest "
        "memories with `Recall(order='latest')`"
    )
    return StoreConfigurationError(msg, code=ErrorCode.STORE_INDEX)


# Stores that memguard did not write are read as well, so the shape of a value is not known.
def text_of(value: Mapping[str, Any]) -> str:
    """The memory's text: a text field, langmem's nested content, else the value as JSON."""
    for name in TEXT_FIELDS:
        text = value.get(name)
        if isinstance(text, Mapping):
            inner = cast("Mapping[str, Any]", text)
            text = inner.get("content", json.dumps(inner, ensure_ascii=False, default=str))
        if isinstance(text, str) and not is_blank(text):
            return text
    rest = {key: entry for key, entry in value.items() if key not in {_MEMGUARD, *TEXT_FIELDS}}
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
        lifecycle=_lifecycle(record),
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


def _lifecycle(record: Mapping[str, Any]) -> Lifecycle:
    """What became of it, as far as this version can read it, field by field."""
    fields = {name: record[name] for name in Lifecycle.model_fields if record.get(name)}
    try:
        return Lifecycle.model_validate(fields)
    except ValidationError:
        pass
    # One field that cannot be read must not hide that a record was taken back.
    readable: dict[str, Any] = {}
    for name, value in fields.items():
        try:
            Lifecycle.model_validate({name: value})
        except ValidationError:
            continue
        readable[name] = value
    return Lifecycle.model_validate(readable)


def _moment(value: object) -> datetime | None:
    """A time in any format that the record may use; what cannot be read counts as unknown."""
    if value is None:
        return None
    try:
        return _MOMENT.validate_python(value)
    except ValidationError:
        return None
