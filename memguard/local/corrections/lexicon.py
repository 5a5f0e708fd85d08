"""What the reader of relations knows of five languages, from `data/corrections.toml`."""

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from memguard.local.languages import Language
from memguard.local.verifier.words import stem

_LANGUAGES: tuple[Language, ...] = ("en", "de", "es", "fr", "zh")
_ENDINGS = {
    "de": re.compile(r"(?:et|en|es|e|t|n|s)$"),
    "es": re.compile(r"(?:ando|iendo|amos|emos|imos|ar|er|ir|os|as|es|an|en|o|a|e|s)$"),
    "fr": re.compile(r"(?:ons|ent|ez|er|es|e|s|x)$"),
}
_MIN_STEM = 3
_FLAGS = ("ended", "now", "change", "also", "past", "unreal", "temporary", "reported", "plural")
_WHOLE = ("not", *_FLAGS, "indefinite")
_TENS_AT = 2
_ORDINALS_AT = 3


@dataclass(frozen=True, kw_only=True)
class CorrectionWords:
    """The words and patterns of one language."""

    concepts: Mapping[str, str]
    """What words and phrases mean, by their keys with single spaces."""
    longest: int
    """Words of the longest phrase; characters in Chinese."""
    exact: Mapping[str, str]
    """What words mean, as written: `préféré` is a favourite, and `préfère` prefers."""
    folded: Mapping[str, str]
    """The same without accents."""
    light: frozenset[str]
    """Words without content of their own, and their keys."""
    soft: frozenset[str]
    """Keys of words that one of two texts may have without saying more; characters in Chinese."""
    numbers: Mapping[str, int]
    """Numbers in words, in small letters."""
    ordinals: Mapping[str, int]
    """Ordinals from the third on, by their keys."""
    leaving: re.Pattern[str]
    """What says that somebody left a place."""
    phrases: tuple[tuple[re.Pattern[str], str], ...]
    """Phrases with what they are read as."""
    flags: Mapping[str, re.Pattern[str]]
    """How a statement is meant, by name of the flag; `not` for negations."""
    kept: re.Pattern[str]
    """An end that is denied, such as "I have not quit"."""
    reason: re.Pattern[str]
    """A clause of cause, up to the end."""
    joint: re.Pattern[str]
    """What joins two clauses or values."""
    changes: tuple[re.Pattern[str], ...]
    """Changes that name both values, in the groups `old` and `new`."""
    slots: Mapping[str, re.Pattern[str]]
    """Attributes with one value at a time."""
    end: re.Pattern[str]
    """Where a value ends."""


def folded(word: str) -> str:
    """A word in small letters without accents."""
    parts = unicodedata.normalize("NFD", word.lower().replace("ß", "ss"))
    return "".join(char for char in parts if not unicodedata.combining(char))


@lru_cache(maxsize=32_768)
def key_of_word(word: str, language: Language) -> str:
    """The form by which two inflections of a word are equal."""
    plain = folded(word)
    if language == "en":
        return stem(plain)
    endings = _ENDINGS.get(language)
    short = endings.sub("", plain) if endings else plain
    return short if len(short) >= _MIN_STEM else plain


@cache
def words_of(language: Language) -> CorrectionWords:
    """The words and patterns of a language that has rules, which are all but `other`."""
    return _read()[language]


@cache
def kinds() -> Mapping[str, frozenset[str]]:
    """Sets of concepts, by what the rules do with them."""
    return {name: frozenset(text.split()) for name, text in _data()["kinds"].items()}


@cache
def kinds_in_order(name: str) -> tuple[str, ...]:
    """A set of concepts, in its order."""
    return tuple(_data()["kinds"][name].split())


@cache
def concepts() -> frozenset[str]:
    """The names of all concepts."""
    return frozenset(words_of("en").concepts.values()) | frozenset(words_of("zh").concepts.values())


@cache
def wider() -> Mapping[str, frozenset[str]]:
    """Concepts with narrower ones that they include."""
    return {name: frozenset(text.split()) for name, text in _data()["wider"].items()}


@cache
def _data() -> dict[str, dict[str, Any]]:
    path = files("memguard.local") / "data" / "corrections.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


@cache
def _read() -> dict[Language, CorrectionWords]:
    lines = [line for line in str(_data()["concepts"]).splitlines() if ":" in line]
    return {language: _compile(language, lines, at) for at, language in enumerate(_LANGUAGES)}


def _compile(language: Language, lines: Iterable[str], at: int) -> CorrectionWords:
    data = _data()
    meanings: dict[str, str] = {}
    exact: dict[str, str] = {}
    plain: dict[str, str] = {}
    for line in lines:
        name, _, entries = line.partition(":")
        for phrase in entries.split("|")[at].split(","):
            key = phrase_key(phrase, language)
            # Of two meanings, the first one in the table counts.
            if key:
                meanings.setdefault(key, name.strip())
                exact.setdefault(phrase.strip(), name.strip())
                plain.setdefault(folded(phrase.strip()), name.strip())
    chinese = language == "zh"
    cues: dict[str, Any] = data["cues"][language]
    light = data["light"][language].split()
    return CorrectionWords(
        concepts=meanings,
        longest=max(len(key) if chinese else len(key.split()) for key in meanings),
        exact=exact,
        folded=plain,
        light=frozenset(key_of_word(word, language) for word in light) | frozenset(light),
        soft=frozenset(
            data["soft"][language]
            if chinese
            else (key_of_word(word, language) for word in data["soft"][language].split())
        ),
        numbers=_numbers(data["numbers"][language].split(), data["tens"][language].split()),
        ordinals=_ordinals(data["ordinals"][language].split(), language),
        leaving=re.compile(data["leaving"][language]),
        phrases=tuple((re.compile(source), target) for source, target in cues["phrases"]),
        flags={name: _whole(cues[name], chinese=chinese) for name in _WHOLE},
        kept=re.compile(cues["kept"]),
        reason=re.compile(cues["reason"]),
        joint=re.compile(cues["and"]),
        changes=tuple(re.compile(source) for source in data["changes"][language]),
        slots={name: re.compile(source) for name, source in data["slots"][language].items()},
        end=re.compile(data["ends"][language]),
    )


def phrase_key(phrase: str, language: Language) -> str:
    """The key of a word or a phrase of the table."""
    if language == "zh":
        return phrase.replace(" ", "")
    words = phrase.replace("'", "' ").split()
    return " ".join(key_of_word(word, language) for word in words)


def _numbers(units: list[str], tens: list[str]) -> dict[str, int]:
    numbers = {word: value for value, word in enumerate(units)}
    numbers |= {word: 10 * value for value, word in enumerate(tens, start=_TENS_AT)}
    return numbers


def _ordinals(words: list[str], language: Language) -> dict[str, int]:
    return {
        key_of_word(form, language): value
        for value, forms in enumerate(words, start=_ORDINALS_AT)
        for form in forms.split("/")
    }


def _whole(source: str, *, chinese: bool) -> re.Pattern[str]:
    """A pattern for whole words; Chinese does not separate them."""
    return re.compile(source if chinese else rf"(?<![\w'@.+-])(?:{source})(?![\w@]|[.-]\w)")
