"""The results of a read: what an adjudicator found, what policy decided, and the report.

A read is adjudicated once. All renderings follow from its ledger without another model call.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AliasChoices, Field, JsonValue

from memguard.schema.base import Frozen, Namespace, Text, UnitInterval
from memguard.schema.decision import Inconclusive
from memguard.schema.failures import Failure
from memguard.schema.memory import Turn
from memguard.schema.read import Evidence, RecalledMemory, Situation
from memguard.schema.receipt import PromptStamp
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
from memguard.schema.usage import Usage

Withheld = Literal["denied", "duplicate", "max_units", "max_tokens"]
"""Why a unit is not in the prompt.

* `denied`: policy denies it.
* `duplicate`: another memory with the same text is in the prompt.
* `max_units`, `max_tokens`: permitted, but the section was full; never applies to a constraint.
"""

# On every report: a flag may be added, but an existing one must not be renamed.
Flag = Literal[
    "recall_failed",
    "recall_late",
    "local_adjudicator",
    "adjudication_failed",
    "adjudication_late",
    "adjudication_partial",
    "situation_unknown",
    "budget_spent",
    "decomposition_failed",
    "evidence_cut",
    "limits_exceeded",
]
"""What a reader of a report must know about its limits.

* `recall_failed`, `recall_late`: memories could not be read, or not in time; the read has none.
* `local_adjudicator`: rules judged, not a language model.
* `adjudication_failed`, `adjudication_late`: no unit was judged. Possible safety constraints and
  preferences are context, all other units are denied.
* `adjudication_partial`: some units were not judged and are treated in the same way.
* `situation_unknown`: it is unclear what the query asks for; each unit has the narrowest
  permission over all situations.
* `budget_spent`: the run's budget ended the adjudication.
* `decomposition_failed`: some memories were judged whole, because they could not be decomposed.
* `evidence_cut`: the adjudicator saw only a part of the evidence.
* `limits_exceeded`: constraints alone exceed `max_units` or `max_tokens`.
"""

# Without the flags of a read that judged everything, though with rules or with less evidence.
DEGRADED: frozenset[Flag] = frozenset(
    {
        "recall_failed",
        "recall_late",
        "adjudication_failed",
        "adjudication_late",
        "adjudication_partial",
        "situation_unknown",
        "budget_spent",
    }
)
"""Flags under which constraints could not be checked completely."""

# The members have different required fields and forbid others, so the first that fits is right.
UnitFinding = Annotated[
    UnitAttributes | FactorAttributes | Inconclusive, Field(union_mode="left_to_right")
]
"""An adjudicator's result for a unit."""


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
    # Under its old name as well, since the log has receipts of earlier versions.
    position: int | None = Field(default=None, validation_alias=AliasChoices("position", "place"))
    """Its number among the units in the prompt, from 1; `None` if withheld. Receipts of earlier
    versions call it `place`."""

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


class ReadReport(Frozen):
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
    flags: tuple[Flag, ...] = ()
    """Its limits."""
    failures: tuple[Failure, ...] = ()
    """Errors that stopped a part of the read."""
    notes: tuple[str, ...] = ()
    """Other notes for a reader."""

    @property
    def admitted(self) -> tuple[UnitVerdict, ...]:
        """The units in the prompt, in their order there."""
        return self.ledger.shown

    @property
    def withheld(self) -> tuple[UnitVerdict, ...]:
        """The units that are not in the prompt, with their reasons."""
        return self.ledger.withheld

    @property
    def degraded(self) -> bool:
        """Whether constraints could not be checked completely."""
        return any(flag in DEGRADED for flag in self.flags)
