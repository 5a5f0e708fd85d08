"""A person's hand on memory, on inputs from public bug reports."""

from datetime import UTC, datetime
from typing import Any

import pytest

from memguard import Memories
from memguard.errors import InvalidInputError
from memguard.journal.journal import Journal
from memguard.local.event_times import event_time
from memguard.schema.memory import lifecycle_of
from tests.cases import case_input
from tests.unit.memories.conftest import texts


def everybody(store: Any, journal: Journal) -> dict[tuple[str, ...], Memories]:
    """The memories of every user of the case, and of two tenants with one user name."""
    namespaces = [("memories", user) for user in case_input("H-03")["users"]]
    namespaces += [("acme", "x"), ("acme-corp", "x")]
    return {
        namespace: Memories(store, namespace=namespace, receipts=journal)
        for namespace in namespaces
    }


def test_h03_forgetting_one_user_leaves_those_with_a_similar_name(
    store: Any, journal: Journal
) -> None:
    people = everybody(store, journal)
    for number, memories in enumerate(people.values()):
        memories.add(f"I keep jar {number} in the cellar.")
    assert all(len(texts(memories)) == 1 for memories in people.values())
    for namespace in (("memories", "user1"), ("acme", "x")):
        gone = people.pop(namespace)
        assert gone.forget_user(preview=True).count == 1
        assert len(texts(gone)) == 1
        assert gone.forget_user().count == 1
        assert texts(gone) == []
        assert all(len(texts(memories)) == 1 for memories in people.values())


def test_h03_an_export_and_a_history_are_of_one_user(
    store: Any, journal: Journal, tmp_path: Any
) -> None:
    people = everybody(store, journal)
    receipts = {
        namespace: memories.add(f"I keep jar {number} in the cellar.")
        for number, (namespace, memories) in enumerate(people.items())
    }
    exported = tmp_path / "user1.jsonl"
    people["memories", "user1"].export(exported)
    content = exported.read_text(encoding="utf-8")
    for namespace, receipt in receipts.items():
        is_own = namespace == ("memories", "user1")
        assert (receipt.candidate.text in content) == is_own
        if not is_own:
            with pytest.raises(InvalidInputError):
                people["memories", "user1"].history(receipt.record_key)


def test_e01_blank_texts_are_refused_and_change_nothing(memories: Memories) -> None:
    case = case_input("E-01")
    stored = memories.add(case["good_pair"]["candidate"])
    for blank in filter(lambda row: row is not None, case["candidate_rows"]):
        with pytest.raises(InvalidInputError):
            memories.add(blank)
        with pytest.raises(InvalidInputError):
            memories.edit(stored.record_key, blank)
    assert texts(memories) == [case["good_pair"]["candidate"]]


def test_e02_odd_characters_are_cleaned_or_refused(memories: Memories) -> None:
    for row in case_input("E-02")["batch"]:
        try:
            receipt = memories.add(row["text"])
        except InvalidInputError:
            continue
        assert receipt.outcome == "stored"
    shown = "".join(texts(memories))
    assert "oboe" in shown
    assert "Tuesdays" in shown
    shown.encode("utf-8")
    assert not any(character in shown for character in "\x00\x07\x1b")


async def test_i01_adding_the_same_again_confirms_it_sync_and_async(
    store: Any, memories: Memories
) -> None:
    first = await memories.aadd("I own a narrowboat.")
    again = [
        await memories.aadd("I own a narrowboat."),
        await memories.aadd("I own a narrowboat"),
    ]
    assert first.outcome == "stored"
    assert [receipt.outcome for receipt in again] == ["duplicate", "duplicate"]
    assert {receipt.record_key for receipt in (first, *again)} == {first.record_key}
    (item,) = await store.asearch(memories.namespace)
    assert lifecycle_of(item.value).confirmed_at is not None


@pytest.mark.parametrize("said", ["2025-12-30T22:40:00-05:00", "2025-12-31T22:40:00-05:00"])
def test_b01_next_month_counts_from_the_calendar_of_the_speaker(said: str) -> None:
    case = case_input("B-01")
    relative = next(row["text"] for row in case["candidates"] if "next month" in row["text"])
    at = datetime.fromisoformat(said)
    # In UTC, the second of them is in January already.
    assert event_time(relative, said_at=at) == datetime(2026, 1, 1, tzinfo=UTC)
    turn = case["conversation"][0]["content"]
    assert event_time(turn, said_at=at) in (datetime(2026, 1, 1, tzinfo=UTC), None)
    assert event_time(relative, said_at=None) is None
