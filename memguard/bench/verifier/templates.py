"""Sentences of our own that say two things of one kind in a breath, so that each can be swapped.

`I pay 900 for the flat and 120 for the garage`: both numbers are there, and only their neighbours
tell which is which. Each pattern has two roles; a claim states one of them with its own value
(true), with the other's (a swap) or with a value nobody gave. Every second context also has a turn
of the other speaker with the same pattern and other values.
"""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources

from memguard.bench.verifier import tables
from memguard.bench.verifier.pairs import Claim, Group, correct, wrong
from memguard.bench.verifier.person import HE, SHE, third_person

Draw = Callable[[random.Random], str]


def _values(kind: str | Sequence[int]) -> Draw:
    """Where values of a kind come from; two numbers are a range."""
    if not isinstance(kind, str):
        low, high = kind
        return lambda draw: str(draw.randrange(low, high))
    if kind == "day":
        return lambda draw: f"{draw.choice(tables.MONTHS)} {draw.randrange(1, 29)}"
    group = _GROUPS[kind]
    return lambda draw: draw.choice(group)


_GROUPS: dict[str, Sequence[str]] = {
    "small": tables.SMALL[1:12],
    "name": tables.FIRST_NAMES,
    "place": tables.PLACES,
    "month": tables.MONTHS,
    "weekday": tables.WEEKDAYS,
    "job": tables.OCCUPATIONS,
    "hobby": tables.ACTIVITIES,
}


@dataclass(frozen=True)
class Pattern:
    """A sentence with two values of one kind, and how each of the two is stated alone."""

    said: str
    """The sentence, in the first person, with `{a}` and `{b}`."""
    first: str
    """What follows about `{a}`, in the first person."""
    second: str
    """What follows about `{b}`."""
    values: Draw
    """Where the values come from."""


def read_patterns() -> list[Pattern]:
    """The patterns of `data/patterns.json`; none is a sentence of a test set."""
    file = resources.files("memguard.bench.verifier").joinpath("data", "patterns.json")
    rows = json.loads(file.read_text(encoding="utf-8"))
    return [
        Pattern(
            said=row["said"],
            first=row["first"],
            second=row["second"],
            values=_values(row["values"]),
        )
        for row in rows
    ]


_SMALL_TALK = (
    "How are you doing?", "Tell me more about that.", "Oh nice, I did not know.", "Same old here.",
    "That sounds like a lot.", "And what happened then?", "I was just thinking of you.",
    "Sorry, I had to take a call.", "The weather is awful today.", "Let us talk about it later.",
)  # fmt: skip


def template_groups(count: int) -> Iterator[Group]:
    """Groups from the patterns, the same for the same count.

    Args:
        count: How many contexts.
    """
    patterns = read_patterns()
    for index in range(count):
        draw = random.Random(f"template/{index}")
        yield _group(draw.choice(patterns), draw, origin=f"template/{index}")


def _group(pattern: Pattern, draw: random.Random, *, origin: str) -> Group:
    values = _distinct(pattern.values, draw, size=5)
    a, b, c = values[:3]
    speakers = draw.choice((_two_names(draw), _two_names(draw), ("User", "Assistant")))
    pronouns = draw.choice((SHE, HE))

    def told(text: str, speaker: str) -> str:
        name = draw.choice(("User", "The user")) if speaker == "User" else speaker
        return third_person(text, name=name, pronouns=pronouns)

    role, own, swapped = draw.choice(((pattern.first, a, b), (pattern.second, b, a)))
    claims: list[Claim] = [correct(told(role.format(a=own, b=own), speakers[0]))]
    claims.append(wrong(told(role.format(a=swapped, b=swapped), speakers[0]), "swap"))
    context = [(speakers[0], pattern.said.format(a=a, b=b))]
    draws = draw.random()
    # `Emma runs the release` names no speaker, so whoever says it supports it.
    if draws < 0.5 and claims[0].text != role.format(a=own, b=own):
        context.append((speakers[1], pattern.said.format(a=values[3], b=values[4])))
        theirs = values[3] if role is pattern.first else values[4]
        claims.append(wrong(told(role.format(a=theirs, b=theirs), speakers[0]), "speaker"))
    if draws > 0.3:
        claims.append(wrong(told(role.format(a=c, b=c), speakers[0]), "value"))
    for _ in range(draw.randrange(3)):
        place = draw.randrange(len(context) + 1)
        context.insert(place, (draw.choice(speakers), draw.choice(_SMALL_TALK)))
    return Group(source="template", origin=origin, context=tuple(context), claims=tuple(claims))


def _two_names(draw: random.Random) -> tuple[str, str]:
    first, second = draw.sample(tables.FIRST_NAMES, 2)
    return first, second


def _distinct(values: Draw, draw: random.Random, *, size: int) -> list[str]:
    found: list[str] = []
    while len(found) < size:
        value = values(draw)
        if value not in found:
            found.append(value)
    return found
