"""The patterns of the local writer take no more than linear time.

They are too long for the attacks of `tests.regex_steps`, which try every part of a pattern against
every other, so they are tried on the signs and words that their repeats take.
"""

import re
from collections.abc import Iterator
from dataclasses import fields

import pytest

from memguard.local.statements.grammar import grammar_of
from tests.regex_steps import count_steps

BODIES = (" ", "a", "a ", ",", "my a ", "i a ", "ich a ", "my favourite thing ", "not a ", "\u6211")


def _patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    for language in ("en", "de", "es", "fr", "zh"):
        grammar = grammar_of(language)
        for field in fields(grammar):
            value = getattr(grammar, field.name)
            patterns = (value,) if isinstance(value, re.Pattern) else value
            for number, pattern in enumerate(patterns):
                yield f"{language}.{field.name}.{number}", pattern


PATTERNS = dict(_patterns())


@pytest.mark.slow
@pytest.mark.parametrize("name", PATTERNS)
def test_twice_the_text_takes_twice_the_steps(name: str) -> None:
    for body in BODIES:
        # Bounded repeats of up to 80 characters look quadratic on a shorter text.
        once, twice = (
            count_steps(PATTERNS[name], body * (size // len(body)), limit=3_000 * size)
            for size in (100, 200)
        )
        if twice > 2.4 * once:
            once, twice = (
                count_steps(PATTERNS[name], body * (size // len(body)), limit=3_000 * size)
                for size in (400, 800)
            )
        assert twice <= 2.4 * once, (name, body, once, twice)
