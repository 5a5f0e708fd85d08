"""Splits a candidate into sentences, so that one wrong sentence is not averaged away by others."""

import re
from dataclasses import dataclass

from memguard.local.verifier.units import split_text
from memguard.local.verifier.words import split_words

SENTENCE_WORDS = 40
"""Maximum number of words in a piece; a longer sentence is split."""

_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])|\n+")
_MIN_WORDS = 3
# A full stop after one of these ends no sentence.
_TITLES = ("mr.", "mrs.", "ms.", "dr.", "st.", "prof.", "e.g.", "i.e.", "vs.", "no.")


@dataclass(frozen=True)
class Sentence:
    """One piece of a candidate."""

    text: str
    """The piece."""
    start: int
    """Offset in the candidate, in characters."""


def split_candidate(text: str) -> list[Sentence]:
    """Split a candidate into sentences; one of fewer than three words stays with its neighbour.

    Args:
        text: The candidate.

    Returns:
        The pieces in order; none for a text without words.
    """
    starts = [0]
    for hit in _END.finditer(text):
        before = text[: hit.start()].lower()
        long = len(split_words(text[starts[-1] : hit.start()])) >= _MIN_WORDS
        if long and not before.endswith(_TITLES) and not _ends_in_initial(before):
            starts.append(hit.end())
    if len(starts) > 1 and len(split_words(text[starts[-1] :])) < _MIN_WORDS:
        starts.pop()
    pieces: list[Sentence] = []
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        offset = start
        for piece in split_text(text[start:end], limit=SENTENCE_WORDS):
            # Searched for from the piece before, since a sentence may repeat its own words.
            offset = max(offset, text.find(piece, offset, end))
            if split_words(piece):
                pieces.append(Sentence(text=piece, start=offset))
            offset += len(piece)
    return pieces


def _ends_in_initial(before: str) -> bool:
    """Whether a text ends in an initial, as in `J. Smith`."""
    return re.search(r"(?:^|\s)\w\.$", before) is not None
