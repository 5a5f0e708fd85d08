"""What is known of a candidate and its context as a whole: one row of numbers."""

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


def summarise(alignment: Alignment, fact: Matrix, context: Matrix) -> Matrix:
    """Numbers of the pair as a whole.

    Args:
        alignment: The candidate over its context.
        fact: Its scalars by word.
        context: The scalars of the best unit's words.
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
    others = (alignment.same & ~alignment.own).any(axis=1)
    return [*numbers, float(weight @ others), float(weight @ (fact[:, _SAME_OWN] - others))]


def _units(alignment: Alignment) -> list[float]:
    owns = np.array([each.own for each in alignment.sources])
    scores = alignment.unit_score
    own = float(scores[owns].max()) if owns.any() else 0.0
    other = float(scores[~owns].max()) if (~owns).any() else 0.0
    known = bool(alignment.subject.any())
    best = alignment.sources[alignment.best]
    return [
        own,
        other,
        own - other,
        float(known),
        float((~owns).any()),
        float(best.own),
        float(scores[alignment.best] - scores[alignment.second]),
        _sentence_cosine(alignment, alignment.best),
        max(_sentence_cosine(alignment, index) for index in range(len(alignment.sources))),
        len(alignment.fact) / 20.0,
        len(best.encoded) / 40.0,
        len(alignment.sources) / 5.0,
        float((alignment.weight > 0).sum()) / 10.0,
    ]


def _sentence_cosine(alignment: Alignment, index: int) -> float:
    """Cosine of the mean word vectors."""
    vectors = alignment.sources[index].encoded.vectors
    if not len(vectors):
        return 0.0
    left, right = alignment.fact.vectors.mean(axis=0), vectors.mean(axis=0)
    return float(left @ right / max(np.linalg.norm(left) * np.linalg.norm(right), 1e-9))


def _novel(alignment: Alignment, fact: Matrix, heavy: Flags) -> list[float]:
    """The words whose stem is nowhere in the context."""
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
    """Numbers and names: the details that must be there to the letter."""
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
    words = alignment.fact.words
    source = alignment.sources[alignment.best].encoded.words
    negated = bool(words.negation.any())
    anywhere = bool(source.negation.any())
    beside = bool(((context[:, 4] > 0) & (context[:, 8] <= 2 / 12)).any())
    liked, disliked = bool(words.positive.any()), bool(words.negative.any())
    theirs = bool(context[:, 10].any()), bool(context[:, 11].any())
    return [
        float(negated),
        float(anywhere),
        float(beside),
        float(negated and not anywhere),
        float(beside and not negated),
        float(negated and beside),
        float(liked and theirs[1] and not theirs[0]),
        float(disliked and theirs[0] and not theirs[1]),
        float(disliked and not theirs[1]),
        float(fact[:, _OPPOSITE].any()),
    ]


def _neighbours(alignment: Alignment, fact: Matrix, heavy: Flags) -> list[float]:
    """Who stands beside whom, at its worst, for all words and for numbers and names alone."""
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
    crowd = np.unique(alignment.roles.place[heavy]).size / max(int(heavy.sum()), 1)
    return [
        *numbers,
        float(weight @ alignment.roles.deficit),
        float(weight @ alignment.roles.deficit_clause),
        float(weight @ alignment.roles.beside),
        float(weight @ alignment.roles.beside_clause),
        crowd,
        # One clause that says all of it, or pieces from here and there?
        float((weight @ alignment.roles.clause_best).max()),
        *(float(weight @ fact[:, column]) for column in _CLAUSE),
    ]


def _largest(values: Matrix, group: Flags, *, floor: float = 0.0) -> float:
    return float(values[group].max()) if group.any() else floor
