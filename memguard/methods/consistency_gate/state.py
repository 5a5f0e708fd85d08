"""Input, output and state of ConsistencyGate, and a judge's answers.

Checkpoints of paused runs contain these types and fields by name, so their names must not change.
"""

from pydantic import BaseModel, Field, JsonValue

from memguard.conversations.messages import AnyCandidate, AnyConversation
from memguard.schema.base import Frozen
from memguard.schema.decision import AdmissionDecision, Inconclusive, SupportSample
from memguard.schema.memory import Conversation, Turn
from memguard.schema.receipt import MethodReport, PromptStamp, Receipt
from memguard.schema.usage import Usage


class GateInput(BaseModel):
    """One candidate and the text that must support it."""

    candidate: AnyCandidate = Field(
        description="The memory proposed for storage; may be a plain text.",
        examples=["The user is vegetarian."],
    )
    context: AnyConversation = Field(
        default_factory=Conversation,
        description="Its source: a text, chat messages, or a conversation.",
        examples=["My colleague doesn't eat meat."],
    )
    run_id: str = Field(default="", description="Id of the run; generated if empty.")


class Judgement(Frozen):
    """The judge's answers to one candidate: one entry per sample used."""

    samples: tuple[SupportSample | Inconclusive, ...]
    """In the order of sampling."""
    k: int
    """The number of samples requested."""
    tau: float
    """The threshold for these scores."""
    mode: str
    """How the samples were drawn: `n`, `concurrent`, `logprob` or `local`."""
    temperature: float | None = None
    """Sampling temperature that was set; the local judge has none."""
    model: str
    """The judge's name."""
    prompt: PromptStamp | None = None
    """The prompt used; the local judge has none."""
    usage: Usage = Usage()
    """Its cost."""
    details: dict[str, JsonValue] = Field(default={})
    """More evidence, for the receipt."""
    notes: tuple[str, ...] = ()
    """Deviations from the settings, such as a parameter that the model does not accept."""


class GateRuling(BaseModel):
    """The decision and its evidence: the output of a gate inside a guard."""

    decision: AdmissionDecision
    report: MethodReport


class GateOutput(GateRuling):
    """The decision with its receipt: the output of the graph when it is used alone."""

    receipt: Receipt


class SupportState(GateInput):
    """The state of one judgement."""

    source: tuple[Turn, ...] = ()
    """The turns shown to the judge."""
    tau: float = 0.0
    """The threshold that is applied."""
    occupancy: int | None = None
    """Number of records in the namespace, if the threshold depends on it."""
    judged: Judgement | None = None
    """The judge's answers; `None` for a candidate that was refused without a judge."""
    # Set by `judge` for a candidate that it refuses, else by `decide`.
    decision: AdmissionDecision | None = None
    report: MethodReport | None = None
    receipt: Receipt | None = None
