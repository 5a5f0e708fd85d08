"""Reads a text as words with the flags that the support verifier uses: stems, numbers, clauses.

Pure rules without a model, so that each can be tested alone.
"""

import itertools
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from memguard.local.verifier import lexicon
from memguard.local.verifier.numbers import NumberReading, read_numbers, values_of

# Numbers keep their separators and ordinal endings; words keep one apostrophe; CJK stands alone,
# or a whole Chinese sentence would be one word.
_WORD = re.compile(
    r"\d+(?:[.,:/\-]\d+)*(?:st|nd|rd|th)?(?![^\W\d_])"
    r"|\d+(?:[.,:/\-]\d+)*"
    r"|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
    r"|[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+(?:['\u2019][^\W\d_]+)?"
)
_PAUSE = re.compile(r"[.,;:!?()\n\u2014]")
_SENTENCE_END = re.compile(r"[.!?\n:]")
_ENDINGS = re.compile(r"['\u2019](?:m|s|re|ve|ll|d)$")
_MIN_STEM = 3
# The words of longer texts are not cached: five hundred books would fill the memory.
_CACHED_CHARS = 2_000
# The end of the Unicode block "Latin Extended-B".
_LAST_LATIN = 0x24F
_FEW_WORDS = 3
_HALF = 0.5
_FOREIGN_SHARE = 0.2

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Span:
    """One word and its position in the text."""

    text: str
    """The word as written."""
    start: int
    """Offset of its first character."""
    end: int
    """Offset one past its last character."""


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """The N words of one text, column by column; every array has the shape (N,)."""

    spans: tuple[Span, ...]
    """The words as written."""
    stems: tuple[str, ...]
    """Their stems."""
    keys: NDArray[np.int64]
    """Hashes of the stems, to compare many words at once."""
    stop: Flags
    """Whether it is a stop word; a negation is not."""
    number: Flags
    """Whether it states a number or a date that must be found in the context."""
    negation: Flags
    """Whether it is a negation."""
    capital: Flags
    """Whether it is capitalised other than at the start of a sentence."""
    positive: Flags
    """Whether it expresses liking."""
    negative: Flags
    """Whether it expresses disliking."""
    clause: NDArray[np.int64]
    """Number of its clause, from 0."""
    first: Flags
    """Whether its clause has a word of the first person."""
    actor: Flags
    """Whether its clause has `I` or `we`, and not only `my` or `ours`."""
    second: Flags
    """Whether its clause has a word of the second person."""
    question: Flags
    """Whether its sentence is a question."""
    negated: Flags
    """Whether its clause has a negation."""
    readings: tuple[NumberReading, ...]
    """The possible meanings of each word as a number or date; empty for most words."""

    def __len__(self) -> int:
        return len(self.spans)

    @property
    def content(self) -> tuple[str, ...]:
        """The stems of the words that are not stop words, in order."""
        return tuple(word for word, stop in zip(self.stems, self.stop, strict=True) if not stop)

    @property
    def values(self) -> frozenset[str]:
        """Every number or date value the text states."""
        return frozenset[str]().union(*map(values_of, self.readings))


def split_words(text: str) -> tuple[Span, ...]:
    """Words and numbers of a text; punctuation and emoji are not words."""
    return _spans(text) if len(text) <= _CACHED_CHARS else _find_spans(text)


@lru_cache(maxsize=512)
def _spans(text: str) -> tuple[Span, ...]:
    return _find_spans(text)


def _find_spans(text: str) -> tuple[Span, ...]:
    return tuple(Span(hit.group(), hit.start(), hit.end()) for hit in _WORD.finditer(text))


def stems_of(text: str) -> frozenset[str]:
    """The set of a text's stems, cheaper than `read_words` when no flags are needed."""
    return frozenset(stem(span.text) for span in split_words(text))


@lru_cache(maxsize=32_768)
def stem(word: str) -> str:
    """A rough English stem: close enough to see that `moved` and `moving` are the same verb."""
    base = _ENDINGS.sub("", word.lower().replace("\u2019", "'"))
    base = lexicon.IRREGULAR.get(base, base)
    for ending, replacement in (("ies", "y"), ("ing", ""), ("ed", ""), ("ly", "")):
        if base.endswith(ending) and len(base) - len(ending) >= _MIN_STEM:
            base = _undouble(base[: -len(ending)] + replacement)
            break
    else:
        if base.endswith("s") and not base.endswith(("ss", "us", "is")) and len(base) > _MIN_STEM:
            base = base[:-2] if base.endswith(("sses", "shes", "ches", "xes")) else base[:-1]
    return base[:-1] if base.endswith("e") and len(base) > _MIN_STEM else base


def read_words(text: str, *, at: date | None = None) -> Words:
    """Split a text and flag its words.

    With `at`, when it was said, words such as `yesterday` get their date as well.
    """
    spans = split_words(text)
    lowered = [span.text.lower().replace("\u2019", "'") for span in spans]
    stems = tuple(stem(word) for word in lowered)
    demanded, readings = read_numbers(lowered, [span.text for span in spans], at=at)
    # Contractions are taken off, so that `I've` is a word of the first person.
    bases = [_ENDINGS.sub("", word) for word in lowered]
    pairs = zip(lowered, bases, strict=True)
    negation = flags_of(word.endswith("n't") or base in lexicon.NEGATIONS for word, base in pairs)
    stop = flags_of(base in lexicon.STOP for base in bases)
    clause = np.array(_clauses(text, spans, lowered), dtype=np.int64)
    return Words(
        spans=spans,
        stems=stems,
        keys=np.array([_key(word) for word in stems], dtype=np.int64),
        # A negation may be in the list of stop words too, but it always carries meaning.
        stop=stop & ~negation,
        number=flags_of(demanded),
        negation=negation,
        capital=_capitals(text, spans) & ~stop,
        positive=flags_of(word in _POSITIVE_STEMS for word in stems),
        negative=flags_of(word in _NEGATIVE_STEMS for word in stems),
        clause=clause,
        first=_anywhere_in_clause(bases, clause, lexicon.FIRST_PERSON),
        actor=_anywhere_in_clause(bases, clause, lexicon.ACTORS),
        second=_anywhere_in_clause(bases, clause, lexicon.SECOND_PERSON),
        question=flags_of(_questions(text, spans)),
        negated=np.isin(clause, clause[negation]),
        readings=tuple(readings),
    )


def idf_of(words: Words, *, table: Mapping[str, float], default: float) -> NDArray[np.float32]:
    """Inverse document frequency of each word, shape (N,); `default` for stems outside `table`."""
    return np.array([table.get(word, default) for word in words.stems], dtype=np.float32)


@lru_cache(maxsize=64)
def looks_foreign(text: str) -> bool:
    """Whether a text does not seem to be English, by its script or by its function words."""
    beyond_latin = _beyond_latin(text)
    if beyond_latin is None or beyond_latin > _FOREIGN_SHARE:
        return beyond_latin is not None
    words = [span.text.lower() for span in split_words(text)]
    abroad = sum(word in lexicon.ABROAD for word in words)
    english = sum(word in lexicon.STOP and word not in lexicon.ABROAD for word in words)
    # Accents decide only without any English word: `my fiancé` is English.
    accents = any(char.isalpha() and not char.isascii() for char in text)
    return abroad > english or (english == 0 and accents and len(words) > _FEW_WORDS)


@lru_cache(maxsize=64)
def same_script(first: str, second: str) -> bool:
    """Whether two texts are both mostly in Latin letters, or both not.

    A text without letters matches any script.
    """
    shares = _beyond_latin(first), _beyond_latin(second)
    return shares[0] is None or shares[1] is None or abs(shares[0] - shares[1]) < _HALF


def _beyond_latin(text: str) -> float | None:
    """Share of a text's letters that are not Latin; `None` for a text without letters."""
    letters = [char for char in text if char.isalpha()]
    return sum(ord(char) > _LAST_LATIN for char in letters) / len(letters) if letters else None


def _undouble(base: str) -> str:
    # `stopped` is `stop`, but `tell`, `miss` and `buzz` keep their two letters.
    doubled = len(base) > _MIN_STEM and base[-1] == base[-2] and base[-1] not in "lsz"
    return base[:-1] if doubled else base


def _key(word: str) -> int:
    # Not `hash`, which differs from process to process; lone surrogates occur in broken input.
    return zlib.crc32(word.encode("utf-8", "surrogatepass"))


def flags_of(values: Iterable[bool]) -> Flags:
    """An array of the values, shape (N,)."""
    return np.array(list(values), dtype=bool)


def _capitals(text: str, spans: Sequence[Span]) -> Flags:
    # A capital at the start of a sentence says nothing, so the first word has none.
    later = (
        span.text[0].isupper() and not _SENTENCE_END.search(text, before.end, span.start)
        for before, span in itertools.pairwise(spans)
    )
    return flags_of([False, *later][: len(spans)])


def _clauses(text: str, spans: Sequence[Span], lowered: Sequence[str]) -> list[int]:
    numbers: list[int] = []
    clause, end = 0, 0
    for span, word in zip(spans, lowered, strict=True):
        if numbers and (word in lexicon.BREAKS or _PAUSE.search(text, end, span.start)):
            clause += 1
        numbers.append(clause)
        end = span.end
    return numbers


def _anywhere_in_clause(
    bases: Sequence[str], clause: NDArray[np.int64], members: frozenset[str]
) -> Flags:
    return np.isin(clause, clause[flags_of(base in members for base in bases)])


def _questions(text: str, spans: Sequence[Span]) -> list[bool]:
    ends = [hit.start() for hit in _SENTENCE_END.finditer(text)]
    flags: list[bool] = []
    at = 0
    for span in spans:
        while at < len(ends) and ends[at] < span.end:
            at += 1
        flags.append(at < len(ends) and text[ends[at]] == "?")
    return flags


# At the end, because they need `stem`.
_POSITIVE_STEMS = frozenset(stem(word) for word in lexicon.POSITIVE)
_NEGATIVE_STEMS = frozenset(stem(word) for word in lexicon.NEGATIVE)


def _opposite_stems() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for first, second in lexicon.OPPOSITES:
        table.setdefault(stem(first), set()).add(stem(second))
        table.setdefault(stem(second), set()).add(stem(first))
    return {word: frozenset(others) for word, others in table.items()}


OPPOSITE_STEMS = _opposite_stems()
"""For each stem with an opposite, the stems of its opposites."""
