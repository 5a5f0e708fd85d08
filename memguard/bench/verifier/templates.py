"""Sentences of our own that say two things of one kind in a breath, so that each can be swapped.

`I pay 900 for the flat and 120 for the garage`: both numbers are there, and only their neighbours
tell which is which. Each pattern has two roles; a claim states one of them with its own value
(true), with the other's (a swap) or with a value nobody gave. Every second context also has a turn
of the other speaker with the same pattern and other values.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from memguard.bench.verifier import tables
from memguard.bench.verifier.pairs import Claim, Group, correct, wrong
from memguard.bench.verifier.person import HE, SHE, third_person

Draw = Callable[[random.Random], str]


def _number(low: int, high: int) -> Draw:
    return lambda draw: str(draw.randrange(low, high))


def _small(draw: random.Random) -> str:
    return draw.choice(tables.SMALL[1:12])


def _of(group: Sequence[str]) -> Draw:
    return lambda draw: draw.choice(group)


def _day(draw: random.Random) -> str:
    return f"{draw.choice(tables.MONTHS)} {draw.randrange(1, 29)}"


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


_NAMES, _PLACES, _MONTHS = _of(tables.FIRST_NAMES), _of(tables.PLACES), _of(tables.MONTHS)
_JOBS, _HOBBIES, _DAYS = _of(tables.OCCUPATIONS), _of(tables.ACTIVITIES), _of(tables.WEEKDAYS)
_YEARS = _number(1975, 2024)

PATTERNS: tuple[Pattern, ...] = (
    Pattern("I pay {a} for the flat and {b} for the garage.", "I pay {a} for the flat.", "I pay {b} for the garage.", _number(50, 1500)),
    Pattern("I worked at the mill for {a} years and at the harbour for {b}.", "I worked at the mill for {a} years.", "I worked at the harbour for {b} years.", _number(2, 20)),
    Pattern("We have {a} hens and {b} goats.", "I have {a} hens.", "I have {b} goats.", _small),
    Pattern("My sister has {a} kids, my brother {b}.", "My sister has {a} kids.", "My brother has {b} kids.", _small),
    Pattern("I have {a} nephews and {b} nieces.", "I have {a} nephews.", "I have {b} nieces.", _small),
    Pattern("I ran the first lap in {a} minutes and the second in {b}.", "I ran the first lap in {a} minutes.", "I ran the second lap in {b} minutes.", _number(4, 20)),
    Pattern("I started smoking at {a} and stopped at {b}.", "I started smoking at the age of {a}.", "I stopped smoking at the age of {b}.", _number(14, 60)),
    Pattern("My daughter is {a} and my son is {b}.", "My daughter is {a} years old.", "My son is {b} years old.", _number(2, 30)),
    Pattern("My husband is called {a} and my brother {b}.", "My husband's name is {a}.", "My brother's name is {b}.", _NAMES),
    Pattern("{a} is my boss, {b} only sits next to me.", "My boss is {a}.", "{b} sits next to me.", _NAMES),
    Pattern("I went out with {a} for a year, but I married {b}.", "I went out with {a} for a year.", "I married {b}.", _NAMES),
    Pattern("The dog is {a}, the cat is {b}.", "My dog is called {a}.", "My cat is called {b}.", _NAMES),
    Pattern("{a} taught me to drive and {b} taught me to swim.", "{a} taught me to drive.", "{b} taught me to swim.", _NAMES),
    Pattern("I was born in {a} and grew up in {b}.", "I was born in {a}.", "I grew up in {b}.", _PLACES),
    Pattern("I studied in {a} but found my first job in {b}.", "I studied in {a}.", "I found my first job in {b}.", _PLACES),
    Pattern("My parents live in {a}, my sister moved to {b}.", "My parents live in {a}.", "My sister lives in {b}.", _PLACES),
    Pattern("I flew to {a} for work and to {b} for the wedding.", "I flew to {a} for work.", "I flew to {b} for the wedding.", _PLACES),
    Pattern("I have been to {a}, and next I want to see {b}.", "I have been to {a}.", "I want to see {b}.", _PLACES),
    Pattern("My dad was a {a}, my mom a {b}.", "My father was a {a}.", "My mother was a {b}.", _JOBS),
    Pattern("I used to be a {a}, now I am a {b}.", "I used to be a {a}.", "I am now a {b}.", _JOBS),
    Pattern("I trained as a {a} although I wanted to be a {b}.", "I trained as a {a}.", "I wanted to be a {b}.", _JOBS),
    Pattern("I love {a} but I cannot stand {b}.", "I love {a}.", "I cannot stand {b}.", _HOBBIES),
    Pattern("On Mondays it is {a}, on Fridays {b}.", "I do {a} on Mondays.", "I do {b} on Fridays.", _HOBBIES),
    Pattern("I gave up {a} and took up {b} instead.", "I gave up {a}.", "I took up {b}.", _HOBBIES),
    Pattern("My son is into {a}, my daughter into {b}.", "My son likes {a}.", "My daughter likes {b}.", _HOBBIES),
    Pattern("I was hired in {a} and promoted in {b}.", "I was hired in {a}.", "I was promoted in {b}.", _YEARS),
    Pattern("We bought the house in {a} and sold it in {b}.", "I bought the house in {a}.", "I sold the house in {b}.", _YEARS),
    Pattern("The wedding is on {a} and the party on {b}.", "The wedding is on {a}.", "The party is on {b}.", _day),
    Pattern("I see the dentist on {a} and the eye doctor on {b}.", "I see the dentist on {a}.", "I see the eye doctor on {b}.", _day),
    Pattern("My birthday is in {a}, my wife's is in {b}.", "My birthday is in {a}.", "My wife's birthday is in {b}.", _MONTHS),
    Pattern("Classes begin in {a} and the exam is in {b}.", "My classes begin in {a}.", "My exam is in {b}.", _MONTHS),
    Pattern("I train on {a} and rest on {b}.", "I train on {a}.", "I rest on {b}.", _DAYS),
    Pattern("The shop is closed on {a}; on {b} we open late.", "My shop is closed on {a}.", "My shop opens late on {b}.", _DAYS),
    Pattern("Invoice 12 is {a} euros, invoice 13 is {b}.", "Invoice 12 is {a} euros.", "Invoice 13 is {b} euros.", _number(40, 3000)),
    Pattern("The deposit was {a} dollars and the balance {b}.", "The deposit was {a} dollars.", "The balance was {b} dollars.", _number(40, 3000)),
    Pattern("The server in {a} failed, the one in {b} held.", "The server in {a} failed.", "The server in {b} held.", _PLACES),
    Pattern("{a} reviews the code and {b} runs the release.", "{a} reviews the code.", "{b} runs the release.", _NAMES),
    Pattern("I lent {a} my drill and {b} my ladder.", "I lent {a} my drill.", "I lent {b} my ladder.", _NAMES),
    Pattern("It was {a} degrees at noon and {b} at night.", "It was {a} degrees at noon.", "It was {b} degrees at night.", _number(2, 40)),
    Pattern("I drink {a} cups of coffee and {b} cups of tea a day.", "I drink {a} cups of coffee a day.", "I drink {b} cups of tea a day.", _small),
)  # fmt: skip
"""Chat and business sentences; no sentence of any test set."""

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
    for index in range(count):
        draw = random.Random(f"template/{index}")
        yield _group(draw.choice(PATTERNS), draw, origin=f"template/{index}")


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
    elif draws < 0.75:
        claims.append(wrong(told(role.format(a=c, b=c), speakers[0]), "value"))
    for _ in range(draw.randrange(3)):
        place = draw.randrange(len(context) + 1)
        context.insert(place, (draw.choice(speakers), draw.choice(_SMALL_TALK)))
    return Group(
        source="template", origin=origin, context=tuple(context), claims=tuple(claims)
    )


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
