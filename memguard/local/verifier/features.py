"""The numbers that the network reads of an aligned candidate and context.

Every word has its vector, the vector of what it was aligned with, and a row of scalars. The pair as
a whole has one row of numbers. The order of rows and columns is part of the trained weights: none
may be moved, added or removed without training again.
"""

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memguard.local.encoder import Matrix
from memguard.local.verifier.alignment import COLUMNS, Alignment, clause_columns, product
from memguard.local.verifier.numbers import is_stated
from memguard.local.verifier.words import OPPOSITE_STEMS, Flags, Words, flags_of

MAX_FACT = 48
"""Words of one candidate that the network reads; longer ones are split into sentences first."""
MAX_CONTEXT = 26
"""Words of the best unit that the network reads: the stretch that matches the candidate best."""
FACT_SCALARS = 49
"""Columns of `PairFeatures.fact_scalars`."""
CONTEXT_SCALARS = 20
"""Columns of `PairFeatures.context_scalars`."""
SHARPNESS = 18.0
"""Inverse temperature of the softmax by which a word attends to similar words; not trained."""
# A word at this distance or further has nothing to do with the match.
_FAR = 12.0
# Columns of `_fact_scalars` and `_context_scalars` that are read again.
_MAX, _BEST, _OWN, _OTHERS, _POOL = range(5)
_SAME, _SAME_BEST, _SAME_OWN, _SAME_COSINE = range(5, 9)
_NUMBER, _NUMBER_FOUND, _NUMBER_BEST, _CAPITAL, _NEGATION = range(11, 16)
_CONTINUOUS, _OPPOSITE = 18, 19
_CLAUSE = range(31, 31 + COLUMNS)
# Counted from the end: a number, or a name, that no unit contains.
_NUMBER_NOWHERE, _NAME_NOWHERE = -3, -2
_CONTEXT_NEGATION, _CONTEXT_DISTANCE, _CONTEXT_POSITIVE, _CONTEXT_NEGATIVE = 4, 8, 10, 11


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
    """Numbers of the pair as a whole, shape (G,)."""

    @property
    def lacks_detail(self) -> bool:
        """Whether a number, date or name of the candidate is in no turn at all."""
        return bool((self.fact_scalars[:, [_NUMBER_NOWHERE, _NAME_NOWHERE]] > 0).any())


def pair_features(alignment: Alignment) -> PairFeatures:
    """Compute the features of an aligned candidate and context."""
    fact = alignment.fact
    fact_scalars = _fact_scalars(alignment)
    near = alignment.cos[:, alignment.pool]
    vectors = np.concatenate([unit.encoded.vectors for unit in alignment.sources])
    span = _densest(alignment)
    context_scalars = _context_scalars(alignment, span)
    toward = alignment.cos[:, span]
    return PairFeatures(
        fact=fact.vectors[:MAX_FACT],
        fact_aligned=product(_softmax(near), vectors[alignment.pool])[:MAX_FACT],
        fact_scalars=fact_scalars[:MAX_FACT],
        context=vectors[span],
        context_aligned=product(_softmax(toward.T), fact.vectors),
        context_scalars=context_scalars,
        whole=_summarise(alignment, fact_scalars, context_scalars),
    )


def _softmax(scores: Matrix) -> Matrix:
    # Less the maximum, so that the exponential cannot overflow.
    powers = np.exp(SHARPNESS * (scores - scores.max(axis=1, keepdims=True)))
    return powers / powers.sum(axis=1, keepdims=True)


def _densest(alignment: Alignment) -> NDArray[np.int64]:
    """Positions of at most `MAX_CONTEXT` adjacent words of the best unit, where it matches best."""
    inside = np.flatnonzero(alignment.unit == alignment.best)
    if len(inside) <= MAX_CONTEXT:
        return inside
    heat = (alignment.cos[:, inside] * alignment.weight[:, None]).max(axis=0)
    sums = np.convolve(heat, np.ones(MAX_CONTEXT), mode="valid")
    start = int(sums.argmax())
    return inside[start : start + MAX_CONTEXT]


def _fact_scalars(alignment: Alignment) -> Matrix:
    words, cos, same = alignment.fact.words, alignment.cos, alignment.same
    in_best = alignment.unit == alignment.best
    values = [unit.encoded.words.values for unit in alignment.sources]
    anywhere = _are_stated(words, frozenset[str]().union(*values))
    near = cos[:, alignment.pool]
    ordered = np.sort(cos, axis=1)
    margin = ordered[:, -1] - (ordered[:, -2] if cos.shape[1] > 1 else 0.0)
    position = alignment.roles.position
    steps = np.diff(position, prepend=position[0])
    # The constants at the top name some of these by position.
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
        anywhere,
        _are_stated(words, values[alignment.best]),
        words.capital,
        words.negation,
        alignment.subject,
        margin,
        np.abs(steps) <= 2,  # noqa: PLR2004  # aligned next to where the word before is
        _opposites(words, alignment),
        *_role_columns(alignment),
        *clause_columns(alignment),
        words.number & ~anywhere,
        words.capital & ~same.any(axis=1) & ~alignment.subject,
        words.capital & ~words.number & ~same[:, in_best].any(axis=1) & ~alignment.subject,
    )
    return np.stack([np.asarray(column, dtype=np.float32) for column in columns], axis=1)


def _best_where(cos: Matrix, where: Flags) -> Matrix:
    return cos[:, where].max(axis=1) if where.any() else np.zeros(len(cos), dtype=np.float32)


def _opposites(words: Words, alignment: Alignment) -> Flags:
    """Whether the best unit has an opposite of each word, and not the word itself."""
    stems = frozenset(alignment.sources[alignment.best].encoded.words.stems)
    return flags_of(
        word not in stems and not OPPOSITE_STEMS.get(word, frozenset()).isdisjoint(stems)
        for word in words.stems
    )


def _are_stated(words: Words, values: frozenset[str]) -> Flags:
    return flags_of(is_stated(reading, values) for reading in words.readings)


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
        np.minimum(_distance_to_match(aligned), _FAR) / _FAR,
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


def _distance_to_match(aligned: Flags) -> NDArray[np.int64]:
    """Distance in words of each context word to the nearest one that a candidate word matched."""
    matches = np.flatnonzero(aligned)
    if not len(matches):
        return np.full(len(aligned), int(_FAR))
    return np.abs(np.arange(len(aligned))[:, None] - matches[None, :]).min(axis=1)


def _summarise(alignment: Alignment, fact: Matrix, context: Matrix) -> Matrix:
    """Numbers of the pair from the scalars of both, shape (G,); 0 where one is undefined."""
    heavy = alignment.weight > 0
    parts = (
        *_coverage(alignment, fact, heavy),
        *_units(alignment),
        *_novel(alignment, fact, heavy),
        *_details(alignment, fact),
        *_negation(alignment, fact, context),
        *_neighbours(alignment, fact, heavy),
    )
    return np.nan_to_num(np.array(parts, dtype=np.float32))


def _coverage(alignment: Alignment, fact: Matrix, heavy: Flags) -> list[float]:
    """How well the weighted words are covered: worst, second worst, mean and median cosines."""
    weight = alignment.weight / alignment.weight.sum()
    numbers: list[float] = []
    for column in (_MAX, _BEST, _POOL):
        ordered = np.sort(fact[heavy, column])
        second = ordered[min(1, len(ordered) - 1)]
        numbers += map(float, (ordered[0], second, ordered.mean(), np.median(ordered)))
    numbers += [
        float(weight @ fact[:, column])
        for column in (_MAX, _BEST, _OWN, _OTHERS, _POOL, _SAME, _SAME_BEST, _SAME_OWN)
    ]
    others = (alignment.same & ~alignment.by_subject).any(axis=1)
    return [*numbers, float(weight @ others), float(weight @ (fact[:, _SAME_OWN] - others))]


def _units(alignment: Alignment) -> list[float]:
    """How well the units match, those of the subject against those of others, and lengths."""
    by_subject = np.array([unit.by_subject for unit in alignment.sources])
    scores = alignment.unit_score
    subject = float(scores[by_subject].max()) if by_subject.any() else 0.0
    other = float(scores[~by_subject].max()) if (~by_subject).any() else 0.0
    best = alignment.sources[alignment.best]
    return [
        subject,
        other,
        subject - other,
        float(alignment.subject.any()),
        float((~by_subject).any()),
        float(best.by_subject),
        float(scores[alignment.best] - scores[alignment.second]),
        _sentence_cosine(alignment, alignment.best),
        max(_sentence_cosine(alignment, index) for index in range(len(alignment.sources))),
        len(alignment.fact) / 20.0,
        len(best.encoded) / 40.0,
        len(alignment.sources) / 5.0,
        float((alignment.weight > 0).sum()) / 10.0,
    ]


def _sentence_cosine(alignment: Alignment, index: int) -> float:
    """Cosine of the candidate's and a unit's mean word vectors."""
    vectors = alignment.sources[index].encoded.vectors
    if not len(vectors):
        return 0.0
    a, b = alignment.fact.vectors.mean(axis=0), vectors.mean(axis=0)
    return float(a @ b / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-9))


def _novel(alignment: Alignment, fact: Matrix, heavy: Flags) -> list[float]:
    """How far the words whose stem is nowhere in the context are from it, weighted by rarity."""
    # A number that the context states in other words, `seven` for `7`, is not missing.
    stated = (fact[:, _NUMBER] > 0) & (fact[:, _NUMBER_FOUND] > 0)
    missing = heavy & (fact[:, _SAME] == 0) & ~stated
    idf = alignment.fact.idf
    gaps = 1.0 - fact
    present = heavy & (fact[:, _SAME] > 0)
    numbers = [
        float(missing.sum()) / 5.0,
        float(missing.sum() / heavy.sum()) if heavy.any() else 0.0,
        float(fact[missing, _MAX].min()) if missing.any() else 1.0,
        float(fact[missing, _MAX].mean()) if missing.any() else 1.0,
        float(np.average(fact[missing, _POOL], weights=idf[missing])) if missing.any() else 1.0,
        float(fact[present, _SAME_COSINE].min()) if present.any() else 1.0,
        float(fact[present, _SAME_COSINE].mean()) if present.any() else 1.0,
        float(idf[missing].max()) / 10.0 if missing.any() else 0.0,
    ]
    for column in (_BEST, _POOL):
        numbers += [
            float(gaps[heavy, column].max()),
            float((idf[heavy] * gaps[heavy, column]).max()) / 10.0,
        ]
    worst = (idf[missing] * gaps[missing, _POOL]).max() if missing.any() else 0.0
    return [*numbers, float(worst) / 10.0]


def _details(alignment: Alignment, fact: Matrix) -> list[float]:
    """Numbers and names, which must be in the context literally."""
    number = fact[:, _NUMBER] > 0
    capital = (fact[:, _CAPITAL] > 0) & ~alignment.subject & ~number
    return [
        float((number & (fact[:, _NUMBER_FOUND] == 0)).sum()),
        float((number & (fact[:, _NUMBER_BEST] == 0)).sum()),
        float(number.any()),
        float(fact[number, _MAX].min()) if number.any() else 1.0,
        float((capital & (fact[:, _SAME] == 0)).sum()),
        float((capital & (fact[:, _SAME_BEST] == 0)).sum()),
        float(capital.any()),
        float(fact[capital, _MAX].min()) if capital.any() else 1.0,
    ]


def _negation(alignment: Alignment, fact: Matrix, context: Matrix) -> list[float]:
    """Negation and sentiment of the candidate against those of the best unit."""
    words = alignment.fact.words
    source = alignment.sources[alignment.best].encoded.words
    negated = bool(words.negation.any())
    anywhere = bool(source.negation.any())
    # A negation within two words of a word that the candidate was matched with.
    nearby = bool(
        ((context[:, _CONTEXT_NEGATION] > 0) & (context[:, _CONTEXT_DISTANCE] <= 2 / 12)).any()
    )
    liked, disliked = bool(words.positive.any()), bool(words.negative.any())
    unit_liked = bool(context[:, _CONTEXT_POSITIVE].any())
    unit_disliked = bool(context[:, _CONTEXT_NEGATIVE].any())
    return [
        float(negated),
        float(anywhere),
        float(nearby),
        float(negated and not anywhere),
        float(nearby and not negated),
        float(negated and nearby),
        float(liked and unit_disliked and not unit_liked),
        float(disliked and unit_liked and not unit_disliked),
        float(disliked and not unit_disliked),
        float(fact[:, _OPPOSITE].any()),
    ]


def _neighbours(alignment: Alignment, fact: Matrix, heavy: Flags) -> list[float]:
    """The worst fit of neighbours: of all words, of numbers, of names, and of the other words."""
    words = alignment.fact.words
    names = words.capital & ~alignment.subject
    numbers = [float(fact[heavy, _CONTINUOUS].mean()) if heavy.any() else 0.0]
    for group in (heavy, words.number, names, heavy & ~names & ~words.number):
        numbers += [
            _largest(alignment.roles.deficit, group),
            _largest(alignment.roles.deficit_clause, group),
            _largest(alignment.roles.rival_gain, group, floor=-1.0),
            _largest(alignment.roles.rival_gain_clause, group, floor=-1.0),
            _largest(alignment.roles.rival_pull, group, floor=-1.0),
        ]
    weight = alignment.weight / alignment.weight.sum()
    # Below 1 when several words of the candidate were matched with the same word of the context.
    spread = np.unique(alignment.roles.position[heavy]).size / max(int(heavy.sum()), 1)
    return [
        *numbers,
        float(weight @ alignment.roles.deficit),
        float(weight @ alignment.roles.deficit_clause),
        float(weight @ alignment.roles.fit),
        float(weight @ alignment.roles.fit_clause),
        spread,
        # High only if one clause states the whole candidate, not pieces from several clauses.
        float((weight @ alignment.roles.clause_best).max()),
        *(float(weight @ fact[:, column]) for column in _CLAUSE),
    ]


def _largest(values: Matrix, group: Flags, *, floor: float = 0.0) -> float:
    return float(values[group].max()) if group.any() else floor
