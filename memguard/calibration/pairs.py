"""The labelled pairs that are shipped: short conversations, a memory of each, and a wrong twin."""

import json
from functools import cache
from importlib import resources

from memguard.schema.base import Frozen, Text
from memguard.schema.memory import Conversation, Turn

PAIRS_FILE = "pairs.json"


class LabelledMemory(Frozen):
    """A memory, its source, and whether the source supports it."""

    id: str
    """Unique within the set, for example `07-changed`."""
    source: Conversation
    """The conversation it is said to come from."""
    text: Text
    """The memory."""
    is_supported: bool
    """The label."""
    change: str
    """The detail in which the two of a pair differ: number, name, negation, ..."""


class _Item(Frozen):
    id: str
    change: str
    turns: tuple[Turn, ...]
    supported: Text
    changed: Text


class _File(Frozen):
    version: str
    about: str
    items: tuple[_Item, ...]


def load_pairs(limit: int | None = None) -> tuple[LabelledMemory, ...]:
    """The shipped memories, the two of a pair together.

    Args:
        limit: Take the first so many, at least 2; kinds of change come mixed.
    """
    return _all() if limit is None else _all()[: max(2, limit)]


@cache
def _all() -> tuple[LabelledMemory, ...]:
    text = (resources.files("memguard") / "calibration" / PAIRS_FILE).read_text(encoding="utf-8")
    items = _File.model_validate(json.loads(text)).items
    return tuple(one for item in items for one in _two(item))


def _two(item: _Item) -> tuple[LabelledMemory, LabelledMemory]:
    source = Conversation(turns=item.turns, id=f"calibration-{item.id}")
    right, wrong = (
        LabelledMemory(
            id=f"{item.id}-{'supported' if label else 'changed'}",
            source=source,
            text=text,
            is_supported=label,
            change=item.change,
        )
        for text, label in ((item.supported, True), (item.changed, False))
    )
    return right, wrong
