"""Aligns a candidate with its context: word cosines, and the context units that match best.

"Unit" means a turn, or a piece of a long turn. All cosines are between word vectors of length 1, so
they lie in [-1, 1].
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memguard.local.embedder import Matrix
from memguard.local.verifier.encoded import EncodedText
from memguard.local.verifier.product import product
from memguard.local.verifier.roles import Roles, find_roles, neighbours_of
from memguard.local.verifier.words import Flags

SUBJECT_BONUS = 0.04
"""Added to the score of a unit spoken by the candidate's subject when the best unit is chosen."""

_NOWHERE = -1.0


@dataclass(frozen=True, slots=True, eq=False)
class EncodedUnit:
    """One unit of the context with its vectors."""

    encoded: EncodedText
    """The unit's words and vectors."""
    by_subject: bool
    """Whether the candidate's subject said it; true as well when the speaker is unknown."""


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
    keys = np.concatenate([source.encoded.words.keys for source in sources])
    unit = np.repeat(np.arange(len(sources)), [len(source.encoded) for source in sources])
    cos = product(fact.vectors, vectors.T)
    same = fact.words.keys[:, None] == keys[None, :]
    weight = _weights(fact, subject)
    unit_best = _best_by_unit(cos, unit, count=len(sources))
    unit_score = (weight @ unit_best / weight.sum()).astype(np.float32)
    by_subject = np.array([source.by_subject for source in sources])
    # A stable sort, so that equal scores keep the order of the conversation on every machine.
    order = np.argsort(-(unit_score + SUBJECT_BONUS * by_subject), kind="stable")
    best, second = int(order[0]), int(order[min(1, len(order) - 1)])
    # `dict.fromkeys`, so that a context of one unit does not enter the pool twice.
    chosen = dict.fromkeys((best, second))
    pool = np.concatenate([np.flatnonzero(unit == index) for index in chosen])
    roles = find_roles(
        fact,
        units=[source.encoded for source in sources],
        near=cos[:, pool],
        equal=same[:, pool],
        pool=pool,
        neighbours=neighbours_of(weight),
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
