"""No text can leave its place in a prompt."""

import json
from datetime import datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from memguard.quoting import named_turns, quote, quote_time, quote_turn, quote_turns
from memguard.schema.memory import Turn

any_text = st.text()


@given(any_text)
def test_a_quoted_text_is_one_line_without_tags(text: str) -> None:
    quoted = quote(text)
    assert len(quoted.splitlines()) == 1
    assert "<" not in quoted
    assert ">" not in quoted
    assert json.loads(quoted) == text


@given(st.lists(any_text, max_size=5), any_text)
def test_every_turn_is_exactly_one_line(texts: list[str], speaker: str) -> None:
    turns = [Turn(id=str(i), role="user", speaker=speaker, content=t) for i, t in enumerate(texts)]
    assert len(quote_turns(turns).splitlines()) == max(1, len(texts))


def test_a_turn_shows_number_role_speaker_and_its_own_offset() -> None:
    at = datetime(2025, 12, 30, 22, 40, tzinfo=timezone(timedelta(hours=-5)))
    turn = Turn(id="x", role="user", speaker="Ana", content="Next month.", at=at)
    line = quote_turn(turn, number=3)
    assert line == '[3] user "Ana", Tuesday 2025-12-30 22:40-05:00: "Next month."'
    assert quote_time(at) == "Tuesday 2025-12-30 22:40-05:00"


def test_no_turns_are_said_to_be_none() -> None:
    assert quote_turns([]) == "(none)"


def test_turns_are_named_by_the_numbers_shown() -> None:
    turns = [Turn(id=f"D1:{n}", role="user", content="x") for n in range(3)]
    assert named_turns(["3", "1", "9", "0", "-1", "two", "1"], turns) == ("D1:2", "D1:0")
    # Python refuses to read a number of more than 4,300 digits.
    assert named_turns(["9" * 5_000, "2"], turns) == ("D1:1",)
