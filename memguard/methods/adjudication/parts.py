"""How much goes into one call: parts of many units, and long texts that are shortened. Pure."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

GAP = "\n[... cut ...]\n"
"""What stands for the middle of a text that was too long."""


def split_parts(
    items: Sequence[T],
    *,
    costs: Sequence[int],
    max_tokens: int,
    max_items: int,
    chars: Sequence[int] | None = None,
    max_chars: int = 0,
) -> tuple[tuple[T, ...], ...]:
    """Items in order, in as few parts as the limits allow; an item too large has its own part.

    Args:
        items: What is split.
        costs: Tokens of each item.
        max_tokens: Tokens of one part.
        max_items: Items of one part.
        chars: Characters of each item; not limited when left out.
        max_chars: Characters of one part.
    """
    parts: list[list[T]] = []
    room = chars_left = 0
    lengths = chars or [0] * len(items)
    for item, cost, length in zip(items, costs, lengths, strict=True):
        is_full = cost > room or length > chars_left
        if not parts or is_full or len(parts[-1]) >= max_items:
            parts.append([])
            room, chars_left = max_tokens, max_chars
        parts[-1].append(item)
        room -= cost
        chars_left -= length
    return tuple(tuple(part) for part in parts)


def clip_middle(text: str, max_chars: int) -> str:
    """The text without its middle; two thirds of the rest are its beginning.

    A document says what it is about at the beginning, and what follows from it at the end.
    """
    if len(text) <= max_chars:
        return text
    head = max(0, max_chars - len(GAP)) * 2 // 3
    tail = max(0, max_chars - len(GAP) - head)
    return text[:head] + GAP + (text[-tail:] if tail else "")


def clip_quoted(text: str, *, max_chars: int, overhead: int) -> str:
    """The text without its middle, so that its quotation has at most `max_chars`.

    Args:
        text: The text.
        max_chars: Characters of the quotation.
        overhead: Characters that the quotation has more than the text, at most.
    """
    # Quoting writes a line break as two characters, and so on, evenly enough over a text.
    share = len(text) / (len(text) + overhead)
    return clip_middle(text, int(max_chars * share * 0.9))
