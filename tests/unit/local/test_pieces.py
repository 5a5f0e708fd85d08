"""Whether pieces are the memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memguard.local.pieces import MAX_PIECES, pieces_key, problem_of, whole, with_span
from memguard.schema.base import clean_text
from memguard.schema.units import Piece

BRAND = "I prefer brand A because its battery lasts longest"
MEAT = "The user likes fish but not meat."
JAZZ = "The user doesn't like jazz but likes rock."


def problem(source: str, *texts: str) -> str:
    return problem_of([Piece(text=text) for text in texts], source=source)


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        (BRAND, ("I prefer brand A", "brand A's battery lasts longest")),
        (BRAND, ("The user prefers brand A.", "Its battery lasts longest.")),
        (MEAT, ("The user likes fish.", "The user does not like meat.")),
        (JAZZ, ("The user does not like jazz.", "The user likes rock.")),
        ("The user has 2 cats and 20 fish.", ("The user has 2 cats.", "The user has 20 fish.")),
        ("用户喜欢绿茶，因为它不苦", ("用户喜欢绿茶", "绿茶不苦")),
        ("Ich mag Tee, weil er nicht teuer ist.", ("Ich mag Tee.", "Tee ist nicht teuer.")),
        (BRAND, ("I prefer brand A", "I believe brand A's battery lasts longest")),
        ("Ich mag Tee, weil er gesund ist.", ("Ich mag Tee.", "Ich glaube, Tee ist gesund.")),
        ("我喜欢绿茶，因为它健康", ("我喜欢绿茶", "我认为绿茶健康")),
    ],
    ids=range(10),
)
def test_pieces_that_are_the_memory(source: str, texts: tuple[str, ...]) -> None:
    assert problem(source, *texts) == ""


@pytest.mark.parametrize(
    ("source", "texts", "why"),
    [
        (BRAND, ("I prefer brand A",), "in no piece"),
        (BRAND, ("I prefer brand A", "its battery lasts ten days longest"), "adds"),
        (MEAT, ("The user likes fish.", "The user likes meat.", "not"), "negation"),
        ("The user has 2 cats and 20 fish.", ("The user has 20 cats and fish.",), "in no piece"),
        ("The user has 2 cats.", ("The user has 3 cats.", "2"), "adds '3'"),
        ("The user likes tea.", ("The user never likes tea.",), "adds"),
        ("用户喜欢绿茶，因为它不苦", ("用户喜欢绿茶", "绿茶苦", "不"), "negation"),
        ("The user believes tea heals and runs.", ("Tea heals.", "The user runs."), "in no piece"),
        (BRAND, (), "no pieces"),
        (BRAND, (BRAND, " ... "), "without words"),
    ],
    ids=range(10),
)
def test_pieces_that_are_not(source: str, texts: tuple[str, ...], why: str) -> None:
    assert why in problem(source, *texts)


@given(st.text(max_size=60).map(clean_text))
def test_a_memory_is_a_piece_of_itself(text: str) -> None:
    pieces = whole(text).pieces
    assert problem_of(pieces, source=text) in {"", "a piece without words"}
    assert with_span(pieces[0], source=text).start == (0 if text else None)


WORDS = ["Ana", "likes", "red", "tea", "not", "3", "cats", "Porto"]


@given(st.lists(st.sampled_from(WORDS), min_size=2, unique=True))
def test_a_word_left_out_is_seen(words: list[str]) -> None:
    assert problem(" ".join(words), " ".join(words[:-1]))


def test_a_rewritten_piece_has_no_place() -> None:
    assert with_span(Piece(text="tea", start=9, end=12), source="The user likes tea").start == 15
    assert with_span(Piece(text="Tea is liked", start=0, end=3), source="likes tea").end is None


def test_the_key_changes_with_text_and_decomposer() -> None:
    keys = {pieces_key(text, fingerprint=by) for text in "ab" for by in ("1", "2")}
    assert len(keys) == 4


def test_a_lone_surrogate_has_a_key() -> None:
    assert pieces_key("tea \ud83c", fingerprint="1") != pieces_key("tea ?", fingerprint="1")


def test_a_memory_of_many_words_is_not_split_into_as_many_pieces() -> None:
    pieces = [Piece(text="tea") for _ in range(MAX_PIECES + 1)]
    assert problem_of(pieces[:-1], source="tea") == ""
    assert problem_of(pieces, source="tea") == "there are 41 pieces, more than 40"
