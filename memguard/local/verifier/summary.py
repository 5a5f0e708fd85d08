"""The features of a candidate and its context as a whole: one row of numbers.

The order is part of the trained weights. A number may not be moved, added or removed without
training again.
"""

import numpy as np

from memguard.local.embedder import Matrix
from memguard.local.verifier.align import Alignment
from memguard.local.verifier.clauses import COLUMNS
from memguard.local.verifier.words import Flags

# Columns of `features._fact_scalars` and `features._context_scalars` used here.
_MAX, _BEST, _OWN, _OTHERS, _POOL = range(5)
_SAME, _SAME_BEST, _SAME_OWN, _SAME_COSINE = range(5, 9)
_NUMBER, _NUMBER_FOUND, _NUMBER_BEST, _CAPITAL, _NEGATION = range(11, 16)
_CONTINUOUS, _OPPOSITE = 18, 19
_CLAUSE = range(31, 31 + COLUMNS)
_CONTEXT_NEGATION, _CONTEXT_DISTANCE, _CONTEXT_POSITIVE, _CONTEXT_NEGATIVE = 4, 8, 10, 11


def summarise(alignment: Alignment, fact: Matrix, context: Matrix) -> Matrix:
    """Summarise a pair.

    Args:
        alignment: The candidate aligned with its context.
        fact: Scalars of the candidate's words, from `features._fact_scalars`.
        context: Scalars of the best unit's words, from `features._context_scalars`.

    Returns:
        Shape (G,); numbers that are undefined for this pair are 0.
    """
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
        numbers += [
            float(ordered[0]),
            float(ordered[min(1, len(ordered) - 1)]),
            float(ordered.mean()),
            float(np.median(ordered)),
        ]
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
    missing = heavy & (fact[:, _SAME] == 0) & ~_number_found(fact)
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


def _number_found(fact: Matrix) -> Flags:
    return (fact[:, _NUMBER] > 0) & (fact[:, _NUMBER_FOUND] > 0)


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
