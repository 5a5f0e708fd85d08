"""Words, numbers, dates, sentences and units of the support verifier: pure rules."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memguard.local.verifier.numbers import is_stated
from memguard.local.verifier.units import (
    UNIT_WORDS,
    TextUnit,
    UnitIndex,
    best_units,
    find_subject,
    split_candidate,
    split_text,
)
from memguard.local.verifier.words import (
    looks_foreign,
    read_words,
    same_script,
    split_words,
    stem,
)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("moved", "moving"),
        ("cities", "city"),
        ("dogs", "dog"),
        ("went", "goes"),
        ("Anna's", "Anna"),
        ("bought", "buy"),
        ("stopped", "stopping"),
        ("classes", "class"),
    ],
)
def test_forms_of_a_word_share_their_stem(first: str, second: str) -> None:
    assert stem(first) == stem(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("on 3 March", "on March 3rd"),
        ("on March 3rd, 2024", "2024-03-03"),
        ("3,500 euros", "3500 euros"),
        ("twenty five years", "25 years"),
        ("two hundred and five", "205"),
        ("at 5 pm", "at 17:00"),
        ("the third of May 2020", "3.5.2020"),
        ("a dozen eggs", "12 eggs"),
        ("on Mondays", "on Monday"),
        ("03/04/2024", "4 March 2024"),
        ("03/04/2024", "3 April 2024"),
        ("last week", "in the past week"),
        ("every month", "a monthly visit"),
    ],
)
def test_the_same_number_or_date_in_two_forms(first: str, second: str) -> None:
    values = read_words(second).values
    readings = [reading for reading in read_words(first).readings if reading]
    assert readings
    assert all(is_stated(reading, values) for reading in readings)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("3 March", "3 May"),
        ("7 years", "17 years"),
        ("1.5 litres", "15 litres"),
        ("9:45", "8:45"),
        ("last week", "last year"),
    ],
)
def test_other_numbers_do_not_match(first: str, second: str) -> None:
    values = read_words(second).values
    assert not all(is_stated(reading, values) for reading in read_words(first).readings if reading)


def test_may_and_march_are_months_only_where_they_can_be() -> None:
    assert not read_words("I may march on").number.any()
    assert read_words("It was in May").number.any()
    assert read_words("on 5 march").values == {"5", "m3"}


def test_one_as_a_pronoun_is_not_a_number() -> None:
    assert not read_words("He liked the blue house and this one of them").number.any()
    assert read_words("She has one brother").number.any()


def test_relative_days_are_read_by_the_date_of_the_turn() -> None:
    words = read_words("I saw it yesterday", at=date(2023, 5, 8))
    assert {"7", "m5", "2023"} <= words.values
    assert "2022" in read_words("last year", at=date(2023, 5, 8)).values
    assert {"m1", "2024"} <= read_words("next month", at=date(2023, 12, 8)).values


def test_flags() -> None:
    words = read_words("Anna doesn't like Paris. The city, and its noise")
    flags = {span.text: index for index, span in enumerate(words.spans)}
    assert words.negation[flags["doesn't"]]
    assert words.capital[flags["Paris"]]
    assert not words.capital[flags["Anna"]]
    assert not words.capital[flags["The"]]
    assert words.clause[flags["noise"]] > words.clause[flags["city"]] > words.clause[flags["Paris"]]


@given(st.text(max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    words = read_words(text, at=date(2024, 2, 29))
    assert len(words) == len(words.stems) == len(words.readings) == len(words.number)
    assert all(text[span.start : span.end] == span.text for span in words.spans)
    looks_foreign(text)
    same_script(text, "plain text")


@given(st.text(alphabet="ab .!?\nÄ漢1", max_size=600), st.integers(5, 40))
def test_splitting_loses_no_word(text: str, limit: int) -> None:
    pieces = split_text(text, limit=limit)
    # Joined, because digits beside letters may be told apart otherwise once they are cut.
    whole = "".join(span.text for span in split_words(text))
    assert "".join(span.text for piece in pieces for span in split_words(piece)) == whole
    assert all(len(split_words(piece)) <= limit for piece in pieces)
    cut = split_candidate(text)
    assert "".join(s.text for sentence in cut for s in split_words(sentence.text)) == whole
    assert all(text[sentence.start :].startswith(sentence.text) for sentence in cut)


def test_sentences() -> None:
    text = "Dr. Lim lives in Rome. She has two cats. Yes! She met J. Smith there."
    assert [piece.text.strip() for piece in split_candidate(text)] == [
        "Dr. Lim lives in Rome.",
        "She has two cats.",
        "Yes! She met J. Smith there.",
    ]
    assert split_candidate(" \n… ") == []


def test_cjk_is_read_character_by_character() -> None:
    assert [span.text for span in split_words("安娜 lives 🙂 in 里昂")] == [
        "安", "娜", "lives", "in", "里", "昂",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "foreign"),
    [
        ("Anna has lived in Rome for two years", False),
        ("Anna wohnt seit zwei Jahren in Rom und arbeitet nicht", True),
        ("Ana vive en Roma con los gatos de la abuela", True),
        ("安娜在里昂当护士", True),
        ("Anna met José in Zürich", False),
        ("42", False),
        ("", False),
    ],
)
def test_foreign(text: str, foreign: bool) -> None:
    assert looks_foreign(text) is foreign


def test_subject_is_the_label_named_first() -> None:
    mask, label = find_subject("Anna's sister knows Ben", ["Ben", "Anna Lima"])
    assert label == "Anna Lima"
    assert mask.tolist() == [True, False, False, False]
    assert find_subject("The user has a cat", ["User", "Assistant"])[1] == "User"
    assert find_subject("I have a cat", ["Anna", "Ben"])[1] == ""
    assert find_subject("She has a cat", ["Anna", "Ben"], named="anna")[1] == "Anna"


def test_units_with_rare_shared_words_are_chosen_among_many() -> None:
    units = [TextUnit(speaker="Ana", text=f"small talk number {n}", turn=n) for n in range(100)]
    units[50] = TextUnit(speaker="Ana", text="The accordion cost 300", turn=50)
    index = UnitIndex.of(units)
    chosen = best_units("Ana has an accordion", index, limit=6, idf={"small": 1.0}, default=9.0)
    assert len(chosen) == 6
    assert {49, 50, 51} <= {unit.turn for unit in chosen}
    assert [unit.turn for unit in chosen] == sorted(unit.turn for unit in chosen)


def test_long_turns_are_split_at_sentence_ends() -> None:
    text = " ".join(f"Sentence number {n} has eight words in it." for n in range(30))
    pieces = split_text(text)
    assert len(pieces) > 2
    assert all(piece.endswith(".") and len(split_words(piece)) <= UNIT_WORDS for piece in pieces)


def test_whom_a_clause_is_about() -> None:
    words = read_words("I play chess, but you play the flute. Do you like it? We do")
    flags = {span.text: index for index, span in enumerate(words.spans)}
    assert (words.first[flags["chess"]], words.second[flags["chess"]]) == (True, False)
    assert (words.first[flags["flute"]], words.second[flags["flute"]]) == (False, True)
    assert words.question[flags["like"]]
    assert not words.question[flags["flute"]]
    assert not words.question[flags["We"]]


def test_actor_and_owner_of_a_clause() -> None:
    words = read_words("My colleague Tomas doesn't eat meat, I do.")
    flags = {span.text: index for index, span in enumerate(words.spans)}
    assert (words.first[flags["meat"]], words.actor[flags["meat"]]) == (True, False)
    assert (words.first[flags["do"]], words.actor[flags["do"]]) == (True, True)
    assert (words.negated[flags["meat"]], words.negated[flags["do"]]) == (True, False)
