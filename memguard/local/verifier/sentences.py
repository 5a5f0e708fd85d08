"""A candidate as sentences, so that one wrong sentence among many is not averaged away."""

import re
from dataclasses import dataclass

from memguard.local.verifier.units import cut_text
from memguard.local.verifier.words import split_words

SENTENCE_WORDS = 40
"""Words of one piece at most; a longer sentence is cut."""

_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])|\n+")
_SHORTEST = 3
_TITLES = ("mr.", "mrs.", "ms.", "dr.", "st.", "prof.", "e.g.", "i.e.", "vs.", "no.")


@dataclass(frozen=True)
class Sentence:
    """One piece of a candidate."""

    text: str
    """The piece."""
    start: int
    """Where it begins in the candidate."""


def cut_candidate(text: str) -> list[Sentence]:
    """Sentences of at least three words; shorter ones stay with the one before.

    Args:
        text: The candidate.
    """
    cuts = [0]
    for hit in _END.finditer(text):
        before = text[: hit.start()].lower()
        long = len(split_words(text[cuts[-1] : hit.start()])) >= _SHORTEST
        if long and not before.endswith(_TITLES) and _initial(before) is None:
            cuts.append(hit.end())
    if len(cuts) > 1 and len(split_words(text[cuts[-1] :])) < _SHORTEST:
        cuts.pop()
    pieces: list[Sentence] = []
    for start, end in zip(cuts, [*cuts[1:], len(text)], strict=True):
        place = start
        for piece in cut_text(text[start:end], limit=SENTENCE_WORDS):
            place = max(place, text.find(piece, place, end))
            if split_words(piece):
                pieces.append(Sentence(text=piece, start=place))
            place += len(piece)
    return pieces


def _initial(before: str) -> re.Match[str] | None:
    """`J. Smith`: a single letter before the full stop."""
    return re.search(r"(?:^|\s)\w\.$", before)
