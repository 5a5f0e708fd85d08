"""Who stands beside whom: what tells `vegan for 7 years, vegetarian for 5` from its swap.

Every word of a swapped claim is there, so its neighbours must be asked: are they met where the word
was found, or would another word of its kind, a rival, stand better between them?
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memguard.local.embedder import Matrix
from memguard.local.verifier.encoded import Encoded
from memguard.local.verifier.numbers import found_in
from memguard.local.verifier.words import Flags

# Chosen by hand, not tuned. A word is looked for at its own stem first; a rival noun must be at
# least this like the word; neighbours are sought within five words.
_STEM_BONUS = 0.15
_BEST_UNIT_BONUS = 0.04
_REACH = 5
_NEIGHBOURS = 2
_TYPE_COSINE = 0.35
_NOWHERE = -1.0


@dataclass(frozen=True, slots=True, eq=False)
class Roles:
    """Where each word of a candidate was found, and how it fits there."""

    place: NDArray[np.int64]
    """Where in the pool each word is found."""
    beside: Matrix
    """How well the neighbours of each candidate word are met around that place."""
    beside_clause: Matrix
    """The same within the clause."""
    deficit: Matrix
    """How much better they are met elsewhere in the pool."""
    deficit_clause: Matrix
    """The same within the clause."""
    rival_gain: Matrix
    """How much better another word of the same kind fits between the neighbours."""
    rival_gain_clause: Matrix
    """The same within the clause."""
    rival: NDArray[np.int64]
    """Place of that word in the pool; -1 for none."""
    rival_cosine: Matrix
    """How alike the nearest word of the same kind is."""
    rival_pull: Matrix
    """How much better the one neighbour it suits best is met in the clause of such a rival."""
    clause_best: Matrix
    """Best cosine of each word within the clause of each pool word."""


def find_roles(
    fact: Encoded,
    *,
    units: Sequence[Encoded],
    near: Matrix,
    equal: Flags,
    pool: NDArray[np.int64],
    neighbours: Matrix,
) -> Roles:
    """Ask the neighbours of every word of a candidate.

    Args:
        fact: The candidate.
        units: All units.
        near: Cosines of its words with the words of the two best units, the pool.
        equal: Whether these have the same stem.
        pool: Places of the pool in the context.
        neighbours: What each word's neighbours count, from `neighbours_of`.
    """
    home = np.repeat(np.arange(len(units)), [len(each) for each in units])[pool]
    place = np.argmax(near + _STEM_BONUS * equal + _BEST_UNIT_BONUS * (home == home[0]), axis=1)
    clause_best = _clause_best(near, home, units, pool)
    around, within = neighbours @ _window_best(near, home), neighbours @ clause_best
    here, here_clause = (each[np.arange(len(fact)), place] for each in (around, within))
    elsewhere = neighbours @ near.max(axis=1)
    kind = _rivals(fact, units, near, equal, pool)
    gain = np.where(kind, around - here[:, None], -1.0)
    gain_clause = np.where(kind, within - here_clause[:, None], -1.0)
    return Roles(
        place=place,
        beside=here,
        beside_clause=here_clause,
        deficit=elsewhere - here,
        deficit_clause=elsewhere - here_clause,
        rival_gain=gain.max(axis=1),
        rival_gain_clause=gain_clause.max(axis=1),
        rival=np.where(kind.any(axis=1), np.argmax(gain + gain_clause, axis=1), -1),
        rival_cosine=np.where(kind, near, 0.0).max(axis=1),
        rival_pull=_pull(neighbours > 0, clause_best, place, kind),
        clause_best=clause_best,
    )


def _pull(beside: Flags, clause_best: Matrix, place: NDArray[np.int64], kind: Flags) -> Matrix:
    pull = np.full(len(place), -1.0, dtype=np.float32)
    for row in np.flatnonzero(kind.any(axis=1) & beside.any(axis=1)):
        met = clause_best[beside[row]]
        gains = met[:, kind[row]] - met[:, place[row]][:, None]
        pull[row] = gains.max()
    return pull


def neighbours_of(weight: Matrix) -> Matrix:
    """For every word the nearest words of weight, two on either side; rows add up to 1."""
    matrix = np.zeros((len(weight), len(weight)), dtype=np.float32)
    heavy = np.flatnonzero(weight > 0)
    for row in range(len(weight)):
        before = heavy[heavy < row][-_NEIGHBOURS:]
        after = heavy[heavy > row][:_NEIGHBOURS]
        beside = np.concatenate([before, after])
        if len(beside):
            # The nearer and the rarer neighbour says more.
            share = weight[beside] / np.sqrt(np.abs(beside - row))
            matrix[row, beside] = share / share.sum()
    return matrix


def _window_best(near: Matrix, home: NDArray[np.int64]) -> Matrix:
    """Best cosine of each candidate word within reach of each pool word, that word left out."""
    best = np.full_like(near, _NOWHERE)
    size = near.shape[1]
    for shift in range(1, min(_REACH, size - 1) + 1):
        together = home[shift:] == home[:-shift]
        right = np.where(together, near[:, shift:], _NOWHERE)
        left = np.where(together, near[:, :-shift], _NOWHERE)
        np.maximum(best[:, :-shift], right, out=best[:, :-shift])
        np.maximum(best[:, shift:], left, out=best[:, shift:])
    return np.maximum(best, 0.0)


def _clause_best(
    near: Matrix, home: NDArray[np.int64], units: Sequence[Encoded], pool: NDArray[np.int64]
) -> Matrix:
    """Best cosine of each candidate word within the clause of each pool word."""
    clause = np.concatenate([each.words.clause for each in units])[pool]
    change = np.flatnonzero((np.diff(home) != 0) | (np.diff(clause) != 0)) + 1
    starts = np.concatenate([[0], change])
    best = np.maximum.reduceat(near, starts, axis=1)
    return np.repeat(best, np.diff(np.append(starts, near.shape[1])), axis=1)


def _rivals(
    fact: Encoded,
    units: Sequence[Encoded],
    near: Matrix,
    equal: Flags,
    pool: NDArray[np.int64],
) -> Flags:
    """Pool words of the same kind as a candidate word, but not the same: number, name or noun."""
    number = np.concatenate([each.words.number for each in units])[pool]
    capital = np.concatenate([each.words.capital for each in units])[pool]
    stop = np.concatenate([each.words.stop for each in units])[pool]
    readings = [each for unit in units for each in unit.words.readings]
    words = fact.words
    plain = ~(words.number | words.capital | words.stop)
    numbers = words.number[:, None] & number[None, :]
    for row in np.flatnonzero(words.number):
        for column in np.flatnonzero(number):
            theirs = frozenset(v for option in readings[int(pool[column])] for v in option)
            numbers[row, column] &= not found_in(words.readings[int(row)], theirs)
    names = words.capital[:, None] & capital[None, :]
    nouns = plain[:, None] & ~(number | stop)[None, :] & (near > _TYPE_COSINE)
    rivals = (numbers | names | nouns) & ~equal
    # A word that the candidate states too is no rival.
    return rivals & ~(equal.any(axis=0) & ~number)[None, :]
