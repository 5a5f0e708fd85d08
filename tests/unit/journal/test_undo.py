"""Decisions that are taken back."""

from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from memguard.errors import InvalidInputError, RecordChangedError
from memguard.journal.audit import audit
from memguard.journal.commit import commit
from memguard.journal.journal import Journal
from memguard.journal.quarantine import Quarantine
from memguard.journal.receipts import ReceiptLog
from memguard.journal.recovery import recover
from memguard.journal.removal import delete_memory
from memguard.journal.undo import undo
from memguard.schema.memory import Lifecycle, lifecycle_of, record_key
from memguard.schema.receipt import Receipt
from tests.unit.journal.conftest import ANA, build_receipt
from tests.unit.journal.test_changes import LISBON, PORTO, confirming, superseding

FARO = record_key("I live in Faro.")


@pytest.fixture
def store() -> InMemoryStore:
    return InMemoryStore()


async def lifecycles(store: InMemoryStore) -> dict[str, Lifecycle]:
    return {item.key: lifecycle_of(item.value) for item in await store.asearch(ANA, limit=50)}


async def current(store: InMemoryStore) -> set[str]:
    return {key for key, state in (await lifecycles(store)).items() if state.is_current}


async def write(journal: Journal, store: InMemoryStore, *receipts: Receipt) -> None:
    for receipt in receipts:
        await commit(journal, store, [receipt])


async def take_back(journal: Journal, store: InMemoryStore, which: str, **more: Any) -> Receipt:
    undone = await undo(journal, store, which, actor="ana", **more)
    assert (await audit(journal, store)).agrees
    assert (await recover(journal, store)).line == ""
    return undone


OLD = build_receipt("old", text="I live in Porto.")
NEW = superseding("new", "I live in Lisbon.", PORTO)


async def test_a_correction(journal: Journal, store: InMemoryStore):
    await write(journal, store, OLD, NEW)
    before = await lifecycles(store)
    undone = await take_back(journal, store, "new", reason="a joke")
    assert (undone.outcome, undone.decision.reason) == ("undone", "undone")
    assert "receipt new: a joke" in undone.decision.explanation
    after = await lifecycles(store)
    assert after[PORTO] == Lifecycle()
    assert after[LISBON] == Lifecycle(ended_as="undone", reason="a joke")
    assert await current(store) == {PORTO}
    history = await ReceiptLog(journal).ahistory(undone.id)
    assert {event.actor for event in history} == {"ana"}
    # An undo of the undo, and so on.
    again = await take_back(journal, store, undone.id)
    assert await lifecycles(store) == before
    third = await take_back(journal, store, "new")
    assert third.id not in {undone.id, again.id}
    assert await current(store) == {PORTO}
    await take_back(journal, store, third.id)
    assert await lifecycles(store) == before


async def test_again_changes_nothing(journal: Journal, store: InMemoryStore):
    await write(journal, store, OLD, NEW)
    first = await take_back(journal, store, "new")
    assert await take_back(journal, store, "new") == first
    assert len((await ReceiptLog(journal).alist()).receipts) == 3


async def test_a_stored_memory(journal: Journal, store: InMemoryStore):
    await write(journal, store, OLD)
    undone = await take_back(journal, store, "old")
    assert (await lifecycles(store))[PORTO].ended_as == "undone"
    await take_back(journal, store, undone.id)
    assert await lifecycles(store) == {PORTO: Lifecycle()}


async def test_a_confirmation(journal: Journal, store: InMemoryStore):
    first = confirming("c1", PORTO)
    second = confirming("c2", PORTO, before=first.changes[0].after)
    await write(journal, store, OLD, first, second)
    with pytest.raises(RecordChangedError, match="later decision 'c2'; undo that one first"):
        await undo(journal, store, "c1", actor="ana")
    with pytest.raises(RecordChangedError, match="later decision 'c2'"):
        await undo(journal, store, "old", actor="ana")
    await take_back(journal, store, "c2")
    assert (await lifecycles(store))[PORTO] == first.changes[0].after
    await take_back(journal, store, "c1")
    assert (await lifecycles(store))[PORTO] == Lifecycle()
    await take_back(journal, store, "old")


async def test_a_chain_is_undone_from_its_end(journal: Journal, store: InMemoryStore):
    await write(journal, store, OLD, NEW, superseding("third", "I live in Faro.", LISBON))
    for name in ("old", "new"):
        with pytest.raises(RecordChangedError, match="undo that one first"):
            await undo(journal, store, name, actor="ana")
    assert await current(store) == {FARO}
    for name, left in (("third", LISBON), ("new", PORTO)):
        await take_back(journal, store, name)
        assert await current(store) == {left}


async def test_a_deletion(journal: Journal, store: InMemoryStore):
    confirmation = confirming("c1", PORTO)
    await write(journal, store, OLD, confirmation)
    await delete_memory(journal, store, "old", actor="ana", reason="old")
    restored = await take_back(journal, store, "old")
    assert restored.outcome == "stored"
    assert await lifecycles(store) == {PORTO: confirmation.changes[0].after}
    assert await take_back(journal, store, "old") == restored
    # The undo of a restoration deletes it again.
    await take_back(journal, store, restored.id)
    assert await store.asearch(ANA) == []
    second = await take_back(journal, store, "old")
    assert second.id != restored.id
    assert set(await lifecycles(store)) == {PORTO}
    await delete_memory(journal, store, second.id, actor="ana", reason="old")
    assert (await take_back(journal, store, "old")).id not in {second.id, restored.id}
    assert set(await lifecycles(store)) == {PORTO}


async def test_a_deletion_of_what_was_stored_again(journal: Journal, store: InMemoryStore):
    await write(journal, store, OLD)
    await delete_memory(journal, store, "old", actor="ana", reason="old")
    await write(journal, store, build_receipt("later", text="I live in Porto.", turn="9"))
    with pytest.raises(InvalidInputError, match="is in use"):
        await undo(journal, store, "old", actor="ana")


async def test_a_release(journal: Journal, store: InMemoryStore):
    held = superseding("held", "I live in Lisbon.", PORTO, outcome="quarantine")
    await write(journal, store, OLD, held)
    quarantine = Quarantine(journal)
    await quarantine.arelease("held", actor="me", store=store)
    before = await lifecycles(store)
    undone = await take_back(journal, store, "held")
    assert await current(store) == {PORTO}
    (again,) = (await quarantine.alist()).receipts
    assert (again.outcome, again.candidate) == ("quarantined", held.candidate)
    # The undo of the undo takes it out of quarantine and puts the memory back.
    await take_back(journal, store, undone.id)
    assert await lifecycles(store) == before
    assert (await quarantine.alist()).receipts == ()
    # It may also be released again.
    await take_back(journal, store, "held")
    (again,) = (await quarantine.alist()).receipts
    await quarantine.arelease(again.id, actor="me", store=store)
    assert await lifecycles(store) == before
    assert (await audit(journal, store)).agrees


async def test_a_discard(journal: Journal, store: InMemoryStore):
    await write(journal, store, build_receipt("held", outcome="quarantine"))
    quarantine = Quarantine(journal)
    await quarantine.adiscard("held", actor="me", reason="no")
    undone = await take_back(journal, store, "held")
    (again,) = (await quarantine.alist()).receipts
    await take_back(journal, store, undone.id)
    assert (await quarantine.alist()).receipts == ()
    third = await take_back(journal, store, "held")
    (again,) = (await quarantine.alist()).receipts
    await quarantine.arelease(again.id, actor="me", store=store)
    with pytest.raises(RecordChangedError, match="'released' by now; undo that one first"):
        await undo(journal, store, third.id, actor="ana")


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [("quarantine", None), ("reject", None), ("reject", "duplicate"), ("reject", "blank_text")],
)
async def test_what_nothing_followed_from(
    journal: Journal, store: InMemoryStore, outcome: Any, reason: Any
):
    await write(journal, store, build_receipt("a", outcome=outcome, reason=reason))
    with pytest.raises(InvalidInputError, match="nothing followed from it"):
        await undo(journal, store, "a", actor="ana")
    with pytest.raises(InvalidInputError, match="no receipt has the id"):
        await undo(journal, store, "b", actor="ana")


async def test_a_record_of_another_receipt(journal: Journal, store: InMemoryStore):
    await write(journal, store, OLD, build_receipt("twice", text="I live in Porto.", policy="p2"))
    with pytest.raises(InvalidInputError, match="receipt 'old'; undo that one"):
        await undo(journal, store, "twice", actor="ana")
    assert await lifecycles(store) == {PORTO: Lifecycle()}


async def test_another_process_has_superseded_it(journal: Journal, store: InMemoryStore):
    await write(journal, store, OLD)
    async with Journal.memory() as other:
        await write(other, store, NEW)
    with pytest.raises(RecordChangedError, match="elsewhere"):
        await undo(journal, store, "old", actor="ana")
