"""Where each word of a candidate finds its support: cosines, and the units that fit best."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memguard.local.embedder import Matrix
from memguard.local.verifier.encoded import Encoded
from memguard.local.verifier.product import product
from memguard.local.verifier.roles import Roles, find_roles, neighbours_of
from memguard.local.verifier.words import Flags

OWN_BONUS = 0.04
"""What a unit of the candidate's own subject is ahead of another in the choice of the best unit."""

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
    roles: Roles
    """Who stands beside whom."""


def align(fact: Encoded, sources: Sequence[Source], *, subject: Flags) -> Alignment:
    """Lay a candidate over its units.

    Args:
        fact: The candidate; at least one word.
        sources: The units; at least one word among them.
        subject: Which words of the candidate are its subject's name.
    """
    vectors = np.concatenate([each.encoded.vectors for each in sources])
    keys = np.concatenate([each.encoded.words.keys for each in sources])
    unit = np.repeat(np.arange(len(sources)), [len(each.encoded) for each in sources])
    cos = product(fact.vectors, vectors.T)
    same = fact.words.keys[:, None] == keys[None, :]
    weight = _weights(fact, subject)
    unit_best = _best_by_unit(cos, unit, count=len(sources))
    unit_score = (weight @ unit_best / weight.sum()).astype(np.float32)
    owns = np.array([each.own for each in sources])
    order = np.argsort(-(unit_score + OWN_BONUS * owns), kind="stable")
    best, second = int(order[0]), int(order[min(1, len(order) - 1)])
    # The best unit first; only once when it is the only one.
    pool = np.concatenate([np.flatnonzero(unit == each) for each in dict.fromkeys((best, second))])
    units, beside = [each.encoded for each in sources], neighbours_of(weight)
    roles = find_roles(
        fact,
        units=units,
        near=cos[:, pool],
        equal=same[:, pool],
        pool=pool,
        neighbours=beside,
    )
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
        roles=roles,
    )


def _best_by_unit(cos: Matrix, unit: NDArray[np.int64], *, count: int) -> Matrix:
    best = np.full((len(cos), count), _NOWHERE, dtype=np.float32)
    for index in range(count):
        inside = cos[:, unit == index]
        if inside.shape[1]:
            best[:, index] = inside.max(axis=1)
    return best


def _weights(fact: Encoded, subject: Flags) -> Matrix:
    weight = np.where(fact.words.stop | subject, 0.0, fact.idf).astype(np.float32)
    # `She is there` has no word of weight; then all of them have the same.
    return weight if weight.any() else np.where(subject, 0.1, 1.0).astype(np.float32)
