"""Changes one detail of a true sentence, so that it no longer follows from its turns.

A substitute is never a word of the window, except in a swap, where it must be one.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.verifier import tables
from benchmarks.verifier.frames import Frames, frame_at
from memguard.local.verifier import lexicon
from memguard.local.verifier.words import Span, read_words, split_words, stem, stems_of

WEIGHTS: dict[str, float] = {
    "number": 2.5,
    "swap": 2.5,
    "name": 2.2,
    "place": 2.0,
    "occupation": 2.0,
    "date": 2.0,
    "activity": 1.5,
    "relation": 1.5,
    "speaker": 1.5,
    "object": 1.4,
    "unstated": 0.9,
    "antonym": 0.7,
    "negation": 0.22,
}
"""Relative frequency with which each kind is tried first. Rare details have larger weights, because
objects would crowd them out."""

# Weight of `negation` for a sentence that is negated already.
_NEGATED_WEIGHT = 2.5
# Substitutes are drawn by frequency to this power, between uniform (0) and proportional (1).
_COMMON_POWER = 0.75
_DIGITS = re.compile(r"\d+")
# A number changes by at most this much, or by a quarter of it if that is more.
_CLOSE = 3
# A sentence of no more words than this says too little to be a claim.
_SHORT = 2
_AUXILIARIES = ("is", "has", "was", "can", "does", "did", "will", "am", "have", "do")


@dataclass(frozen=True, kw_only=True)
class Fact:
    """A true sentence and the turns that support it."""

    text: str
    """The sentence."""
    window: str
    """All turns around the sentence, with their speakers."""
    subject: str
    """Name of the person it is about, as written in it; empty if it has none."""
    other: str
    """The other speaker."""
    unrelated: Sequence[str] = ()
    """Sentences about the same person that these turns do not support."""
    spans: tuple[Span, ...] = field(init=False)
    """The words of the sentence."""
    present: frozenset[str] = field(init=False)
    """Stems of the window and of the sentence, which no substitute may have."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "spans", tuple(split_words(self.text)))
        stems = stems_of(self.window) | stems_of(self.text)
        object.__setattr__(self, "present", stems)

    def with_word(self, span: Span, word: str) -> str:
        """The sentence with one word replaced, capitalised like the old one."""
        new = word[:1].upper() + word[1:] if span.text[:1].isupper() else word
        return self.text[: span.start] + new + self.text[span.end :]


Change = Callable[[Fact, Frames, random.Random], str | None]
"""Returns the changed sentence, or `None` if the change does not apply to the fact."""


def corrupt(
    fact: Fact,
    frames: Frames,
    rng: random.Random,
    *,
    weights: Mapping[str, float] = WEIGHTS,
    skip: frozenset[str] = frozenset(),
) -> tuple[str, str] | None:
    """Change one detail of a fact.

    Args:
        fact: The fact to change.
        frames: Words that occur in the same contexts.
        rng: Source of randomness.
        weights: Relative frequency with which each kind is tried first.
        skip: Kinds not to try.

    Returns:
        The changed sentence and the kind of change; `None` when no kind applies.
    """
    weights = dict(weights)
    if "negation" in weights and read_words(fact.text).negation.any():
        # Otherwise `not` would nearly always mean `false`.
        weights["negation"] = _NEGATED_WEIGHT
    kinds = [kind for kind in weights if kind not in skip]
    while kinds:
        kind = rng.choices(kinds, [weights[name] for name in kinds])[0]
        changed = CHANGES[kind](fact, frames, rng)
        if changed is not None and changed.lower() != fact.text.lower():
            return changed, kind
        kinds.remove(kind)
    return None


def change_number(fact: Fact, frames: Frames, rng: random.Random) -> str | None:
    """Replace a number by another one near it."""
    del frames
    spans = [
        span
        for span in fact.spans
        if _DIGITS.fullmatch(span.text) or span.text.lower() in tables.SMALL[1:]
    ]
    if not spans:
        return None
    span = rng.choice(spans)
    if span.text.isdigit():
        value = int(span.text)
        reach = max(_CLOSE, value // 4)
        options = [
            str(value + step) for step in range(-reach, reach + 1) if step and value + step > 0
        ]
    else:
        options = list(tables.SMALL)
    window = read_words(fact.window).values | read_words(fact.text).values
    fresh = [option for option in options if read_words(option).values.isdisjoint(window)]
    return fact.with_word(span, rng.choice(fresh)) if fresh else None


def change_name(fact: Fact, frames: Frames, rng: random.Random) -> str | None:
    """Replace the first name of somebody who is not the subject."""
    del frames
    words = read_words(fact.text)
    names = frozenset(tables.FIRST_NAMES)
    capital = [bool(flag) for flag in words.capital]
    # Lone capitalised words only: half of "New York" or of a full name cannot be replaced.
    spans = [
        span
        for index, span in enumerate(fact.spans)
        if span.text in names | {span.text if capital[index] else ""}
        and span.text not in {fact.subject, *tables.PLACES, *tables.MONTHS, *tables.WEEKDAYS}
        and not (capital[index - 1 : index] == [True] or capital[index + 1 : index + 2] == [True])
        and (span.text in names or _after_relation(fact.spans, index))
    ]
    # A name of the window may be right: Ben's sister may be Anna's cousin.
    options = [name for name in tables.FIRST_NAMES if stem(name) not in fact.present]
    return fact.with_word(rng.choice(spans), rng.choice(options)) if spans else None


def _after_relation(spans: Sequence[Span], index: int) -> bool:
    before = spans[index - 1].text.lower() if index else ""
    return before in {*tables.RELATIONS, *tables.PETS, "named", "called", "name"}


def _from_table(*groups: Sequence[str]) -> Change:
    """A change that replaces a word of a group by another word of the same group."""

    def change(fact: Fact, frames: Frames, rng: random.Random) -> str | None:
        hits = [
            (span, group, plural)
            for span in fact.spans
            for group in groups
            for plural in ("", "s")
            if span.text.removesuffix(plural) in group
            or span.text.lower().removesuffix(plural) in group
            if not plural or span.text.endswith("s")
        ]
        if not hits:
            return None
        span, group, plural = rng.choice(hits)
        options = [word for word in group if stem(word) not in fact.present]
        if not options:
            return None
        word = _common(options, frames, rng)
        return fact.with_word(span, word + plural if not word.endswith("s") else word)

    return change


def _common(options: Sequence[str], frames: Frames, rng: random.Random) -> str:
    # By frequency in the corpus, or rare substitutes would give the changed claims away.
    weights = [(frames.counts[option.lower()] + 1) ** _COMMON_POWER for option in options]
    return rng.choices(options, weights)[0]


def change_date(fact: Fact, frames: Frames, rng: random.Random) -> str | None:
    """Replace a month, weekday, year or relative date."""
    changed = _from_table(tables.MONTHS, tables.WEEKDAYS)(fact, frames, rng)
    if changed is not None:
        return changed
    lowered = fact.text.lower()
    for group in tables.RELATIVE_DATES:
        for phrase in group:
            hit = re.search(rf"\b{phrase}\b", lowered)
            if hit:
                fresh = [option for option in group if option not in fact.window.lower()]
                if fresh:
                    new = rng.choice(fresh)
                    return fact.text[: hit.start()] + new + fact.text[hit.end() :]
    years = [span for span in fact.spans if re.fullmatch(r"(?:19|20)\d\d", span.text)]
    if not years:
        return None
    span = rng.choice(years)
    new = str(int(span.text) + rng.choice([-3, -2, -1, 1, 2, 3]))
    return fact.with_word(span, new) if new not in fact.window else None


def change_object(fact: Fact, frames: Frames, rng: random.Random) -> str | None:
    """Replace a word by another one that occurs in the same contexts."""
    # No substitute from the window: there it might be true.
    hits: list[tuple[Span, list[str]]] = []
    for span, fitting in _fitting(fact, frames):
        options = [word for word in fitting if stem(word) not in fact.present]
        if options:
            hits.append((span, options))
    if not hits:
        return None
    span, options = rng.choice(hits)
    return fact.with_word(span, _common(options, frames, rng))


def change_swap(fact: Fact, frames: Frames, rng: random.Random) -> str | None:
    """Replace a word by one of the same kind from the window that is not in the fact."""
    stated = stems_of(fact.text)
    theirs = [
        span.text
        for span in split_words(fact.window)
        if stem(span.text) not in stated and span.text not in {fact.subject, fact.other}
    ]
    fitting = {span.start: frozenset(words) for span, words in _fitting(fact, frames)}
    options: dict[Span, list[str]] = {}
    for span in fact.spans:
        fits = fitting.get(span.start, frozenset())
        words = [word for word in theirs if word.lower() in fits or _same_kind(span.text, word)]
        if words and span.text != fact.subject:
            options[span] = sorted(set(words))
    if not options:
        return None
    # First choose the word to replace: a choice among all pairs would favour words that a long
    # window offers many substitutes for.
    span = rng.choice(list(options))
    other = rng.choice(options[span])
    new = other if other in tables.FIRST_NAMES or other in tables.PLACES else other.lower()
    return fact.with_word(span, new)


def _fitting(fact: Fact, frames: Frames) -> list[tuple[Span, list[str]]]:
    """For every content word, the words that occur between the same neighbours in the corpus."""
    # The corpus is in the first person, so the subject is looked up as `I`.
    words = ["i" if span.text == fact.subject else span.text.lower() for span in fact.spans]
    fillers: list[tuple[Span, list[str]]] = []
    for index, span in enumerate(fact.spans):
        word = words[index]
        if word in lexicon.STOP or word in lexicon.NEGATIONS or not span.text.isalpha():
            continue
        if not _is_nominal(words, index):
            continue
        options = [
            other
            for other in frames.like(word, frame_at(words, index))
            # A word that occurs once may be a typing error.
            if frames.counts[other] > 1
            and stem(other) != stem(word)
            and other not in lexicon.NEGATIONS
        ]
        if options and span.text != fact.subject:
            fillers.append((span, sorted(options)))
    return fillers


def _is_nominal(words: Sequence[str], index: int) -> bool:
    """Whether a word is where nouns and adjectives occur; verbs are not replaced."""
    before = words[index - 1] if index else ""
    return before in _BEFORE_NOUNS or (index == len(words) - 1 and before not in _BEFORE_VERBS)


_BEFORE_NOUNS = frozenset({
    "a", "an", "the", "my", "his", "her", "their", "our", "some", "of", "in", "at", "with", "for",
    "on", "as", "from", "new", "old", "favorite", "own", "many", *tables.SMALL,
})  # fmt: skip
_BEFORE_VERBS = frozenset({"", "to", "i", "is", "was", "be", "not", "very", "so", "been", "are"})

_GROUPS = tuple(
    frozenset(word.lower() for word in group)
    for group in (
        tables.FIRST_NAMES,
        tables.PLACES,
        tables.OCCUPATIONS,
        tables.RELATIONS + tables.PETS,
        tables.ACTIVITIES,
        tables.MONTHS,
        tables.WEEKDAYS,
    )
)


def _same_kind(first: str, second: str) -> bool:
    """Whether both are different numbers, or both are in one word list."""
    first, second = first.lower(), second.lower()
    numbers = [_DIGITS.fullmatch(word) or word in tables.SMALL[1:] for word in (first, second)]
    if any(numbers):
        return all(numbers) and read_words(first).values != read_words(second).values
    return any(first in group and second in group for group in _GROUPS)


def change_speaker(fact: Fact, frames: Frames, rng: random.Random) -> str | None:
    """Attribute the fact to the other speaker."""
    del frames, rng
    if not fact.subject or not fact.other:
        return None
    changed = re.sub(rf"\b{re.escape(fact.subject)}\b", fact.other, fact.text)
    return changed if changed != fact.text else None


def change_owner(fact: Fact, frames: Frames, rng: random.Random) -> str | None:
    """Attribute what is true of the subject's sister to the subject; used in training alone."""
    del frames, rng
    if not fact.subject:
        return None
    kin = "|".join((*tables.RELATIONS, *tables.PETS))
    whose = rf"\b{re.escape(fact.subject)}'s (?:[a-z]+ )?(?:{kin})\b(?! and)(?: [A-Z]\w+)?"
    changed = re.sub(whose, fact.subject, fact.text, count=1)
    return changed if changed != fact.text and len(changed.split()) > _SHORT else None


def change_unstated(fact: Fact, frames: Frames, rng: random.Random) -> str | None:
    """Replace the whole sentence by an unrelated one about the same person."""
    del frames
    return rng.choice(fact.unrelated) if fact.unrelated else None


def change_antonym(fact: Fact, frames: Frames, rng: random.Random) -> str | None:
    """Replace a word by its opposite."""
    del frames
    pairs = dict(tables.ANTONYMS)
    pairs |= {second: first for first, second in tables.ANTONYMS if " " not in second}
    hits = [
        span
        for span in fact.spans
        if span.text.lower() in pairs and stem(pairs[span.text.lower()]) not in fact.present
    ]
    if not hits:
        return None
    span = rng.choice(hits)
    return fact.with_word(span, pairs[span.text.lower()])


def change_negation(fact: Fact, frames: Frames, rng: random.Random) -> str | None:
    """Remove a `not`, or insert one after the first auxiliary."""
    del frames, rng
    for span in fact.spans:
        lower = span.text.lower()
        if lower in {"not", "never"}:
            return (fact.text[: span.start] + fact.text[span.end :].lstrip()).strip()
        if lower.endswith("n't") and lower not in {"won't", "can't"}:
            return fact.with_word(span, span.text[:-3])
    for span in fact.spans:
        if span.text.lower() in _AUXILIARIES:
            # Not in "has a dog": the grammar of "has not a dog" would give the change away.
            if span.text.lower() in {"has", "have"} and not _is_perfect(fact, span):
                continue
            return fact.text[: span.end] + " not" + fact.text[span.end :]
    return None


def _is_perfect(fact: Fact, span: Span) -> bool:
    after = fact.text[span.end :].split()
    return bool(after) and (after[0].endswith("ed") or after[0] in {"been", "had", "gone", "got"})


CHANGES: dict[str, Change] = {
    "number": change_number,
    "swap": change_swap,
    "name": change_name,
    "place": _from_table(tables.PLACES),
    "occupation": _from_table(tables.OCCUPATIONS),
    "date": change_date,
    "activity": _from_table(tables.ACTIVITIES),
    "relation": _from_table(tables.RELATIONS, tables.PETS),
    "speaker": change_speaker,
    "owner": change_owner,
    "object": change_object,
    "unstated": change_unstated,
    "antonym": change_antonym,
    "negation": change_negation,
}
"""Every kind of change by its name."""
