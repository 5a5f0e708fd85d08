"""What goes into the read guard, what comes out, and what passes in between."""

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field

from memguard.conversations import read_conversation
from memguard.conversations.messages import AnyConversation
from memguard.methods.adjudication.state import Evidences
from memguard.schema.base import Namespace, Text, is_blank
from memguard.schema.failures import Failure
from memguard.schema.ledger import Flag, ReadReport, UnitVerdict
from memguard.schema.memory import Conversation, Turn
from memguard.schema.read import Evidence, Recalled


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


_EVIDENCE_TURNS = 30
"""Turns before the query among which a tool's results still count as evidence."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked, with its dialogue and evidence."""

    query: str
    """What is asked now; empty when the user said nothing."""
    dialogue: Conversation
    """The turns before it, without tools' results."""
    evidence: tuple[Evidence, ...]
    """The input's evidence, then the results of tools."""


def read_request(state: ReadGuardState) -> Request:
    """The request that the input states.

    The last message of the user is the query, unless the input has one. What a tool returned is
    evidence, never dialogue: the adjudicator sees the two separately.

    Raises:
        InvalidInputError: If the messages cannot be read.
    """
    conversation = state.dialogue or read_conversation(state.messages)
    turns = conversation.turns
    last = _last_of_user(turns)
    if state.query is None:
        if last is None:
            return Request(query="", dialogue=conversation, evidence=state.evidence)
        query, before, after = turns[last].content, turns[:last], turns[last + 1 :]
    else:
        # A host may pass the query and also the messages that end with it.
        repeated = last is not None and turns[last].content.strip() == state.query.strip()
        end = last if repeated and last is not None else len(turns)
        query, before, after = state.query, turns[:end], turns[end + 1 :]
    tools = [turn for turn in (*before[-_EVIDENCE_TURNS:], *after) if turn.role == "tool"]
    results = tuple(
        Evidence(text=turn.content, source=turn.speaker or "tool", at=turn.at)
        for turn in tools
        if not is_blank(turn.content)
    )
    dialogue = tuple(turn for turn in before if turn.role != "tool")
    return Request(
        query=query,
        dialogue=Conversation(turns=dialogue, id=conversation.id),
        evidence=(*state.evidence, *results),
    )


def _last_of_user(turns: tuple[Turn, ...]) -> int | None:
    # A turn that memguard rendered repeats memories; nobody said it.
    of_user = (
        index
        for index in reversed(range(len(turns)))
        if turns[index].role == "user" and not turns[index].rendered
    )
    return next(of_user, None)
