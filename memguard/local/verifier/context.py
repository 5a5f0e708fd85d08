"""What the caller has, as units with their turns."""

import re
from dataclasses import dataclass

from memguard.conversations.messages import ConversationLike, read_conversation
from memguard.local.verifier.units import Unit, cut_text
from memguard.local.verifier.words import split_words
from memguard.schema.memory import Turn

_LABELS = {"user": "User", "assistant": "Assistant", "tool": "Tool", "system": "System"}
_LINE = re.compile(r"^\s*([A-Z][\w'.-]*(?: [A-Z0-9][\w'.-]*)?): +(\S.*)$")


@dataclass(frozen=True, kw_only=True)
class Context:
    """The turns a candidate should rest on."""

    units: tuple[Unit, ...]
    """The turns that say something, long ones in pieces."""
    turn_ids: tuple[str, ...]
    """Ids of the turns, by the number a unit names its turn with."""
    given: int
    """How many turns there were."""


def read_context(context: ConversationLike) -> Context:
    """Read a text, turns or messages, or a conversation; only turns that may be evidence count."""
    if isinstance(context, str):
        units = _units_of_text(context)
        lines = 1 + max((unit.turn for unit in units), default=-1)
        return Context(units=units, turn_ids=("",) * lines, given=lines)
    conversation = read_conversation(context)
    turns = conversation.evidence
    units = [unit for index, turn in enumerate(turns) for unit in _units_of_turn(turn, index)]
    return Context(units=tuple(units), turn_ids=tuple(turn.id for turn in turns), given=len(turns))


def _units_of_turn(turn: Turn, index: int) -> list[Unit]:
    label = turn.speaker or _LABELS[turn.role]
    at = turn.at.date() if turn.at else None
    return [
        Unit(speaker=label, text=piece, turn=index, at=at)
        for piece in cut_text(turn.content)
        if split_words(piece)
    ]


def _units_of_text(text: str) -> tuple[Unit, ...]:
    """A plain text by lines; a line that begins with a name and a colon is that speaker's turn."""
    units: list[Unit] = []
    lines = [line for line in text.splitlines() if split_words(line)]
    for index, line in enumerate(lines):
        hit = _LINE.match(line)
        speaker, said = (hit[1], hit[2]) if hit else ("", line.strip())
        units += [Unit(speaker=speaker, text=piece, turn=index) for piece in cut_text(said)]
    return tuple(units)
