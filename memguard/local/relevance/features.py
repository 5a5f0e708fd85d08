"""What one query and the memories of one read have in common, as numbers.

`RELEVANCE_FEATURES` names the columns. Every value is near the range from -1 to 1, so that a linear
model needs no scaling. Nothing here is trained.
"""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memguard.local.encoder import DIMS, Matrix, MiniLmEncoder, TokenVectors
from memguard.local.relevance.requests import asks_about, is_advice
from memguard.local.relevance.topics import share_topic
from memguard.local.verifier import lexicon
from memguard.local.verifier.words import Span, split_words, stem

RELEVANCE_FEATURES: tuple[str, ...] = (
    "cosine",
    "request_cosine",
    "topic_cosine",
    "covered",
    "covered_soft",
    "text_covered",
    "shared_idf",
    "shared_count",
    "same_person",
    "other_person",
    "same_name",
    "asked_kind",
    "asked_kind_missing",
    "advice_on_wish",
    "standing_covered",
    "short_query",
    "same_topic",
    "other_topic",
)
"""Names of the columns of `measure`."""

_USER = frozenset({"user", "i", "my", "me", "we", "our", "mine"})
_WISH = re.compile(
    r"\b(?:prefer|favou?rite|(?:dis)?like|love|hate|enjoy|avoid|want|allerg|vegan|vegetarian|"
    r"budget|can't|cannot|never|always|only|need|must)",
    re.IGNORECASE,
)
# Fewer memories than this say little about what is usual in a read.
_USUAL = 6.0
# Cosines of two words below the first have no meaning in common; the second is the range above.
_UNLIKE, _LIKE = 0.35, 0.40


@dataclass(frozen=True, slots=True, eq=False)
class WordedText:
    """One text with the vectors of its words."""

    text: str
    """The text, unchanged."""
    stems: tuple[str, ...]
    """The stems of its N content words."""
    idf: Matrix
    """How rare each of them is, from 0 to about 1, shape (N,)."""
    vectors: NDArray[np.float16]
    """One vector of length 1 per content word, shape (N, 384)."""
    sentence: Matrix
    """The sentence vector, of length 1, shape (384,)."""
    subject: str
    """The first word, lowered, if it may be a name; `user` for the user; else empty."""
    names: frozenset[str]
    """Capitalised words that do not begin a sentence, lowered."""
    answers: frozenset[str]
    """Kinds of questions that its words can answer; see `asks_about`."""


def read_text(tokens: TokenVectors, *, idf: Mapping[str, float], default_idf: float) -> WordedText:
    """The words of a text and their vectors."""
    text = tokens.text
    spans = split_words(text)[:MAX_WORDS]
    rows = _word_vectors(spans, tokens)
    chosen = [at for at, span in enumerate(spans) if not _is_empty(span.text)]
    stems = tuple(stem(spans[at].text) for at in chosen)
    weights = [idf.get(word, default_idf) / 10.0 for word in stems]
    mean = tokens.vectors.mean(axis=0)
    names = frozenset(
        span.text.casefold()
        for before, span in itertools.pairwise(spans)
        if span.text[0].isupper()
        and not _ends_sentence(text[before.end : span.start])
        and not _is_empty(span.text)
    )
    return WordedText(
        text=text,
        stems=stems,
        idf=np.array(weights, dtype=np.float32),
        vectors=rows[chosen].astype(np.float16),
        sentence=(mean / max(float(np.linalg.norm(mean)), 1e-9)).astype(np.float32),
        subject=_subject(spans),
        names=names,
        answers=_answers(text, names),
    )


MAX_WORDS = 120
"""Words of a text that are compared one by one; the model reads little more."""


def _is_empty(word: str) -> bool:
    lowered = word.casefold().replace("\u2019", "'").split("'")[0]
    return lowered in lexicon.STOP or lowered in lexicon.NEGATIONS or lowered in _QUERY_EMPTY


# Words of requests that say nothing about their topic.
_QUERY_EMPTY = lexicon.word_set(
    "please help want need know tell give show think recall remember kind type sort thing things "
    "something anything someone like would could suggest recommend good best ideas idea"
)


def _ends_sentence(gap: str) -> bool:
    return any(char in ".!?:\n" for char in gap)


def _subject(spans: Sequence[Span]) -> str:
    words = [span.text for span in spans[:3]]
    if not words:
        return ""
    first = words[0].casefold().replace("\u2019", "'").split("'")[0]
    if first == "the" and len(words) > 1:
        first = words[1].casefold().split("'")[0]
        return "user" if first == "user" else ""
    if first in _USER:
        return "user"
    return first if words[0][:1].isupper() and not _is_empty(words[0]) else ""


_PLACE = re.compile(r"\b(?:in|at|to|from|near|around|on|between) (?:the )?[A-Z]\w+")
_DATE = re.compile(
    r"\b(?:(?:19|20)\d\d|january|february|march|april|june|july|august|september|october|"
    r"november|december|monday|tuesday|wednesday|thursday|friday|saturday|sunday|yesterday|"
    r"today|tomorrow|last|next|ago|recently|week|weekend|month|year|summer|winter|spring|autumn|"
    r"since|morning|evening|night|birthday)s?\b",
    re.IGNORECASE,
)
_PERSON = re.compile(
    r"\b(?:sister|brother|mother|father|mom|mum|dad|parents?|wife|husband|partner|son|daughter|"
    r"child(?:ren)?|kids?|friends?|family|colleagues?|boss|grand\w+|uncle|aunt|cousin)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twice|dozen|several|couple)\b",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"\b(?:because|since|so that|in order|to help|inspired|motivated|due to|reason|for)\b",
    re.IGNORECASE,
)


def _answers(text: str, names: frozenset[str]) -> frozenset[str]:
    kinds = {
        "time": _DATE.search(text) is not None,
        "place": _PLACE.search(text) is not None,
        "person": _PERSON.search(text) is not None or bool(names),
        "number": _NUMBER.search(text) is not None,
        "reason": _REASON.search(text) is not None,
    }
    return frozenset(kind for kind, matches in kinds.items() if matches)


def _word_vectors(spans: Sequence[Span], tokens: TokenVectors) -> Matrix:
    """The mean vector of each word's tokens, of length 1; zero for words that were cut off."""
    sums = np.zeros((len(spans), DIMS), dtype=np.float32)
    if not spans:
        return sums
    starts = np.array([span.start for span in spans])
    for (start, end), vector in zip(tokens.offsets, tokens.vectors, strict=True):
        at = int(np.searchsorted(starts, start, side="right")) - 1
        if start < end and at >= 0 and start < spans[at].end:
            sums[at] += vector
    return sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)


def encode_texts(
    encoder: MiniLmEncoder, texts: Sequence[str], *, idf: Mapping[str, float], default_idf: float
) -> list[WordedText]:
    """Encode texts in one batch."""
    return [
        read_text(tokens, idf=idf, default_idf=default_idf)
        for tokens in encoder.encode_tokens(texts)
    ]


def measure(query: WordedText, request: WordedText, texts: Sequence[WordedText]) -> Matrix:
    """The features of every text.

    Args:
        query: The whole query.
        request: Its last request; often the same.
        texts: The N memories of one read, N > 0.

    Returns:
        Shape (N, F), with the columns of `RELEVANCE_FEATURES`.
    """
    people = _people(query, texts)
    topic_words = _without(query, people)
    parts = [_without(text, people) for text in texts]
    cosine = np.array([text.sentence @ query.sentence for text in texts], dtype=np.float32)
    request_cosine = np.array([t.sentence @ request.sentence for t in texts], dtype=np.float32)
    pairs = np.array([_pair(topic_words, part) for part in parts], dtype=np.float32)
    names = np.array([_names(query, text, people) for text in texts], dtype=np.float32)
    kind = asks_about(request.text)
    answered = np.array([kind in text.answers for text in texts], dtype=np.float32)
    advice = float(is_advice(request.text))
    wish = np.array([_WISH.search(text.text) is not None for text in texts], dtype=np.float32)
    topics = [share_topic(query.text, text.text) for text in texts]
    columns = [
        cosine,
        request_cosine,
        *pairs.T,
        *names.T,
        answered if kind else np.zeros_like(answered),
        1.0 - answered if kind else np.zeros_like(answered),
        advice * wish,
        standing(pairs[:, 1]),
        np.full(len(texts), max(0.0, 1.0 - len(topic_words.stems) / 8.0)),
        np.array([topic is True for topic in topics], dtype=np.float32),
        np.array([topic is False for topic in topics], dtype=np.float32),
    ]
    return np.stack(columns, axis=1).astype(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class _ContentWords:
    stems: tuple[str, ...]
    idf: Matrix
    vectors: Matrix


def _without(text: WordedText, people: frozenset[str]) -> _ContentWords:
    """The content words without the persons that the read is about, who make all texts alike."""
    chosen = [at for at, word in enumerate(text.stems) if word not in people]
    return _ContentWords(
        stems=tuple(text.stems[at] for at in chosen),
        idf=text.idf[chosen],
        vectors=text.vectors[chosen].astype(np.float32),
    )


def _pair(query: _ContentWords, text: _ContentWords) -> tuple[float, ...]:
    """How far the words of a query and of a text cover each other; the six columns of words."""
    if not query.stems or not text.stems:
        return (0.0,) * 6
    similar = query.vectors @ text.vectors.T
    same = np.array([[a == b for b in text.stems] for a in query.stems])
    best = np.where(same.any(axis=1), 1.0, similar.max(axis=1))
    back = np.where(same.any(axis=0), 1.0, similar.max(axis=0))
    weights = query.idf / query.idf.sum()
    centre, other = query.idf @ query.vectors, text.idf @ text.vectors
    lengths = float(np.linalg.norm(centre) * np.linalg.norm(other))
    shared = same.any(axis=1)
    return (
        float(centre @ other) / max(lengths, 1e-9),
        float(weights @ best),
        float(weights @ np.clip((best - _UNLIKE) / _LIKE, 0.0, 1.0)),
        float(np.sort(back * np.minimum(text.idf, 1.0))[-3:].mean()),
        float(weights[shared].sum()),
        min(int(shared.sum()), 4) / 4.0,
    )


def _people(query: WordedText, texts: Sequence[WordedText]) -> frozenset[str]:
    """Stems of the names that memories are about, or begin with."""
    counts: dict[str, int] = {}
    for text in texts:
        if text.subject:
            counts[text.subject] = counts.get(text.subject, 0) + 1
    often = {name for name, count in counts.items() if count > 1 or name in query.names}
    return frozenset(stem(name) for name in often) | {"user"}


def _names(
    query: WordedText, text: WordedText, people: frozenset[str]
) -> tuple[float, float, float]:
    wanted = {stem(name) for name in query.names} & people
    subject = stem(text.subject) if text.subject else ""
    mentioned = subject in wanted or bool(wanted & {stem(name) for name in text.names})
    places = (query.names & text.names) - {name for name in query.names if stem(name) in people}
    return (
        float(bool(wanted) and mentioned),
        float(bool(wanted) and not mentioned and subject in people),
        float(bool(places)),
    )


def standing(values: Matrix) -> Matrix:
    """How far each value is above the mean of this read, in deviations, from -1 to 1.

    With few values the deviation is drawn to what is usual, so that two memories are not told apart
    by a hair.
    """
    count = len(values)
    spread = (values.std() * count + 0.12 * _USUAL) / (count + _USUAL)
    shrink = count / (count + _USUAL / 2)
    return np.clip((values - values.mean()) / spread * shrink / 2.5, -1.0, 1.0)
