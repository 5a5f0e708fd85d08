"""What goes into ConsistencyGate, and what it passes from node to node."""

from pydantic import BaseModel, Field, JsonValue

from memguard.conversations.messages import AnyCandidate, AnyConversation
from memguard.schema.base import Frozen
from memguard.schema.decision import AdmissionDecision, Inconclusive, SupportSample
from memguard.schema.memory import Conversation, Turn
from memguard.schema.receipt import MethodReport, PromptStamp, Receipt
from memguard.schema.usage import Usage


class GateInput(BaseModel):
    """One candidate and the text it must be supported by."""

    candidate: AnyCandidate = Field(
        description="The memory proposed for storage; a plain text will do.",
        examples=["The user is vegetarian."],
    )
    context: AnyConversation = Field(
        default_factory=Conversation,
        description="Its source: a text, chat messages, or a conversation.",
        examples=["My colleague doesn't eat meat."],
    )
    run_id: str = Field(default="", description="The run it belongs to; made up when empty.")


class Judgement(Frozen):
    """The judge's answers to one candidate: one entry per sample used."""

    samples: tuple[SupportSample | Inconclusive, ...]
    """In the order of sampling."""
    k: int
    """The number of samples requested."""
    tau: float
    """The threshold that goes with these scores."""
    mode: str
    """How the samples were drawn: `n`, `concurrent`, `logprob` or `local`."""
    model: str
    """The judge's name."""
    prompt: PromptStamp | None = None
    """The prompt used; the local judge has none."""
    usage: Usage = Usage()
    """Its cost."""
    details: dict[str, JsonValue] = Field(default={})
    """More evidence, for the receipt."""
    notes: tuple[str, ...] = ()
    """What the model layer had to do differently."""


def score_of(answer: SupportSample | Inconclusive) -> float | None:
    """The score, or `None` where the judge gave nothing usable."""
    return None if isinstance(answer, Inconclusive) else answer.score


class GateRuling(BaseModel):
    """The decision and the evidence for it: what a gate returns inside a guard."""

    decision: AdmissionDecision
    report: MethodReport


class GateOutput(GateRuling):
    """The ruling with its receipt: what the graph returns when it is used alone."""

    receipt: Receipt


class SupportState(GateInput):
    """What passes from node to node."""

    source: tuple[Turn, ...] = ()
    """The turns shown to the judge."""
    tau: float = 0.0
    """The threshold in force."""
    occupancy: int | None = None
    """Records in the namespace, where the threshold depends on it."""
    judged: Judgement | None = None
    """The judge's answers; `None` for a candidate that was refused before."""
    decision: AdmissionDecision | None = None
    report: MethodReport | None = None
    receipt: Receipt | None = None
