"""How much goes into one call: tokens estimated, units in parts, evidence clipped."""

from collections.abc import Sequence
from typing import TypeVar

from memguard.schema.read import Evidence

T = TypeVar("T")

_BYTES_PER_TOKEN = 4
_GAP = "\n[... cut ...]\n"


def estimate_tokens(text: str) -> int:
    """Approximate tokens of a text: one per four bytes of UTF-8, rounded up, without a tokenizer.

    English has about four letters a token; a Chinese character, of three bytes, counts as 0.75.
    """
    return -(-len(text.encode()) // _BYTES_PER_TOKEN)


def split_parts(
    items: Sequence[T], *, costs: Sequence[int], max_tokens: int, max_items: int
) -> tuple[tuple[T, ...], ...]:
    """Items in order, in as few parts as the limits allow; an item too large has its own part."""
    parts: list[list[T]] = []
    room = 0
    for item, cost in zip(items, costs, strict=True):
        if not parts or cost > room or len(parts[-1]) >= max_items:
            parts.append([])
            room = max_tokens
        parts[-1].append(item)
        room -= cost
    return tuple(tuple(part) for part in parts)


def clip_evidence(
    evidence: Sequence[Evidence], *, max_chars: int
) -> tuple[tuple[Evidence, ...], bool]:
    """The evidence within a limit, and whether anything was clipped.

    Short texts stay whole. The rest share the remaining room and lose their middle, because
    documents say what they are about at the beginning and what follows from it at the end.
    """
    texts = [entry for entry in evidence if entry.text.strip()]
    room, shares = max_chars, dict[int, int]()
    # The shortest first: what it does not use of its share goes to the longer ones.
    by_length = sorted(range(len(texts)), key=lambda index: len(texts[index].text))
    for number, index in enumerate(by_length):
        shares[index] = min(len(texts[index].text), room // (len(texts) - number))
        room -= shares[index]
    clipped = tuple(_clip(entry, shares[index]) for index, entry in enumerate(texts))
    return clipped, any(len(entry.text) > shares[index] for index, entry in enumerate(texts))


def _clip(evidence: Evidence, share: int) -> Evidence:
    if len(evidence.text) <= share:
        return evidence
    head = max(0, share - len(_GAP)) * 2 // 3
    tail = max(0, share - len(_GAP) - head)
    text = evidence.text[:head] + _GAP + (evidence.text[-tail:] if tail else "")
    return evidence.model_copy(update={"text": text})
