"""The verdicts of a read, and what policy ruled on them: adjudicate once, render many times."""

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
* `duplicate`: another memory with the same text represents it.
* `max_units`, `max_tokens`: permitted, but the block was full. Never a constraint.
"""

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
"""What a reader of a report must not overlook.

* `recall_failed`, `recall_late`: memories could not be read, or not in time: there are none.
* `local_adjudicator`: rules judged, not a language model.
* `adjudication_failed`, `adjudication_late`: no unit was judged; what may be a safety constraint
  or a preference is context, the rest is denied.
* `adjudication_partial`: some units were not judged; the same holds for these.
* `situation_unknown`: what the query asks for could not be told; the narrowest permission over all
  situations holds.
* `budget_spent`: the run's budget ended the adjudication.
* `decomposition_failed`: some memories were judged whole, because they could not be decomposed.
* `evidence_cut`: the adjudicator saw a part of the evidence.
* `limits_exceeded`: constraints alone are more than `max_units` or `max_tokens` allow.
"""

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
"""Flags under which constraints could not be checked in full."""

Found = Annotated[
    UnitAttributes | FactorAttributes | Inconclusive, Field(union_mode="left_to_right")
]
"""What an adjudicator gave for a unit."""


class Row(Frozen):
    """One row of an adjudicator's answer. A unit may have several, or none."""

    unit_id: str
    """The unit."""
    attributes: Found
    """What was found, or why nothing usable was said."""
    evidence_conflict: bool = False
    """Whether the evidence given with the query contradicts the unit."""
    influence: UnitInterval | None = None
    """How far the unit should bear on the answer, in [0, 1]; `None` if not said."""
    reason: Text = ""
    """The adjudicator's words."""


class Conflict(Frozen):
    """Two units that cannot both hold."""

    first: str
    """A unit's id."""
    second: str
    """Another unit's id."""


class Adjudication(Frozen):
    """What an adjudicator said about one read."""

    situation: Situation | Inconclusive | None = None
    """What the query asks for; `None` when nothing was asked, because nothing was recalled."""
    rows: tuple[Row, ...] = ()
    """In any order. Rows of one unit that differ are all kept: policy takes the stricter."""
    conflicts: tuple[Conflict, ...] = ()
    """Pairs that cannot both hold."""
    adjudicator: str = ""
    """Who judged: a model's name, or `local`."""
    usage: Usage = Usage()
    """Its model calls."""
    prompts: tuple[PromptStamp, ...] = ()
    """The prompts it used."""
    flags: tuple[Flag, ...] = ()
    """What a reader must not overlook."""
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
    """What a receipt should say."""


class UnitVerdict(Frozen):
    """One unit with its verdict, what policy ruled, and whether it is shown."""

    unit: Unit
    """The unit; its text is what a rendering shows."""
    attributes: Found | None = None
    """The adjudicator's verdict, or why there is no usable one; `None` where nobody was asked."""
    evidence_conflict: bool = False
    """Whether the evidence contradicts it."""
    conflicts_with: tuple[str, ...] = ()
    """Units that contradict it."""
    influence: UnitInterval | None = None
    """How far it should bear on the answer, in [0, 1]."""
    reason: Text = ""
    """The adjudicator's words."""
    permission: Permission
    """What it may be used for."""
    row: str
    """The row of the table, or the other rule, that decided."""
    explanation: Text = ""
    """The row in one sentence for a person."""
    withheld: Withheld | None = None
    """Why it is not in the prompt; `None` when it is."""
    position: int | None = Field(default=None, validation_alias=AliasChoices("position", "place"))
    """Its number among the units shown, from 1, over all sections; `None` when withheld. Receipts
    of earlier versions call it `place`."""

    @property
    def channel(self) -> Channel:
        """The permission as a channel."""
        return CHANNEL_OF[self.permission]

    @property
    def shown(self) -> bool:
        """Whether it is in the prompt."""
        return self.withheld is None


class Ledger(Frozen):
    """The verdicts of one read. Every rendering and every arm is a function of it."""

    scheme: Scheme | Literal["relevance"]
    """Which attributes were judged; `relevance` when nearness alone decided."""
    situation: Situation | Inconclusive | None = None
    """What the query asks for; `None` when nothing was asked."""
    verdicts: tuple[UnitVerdict, ...] = ()
    """One per unit, in the order of recall."""

    @property
    def shown(self) -> tuple[UnitVerdict, ...]:
        """The units in the prompt, in their order there."""
        shown = [verdict for verdict in self.verdicts if verdict.shown]
        return tuple(sorted(shown, key=lambda verdict: verdict.position or 0))

    @property
    def withheld(self) -> tuple[UnitVerdict, ...]:
        """The units that do not."""
        return tuple(verdict for verdict in self.verdicts if not verdict.shown)


class ReadReport(Frozen):
    """The receipt of one read: what was asked, found, ruled and put into the prompt."""

    id: str
    """Unique."""
    schema_version: int = 1
    """Of this layout."""
    at: datetime
    """When, in UTC."""
    run_id: str = ""
    """The run it belongs to."""
    method: str
    """For example `permission_semantic`."""
    spec: dict[str, JsonValue]
    """The method's settings."""
    query: Text
    """What was asked."""
    dialogue: tuple[Turn, ...] = ()
    """The turns shown to the adjudicator."""
    evidence: tuple[Evidence, ...] = ()
    """The evidence shown to it."""
    memories: tuple[RecalledMemory, ...] = ()
    """What was recalled, in that order."""
    namespaces: tuple[Namespace, ...] = ()
    """The namespaces that were searched; empty when the caller passed the memories."""
    ledger: Ledger
    """What was found and ruled of every unit."""
    memory_context: str = ""
    """The section as it is in the prompt; empty when nothing was admitted."""
    usage: Usage = Usage()
    """Model calls of the read."""
    prompts: tuple[PromptStamp, ...] = ()
    """The prompts used."""
    models: dict[str, str] = Field(default={})
    """Model name by stage."""
    decomposed: int = 0
    """Memories that were decomposed in this read."""
    cached: int = 0
    """Memories whose units were kept from earlier."""
    flags: tuple[Flag, ...] = ()
    """What a reader must not overlook."""
    failures: tuple[Failure, ...] = ()
    """What stopped a part of the read, with a code of the errors page."""
    notes: tuple[str, ...] = ()
    """What else a reader should know."""

    @property
    def admitted(self) -> tuple[UnitVerdict, ...]:
        """The units in the prompt, in their order there."""
        return self.ledger.shown

    @property
    def withheld(self) -> tuple[UnitVerdict, ...]:
        """The units that are not, with their reasons."""
        return self.ledger.withheld

    @property
    def degraded(self) -> bool:
        """Whether constraints could not be checked in full."""
        return any(flag in DEGRADED for flag in self.flags)
