"""Whether the words of a candidate were found next to the words they belong to.

This tells `vegan for 7 years, vegetarian for 5` from the same sentence with the numbers swapped.
Every word of a swapped claim is in the context, so its neighbours decide: are they found near the
word too, or near another word of the same kind, a rival?

In the shapes, F is the number of candidate words and P the number of pool words, which are the
words of the two best units.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memguard.local.embedder import Matrix
from memguard.local.verifier.encoded import EncodedText
from memguard.local.verifier.numbers import is_stated
from memguard.local.verifier.words import Flags

# Chosen by hand, not tuned. The bonuses prefer a word with the same stem, and the best unit. A
# rival noun needs a cosine of `_TYPE_COSINE`; neighbours are searched within `_REACH` words.
_STEM_BONUS = 0.15
_BEST_UNIT_BONUS = 0.04
_REACH = 5
_NEIGHBOURS = 2
_TYPE_COSINE = 0.35
_NOWHERE = -1.0


@dataclass(frozen=True, slots=True, eq=False)
class Roles:
    """Where each word of a candidate was found, and how well its neighbours match there.

    All arrays but `clause_best` have the shape (F,).
    """

    position: NDArray[np.int64]
    """Index in the pool of the word that matches."""
    fit: Matrix
    """Weighted mean cosine of the word's neighbours with the words near that position."""
    fit_clause: Matrix
    """The same with the words of the clause at that position."""
    deficit: Matrix
    """How much better the neighbours match anywhere in the pool than near that position."""
    deficit_clause: Matrix
    """How much better they match anywhere in the pool than in the clause at that position."""
    rival_gain: Matrix
    """How much better the neighbours match near the best rival; -1 without a rival."""
    rival_gain_clause: Matrix
    """The same in the clause of the rival."""
    rival: NDArray[np.int64]
    """Index of the best rival in the pool; -1 without one."""
    rival_cosine: Matrix
    """Highest cosine of the word with a rival; 0 without one."""
    rival_pull: Matrix
    """Largest gain of a single neighbour in the clause of a rival; -1 without a rival."""
    clause_best: Matrix
    """Best cosine of each word within the clause of each pool word, shape (F, P)."""


def find_roles(
    fact: EncodedText,
    *,
    units: Sequence[EncodedText],
    near: Matrix,
    equal: Flags,
    pool: NDArray[np.int64],
    neighbours: Matrix,
) -> Roles:
    """Compare the neighbours of every candidate word with those of the word it was matched with.

    Args:
        fact: The candidate.
        units: All units of the context.
        near: Cosines of its words with the pool words, shape (F, P).
        equal: Whether the two have the same stem, shape (F, P).
        pool: Positions of the pool words in the context, shape (P,).
        neighbours: Weights of each word's neighbours from `neighbours_of`, shape (F, F).
    """
    unit_of = np.repeat(np.arange(len(units)), [len(unit) for unit in units])[pool]
    # The pool begins with the best unit.
    bonus = _STEM_BONUS * equal + _BEST_UNIT_BONUS * (unit_of == unit_of[0])
    position = np.argmax(near + bonus, axis=1)
    clause_best = _clause_best(near, unit_of, units, pool)
    around, within = neighbours @ _window_best(near, unit_of), neighbours @ clause_best
    rows = np.arange(len(fact))
    fit, fit_clause = around[rows, position], within[rows, position]
    elsewhere = neighbours @ near.max(axis=1)
    kind = _rivals(fact, units, near, equal, pool)
    gain = np.where(kind, around - fit[:, None], -1.0)
    gain_clause = np.where(kind, within - fit_clause[:, None], -1.0)
    return Roles(
        position=position,
        fit=fit,
        fit_clause=fit_clause,
        deficit=elsewhere - fit,
        deficit_clause=elsewhere - fit_clause,
        rival_gain=gain.max(axis=1),
        rival_gain_clause=gain_clause.max(axis=1),
        rival=np.where(kind.any(axis=1), np.argmax(gain + gain_clause, axis=1), -1),
        rival_cosine=np.where(kind, near, 0.0).max(axis=1),
        rival_pull=_pull(neighbours > 0, clause_best, position, kind),
        clause_best=clause_best,
    )


def _pull(
    neighbours: Flags, clause_best: Matrix, position: NDArray[np.int64], kind: Flags
) -> Matrix:
    pull = np.full(len(position), -1.0, dtype=np.float32)
    for row in np.flatnonzero(kind.any(axis=1) & neighbours.any(axis=1)):
        # By single neighbour: in a mean, the one that was swapped hides behind those that were not.
        cosines = clause_best[neighbours[row]]
        gains = cosines[:, kind[row]] - cosines[:, position[row]][:, None]
        pull[row] = gains.max()
    return pull


def neighbours_of(weight: Matrix) -> Matrix:
    """Weights of each word's neighbours, the two nearest weighted words on either side.

    Returns:
        Shape (F, F); a row adds up to 1, or to 0 for a word without neighbours.
    """
    matrix = np.zeros((len(weight), len(weight)), dtype=np.float32)
    heavy = np.flatnonzero(weight > 0)
    for row in range(len(weight)):
        before = heavy[heavy < row][-_NEIGHBOURS:]
        after = heavy[heavy > row][:_NEIGHBOURS]
        neighbours = np.concatenate([before, after])
        if len(neighbours):
            # A neighbour that is nearer or rarer says more about where the word belongs.
            share = weight[neighbours] / np.sqrt(np.abs(neighbours - row))
            matrix[row, neighbours] = share / share.sum()
    return matrix


def _window_best(near: Matrix, unit_of: NDArray[np.int64]) -> Matrix:
    """Best cosine of each candidate word with the words around each pool word, shape (F, P)."""
    best = np.full_like(near, _NOWHERE)
    size = near.shape[1]
    for shift in range(1, min(_REACH, size - 1) + 1):
        same_unit = unit_of[shift:] == unit_of[:-shift]
        after = np.where(same_unit, near[:, shift:], _NOWHERE)
        before = np.where(same_unit, near[:, :-shift], _NOWHERE)
        np.maximum(best[:, :-shift], after, out=best[:, :-shift])
        np.maximum(best[:, shift:], before, out=best[:, shift:])
    return np.maximum(best, 0.0)


def _clause_best(
    near: Matrix, unit_of: NDArray[np.int64], units: Sequence[EncodedText], pool: NDArray[np.int64]
) -> Matrix:
    """Best cosine of each candidate word within the clause of each pool word, shape (F, P)."""
    clause = np.concatenate([unit.words.clause for unit in units])[pool]
    # Clauses are numbered within their unit, so a new unit begins a new one too.
    change = np.flatnonzero((np.diff(unit_of) != 0) | (np.diff(clause) != 0)) + 1
    starts = np.concatenate([[0], change])
    best = np.maximum.reduceat(near, starts, axis=1)
    return np.repeat(best, np.diff(np.append(starts, near.shape[1])), axis=1)


def _rivals(
    fact: EncodedText,
    units: Sequence[EncodedText],
    near: Matrix,
    equal: Flags,
    pool: NDArray[np.int64],
) -> Flags:
    """Other pool words of the same kind as a candidate word: number, name or noun, shape (F, P)."""
    number = np.concatenate([unit.words.number for unit in units])[pool]
    capital = np.concatenate([unit.words.capital for unit in units])[pool]
    stop = np.concatenate([unit.words.stop for unit in units])[pool]
    readings = [reading for unit in units for reading in unit.words.readings]
    words = fact.words
    plain = ~(words.number | words.capital | words.stop)
    numbers = words.number[:, None] & number[None, :]
    # The same value in other words, `seven` for `7`, is a match and no rival.
    for row in np.flatnonzero(words.number):
        for column in np.flatnonzero(number):
            stated = frozenset(v for option in readings[int(pool[column])] for v in option)
            numbers[row, column] &= not is_stated(words.readings[int(row)], stated)
    names = words.capital[:, None] & capital[None, :]
    nouns = plain[:, None] & ~(number | stop)[None, :] & (near > _TYPE_COSINE)
    rivals = (numbers | names | nouns) & ~equal
    # A word that the candidate states as well is not a rival.
    return rivals & ~(equal.any(axis=0) & ~number)[None, :]
