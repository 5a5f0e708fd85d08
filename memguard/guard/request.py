"""From a conversation to a request: the query, the turns before it, and the results of tools."""

from dataclasses import dataclass

from memguard.conversations import read_conversation
from memguard.guard.read_state import ReadGuardState
from memguard.schema.base import is_blank
from memguard.schema.memory import Conversation, Turn
from memguard.schema.read import Evidence

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
