"""Whether a memory is about something that is not for everybody in a group, by its words.

The words are data: `data/sensitivity.toml` has them by topic and language, in the form of the cues
of `memguard.local.safety`. They lean towards silence: a memory that is wrongly withheld from a
group is still used in private, and one that is wrongly shown cannot be taken back. The rules read
English, German, Spanish, French and Chinese; what is in another language counts as sensitive.
"""

import re
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import get_args

from memguard.local.languages import language_of
from memguard.local.safety import compile_cue, entries_of, looks_like_safety
from memguard.local.statements import split_sentences
from memguard.normal_form import cue_forms
from memguard.schema.audience import SensitiveTopic

FINGERPRINT = "local:sensitivity:1"
"""Changes with the rules."""

_FILE = "sensitivity.toml"
_FIGURATIVE = "figurative"
_QUOTES = re.compile("[\u2019\u2018\u02bc]")
# "I'm broke" and "I am broke": the cues have the long form.
_SHORT_FORMS = (
    (re.compile(r"\b(i)'m\b", re.IGNORECASE), r"\1 am"),
    (re.compile(r"\b(he|she|it|who|that|there)'s\b", re.IGNORECASE), r"\1 is"),
    (re.compile(r"\b(you|we|they)'re\b", re.IGNORECASE), r"\1 are"),
    (re.compile(r"\b(i|you|we|they)'ve\b", re.IGNORECASE), r"\1 have"),
)


@dataclass(frozen=True)
class _TopicCues:
    """The cues of one topic."""

    by_language: dict[str, list[tuple[str, re.Pattern[str]]]]
    figurative: re.Pattern[str]
    """Expressions in which such a word means something else; they are left out first."""

    def match(self, form: str, languages: Collection[str]) -> bool:
        """Whether a cue occurs, in a language of the text or, by its stem, in another one."""
        plain = self.figurative.sub(" ", form)
        # The stem is what a pattern usually contains. In a language of the text nothing is left to
        # that; the other languages are for words that a text quotes.
        return any(
            (name in languages or core in plain) and pattern.search(plain) is not None
            for name, cues in self.by_language.items()
            for core, pattern in cues
        )


@cache
def _topics() -> dict[SensitiveTopic, _TopicCues]:
    text = (files("memguard.local") / "data" / _FILE).read_text(encoding="utf-8")
    tables: dict[str, dict[str, str]] = tomllib.loads(text)
    topics: dict[SensitiveTopic, _TopicCues] = {}
    for topic in get_args(SensitiveTopic):
        cues = {
            language: [compile_cue(entry) for entry in entries_of(table)]
            for language, table in tables[topic].items()
            if language != _FIGURATIVE
        }
        figures = [
            compile_cue(f"figure => {entry}")[1].pattern
            for entry in entries_of(tables[topic][_FIGURATIVE])
        ]
        topics[topic] = _TopicCues(cues, re.compile("|".join(figures)))
    return topics


def has_read_lists() -> bool:
    """Whether `sensitive_topic` reads no file any more, as it does the first time."""
    return _topics.cache_info().currsize > 0


# Cached, because every read in a group looks at the same memories again.
@lru_cache(maxsize=8192)
def sensitive_topic(text: str) -> SensitiveTopic | None:
    """The topic for which a text is not for a group; `None` if its words tell of none.

    Health comes first, then family, money and the search for work. A text about two of them has
    the first.
    """
    # Whoever writes on the phone uses another apostrophe.
    plain = _QUOTES.sub("'", text)
    for short, long in _SHORT_FORMS:
        plain = short.sub(long, plain)
    forms = cue_forms(plain)
    health = _topics()["health"]
    if any(looks_like_safety(health.figurative.sub(" ", form)) for form in forms):
        return "health"
    # Of each sentence: a memory may join two languages.
    parts = (*forms, *(sentence for form in forms for sentence in split_sentences(form)))
    languages = frozenset(language_of(part, unknown="en") for part in parts)
    return next(
        (
            topic
            for topic, cues in _topics().items()
            if any(cues.match(form, languages) for form in forms)
        ),
        None,
    )


def is_unread(text: str) -> bool:
    """Whether a text is in a language that the rules do not read."""
    return language_of(text, unknown="en") == "other"
