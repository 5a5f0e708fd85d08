"""What follows from the relation of a candidate to the memories near it. Pure.

`RECONCILE_TABLE` gives one action for a candidate and one near memory: by their relation, by whose
words they are, by which of the two is later, and by how sure that is. `combine` joins the actions
for all near memories.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product
from types import MappingProxyType
from typing import Literal, get_args

from memguard.methods.reconcile.config import ConflictMode
from memguard.schema.decision import Inconclusive
from memguard.schema.memory import CandidateMemory, SaidBy
from memguard.schema.relations import Assertion, Neighbour, Relation, RelationVerdict

METHOD = "reconcile"

RelationKey = Literal[
    "duplicate", "refines", "supersedes", "contradicts", "coexists", "inconclusive"
]
"""A relation as the table knows it; `inconclusive` where the reader gave none."""

PairAuthors = Literal["same", "candidate_other", "stored_other"]
"""Whose words the two are.

* `same`: both are a user's own words, and no two different speakers are known.
* `candidate_other`: the candidate is another author's, such as a document's or a tool's, or of
  another speaker than the memory, or its author is unknown.
* `stored_other`: the candidate is a user's, and the memory is another author's, such as a
  document's, or its author is unknown.
"""

LaterSide = Literal["candidate", "stored", "unknown"]
"""Which of the two tells of the later time."""

Sureness = Literal["certain", "uncertain", "qualified"]
"""How sure the relation is.

* `certain`: a clear sign in the words supports it.
* `uncertain`: nothing more than the reader's opinion does.
* `qualified`: the candidate is said as temporary or doubtful, or lies ahead, so it changes nothing,
  whatever the reader is certain of.
"""

ReconcileAction = Literal[
    "store", "supersede", "store_as_past", "store_detail", "confirm", "conflict"
]
"""What follows for the candidate and one near memory.

* `store`: the candidate is stored; the memory stays as it is.
* `supersede`: the candidate is stored, and the memory is marked as superseded by it.
* `store_as_past`: the candidate is stored as superseded by the memory, which is the later one.
* `store_detail`: the candidate is stored as a detail of the memory.
* `confirm`: the candidate is not stored; the memory is confirmed, and gains its turns.
* `conflict`: both stay current, each marked as in conflict with the other; or the candidate is held
  in quarantine, by the setting `on_conflict`.
"""

OWN_WORDS: frozenset[SaidBy] = frozenset({"user", "mixed"})
"""`mixed` is a user's answer together with the question, or a user's turn among others."""

EVENT_SLACK = timedelta(days=31)
"""How much earlier than a statement an event may be dated without being older than it. Words such
as "this month" are dated at the beginning of their period."""


@dataclass(frozen=True, kw_only=True)
class ReconcileRow:
    """One row of the table; an empty condition accepts every value."""

    id: str
    """Names the row on receipts."""
    relation: tuple[RelationKey, ...]
    authors: tuple[PairAuthors, ...] = ()
    later: tuple[LaterSide, ...] = ()
    sureness: tuple[Sureness, ...] = ()
    action: ReconcileAction
    why: str
    """The reason, for a person."""

    def accepts(self, key: "ReconcileKey") -> bool:
        """Whether the row is for this key."""
        conditions = (self.relation, self.authors, self.later, self.sureness)
        return all(
            value in accepted for value, accepted in zip(key, conditions, strict=True) if accepted
        )


ReconcileKey = tuple[RelationKey, PairAuthors, LaterSide, Sureness]
"""What the table is asked."""

_CHANGING: tuple[RelationKey, ...] = ("duplicate", "refines", "supersedes", "contradicts")

RECONCILE_TABLE: tuple[ReconcileRow, ...] = (
    ReconcileRow(
        id="coexists",
        relation=("coexists",),
        action="store",
        why="both hold, or they have nothing to do with each other",
    ),
    ReconcileRow(
        id="inconclusive",
        relation=("inconclusive",),
        action="store",
        why="no usable relation: nothing changes, and the receipt says so",
    ),
    ReconcileRow(
        id="other-author",
        relation=_CHANGING,
        authors=("candidate_other",),
        action="store",
        why="what another author says changes no memory",
    ),
    ReconcileRow(
        id="qualified",
        relation=_CHANGING,
        authors=("same", "stored_other"),
        sureness=("qualified",),
        action="store",
        why="an exception, a doubt or a plan changes no memory",
    ),
    ReconcileRow(
        id="beside-other-author",
        relation=("duplicate", "refines"),
        authors=("stored_other",),
        sureness=("certain", "uncertain"),
        action="store",
        why="the user's words stand alongside those of another author",
    ),
    ReconcileRow(
        id="corrects-other-author",
        relation=("supersedes", "contradicts"),
        authors=("stored_other",),
        later=("candidate",),
        sureness=("certain",),
        action="supersede",
        why="the user corrects what another author said before",
    ),
    ReconcileRow(
        id="after-the-user",
        relation=("supersedes", "contradicts"),
        authors=("stored_other",),
        later=("stored",),
        sureness=("certain",),
        action="store",
        why="what another author said later takes nothing from the user's words",
    ),
    ReconcileRow(
        id="disputes-other-author",
        relation=("supersedes", "contradicts"),
        authors=("stored_other",),
        later=("unknown",),
        sureness=("certain",),
        action="conflict",
        why="the user and another author differ, and nothing tells which is later",
    ),
    ReconcileRow(
        id="may-correct-other-author",
        relation=("supersedes", "contradicts"),
        authors=("stored_other",),
        sureness=("uncertain",),
        action="conflict",
        why="the user and another author may differ",
    ),
    ReconcileRow(
        id="repeats",
        relation=("duplicate",),
        authors=("same",),
        sureness=("certain",),
        action="confirm",
        why="the same was said again",
    ),
    ReconcileRow(
        id="may-repeat",
        relation=("duplicate",),
        authors=("same",),
        sureness=("uncertain",),
        action="store",
        why="it may say something else, which would be lost",
    ),
    ReconcileRow(
        id="adds-detail",
        relation=("refines",),
        authors=("same",),
        sureness=("certain",),
        action="store_detail",
        why="it says the same with a detail more, and both hold",
    ),
    ReconcileRow(
        id="may-add-detail",
        relation=("refines",),
        authors=("same",),
        sureness=("uncertain",),
        action="store",
        why="both hold; whether one is a detail of the other is not clear",
    ),
    ReconcileRow(
        id="replaces",
        relation=("supersedes",),
        authors=("same",),
        later=("candidate",),
        sureness=("certain",),
        action="supersede",
        why="the same speaker gives the later value",
    ),
    ReconcileRow(
        id="replaced-already",
        relation=("supersedes",),
        authors=("same",),
        later=("stored",),
        sureness=("certain",),
        action="store_as_past",
        why="the memory is the later one",
    ),
    ReconcileRow(
        id="order-unknown",
        relation=("supersedes",),
        authors=("same",),
        later=("unknown",),
        sureness=("certain",),
        action="conflict",
        why="one replaces the other, and nothing tells which is later",
    ),
    ReconcileRow(
        id="may-replace",
        relation=("supersedes",),
        authors=("same",),
        sureness=("uncertain",),
        action="conflict",
        why="one may replace the other, without a clear sign",
    ),
    ReconcileRow(
        id="contradicts",
        relation=("contradicts",),
        authors=("same",),
        sureness=("certain", "uncertain"),
        action="conflict",
        why="the two cannot both hold, and nothing tells which does",
    ),
)
"""Every row; each key has exactly one."""


def all_keys() -> tuple[ReconcileKey, ...]:
    """Every key of the table."""
    domains = (get_args(kind) for kind in (RelationKey, PairAuthors, LaterSide, Sureness))
    return tuple(product(*domains))


_ROWS: Mapping[ReconcileKey, ReconcileRow] = MappingProxyType(
    {key: row for key in all_keys() for row in RECONCILE_TABLE if row.accepts(key)}
)


def row_for(key: ReconcileKey) -> ReconcileRow:
    """The row of the table for a key."""
    return _ROWS[key]


def print_policy() -> str:
    """The table in Markdown, as the documentation shows it."""
    lines = [
        "| row | relation | whose words | later | sure | action | because |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in RECONCILE_TABLE:
        conditions = (row.relation, row.authors, row.later, row.sureness)
        cells = [", ".join(f"`{value}`" for value in values) or "any" for values in conditions]
        lines.append(f"| `{row.id}` | {' | '.join(cells)} | `{row.action}` | {row.why} |")
    return "\n".join(lines)


# -- the columns ------------------------------------------------------------------------------


def authors_of(candidate: CandidateMemory, neighbour: Neighbour) -> PairAuthors:
    """Whose words a candidate and a near memory are."""
    if candidate.said_by not in OWN_WORDS:
        return "candidate_other"
    origin = neighbour.provenance
    if origin is None or origin.said_by not in OWN_WORDS:
        return "stored_other"
    speakers = {name.casefold().strip() for name in (candidate.speaker, origin.speaker) if name}
    # Of two named speakers, neither speaks for the other.
    return "candidate_other" if len(speakers) > 1 else "same"


@dataclass(frozen=True, kw_only=True, slots=True)
class SpokenAt:
    """What is known of the time of a candidate or a memory."""

    event_at: datetime | None = None
    """When what it says happened or began, if its words tell."""
    said_at: datetime | None = None
    """When it was said, or said again; `None` if no turn has a time."""
    assumed_at: datetime | None = None
    """What counts instead: the time of the run, or the time of storing."""
    position: int | None = None
    """The place of its latest turn in the conversation that is being read."""

    @property
    def at(self) -> datetime | None:
        """The time at which it was said, as far as that is known or assumed."""
        return self.said_at or self.assumed_at


def later_side(candidate: SpokenAt, stored: SpokenAt) -> LaterSide:
    """Which of the two tells of the later time.

    The first that decides: the times of both events; the times at which both were said; the order
    of their turns in one conversation; assumed times. An event that is dated more than
    `EVENT_SLACK` before the other statement contradicts the order of saying, so nothing is known.
    """
    by_event = _compare(candidate.event_at, stored.event_at)
    if by_event is not None:
        return by_event
    by_saying = _order_of_saying(candidate, stored)
    by_one_event = _order_by_one_event(candidate, stored)
    if by_one_event is None or by_one_event == by_saying:
        return by_saying
    # An assumed time is that of an import or of the store: the event says more than that.
    dated = candidate if candidate.event_at is not None else stored
    is_assumed = dated.said_at is None and dated.position is None
    return by_one_event if is_assumed or by_saying == "unknown" else "unknown"


def _compare(candidate: datetime | None, stored: datetime | None) -> LaterSide | None:
    if candidate is None or stored is None or candidate == stored:
        return None
    return "candidate" if candidate > stored else "stored"


def _order_of_saying(candidate: SpokenAt, stored: SpokenAt) -> LaterSide:
    by_time = _compare(candidate.said_at, stored.said_at)
    if by_time is not None:
        return by_time
    if candidate.position is not None and stored.position is not None:
        # Of two statements in one turn, neither is the later one.
        if candidate.position == stored.position:
            return "unknown"
        return "candidate" if candidate.position > stored.position else "stored"
    return _compare(candidate.at, stored.at) or "unknown"


def _order_by_one_event(candidate: SpokenAt, stored: SpokenAt) -> LaterSide | None:
    """The order if only one of the two has an event, well before the other statement."""
    event, other = candidate.event_at, stored.at
    if event is not None and stored.event_at is None:
        return "stored" if other is not None and event + EVENT_SLACK < other else None
    event, other = stored.event_at, candidate.at
    if event is not None and candidate.event_at is None:
        return "candidate" if other is not None and event + EVENT_SLACK < other else None
    return None


_AHEAD = timedelta(days=1)
"""How far ahead an event may be without being a plan: time zones differ by up to 26 hours, and a
date without an hour is its beginning."""


def sureness_of(verdict: RelationVerdict, *, assertion: Assertion, spoken: SpokenAt) -> Sureness:
    """How sure a relation is, as the table takes it.

    Args:
        verdict: The reader's verdict.
        assertion: How the candidate is said.
        spoken: The times of the candidate.
    """
    is_ahead = (
        spoken.event_at is not None
        and spoken.at is not None
        and spoken.event_at > spoken.at + _AHEAD
    )
    if assertion != "plain" or is_ahead:
        return "qualified"
    return "certain" if verdict.certain else "uncertain"


def relation_key(relation: Relation | Inconclusive) -> RelationKey:
    """The relation as the table takes it."""
    return "inconclusive" if isinstance(relation, Inconclusive) else relation


# -- all near memories together ---------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class NeighbourRuling:
    """What the table says about the candidate and one near memory."""

    neighbour: Neighbour
    """The memory."""
    verdict: RelationVerdict
    """The reader's verdict."""
    authors: PairAuthors
    """Whose words the two are."""
    later: LaterSide
    """Which of the two tells of the later time."""
    sureness: Sureness
    """How sure the relation is."""
    row: str
    """The row that decided."""
    action: ReconcileAction
    """What follows."""
    spoken: SpokenAt
    """The times of the memory."""


def rule_on_neighbour(
    candidate: CandidateMemory,
    neighbour: Neighbour,
    verdict: RelationVerdict,
    *,
    assertion: Assertion,
    times: tuple[SpokenAt, SpokenAt],
) -> NeighbourRuling:
    """Apply the table to a candidate and one near memory.

    Args:
        candidate: The candidate.
        neighbour: The memory.
        verdict: The relation between them.
        assertion: How the candidate is said.
        times: Those of the candidate, and those of the memory.
    """
    authors = authors_of(candidate, neighbour)
    later = later_side(*times)
    sureness = sureness_of(verdict, assertion=assertion, spoken=times[0])
    row = row_for((relation_key(verdict.relation), authors, later, sureness))
    return NeighbourRuling(
        neighbour=neighbour,
        verdict=verdict,
        authors=authors,
        later=later,
        sureness=sureness,
        row=row.id,
        action=row.action,
        spoken=times[1],
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class ReconcilePlan:
    """What happens to the candidate and to the memories near it."""

    outcome: Literal["store", "confirm", "repeat", "hold"]
    """Whether the candidate is stored, confirms a memory, repeats one that was replaced since, or
    is held in quarantine."""
    confirmed: NeighbourRuling | None = None
    """The memory that it confirms or repeats."""
    successor: NeighbourRuling | None = None
    """The later memory that has replaced the candidate already."""
    superseded: tuple[NeighbourRuling, ...] = ()
    """The memories that it replaces; or that the confirmed memory replaces."""
    detail_of: NeighbourRuling | None = None
    """The memory of which it is a detail."""
    conflicts: tuple[NeighbourRuling, ...] = ()
    """The memories that it is in conflict with."""


def combine(
    rulings: Sequence[NeighbourRuling], *, on_conflict: ConflictMode, confirms: bool = True
) -> ReconcilePlan:
    """Join what the table says about all near memories.

    1. A candidate that confirms a memory is not stored. What it replaces in addition is replaced by
       the confirmed memory. It conflicts with nothing that the confirmed memory does not.
    2. A candidate that was replaced already is stored as superseded by the earliest of the later
       memories. It takes the place between these and the earlier ones, which it replaces. As a
       memory of the past it conflicts with nothing.
    3. Otherwise it replaces all memories that it replaces, is a detail of the nearest one that it
       is a detail of, and conflicts with all that it conflicts with; or it is held for a person,
       and then replaces nothing.

    Args:
        rulings: One per near memory, nearest first. Those on memories that are no longer current
            only give a candidate of the past its place.
        on_conflict: The setting.
        confirms: Whether a duplicate confirms a memory, or is stored.
    """
    current = [ruling for ruling in rulings if ruling.neighbour.lifecycle.is_current]
    past = [ruling for ruling in rulings if not ruling.neighbour.lifecycle.is_current]
    repeated = _first(current, "confirm") if confirms else None
    superseded = tuple(ruling for ruling in current if ruling.action == "supersede")
    if repeated is not None:
        return ReconcilePlan(outcome="confirm", confirmed=repeated, superseded=superseded)
    if any(ruling.action == "store_as_past" for ruling in current):
        return _plan_past(current, past)
    conflicts = tuple(ruling for ruling in current if ruling.action == "conflict")
    if conflicts and on_conflict == "hold":
        return ReconcilePlan(outcome="hold", conflicts=conflicts)
    return ReconcilePlan(
        outcome="store",
        superseded=superseded,
        detail_of=_first(current, "store_detail"),
        conflicts=conflicts,
    )


def _first(rulings: Sequence[NeighbourRuling], action: ReconcileAction) -> NeighbourRuling | None:
    return next((ruling for ruling in rulings if ruling.action == action), None)


def _plan_past(
    current: Sequence[NeighbourRuling], past: Sequence[NeighbourRuling]
) -> ReconcilePlan:
    """The place of a candidate that a later memory has replaced already."""
    repeated = _first(past, "confirm")
    if repeated is not None:
        return ReconcilePlan(outcome="repeat", confirmed=repeated)
    later = [ruling for ruling in (*current, *past) if ruling.action == "store_as_past"]
    # The earliest, so that the chain is the same in whatever order its memories arrive.
    successor = _earliest(later)
    earlier = [ruling for ruling in past if ruling.action == "supersede"]
    displaced = [
        ruling
        for ruling in earlier
        if ruling.neighbour.lifecycle.superseded_by == successor.neighbour.key
    ]
    replaced = [ruling for ruling in current if ruling.action == "supersede"]
    return ReconcilePlan(outcome="store", successor=successor, superseded=(*replaced, *displaced))


def _earliest(rulings: Sequence[NeighbourRuling]) -> NeighbourRuling:
    # In the order of their keys, so that the choice is the same in whatever order they come.
    first, *others = sorted(rulings, key=lambda ruling: ruling.neighbour.key)
    for ruling in others:
        # Compared as two memories are, because the time of storing may say less than a turn.
        if later_side(ruling.spoken, first.spoken) == "stored":
            first = ruling
    return first
