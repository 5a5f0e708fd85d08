"""What goes into ConMem, what comes out, and what passes from node to node."""

import operator
from typing import Annotated, Literal, TypedDict

from pydantic import BaseModel, Field

from memguard.conversations.field import AnyCandidate, AnyConversation
from memguard.schema.base import Frozen
from memguard.schema.conmem import ProbeRole
from memguard.schema.conmem_log import (
    AttributionVerdict,
    Cmte,
    ProbeRound,
    QualityVerdict,
    ReasonVerdict,
    Response,
    TieBreakVerdict,
)
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import Conversation, Turn
from memguard.schema.receipt import MethodReport, Receipt
from memguard.schema.usage import Usage
from memguard.schema.verdict import Inconclusive

Step = Literal["control", "treatment", "quality", "audit"]
"""The steps of one probe."""


class ConMemInput(BaseModel):
    """One candidate and the history it was drawn from."""

    candidate: AnyCandidate = Field(
        description="The memory proposed for storage; a plain text will do.",
        examples=["The user is vegetarian."],
    )
    context: AnyConversation = Field(
        default_factory=Conversation,
        description="The history: a text, chat messages, or a conversation.",
        examples=["My colleague doesn't eat meat."],
    )
    run_id: str = Field(default="", description="The run it belongs to; made up when empty.")


class ConMemOutput(BaseModel):
    """The ruling, what it rests on, and the receipt."""

    decision: AdmissionDecision
    report: MethodReport
    receipt: Receipt


class Spent(Frozen):
    """What one call cost."""

    prompt: str
    usage: Usage
    notes: tuple[str, ...] = ()


class TrialPart(Frozen):
    """What one step of one probe gave."""

    role: ProbeRole
    query: str
    step: Step
    value: Response | QualityVerdict | AttributionVerdict | Inconclusive


class TrialInput(TypedDict):
    """What one branch of the fan-out gets."""

    role: ProbeRole
    query: str
    memory: str
    history: tuple[Turn, ...]
    case_id: str


class TrialOutput(TypedDict):
    """What one branch gives back."""

    parts: Annotated[list[TrialPart], operator.add]
    spent: Annotated[list[Spent], operator.add]


class TrialState(TrialInput, TrialOutput):
    """What passes between the steps of one probe."""


class ConMemState(ConMemInput):
    """What passes from node to node."""

    history: tuple[Turn, ...] = ()
    """The turns shown."""
    history_left_out: int = 0
    """Turns that are not shown."""
    history_cut_short: bool = False
    """Whether one turn alone was too long."""
    notes: tuple[str, ...] = ()
    """What a receipt should say of the history."""
    rounds: tuple[ProbeRound, ...] = ()
    """How the probes came about."""
    parts: Annotated[list[TrialPart], operator.add] = []
    """What the probes gave, thrown-away ones included."""
    spent: Annotated[list[Spent], operator.add] = []
    """What the calls cost."""
    score: Cmte | None = None
    tie_break: TieBreakVerdict | Inconclusive | None = None
    reason: ReasonVerdict | Inconclusive | None = None
    decision: AdmissionDecision | None = None
    report: MethodReport | None = None
    receipt: Receipt | None = None
