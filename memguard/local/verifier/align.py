"""Where each word of a candidate finds its support: the best units, and who stands beside whom.

The last question is what tells `vegan for 7 years, vegetarian for 5` from its swap: the word is
there, so its neighbours must be asked.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memguard.local.embedder import Matrix
from memguard.local.verifier.encoded import Encoded
from memguard.local.verifier.numbers import found_in
from memguard.local.verifier.words import Flags

OWN_BONUS = 0.04
"""What a unit of the candidate's own subject is ahead of another in the choice of the best unit."""

_STEM_BONUS = 0.15
_REACH = 5
_NEIGHBOURS = 2
_TYPE_COSINE = 0.35
_NOWHERE = -1.0


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """One unit of the context: a turn, or a piece of a long one."""

    encoded: Encoded
    """The unit, encoded."""
    own: bool
    """Whether the candidate's subject said it, or nobody can tell."""


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """A candidate laid over its context."""

    fact: Encoded
    """The candidate."""
    sources: Sequence[Source]
    """The units."""
    unit: NDArray[np.int64]
    """Which unit each context word is in."""
    cos: Matrix
    """Cosine of every candidate word with every context word."""
    same: Flags
    """Whether the two have the same stem."""
    own: Flags
    """Whether a context word is in an own unit."""
    weight: Matrix
    """What each candidate word counts: its idf, 0 for stop words and the subject's name."""
    subject: Flags
    """Which candidate words are the subject's name."""
    unit_best: Matrix
    """Best cosine of every candidate word in every unit."""
    unit_score: Matrix
    """Weighted mean of those, by unit."""
    best: int
    """The unit that fits best."""
    second: int
    """The one after it; the same when there is only one."""
    pool: NDArray[np.int64]
    """Places of the words of these two, best unit first."""
    place: NDArray[np.int64]
    """Where in the pool each candidate word is found."""
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


def align(fact: Encoded, sources: Sequence[Source], *, subject: Flags) -> Alignment:
    """Lay a candidate over its units.

    Args:
        fact: The candidate; at least one word.
        sources: The units; at least one word among them.
        subject: Which words of the candidate are its subject's name.
    """
    vectors = np.concatenate([each.encoded.vectors for each in sources])
    keys = np.concatenate([each.encoded.words.keys for each in sources])
    sizes = [len(each.encoded) for each in sources]
    unit = np.repeat(np.arange(len(sources)), sizes)
    cos = fact.vectors @ vectors.T
    same = fact.words.keys[:, None] == keys[None, :]
    weight = np.where(fact.words.stop | subject, 0.0, fact.idf).astype(np.float32)
    if not weight.any():
        weight = np.where(subject, 0.1, 1.0).astype(np.float32)
    unit_best = np.full((len(fact), len(sources)), _NOWHERE, dtype=np.float32)
    for index in range(len(sources)):
        inside = cos[:, unit == index]
        if inside.shape[1]:
            unit_best[:, index] = inside.max(axis=1)
    unit_score = (weight @ unit_best / weight.sum()).astype(np.float32)
    owns = np.array([each.own for each in sources])
    order = np.argsort(-(unit_score + OWN_BONUS * owns), kind="stable")
    best, second = int(order[0]), int(order[min(1, len(order) - 1)])
    pool = np.flatnonzero(unit == best)
    if second != best:
        pool = np.concatenate([pool, np.flatnonzero(unit == second)])
    roles = _roles(fact, sources, cos, same, unit, pool, weight)
    return Alignment(
        fact=fact,
        sources=sources,
        unit=unit,
        cos=cos,
        same=same,
        own=owns[unit],
        weight=weight,
        subject=subject,
        unit_best=unit_best,
        unit_score=unit_score,
        best=best,
        second=second,
        pool=pool,
        **roles,
    )


def _roles(
    fact: Encoded,
    sources: Sequence[Source],
    cos: Matrix,
    same: Flags,
    unit: NDArray[np.int64],
    pool: NDArray[np.int64],
    weight: Matrix,
) -> dict[str, NDArray[np.generic]]:
    """Neighbours: how well they are met where a word is found, and where a rival of it stands."""
    near, equal, home = cos[:, pool], same[:, pool], unit[pool]
    first = home == home[0]
    place = np.argmax(near + _STEM_BONUS * equal + OWN_BONUS * first, axis=1)
    clause = np.concatenate([each.encoded.words.clause for each in sources])[pool]
    neighbours = _neighbours(weight)
    clause_best = _clause_best(near, home, clause)
    around = neighbours @ _window_best(near, home)
    within = neighbours @ clause_best
    whole = neighbours @ near.max(axis=1)
    rows = np.arange(len(fact))
    here, here_clause = around[rows, place], within[rows, place]
    kind = _rivals(fact, sources, near, equal, pool)
    gain = np.where(kind, around - here[:, None], -1.0)
    gain_clause = np.where(kind, within - here_clause[:, None], -1.0)
    rival = np.argmax(gain + gain_clause, axis=1)
    return {
        "place": place,
        "beside": here,
        "beside_clause": here_clause,
        "deficit": whole - here,
        "deficit_clause": whole - here_clause,
        "rival_gain": gain.max(axis=1),
        "rival_gain_clause": gain_clause.max(axis=1),
        "rival": np.where(kind.any(axis=1), rival, -1),
        "rival_cosine": np.where(kind, near, 0.0).max(axis=1),
        "rival_pull": _pull(neighbours > 0, clause_best, place, kind),
    }


def _pull(beside: Flags, clause_best: Matrix, place: NDArray[np.int64], kind: Flags) -> Matrix:
    pull = np.full(len(place), -1.0, dtype=np.float32)
    for row in np.flatnonzero(kind.any(axis=1) & beside.any(axis=1)):
        met = clause_best[beside[row]]
        gains = met[:, kind[row]] - met[:, place[row]][:, None]
        pull[row] = gains.max()
    return pull


def _neighbours(weight: Matrix) -> Matrix:
    """Row-normalised: the nearest words of weight, two on either side."""
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


def _clause_best(near: Matrix, home: NDArray[np.int64], clause: NDArray[np.int64]) -> Matrix:
    """Best cosine of each candidate word within the clause of each pool word."""
    change = np.flatnonzero((np.diff(home) != 0) | (np.diff(clause) != 0)) + 1
    starts = np.concatenate([[0], change])
    best = np.maximum.reduceat(near, starts, axis=1)
    return np.repeat(best, np.diff(np.append(starts, near.shape[1])), axis=1)


def _rivals(
    fact: Encoded,
    sources: Sequence[Source],
    near: Matrix,
    equal: Flags,
    pool: NDArray[np.int64],
) -> Flags:
    """Pool words of the same kind as a candidate word, but not the same: number, name or noun."""
    number = np.concatenate([each.encoded.words.number for each in sources])[pool]
    capital = np.concatenate([each.encoded.words.capital for each in sources])[pool]
    stop = np.concatenate([each.encoded.words.stop for each in sources])[pool]
    readings = [each for source in sources for each in source.encoded.words.readings]
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
