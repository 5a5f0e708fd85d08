"""Whether two sentences cannot both hold, and whether one takes the place of the other.

By words: negation or dislike against liking on the same matter, opposites, another number, another
value of something that has one value at a time. Two sentences that merely differ are no conflict.
"""

import re
from functools import lru_cache

from memguard.local.adjudicator.cues import bare, is_update
from memguard.local.adjudicator.nearness import content_stems
from memguard.local.verifier import lexicon
from memguard.local.verifier.words import read_words, split_words, stem
from memguard.schema.units import Kind

_SAME_MATTER = 0.5
"""Share of the shorter one's content that must be common."""
_SAME_SENTENCE = 0.7
"""The same for a number to be about the same thing."""
REPLACES = 0.45
"""Cosine from which a sentence that tells of a change takes the place of one on the same matter.
Ours, chosen on hand-written examples."""

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
_SLOTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("home", re.compile(r"\b(?:lives? in|moved to|based in|resides? in) ([A-Z][\w' -]*)")),
    ("job", re.compile(r"\b(?:works? as|job is|employed as) (?:an? )?([\w' -]+)", _I)),
    ("employer", re.compile(r"\b(?:works? (?:at|for)|employed by) ([\w' -]+)", _I)),
    ("age", re.compile(r"\b(?:is|am|turned) (\d{1,3})(?: years old)?$", _I)),
    ("marriage", re.compile(r"\b(?:is|am) (single|married|divorced|engaged|widowed)\b", _I)),
    ("name", re.compile(r"\bname is ([\w' -]+)", _I)),
)  # fmt: skip
_FAVOURITE = re.compile(r"\bfavou?rite ([\w -]+?) (?:is|are) ([\w' -]+)", _I)
_CUT = re.compile(r"\b(?:and|but|because|since|with|where|which|who|now|instead)\b.*", _I)

_REPLACEABLE: frozenset[Kind] = frozenset({"preference", "constraint", "fact", "belief"})


def contradict(first: str, second: str) -> bool:
    """Whether two sentences cannot both hold, as far as words tell."""
    one, other = _content(first), _content(second)
    if _slot_differs(first, second):
        return True
    least = min(len(one), len(other))
    if least == 0:
        return False
    common = len(one & other) / least
    if common >= _SAME_MATTER and _sense(first) != _sense(second):
        return True
    if common >= _SAME_SENTENCE and _numbers_differ(first, second):
        return True
    rest = least - 1
    opposed = any((a, b) in _OPPOSITES for a in one - other for b in other - one)
    return opposed and rest > 0 and len(one & other) / rest >= _SAME_SENTENCE


def replaces(later: str, earlier: str, *, kinds: tuple[Kind, Kind], cosine: float) -> bool:
    """Whether a sentence that tells of a change takes the place of another on the same matter.

    Args:
        later: The sentence that may tell of a change.
        earlier: The other one.
        kinds: What the two are, in that order.
        cosine: How near they are.
    """
    same_kind = kinds[0] == kinds[1] or set(kinds) <= {"preference", "constraint"}
    if not same_kind or kinds[0] not in _REPLACEABLE or cosine < REPLACES:
        return False
    return _is_update(later) and not _is_update(earlier)


# Each unit is laid beside all the others; what it says by itself is read once.
_is_update = lru_cache(maxsize=4096)(is_update)


@lru_cache(maxsize=4096)
def _content(text: str) -> frozenset[str]:
    stems = content_stems(bare(text)) - _MEANINGLESS
    return frozenset(each for each in stems if not any(char.isdigit() for char in each))


@lru_cache(maxsize=4096)
def _sense(text: str) -> bool:
    """Whether it says yes: an even number of negations and dislikes."""
    turned = 0
    for span in split_words(bare(text)):
        word = span.text.casefold().replace("\u2019", "'")
        turned += word in lexicon.NEGATIONS or word.endswith("n't")
        turned += stem(word) in _DISLIKING
    return turned % 2 == 0


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
    said = bare(text).rstrip(".! ")
    found: dict[str, frozenset[str]] = {}
    for name, pattern in _SLOTS:
        hit = pattern.search(said)
        if hit is not None:
            found[name] = _value(hit[1])
    hit = _FAVOURITE.search(said)
    if hit is not None:
        found[f"favourite {hit[1].casefold()}"] = _value(hit[2])
    return {name: value for name, value in found.items() if value}


def _value(text: str) -> frozenset[str]:
    return content_stems(_CUT.sub("", text))
