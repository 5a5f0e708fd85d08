"""Checks that the details of a candidate were said of one another, and not of rivals.

Of `Monday in Rome, Tuesday in Oslo` each word of `Monday in Oslo` is stated, but not together.
`check_binding` looks at the segments of the context in which the candidate's words stand. A word
that stands only beside a rival of another word, a different number, name or thing of the same kind,
belongs to that rival. A word that is stated only to be denied (`six, not eight`) is no support.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from memguard.local.owners import Clause
from memguard.local.owners.words import RELATIONS
from memguard.local.verifier.alignment import Alignment
from memguard.local.verifier.numbers import values_of
from memguard.local.verifier.ownership import ClauseMap
from memguard.local.verifier.words import Flags, Words

Binding = Literal["bound", "misbound", "denied"]

_RIVAL_COSINE = 0.35
_REACH = 3
_REPLACED = frozenset("not instead rather except unlike longer formerly".split())
_CHANGES = frozenset("mov switch chang chan transfer relocat swap go went upgrad convert".split())


@dataclass(frozen=True, slots=True)
class BindingCheck:
    """Whether details belong together, and which do not."""

    binding: Binding
    words: tuple[str, ...] = ()


def check_binding(
    alignment: Alignment, clause_map: ClauseMap, *, claim: Sequence[Clause]
) -> BindingCheck:
    """Whether the words of a candidate stand together in the context, and are not denied there.

    Args:
        alignment: The candidate aligned with its units.
        clause_map: The clauses of these units.
        claim: The clauses of the candidate; the words of their owners are not compared.
    """
    words = alignment.fact.words
    owners = {word for clause in claim for word in re.split(r"'s | ", clause.owner)}
    owners |= {clause.name for clause in claim}
    rows = [
        int(row)
        for row in np.flatnonzero((alignment.weight > 0) & ~words.negation)
        if not owners & _names_of(words.spans[int(row)].text)
    ]
    stated = {row: _columns(alignment, row) for row in rows}
    rows = [row for row in rows if len(stated[row])]
    denied = _denied(alignment, rows, stated)
    if denied:
        return BindingCheck("denied", tuple(words.spans[row].text for row in denied))
    segments = _segments(alignment, clause_map)
    rivals = {row: _rivals(alignment, row, rows, stated) for row in rows}
    for first in rows:
        for second in rows:
            if first == second:
                continue
            if _is_misbound(first, second, stated, rivals, segments, alignment):
                pair = sorted((first, second))
                return BindingCheck("misbound", tuple(words.spans[row].text for row in pair))
    return BindingCheck("bound")


def _names_of(word: str) -> set[str]:
    low = word.lower().removesuffix("'s")
    return {low, RELATIONS["en"].get(low, low)}


def _columns(alignment: Alignment, row: int) -> NDArray[np.int64]:
    """Where the context states a word, as the same stem or the same value."""
    words = alignment.fact.words
    if not words.number[row]:
        return np.flatnonzero(alignment.same[row])
    wanted = values_of(words.readings[row])
    readings = (
        reading for source in alignment.sources for reading in source.encoded.words.readings
    )
    return np.array(
        [column for column, reading in enumerate(readings) if values_of(reading) & wanted],
        dtype=np.int64,
    )


def _segments(alignment: Alignment, clause_map: ClauseMap) -> NDArray[np.int64]:
    """The number of the segment of every context word: pauses, conjunctions and subjects end one."""
    clause = np.concatenate([source.encoded.words.clause for source in alignment.sources])
    change = (
        (np.diff(alignment.unit) != 0) | (np.diff(clause) != 0) | (np.diff(clause_map.columns) != 0)
    )
    return np.concatenate([[0], np.cumsum(change)])


def _rivals(
    alignment: Alignment,
    row: int,
    rows: list[int],
    stated: dict[int, NDArray[np.int64]],
) -> Flags:
    """Context words of the same kind as a candidate word, but different, shape (C,)."""
    words = alignment.fact.words
    sources = [source.encoded.words for source in alignment.sources]
    number = np.concatenate([source.number for source in sources])
    capital = np.concatenate([source.capital for source in sources])
    stop = np.concatenate([source.stop for source in sources])
    if words.number[row]:
        rivals = number.copy()
    elif words.capital[row]:
        rivals = capital & ~number
    else:
        rivals = ~(number | stop | capital) & (alignment.cos[row] > _RIVAL_COSINE)
    stems = [stem for source in sources for stem in source.stems]
    rivals[_beside_the_same(row, stated, stems, stop)] = True
    rivals[stated[row]] = False
    for other in rows:
        # What the candidate states as well is not a rival.
        rivals[stated[other]] = False
    return rivals


def _is_misbound(
    first: int,
    second: int,
    stated: dict[int, NDArray[np.int64]],
    rivals: dict[int, Flags],
    segments: NDArray[np.int64],
    alignment: Alignment,
) -> bool:
    """Whether `second` stands only beside rivals of `first`, and `first` beside something else."""
    own = set(segments[stated[first]].tolist())
    other = set(segments[stated[second]].tolist())
    if own & other:
        return False
    taken = set(segments[rivals[first]].tolist())
    if not other <= taken:
        return False
    # `the blue bike for me, the red one for Ida`: what comes later has a colour of its own.
    if min(other) > max(own) and _are_in_one_unit(stated[first], stated[second], alignment):
        return True
    # `I lived in Rome, then in Oslo`: the verb is shared, unless the other segment has its own.
    return own <= set(segments[rivals[second]].tolist())


def _are_in_one_unit(
    first: NDArray[np.int64], second: NDArray[np.int64], alignment: Alignment
) -> bool:
    return len(set(alignment.unit[first].tolist()) | set(alignment.unit[second].tolist())) == 1


def _beside_the_same(
    row: int, stated: dict[int, NDArray[np.int64]], stems: list[str], stop: Flags
) -> list[int]:
    """Words in the place of this one: `window seats on trains, aisle seats on planes`."""
    columns = [int(column) for column in stated[row]]
    rivals: list[int] = []
    for column in columns:
        for step in (-1, 1):
            anchor = column + step
            if not 0 <= anchor < len(stems) or stop[anchor]:
                continue
            for other, stem in enumerate(stems):
                at = other - step
                if stem == stems[anchor] and other != anchor and 0 <= at < len(stems):
                    rivals += [] if stop[at] or at in columns else [at]
    return rivals


def _denied(
    alignment: Alignment, rows: list[int], stated: dict[int, NDArray[np.int64]]
) -> list[int]:
    """Details that the context states only as what is not, or no longer, so."""
    fact = alignment.fact.words
    lowered = [span.text.lower() for span in fact.spans]
    if fact.negation.any() or {"from", "used", "instead", "left", "formerly"} & set(lowered):
        return []
    sources = [source.encoded.words for source in alignment.sources]
    texts = [span.text.lower() for source in sources for span in source.spans]
    stems = [stem for source in sources for stem in source.stems]
    clause = np.concatenate([source.clause for source in sources])
    denied = [
        row
        for row in rows
        if all(_is_replaced(int(column), texts, stems, clause) for column in stated[row])
    ]
    # A verb is shared: of `I used to work at X, now at Y` only `X` is denied.
    return denied if len(denied) == len(rows) else [row for row in denied if _is_detail(fact, row)]


def _is_detail(fact: Words, row: int) -> bool:
    return bool(fact.number[row] or fact.capital[row])


def _is_replaced(
    column: int, texts: list[str], stems: list[str], clause: NDArray[np.int64]
) -> bool:
    first = column
    while first > 0 and clause[first - 1] == clause[column] and column - first < _REACH:
        first -= 1
    before = texts[first:column]
    begin = column
    while begin > 0 and clause[begin - 1] == clause[column]:
        begin -= 1
    whole = texts[begin:column]
    if "used" in whole and "to" in whole[whole.index("used") :]:
        return True
    if _REPLACED & set(before):
        return True
    if "from" in before:
        after = texts[column + 1 : column + 4]
        changed = set(stems[max(0, column - 5) : column]) & _CHANGES
        return "to" in after and bool(changed)
    return False
