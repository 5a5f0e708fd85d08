"""Which memories say the same, and which have values that differ."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memguard.local.paraphrases import are_paraphrases, statement_form

DATA = Path(__file__).parents[2] / "data" / "paraphrases.jsonl"
PAIRS = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if not pair["same"]], ids=str)
def test_values_that_differ_are_never_the_same(pair: dict[str, str]) -> None:
    assert not are_paraphrases(pair["a"], pair["b"])


def test_most_paraphrases_are_recognised() -> None:
    same = [pair for pair in PAIRS if pair["same"]]
    recognised = [pair for pair in same if are_paraphrases(pair["a"], pair["b"])]
    assert len(recognised) >= 0.9 * len(same)


def test_the_name_of_the_user_is_the_user() -> None:
    assert are_paraphrases("Ana: I live in Porto.", "The user lives in Porto.", names=["Ana"])
    assert are_paraphrases("Ana lives in Porto.", "I live in Porto.", names=["Ana"])
    assert not are_paraphrases("Rui lives in Porto.", "I live in Porto.", names=["Ana"])


_NUMBERS = st.integers(0, 99_999)
_FRAMES = st.sampled_from(
    ["I have {} boats.", "Ich habe {} Boote.", "Tengo {} barcos.", "J'ai {} bateaux.", "我有{}条船"]
)


@given(frame=_FRAMES, first=_NUMBERS, second=_NUMBERS)
def test_a_number_is_never_left_out(frame: str, first: int, second: int) -> None:
    same = are_paraphrases(frame.format(first), frame.format(second))
    assert same == (first == second)


@given(st.text(max_size=200))
def test_every_text_has_a_form_or_none(text: str) -> None:
    form = statement_form(text)
    assert form is None or all(form)
    assert statement_form(text) == form
