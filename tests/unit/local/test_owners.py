"""Whose fact a clause is: subjects, relations, names, elision, five languages, and any text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memguard.local.owners import Clause, aliases_of, owner_of, split_clauses
from memguard.local.owners.words import GRAMMARS, NAMES, RELATIONS


def owners(text: str, *, speaker: str = "") -> list[str]:
    return [clause.owner for clause in split_clauses(text, speaker=speaker)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Tomas doesn't, I do.", ["tomas", "user"]),
        ("My colleague doesn't eat meat, I do.", ["colleague", "user"]),
        ("Lena is allergic to shellfish and I love it.", ["lena", "user"]),
        ("My sister, who is vegan, lives in Oslo.", ["sister", "sister", "sister"]),
        ("I visited my sister, who is vegan, and ate cake.", ["user", "sister", "user"]),
        ("I met Paul, whose wife is a judge.", ["user", "paul's wife"]),
        ("My wife's brother is a pilot.", ["wife's brother"]),
        ("Ana's mother is here. Her son is a doctor.", ["ana's mother", "ana's mother's son"]),
        ("The user lives in Porto. His wife is a vet.", ["user", "wife"]),
        ("I think my brother is vegan.", ["user", "brother"]),
        ("My boss says I work too much.", ["boss", "user"]),
        ("I am from Porto, my wife from Lyon.", ["user", "wife"]),
        ("My wife got a job. It is at a clinic.", ["wife", "wife"]),
        ("A colleague from work has asthma.", ["colleague"]),
        ('My wife said "I am tired of fish".', ["wife", "wife"]),
        ("My dog bites. I don't.", ["dog", "user"]),
        ("Unlike my brother, I can't swim.", ["user"]),
    ],
)
def test_every_subject_begins_a_clause(text: str, expected: list[str]) -> None:
    result = [owner for owner in owners(text) if owner != "unknown"]
    assert result == expected


@pytest.mark.parametrize(
    "text",
    [
        "Cinnamon makes porridge better.",
        "Python is a great language.",
        "Berlin is expensive.",
        "The meeting is on Monday.",
        "Everyone likes music.",
        "Basil loves sun.",
    ],
)
def test_a_capitalised_thing_is_not_a_person(text: str) -> None:
    assert owner_of(text) == "world"


@pytest.mark.parametrize(
    "text",
    [
        "Jazz trios are my favourite.",
        "My car is red.",
        "Allergic to nuts.",
        "Please remember that I am allergic to peanuts.",
        "According to my doctor I have high blood pressure.",
    ],
)
def test_what_is_of_the_user(text: str) -> None:
    assert owner_of(text) == "user"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Meine Frau ist gegen Nüsse allergisch, ich nicht.", ["wife", "user"]),
        ("Gestern hat meine Schwester angefangen.", ["sister"]),
        ("Der Bruder meiner Frau ist Pilot.", ["wife's brother"]),
        ("Meine Schwester, die in Oslo lebt, ist Veganerin.", ["sister"] * 3),
        ("Zimt macht den Brei besser.", ["world"]),
        ("Soy alérgico a las nueces.", ["user"]),
        ("A mi hijo le gusta el fútbol.", ["son"]),
        ("Trabajo en Sevilla y mi hermana vive en Cádiz.", ["user", "sister"]),
        ("El hermano de mi mujer es piloto.", ["wife's brother"]),
        ("J'habite à Lyon et ma sœur habite à Nantes.", ["user", "sister"]),
        ("Le frère de ma femme est pilote.", ["wife's brother"]),
        ("我妻子对花生过敏，不吃海鲜。", ["wife", "wife"]),
        ("我的哥哥在北京工作，我在上海工作。", ["brother", "user"]),
        ("李娜是我姐姐，她喜欢爵士乐。", ["sister", "sister"]),
        ("用户的儿子对坚果过敏。", ["son"]),
    ],
)
def test_other_languages(text: str, expected: list[str]) -> None:
    assert owners(text) == expected


def test_a_speaker_who_is_not_the_user_speaks_of_herself() -> None:
    assert owners("My sister lives in Lyon, I don't.", speaker="Ana") == ["ana's sister", "ana"]
    assert owner_of("I live here.", speaker="Ana", user_names={"ANA"}) == "user"
    assert owner_of("You live here.", speaker="Bob", listener="Ana") == "ana"
    assert owner_of("Ana: My sister Clara lives in Lyon.") == "ana's sister"
    assert owner_of("Note: I live here.") == "user"


def test_an_elided_clause_names_what_it_repeats() -> None:
    first, second = split_clauses("My colleague doesn't eat meat, I do.")
    assert not first.is_elided
    assert second.is_elided
    assert second.repeats == first.text
    (alone,) = split_clauses("Me too!")
    assert (alone.owner, alone.is_elided, alone.repeats) == ("user", True, "")


def test_names_of_relations() -> None:
    clauses = split_clauses("My sister Clara is a vet. Clara lives in Lyon.")
    assert [clause.owner for clause in clauses] == ["sister", "sister"]
    assert aliases_of(clauses) == {"clara": "sister"}


def test_more_than_one_owner() -> None:
    (clause,) = split_clauses("My wife and I are vegetarian.")
    assert (clause.owner, clause.also) == ("user", ("wife",))


def test_unclear_pronouns_stay_unclear() -> None:
    assert owner_of("He is allergic to bees.") == "unknown"
    assert owner_of("Her brother is a pilot.") == "unknown"
    assert owner_of("") == "unknown"


def check(text: str, clauses: tuple[Clause, ...]) -> None:
    end = 0
    for clause in clauses:
        assert end <= clause.start < clause.end <= len(text)
        assert clause.start <= clause.subject_end <= clause.end
        assert text[clause.start : clause.end] == clause.text
        assert clause.owner
        end = clause.end


WORDS = sorted(
    {word for grammar in GRAMMARS.values() for word in grammar.first | grammar.breaks}
    | {word for table in RELATIONS.values() for word in table}
    | {name.capitalize() for name in sorted(NAMES)[::40]}
    | {"my", "the", "user's", "wife's", "who", ",", ".", '"', "is", "mein", "mi", "ma", "des", "of"}
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join))
def test_clauses_of_any_words_are_in_order(text: str) -> None:
    check(text, split_clauses(text))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=80), st.text(max_size=8))
def test_clauses_of_any_text_are_in_order(text: str, speaker: str) -> None:
    check(text, split_clauses(text, speaker=speaker))


@given(st.sampled_from(sorted(set(RELATIONS["en"].values()) & RELATIONS["en"].keys())))
def test_a_relation_is_not_the_user(relation: str) -> None:
    for tail in ("is allergic to nuts.", "lives in Oslo and works at night.", "has asthma."):
        assert owner_of(f"My {relation} {tail}") == relation
        assert owner_of(f"The user's {relation} {tail}") == relation
