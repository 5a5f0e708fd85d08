"""What goes into the write guard, what comes out, and what passes in between."""

import operator
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from memguard.conversations.messages import AnyConversation
from memguard.schema.base import Frozen, Namespace
from memguard.schema.failures import Failure
from memguard.schema.memory import CandidateMemory, Conversation
from memguard.schema.receipt import Receipt
from memguard.schema.usage import Usage
from memguard.write.report import Review, WriteReport


def _candidates(value: Any) -> Any:
    """Plain texts are candidates too; one text is a list of one."""
    if value is None:
        return None
    entries = [value] if isinstance(value, str | Mapping | CandidateMemory) else value
    return tuple({"text": e} if e is None or isinstance(e, str) else e for e in entries)


class WriteInput(BaseModel):
    """A conversation to remember from. One of `messages` and `conversation` will do."""

    messages: list[Any] = Field(
        default=[],
        description="Chat messages; what was read before is not read again.",
        examples=[[{"role": "user", "content": "I moved to Porto in May."}]],
    )
    conversation: AnyConversation | None = Field(
        default=None, description="A conversation with speakers, times and an id of its own."
    )
    candidates: Annotated[tuple[CandidateMemory, ...] | None, BeforeValidator(_candidates)] = Field(
        default=None,
        description="Candidates of your own; the writer is then not asked.",
        examples=[["The user lives in Porto."]],
    )


class WriteOutput(BaseModel):
    """What became of every candidate."""

    writes: WriteReport


class Proposal(Frozen):
    """A candidate with the turns that it was drawn from."""

    candidate: CandidateMemory
    source: Conversation


class PassReport(Frozen):
    """The result of one pass of the writer."""

    proposals: tuple[Proposal, ...] = ()
    unread: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()


class CandidateResult(Frozen):
    """The result of one branch: a receipt, or a candidate that is left undecided."""

    receipt: Receipt | None = None
    unjudged: CandidateMemory | None = None
    failure: Failure | None = None


class PassState(BaseModel):
    """The input of one branch that reads."""

    run_id: str
    namespace: Namespace
    earlier: Conversation
    new: Conversation
    keys: tuple[str, ...]


class CandidateState(BaseModel):
    """The input of one branch that judges."""

    run_id: str
    proposal: Proposal


class WriteState(WriteInput):
    """What passes from node to node.

    Checkpoints of paused runs name these fields, so their names do not change.
    """

    run_id: str = ""
    namespace: Namespace = ()
    passes: tuple[PassState, ...] = ()
    extracted: Annotated[list[PassReport], operator.add] = []
    proposals: tuple[Proposal, ...] = ()
    resumed: int = 0
    ruled: Annotated[list[CandidateResult], operator.add] = []
    spent: Usage = Usage()
    waiting: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    reviews: tuple[Review, ...] = ()
    writes: WriteReport | None = None
