"""Aligns the words of a candidate with those of its context, by the cosines of their vectors.

`align` finds the two units that match best. Their words form the pool in which each candidate word
is located. `Roles` says whether the neighbours of a word are near that position too, or fit better
near a rival: another word of the same kind. `clause_columns` compares the clauses on both sides.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memguard.local.encoder import Matrix
from memguard.local.verifier.encoded import EncodedText
from memguard.local.verifier.numbers import is_stated, values_of
from memguard.local.verifier.words import Flags

COLUMNS = 15
"""How many columns `clause_columns` returns."""

# Chosen by hand, not tuned. The bonuses prefer units that the candidate's subject spoke, words with
# the same stem, and words of the best unit. A rival noun needs a cosine of `_TYPE_COSINE`;
# neighbours are searched within `_REACH` words.
_SUBJECT_BONUS = 0.04
_STEM_BONUS = 0.15
_BEST_UNIT_BONUS = 0.04
_REACH = 5
_NEIGHBOURS = 2
_TYPE_COSINE = 0.35
_NOWHERE = -1.0
# Multiplications in one piece: safely below the size at which OpenBLAS starts its threads.
_MAX_MULTIPLICATIONS = 200_000


@dataclass(frozen=True, slots=True, eq=False)
class EncodedUnit:
    """One unit of the context with its vectors."""

    encoded: EncodedText
    """The unit's words and vectors."""
    by_subject: bool
    """Whether the candidate's subject said it; true as well when the speaker is unknown."""


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


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """A candidate aligned with its context.

    In the shapes, F is the number of candidate words, C the number of context words, U the number
    of units and P the number of pool words.
    """

    fact: EncodedText
    """The candidate."""
    sources: Sequence[EncodedUnit]
    """The units."""
    unit: NDArray[np.int64]
    """Index of the unit that each context word is in, shape (C,)."""
    cos: Matrix
    """Cosine of every candidate word with every context word, shape (F, C)."""
    same: Flags
    """Whether the two words have the same stem, shape (F, C)."""
    by_subject: Flags
    """Whether each context word is in a unit spoken by the subject, shape (C,)."""
    weight: Matrix
    """Weight of each candidate word, shape (F,): its idf, 0 for stop words and the subject's
    name."""
    subject: Flags
    """Which candidate words are the subject's name, shape (F,)."""
    unit_best: Matrix
    """Best cosine of every candidate word in every unit, shape (F, U)."""
    unit_score: Matrix
    """Weighted mean of `unit_best` over the candidate's words, shape (U,)."""
    best: int
    """Index of the unit that matches best."""
    second: int
    """Index of the second best unit; equal to `best` when there is only one."""
    pool: NDArray[np.int64]
    """Positions in the context of the words of these two units, best unit first, shape (P,)."""
    roles: Roles
    """How well each word's neighbours match where the word was found."""


def align(fact: EncodedText, sources: Sequence[EncodedUnit], *, subject: Flags) -> Alignment:
    """Align a candidate with its context units.

    Args:
        fact: The candidate; at least one word.
        sources: The units; at least one word among them.
        subject: Which words of the candidate are its subject's name.
    """
    vectors = np.concatenate([source.encoded.vectors for source in sources])
    unit = np.repeat(np.arange(len(sources)), [len(source.encoded) for source in sources])
    cos = product(fact.vectors, vectors.T)
    same = fact.words.keys[:, None] == _column(sources, "keys")[None, :]
    weight = _weights(fact, subject)
    unit_best = _best_by_unit(cos, unit, count=len(sources))
    unit_score = (weight @ unit_best / weight.sum()).astype(np.float32)
    by_subject = np.array([source.by_subject for source in sources])
    # A stable sort, so that equal scores keep the order of the conversation on every machine.
    order = np.argsort(-(unit_score + _SUBJECT_BONUS * by_subject), kind="stable")
    best, second = int(order[0]), int(order[min(1, len(order) - 1)])
    # `dict.fromkeys`, so that a context of one unit does not enter the pool twice.
    chosen = dict.fromkeys((best, second))
    pool = np.concatenate([np.flatnonzero(unit == index) for index in chosen])
    roles = _find_roles(
        fact,
        sources,
        near=cos[:, pool],
        equal=same[:, pool],
        pool=pool,
        unit_of=unit[pool],
        neighbours=_neighbours_of(weight),
    )
    return Alignment(
        fact=fact,
        sources=sources,
        unit=unit,
        cos=cos,
        same=same,
        by_subject=by_subject[unit],
        weight=weight,
        subject=subject,
        unit_best=unit_best,
        unit_score=unit_score,
        best=best,
        second=second,
        pool=pool,
        roles=roles,
    )


def _best_by_unit(cos: Matrix, unit: NDArray[np.int64], *, count: int) -> Matrix:
    best = np.full((len(cos), count), _NOWHERE, dtype=np.float32)
    for index in range(count):
        inside = cos[:, unit == index]
        if inside.shape[1]:
            best[:, index] = inside.max(axis=1)
    return best


def _weights(fact: EncodedText, subject: Flags) -> Matrix:
    weight = np.where(fact.words.stop | subject, 0.0, fact.idf).astype(np.float32)
    # `She is there` has no word with a weight, and a mean needs at least one: then all words but
    # the subject's name weigh the same.
    return weight if weight.any() else np.where(subject, 0.1, 1.0).astype(np.float32)


def _neighbours_of(weight: Matrix) -> Matrix:
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


def _find_roles(
    fact: EncodedText,
    sources: Sequence[EncodedUnit],
    *,
    near: Matrix,
    equal: Flags,
    pool: NDArray[np.int64],
    unit_of: NDArray[np.int64],
    neighbours: Matrix,
) -> Roles:
    """Compare the neighbours of every candidate word with those of the word it was matched with.

    Of the P pool words, `near` has the cosines, `equal` says which have the same stem, both of
    shape (F, P), and `unit_of` is the unit.
    """
    # The pool begins with the best unit.
    bonus = _STEM_BONUS * equal + _BEST_UNIT_BONUS * (unit_of == unit_of[0])
    position = np.argmax(near + bonus, axis=1)
    clause_best = _clause_best(near, unit_of, clause=_column(sources, "clause")[pool])
    around, within = neighbours @ _window_best(near, unit_of), neighbours @ clause_best
    rows = np.arange(len(fact))
    fit, fit_clause = around[rows, position], within[rows, position]
    elsewhere = neighbours @ near.max(axis=1)
    kind = _rivals(fact, sources, near=near, equal=equal, pool=pool)
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


def _clause_best(near: Matrix, unit_of: NDArray[np.int64], *, clause: NDArray[np.int64]) -> Matrix:
    """Best cosine of each candidate word within the clause of each pool word, shape (F, P)."""
    # Clauses are numbered within their unit, so a new unit begins a new one too.
    change = np.flatnonzero((np.diff(unit_of) != 0) | (np.diff(clause) != 0)) + 1
    starts = np.concatenate([[0], change])
    best = np.maximum.reduceat(near, starts, axis=1)
    return np.repeat(best, np.diff(np.append(starts, near.shape[1])), axis=1)


def _rivals(
    fact: EncodedText,
    sources: Sequence[EncodedUnit],
    *,
    near: Matrix,
    equal: Flags,
    pool: NDArray[np.int64],
) -> Flags:
    """Other pool words of the same kind as a candidate word: number, name or noun, shape (F, P)."""
    number, capital, stop = (_column(sources, name)[pool] for name in ("number", "capital", "stop"))
    readings = [reading for source in sources for reading in source.encoded.words.readings]
    words = fact.words
    plain = ~(words.number | words.capital | words.stop)
    numbers = words.number[:, None] & number[None, :]
    # The same value in other words, `seven` for `7`, is a match and no rival.
    for row in np.flatnonzero(words.number):
        for column in np.flatnonzero(number):
            stated = values_of(readings[int(pool[column])])
            numbers[row, column] &= not is_stated(words.readings[int(row)], stated)
    names = words.capital[:, None] & capital[None, :]
    nouns = plain[:, None] & ~(number | stop)[None, :] & (near > _TYPE_COSINE)
    rivals = (numbers | names | nouns) & ~equal
    # A word that the candidate states as well is not a rival.
    return rivals & ~(equal.any(axis=0) & ~number)[None, :]


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


def clause_columns(alignment: Alignment) -> tuple[NDArray[np.generic], ...]:
    """For each candidate word, the clause in which it was found, compared with its own clause.

    Returns:
        `COLUMNS` arrays of shape (F,), F being the number of candidate words.
    """
    by_subject = alignment.by_subject[alignment.pool[alignment.roles.position]]
    first, second, actor, question, negated = (
        _matched(alignment, name) for name in ("first", "second", "actor", "question", "negated")
    )
    # `I` means the subject only where the subject speaks; where the other speaks, `you` does.
    matches = np.where(by_subject, first, second & ~first)
    differs = np.where(by_subject, second & ~first, first & ~second)
    # A first person that is no `I` or `we` is a possessive: `my sister lives in Rome`. The clause
    # is then about what belongs to the subject, and the candidate may be about the subject itself.
    owned = first & ~actor
    possessive = np.full(len(alignment.fact), _is_possessive(alignment))
    dropped = by_subject & owned & ~possessive
    added = by_subject & actor & possessive
    denial = alignment.fact.words.negated
    return (
        *(by_subject, first, second, question, matches, differs),
        *(actor, owned, possessive, dropped, added),
        *(denial, negated, denial & ~negated, negated & ~denial),
    )


def _is_possessive(alignment: Alignment) -> bool:
    """Whether the candidate is about what belongs to its subject: `Ana's sister`, `my sister`."""
    words = alignment.fact.words
    if alignment.subject.any():
        last = words.spans[int(np.flatnonzero(alignment.subject)[-1])].text
        return last.replace("\u2019", "'").endswith(("'s", "s'"))
    return bool((words.first & ~words.actor).any())


def _matched(alignment: Alignment, name: str) -> Flags:
    """A column of the context's `Words` at the places where the candidate's words were found."""
    return _column(alignment.sources, name)[alignment.pool[alignment.roles.position]]


def _column(sources: Sequence[EncodedUnit], name: str) -> np.ndarray:
    """A column of `Words` for all words of the context, shape (C,)."""
    return np.concatenate([getattr(source.encoded.words, name) for source in sources])


def product(a: Matrix, b: Matrix) -> Matrix:
    """`a @ b`, a few rows of `a` at a time, so that it stays on the calling thread.

    OpenBLAS, numpy's usual backend, hands any product of about 260,000 multiplications or more to
    threads that spin while they wait for one another. Measured on 2 busy cores, one pass of the
    network took 70 ms of CPU time in whole products, and 2 ms in pieces below that size, with the
    same result.

    Args:
        a: Shape (M, K).
        b: Shape (K, N); its columns are split as well when one row of `a` would be too much.
    """
    width = max(1, _MAX_MULTIPLICATIONS // max(a.shape[-1], 1))
    if b.shape[1] > width:
        parts = [product(a, b[:, i : i + width]) for i in range(0, b.shape[1], width)]
        return np.concatenate(parts, axis=1)
    rows = max(1, _MAX_MULTIPLICATIONS // max(b.size, 1))
    if len(a) <= rows:
        return a @ b
    return np.concatenate([a[i : i + rows] @ b for i in range(0, len(a), rows)])
