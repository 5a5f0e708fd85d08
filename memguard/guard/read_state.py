"""What goes into the read guard, what comes out, and what passes in between."""

from typing import Any

from pydantic import BaseModel, Field

from memguard.adjudication.state import Evidences
from memguard.conversations.field import AnyConversation
from memguard.guard.failures import Failure
from memguard.schema.base import Namespace, Text
from memguard.schema.ledger import Flag, ReadReport, UnitVerdict
from memguard.schema.memory import Conversation
from memguard.schema.read import Evidence
from memguard.schema.recall import Recalled


class ReadGuardInput(BaseModel):
    """A request to find memories for: `messages`, or a `query` with its `dialogue`."""

    messages: list[Any] = Field(
        default=[],
        description="Chat messages; the last one of the user is the query, tools give evidence.",
        examples=[[{"role": "user", "content": "A restaurant for my birthday, please."}]],
    )
    query: Text | None = Field(
        default=None, description="What is asked now, instead of the last message of the user."
    )
    dialogue: AnyConversation | None = Field(
        default=None, description="The turns before the query, instead of the messages."
    )
    evidence: Evidences = Field(
        default=(),
        description="Text that came with the query: tool output, search results, documents.",
    )


class ReadGuardOutput(BaseModel):
    """What may enter the prompt, and why the rest may not."""

    memory_context: str = Field(description="The section for the prompt; empty for nothing.")
    admitted: tuple[UnitVerdict, ...] = Field(description="The units in it, in their order.")
    withheld: tuple[UnitVerdict, ...] = Field(description="The units left out, with the reason.")
    read: ReadReport = Field(description="The receipt of the read.")


class ReadGuardState(ReadGuardInput):
    """What passes from node to node."""

    # The input's keys stay as the caller set them, because a host may read them again; what the
    # guard makes of them has names of its own.
    run_id: str = ""
    request_query: Text = ""
    """What is asked: the input's `query`, or the last message of the user."""
    request_dialogue: Conversation = Conversation()
    """The turns before it, without the results of tools."""
    request_evidence: tuple[Evidence, ...] = ()
    """The input's evidence, then what tools returned."""
    recalled: Recalled = Recalled()
    namespaces: tuple[Namespace, ...] = ()
    """The namespaces that were searched, or would have been."""
    seconds: float = 0.0
    """How long the read has taken so far."""
    flags: tuple[Flag, ...] = ()
    failures: tuple[Failure, ...] = ()
    memory_context: str = ""
    admitted: tuple[UnitVerdict, ...] = ()
    withheld: tuple[UnitVerdict, ...] = ()
    # From the method, and completed by `report`.
    read: ReadReport | None = None
