"""What must hold for any text that comes from outside, one function per kind of reader.

Hypothesis calls these in `test_fuzz.py`, and atheris in `run_atheris.py`. Each takes a text, or a
value read from one, and raises `AssertionError` where a promise is broken.
"""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from langchain_core.messages import AIMessage
from pydantic import BaseModel

from memguard.chroma.engine import scope
from memguard.chroma.values import (
    NS,
    check_filter,
    decode_namespace,
    encode_namespace,
    is_under,
    matches,
)
from memguard.errors import ErrorCode, InvalidInputError
from memguard.llm.parsing import parse_json, parse_score, parse_support, read_answer
from memguard.llm.texts import end_of_reasoning, json_objects, parse_choice, without_reasoning
from memguard.local.pieces import problem_of
from memguard.local.statements import find_statements, split_sentences
from memguard.local.verifier.units import read_context, split_candidate
from memguard.methods.adjudication.answers import answer_form, read_answer_rows
from memguard.methods.adjudication.rendering import frame, quote_marked, unit_line
from memguard.namespaces import encode_label
from memguard.quoting import SECTION_CLOSE, SECTION_OPEN, cut_sections, named_turns, quote
from memguard.schema.base import clean_text
from memguard.schema.decision import Inconclusive, SupportSample
from memguard.schema.memory import Turn
from memguard.schema.read import Situation
from memguard.schema.units import Piece

OPTIONS = ("A", "B", "TIE", "supported", "not_supported")
NAMES = {"u1": "m.1", "u2": "m.2"}
TURNS = tuple(Turn(id=f"D1:{number}", role="user", content="x") for number in range(3))
AT = datetime(2026, 1, 1, tzinfo=UTC)


class Shape(BaseModel):
    """A small answer."""

    score: float
    inner: list[int] = []


def read_answers(text: str) -> None:
    """Parsers: a value of the offered kind, or a typed outcome."""
    score = parse_score(text)
    assert isinstance(score, Inconclusive) or 0.0 <= score <= 1.0
    sample = parse_support(text, turn_ids=("1", "D1:2"))
    assert isinstance(sample, SupportSample | Inconclusive)
    if isinstance(sample, SupportSample):
        assert sample.score == score
        assert set(sample.turn_ids) <= {"1", "D1:2"}
    choice = parse_choice(text, OPTIONS)
    assert isinstance(choice, Inconclusive) or choice in OPTIONS
    assert isinstance(parse_json(text, Shape), Shape | Inconclusive)
    for reason in ("stop", "length"):
        message = AIMessage(text, response_metadata={"finish_reason": reason})
        value = read_answer(message, parse_score)
        assert isinstance(value, Inconclusive) or value == score
    assert len(without_reasoning(text)) <= len(text)
    assert 0 <= end_of_reasoning(text) <= len(text)
    last = 0
    for item in json_objects(text):
        assert last <= item.start < item.end <= len(text)
        assert text[item.start] == "{"
        assert text[item.end - 1] == "}"
        last = item.end


def read_rows(text: str) -> None:
    """The rows of an adjudicator: only of units that it was asked about."""
    answer = parse_json(text, answer_form("units"))
    if isinstance(answer, Inconclusive):
        return
    reading = read_answer_rows(
        answer.situation, answer.units, scheme="units", requested=NAMES, names=NAMES
    )
    assert {row.unit_id for row in reading.rows} <= set(NAMES.values())
    assert isinstance(reading.situation, Situation | Inconclusive)
    assert len(reading.notes) <= 21
    for conflict in reading.conflicts:
        assert {conflict.first, conflict.second} == set(NAMES.values())
    for row in reading.rows:
        assert row.influence is None or 0.0 <= row.influence <= 1.0


def quote_texts(text: str) -> None:
    """Quotations: one line, no tag, and the text comes back; no text ends its own section."""
    for quoted in (quote(text), quote_marked(text)):
        assert len(quoted.splitlines()) == 1
        assert not {"<", ">"} & set(quoted)
        assert json.loads(quoted) == text
    assert "[INST]" not in quote_marked(text)
    assert "[/SYS]" not in quote_marked(text)
    line = unit_line(text, said_at=AT)
    section = frame([line])
    assert section.splitlines()[2] == line
    assert section.count(SECTION_OPEN) == section.count(SECTION_CLOSE) == 1
    assert cut_sections(f"a{section}b") == "ab"
    assert len(cut_sections(text)) <= len(text)
    ids = named_turns(text.split(), TURNS)
    assert len(set(ids)) == len(ids) <= len(TURNS)


def split_texts(text: str) -> None:
    """Sentences and pieces: nothing is invented, and what covers a text has no problem."""
    clean = clean_text(text)
    assert clean_text(clean) == clean
    letters = {char for char in clean if char.isalnum()}
    for sentence in split_sentences(clean):
        assert sentence == sentence.strip() != ""
        assert {char for char in sentence if char.isalnum()} <= letters
    for statement in find_statements(clean):
        # A statement may be a clause, and in German its words may be in another order.
        assert {char for char in statement if char.isalnum()} <= letters
    for sentence in split_candidate(clean):
        assert clean[sentence.start : sentence.start + len(sentence.text)] == sentence.text
    assert all(unit.text for unit in read_context(clean).units)
    assert problem_of([Piece(text=clean)], source=clean) in {"", "a piece without words"}


def encode_namespaces(text: str) -> None:
    """Namespaces: every one has its own text, and reads back; whole labels decide what is under."""
    labels = tuple(label for label in text.split("\n") if label)
    for label in labels:
        # `unquote` cannot read half a surrogate pair next to an escape; Chroma's codec can.
        if label.isascii():
            assert unquote(encode_label(label)) == label
        assert not {".", "\x00"} & set(encode_label(label))
    if not labels:
        return
    encoded = encode_namespace(labels)
    assert encoded.isascii()
    assert encoded.count("/") == len(labels) - 1
    assert decode_namespace(encoded) == labels
    assert scope(NS, [labels]) == {NS: encoded}
    assert is_under(labels, labels[:-1])
    assert not is_under(labels, (*labels[:-1], f"{labels[-1]}0"))


def filter_values(value: Any) -> None:
    """Filters: accepted or refused with a code, and an accepted one compares with anything."""
    if not isinstance(value, Mapping):
        value = {"field": value}
    try:
        conditions = check_filter(value)
    except InvalidInputError as error:
        if error.code is not ErrorCode.STORE_FILTER:
            raise
        return
    for stored in ({}, value, {"field": None}, {"field": [1, "a", {"b": 2}]}, {"kind": "note"}):
        assert matches(stored, conditions) in {True, False}
    assert matches({"a": 1}, {})


TEXT_TARGETS: tuple[Callable[[str], None], ...] = (
    read_answers,
    read_rows,
    quote_texts,
    split_texts,
    encode_namespaces,
)
"""The targets that take any text."""
