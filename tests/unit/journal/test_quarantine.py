import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from langgraph.store.base import Op
from langgraph.store.memory import InMemoryStore

from memguard.errors import ErrorCode, InvalidInputError, StoreError
from memguard.journal.commit import commit
from memguard.journal.journal import Journal
from memguard.journal.quarantine import Quarantine
from memguard.journal.receipts import ReceiptLog, record_of
from memguard.journal.recovery import recover
from memguard.schema.receipt import Receipt

ANA = ("memories", "ana")
MakeReceipt = Callable[..., Receipt]


@pytest.fixture
def quarantine(journal: Journal) -> Quarantine:
    return Quarantine(journal)


@pytest.fixture
def store() -> InMemoryStore:
    return InMemoryStore()


@pytest.fixture
def held(quarantine: Quarantine, make_receipt: MakeReceipt) -> Receipt:
    return quarantine.hold(make_receipt("r1", outcome="quarantine"), actor="guard")


def test_holds_and_shows(quarantine: Quarantine, held: Receipt):
    entry = quarantine.show("r")
    assert entry.receipt == held
    assert entry.candidate == held.candidate
    assert entry.state == "held"
    assert [(event.kind, event.actor) for event in entry.history] == [
        ("decided", "guard"),
        ("held", "guard"),
    ]
    assert quarantine.list().receipts == (held,)
    assert quarantine.list(namespace=("memories", "bob")).receipts == ()


def test_pages(quarantine: Quarantine, make_receipt: MakeReceipt):
    for n in range(3):
        quarantine.hold(make_receipt(f"r{n}", outcome="quarantine"))
    page = quarantine.list(limit=2)
    assert [r.id for r in page.receipts] == ["r2", "r1"]
    assert [r.id for r in quarantine.list(before=page.before).receipts] == ["r0"]


async def test_holds_only_what_is_doubted(quarantine: Quarantine, make_receipt: MakeReceipt):
    with pytest.raises(InvalidInputError, match="is 'stored', not 'quarantined'") as caught:
        await quarantine.ahold(make_receipt("r1"))
    assert caught.value.code == ErrorCode.QUARANTINE_STATE


class TestRelease:
    def test_stores_and_says_so(self, quarantine: Quarantine, held: Receipt, store: InMemoryStore):
        done = quarantine.release("r1", actor="ana", store=store, reason="It is true.")
        assert not done.already
        assert done.record == record_of(held)
        item = store.get(ANA, done.record.key)
        assert item is not None
        assert item.value == done.record.to_value()
        entry = quarantine.show("r1")
        assert entry.state == "released"
        assert [event.kind for event in entry.history[2:]] == ["release_intended", "released"]
        assert entry.history[2].actor == "ana"
        assert entry.history[2].body["reason"] == "It is true."
        assert quarantine.list().receipts == ()

    async def test_twice_changes_nothing(
        self, quarantine: Quarantine, held: Receipt, store: InMemoryStore
    ):
        first = await quarantine.arelease("r1", actor="ana", store=store)
        second = await quarantine.arelease("r1", actor="bob", store=store)
        third = await asyncio.to_thread(lambda: quarantine.release("r1", actor="bob", store=store))
        assert second == third
        assert second.already
        assert second.record == first.record
        assert len((await quarantine.ashow("r1")).history) == 4

    def test_what_was_discarded(self, quarantine: Quarantine, held: Receipt, store: InMemoryStore):
        quarantine.discard("r1", actor="ana", reason="No.")
        with pytest.raises(InvalidInputError, match="is 'discarded'") as caught:
            quarantine.release("r1", actor="ana", store=store)
        assert caught.value.code == ErrorCode.QUARANTINE_STATE
        assert store.search(ANA) == []

    async def test_what_was_admitted(
        self, quarantine: Quarantine, journal: Journal, make_receipt: MakeReceipt
    ):
        store = InMemoryStore()
        await commit(journal, store, [make_receipt("r1")])
        with pytest.raises(InvalidInputError, match="is 'stored'"):
            await quarantine.arelease("r1", actor="ana", store=store)
        with pytest.raises(InvalidInputError, match="is 'stored'"):
            await quarantine.ashow("r1")
        with pytest.raises(InvalidInputError, match="no receipt"):
            await quarantine.arelease("zz", actor="ana", store=store)

    async def test_an_interrupted_release_is_finished(
        self, quarantine: Quarantine, journal: Journal, held: Receipt
    ):
        with pytest.raises(StoreError, match="RuntimeError: down"):
            await asyncio.to_thread(
                lambda: quarantine.release("r1", actor="ana", store=DownStore())
            )
        with pytest.raises(StoreError, match="RuntimeError: down"):
            await quarantine.arelease("r1", actor="ana", store=DownStore())
        with pytest.raises(InvalidInputError, match="is 'releasing'"):
            await quarantine.adiscard("r1", actor="ana", reason="No.")
        assert (await quarantine.alist()).receipts == ()
        store = InMemoryStore()
        assert (await recover(journal, store)).records == (record_of(held),)
        assert (await quarantine.ashow("r1")).state == "released"

    def test_a_store_that_loses_it(self, quarantine: Quarantine, held: Receipt):
        with pytest.raises(StoreError, match="not there"):
            quarantine.release("r1", actor="ana", store=LossyStore())
        assert quarantine.show("r1").state == "releasing"


class TestDiscard:
    def test_keeps_the_receipt(self, quarantine: Quarantine, held: Receipt, journal: Journal):
        entry = quarantine.discard("r1", actor="ana", reason="Not true.")
        assert entry.state == "discarded"
        assert entry.history[-1].body == {"reason": "Not true."}
        assert quarantine.discard("r1", actor="bob", reason="Again.") == entry
        assert quarantine.list().receipts == ()
        assert ReceiptLog(journal).get("r1") == held

    def test_what_was_released(self, quarantine: Quarantine, held: Receipt, store: InMemoryStore):
        quarantine.release("r1", actor="ana", store=store)
        with pytest.raises(InvalidInputError, match="is 'released'") as caught:
            quarantine.discard("r1", actor="ana", reason="No.")
        assert caught.value.code == ErrorCode.QUARANTINE_STATE


class DownStore(InMemoryStore):
    def batch(self, ops: Iterable[Op]) -> list[Any]:
        msg = "down"
        raise RuntimeError(msg)

    async def abatch(self, ops: Iterable[Op]) -> list[Any]:
        return self.batch(ops)


class LossyStore(InMemoryStore):
    def batch(self, ops: Iterable[Op]) -> list[Any]:
        return [None for _ in ops]

    async def abatch(self, ops: Iterable[Op]) -> list[Any]:
        return self.batch(ops)
