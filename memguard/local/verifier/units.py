"""The context as units: turns with their speaker's label, long turns in pieces."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from memguard.local.verifier.align import Alignment, Source, align
from memguard.local.verifier.encoded import Encoded
from memguard.local.verifier.words import Flags, split_words, stem

UNIT_WORDS = 80
"""Words of one unit at most; a longer turn is cut, at sentence ends where it can be."""

_GENERIC = frozenset({"speaker", "user", "assistant", "system", "tool", "the", "mr", "mrs", "dr"})


@dataclass(frozen=True, slots=True)
class Unit:
    """A turn, or a piece of a long one."""

    speaker: str
    """Who said it; empty when nobody knows."""
    text: str
    """What was said."""
    turn: int = 0
    """Which turn it is of, counted from 0."""
    at: date | None = None
    """When it was said."""

    @property
    def labelled(self) -> str:
        """The text as it is encoded."""
        return f"{self.speaker}: {self.text}" if self.speaker else self.text

    @property
    def label_words(self) -> int:
        """How many words of that are the label."""
        return len(split_words(self.speaker))


def cut_text(text: str, *, limit: int = UNIT_WORDS) -> list[str]:
    """Pieces of at most so many words, cut at sentence ends where there are any.

    Args:
        text: Any text.
        limit: Words of one piece at most.
    """
    spans = split_words(text)
    if len(spans) <= limit:
        return [text]
    pieces: list[str] = []
    first = 0
    while first < len(spans):
        last = min(first + limit, len(spans))
        if last < len(spans):
            ends = [
                index
                for index in range(first + limit // 3, last)
                if any(mark in text[spans[index].end : spans[index + 1].start] for mark in ".!?\n")
            ]
            last = ends[-1] + 1 if ends else last
        stop = spans[last].start if last < len(spans) else len(text)
        start = spans[first].start if first else 0
        pieces.append(text[start:stop].strip())
        first = last
    return pieces


def find_subject(claim: str, labels: Sequence[str], *, named: str = "") -> tuple[Flags, str]:
    """Whom a claim is about: the speaker's label that it names first.

    Args:
        claim: The claim.
        labels: The labels of the context.
        named: Whom the writer says it is about; counts when the claim names no label.

    Returns:
        Which words of the claim are the name, and the label; empty when nobody is named.
    """
    stems = [stem(span.text) for span in split_words(claim)]
    mask = np.zeros(len(stems), dtype=bool)
    found: tuple[int, str, int] | None = None
    for label in dict.fromkeys(each for each in labels if each):
        parts = [stem(span.text) for span in split_words(label)]
        if parts and parts[0] not in _GENERIC:
            # `Ana` is found for the label `Ana Lima`; `Speaker` alone is nobody.
            parts = parts[:1]
        place = _find(stems, parts)
        if place is not None and (found is None or place < found[0]):
            found = (place, label, len(parts))
    if found is not None:
        mask[found[0] : found[0] + found[2]] = True
        return mask, found[1]
    same = [each for each in labels if each and each.lower() == named.lower()]
    return mask, same[0] if same else ""


def _find(stems: Sequence[str], parts: Sequence[str]) -> int | None:
    for place in range(len(stems) - len(parts) + 1):
        if parts and list(stems[place : place + len(parts)]) == list(parts):
            return place
    return None


def lay_over(
    claim: Encoded, units: Sequence[Unit], encoded: Sequence[Encoded], *, named: str = ""
) -> Alignment:
    """Lay a claim over units, with the turns of its subject told apart.

    Args:
        claim: The claim, encoded.
        units: The units.
        encoded: The same, encoded.
        named: Whom the writer says the claim is about.
    """
    mask, subject = find_subject(claim.text, [unit.speaker for unit in units], named=named)
    sources = [
        Source(encoded=each, own=not subject or not unit.speaker or unit.speaker == subject)
        for unit, each in zip(units, encoded, strict=True)
    ]
    return align(claim, sources, subject=mask)
