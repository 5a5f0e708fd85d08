"""Topics of everyday life by their words, in English, German, Spanish, French and Chinese.

The words were written by hand. They tell two texts of different topics apart where no encoder reads
their language. A text without any of the words has no topic, and nothing follows from that.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib import resources

from memguard.local.languages import language_of
from memguard.local.verifier.words import split_words

_FILE = "topics.txt"


@lru_cache(maxsize=1)
def _lines() -> tuple[str, ...]:
    text = resources.files("memguard.local").joinpath("data", _FILE).read_text(encoding="utf-8")
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))


@lru_cache(maxsize=1)
def _read_words() -> dict[str, dict[str, frozenset[str]]]:
    """Topics by word, by language."""
    table: dict[str, dict[str, set[str]]] = {}
    for line in _lines():
        topic, language, *words = line.split()
        if topic.endswith(":"):
            continue
        for word in words:
            table.setdefault(language, {}).setdefault(word, set()).add(topic)
    return {
        language: {word: frozenset(topics) for word, topics in words.items()}
        for language, words in table.items()
    }


@lru_cache(maxsize=1)
def _read_close() -> dict[str, frozenset[str]]:
    close: dict[str, set[str]] = {}
    for line in _lines():
        topic, colon, others = line.partition(":")
        for other in others.split() if colon else ():
            close.setdefault(topic, {topic}).add(other)
            close.setdefault(other, {other}).add(topic)
    return {topic: frozenset(others) for topic, others in close.items()}


_NONE: frozenset[str] = frozenset()
# A beginning of fewer letters is shared by too many words.
_MIN_START = 3
# A word of English of this length means the same in another language: "laptop".
_MIN_LOAN = 5
# German joins words: "Wochenendausflug". A part this long is a word of its own.
_MIN_PART = 5


@lru_cache(maxsize=8192)
def topics_of(text: str) -> frozenset[str]:
    """The topics that a text has a word of; empty if it has none."""
    language = language_of(text, unknown="en")
    if language == "other":
        return _NONE
    if language == "zh":
        entries = _read_words()["zh"].items()
        return _joined(topics for word, topics in entries if word in text.casefold())
    return _joined(_topics_of_word(span.text.casefold(), language) for span in split_words(text))


def _joined(topics: Iterable[frozenset[str]]) -> frozenset[str]:
    return _NONE.union(*topics)


def _topics_of_word(word: str, language: str) -> frozenset[str]:
    # French joins an article by an apostrophe: "l'avion".
    word = word.replace("\u2019", "'")
    word = word[2:] if word[1:2] == "'" else word
    table = _read_words()[language]
    whole = table.get(f"{word}.", _NONE) | table.get(word, _NONE)
    # The longest beginning decides: "seafood" has nothing to do with the sea.
    starts = (word[:end] for end in range(len(word) - 1, _MIN_START - 1, -1))
    topics = whole or next((table[start] for start in starts if start in table), _NONE)
    if language == "de" and not topics:
        topics = _topics_inside(word, table)
    if language != "en" and not topics and len(word) >= _MIN_LOAN:
        return _topics_of_word(word, "en")
    return topics


def _topics_inside(word: str, table: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The topics of a part of a German compound, the last one first: what it is, then of what."""
    for start in range(len(word) - _MIN_PART, _MIN_START - 1, -1):
        for end in range(len(word), start + _MIN_PART - 1, -1):
            topics = table.get(word[start:end], _NONE) | table.get(f"{word[start:end]}.", _NONE)
            if topics:
                return topics
    return _NONE


def are_apart(first: str, second: str) -> bool:
    """Whether two texts have topics that have nothing to do with each other."""
    return share_topic(first, second) is False


def share_topic(first: str, second: str) -> bool | None:
    """Whether two texts have a topic in common, or topics that bear on one another.

    Returns:
        `None` if one of the texts has no topic, so that nothing can be told.
    """
    mine, others = topics_of(first), topics_of(second)
    if not mine or not others:
        return None
    return any(topic in others or _read_close().get(topic, _NONE) & others for topic in mine)


# Two words with the same beginning of this length are forms of one word in most languages.
_STEM = 5
_CJK_RUN = re.compile("[\u3400-\u9fff]+")
# Pairs of characters of requests and memories that say nothing of their topic.
_EMPTY_PAIRS = frozenset(
    [
        "用户",
        "我的",
        "什么",
        "可以",
        "怎么",
        "应该",
        "喜欢",
        "帮我",
        "一个",
        "不能",
        "的时",
        "时候",
        "户的",
        "户喜",
        "我可",
    ]
)
_EMPTY = frozenset(
    {"user", "nutze", "usuar", "utili", "users", "quest", "welch", "would", "could", "shoul"}
)


def share_words(query: str, text: str) -> bool:
    """Whether two texts share a longer word, a number, or two Chinese characters in a row."""
    return bool(_units(query) & _units(text))


def _units(text: str) -> set[str]:
    lowered = text.casefold()
    units = {
        span.text[:_STEM]
        for span in split_words(lowered)
        if len(span.text) >= _STEM or span.text[0].isdigit()
    }
    pairs = {run[at : at + 2] for run in _CJK_RUN.findall(lowered) for at in range(len(run) - 1)}
    return (units - _EMPTY) | (pairs - _EMPTY_PAIRS)
