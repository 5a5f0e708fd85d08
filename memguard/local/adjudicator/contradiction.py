"""Whether two sentences contradict each other, and whether one replaces the other.

The rules compare words: negation or dislike against liking of the same thing, opposites, a
different number, or a different value of something that has one value at a time. Two sentences that
merely differ do not contradict each other.
"""

import re
from functools import lru_cache

from memguard.local.adjudicator.cues import is_update, without_label
from memguard.local.adjudicator.nearness import content_stems
from memguard.local.verifier import lexicon
from memguard.local.verifier.words import read_words, split_words, stem
from memguard.schema.units import Kind

# Thresholds of our own, chosen on hand-written examples.
# Share of the shorter sentence's content stems that both must have to be about the same thing.
_SAME_TOPIC = 0.5
# The same share for two numbers, or two opposites, to be about the same thing.
_SAME_STATEMENT = 0.7
REPLACES = 0.45
"""Minimum cosine for a sentence that reports a change to replace another one."""

_LIKING = frozenset(
    stem(w) for w in (*lexicon.POSITIVE, "prefers", "likes", "wants", "fond", "into")
)
_DISLIKING = frozenset(
    stem(w) for w in ("dislike", "hate", "detest", "avoid", "refuse", "quit", "stopped", "allergic")
)
_OPPOSITES = frozenset(
    pair
    for first, second in lexicon.OPPOSITES
    for pair in ((stem(first), stem(second)), (stem(second), stem(first)))
)
_MEANINGLESS = (
    _LIKING | _DISLIKING | {stem(w) for w in ("user", "now", "longer", "anymore", "really")}
)

_I = re.IGNORECASE
# Facts that have one value at a time: two values of one slot contradict each other.
_SLOTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("home", re.compile(r"\b(?:lives? in|moved to|based in|resides? in) ([A-Z][\w' -]*)")),
    ("job", re.compile(r"\b(?:works? as|job is|employed as) (?:an? )?([\w' -]+)", _I)),
    ("employer", re.compile(r"\b(?:works? (?:at|for)|employed by) ([\w' -]+)", _I)),
    ("age", re.compile(r"\b(?:is|am|turned) (\d{1,3})(?: years old)?$", _I)),
    ("marriage", re.compile(r"\b(?:is|am) (single|married|divorced|engaged|widowed)\b", _I)),
    ("name", re.compile(r"\bname is ([\w' -]+)", _I)),
)  # fmt: skip
_FAVOURITE = re.compile(r"\bfavou?rite ([\w -]+?) (?:is|are) ([\w' -]+)", _I)
# Where the value of a slot ends: "a nurse and lives in Lyon" is the job "a nurse".
_VALUE_END = re.compile(r"\b(?:and|but|because|since|with|where|which|who|now|instead)\b.*", _I)

_REPLACEABLE: frozenset[Kind] = frozenset({"preference", "constraint", "fact", "belief"})


def contradict(first: str, second: str) -> bool:
    """Whether two sentences contradict each other, judged by their words."""
    one, other = _content(first), _content(second)
    if _slot_differs(first, second):
        return True
    shorter = min(len(one), len(other))
    if shorter == 0:
        return False
    common = len(one & other) / shorter
    if common >= _SAME_TOPIC and _is_affirmative(first) != _is_affirmative(second):
        return True
    if common >= _SAME_STATEMENT and _numbers_differ(first, second):
        return True
    # Without the pair of opposites itself, which the two cannot have in common.
    rest = shorter - 1
    opposed = any((a, b) in _OPPOSITES for a in one - other for b in other - one)
    return opposed and rest > 0 and len(one & other) / rest >= _SAME_STATEMENT


def replaces(later: str, earlier: str, *, kinds: tuple[Kind, Kind], cosine: float) -> bool:
    """Whether a sentence that reports a change replaces another one about the same thing.

    Args:
        later: The sentence that may report a change.
        earlier: The sentence that may be replaced.
        kinds: The kinds of `later` and `earlier`.
        cosine: Cosine of the two sentences.
    """
    same_kind = kinds[0] == kinds[1] or set(kinds) <= {"preference", "constraint"}
    if not same_kind or kinds[0] not in _REPLACEABLE or cosine < REPLACES:
        return False
    return _is_update(later) and not _is_update(earlier)


# Every unit is compared with all the others, so what it says by itself is cached.
_is_update = lru_cache(maxsize=4096)(is_update)


@lru_cache(maxsize=4096)
def _content(text: str) -> frozenset[str]:
    stems = content_stems(without_label(text)) - _MEANINGLESS
    return frozenset(word for word in stems if not any(char.isdigit() for char in word))


@lru_cache(maxsize=4096)
def _is_affirmative(text: str) -> bool:
    """Whether a text has an even number of negations and words of dislike."""
    negations = 0
    for span in split_words(without_label(text)):
        word = span.text.casefold().replace("\u2019", "'")
        negations += word in lexicon.NEGATIONS or word.endswith("n't")
        negations += stem(word) in _DISLIKING
    return negations % 2 == 0


def _numbers_differ(first: str, second: str) -> bool:
    one, other = _numbers(first), _numbers(second)
    return bool(one) and bool(other) and not one & other


@lru_cache(maxsize=4096)
def _numbers(text: str) -> frozenset[str]:
    return read_words(text).values


def _slot_differs(first: str, second: str) -> bool:
    one, other = _slots(first), _slots(second)
    return any(one[name].isdisjoint(other[name]) for name in one.keys() & other.keys())


@lru_cache(maxsize=4096)
def _slots(text: str) -> dict[str, frozenset[str]]:
    statement = without_label(text).rstrip(".! ")
    values: dict[str, frozenset[str]] = {}
    for name, pattern in _SLOTS:
        hit = pattern.search(statement)
        if hit is not None:
            values[name] = _value(hit[1])
    hit = _FAVOURITE.search(statement)
    if hit is not None:
        values[f"favourite {hit[1].casefold()}"] = _value(hit[2])
    return {name: value for name, value in values.items() if value}


def _value(text: str) -> frozenset[str]:
    return content_stems(_VALUE_END.sub("", text))
