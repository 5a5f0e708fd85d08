"""The features that the support network reads: scalars by word, and numbers of the whole pair.

The order of the columns is part of the trained weights. A column may not be moved, added or removed
without training again.
"""

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memguard.local.embedder import Matrix
from memguard.local.verifier import lexicon
from memguard.local.verifier.align import Alignment
from memguard.local.verifier.clauses import clause_columns
from memguard.local.verifier.numbers import is_stated
from memguard.local.verifier.product import product
from memguard.local.verifier.summary import summarise
from memguard.local.verifier.words import Flags, Words, stem

MAX_FACT = 48
"""Words of one candidate that the network reads; longer ones are split into sentences first."""

MAX_CONTEXT = 26
"""Words of the best unit that the network reads: the stretch that matches the candidate best."""

SHARPNESS = 18.0
"""Inverse temperature of the softmax by which a word attends to similar words; not trained."""


@dataclass(frozen=True, slots=True, eq=False)
class PairFeatures:
    """One candidate and its context, as the network reads them.

    F is the number of candidate words, at most `MAX_FACT`; S the number of words of the best unit,
    at most `MAX_CONTEXT`. Vectors have 384 dimensions.
    """

    fact: Matrix
    """Vectors of the candidate's words, shape (F, 384)."""
    fact_aligned: Matrix
    """For each candidate word, the softmax mean of the context words, shape (F, 384)."""
    fact_scalars: Matrix
    """Scalar features of each candidate word, shape (F, `FACT_SCALARS`)."""
    context: Matrix
    """Vectors of the words of the best unit, shape (S, 384)."""
    context_aligned: Matrix
    """For each of these words, the softmax mean of the candidate's words, shape (S, 384)."""
    context_scalars: Matrix
    """Scalar features of each of these words, shape (S, `CONTEXT_SCALARS`)."""
    whole: Matrix
    """Numbers of the pair as a whole, shape (G,); see `summary`."""

    @property
    def lacks_detail(self) -> bool:
        """Whether a number, date or name of the candidate is in no turn at all."""
        return bool((self.fact_scalars[:, [_NUMBER_NOWHERE, _NAME_NOWHERE]] > 0).any())


def pair_features(alignment: Alignment) -> PairFeatures:
    """Compute the features of an aligned candidate and context."""
    fact = alignment.fact
    numbers = _match_numbers(alignment)
    fact_scalars = _fact_scalars(alignment, numbers)
    near = alignment.cos[:, alignment.pool]
    vectors = np.concatenate([unit.encoded.vectors for unit in alignment.sources])
    span = _densest(alignment)
    context_scalars = _context_scalars(alignment, span)
    toward = alignment.cos[:, span]
    whole = summarise(alignment, fact_scalars, context_scalars)
    return PairFeatures(
        fact=fact.vectors[:MAX_FACT],
        fact_aligned=product(_softmax(near), vectors[alignment.pool])[:MAX_FACT],
        fact_scalars=fact_scalars[:MAX_FACT],
        context=vectors[span],
        context_aligned=product(_softmax(toward.T), fact.vectors),
        context_scalars=context_scalars,
        whole=whole,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _NumberMatches:
    """Whether each candidate word's number is stated, in any unit and in the best one."""

    anywhere: Flags
    best: Flags


def _match_numbers(alignment: Alignment) -> _NumberMatches:
    words = alignment.fact.words
    everywhere = frozenset(
        value for unit in alignment.sources for value in unit.encoded.words.values
    )
    best = alignment.sources[alignment.best].encoded.words.values
    return _NumberMatches(
        anywhere=np.array(
            [is_stated(reading, everywhere) for reading in words.readings], dtype=bool
        ),
        best=np.array([is_stated(reading, best) for reading in words.readings], dtype=bool),
    )


def _fact_scalars(alignment: Alignment, numbers: _NumberMatches) -> Matrix:
    words, cos, same = alignment.fact.words, alignment.cos, alignment.same
    in_best = alignment.unit == alignment.best
    near = cos[:, alignment.pool]
    ordered = np.sort(cos, axis=1)
    margin = ordered[:, -1] - (ordered[:, -2] if cos.shape[1] > 1 else 0.0)
    position = alignment.roles.position
    steps = np.diff(position, prepend=position[0])
    # The first twenty columns are named by position in `summary`.
    columns = (
        cos.max(axis=1),
        alignment.unit_best[:, alignment.best],
        _best_where(cos, alignment.by_subject),
        _best_where(cos, ~alignment.by_subject),
        near.max(axis=1),
        same.any(axis=1),
        same[:, in_best].any(axis=1),
        (same & alignment.by_subject).any(axis=1),
        np.where(same, cos, 0.0).max(axis=1),
        alignment.fact.idf / 10.0,
        words.stop,
        words.number,
        numbers.anywhere,
        numbers.best,
        words.capital,
        words.negation,
        alignment.subject,
        margin,
        np.abs(steps) <= 2,  # noqa: PLR2004  # aligned next to where the word before is
        _opposites(words, alignment),
        *_role_columns(alignment),
        *clause_columns(alignment),
        words.number & ~numbers.anywhere,
        words.capital & ~same.any(axis=1) & ~alignment.subject,
        words.capital & ~words.number & ~same[:, in_best].any(axis=1) & ~alignment.subject,
    )
    return np.stack([np.asarray(column, dtype=np.float32) for column in columns], axis=1)


def _role_columns(alignment: Alignment) -> tuple[NDArray[np.generic], ...]:
    roles, heavy = alignment.roles, np.flatnonzero(alignment.weight > 0)
    return (
        roles.fit,
        roles.fit_clause,
        roles.deficit,
        roles.deficit_clause,
        roles.rival_gain,
        roles.rival_gain_clause,
        roles.rival_cosine,
        roles.rival >= 0,
        roles.rival_pull,
        *_distances(roles.position, heavy, len(alignment.fact)),
    )


# Columns of `_fact_scalars` counted from the end: a number, or a name, that no unit contains.
_NUMBER_NOWHERE, _NAME_NOWHERE = -3, -2

FACT_SCALARS = 49
"""Columns of `PairFeatures.fact_scalars`."""

CONTEXT_SCALARS = 20
"""Columns of `PairFeatures.context_scalars`."""


def _best_where(cos: Matrix, where: Flags) -> Matrix:
    return cos[:, where].max(axis=1) if where.any() else np.zeros(len(cos), dtype=np.float32)


def _distances(
    position: NDArray[np.int64], heavy: NDArray[np.int64], size: int
) -> tuple[Matrix, ...]:
    """Signed distance in the context from the previous weighted word, and to the next one."""
    before = np.zeros(size, dtype=np.float32)
    after = np.zeros(size, dtype=np.float32)
    for first, second in itertools.pairwise(heavy):
        # Clipped: beyond twelve words, how far apart the two were found says nothing more.
        step = float(np.clip((position[second] - position[first]) / 8.0, -1.5, 1.5))
        before[second], after[first] = step, step
    return before, after


def _opposites(words: Words, alignment: Alignment) -> Flags:
    """Whether the best unit has an opposite of each word, and not the word itself."""
    stems = frozenset(alignment.sources[alignment.best].encoded.words.stems)
    return np.array(
        [
            word not in stems and not _OPPOSITE.get(word, frozenset()).isdisjoint(stems)
            for word in words.stems
        ],
        dtype=bool,
    )


def _densest(alignment: Alignment) -> NDArray[np.int64]:
    """Positions of at most `MAX_CONTEXT` adjacent words of the best unit, where it matches best."""
    inside = np.flatnonzero(alignment.unit == alignment.best)
    if len(inside) <= MAX_CONTEXT:
        return inside
    heat = (alignment.cos[:, inside] * alignment.weight[:, None]).max(axis=0)
    sums = np.convolve(heat, np.ones(MAX_CONTEXT), mode="valid")
    start = int(sums.argmax())
    return inside[start : start + MAX_CONTEXT]


def _context_scalars(alignment: Alignment, span: NDArray[np.int64]) -> Matrix:
    source = alignment.sources[alignment.best]
    words = source.encoded.words
    offset = int(np.flatnonzero(alignment.unit == alignment.best)[0])
    # `span` counts words of the whole context, the columns of `words` those of this unit alone.
    rows = span - offset
    toward = alignment.cos[:, span]
    heavy = alignment.weight > 0
    content = toward[heavy] if heavy.any() else toward
    aligned = np.isin(span, alignment.pool[alignment.roles.position[heavy]])
    # Distance of each word to the nearest word that a candidate word was found at.
    spots = np.flatnonzero(aligned)
    steps = np.arange(len(span))
    distance = (
        np.abs(steps[:, None] - spots[None, :]).min(axis=1)
        if len(spots)
        else np.full(len(span), 12)
    )
    rivals = alignment.pool[alignment.roles.rival[alignment.roles.rival >= 0]]
    values = alignment.fact.words.values
    columns = (
        toward.max(axis=0),
        content.max(axis=0),
        alignment.same[:, span].any(axis=0),
        words.stop[rows],
        words.negation[rows],
        words.number[rows],
        np.array([any(option & values for option in words.readings[row]) for row in rows]),
        words.capital[rows],
        np.minimum(distance, 12) / 12.0,
        source.encoded.idf[rows] / 10.0,
        words.positive[rows],
        words.negative[rows],
        np.full(len(span), source.by_subject),
        np.isin(span, rivals),
        rows < source.encoded.label,
        words.first[rows],
        words.second[rows],
        words.question[rows],
        words.negated[rows],
        words.actor[rows],
    )
    return np.stack([np.asarray(column, dtype=np.float32) for column in columns], axis=1)


def _softmax(scores: Matrix) -> Matrix:
    # Less the maximum, so that the exponential cannot overflow.
    powers = np.exp(SHARPNESS * (scores - scores.max(axis=1, keepdims=True)))
    return powers / powers.sum(axis=1, keepdims=True)


def _opposite_stems() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for first, second in lexicon.OPPOSITES:
        table.setdefault(stem(first), set()).add(stem(second))
        table.setdefault(stem(second), set()).add(stem(first))
    return {word: frozenset(others) for word, others in table.items()}


_OPPOSITE = _opposite_stems()
