"""What goes into the writer, and what comes out."""

import operator
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from memguard.conversations.messages import AnyConversation
from memguard.schema.base import Frozen
from memguard.schema.decision import InconclusiveReason
from memguard.schema.memory import CandidateMemory, Turn
from memguard.schema.usage import Usage


class ExtractedFact(BaseModel):
    """One fact as the model wrote it."""

    model_config = ConfigDict(extra="ignore")

    text: str
    about: str = ""
    turns: list[int | str] = []


class Extraction(BaseModel):
    """The model's answer to one pass."""

    model_config = ConfigDict(extra="ignore")

    facts: list[ExtractedFact]


class Pass(Frozen):
    """One pass: the turns shown, and from which one on they are new."""

    earlier: tuple[Turn, ...]
    new: tuple[Turn, ...]


class Unread(Frozen):
    """Turns that gave no usable answer; they stay unread, and a later run reads them again."""

    turn_ids: tuple[str, ...]
    """The turns."""
    reason: InconclusiveReason
    """Why."""
    detail: str = ""
    """The answer or the error, shortened."""


class PassResult(Frozen):
    """The result of one pass."""

    candidates: tuple[CandidateMemory, ...] = ()
    """Candidates drawn, in order."""
    unread: tuple[Unread, ...] = ()
    """Turns without a usable answer."""
    usage: Usage = Usage()
    """Cost."""
    notes: tuple[str, ...] = ()
    """What was left out or done differently, and why."""


class WriterInput(BaseModel):
    """A conversation to draw candidates from."""

    conversation: AnyConversation = Field(
        description="Chat messages, a text, or a conversation.",
        examples=[[{"role": "user", "content": "I moved to Porto in May."}]],
    )
    new_from: int = Field(
        default=0, ge=0, description="Index of the first new turn; those before are only shown."
    )
    passes: tuple[Pass, ...] | None = Field(
        default=None, description="Passes that were planned before; planned here when left out."
    )


class WriterOutput(BaseModel):
    """The candidates, and what could not be read."""

    candidates: tuple[CandidateMemory, ...] = ()
    unread: tuple[Unread, ...] = ()
    usage: Usage = Usage()
    notes: tuple[str, ...] = ()


class WriterState(WriterInput, WriterOutput):
    """What passes from node to node."""

    written: Annotated[list[PassResult], operator.add] = []
    """One entry per pass, in the order of the conversation."""


class WriterPassState(BaseModel):
    """What one branch of the fan-out gets."""

    chunk: Pass
    conversation_id: str = ""
