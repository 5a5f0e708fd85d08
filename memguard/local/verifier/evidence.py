"""Which words of a candidate were found, as what and in which turn."""

from collections.abc import Sequence

import numpy as np

from memguard.local.verifier.align import Alignment
from memguard.local.verifier.judgement import WordEvidence, WordStatus
from memguard.local.verifier.numbers import found_in
from memguard.local.verifier.units import Unit
from memguard.local.verifier.words import Flags

_LIKE = 0.4
_PULL = 0.25


def word_evidence(
    alignment: Alignment, units: Sequence[Unit], turn_ids: Sequence[str], *, start: int = 0
) -> list[WordEvidence]:
    """Evidence for every word that carries a detail.

    Args:
        alignment: The candidate over its units.
        units: The same units.
        turn_ids: Ids of the turns that the units are of.
        start: Where the candidate's sentence begins in the whole candidate.
    """
    spans = [span for each in alignment.sources for span in each.encoded.words.spans]
    pooled = np.zeros(len(spans), dtype=bool)
    pooled[alignment.pool] = True
    found: list[WordEvidence] = []
    for row in np.flatnonzero((alignment.weight > 0) | alignment.fact.words.negation):
        span = alignment.fact.words.spans[int(row)]
        column, status = _find(alignment, int(row), pooled)
        missing = status == "missing"
        turn = units[int(alignment.unit[column])].turn
        found.append(
            WordEvidence(
                word=span.text,
                start=start + span.start,
                status=status,
                source_word="" if missing else spans[column].text,
                turn_id="" if missing else turn_ids[turn],
            )
        )
    return found


def _find(alignment: Alignment, row: int, pooled: Flags) -> tuple[int, WordStatus]:
    words = alignment.fact.words
    if words.number[row]:
        columns = _with_value(alignment, row)
    else:
        columns = np.flatnonzero(alignment.same[row])
    if len(columns):
        near = columns[pooled[columns]]
        candidates = near if len(near) else columns
        column = int(candidates[np.argmax(alignment.cos[row, candidates])])
        details = words.number[row] or words.capital[row]
        misplaced = details and alignment.roles.rival_pull[row] >= _PULL
        return column, "misplaced" if misplaced else "stated"
    column = int(alignment.cos[row].argmax())
    exact = words.number[row] or words.capital[row] or words.negation[row]
    like = alignment.cos[row, column] >= _LIKE and not exact
    return column, "reworded" if like else "missing"


def _with_value(alignment: Alignment, row: int) -> np.ndarray:
    """Places whose own values hold an option of the candidate's number, or a part of its date."""
    readings = [each for source in alignment.sources for each in source.encoded.words.readings]
    wanted = alignment.fact.words.readings[row]
    values = [frozenset(value for option in each for value in option) for each in readings]
    whole = [index for index, each in enumerate(values) if found_in(wanted, each)]
    if not whole and found_in(wanted, frozenset[str]().union(*values)):
        # `1990-03-03` is found in the three words of `3 March 1990`.
        parts = frozenset[str]().union(*wanted)
        whole = [index for index, each in enumerate(values) if each & parts]
    return np.array(whole, dtype=np.int64)
