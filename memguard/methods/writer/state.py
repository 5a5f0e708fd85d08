"""Input, output and state of the writer, and a model's answer to one pass.

Checkpoints of paused runs contain these types and fields by name, so their names must not change.
"""

import operator
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from memguard.conversations.messages import AnyConversation
from memguard.methods.writer.rules import Pass
from memguard.schema.base import Frozen
from memguard.schema.decision import InconclusiveReason
from memguard.schema.memory import CandidateMemory
from memguard.schema.usage import Usage


class ExtractedFact(BaseModel):
    """One fact as the model wrote it."""

    # Models add fields of their own; an additional one is no reason to lose the facts.
    model_config = ConfigDict(extra="ignore")

    text: str
    about: str = ""
    # The prompt asks for numbers, but some models write them as strings.
    turns: list[int | str] = []


class Extraction(BaseModel):
    """The model's answer to one pass."""

    model_config = ConfigDict(extra="ignore")

    facts: list[ExtractedFact]


class Unread(Frozen):
    """Turns without a usable answer; they stay unread, and a later run reads them again."""

    turn_ids: tuple[str, ...]
    """Ids of the turns."""
    reason: InconclusiveReason
    """Why the answer could not be used."""
    detail: str = ""
    """The answer or the error, shortened."""


class PassResult(Frozen):
    """The result of one pass."""

    candidates: tuple[CandidateMemory, ...] = ()
    """Candidates, in order."""
    unread: tuple[Unread, ...] = ()
    """Turns without a usable answer."""
    usage: Usage = Usage()
    """Model calls."""
    notes: tuple[str, ...] = ()
    """Facts that were left out, and deviations from the settings, each with the reason."""


class WriterInput(BaseModel):
    """A conversation to extract candidates from."""

    conversation: AnyConversation = Field(
        description="Chat messages, a text, or a conversation.",
        examples=[[{"role": "user", "content": "I moved to Porto in May."}]],
    )
    new_from: int = Field(
        default=0, ge=0, description="Index of the first new turn; those before are context."
    )
    passes: tuple[Pass, ...] | None = Field(
        default=None,
        description="Passes that were planned before; planned here by default.",
    )


class WriterOutput(BaseModel):
    """The candidates, and what could not be read."""

    candidates: tuple[CandidateMemory, ...] = ()
    unread: tuple[Unread, ...] = ()
    usage: Usage = Usage()
    notes: tuple[str, ...] = ()


class WriterState(WriterInput, WriterOutput):
    """The state of a run."""

    # Branches run concurrently, so each adds its result through the reducer.
    written: Annotated[list[PassResult], operator.add] = []
    """One entry per pass, in the order of the conversation."""


class WriterPassState(BaseModel):
    """The input of one branch of `read`."""

    chunk: Pass
    conversation_id: str = ""
