"""The context as text units: turns with their speaker's label, long turns in pieces."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from memguard.local.verifier.align import Alignment, EncodedUnit, align
from memguard.local.verifier.encoded import EncodedText
from memguard.local.verifier.words import Flags, split_words, stem

UNIT_WORDS = 80
"""Maximum number of words in a unit; a longer turn is split, at sentence ends if possible."""

# A label that begins with one of these is recognised only as a whole: `Speaker 1`, `The user`.
_GENERIC = frozenset({"speaker", "user", "assistant", "system", "tool", "the", "mr", "mrs", "dr"})


@dataclass(frozen=True, slots=True)
class TextUnit:
    """A turn, or a piece of a long one."""

    speaker: str
    """Label of the speaker; empty if unknown."""
    text: str
    """The text without the label."""
    turn: int = 0
    """Index of the turn, from 0."""
    at: date | None = None
    """When it was said."""

    @property
    def labelled(self) -> str:
        """The text that is encoded: `Ana: I left`."""
        return f"{self.speaker}: {self.text}" if self.speaker else self.text

    @property
    def label_words(self) -> int:
        """How many words of `labelled` are the label."""
        return len(split_words(self.speaker))


def split_text(text: str, *, limit: int = UNIT_WORDS) -> list[str]:
    """Split a text into pieces of at most `limit` words, at sentence ends if possible.

    Args:
        text: Any text.
        limit: Maximum number of words in a piece.
    """
    spans = split_words(text)
    if len(spans) <= limit:
        return [text]
    pieces: list[str] = []
    first = 0
    while first < len(spans):
        last = min(first + limit, len(spans))
        if last < len(spans):
            # Not in the first third, or a short first sentence would be a piece of its own.
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
    """Find whom a claim is about: the speaker's label that it mentions first.

    Args:
        claim: The claim.
        labels: The labels of the context's speakers.
        named: The subject according to the writer; used if the claim mentions no label.

    Returns:
        A mask of the claim's words that are the name, and the label; an empty label if none is
        mentioned.
    """
    stems = [stem(span.text) for span in split_words(claim)]
    mask = np.zeros(len(stems), dtype=bool)
    first: tuple[int, str, int] | None = None
    for label in dict.fromkeys(filter(None, labels)):
        parts = [stem(span.text) for span in split_words(label)]
        if parts and parts[0] not in _GENERIC:
            # The first name is enough: a claim about `Ana` matches the label `Ana Lima`.
            parts = parts[:1]
        start = _find(stems, parts)
        if start is not None and (first is None or start < first[0]):
            first = (start, label, len(parts))
    if first is not None:
        mask[first[0] : first[0] + first[2]] = True
        return mask, first[1]
    same = [label for label in labels if label and label.lower() == named.lower()]
    return mask, same[0] if same else ""


def _find(stems: Sequence[str], parts: Sequence[str]) -> int | None:
    for start in range(len(stems) - len(parts) + 1):
        if parts and list(stems[start : start + len(parts)]) == list(parts):
            return start
    return None


def align_claim(
    claim: EncodedText,
    units: Sequence[TextUnit],
    encoded: Sequence[EncodedText],
    *,
    named: str = "",
) -> Alignment:
    """Align a claim with units, and mark the units spoken by its subject.

    Args:
        claim: The claim, encoded.
        units: The units.
        encoded: The same units, encoded.
        named: The subject according to the writer.
    """
    mask, subject = find_subject(claim.text, [unit.speaker for unit in units], named=named)
    sources = [
        EncodedUnit(
            encoded=vectors,
            by_subject=not subject or not unit.speaker or unit.speaker == subject,
        )
        for unit, vectors in zip(units, encoded, strict=True)
    ]
    return align(claim, sources, subject=mask)
