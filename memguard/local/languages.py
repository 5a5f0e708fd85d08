"""Guesses the language of a short text from its script and its function words.

The rules of this package exist for English, German, Spanish, French and Chinese. Other languages
are recognised only to the extent that they are not taken for one of these.
"""

import re
import tomllib
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal, NamedTuple

Language = Literal["en", "de", "es", "fr", "zh", "other"]
"""A language with rules of its own, or `other` for all that are not understood."""

_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
_CHINESE = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_JAPANESE_OR_KOREAN = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
_LAST_LATIN = 0x24F
_LATIN: tuple[Language, ...] = ("en", "de", "es", "fr")
_LETTERS: dict[Language, frozenset[str]] = {
    "en": frozenset(),
    "de": frozenset("ßäöü"),
    "es": frozenset("ñáíóú"),
    "fr": frozenset("çèêëàâôûîïœù"),
}
_OTHER_LETTERS = frozenset("łążęźćńśåøæãõşğıřčšžůășțőűìò")
_OTHER_LETTER = 2
"""A letter that none of the known languages has counts as much as two function words."""
_FEW_WORDS = 4
_SHARE_OF_SCRIPT = 0.3


class _Words(NamedTuple):
    by_language: dict[str, frozenset[str]]
    other: tuple[frozenset[str], ...]


@cache
def _words() -> _Words:
    text = (files("memguard.local") / "data" / "languages.toml").read_text(encoding="utf-8")
    tables: dict[str, dict[str, str]] = tomllib.loads(text)
    by_language = {name: frozenset(words.split()) for name, words in tables["known"].items()}
    return _Words(
        by_language, tuple(frozenset(words.split()) for words in tables["other"].values())
    )


@lru_cache(maxsize=2048)
def language_of(text: str, *, default: Language = "en") -> Language:
    """The language of a text, by its script and function words.

    Args:
        text: A sentence, or more.
        default: The language of a text of at most four words of which none is a function word,
            such as that of the text around it.

    Returns:
        `other` for a text in a language without rules, and for a longer one in which no function
        word is known.
    """
    letters = [char for char in text.lower() if char.isalpha()]
    if not letters:
        return default
    script = _language_of_script(text, letters)
    return script if script is not None else _latin_language(text, default=default)


def _language_of_script(text: str, letters: list[str]) -> Language | None:
    """The language that the script decides; `None` for Latin letters."""
    if _JAPANESE_OR_KOREAN.search(text):
        return "other"
    enough = _SHARE_OF_SCRIPT * len(letters)
    if len(_CHINESE.findall(text)) > enough:
        return "zh"
    return "other" if sum(ord(char) > _LAST_LATIN for char in letters) > enough else None


def _latin_language(text: str, *, default: Language) -> Language:
    words = [word.replace("\u2019", "'") for word in _WORD.findall(text.lower())]
    letters = frozenset("".join(words))
    vocabularies = _words()
    scores = {
        language: _hits(words, vocabularies.by_language[language])
        # Accents decide between languages that share the words, never on their own: `my fiancé`.
        + (0.5 if letters & _LETTERS[language] else 0.0)
        for language in _LATIN
    }
    best = max(_LATIN, key=lambda language: (scores[language], language == default))
    foreign = max(_hits(words, vocabulary) for vocabulary in vocabularies.other)
    foreign += _OTHER_LETTER * len(letters & _OTHER_LETTERS)
    # Italian and Portuguese share half of their function words with Spanish and French.
    if foreign > scores[best] or (foreign == scores[best] > 1 and best in {"es", "fr"} - {default}):
        return "other"
    if scores[best] > 0:
        return best
    return default if len(words) <= _FEW_WORDS else "other"


def _hits(words: list[str], vocabulary: frozenset[str]) -> int:
    # The first part of `j'habite` is a word too, with its apostrophe.
    return sum(word in vocabulary or word[: word.find("'") + 1] in vocabulary for word in words)
