"""Word evidence for people: which words of a candidate were found, how, and in which turn."""

from collections.abc import Sequence

import numpy as np

from memguard.local.verifier.align import Alignment
from memguard.local.verifier.judgement import WordEvidence, WordStatus
from memguard.local.verifier.numbers import is_stated
from memguard.local.verifier.units import TextUnit
from memguard.local.verifier.words import Flags

# Shown to readers only: neither threshold enters the score. Chosen by hand.
_REWORDED_COSINE = 0.4
_MISPLACED_PULL = 0.25


def word_evidence(
    alignment: Alignment, units: Sequence[TextUnit], turn_ids: Sequence[str], *, start: int = 0
) -> list[WordEvidence]:
    """Evidence for every word that carries a detail.

    Args:
        alignment: The candidate's sentence, aligned with `units`.
        units: The units, in the order of the alignment.
        turn_ids: Ids of the turns, indexed by `TextUnit.turn`.
        start: Offset of the sentence in the whole candidate, in characters.
    """
    spans = [span for unit in alignment.sources for span in unit.encoded.words.spans]
    pooled = np.zeros(len(spans), dtype=bool)
    pooled[alignment.pool] = True
    evidence: list[WordEvidence] = []
    for row in np.flatnonzero((alignment.weight > 0) | alignment.fact.words.negation):
        span = alignment.fact.words.spans[int(row)]
        column, status = _find(alignment, int(row), pooled)
        missing = status == "missing"
        turn = units[int(alignment.unit[column])].turn
        evidence.append(
            WordEvidence(
                word=span.text,
                start=start + span.start,
                status=status,
                source_word="" if missing else spans[column].text,
                turn_id="" if missing else turn_ids[turn],
            )
        )
    return evidence


def _find(alignment: Alignment, row: int, pooled: Flags) -> tuple[int, WordStatus]:
    words = alignment.fact.words
    if words.number[row]:
        columns = _with_value(alignment, row)
    else:
        columns = np.flatnonzero(alignment.same[row])
    if len(columns):
        # Prefer the two best units: another turn may use the same word in another sense.
        near = columns[pooled[columns]]
        candidates = near if len(near) else columns
        column = int(candidates[np.argmax(alignment.cos[row, candidates])])
        details = words.number[row] or words.capital[row]
        misplaced = details and alignment.roles.rival_pull[row] >= _MISPLACED_PULL
        return column, "misplaced" if misplaced else "stated"
    column = int(alignment.cos[row].argmax())
    # "Lyon" is near to "Paris" as a vector: a number, a name or a negation must be there itself.
    exact = words.number[row] or words.capital[row] or words.negation[row]
    similar = alignment.cos[row, column] >= _REWORDED_COSINE and not exact
    return column, "reworded" if similar else "missing"


def _with_value(alignment: Alignment, row: int) -> np.ndarray:
    """Positions of context words that state the candidate's number, or a part of its date."""
    readings = [
        reading for source in alignment.sources for reading in source.encoded.words.readings
    ]
    wanted = alignment.fact.words.readings[row]
    values = [frozenset(value for option in reading for value in option) for reading in readings]
    matches = [index for index, stated in enumerate(values) if is_stated(wanted, stated)]
    if not matches and is_stated(wanted, frozenset[str]().union(*values)):
        # `1990-03-03` is found in the three words of `3 March 1990`.
        parts = frozenset[str]().union(*wanted)
        matches = [index for index, stated in enumerate(values) if stated & parts]
    return np.array(matches, dtype=np.int64)
