"""Reads the context that a caller passes into text units, with the turn each unit comes from."""

import re
from dataclasses import dataclass

from memguard.conversations.messages import ConversationLike, read_conversation
from memguard.local.verifier.units import TextUnit, split_text
from memguard.local.verifier.words import split_words
from memguard.schema.memory import Turn

_LABELS = {"user": "User", "assistant": "Assistant", "tool": "Tool", "system": "System"}
# One or two capitalised words before the colon: `Note to self: buy milk` is not a speaker.
_LINE = re.compile(r"^\s*([A-Z][\w'.-]*(?: [A-Z0-9][\w'.-]*)?): +(\S.*)$")


@dataclass(frozen=True, kw_only=True)
class TurnContext:
    """The turns that a candidate is checked against."""

    units: tuple[TextUnit, ...]
    """The turns that contain words; a long turn is several units."""
    turn_ids: tuple[str, ...]
    """Ids of the turns, indexed by `TextUnit.turn`; empty strings for a plain text."""
    turn_count: int
    """How many turns the caller passed."""


def read_context(context: ConversationLike) -> TurnContext:
    """Read a text, turns or messages, or a conversation.

    Turns that may not serve as evidence are left out: see `Conversation.evidence`.

    Raises:
        InvalidInputError: If a message has no readable role, text or time, or an id is repeated.
    """
    if isinstance(context, str):
        units = _units_of_text(context)
        lines = 1 + max((unit.turn for unit in units), default=-1)
        return TurnContext(units=units, turn_ids=("",) * lines, turn_count=lines)
    conversation = read_conversation(context)
    turns = conversation.evidence
    units = [unit for index, turn in enumerate(turns) for unit in _units_of_turn(turn, index)]
    return TurnContext(
        units=tuple(units), turn_ids=tuple(turn.id for turn in turns), turn_count=len(turns)
    )


def _units_of_turn(turn: Turn, index: int) -> list[TextUnit]:
    label = turn.speaker or _LABELS[turn.role]
    at = turn.at.date() if turn.at else None
    return [
        TextUnit(speaker=label, text=piece, turn=index, at=at)
        for piece in split_text(turn.content)
        if split_words(piece)
    ]


def _units_of_text(text: str) -> tuple[TextUnit, ...]:
    """Split a plain text into lines; a line like `Ana: I left` is a turn of that speaker."""
    units: list[TextUnit] = []
    lines = [line for line in text.splitlines() if split_words(line)]
    for index, line in enumerate(lines):
        hit = _LINE.match(line)
        speaker, text = (hit[1], hit[2]) if hit else ("", line.strip())
        units += [TextUnit(speaker=speaker, text=piece, turn=index) for piece in split_text(text)]
    return tuple(units)
