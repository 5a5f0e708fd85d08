"""The relations that are read from the words of two memories."""

from datetime import UTC, datetime

import pytest

from memguard.local.corrections import read_relations
from memguard.schema.memory import CandidateMemory, Provenance, SaidBy
from memguard.schema.relations import Assertion, Neighbour, RelationReading, RelationVerdict

NOW = datetime(2026, 12, 1, tzinfo=UTC)


def read(
    candidate: str,
    *neighbours: str,
    said_by: SaidBy = "user",
    speaker: str = "",
    other_speaker: str = "",
    other_author: SaidBy = "user",
) -> RelationReading:
    origin = Provenance(
        candidate_id="c", receipt_id="r", said_by=other_author, speaker=other_speaker
    )
    return read_relations(
        CandidateMemory(text=candidate, said_by=said_by, speaker=speaker),
        [
            Neighbour(namespace=("ana",), key=str(at), text=text, provenance=origin)
            for at, text in enumerate(neighbours)
        ],
        now=NOW,
    )


def verdict(candidate: str, neighbour: str, *, said_by: SaidBy = "user") -> RelationVerdict:
    return read(candidate, neighbour, said_by=said_by).verdicts[0]


def test_every_neighbour_gets_a_verdict_with_its_key() -> None:
    reading = read("I live in Porto.", "I live in Lisbon.", "I have a dog.", "I live in Porto")
    assert [one.key for one in reading.verdicts] == ["0", "1", "2"]
    relations = [one.relation for one in reading.verdicts]
    assert relations == ["supersedes", "coexists", "duplicate"]
    assert reading.notes


def test_nothing_is_read_of_no_neighbours() -> None:
    assert read("I live in Porto.").verdicts == ()


@pytest.mark.parametrize("author", ["document", "tool", "assistant"])
def test_the_words_of_another_author_replace_nothing_for_certain(author: SaidBy) -> None:
    change = ("I moved to Lisbon.", "I live in Porto.")
    assert verdict(*change).certain
    assert not verdict(*change, said_by=author).certain
    assert not read(*change, other_author=author).verdicts[0].certain


def test_two_speakers_are_two_people() -> None:
    reading = read("I moved to Lisbon.", "I live in Porto.", speaker="Ben", other_speaker="Ana")
    assert reading.verdicts[0].relation == "coexists"
    reading = read("I moved to Lisbon.", "I live in Porto.", speaker="Ana", other_speaker="Ana")
    assert reading.verdicts[0].certain


def test_the_speaker_by_name_is_the_user() -> None:
    for text in ("Ana lives in Porto.", "Ana: I live in Porto.", "The user lives in Porto."):
        reading = read("I live in Porto.", text, speaker="Ana Costa", other_speaker="Ana Costa")
        assert reading.verdicts[0].relation == "duplicate", text


def test_a_change_replaces_whichever_of_the_two_is_told_first() -> None:
    for pair in (
        ("I moved to Lisbon.", "I live in Porto."),
        ("I live in Porto.", "I moved to Lisbon."),
        ("I smoke.", "I quit smoking."),
        ("Ich rauche.", "Ich habe mit dem Rauchen aufgehört."),
    ):
        assert verdict(*pair).relation == "supersedes", pair
        assert verdict(*pair).certain, pair


def test_the_label_of_a_user_without_a_name_is_no_content() -> None:
    found = verdict("The user: I moved to Lisbon last week.", "The user: I live in Porto.")
    assert found.relation == "supersedes"
    assert found.certain


def test_what_is_joined_to_an_old_value_may_still_hold() -> None:
    found = verdict("I moved to Lisbon.", "I live in Porto and work at Bosch.")
    assert found.relation != "duplicate"
    assert not found.certain


def test_the_change_of_somebody_else_is_not_certain() -> None:
    found = verdict("My sister moved to Paris.", "My sister lives in Lyon.")
    assert not found.certain


@pytest.mark.parametrize(
    ("text", "assertion"),
    [
        ("I live in Porto.", "plain"),
        ("I moved to Lisbon last spring.", "plain"),
        ("I might move to Lisbon.", "doubtful"),
        ("I heard I will be moved to Lisbon.", "doubtful"),
        ("Next May I will move to Lisbon.", "doubtful"),
        ("Do I live in Lisbon?", "doubtful"),
        ("My flight is next Monday.", "plain"),
        ("This week I am on nights.", "temporary"),
        ("Diese Woche arbeite ich nachts.", "temporary"),
        ("Ich will nach Bonn ziehen.", "doubtful"),
        ("Mientras reforman mi piso vivo en Toledo.", "temporary"),
        ("Quizás me mude a Roma.", "doubtful"),
        ("Pendant les travaux j'habite à Tours.", "temporary"),
        ("Je voudrais arrêter de fumer.", "doubtful"),
        ("这周我住在上海。", "temporary"),
        ("我打算搬到深圳。", "doubtful"),
    ],
)
def test_how_a_candidate_is_meant(text: str, assertion: Assertion) -> None:
    assert read(text).assertion == assertion


def test_the_event_is_when_it_happened_and_not_when_it_was_told() -> None:
    assert read("Last spring I moved to Lisbon.").event_at == datetime(2026, 3, 1, tzinfo=UTC)
    assert read("I live in Lisbon.").event_at is None
    # The date of a flight is its value, not when it was booked.
    assert read("My flight is on 3 May 2026.").event_at is None


def test_another_language_is_only_compared_as_a_whole() -> None:
    assert verdict("Mieszkam w Gdańsku.", "Mieszkam w Krakowie.").relation == "coexists"
    assert verdict("Mieszkam w Gdańsku.", "Mieszkam w Gdańsku").relation == "duplicate"
