"""Guesses the language of a short text from its script, function words, letters and endings.

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
CHINESE = re.compile(r"[\u3400-\u9fff]")
"""Matches a character of Chinese writing, which Japanese uses too."""
_IDEOGRAPH = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_JAPANESE = re.compile(r"[\u3040-\u30ff]")
_LAST_LATIN = 0x24F
_LATIN: tuple[Language, ...] = ("en", "de", "es", "fr")
# Signs that the others of the four have not. French and Spanish share `é`.
_SIGNS: dict[Language, re.Pattern[str]] = {
    "de": re.compile("[äöüß„]"),
    "es": re.compile("[ñáíóú]"),
    "fr": re.compile("[çèêëàâôûîïœù]| \\?"),
}
_INVERTED = re.compile("[¿¡]")
# Endings decide where the words of two languages are as many.
_ENDINGS: dict[Language, re.Pattern[str]] = {
    "de": re.compile(r"(?:ung|lich|isch|heit|keit|schaft|chen|tet)\b"),
    "es": re.compile(r"(?:ción|dad|ado|ada|ando|iendo|oso|osa|ito|ita|os|as)\b"),
    "fr": re.compile(r"(?:ment|aire|eux|euse|eur|eau|aux|ait|ette|it|ent|ée|ées)\b"),
}
_OTHER_LETTERS = frozenset("łążęźćńśåøæãõşğıřčšžůășțőűìò")
_OTHER_LETTER = 2
"""A letter that none of the known languages has counts as much as two function words."""
_SIGN = 0.5
_FEW_WORDS = 4
_SHARE_OF_SCRIPT = 0.25


class _Vocabularies(NamedTuple):
    by_language: dict[str, frozenset[str]]
    other: tuple[frozenset[str], ...]


@cache
def _tables() -> dict[str, dict[str, frozenset[str]]]:
    text = (files("memguard.local") / "data" / "languages.toml").read_text(encoding="utf-8")
    tables: dict[str, dict[str, str]] = tomllib.loads(text)
    return {
        table: {name: frozenset(words.split()) for name, words in entries.items()}
        for table, entries in tables.items()
    }


def words_of_grammar(language: Language) -> frozenset[str]:
    """The words that texts of a language share whatever they are about; none of Chinese."""
    return _tables()["grammar"].get(language, frozenset())


@cache
def _vocabularies() -> _Vocabularies:
    known = _tables()["known"]
    return _Vocabularies(
        {language: known[language] | words_of_grammar(language) for language in _LATIN},
        (*_tables()["other"].values(), words_of_grammar("other")),
    )


# Several parts look at the language of the same text.
@lru_cache(maxsize=8192)
def language_of(text: str, *, default: Language = "en", unknown: Language = "other") -> Language:
    """The language of a text, by its script and words.

    Args:
        text: A sentence, or more.
        default: The language of a text of at most four words of which none is a function word,
            such as that of the text around it.
        unknown: The same for a longer text.

    Returns:
        `other` for a text in a language without rules.
    """
    letters = [char for char in text.lower() if char.isalpha()]
    if not letters:
        return default
    script = _language_of_script(text, letters)
    if script is not None:
        return script
    return _latin_language(text.lower(), default=default, unknown=unknown)


def _language_of_script(text: str, letters: list[str]) -> Language | None:
    """The language that the script decides; `None` for Latin letters."""
    enough = _SHARE_OF_SCRIPT * len(letters)
    chinese, japanese = len(_IDEOGRAPH.findall(text)), len(_JAPANESE.findall(text))
    # A Japanese text is full of Chinese characters.
    if japanese and chinese + japanese > enough:
        return "other"
    if chinese > enough:
        return "zh"
    return "other" if sum(ord(char) > _LAST_LATIN for char in letters) > enough else None


def _latin_language(text: str, *, default: Language, unknown: Language) -> Language:
    words = [word.replace("\u2019", "'") for word in _WORD.findall(text)]
    vocabularies = _vocabularies()
    scores: dict[Language, float] = {
        language: _hits(words, vocabularies.by_language[language]) for language in _LATIN
    }
    for language, signs in _SIGNS.items():
        # Accents decide between languages that share the words, hardly alone: `my fiancé`.
        scores[language] += _SIGN if signs.search(text) else 0.0
    scores["es"] += _OTHER_LETTER if _INVERTED.search(text) else 0
    best = max(
        _LATIN,
        key=lambda language: (scores[language], language == default, _endings(text, language)),
    )
    foreign: float = max(_hits(words, vocabulary) for vocabulary in vocabularies.other)
    foreign += _OTHER_LETTER * len(_OTHER_LETTERS.intersection(text))
    # Italian and Portuguese share half of their function words with Spanish and French.
    if foreign > scores[best] or (foreign == scores[best] > 1 and best in {"es", "fr"} - {default}):
        return "other"
    if scores[best] > 0:
        return best
    return default if len(words) <= _FEW_WORDS else unknown


def _endings(text: str, language: Language) -> int:
    pattern = _ENDINGS.get(language)
    return len(pattern.findall(text)) if pattern else 0


def _hits(words: list[str], vocabulary: frozenset[str]) -> int:
    # The first part of `j'habite` is a word too, with its apostrophe.
    return sum(word in vocabulary or word[: word.find("'") + 1] in vocabulary for word in words)
