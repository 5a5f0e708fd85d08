"""What the support network is shown of an alignment: scalars by word, and of the whole pair."""

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memguard.local.embedder import Matrix
from memguard.local.verifier import lexicon
from memguard.local.verifier.align import Alignment
from memguard.local.verifier.clauses import clause_columns
from memguard.local.verifier.numbers import found_in
from memguard.local.verifier.product import product
from memguard.local.verifier.summary import summarise
from memguard.local.verifier.words import Flags, Words, stem

MAX_FACT = 48
"""Words of one candidate that the network reads; longer ones are cut into sentences before."""

MAX_CONTEXT = 26
"""Words of the best unit that the network reads, around the densest match."""

SHARPNESS = 18.0
"""How sharply a word attends to the words most like it."""


@dataclass(frozen=True, slots=True, eq=False)
class PairFeatures:
    """One candidate and its context, as the network reads them."""

    fact: Matrix
    """Vectors of the candidate's words."""
    fact_aligned: Matrix
    """For each of them, the context words most like it, blended."""
    fact_scalars: Matrix
    """What is known of each of them."""
    context: Matrix
    """Vectors of the words of the best unit."""
    context_aligned: Matrix
    """For each of them, the candidate's words most like it, blended."""
    context_scalars: Matrix
    """What is known of each of them."""
    whole: Matrix
    """What is known of the pair as a whole."""

    @property
    def lacks_detail(self) -> bool:
        """Whether a number, date or name of the candidate is in no turn at all."""
        return bool((self.fact_scalars[:, [_NUMBER_NOWHERE, _NAME_NOWHERE]] > 0).any())


def pair_features(alignment: Alignment) -> PairFeatures:
    """Turn an alignment into what the network reads."""
    fact = alignment.fact
    numbers = _numbers(alignment)
    fact_scalars = _fact_scalars(alignment, numbers)
    near = alignment.cos[:, alignment.pool]
    vectors = np.concatenate([each.encoded.vectors for each in alignment.sources])
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
class _Found:
    anywhere: Flags
    best: Flags


def _numbers(alignment: Alignment) -> _Found:
    """Whether the value of each number of the candidate is in the context."""
    words = alignment.fact.words
    everywhere = frozenset(
        value for each in alignment.sources for value in each.encoded.words.values
    )
    best = alignment.sources[alignment.best].encoded.words.values
    return _Found(
        anywhere=np.array([found_in(each, everywhere) for each in words.readings], dtype=bool),
        best=np.array([found_in(each, best) for each in words.readings], dtype=bool),
    )


def _fact_scalars(alignment: Alignment, numbers: _Found) -> Matrix:
    words, cos, same = alignment.fact.words, alignment.cos, alignment.same
    in_best = alignment.unit == alignment.best
    near = cos[:, alignment.pool]
    ordered = np.sort(cos, axis=1)
    margin = ordered[:, -1] - (ordered[:, -2] if cos.shape[1] > 1 else 0.0)
    place = alignment.roles.place
    steps = np.diff(place, prepend=place[0])
    columns = (
        cos.max(axis=1),
        alignment.unit_best[:, alignment.best],
        _best_where(cos, alignment.own),
        _best_where(cos, ~alignment.own),
        near.max(axis=1),
        same.any(axis=1),
        same[:, in_best].any(axis=1),
        (same & alignment.own).any(axis=1),
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
    return np.stack([np.asarray(each, dtype=np.float32) for each in columns], axis=1)


def _role_columns(alignment: Alignment) -> tuple[NDArray[np.generic], ...]:
    roles, heavy = alignment.roles, np.flatnonzero(alignment.weight > 0)
    return (
        roles.beside,
        roles.beside_clause,
        roles.deficit,
        roles.deficit_clause,
        roles.rival_gain,
        roles.rival_gain_clause,
        roles.rival_cosine,
        roles.rival >= 0,
        roles.rival_pull,
        *_distances(roles.place, heavy, len(alignment.fact)),
    )


_NUMBER_NOWHERE, _NAME_NOWHERE = -3, -2
FACT_SCALARS = 49
CONTEXT_SCALARS = 20


def _best_where(cos: Matrix, where: Flags) -> Matrix:
    return cos[:, where].max(axis=1) if where.any() else np.zeros(len(cos), dtype=np.float32)


def _distances(place: NDArray[np.int64], heavy: NDArray[np.int64], size: int) -> tuple[Matrix, ...]:
    """Signed steps, in the context, from the weighty word before and to the one after."""
    before = np.zeros(size, dtype=np.float32)
    after = np.zeros(size, dtype=np.float32)
    for left, right in itertools.pairwise(heavy):
        step = float(np.clip((place[right] - place[left]) / 8.0, -1.5, 1.5))
        before[right], after[left] = step, step
    return before, after


def _opposites(words: Words, alignment: Alignment) -> Flags:
    stems = frozenset(alignment.sources[alignment.best].encoded.words.stems)
    return np.array(
        [
            each not in stems and not _OPPOSITE.get(each, frozenset()).isdisjoint(stems)
            for each in words.stems
        ],
        dtype=bool,
    )


def _densest(alignment: Alignment) -> NDArray[np.int64]:
    """Places of the best unit's words, at most `MAX_CONTEXT` around the densest match."""
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
    rows = span - offset
    toward = alignment.cos[:, span]
    heavy = alignment.weight > 0
    content = toward[heavy] if heavy.any() else toward
    aligned = np.isin(span, alignment.pool[alignment.roles.place[heavy]])
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
        np.full(len(span), source.own),
        np.isin(span, rivals),
        rows < source.encoded.label,
        words.first[rows],
        words.second[rows],
        words.question[rows],
        words.negated[rows],
        words.actor[rows],
    )
    return np.stack([np.asarray(each, dtype=np.float32) for each in columns], axis=1)


def _softmax(scores: Matrix) -> Matrix:
    powers = np.exp(SHARPNESS * (scores - scores.max(axis=1, keepdims=True)))
    return powers / powers.sum(axis=1, keepdims=True)


def _opposite_stems() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for left, right in lexicon.OPPOSITES:
        table.setdefault(stem(left), set()).add(stem(right))
        table.setdefault(stem(right), set()).add(stem(left))
    return {word: frozenset(others) for word, others in table.items()}


_OPPOSITE = _opposite_stems()
