"""From a conversation to a request: the query, what was said before, and what tools said. Pure."""

from dataclasses import dataclass

from memguard.conversations import read_conversation
from memguard.guard.read_state import ReadGuardState
from memguard.schema.base import is_blank
from memguard.schema.memory import Conversation, Turn
from memguard.schema.read import Evidence

_RECENT = 30
"""Turns before the query among which a tool's results still count as evidence."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked, and with what."""

    query: str
    """What is asked now; empty when the user said nothing."""
    dialogue: Conversation
    """The turns before it, without tools' results."""
    evidence: tuple[Evidence, ...]
    """What was given as evidence, then what tools said."""


def read_request(state: ReadGuardState) -> Request:
    """The request that the input states.

    The last message of the user is the query, unless a query is given. What a tool returned is
    evidence, never dialogue: the adjudicator sees the two apart.

    Raises:
        InvalidInputError: If the messages cannot be read.
    """
    spoken = state.dialogue or read_conversation(state.messages)
    turns = spoken.turns
    last = _last_of_user(turns)
    if state.query is None:
        if last is None:
            return Request(query="", dialogue=spoken, evidence=state.evidence)
        query, before, after = turns[last].content, turns[:last], turns[last + 1 :]
    else:
        # A host may hand over the query and the messages that end with it.
        repeated = last is not None and turns[last].content.strip() == state.query.strip()
        end = last if repeated and last is not None else len(turns)
        query, before, after = state.query, turns[:end], turns[end + 1 :]
    tools = [turn for turn in (*before[-_RECENT:], *after) if turn.role == "tool"]
    said = tuple(
        Evidence(text=turn.content, source=turn.speaker or "tool", at=turn.at)
        for turn in tools
        if not is_blank(turn.content)
    )
    dialogue = tuple(turn for turn in before if turn.role != "tool")
    return Request(
        query=query,
        dialogue=Conversation(turns=dialogue, id=spoken.id),
        evidence=(*state.evidence, *said),
    )


def _last_of_user(turns: tuple[Turn, ...]) -> int | None:
    found = [at for at, turn in enumerate(turns) if turn.role == "user" and not turn.rendered]
    return found[-1] if found else None
