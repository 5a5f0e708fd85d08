"""Input, output and state of ConMem's graphs, and the events that its nodes send."""

import operator
from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated, Any, Literal, Self, TypedDict

from langgraph.config import get_stream_writer
from pydantic import BaseModel, Field

from memguard.conversations.messages import AnyCandidate, AnyConversation
from memguard.llm.ask import ParsedAnswer, TextAnswer
from memguard.methods.conmem.config import ProbeRole
from memguard.methods.conmem.log import (
    AttributionVerdict,
    Cmte,
    ProbeRound,
    QualityVerdict,
    ReasonVerdict,
    Response,
    TieBreakVerdict,
)
from memguard.schema.base import Frozen, GraphInput
from memguard.schema.decision import AdmissionDecision, Inconclusive
from memguard.schema.memory import Conversation, Turn
from memguard.schema.receipt import MethodReport, Receipt, Usage

TrialStep = Literal["control", "treatment", "judge", "auditor"]
"""The nodes of one trial."""


class ConMemInput(GraphInput):
    """One candidate and the history it was drawn from."""

    # Titles, descriptions and examples are what Studio's input form shows.

    candidate: AnyCandidate = Field(
        description="The memory proposed for storage; a plain text will do.",
        examples=["The user is vegetarian."],
    )
    context: AnyConversation = Field(
        default_factory=Conversation,
        description="The history: a text, chat messages, or a conversation.",
        examples=["My colleague doesn't eat meat."],
    )
    run_id: str = Field(default="", description="The run it belongs to; generated when empty.")


class ConMemOutput(BaseModel):
    """The decision, the evidence, and the receipt."""

    decision: AdmissionDecision
    report: MethodReport
    receipt: Receipt


class StageCall(Frozen):
    """One answered question, with the model calls that it took."""

    prompt: str
    """Short name of the prompt."""
    usage: Usage
    notes: tuple[str, ...] = ()
    enlarged: bool = False
    """Whether the answer reached the token limit and was asked for once more."""

    @classmethod
    def from_answer(cls, prompt: str, answer: ParsedAnswer[Any] | TextAnswer) -> Self:
        """The call that gave this answer."""
        return cls(prompt=prompt, usage=answer.usage, notes=answer.notes, enlarged=answer.enlarged)


class TrialPart(Frozen):
    """The result of one node of one trial."""

    role: ProbeRole
    query: str
    step: TrialStep
    value: Response | QualityVerdict | AttributionVerdict | Inconclusive


class TrialInput(TypedDict):
    """Input of one trial; each probe is one branch of the fan-out."""

    role: ProbeRole
    query: str
    memory: str
    history: tuple[Turn, ...]
    case_id: str


class TrialOutput(TypedDict):
    """Output of one trial."""

    parts: Annotated[list[TrialPart], operator.add]
    calls: Annotated[list[StageCall], operator.add]


class TrialState(TrialInput, TrialOutput):
    """State of one trial."""


class ConMemState(ConMemInput):
    """State of one case."""

    history: tuple[Turn, ...] = ()
    """The turns shown."""
    history_left_out: int = 0
    """Turns that are not shown."""
    history_cut_short: bool = False
    """Whether only the end of a turn is shown."""
    notes: tuple[str, ...] = ()
    """Notes on the history for the receipt."""
    rounds: tuple[ProbeRound, ...] = ()
    """The rounds of the ladder."""
    # Parallel branches append to these two lists, so both need a reducer. Calls of discarded work
    # stay: they were paid for.
    parts: Annotated[list[TrialPart], operator.add] = Field(default=[])
    """Results of all trials, discarded ones included."""
    calls: Annotated[list[StageCall], operator.add] = Field(default=[])
    """All model calls, in the order they ended."""
    score: Cmte | None = None
    tie_break: TieBreakVerdict | Inconclusive | None = None
    reason: ReasonVerdict | Inconclusive | None = None
    decision: AdmissionDecision | None = None
    report: MethodReport | None = None
    receipt: Receipt | None = None


@contextmanager
def event_step(name: str, *, case: str, role: ProbeRole | None = None) -> Generator[dict[str, Any]]:
    """Send an event when a node starts, and one when it is done, with what the block adds.

    `{"memguard": "conmem", "case": ..., "step": ..., "role": ..., "state": "started" | "done"}`

    The nodes of a trial run in a graph within the graph: stream with `subgraphs=True` to see them.
    """
    # Outside a run with `stream_mode="custom"` the writer does nothing.
    write = get_stream_writer()
    event: dict[str, Any] = {"memguard": "conmem", "case": case, "step": name}
    if role is not None:
        event["role"] = role
    write({**event, "state": "started"})
    details: dict[str, Any] = {}
    # No `finally`: a step that raised is not done, and the run's error says so.
    yield details
    write({**event, "state": "done", **details})
