"""Whether a memory is about something that is not for everybody in a group, by its words.

The words are data: `data/sensitivity.toml` has them by topic and language, in the form of the cues
of `memguard.local.safety`. They lean towards silence: a memory that is wrongly withheld from a
group is still used in private, and one that is wrongly shown cannot be taken back. The rules read
English, German, Spanish, French and Chinese; what is in another language counts as sensitive.
"""

import re
import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import get_args

from memguard.local.languages import language_of
from memguard.local.safety import compile_cue, entries_of, looks_like_safety
from memguard.normal_form import cue_forms
from memguard.schema.audience import SensitiveTopic

FINGERPRINT = "local:sensitivity:1"
"""Changes with the rules."""

_FILE = "sensitivity.toml"
_FIGURATIVE = "figurative"
_START = 2
"""Characters by which cues are looked up: only those that can occur are compared."""
_QUOTES = re.compile("[\u2019\u2018\u02bc]")


@dataclass(frozen=True)
class _TopicCues:
    """The cues of one topic, in all languages."""

    by_start: dict[str, list[tuple[str, re.Pattern[str]]]]
    figurative: re.Pattern[str]
    """Expressions in which such a word means something else; they are left out first."""

    def match(self, form: str, starts: frozenset[str]) -> bool:
        plain = self.figurative.sub(" ", form)
        return any(
            core in plain and pattern.search(plain)
            for start in starts & self.by_start.keys()
            for core, pattern in self.by_start[start]
        )


@cache
def _topics() -> dict[SensitiveTopic, _TopicCues]:
    text = (files("memguard.local") / "data" / _FILE).read_text(encoding="utf-8")
    tables: dict[str, dict[str, str]] = tomllib.loads(text)
    topics: dict[SensitiveTopic, _TopicCues] = {}
    for topic in get_args(SensitiveTopic):
        by_start: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
        for language, table in tables[topic].items():
            for entry in entries_of(table) if language != _FIGURATIVE else ():
                core, pattern = compile_cue(entry)
                by_start.setdefault(core[:_START], []).append((core, pattern))
        figures = [
            compile_cue(f"figure => {entry}")[1].pattern for entry in _figures(tables[topic])
        ]
        topics[topic] = _TopicCues(by_start, re.compile("|".join(figures)))
    return topics


def _figures(table: dict[str, str]) -> list[str]:
    return entries_of(table.get(_FIGURATIVE, ""))


# Cached, because every read in a group looks at the same memories again.
@lru_cache(maxsize=8192)
def sensitive_topic(text: str) -> SensitiveTopic | None:
    """The topic for which a text is not for a group; `None` if its words tell of none.

    Health comes first, then family, money and the search for work. A text about two of them has
    the first.
    """
    # Whoever writes for a prompt on the phone uses another apostrophe.
    plain = _QUOTES.sub("'", text)
    if looks_like_safety(plain):
        return "health"
    forms = cue_forms(plain)
    starts = frozenset(form[index : index + _START] for form in forms for index in range(len(form)))
    return next(
        (
            topic
            for topic, cues in _topics().items()
            if any(cues.match(form, starts) for form in forms)
        ),
        None,
    )


def is_unread(text: str) -> bool:
    """Whether a text is in a language that the rules do not read."""
    return language_of(text, unknown="en") == "other"
