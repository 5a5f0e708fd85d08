"""Safety is recognized in many languages, in any encoding, and not in figures of speech."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.safety_cues import SECOND, CueFigures, measure_cues
from memguard.local import safety
from memguard.local.adjudicator.attributes import epistemic_of, kind_of
from memguard.local.pieces import kind_without_verdict
from memguard.local.safety import CUES, FIGURATIVE, looks_like_safety
from memguard.schema.units import Unit

ROWS = {row.language: row for row in measure_cues()}


@pytest.mark.parametrize("language", CUES)
def test_the_sentences_of_a_language(language: str) -> None:
    row = ROWS[language]
    assert row.safety >= 12
    assert row.harmless >= 12
    assert row.missed == ()
    assert row.false_alarms == ()


def test_the_second_set_of_sentences() -> None:
    rows = measure_cues(SECOND)
    assert {row.language for row in rows} == set(CUES)
    assert [text for row in rows for text in (*row.missed, *row.false_alarms)] == []


def test_every_language_has_expressions_that_mean_something_else() -> None:
    assert set(CUES) == set(FIGURATIVE) == set(ROWS)


@pytest.mark.parametrize(
    "text",
    [
        "al\u200blergy to nuts",
        "\u0430llergy to nuts",
        "\uff41\uff4c\uff4c\uff45\uff52\uff47\uff59 to nuts",
        "ALL\u00adERGIC TO NUTS",
        "\u041dIV positive",
        "\u0410\u041b\u041b\u0415\u0420\u0413\u0418\u042f",
        "\u0430\u043b\u043be\u0440\u0433\u0438\u044f",  # a Latin e
        "\u0130la\u00e7 al\u0131yor, ALERJ\u0130S\u0130 var",
    ],
)
def test_no_encoding_conceals_a_cue(text: str) -> None:
    assert looks_like_safety(text)
    assert kind_without_verdict(Unit(id="u", text=text, memory_id="m")) == "safety"


@pytest.mark.parametrize(
    "text",
    [
        "The user must never eat shellfish.",
        "She gets hives from kiwi.",
        "He is on lithium.",
        "The user takes blood pressure pills.",
    ],
)
def test_indirect_statements_are_safety(text: str) -> None:
    assert kind_of(text) == "safety"


def test_the_other_cues_read_the_normal_form() -> None:
    assert epistemic_of("It was con\u200bfirmed by the d\u043ector") == "verified"
    assert kind_of("The user prefer\u0455 tea.") == "preference"


def test_a_figure_of_speech_does_not_conceal_an_allergy() -> None:
    assert looks_like_safety("Allergic to Mondays, and to peanuts: has an EpiPen.")


def test_no_pattern_reads_without_end() -> None:
    entries = [
        entry
        for table in (*CUES.values(), *FIGURATIVE.values())
        for entry in safety.entries_of(table)
    ]
    patterns = [safety.compile_cue(entry)[1].pattern for entry in entries]
    assert [pattern for pattern in patterns if re.search(r"(?<!\\)[*+]", pattern)] == []


def test_a_long_text_is_compared_with_few_figures_of_speech(monkeypatch: Any) -> None:
    class Counting:
        calls = 0

        def sub(self, _: str, text: str) -> str:
            Counting.calls += 1
            assert len(text) < 200
            return text.replace("blind date", " ")

    monkeypatch.setattr(safety, "_FIGURATIVE", Counting())
    # Taken literally in the end, which costs a line of context.
    assert looks_like_safety("a blind date, " * 5_000)
    assert Counting.calls <= 100


@given(st.text(max_size=200))
def test_any_text_can_be_judged(text: str) -> None:
    assert looks_like_safety(text) in {True, False}
    assert not looks_like_safety("")


def test_the_figures_are_shares() -> None:
    row = CueFigures(language="en", safety=4, harmless=4, missed=("x",), false_alarms=("y", "z"))
    assert (row.recall, row.alarm_rate) == (0.75, 0.5)
