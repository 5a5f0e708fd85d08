"""Checks that the details of a candidate were said of one another, and not of rivals.

Of `Monday in Rome, Tuesday in Oslo` each word of `Monday in Oslo` is stated, but not together.
`check_binding` looks at the segments of the context in which the candidate's words stand. A word
that stands only beside a rival of another word, a different number, name or thing of the same kind,
belongs to that rival. A word that is stated only to be denied (`six, not eight`) is no support.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from memguard.local.owners import Clause
from memguard.local.owners.words import RELATIONS, word_set
from memguard.local.verifier.alignment import Alignment
from memguard.local.verifier.numbers import values_of
from memguard.local.verifier.ownership import ClauseMap
from memguard.local.verifier.words import Flags, Words

Binding = Literal["bound", "misbound", "denied"]

_RIVAL_COSINE = 0.45
_REACH = 3
_MAX_SHORT = 6
"""Content words of a candidate whose plain words are compared, too."""
_REPLACED = word_set("not instead rather except unlike longer formerly")
_CHANGES = word_set("mov switch chang chan transfer relocat swap go went upgrad convert trad")
_RETURNS = word_set("go went")
_UNDENIED = word_set("from used instead left formerly")
"""A candidate with one of these may state what is no longer so."""


@dataclass(frozen=True, slots=True)
class BindingCheck:
    """Whether details belong together, and which do not."""

    binding: Binding
    """`misbound`: they are stated of different things. `denied`: one is stated as not so."""
    words: tuple[str, ...] = ()
    """The words that are not bound, or are denied."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a word of the candidate stands in the context."""

    columns: list[int]
    segments: frozenset[int]
    sentences: frozenset[int]
    rivals: frozenset[int] = field(default_factory=frozenset[int])
    """Segments with a rival of the word."""


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
    rows = [row for row in rows if stated[row]]
    denied = _denied(alignment, rows, stated)
    if denied:
        return BindingCheck("denied", tuple(words.spans[row].text for row in denied))
    places = _places(alignment, clause_map, rows, stated)
    is_short = len(rows) <= _MAX_SHORT
    for first in rows:
        # In a long sentence, words without a number or name are near to too much.
        if not is_short and not _is_detail(words, first):
            continue
        for second in rows:
            if first != second and _is_misbound(words, first, second, places):
                pair = sorted((first, second))
                return BindingCheck("misbound", tuple(words.spans[row].text for row in pair))
    return BindingCheck("bound")


def _names_of(word: str) -> set[str]:
    low = word.lower().removesuffix("'s")
    return {low, RELATIONS["en"].get(low, low)}


def _columns(alignment: Alignment, row: int) -> list[int]:
    """Where the context states a word, as the same stem or the same value."""
    words = alignment.fact.words
    if not words.number[row]:
        return [int(column) for column in np.flatnonzero(alignment.same[row])]
    wanted = values_of(words.readings[row])
    readings = (
        reading for source in alignment.sources for reading in source.encoded.words.readings
    )
    return [
        column for column, reading in enumerate(readings) if reading and values_of(reading) & wanted
    ]


def _places(
    alignment: Alignment,
    clause_map: ClauseMap,
    rows: list[int],
    stated: dict[int, list[int]],
) -> dict[int, _Place]:
    segments = _segments(alignment, clause_map)
    sources = [source.encoded.words for source in alignment.sources]
    stop = np.concatenate([source.stop for source in sources])
    number = np.concatenate([source.number for source in sources])
    capital = np.concatenate([source.capital for source in sources])
    stems = [stem for source in sources for stem in source.stems]
    positions: defaultdict[str, list[int]] = defaultdict(list)
    for at, stem in enumerate(stems):
        positions[stem].append(at)
    # What the candidate states as well is not a rival.
    claimed = np.zeros(len(stems), dtype=bool)
    claimed[[column for columns in stated.values() for column in columns]] = True
    words = alignment.fact.words
    places: dict[int, _Place] = {}
    for row in rows:
        if words.number[row]:
            rivals = number.copy()
        elif words.capital[row]:
            rivals = capital & ~number
        else:
            rivals = ~(number | stop | capital) & (alignment.cos[row] > _RIVAL_COSINE)
        rivals[_beside_the_same(stated[row], stems, positions, stop)] = True
        places[row] = _Place(
            columns=stated[row],
            segments=frozenset(segments[stated[row]].tolist()),
            sentences=frozenset(clause_map.sentences[stated[row]].tolist()),
            rivals=frozenset(segments[rivals & ~claimed].tolist()),
        )
    return places


def _segments(alignment: Alignment, clause_map: ClauseMap) -> NDArray[np.int64]:
    """The number of the segment of every context word: pauses and subjects begin one."""
    clause = np.concatenate([source.encoded.words.clause for source in alignment.sources])
    change = (
        (np.diff(alignment.unit) != 0) | (np.diff(clause) != 0) | (np.diff(clause_map.columns) != 0)
    )
    return np.concatenate([[0], np.cumsum(change)])


def _beside_the_same(
    columns: list[int], stems: list[str], positions: Mapping[str, list[int]], stop: Flags
) -> list[int]:
    """Words in the place of this one: `window seats on trains, aisle seats on planes`."""
    rivals: list[int] = []
    for column in columns:
        for step in (-1, 1):
            anchor = column + step
            if not 0 <= anchor < len(stems) or stop[anchor]:
                continue
            others = (at - step for at in positions[stems[anchor]] if at != anchor)
            rivals += [at for at in others if 0 <= at < len(stems) and not stop[at]]
    return rivals


def _is_misbound(words: Words, first: int, second: int, places: dict[int, _Place]) -> bool:
    """Whether `second` stands only beside rivals of `first`, and `first` beside something else."""
    one, two = places[first], places[second]
    if one.segments & two.segments or not two.segments <= one.rivals:
        return False
    together = len(one.sentences | two.sentences) == 1
    # `the blue bike for me, the red one for Ida`: what comes later has a colour of its own.
    if together and min(two.segments) > max(one.segments):
        return True
    # `I lived in Rome, then in Oslo`: the verb is shared, unless the other segment has its own.
    return (together or _is_detail(words, first)) and one.segments <= two.rivals


def _denied(alignment: Alignment, rows: list[int], stated: dict[int, list[int]]) -> list[int]:
    """Details that the context states only as what is not, or no longer, so."""
    fact = alignment.fact.words
    if fact.negation.any() or _UNDENIED & {span.text.lower() for span in fact.spans}:
        return []
    sources = [source.encoded.words for source in alignment.sources]
    texts = [span.text.lower() for source in sources for span in source.spans]
    if not (_REPLACED | {"from", "used"}) & set(texts):
        return []
    stems = [stem for source in sources for stem in source.stems]
    clause = [int(number) for source in sources for number in source.clause]
    denied = [
        row
        for row in rows
        if all(_is_replaced(column, texts, stems, clause) for column in stated[row])
    ]
    # A verb is shared: of `I used to work at X, now at Y` only `X` is denied.
    return denied if len(denied) == len(rows) else [row for row in denied if _is_detail(fact, row)]


def _is_detail(fact: Words, row: int) -> bool:
    return bool(fact.number[row] or fact.capital[row])


def _is_replaced(column: int, texts: list[str], stems: list[str], clause: list[int]) -> bool:
    begin = column
    while begin > 0 and clause[begin - 1] == clause[column]:
        begin -= 1
    whole = texts[begin:column]
    if "used" in whole and "to" in whole[whole.index("used") :]:
        return True
    before = whole[-_REACH:]
    if _REPLACED & set(before):
        return True
    if "from" in before and "to" not in before:
        changed = set(stems[max(0, column - 5) : column]) & _CHANGES
        # `I just moved here from Oslo`: one who goes from a place may come back to it.
        return bool(changed - _RETURNS) or (
            bool(changed) and "to" in texts[column + 1 : column + 4]
        )
    return False
