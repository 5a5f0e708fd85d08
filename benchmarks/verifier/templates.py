"""Training sentences of our own that state two values of one kind, so that they can be swapped.

`I pay 900 for the flat and 120 for the garage` has both numbers, and only their neighbours show
which is which. Each pattern has two roles. A claim states one of them with its own value (correct),
with the value of the other role (a swap), or with a value that nobody stated. Every second context
also has a turn of the other speaker with the same pattern and other values.
"""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources

from benchmarks.verifier import tables
from benchmarks.verifier.pairs import Claim, Group, correct, wrong
from benchmarks.verifier.person import HE, SHE, third_person

DrawValue = Callable[[random.Random], str]
"""Draws a value."""


def _values(kind: str | Sequence[int]) -> DrawValue:
    """A function that draws values of a kind; two numbers are a range."""
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
    """A sentence with two values of one kind, and a statement of each value alone."""

    sentence: str
    """The sentence in the first person, with `{a}` and `{b}`."""
    first: str
    """What it says about `{a}`, in the first person."""
    second: str
    """What it says about `{b}`, in the first person."""
    values: DrawValue
    """Draws the values."""


def read_patterns() -> list[Pattern]:
    """The patterns of `data/patterns.json`; none occurs in an evaluation set."""
    file = resources.files("benchmarks.verifier").joinpath("data", "patterns.json")
    rows = json.loads(file.read_text(encoding="utf-8"))
    return [
        Pattern(
            sentence=row["said"],
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
    """Build groups from the patterns; deterministic.

    Args:
        count: How many groups.
    """
    patterns = read_patterns()
    for index in range(count):
        draw = random.Random(f"template/{index}")
        yield _group(draw.choice(patterns), draw, origin=f"template/{index}")


def _group(pattern: Pattern, draw: random.Random, *, origin: str) -> Group:
    # Two for the sentence, one that nobody states, two for the other speaker.
    values = _distinct(pattern.values, draw, size=5)
    a, b, c = values[:3]
    speakers = draw.choice((_two_names(draw), _two_names(draw), ("User", "Assistant")))
    pronouns = draw.choice((SHE, HE))

    def phrase(text: str, speaker: str) -> str:
        name = draw.choice(("User", "The user")) if speaker == "User" else speaker
        return third_person(text, name=name, pronouns=pronouns)

    role, true, swapped = draw.choice(((pattern.first, a, b), (pattern.second, b, a)))
    claims: list[Claim] = [correct(phrase(role.format(a=true, b=true), speakers[0]))]
    claims.append(wrong(phrase(role.format(a=swapped, b=swapped), speakers[0]), "swap"))
    context = [(speakers[0], pattern.sentence.format(a=a, b=b))]
    draws = draw.random()
    # `Emma runs the release` names no speaker, so whoever says it supports it.
    if draws < 0.5 and claims[0].text != role.format(a=true, b=true):
        context.append((speakers[1], pattern.sentence.format(a=values[3], b=values[4])))
        other = values[3] if role is pattern.first else values[4]
        claims.append(wrong(phrase(role.format(a=other, b=other), speakers[0]), "speaker"))
    if draws > 0.3:
        claims.append(wrong(phrase(role.format(a=c, b=c), speakers[0]), "value"))
    # Turns that say nothing, so that the best unit is not always the first or the only one.
    for _ in range(draw.randrange(3)):
        position = draw.randrange(len(context) + 1)
        context.insert(position, (draw.choice(speakers), draw.choice(_SMALL_TALK)))
    return Group(source="template", origin=origin, context=tuple(context), claims=tuple(claims))


def _two_names(draw: random.Random) -> tuple[str, str]:
    first, second = draw.sample(tables.FIRST_NAMES, 2)
    return first, second


def _distinct(values: DrawValue, draw: random.Random, *, size: int) -> list[str]:
    chosen: list[str] = []
    while len(chosen) < size:
        value = values(draw)
        if value not in chosen:
            chosen.append(value)
    return chosen
