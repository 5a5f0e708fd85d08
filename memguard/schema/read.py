"""The values of a read: its input, the methods' settings, the verdicts and the report.

They stand in the order of a read: the query with its evidence, the recalled memories, what an
adjudicator found, what policy decided, and the receipt. A read is adjudicated once; all renderings
follow from its ledger without another model call.
"""

import hashlib
import operator
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Self, cast

from pydantic import (
    AfterValidator,
    AliasChoices,
    Field,
    JsonValue,
    computed_field,
    model_validator,
)

from memguard.redaction import redact
from memguard.schema.audience import Audience, is_private
from memguard.schema.base import Frozen, Namespace, Text, UnitInterval
from memguard.schema.decision import Inconclusive
from memguard.schema.failures import Failure
from memguard.schema.memory import Lifecycle, Moment, Provenance, Turn
from memguard.schema.read_flags import DEGRADED, Flag
from memguard.schema.receipt import PromptStamp, Usage
from memguard.schema.tables import Cell, ReportTable, TableReport
from memguard.schema.units import (
    CHANNEL_OF,
    Channel,
    FactorAttributes,
    Permission,
    Pieces,
    Scheme,
    Unit,
    UnitAttributes,
)

Target = Literal["user", "third_party", "world"]
"""The subject of the answer: the user, another person, or neither."""

Mode = Literal["factual", "recommendation", "planning", "support"]
"""The kind of answer: a fact, a recommendation, a plan, or help with a task."""


Lookup = Literal["none", "told_before", "past"]
"""Whether a request looks up what the user told before. Ours.

* `none`: it does not.
* `told_before`: it asks for something that the user told, as it is now.
* `past`: it asks for what once was so, or for when or how something happened.
"""


class Situation(Frozen):
    """What the query asks for, judged before any unit (arXiv 2610.11188, section 3.2)."""

    target: Target
    """The subject of the answer."""
    mode: Mode
    """The kind of answer."""
    # Not in the paper, but FC's order of rules needs it.
    asks_view: bool = False
    """Whether the query asks for the user's own view. Ours."""
    lookup: Lookup = Field(default="none", exclude_if=lambda it: it == "none")
    """Whether it looks up what the user told before. Ours."""


class Evidence(Frozen):
    """Text that comes with the query: a tool's output, a search result, a document."""

    text: Text
    """The text."""
    source: Text = ""
    """Its source."""
    at: Moment = None
    """Its time."""


class RecalledMemory(Frozen):
    """A stored memory that was found for a query."""

    text: Annotated[Text, AfterValidator(redact)]
    """The memory, with `[password]` and the like in place of secrets."""
    id: str = ""
    """Unique within a read; computed from namespace, key and text if left out."""
    key: str = ""
    """Its key within the namespace."""
    namespace: Namespace = ()
    """Its namespace."""
    said_at: Moment = None
    """The time of its source."""
    score: UnitInterval | None = None
    """Similarity to the query: the cosine, or 0 if that is negative; `None` if not ranked."""
    superseded: bool = False
    """Whether a later record supersedes it."""
    provenance: Provenance | None = None
    """Its origin; `None` for a memory that memguard did not write."""
    lifecycle: Lifecycle = Field(default=Lifecycle(), exclude_if=lambda it: it == Lifecycle())
    """What became of it since it was stored, as its record says."""

    @model_validator(mode="before")
    @classmethod
    def _plain_text(cls, value: Any) -> Any:
        return {"text": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _named(self) -> "RecalledMemory":
        if not self.id:
            # A memory without a key, such as one that the caller passed, is identified by its text.
            name = recalled_id(self.namespace, key=self.key, text=self.text)
            # Pydantic refuses an assignment to a frozen model, even in its own validator.
            object.__setattr__(self, "id", name)
        return self


def recalled_id(namespace: Namespace, *, key: str, text: str = "") -> str:
    """The id of a recalled memory that was not given one; `text` counts only without a key."""
    parts = "\x1f".join((*namespace, "", key, "" if key else text))
    return hashlib.sha256(parts.encode()).hexdigest()[:16]


class ReadCase(Frozen):
    """The input of an adjudicator, apart from the units."""

    query: Text
    """The query."""
    dialogue: tuple[Turn, ...] = ()
    """The turns before it, oldest first, without the evidence."""
    evidence: tuple[Evidence, ...] = ()
    """Text that came with the query."""
    now: Moment = None
    """The time of the query; `None` if unknown."""


Rendering = Literal["channels", "permission_notes", "neutral"]
"""The form of admitted units in the prompt.

* `channels`: sections whose headings name the kind of information and its use (CH).
* `permission_notes`: sections whose headings state what the section may be used for (PN).
* `neutral`: one flat list.
"""


class ReadSpec(Frozen):
    """The common settings of the read-time methods that adjudicate.

    The preset gives the settings that are left out.
    """

    preset: Literal["default", "paper"] = "default"
    """The source of settings that are left out; see `READ_PRESETS`."""
    rendering: Rendering = "channels"
    """The form of admitted units in the prompt."""
    k: Annotated[int, Field(ge=1, le=200)] = 10
    """The number of memories recalled for a query."""
    evidence_conflict: bool = True
    """Whether a unit that the evidence contradicts is denied. Ours."""
    memory_conflict: bool = True
    """Whether of two contradictory units the later one wins; without times, both become uncertain.
    Ours."""
    safety: bool = True
    """Whether allergies, medication and accessibility needs fail open: they are never dropped
    because of doubt, rank or limits. Ours."""
    withhold_instructions: bool = True
    """Whether memory text that instructs the assistant is withheld, whatever the adjudicator says.
    Ours."""
    authorship: bool = True
    """Whether text of another author is at most uncertain context, named as such, and never narrows
    what the user said. Ours."""
    asks_view: bool = True
    """Whether a request for the user's own view is told from other requests. Ours."""
    lookups: bool = True
    """Whether a request that looks up what the user told before gets it, with date and source, and
    one about the past also what no longer holds. Ours."""
    reasons: bool = True
    """Whether the adjudicator gives a reason for each unit, for the receipt. Ours."""
    influence: bool = False
    """Whether the adjudicator says how far each unit should bear on the answer. Only the arm
    `Annotated` of an experiment uses it."""
    merge_paraphrases: bool = True
    """Whether memories that say the same in other words are judged and shown once. Memories that
    differ in a number, a name, a negation, a date or their owner are never merged. Ours."""
    personalization_guard: bool = True
    """Whether current preferences of the user fail open in recommendations and plans for the user.
    Ours."""
    max_units: Annotated[int, Field(ge=1)] | None = 30
    """Maximum number of units in the prompt; constraints come first and are never dropped. `None`
    sets no limit."""
    max_tokens: Annotated[int, Field(ge=1)] | None = 1500
    """Maximum of estimated tokens in the rendered section; constraints are never dropped. `None`
    sets no limit."""
    when_empty: Literal["empty", "line"] = "empty"
    """The section if nothing is admitted: none at all, or one fixed line."""
    deadline: Annotated[float, Field(gt=0)] | None = 20.0
    """Seconds that the model calls of one read may take; the read then continues without them.
    `None` for no limit."""
    repair: bool = True
    """Whether units without a usable row are sent to the model once more."""
    part_tokens: Annotated[int, Field(ge=200)] = 8000
    """Estimated tokens of units in one call; more units are split into several calls."""
    part_units: Annotated[int, Field(ge=1)] = 60
    """Maximum number of units in one call; each takes a row of the answer. A quarter more where
    the calls of a read would not take all units otherwise; the same holds for `part_tokens`."""
    max_calls: Annotated[int, Field(ge=3)] = 8
    """Maximum number of model calls in which units are judged, with repeated and continued ones.
    What does not fit, farthest from the query first, is not judged. The same limit holds for the
    calls in which memories are split into units."""
    prompt_chars: Annotated[int, Field(ge=16_000)] = 30_000
    """Maximum number of characters in a prompt of the adjudicator or the decomposer. Evidence,
    dialogue and long memories are shortened to keep to it, and the report gets a flag."""
    dialogue_turns: Annotated[int, Field(ge=0, le=100)] = 10
    """Turns before the query in the adjudicator's prompt."""
    evidence_chars: Annotated[int, Field(ge=200)] = 24_000
    """Characters of evidence in the adjudicator's prompt. Longer evidence loses its middle, and the
    report gets a flag."""

    @model_validator(mode="before")
    @classmethod
    def _from_preset(cls, value: Any) -> Any:
        # Before validation, so that the fields that the caller set can be told from the defaults.
        if not isinstance(value, Mapping):
            return value
        fields = cast("Mapping[str, Any]", value)
        return {**READ_PRESETS.get(str(fields.get("preset", "default")), {}), **fields}

    @property
    def unasked(self) -> frozenset[str]:
        """Fields of an answer that no rule of these settings reads, so that they are not asked."""
        asked = {
            "asks_view": self.asks_view,
            "lookup": self.lookups,
            "author": self.authorship,
            "reason": self.reasons,
            "safety": self.safety,
            "evidence_conflict": self.evidence_conflict,
            "conflicts_with": self.memory_conflict,
            "influence": self.influence,
        }
        return frozenset(name for name, is_asked in asked.items() if not is_asked)


READ_PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    # What is ours is off, and the paper states no limits.
    "paper": {
        "evidence_conflict": False,
        "memory_conflict": False,
        "safety": False,
        "withhold_instructions": False,
        "authorship": False,
        "merge_paraphrases": False,
        "personalization_guard": False,
        "asks_view": False,
        "lookups": False,
        "reasons": False,
        "deadline": None,
        "max_units": None,
        "max_tokens": None,
    },
}
"""The settings of each preset; `paper` follows arXiv 2610.11188 as far as it is specified."""


class FactorCompiled(ReadSpec):
    """Settings of Factor-Compiled Admission: whole entries, judged by influence factors."""


class PermissionSemantic(ReadSpec):
    """Settings of Permission-Semantic Admission: typed units, each with a permission of its own."""

    local_first: bool = False
    """Whether units that are clearly of another topic are left out before the model is asked, by
    the local relevance model. Safety constraints, other constraints and wishes about the form of
    answers never are. Ours."""


FACTOR_COMPILED_PRESETS: dict[str, FactorCompiled] = {
    "default": FactorCompiled(),
    "paper": FactorCompiled(preset="paper"),
}
"""`paper`: the paper's rules. `default`: with the switches and limits that are ours."""

PERMISSION_SEMANTIC_PRESETS: dict[str, PermissionSemantic] = {
    "default": PermissionSemantic(),
    "paper": PermissionSemantic(preset="paper"),
}
"""The same for PS."""


class Recall(Frozen):
    """Settings of recall, which selects the memories of a read. Ours; the paper states none."""

    k: Annotated[int, Field(ge=1, le=200)] | None = None
    """Number of memories from all namespaces together, in addition to which safety constraints are
    recalled; `None` for the `k` of the admission, which is 10 by default."""
    order: Literal["similarity", "latest"] = "similarity"
    """`similarity`: nearest to the query first, which needs a store with an index. `latest`: newest
    first, which works with every store."""
    since: Moment = None
    """The earliest time of a memory's source, inclusive; `None` for no limit."""
    until: Moment = None
    """The latest time of a memory's source, exclusive; `None` for no limit."""
    current_only: bool = True
    """Leave out records marked as superseded. With `lookups`, the nearest of them are recalled in
    addition where the words of the query may be about the past, and the admission decides."""
    min_score: UnitInterval = 0.0
    """Leave out memories with a lower score; 0 leaves none out."""
    safety_k: Annotated[int, Field(ge=0, le=100)] | None = None
    """Number of safety constraints (allergy, medication, accessibility) recalled in addition to the
    `k` memories; constraints among the `k` do not count. 0 turns this search off. `None` for 5, or
    for 0 where the admission does not protect safety constraints, as in the preset `paper`."""

    @model_validator(mode="after")
    def _window_in_order(self) -> Self:
        if self.since is not None and self.until is not None and self.since >= self.until:
            msg = f"since {self.since} is not before until {self.until}"
            raise ValueError(msg)
        return self


Withheld = Literal["denied", "duplicate", "max_units", "max_tokens"]
"""Why a unit is not in the prompt.

* `denied`: policy denies it.
* `duplicate`: another memory with the same text, or the same in other words, represents it.
* `max_units`, `max_tokens`: permitted, but the section was full; never applies to a constraint.
"""

# The members have different required fields and forbid others, so the first that fits is right.
UnitFinding = Annotated[
    UnitAttributes | FactorAttributes | Inconclusive, Field(union_mode="left_to_right")
]
"""An adjudicator's result for a unit."""


Author = Literal["user", "other"]
"""Whose words a unit has: `other` if they are visibly not the user's, such as a pasted mail."""


class Row(Frozen):
    """One row of an adjudicator's answer. A unit may have several rows, or none."""

    unit_id: str
    """The unit."""
    attributes: UnitFinding
    """The attributes, or why the row is not usable."""
    evidence_conflict: bool = False
    """Whether the evidence of the query contradicts the unit."""
    influence: UnitInterval | None = None
    """How strongly the unit should influence the answer, in [0, 1]; `None` if not stated."""
    author: Author = Field(default="user", exclude_if=lambda it: it == "user")
    """Whose words it has. Counts only where the store does not know. Ours."""
    reason: Text = ""
    """The adjudicator's explanation."""


class Conflict(Frozen):
    """Two units that cannot both be true."""

    first: str
    """A unit's id."""
    second: str
    """Another unit's id."""


class Adjudication(Frozen):
    """An adjudicator's answer for one read."""

    situation: Situation | Inconclusive | None = None
    """What the query asks for; `None` if nothing was recalled, so that nothing was judged."""
    rows: tuple[Row, ...] = ()
    """Rows in any order. If rows of one unit differ, policy applies the stricter one."""
    conflicts: tuple[Conflict, ...] = ()
    """Pairs that cannot both be true."""
    adjudicator: str = ""
    """The name of the model that judged, or `local`."""
    usage: Usage = Usage()
    """Its model calls."""
    prompts: tuple[PromptStamp, ...] = ()
    """The prompts it used."""
    flags: tuple[Flag, ...] = ()
    """Its limits."""
    notes: tuple[str, ...] = ()
    """Ids that do not exist, rows that could not be read, and the like."""
    fails_open: bool = False
    """Whether doubt admits: what nothing speaks against is at least uncertain context. Set by the
    local adjudicator, whose doubt says little."""


class Decomposition(Frozen):
    """The units of some memories, as a decomposer split them."""

    pieces: tuple[Pieces | Inconclusive, ...]
    """One entry per text, in the order of the texts."""
    usage: Usage = Usage()
    """Its model calls."""
    prompts: tuple[PromptStamp, ...] = ()
    """The prompts it used."""
    notes: tuple[str, ...] = ()
    """Notes for the receipt."""


class UnitVerdict(Frozen):
    """One unit with its attributes, its permission, and its position in the prompt."""

    unit: Unit
    """The unit; its text is what a rendering shows."""
    attributes: UnitFinding | None = None
    """The attributes, or why there are none; `None` if the unit was not adjudicated."""
    evidence_conflict: bool = False
    """Whether the evidence contradicts it."""
    conflicts_with: tuple[str, ...] = ()
    """Units that contradict it."""
    influence: UnitInterval | None = None
    """How strongly it should influence the answer, in [0, 1]."""
    reason: Text = ""
    """The adjudicator's explanation."""
    permission: Permission
    """What it may be used for."""
    row: str
    """The row of the permission table, or the other rule, that decided."""
    explanation: Text = ""
    """The row in one sentence for a person."""
    withheld: Withheld | None = None
    """Why it is not in the prompt; `None` if it is."""
    # Under its old name, `place`, as well: the log has receipts of earlier versions.
    position: int | None = Field(default=None, validation_alias=AliasChoices("position", "place"))
    """Its number among the units in the prompt, from 1; `None` if withheld."""

    @property
    def channel(self) -> Channel:
        """The permission as a channel."""
        return CHANNEL_OF[self.permission]

    @property
    def shown(self) -> bool:
        """Whether it is in the prompt."""
        return self.withheld is None


class Ledger(Frozen):
    """The verdicts of one read, from which every rendering follows."""

    scheme: Scheme | Literal["relevance"]
    """Which attributes were judged; `relevance` if only similarity decided."""
    situation: Situation | Inconclusive | None = None
    """What the query asks for; `None` if nothing was adjudicated."""
    verdicts: tuple[UnitVerdict, ...] = ()
    """One per unit, in the order of recall."""

    @property
    def shown(self) -> tuple[UnitVerdict, ...]:
        """The units in the prompt, in their order there."""
        verdicts = (verdict for verdict in self.verdicts if verdict.shown)
        return tuple(sorted(verdicts, key=lambda verdict: verdict.position or 0))

    @property
    def withheld(self) -> tuple[UnitVerdict, ...]:
        """The units that are not in the prompt."""
        return tuple(verdict for verdict in self.verdicts if not verdict.shown)


class LocalFirst(Frozen):
    """What the local relevance model left out of a read before the language model was asked."""

    unit_ids: tuple[str, ...] = ()
    """The units that are clearly of another topic, in the order of recall."""
    units: int = 0
    """How many these are."""
    tokens: int = 0
    """Estimated tokens that they would have taken in the adjudicator's prompt."""


class ReadReport(TableReport):
    """The receipt of one read: the query, the memories, the verdicts and the rendered section."""

    id: str
    """Unique."""
    schema_version: int = 1
    """Version of this layout."""
    at: datetime
    """When it happened, in UTC."""
    run_id: str = ""
    """The run it belongs to."""
    method: str
    """For example `permission_semantic`."""
    spec: dict[str, JsonValue]
    """The method's settings."""
    query: Text
    """The query."""
    dialogue: tuple[Turn, ...] = ()
    """The turns in the adjudicator's prompt."""
    evidence: tuple[Evidence, ...] = ()
    """The evidence in the adjudicator's prompt."""
    memories: tuple[RecalledMemory, ...] = ()
    """The recalled memories, in the order of recall."""
    namespaces: tuple[Namespace, ...] = ()
    """The namespaces that were searched; empty if the caller passed the memories."""
    audience: Audience = Field(default="private", exclude_if=is_private)
    """Who reads the answer."""
    participants: tuple[str, ...] = Field(default=(), exclude_if=operator.not_)
    """The names or ids of those who read it, as the run stated them."""
    ledger: Ledger
    """The verdict on every unit."""
    memory_context: str = ""
    """The rendered section of the prompt; empty if nothing was admitted."""
    usage: Usage = Usage()
    """Model calls of the read."""
    prompts: tuple[PromptStamp, ...] = ()
    """The prompts used."""
    models: dict[str, str] = Field(default={})
    """Model name by stage."""
    decomposed: int = 0
    """Memories that were decomposed in this read."""
    cached: int = 0
    """Memories whose units came from an earlier read."""
    local_first: LocalFirst | None = None
    """What `PermissionSemantic.local_first` saved; `None` if it is off."""
    flags: tuple[Flag, ...] = ()
    """Its limits."""
    failures: tuple[Failure, ...] = ()
    """Errors that stopped a part of the read."""
    notes: tuple[str, ...] = ()
    """Other notes for a reader."""

    @computed_field
    @property
    def admitted(self) -> tuple[UnitVerdict, ...]:
        """The units in the prompt, in their order there."""
        return self.ledger.shown

    @computed_field
    @property
    def withheld(self) -> tuple[UnitVerdict, ...]:
        """The units that are not in the prompt, with their reasons."""
        return self.ledger.withheld

    @computed_field
    @property
    def degraded(self) -> bool:
        """Whether constraints could not be checked completely."""
        return any(flag in DEGRADED for flag in self.flags)

    def to_table(self) -> ReportTable:
        """The units as a table, first those in the prompt; `score` is that of the recall."""
        verdicts = (*self.admitted, *self.withheld)
        return ReportTable(
            title=f"read for {redact(self.query)!r}: "
            f"{len(self.admitted)} admitted, {len(self.withheld)} withheld",
            columns=("text", "outcome", "permission", "reason", "score"),
            rows=tuple(map(_verdict_row, verdicts)),
            lines=(*self.flags, *(failure.line for failure in self.failures), *self.notes),
        )


def _verdict_row(verdict: UnitVerdict) -> tuple[Cell, ...]:
    unit, reason = verdict.unit, verdict.explanation or verdict.row
    outcome = "admitted" if verdict.shown else "withheld"
    # Without `denied`, which the permission says already.
    if verdict.withheld not in {None, "denied"}:
        reason = f"{verdict.withheld}; {reason}"
    return (redact(unit.text), outcome, verdict.permission, reason, unit.score)
