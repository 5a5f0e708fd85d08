"""How much goes into one call: tokens estimated, units in parts, evidence cut to size."""

from collections.abc import Sequence
from typing import TypeVar

from memguard.schema.read import Evidence

T = TypeVar("T")

_BYTES_PER_TOKEN = 4
_CUT = "\n[... cut ...]\n"


def estimate_tokens(text: str) -> int:
    """Tokens of a text, about: a token per four bytes of UTF-8, rounded up. No tokenizer is asked.

    English has about four letters a token; a Chinese character, of three bytes, counts as 0.75.
    """
    return -(-len(text.encode()) // _BYTES_PER_TOKEN)


def split_parts(
    things: Sequence[T], *, costs: Sequence[int], most_tokens: int, most_things: int
) -> tuple[tuple[T, ...], ...]:
    """Things in order, in as few parts as the limits allow; a thing too large has its own part."""
    parts: list[list[T]] = []
    room = 0
    for thing, cost in zip(things, costs, strict=True):
        if not parts or cost > room or len(parts[-1]) >= most_things:
            parts.append([])
            room = most_tokens
        parts[-1].append(thing)
        room -= cost
    return tuple(tuple(part) for part in parts)


def clip_evidence(
    evidence: Sequence[Evidence], *, most_chars: int
) -> tuple[tuple[Evidence, ...], bool]:
    """The evidence within a limit, and whether anything was cut.

    Short texts are kept whole; the rest share what is left, each cut in its middle, because
    documents say what they are about at the beginning and what follows from it at the end.
    """
    said = [each for each in evidence if each.text.strip()]
    left, shares = most_chars, dict[int, int]()
    by_length = sorted(range(len(said)), key=lambda place: len(said[place].text))
    for number, place in enumerate(by_length):
        shares[place] = min(len(said[place].text), left // (len(said) - number))
        left -= shares[place]
    clipped = tuple(_clip(each, shares[place]) for place, each in enumerate(said))
    return clipped, any(len(each.text) > shares[place] for place, each in enumerate(said))


def _clip(evidence: Evidence, share: int) -> Evidence:
    if len(evidence.text) <= share:
        return evidence
    head = max(0, share - len(_CUT)) * 2 // 3
    tail = max(0, share - len(_CUT) - head)
    text = evidence.text[:head] + _CUT + (evidence.text[-tail:] if tail else "")
    return evidence.model_copy(update={"text": text})
