"""The hand-written sets of corrections, look-ups and audiences.

They were written without a look at the rules that they measure. Nobody who changes those rules may
read them; `--failures` exists for the maintainer who decides what to do next.
"""

from datetime import UTC, datetime, time
from pathlib import Path
from typing import Literal, Self, TypeVar, get_args

from pydantic import BaseModel, Field, model_validator

from memguard.schema.base import Frozen
from memguard.schema.decision import Inconclusive
from memguard.schema.memory import Moment, SaidBy, Turn
from memguard.schema.relations import Assertion, Relation

DATA = Path(__file__).with_name("data")
Language = Literal["en", "de", "es", "fr", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
PairSet = Literal["held_out", "second", "third"]
PAIR_SETS: tuple[PairSet, ...] = get_args(PairSet)
NOW = datetime(2026, 4, 1, 12, tzinfo=UTC)
"""The time of every write and read, after all that the sets say."""

MemoryState = Literal["unchanged", "superseded", "confirmed", "conflicting"]
"""What a candidate may make of a stored memory."""
CandidateState = Literal["current", "detail", "conflicting", "superseded", "held", "not_stored"]
"""What may become of a candidate."""
Shown = Literal["certain", "uncertain", "past", "any"]
"""How a memory must be in the prompt."""
Topic = Literal["health", "family", "money", "job_search", "none"]
"""What is sensitive about a memory."""

M = TypeVar("M", bound=BaseModel)


class StoredMemory(Frozen):
    """A memory that is stored before a case begins, with the right relation of the candidate."""

    name: str
    """Its name within the case."""
    text: str
    said_at: Moment
    event_at: Moment = None
    said_by: SaidBy = "user"
    speaker: str = ""
    superseded_by: str = ""
    """The name of the memory that replaced it before."""
    conflicts_with: tuple[str, ...] = ()
    """Names of memories that contradict it."""
    relation: Relation | Inconclusive
    """What an exact reader answers."""
    certain: bool
    """Whether the words show the relation."""
    after: tuple[MemoryState, ...] = Field(min_length=1)
    """The states that are right afterwards; more than one where the policy is free."""


class PolicyCandidate(Frozen):
    """The candidate of a case, with what an exact reader says of it."""

    text: str
    said_at: Moment
    said_by: SaidBy
    speaker: str = ""
    turns: tuple[Turn, ...] = Field(min_length=1)
    turn_ids: tuple[str, ...] = Field(min_length=1)
    assertion: Assertion = "plain"
    event_at: Moment = None
    after: tuple[CandidateState, ...] = Field(min_length=1)
    """The states that are right afterwards."""


class PolicyCase(Frozen):
    """A candidate that meets stored memories, and what must follow."""

    id: str
    kind: str
    languages: tuple[Language, ...] = Field(min_length=1, max_length=2)
    """Those of memories and candidate."""
    memories: tuple[StoredMemory, ...] = Field(min_length=1)
    candidate: PolicyCandidate

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        names = [memory.name for memory in self.memories]
        for memory in self.memories:
            others = {*memory.conflicts_with, memory.superseded_by} - {""}
            if len(set(names)) < len(names) or not others <= set(names) - {memory.name}:
                msg = f"the names in {self.id} do not fit"
                raise ValueError(msg)
        if not set(self.candidate.turn_ids) <= {turn.id for turn in self.candidate.turns}:
            msg = f"the candidate of {self.id} cites a turn that is not there"
            raise ValueError(msg)
        return self

    @property
    def language(self) -> Language:
        """The language of the candidate."""
        return self.languages[-1]

    @property
    def is_stored(self) -> bool | None:
        """Whether the candidate is in the store afterwards; `None` where the policy is free."""
        stored = {state not in ("held", "not_stored") for state in self.candidate.after}
        return stored.pop() if len(stored) == 1 else None

    @property
    def current(self) -> frozenset[str]:
        """Names of the memories that must be current afterwards; `new` is the candidate."""
        names = {
            memory.name
            for memory in self.memories
            if not memory.superseded_by and "superseded" not in memory.after
        }
        ended = {"superseded", "held", "not_stored"} & set(self.candidate.after)
        return frozenset(names if ended else {*names, "new"})


class TextPair(Frozen):
    """A stored memory and a new one, with their relation."""

    id: str
    language: Language
    label: Relation
    trap: bool
    """Whether only a name, a number, a negation, a person or the manner of saying it tells that it
    is no duplicate and replaces nothing."""
    stored: str
    stored_at: Moment
    new: str
    new_at: Moment


class AskedSituation(Frozen):
    """What a request asks for."""

    target: Literal["user", "third_party", "world"]
    mode: Literal["factual", "recommendation", "planning", "support"]
    asks_view: bool
    lookup: Literal["none", "told_before", "past"]


class LookupMemory(Frozen):
    """A memory of a look-up, with what an exact adjudicator says of it."""

    text: str
    said_at: Moment
    said_by: SaidBy
    label: Literal["must", "must_not", "either"]
    """Whether the prompt must contain it."""
    shown: Shown = "any"
    """How it must be in the prompt."""
    superseded_by: int | None = None
    """Index of the memory that replaced it."""
    attributes: dict[str, str]
    """Its attributes as a unit of PS."""
    conflicts_with: tuple[int, ...] = ()
    """Indices of the memories that it contradicts."""


LookupKind = Literal[
    "private_fact",
    "conflict",
    "past",
    "event",
    "own_statement",
    "view",
    "not_lookup",
    "stale",
]


class Lookup(Frozen):
    """A request with stored memories."""

    id: str
    language: Language
    kind: LookupKind
    request: str
    situation: AskedSituation
    memories: tuple[LookupMemory, ...]

    @property
    def is_lookup(self) -> bool:
        """Whether the request looks up what the user told."""
        return self.kind not in ("not_lookup", "stale")


class SensitiveMemory(Frozen):
    """A memory, and what is sensitive about it."""

    id: str
    language: Language
    label: Topic
    text: str


def policy_cases() -> tuple[PolicyCase, ...]:
    """The cases of the whole of reconcile."""
    return _load("policy_cases", PolicyCase)


def pairs(name: PairSet = "held_out") -> tuple[TextPair, ...]:
    """The pairs of a set."""
    return _load(f"pairs_{name}", TextPair)


def lookups() -> tuple[Lookup, ...]:
    """The look-ups, and requests that look like one."""
    return _load("lookups", Lookup)


def audience() -> tuple[SensitiveMemory, ...]:
    """The memories with a sensitive topic, and those that sound like it."""
    return _load("audience", SensitiveMemory)


def _load(name: str, model: type[M]) -> tuple[M, ...]:
    lines = (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(model.model_validate_json(line) for line in lines)


def event_date(at: datetime | None) -> str | None:
    """A time as a reader writes it: a date without an hour."""
    return at.date().isoformat() if at is not None else None


def start_of_day(at: datetime | None) -> datetime | None:
    """The beginning of the day of a time, in UTC."""
    return datetime.combine(at.date(), time(), UTC) if at is not None else None
