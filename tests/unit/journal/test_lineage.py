"""Chains of corrections."""

import pytest
from langgraph.store.memory import InMemoryStore

from memguard.journal.commit import commit
from memguard.journal.journal import Journal
from memguard.journal.lineage import lineage
from memguard.journal.quarantine import Quarantine
from memguard.journal.removal import delete_memory
from memguard.journal.undo import undo
from memguard.schema.memory import Lifecycle, record_key
from tests.unit.journal.conftest import ANA, build_receipt
from tests.unit.journal.test_changes import LISBON, PORTO, confirming, superseding

FARO = record_key("I live in Faro.")
BACK = record_key("I live in Porto.", generation=1)


@pytest.fixture
async def store(journal: Journal) -> InMemoryStore:
    store = InMemoryStore()
    await commit(journal, store, [build_receipt("porto", text="I live in Porto.")])
    await commit(journal, store, [superseding("lisbon", "I live in Lisbon.", PORTO)])
    return store


async def texts(journal: Journal, store: InMemoryStore, key: str) -> list[str]:
    return [entry.text for entry in await lineage(journal, store, ANA, key)]


async def test_a_chain_from_each_of_its_ends(journal: Journal, store: InMemoryStore):
    await commit(journal, store, [superseding("faro", "I live in Faro.", LISBON)])
    chain = await lineage(journal, store, ANA, LISBON)
    assert [entry.key for entry in chain] == [PORTO, LISBON, FARO]
    assert [entry.receipt_id for entry in chain] == ["porto", "lisbon", "faro"]
    assert [entry.lifecycle.superseded_by for entry in chain] == [LISBON, FARO, ""]
    assert {entry.outcome for entry in chain} == {"stored"}
    kinds = [event.kind for event in chain[0].events]
    assert kinds == ["decided", "intended", "stored", "decided", "marking", "intended", "stored"]
    for key in (PORTO, FARO):
        assert await lineage(journal, store, ANA, key) == chain


async def test_going_back(journal: Journal, store: InMemoryStore):
    back = superseding("back", "I live in Porto.", LISBON)
    change = back.changes[0]
    after = change.after.model_copy(update={"superseded_by": BACK})
    changes = (change.model_copy(update={"after": after}),)
    back = back.model_copy(update={"record_key": BACK, "changes": changes})
    await commit(journal, store, [back])
    chain = await lineage(journal, store, ANA, BACK)
    assert [entry.key for entry in chain] == [PORTO, LISBON, BACK]
    assert chain[-1].lifecycle.is_current


async def test_undone_steps_and_confirmations_are_visible(journal: Journal, store: InMemoryStore):
    undone = await undo(journal, store, "lisbon", actor="ana", reason="a joke")
    await commit(journal, store, [confirming("again", PORTO)])
    chain = await lineage(journal, store, ANA, PORTO)
    assert [entry.key for entry in chain] == [PORTO, LISBON]
    assert chain[1].lifecycle == Lifecycle(ended_as="undone", reason="a joke")
    actors = {event.actor for event in chain[0].events if event.receipt_id == undone.id}
    assert actors == {"ana"}
    assert "again" in {event.receipt_id for event in chain[0].events}
    assert await lineage(journal, store, ANA, LISBON) == chain


async def test_several_that_one_replaced(journal: Journal, store: InMemoryStore):
    other = record_key("My flat is in Lisbon.")
    await commit(journal, store, [build_receipt("flat", text="My flat is in Lisbon.", turn="f")])
    both = superseding("faro", "I live in Faro.", LISBON)
    second = superseding("faro", "I live in Faro.", other)
    changes = (*both.changes, *second.changes)
    await commit(journal, store, [both.model_copy(update={"changes": changes})])
    chain = await lineage(journal, store, ANA, FARO)
    assert {entry.key for entry in chain} == {PORTO, LISBON, other, FARO}
    assert chain[-1].key == FARO


async def test_from_the_marks_alone(journal: Journal, store: InMemoryStore):
    await commit(journal, store, [superseding("faro", "I live in Faro.", LISBON)])
    async with Journal.memory() as other:
        chain = await lineage(other, store, ANA, LISBON)
    assert [entry.key for entry in chain] == [PORTO, LISBON, FARO]
    assert [entry.receipt_id for entry in chain] == ["porto", "lisbon", "faro"]
    assert {entry.outcome for entry in chain} == {None}
    assert {entry.events for entry in chain} == {()}


async def test_a_deleted_step(journal: Journal, store: InMemoryStore):
    await delete_memory(journal, store, "porto", actor="ana", reason="old")
    chain = await lineage(journal, store, ANA, LISBON)
    assert [(entry.key, entry.is_stored) for entry in chain] == [(PORTO, False), (LISBON, True)]
    assert chain[0].events[-1].kind == "deleted"


async def test_a_circle_and_an_unknown_key(journal: Journal, store: InMemoryStore):
    assert await lineage(journal, store, ANA, "nothing") == ()
    for key, successor in (("a", "b"), ("b", "a")):
        value = {"content": key, "memguard": {"superseded_by": successor}}
        await store.aput(ANA, key, value)
    assert len(await texts(journal, store, "a")) == 2


async def test_what_is_in_quarantine_is_no_step(journal: Journal, store: InMemoryStore):
    held = superseding("held", "I live in Faro.", LISBON, outcome="quarantine")
    await commit(journal, store, [held])
    assert await texts(journal, store, LISBON) == ["I live in Porto.", "I live in Lisbon."]
    assert await texts(journal, store, FARO) == []
    await Quarantine(journal).arelease("held", actor="me", store=store)
    chain = await lineage(journal, store, ANA, PORTO)
    assert [entry.key for entry in chain] == [PORTO, LISBON, FARO]
    assert (chain[-1].receipt_id, chain[-1].outcome) == ("held", "quarantined")
