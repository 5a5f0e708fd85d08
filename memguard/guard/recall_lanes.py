"""One search of a read in one namespace, page by page, and what of it is kept."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from langgraph.store.base import SearchItem, SearchOp

from memguard.guard.recall_items import memory_of, text_of
from memguard.policy.cues import looks_like_safety
from memguard.policy.dedupe import same_text_form
from memguard.schema.base import Namespace
from memguard.schema.read import RecalledMemory
from memguard.schema.recall import Recall

MOST_FOR_SAFETY = 400
"""Memories of a namespace that are looked at for safety constraints; with the pages below, what is
in use is 420. Beyond that they would cost more than the rest of the read."""

_LEAST_PAGE = 20
_MOST_PAGE = 1_000
_WIDER = 4
"""How many times as long the next page is."""

Texts = dict[str, list[RecalledMemory]]
"""Memories by the form of their text."""


@dataclass
class Counts:
    """What was looked at and left out."""

    superseded: int = 0
    outside: int = 0
    below: int = 0
    textless: int = 0


@dataclass
class Lane:
    """One search, which may look for those nearest to the query, for safety constraints, or both.

    Args:
        namespace: Where; what lies below it is left out.
        query: What is searched by; `None` lists everything.
        want: Texts that are enough.
        page: Items that the first page should hold at least.
        for_query: Whether it looks for what answers the query.
        for_safety: Whether it looks for safety constraints.
    """

    namespace: Namespace
    query: str | None
    want: int
    page: int
    for_query: bool = False
    for_safety: bool = False
    offset: int = 0
    limit: int = 0
    inside: int = 0
    """Items of the namespace itself that were looked at."""
    done: bool = False
    cut: bool = False
    """Whether it ended while what came was still about safety."""
    nearest: Texts = field(default_factory=Texts)
    safe: Texts = field(default_factory=Texts)

    def __post_init__(self) -> None:
        """Ask for some more than wanted: what lies below the namespace comes along."""
        self.limit = min(_MOST_PAGE, max(_LEAST_PAGE, self.page))

    @property
    def op(self) -> SearchOp:
        """The next page."""
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
        """Whether there are as many texts as wanted."""
        return len(self.nearest if self.for_query else self.safe) >= self.want


def take(
    lane: Lane,
    page: Sequence[SearchItem],
    *,
    spec: Recall,
    now: datetime,
    counts: Counts,
) -> None:
    """Keep what belongs here, and say whether another page is needed."""
    own = [item for item in page if tuple(item.namespace) == lane.namespace]
    last_cue = -1
    for place, item in enumerate(own):
        if lane.for_query and not lane.full:
            _take_nearest(lane, memory_of(item, now=now), spec=spec, counts=counts)
        if lane.for_safety and looks_like_safety(text_of(item.value)):
            last_cue = place
            # Safety constraints count whenever they were said; only superseded ones do not.
            memory = memory_of(item, now=now)
            if memory is not None and _is_current(memory, spec=spec):
                _keep(lane.safe, memory)
    lane.inside += len(own)
    lane.offset += lane.limit
    exhausted = len(page) < lane.limit
    looked = False
    if not lane.for_query:
        # Those near to their query come first: where the second half of a page holds none, the
        # next page will not either.
        more = last_cue >= max(1, len(own)) // 2
        enough = lane.full or lane.inside >= MOST_FOR_SAFETY
        looked = enough or (lane.inside >= _LEAST_PAGE and not more)
        lane.cut = more and enough and not exhausted
    lane.done = exhausted or looked or lane.full
    lane.limit = min(_MOST_PAGE, lane.limit * _WIDER)


def _take_nearest(
    lane: Lane, memory: RecalledMemory | None, *, spec: Recall, counts: Counts
) -> None:
    if memory is None:
        counts.textless += 1
    elif not _is_current(memory, spec=spec):
        counts.superseded += 1
    elif not _in_window(memory, spec=spec):
        counts.outside += 1
    elif memory.score is not None and memory.score < spec.min_score:
        counts.below += 1
    else:
        _keep(lane.nearest, memory)


def _keep(texts: Texts, memory: RecalledMemory) -> None:
    texts.setdefault(same_text_form(memory.text), []).append(memory)


def _is_current(memory: RecalledMemory, *, spec: Recall) -> bool:
    return not (spec.current_only and memory.superseded)


def _in_window(memory: RecalledMemory, *, spec: Recall) -> bool:
    at = memory.said_at
    if at is None:
        return spec.since is None and spec.until is None
    return (spec.since is None or at >= spec.since) and (spec.until is None or at < spec.until)
