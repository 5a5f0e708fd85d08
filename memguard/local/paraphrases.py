"""Whether two memories say the same in other words, by rules for five languages. Pure.

`statement_form` gives the content of a memory in an order and a form that wordings share: "I live
in Porto" and "The user lives in Porto." have one form. What may be another value is never left out
of it: numbers, names, negations, times, dates, doubts, and whose fact it is. So texts of one form
say the same, and texts that conflict have two.
"""

import re
import tomllib
from collections.abc import Collection
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

from memguard.local.languages import language_of
from memguard.normal_form import comparison_form

FINGERPRINT = "local:paraphrases:1"
"""Changes with the rules."""

_FILE = "paraphrases.toml"
_NOT = "not"
_ANYMORE = "anymore"
_WORD = re.compile(r"\d+(?:[.,:/-]\d+)*|[^\W\d_]+(?:['\u2019][^\W\d_]+)?|[€$£¥%+#&@]")
_ELIDED = re.compile(r"\b([ldjmnstc]|qu)'")
_THOUSANDS = re.compile(r"(?<=\d)[.,](?=\d{3}(?!\d))")
_CHINESE_GAPS = re.compile(r"[\s,.;:!?\u3001\u3002\uff0c\uff1a\uff1b\uff01\uff1f\"'\u201c\u201d]+")
_CHINESE_NEGATION = re.compile("[不没未无别]")
_LABEL = re.compile(r"^\s*([^:.!?\n]{1,40}):\s+(?=\S)")
_MAX_CHARS = 600
"""A longer memory is never merged: it says more than one thing."""
_MIN_STEM = 4
_MIN_NAMES = 2

StatementForm = tuple[str, ...]
"""The language, then the content in order; for comparison only."""


class _Words(NamedTuple):
    """The words of one language that count for nothing, or as another word."""

    glue: frozenset[str]
    user: frozenset[str]
    negations: frozenset[str]
    ordering: frozenset[str]
    """Words after which the order of what they join matters: "from Porto to Lyon"."""
    same: dict[str, str]
    """The word that stands for another one."""
    endings: tuple[str, ...]
    phrases: tuple[tuple[str, str], ...]


@cache
def _vocabulary() -> dict[str, _Words]:
    text = (files("memguard.local") / "data" / _FILE).read_text(encoding="utf-8")
    tables: dict[str, dict[str, str]] = tomllib.loads(text)
    return {language: _words_of(table) for language, table in tables.items()}


def _words_of(table: dict[str, str]) -> _Words:
    same: dict[str, str] = {}
    for line in table["same"].splitlines():
        name, _, words = line.partition(":")
        same.update(dict.fromkeys(words.split(), name.strip()))
    pairs = [line.partition("=>") for line in table["phrases"].splitlines() if line.strip()]
    return _Words(
        glue=frozenset(table["glue"].split()),
        user=frozenset(table["user"].split()),
        negations=frozenset(table["negations"].split()),
        ordering=frozenset(table["ordering"].split()),
        same=same,
        endings=tuple(table["endings"].split()),
        phrases=tuple((before.strip(), after.strip()) for before, _, after in pairs),
    )


@lru_cache(maxsize=8192)
def statement_form(text: str, names: frozenset[str] = frozenset()) -> StatementForm | None:
    """The form that texts share which say the same; `None` for a text that is never merged.

    Args:
        text: A memory.
        names: Names of the user, case-folded; in the form they are the user.
    """
    if len(text) > _MAX_CHARS or "?" in text or "\n" in text.strip():
        return None
    language = language_of(text, unknown="en")
    if language == "other":
        return None
    plain = _without_label(comparison_form(text).strip(), names)
    if language == "zh":
        return _chinese_form(plain)
    tokens = _tokens(plain, _vocabulary()[language], names=names)
    # Nothing but glue says nothing that could be compared.
    return (language, *tokens) if tokens else None


def _without_label(text: str, names: Collection[str]) -> str:
    """The text without "Ana: " before it, if Ana is the user."""
    label = _LABEL.match(text)
    if label is None:
        return text
    is_user = label[1].casefold() in {*names, "the user", "user", "i"}
    return text[label.end() :] if is_user else text


def _tokens(text: str, words: _Words, *, names: Collection[str]) -> tuple[str, ...]:
    lowered = _ELIDED.sub(r"\1 ", text.casefold().replace("\u2019", "'"))
    lowered = _THOUSANDS.sub("", lowered)
    for before, after in words.phrases:
        lowered = lowered.replace(before, after)
    content: list[str] = []
    ordered = False
    for word in _WORD.findall(lowered):
        part = _content_of(word, words, names=names)
        ordered = ordered or word in words.ordering
        if part:
            content.append(part)
    bound = _bind_negations(content)
    # Two names or numbers may have changed places: "Ana pays Rui", "3 days of 5".
    capitals = _capitals(text, words)
    values = sum(token[:1].isdigit() or token in capitals for token in bound)
    return tuple(bound) if ordered or values >= _MIN_NAMES else tuple(sorted(bound))


def _content_of(word: str, words: _Words, *, names: Collection[str]) -> str:
    """What a word counts as; nothing for one that carries no content."""
    if word in words.negations or word.endswith("n't"):
        return _NOT
    if word in words.user or word in names or word in words.glue:
        return ""
    head, apostrophe, tail = word.partition("'")
    if apostrophe:
        if head in words.glue | words.user:
            return _content_of(tail, words, names=names)
        # "Rui's" belongs to Rui; "she's" is a verb.
        word = f"{head}'s" if tail == "s" else f"{head}{tail}"
        return "" if head in names else word
    # Not by the stem: that of a past form, "wohnte", may be a word of the present, "wohnt".
    return words.same.get(word) or _stem(word, words)


def _stem(word: str, words: _Words) -> str:
    ending = next(
        (
            ending
            for ending in words.endings
            if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM - 1
        ),
        "",
    )
    return word[: len(word) - len(ending)] if ending else word


def _bind_negations(content: list[str]) -> list[str]:
    """The content with each negation joined to the word that it denies, the next one."""
    bound: list[str] = []
    denied = False
    if _ANYMORE in content:
        # "No longer drinks" and "does not drink any more" have it in different positions.
        content = [*(token for token in content if token != _ANYMORE), _ANYMORE]
    for token in content:
        if token == _NOT:
            denied = True
            continue
        bound.append(f"{_NOT} {token}" if denied else token)
        denied = False
    return [*bound, _NOT] if denied else bound


def _capitals(text: str, words: _Words) -> frozenset[str]:
    """Words with a capital that may be names, as they count; of German, all nouns."""
    capitals = (word.casefold() for word in _WORD.findall(text) if word[:1].isupper())
    return frozenset(word for word in capitals if word not in words.glue | words.user)


def _chinese_form(text: str) -> StatementForm | None:
    table = _vocabulary()["zh"]
    plain = _CHINESE_GAPS.sub("", text.casefold())
    for before, after in table.phrases:
        plain = plain.replace(before, after)
    for word in sorted(table.user | table.glue, key=len, reverse=True):
        plain = plain.replace(word, "")
    return ("zh", plain) if plain else None


def has_negation(text: str) -> bool:
    """Whether a text has a word of negation in one of the five languages."""
    if _CHINESE_NEGATION.search(text):
        return True
    words = {word.casefold() for word in _WORD.findall(text.replace("\u2019", "'"))}
    tables = _vocabulary().values()
    return any(words & table.negations for table in tables) or any(
        word.endswith("n't") or word.startswith("n'") for word in words
    )


def are_paraphrases(first: str, second: str, *, names: Collection[str] = ()) -> bool:
    """Whether two texts certainly say the same; for tests and measurements."""
    known = frozenset(name.casefold() for name in names)
    forms = [statement_form(text, known) for text in (first, second)]
    return forms[0] is not None and forms[0] == forms[1]
