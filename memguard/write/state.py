"""The input, output and state of the write guard, and the inputs of its branches."""

import operator
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from memguard.conversations.messages import AnyConversation
from memguard.schema.base import Frozen, GraphInput, Namespace
from memguard.schema.failures import Failure
from memguard.schema.memory import CandidateMemory, Conversation
from memguard.schema.receipt import Receipt, Usage
from memguard.write.report import Review, WriteReport


def _candidates(value: Any) -> Any:
    """Accept plain texts as candidates, and a single candidate as a list with one entry."""
    if value is None:
        return None
    # `None` as an entry is a blank text, which is refused with a receipt, not an error.
    entries = [value] if isinstance(value, str | Mapping | CandidateMemory) else value
    return tuple({"text": e} if e is None or isinstance(e, str) else e for e in entries)


class WriteInput(GraphInput):
    """A conversation to remember from, as `messages` or as `conversation`."""

    messages: list[Any] = Field(
        default=[],
        description="Chat messages; turns that an earlier run read are not read again.",
        examples=[[{"role": "user", "content": "I moved to Porto in May."}]],
    )
    conversation: AnyConversation | None = Field(
        default=None, description="A conversation with speakers, times and an id of its own."
    )
    candidates: Annotated[tuple[CandidateMemory, ...] | None, BeforeValidator(_candidates)] = Field(
        default=None,
        description="Your own candidates; the writer is then not called.",
        examples=[["The user lives in Porto."]],
    )


class WriteOutput(BaseModel):
    """The report on every candidate."""

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
    """The result of one branch of `gates`: a receipt, or a candidate left undecided and why."""

    receipt: Receipt | None = None
    unjudged: CandidateMemory | None = None
    failure: Failure | None = None


class PassState(BaseModel):
    """The input of one branch of `extract`: the turns of one pass of the writer."""

    run_id: str
    namespace: Namespace
    earlier: Conversation
    new: Conversation
    keys: tuple[str, ...]


class CandidateState(BaseModel):
    """The input of one branch of `gates`: one candidate."""

    run_id: str
    proposal: Proposal
    turn_order: tuple[str, ...] = ()
    """Ids of the turns that candidates of the run rest on, in the order of the conversation."""


# Models rather than typed dictionaries: state that comes back as JSON, from a checkpoint or from
# Studio, is validated into the same types.
class WriteState(WriteInput):
    """The state of a run.

    Checkpoints of paused runs contain these fields by name, so their names must not change.
    """

    run_id: str = ""
    namespace: Namespace = ()
    passes: tuple[PassState, ...] = ()
    # Branches run concurrently, so each adds its result through a reducer.
    extracted: Annotated[list[PassReport], operator.add] = Field(default=[])
    proposals: tuple[Proposal, ...] = ()
    resumed: int = 0
    ruled: Annotated[list[CandidateResult], operator.add] = Field(default=[])
    spent: Usage = Usage()
    waiting: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    reviews: tuple[Review, ...] = ()
    writes: WriteReport | None = None
