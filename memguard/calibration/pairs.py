"""The labelled memories of the package: a supported and a changed one for each conversation."""

import json
from functools import cache
from importlib import resources

from memguard.schema.base import Frozen, Text
from memguard.schema.memory import Conversation, Turn

PAIRS_FILE = "pairs.json"


class LabelledMemory(Frozen):
    """A memory with its source, and whether the source supports it."""

    id: str
    """Unique within the set, for example `07-changed`."""
    source: Conversation
    """The conversation that it is judged against."""
    text: Text
    """The text of the memory."""
    is_supported: bool
    """Whether the source supports it."""
    change: str
    """Kind of the detail that differs within its pair: number, name, negation, ..."""


class _Pair(Frozen):
    id: str
    change: str
    turns: tuple[Turn, ...]
    supported: Text
    changed: Text


class _PairsFile(Frozen):
    version: str
    about: str
    items: tuple[_Pair, ...]


def load_pairs(limit: int | None = None) -> tuple[LabelledMemory, ...]:
    """Load the memories of the package; a pair is together, and the kinds of change are mixed.

    Args:
        limit: The number of memories, at least 2; by default all.
    """
    # Two at least: a measurement needs a supported and a changed memory.
    return _all() if limit is None else _all()[: max(2, limit)]


@cache
def _all() -> tuple[LabelledMemory, ...]:
    text = (resources.files("memguard") / "calibration" / PAIRS_FILE).read_text(encoding="utf-8")
    pairs = _PairsFile.model_validate(json.loads(text)).items
    return tuple(memory for pair in pairs for memory in _memories_of(pair))


def _memories_of(pair: _Pair) -> list[LabelledMemory]:
    source = Conversation(turns=pair.turns, id=f"calibration-{pair.id}")
    return [
        LabelledMemory(
            id=f"{pair.id}-{'supported' if label else 'changed'}",
            source=source,
            text=text,
            is_supported=label,
            change=pair.change,
        )
        for text, label in ((pair.supported, True), (pair.changed, False))
    ]
