"""Text at the door."""

from hypothesis import given
from hypothesis import strategies as st

from memguard.schema.base import clean_text, is_blank
from memguard.schema.memory import CandidateMemory, Turn

hostile = st.text(st.characters(codec=None, exclude_categories=()))


@given(hostile)
def test_clean_text_can_be_written_as_utf8_and_is_stable(text: str) -> None:
    cleaned = clean_text(text)
    cleaned.encode("utf-8")
    assert clean_text(cleaned) == cleaned
    assert not any(ch in cleaned for ch in "\x00\x07\x1b\r")


def test_e02_odd_characters_are_cleaned_not_refused() -> None:
    assert clean_text("The user bakes\x00 rye bread.") == "The user bakes rye bread."
    assert clean_text("The user loves \ud83d jazz.") == "The user loves \ufffd jazz."
    assert clean_text("rings\x07 bells\x1b[31m.") == "rings bells[31m."
    assert clean_text("\U0001f600") == "\U0001f600"


def test_d01_numbers_and_units_stay_as_they_were() -> None:
    text = "18.5 °C, 1.250,00 € a year, 2 to 3 m³, -2 °C, 03/04/2026"
    assert clean_text(text) == text


def test_e01_blank_is_what_a_reader_cannot_see() -> None:
    for text in ("", "   ", "\n\t ", "\u200b", "\u3000\u3000", "\ufeff"):
        assert is_blank(text)
    assert not is_blank("\u200bx")
    assert is_blank(CandidateMemory.model_validate({"text": None}).text)


def test_a_naive_time_is_utc() -> None:
    turn = Turn.model_validate(
        {"id": "1", "role": "user", "content": "x", "at": "2026-07-25T02:00:00"}
    )
    assert turn.at is not None
    assert turn.at.isoformat() == "2026-07-25T02:00:00+00:00"


def test_the_id_of_a_candidate_depends_on_text_source_and_namespace() -> None:
    base = CandidateMemory(text="x", namespace=("a",), turn_ids=("1",), conversation_id="c")
    others = [
        base.model_copy(update={"text": "y"}),
        base.model_copy(update={"namespace": ("b",)}),
        base.model_copy(update={"turn_ids": ("2",)}),
        base.model_copy(update={"conversation_id": "d"}),
    ]
    assert len({base.id, *(other.id for other in others)}) == 5
    assert base.id == base.model_copy().id
