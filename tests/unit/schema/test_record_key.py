"""Only the same text is a repeat."""

import pytest

from memguard.schema.memory import record_key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # C-01: a negation
        (
            "Visitors may enter the workshop without a badge.",
            "Visitors may not enter the workshop without a badge.",
        ),
        # C-02: another day, dose, code, reading
        ("The boiler service is booked for 14 May.", "The boiler service is booked for 15 May."),
        ("The user's cat takes 20 mg of the tablet.", "The user's cat takes 200 mg of the tablet."),
        ("The bike lock code is 4821.", "The bike lock code is 4812."),
        ("Meter reading on 1 March: 5,120.", "Meter reading on 1 April: 5,188."),
        ("The user likes IT.", "The user likes it."),
        ("It is 5 degrees.", "It is -5 degrees."),
        ("The dose is 1.5 mg.", "The dose is 15 mg."),
        ("The user is 30", "The user is 30.5"),
    ],
)
def test_other_texts_have_other_keys(one: str, other: str) -> None:
    assert record_key(one) != record_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The user paints.", " The  user paints.\n"),
        ("The user paints.", "The user paints"),
        ("Caf\u00e9 Central is closed.", "Cafe\u0301 Central is closed."),
    ],
)
def test_what_a_reader_calls_the_same_has_one_key(one: str, other: str) -> None:
    assert record_key(one) == record_key(other)
