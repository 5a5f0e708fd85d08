"""The work on a text grows with its length, and no faster: twice the text, twice the operations."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import memguard
from memguard import quoting
from memguard.conversations import (
    mail_lines,
    passages,
    pasted_blocks,
    pasted_chats,
    pasted_text,
    text_lines,
)
from memguard.llm import failures, parsing, texts
from memguard.local import demands, owners, pieces, statements
from memguard.local.adjudicator import (
    attributes,
    cues,
    decomposer,
    languages,
    people,
    relations,
    situation,
)
from memguard.local.owners import chinese, reader, tokens
from memguard.local.relevance.topics import topics_of
from memguard.local.statements import changes, completion, reading, sentences
from memguard.local.verifier import binding, numbers, ownership, units, words
from memguard.methods.adjudication import rendering
from memguard.methods.writer import readable_turns
from memguard.methods.writer.config import Writer
from memguard.schema import base, memory
from memguard.schema.memory import Turn
from tests.regex_steps import OutOfStepsError, attacks, count_steps
from tests.work import count_work

MODULES = (
    quoting, failures, parsing, texts, pieces, attributes, cues, decomposer, demands,
    changes, completion, reading, sentences,
    languages, people, relations, situation, numbers, units, words, rendering, base, memory,
    chinese, reader, tokens, binding, ownership,
    mail_lines, passages, pasted_blocks, pasted_chats, pasted_text, text_lines,
)  # fmt: skip
NOW = datetime(2026, 1, 1, tzinfo=UTC)
MANY_UNITS = units.UnitIndex.of([units.TextUnit(speaker="Ana", text=f"w{n}") for n in range(30)])


class Shape(BaseModel):
    score: float


FUNCTIONS: dict[str, Callable[[str], object]] = {
    "parse_score": parsing.parse_score,
    "parse_support": lambda text: parsing.parse_support(text, turn_ids=["1", "2"]),
    "parse_json": lambda text: parsing.parse_json(text, Shape),
    "parse_choice": lambda text: texts.parse_choice(text, ["A", "B", "TIE"]),
    "without_reasoning": texts.without_reasoning,
    "end_of_reasoning": texts.end_of_reasoning,
    "shorten": failures.shorten,
    "redact": failures.redact,
    "quote": quoting.quote,
    "quote_marked": rendering.quote_marked,
    "cut_sections": quoting.cut_sections,
    "clean_text": base.clean_text,
    "same_text_form": memory.same_text_form,
    "readable_turns": lambda text: readable_turns(
        [Turn(id="1", role="user", content=text)], spec=Writer()
    ),
    "split_passages": lambda text: list(pasted_blocks.find_blocks(text, speaker="")),
    "find_inline": lambda text: list(pasted_text.find_inline(text, 0, len(text))),
    "find_statements": statements.find_statements,
    "read_statements": lambda text: statements.read_statements(
        [Turn(id="1", role="user", content=text)]
    ),
    "looks_like_safety": pieces.looks_like_safety,
    "looks_like_preference": pieces.looks_like_preference,
    "problem_of": lambda text: pieces.problem_of(pieces.whole(text).pieces * 9, source=text),
    "split_memory": decomposer.split_memory,
    "kind_of": attributes.kind_of,
    "epistemic_of": attributes.epistemic_of,
    "temporality_of": lambda text: attributes.temporality_of(text, said_at=NOW, now=NOW),
    "read_situation": situation.read_situation,
    "contradict": lambda text: relations.contradict(text, f"{text} not"),
    "relevance_of": lambda text: relations.relevance_of(
        0.1,
        kind="safety",
        query=text,
        text=text,
        shared=frozenset(),
    ),
    "demands_action": demands.demands_action,
    "topics_of": topics_of,
    "language_of": languages.language_of,
    "relations_in": people.relations_in,
    "read_context": units.read_context,
    "split_candidate": units.split_candidate,
    "best_units": lambda text: units.best_units(text, MANY_UNITS, limit=24, idf={}, default=1.0),
    "split_clauses": owners.split_clauses,
    "owner_of": lambda text: owners.owner_of(text, speaker=text, user_names={text}),
    "find_subject": lambda text: units.find_subject(text, ["Ana", text]),
    "read_words": words.read_words,
    "looks_foreign": words.looks_foreign,
}
"""Every function of the package that reads a text of a model, a user, a memory or a source."""

# What was slow, and what is made of the signs that the rules look for.
HOSTILE = (
    "p.m. ", "Dr. ", "Dr. X ", "\n", " ", '"', "\u201c", "{", '{"a":', '{"a":1,}', "{}", "<think>",
    "<think ", "</think>", "<memguard-memory>", "```", "*", "> ", "score ", "score: 1 ", "0.5, ",
    "1 ", "one hundred and ", "not a ", "favorite ", "I like tea, and hate it. ", "\u00bd",
    "\u4e2d\u3002", "a", "A b: ", "until ", "Karl: hi?\n", "From: Kim\n", "Dear Ms Weber,\n",
    "Best,\nKarl\n\n", "<mail>\n",
    "here is the mail:\n", "# x\n", "a,b\n", "What should I answer? ", "SYSTEM: x\n",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_twice_the_text_takes_at_most_twice_the_work(name: str) -> None:
    call = FUNCTIONS[name]
    for piece in HOSTILE:
        once, twice = (
            count_work(call, piece * (size // len(piece)), modules=MODULES)
            for size in (2_500, 5_000)
        )
        assert twice <= 2.3 * once + 200, (name, piece, once, twice)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("parse_json", "<think>"),
        ("without_reasoning", "<think "),
        ("parse_json", "{"),
        ("parse_json", '{"a":1,}'),
        ("find_statements", "p.m. "),
        ("split_candidate", "Dr. X "),
        ("read_statements", "\u201c"),
        ("cut_sections", "<memguard-memory>"),
        ("read_words", "one "),
        ("problem_of", "not tea "),
    ],
)
def test_what_was_slow_is_read_in_proportion_to_its_length(name: str, text: str) -> None:
    once, twice = (
        count_work(FUNCTIONS[name], text * (size // len(text)), modules=MODULES)
        for size in (10_000, 20_000)
    )
    assert twice <= 2.1 * once + 200


def _patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    """Every compiled pattern of the package, and every literal one that a function uses."""
    seen: set[re.Pattern[str]] = set()
    for info in pkgutil.walk_packages(memguard.__path__, "memguard."):
        # These read what is packaged, or what a developer scripted, and no text of a conversation.
        if info.name.startswith(("memguard.cli", "memguard.testing", "memguard.drawing")):
            continue
        module = importlib.import_module(info.name)
        found = [(name, value) for name, value in vars(module).items() if not name.startswith("__")]
        found += _literal_patterns(module)
        while found:
            name, value = found.pop()
            if isinstance(value, re.Pattern) and value not in seen:
                seen.add(value)
                yield f"{info.name}.{name}", value
            elif isinstance(value, tuple | list):
                found += [(f"{name}[{at}]", inner) for at, inner in enumerate(value[:60])]


def _literal_patterns(module: Any) -> list[tuple[str, re.Pattern[str]]]:
    source = Path(module.__file__).read_text(encoding="utf-8")
    calls = [
        node.args[0].value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.args
        and isinstance(node.args[0], ast.Constant)
    ]
    return [(repr(text), re.compile(text)) for text in calls if isinstance(text, str)]


PATTERNS = dict(_patterns())


def test_the_patterns_of_the_package_are_collected() -> None:
    assert {"memguard.llm.parsing._NUMBER", "memguard.local.statements.reading._RIGHTS"} <= set(
        PATTERNS
    )


def _steps(pattern: re.Pattern[str], attack: tuple[str, str, str], size: int) -> int:
    before, body, end = attack
    text = before + body * (size // len(body) + 1) + end
    return count_steps(pattern, text, limit=1_000 * size)


@pytest.mark.slow
@pytest.mark.parametrize("name", PATTERNS)
def test_no_pattern_takes_more_than_linear_time(name: str) -> None:
    pattern = PATTERNS[name]
    for attack in attacks(pattern):
        try:
            once, twice = (_steps(pattern, attack, size) for size in (64, 128))
            if twice > 2.4 * once:
                # A repeat of at most a few hundred looks the same at first.
                once, twice = (_steps(pattern, attack, size) for size in (800, 1_600))
        except OutOfStepsError:
            pytest.fail(f"{name} backtracks without end on {attack}")
        assert twice <= 2.4 * once, (name, attack, once, twice)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"<(think)\b[^>]*>.*?</\1\s*>", "<think>"),
        (r"^\s*>.*$", "\n"),
        (r"\bscore\s*[:=]?\s*\d", " "),
        ("\u201c[^\u201d\n]*\u201d", "\u201c"),
        (r"(a+)+$", "a"),
    ],
)
def test_the_count_of_steps_finds_slow_patterns(pattern: str, text: str) -> None:
    compiled = re.compile(pattern, re.MULTILINE | re.DOTALL)
    slow = False
    for attack in [*attacks(compiled), ("score", text, "x")]:
        try:
            once, twice = (_steps(compiled, attack, size) for size in (200, 400))
        except OutOfStepsError:
            slow = True
        else:
            slow = slow or twice > 3 * once
        if slow:
            break
    assert slow


def test_the_count_of_steps_matches_what_re_matches() -> None:
    text = "Score: 0.85, or 17 out of 20 (final score = 85 %), until 3 March 2025."
    for pattern in PATTERNS.values():
        assert count_steps(pattern, text, limit=10**6) >= len(pattern.findall(text))
