import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from blockbuster import blockbuster_ctx
from langgraph.store.base import GetOp, Op, PutOp
from langgraph.store.memory import InMemoryStore

from memguard import errors
from memguard.errors import ErrorCode, InvalidInputError, StoreConfigurationError, StoreError
from memguard.journal.audit import RecordLocation, audit
from memguard.journal.commit import CommitResult, commit
from memguard.journal.journal import Journal
from memguard.journal.quarantine import Quarantine
from memguard.journal.receipts import ReceiptLog, record_key, record_of
from memguard.journal.recovery import RecoveryResult, recover
from memguard.journal.removal import delete_memory, forget_memory, intend_deletions
from memguard.schema.receipt import Receipt
from tests.unit.journal.journal_child import check

ANA = ("memories", "ana")
CHILD = Path(__file__).with_name("journal_child.py")
ROOT = Path(errors.__file__).parents[1]
MakeReceipt = Callable[..., Receipt]


@pytest.fixture
def store() -> "WatchedStore":
    return WatchedStore()


class WatchedStore(InMemoryStore):
    """Keeps the operations it was given; refuses a text if told so; may be down."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[list[Op]] = []
        self.poison = ""
        self.error: Exception | None = None

    async def abatch(self, ops: Iterable[Op]) -> list[Any]:
        done = list(ops)
        self.batches.append(done)
        if self.error is not None:
            raise self.error
        for op in done:
            if isinstance(op, PutOp) and op.value and op.value["content"] == self.poison:
                msg = f"cannot store {self.poison!r}"
                raise ValueError(msg)
        return await super().abatch(done)


class TestCommit:
    async def test_stores_what_is_admitted_only(
        self, journal: Journal, store: WatchedStore, make_receipt: MakeReceipt
    ):
        given = [
            make_receipt("a"),
            make_receipt("b", outcome="quarantine"),
            make_receipt("c", outcome="reject"),
            make_receipt("d", outcome="reject", reason="duplicate"),
            make_receipt("e"),
        ]
        done = await commit(journal, store, given)
        assert [r.id for r in done.receipts] == ["a", "b", "c", "d", "e"]
        assert done.records == (record_of(given[0]), record_of(given[4]))
        assert {item.key for item in await store.asearch(ANA)} == {r.key for r in done.records}
        log = ReceiptLog(journal)
        states = [await log.astate(r.id) for r in given]
        assert states == ["stored", "held", "logged", "logged", "stored"]
        assert [len(ops) for ops in store.batches[:3]] == [2, 2, 2]
        assert (await audit(journal, store)).agrees

    async def test_puts_content_to_be_indexed(
        self, journal: Journal, store: WatchedStore, make_receipt: MakeReceipt
    ):
        done = await commit(journal, store, [make_receipt("a", text="Tea.")])
        assert store.batches[1] == [
            PutOp(ANA, record_key("Tea."), done.records[0].to_value(), index=["content"])
        ]
        assert next(iter(done.records[0].to_value())) == "content"

    async def test_nothing_to_store_asks_no_store(
        self, journal: Journal, store: WatchedStore, make_receipt: MakeReceipt
    ):
        await commit(journal, store, [make_receipt("b", outcome="reject")])
        assert await commit(journal, store, []) == CommitResult(receipts=(), records=())
        assert store.batches == []

    async def test_again_changes_nothing(
        self, journal: Journal, store: WatchedStore, make_receipt: MakeReceipt
    ):
        given = [make_receipt("a"), make_receipt("b", outcome="quarantine")]
        first = await commit(journal, store, given)
        events = list(await asyncio.to_thread(lambda: list(ReceiptLog(journal).replay())))
        asked = len(store.batches)
        second = await commit(journal, store, given)
        other_ids = await commit(
            journal, store, [r.model_copy(update={"id": f"new-{r.id}"}) for r in given]
        )
        assert second.receipts == other_ids.receipts == first.receipts
        assert second.records == other_ids.records == ()
        assert len(store.batches) == asked
        assert await asyncio.to_thread(lambda: list(ReceiptLog(journal).replay())) == events

    async def test_the_record_that_came_first_stays(
        self, journal: Journal, store: WatchedStore, make_receipt: MakeReceipt
    ):
        await commit(journal, store, [make_receipt("a", text="Tea is fine.")])
        before = await store.aget(ANA, record_key("Tea is fine."))
        twice = [
            make_receipt("b", text="Tea is  fine."),
            make_receipt("c", text="Tea is fine.", policy="p2"),
        ]
        done = await commit(journal, store, twice)
        assert len(done.records) == 2
        assert await store.aget(ANA, record_key("Tea is fine.")) == before
        assert not [op for ops in store.batches[3:] for op in ops if isinstance(op, PutOp)]
        assert (await audit(journal, store)).agrees

    async def test_the_same_text_twice_in_a_batch(
        self, journal: Journal, store: WatchedStore, make_receipt: MakeReceipt
    ):
        given = [make_receipt("a", text="Tea."), make_receipt("b", text="Tea. ")]
        done = await commit(journal, store, given)
        assert len(done.records) == 2
        item = await store.aget(ANA, record_key("Tea."))
        assert item is not None
        assert item.value["memguard"]["receipt_id"] == "a"

    async def test_an_edited_record_is_not_overwritten(
        self, journal: Journal, store: WatchedStore, make_receipt: MakeReceipt
    ):
        await store.aput(ANA, record_key("Tea."), {"content": "Coffee!"})
        with pytest.raises(StoreError, match="holds another text, 'Coffee!'") as caught:
            await commit(journal, store, [make_receipt("a", text="Tea."), make_receipt("b")])
        assert caught.value.code == ErrorCode.STORE_FAILED
        log = ReceiptLog(journal)
        assert [await log.astate("a"), await log.astate("b")] == ["pending", "stored"]
        assert (await audit(journal, store)).pending == ("a",)

    async def test_a_store_that_changes_what_it_keeps(
        self, journal: Journal, make_receipt: MakeReceipt
    ):
        class Mangling(InMemoryStore):
            async def abatch(self, ops: Iterable[Op]) -> list[Any]:
                return await super().abatch(
                    op._replace(value={**op.value, "memguard": {"candidate_id": "?"}})
                    if isinstance(op, PutOp) and op.value and mangle == "owner"
                    else op._replace(value={**op.value, "extra": 1})
                    if isinstance(op, PutOp) and op.value
                    else op
                    for op in ops
                )

        mangle = "extra"
        with pytest.raises(StoreError, match="came back changed"):
            await commit(journal, Mangling(), [make_receipt("a")])
        # Another process put the same text at the same time: that record counts.
        mangle = "owner"
        assert len((await commit(journal, Mangling(), [make_receipt("b")])).records) == 1

    async def test_never_blocks_the_loop(
        self, tmp_path: Path, store: WatchedStore, make_receipt: MakeReceipt
    ):
        path = tmp_path / "log.db"
        with blockbuster_ctx():
            journal = Journal.open(path)
            await commit(
                journal, store, [make_receipt("a"), make_receipt("b", outcome="quarantine")]
            )
            await Quarantine(journal).arelease("b", actor="me", store=store)
            await recover(journal, store)
            await audit(journal, store)
            await ReceiptLog(journal).aforget("a", actor="me", reason="asked")
            await journal.aclose()


class TestRecover:
    async def test_a_store_that_is_down(
        self, journal: Journal, store: WatchedStore, make_receipt: MakeReceipt
    ):
        store.error = TimeoutError("slow")
        with pytest.raises(StoreError, match=r"TimeoutError: slow.*`recover`"):
            await commit(journal, store, [make_receipt("a"), make_receipt("b", outcome="reject")])
        failed = await recover(journal, store)
        assert failed.records == ()
        assert len(failed.problems) == 1
        assert (await audit_pending(journal)) == ("a",)
        store.error = None
        assert len((await recover(journal, store)).records) == 1
        assert await recover(journal, store) == RecoveryResult(records=(), problems=())
        assert (await audit(journal, store)).agrees

    async def test_committing_again_heals_too(
        self, journal: Journal, store: WatchedStore, make_receipt: MakeReceipt
    ):
        store.error = TimeoutError("slow")
        with pytest.raises(StoreError):
            await commit(journal, store, [make_receipt("a")])
        store.error = None
        assert len((await commit(journal, store, [make_receipt("a")])).records) == 1

    async def test_our_own_errors_pass(
        self, journal: Journal, store: WatchedStore, make_receipt: MakeReceipt
    ):
        store.error = StoreConfigurationError("closed", code=ErrorCode.STORE_CLOSED)
        with pytest.raises(StoreConfigurationError, match="closed"):
            await commit(journal, store, [make_receipt("a")])
        with pytest.raises(StoreConfigurationError, match="closed"):
            await recover(journal, store)

    async def test_one_bad_record_stops_no_other(
        self, journal: Journal, store: WatchedStore, make_receipt: MakeReceipt
    ):
        store.poison = "Ana said r7."
        with pytest.raises(StoreError):
            await commit(journal, store, [make_receipt(f"r{n}") for n in range(10)])
        done = await recover(journal, store)
        assert len(done.records) == 9
        assert len(done.problems) == 1
        assert "Ana said r7." in done.problems[0]
        assert await audit_pending(journal) == ("r7",)

    async def test_many(self, journal: Journal, store: WatchedStore, make_receipt: MakeReceipt):
        store.error = TimeoutError("slow")
        with pytest.raises(StoreError):
            await commit(journal, store, [make_receipt(f"r{n}") for n in range(250)])
        store.error = None
        assert len((await recover(journal, store)).records) == 250
        assert (await audit(journal, store)).checked_records == 250

    async def test_a_store_that_forgot_is_not_filled_again(
        self, journal: Journal, store: WatchedStore, make_receipt: MakeReceipt
    ):
        await commit(journal, store, [make_receipt("a"), make_receipt("b")])
        empty = InMemoryStore()
        assert (await recover(journal, empty)).records == ()
        found = await audit(journal, empty)
        assert found.without_record == ("a", "b")
        assert not found.agrees

    async def test_a_log_that_forgot(self, store: WatchedStore, make_receipt: MakeReceipt):
        async with Journal.memory() as first:
            done = await commit(first, store, [make_receipt("a")])
        async with Journal.memory() as second:
            assert (await recover(second, store)).records == ()
            found = await audit(second, store)
            assert found.without_receipt == (
                RecordLocation(namespace=ANA, key=done.records[0].key),
            )


async def audit_pending(journal: Journal) -> tuple[str, ...]:
    return (await audit(journal, InMemoryStore())).pending


class TestAudit:
    async def test_finds_what_was_done_past_the_guard(
        self, journal: Journal, store: WatchedStore, make_receipt: MakeReceipt
    ):
        given = [make_receipt(name) for name in "abc"]
        records = (await commit(journal, store, given)).records
        await store.adelete(ANA, records[0].key)
        await store.aput(ANA, records[1].key, {"content": "Something else."})
        await store.aput(ANA, "mine", {"content": "By hand."})
        found = await audit(journal, store)
        assert found.without_record == ("a",)
        assert found.altered == ("b",)
        assert found.without_receipt == (RecordLocation(namespace=ANA, key="mine"),)
        assert (await audit(journal, store, namespace=("memories", "bob"))).agrees
        assert not (await audit(journal, store, namespace=("memories",))).agrees

    async def test_more_than_a_page(
        self, journal: Journal, store: WatchedStore, make_receipt: MakeReceipt
    ):
        await commit(journal, store, [make_receipt(f"r{n}") for n in range(1001)])
        found = await audit(journal, store)
        assert found.agrees
        assert found.checked_records == found.checked_receipts == 1001
        assert all(isinstance(op, GetOp) for op in store.batches[-5])


class TestRemoval:
    async def test_deleting_is_noted_for_all_of_the_same_text(
        self, journal: Journal, store: WatchedStore, make_receipt: MakeReceipt
    ):
        await commit(journal, store, [make_receipt("a", text="Tea.")])
        await commit(journal, store, [make_receipt("b", text="Tea. ")])
        assert await delete_memory(journal, store, "a", actor="ana", reason="old") == ("a", "b")
        assert await store.asearch(ANA) == []
        assert (await audit(journal, store)).agrees
        history = await ReceiptLog(journal).ahistory("b")
        assert (history[-1].kind, history[-1].actor) == ("deleted", "ana")
        assert await delete_memory(journal, store, "a", actor="ana", reason="old") == ("a", "b")

    async def test_forgetting_takes_it_from_both(
        self, journal: Journal, store: WatchedStore, make_receipt: MakeReceipt
    ):
        await commit(journal, store, [make_receipt("a"), make_receipt("b")])
        done = await forget_memory(journal, store, "a", actor="ana", reason="asked")
        assert done.receipt_ids == ("a",)
        found = await audit(journal, store)
        assert found.agrees
        assert found.checked_records == 1
        again = await forget_memory(journal, store, "a", actor="ana", reason="asked")
        assert again.receipt_ids == ()

    async def test_what_is_held_is_forgotten_with_the_same_text(
        self, journal: Journal, store: WatchedStore, make_receipt: MakeReceipt
    ):
        await commit(journal, store, [make_receipt("a", text="Tea."), make_receipt("c")])
        await commit(journal, store, [make_receipt("b", text="Tea. ", outcome="quarantine")])
        await forget_memory(journal, store, "b", actor="ana", reason="asked")
        assert [item.value["content"] for item in await store.asearch(ANA)] == ["Ana said c."]
        assert (await audit(journal, store)).agrees

    async def test_failures(self, journal: Journal, store: WatchedStore, make_receipt: MakeReceipt):
        await commit(journal, store, [make_receipt("a")])
        store.error = TimeoutError("slow")
        with pytest.raises(StoreError, match="nothing was erased"):
            await forget_memory(journal, store, "a", actor="ana", reason="asked")
        with pytest.raises(StoreError, match="the next `recover` completes it"):
            await delete_memory(journal, store, "a", actor="ana", reason="asked")
        store.error = StoreConfigurationError("closed", code=ErrorCode.STORE_CLOSED)
        with pytest.raises(StoreConfigurationError, match="closed"):
            await delete_memory(journal, store, "a", actor="ana", reason="asked")
        with pytest.raises(InvalidInputError, match="no receipt"):
            await delete_memory(journal, store, "zz", actor="ana", reason="asked")
        assert await ReceiptLog(journal).astate("a") == "deleting"
        store.error = None
        done = await recover(journal, store)
        assert done.deleted == ("a",)
        assert done.line == "recovery: interrupted deletions completed: 1"
        assert await ReceiptLog(journal).astate("a") == "deleted"
        last = (await ReceiptLog(journal).ahistory("a"))[-1]
        assert (last.actor, last.body) == ("ana", {"reason": "asked"})
        assert (await recover(journal, store)).line == ""

    async def test_a_deletion_that_ended_between_store_and_log_is_completed(
        self, journal: Journal, store: WatchedStore, make_receipt: MakeReceipt
    ):
        (record,) = (await commit(journal, store, [make_receipt("a")])).records
        await intend_deletions(journal, [(ANA, record.key)], actor="ana", reason="old")
        await store.adelete(ANA, record.key)
        assert (await audit(journal, store)).pending == ("a",)
        assert (await recover(journal, store)).deleted == ("a",)
        assert (await audit(journal, store)).agrees

    async def test_what_was_deleted_while_it_was_pending_does_not_come_back(
        self, journal: Journal, store: WatchedStore, make_receipt: MakeReceipt
    ):
        store.error = TimeoutError("slow")
        with pytest.raises(StoreError):
            await commit(journal, store, [make_receipt("a")])
        store.error = None
        await delete_memory(journal, store, "a", actor="ana", reason="old")
        assert (await recover(journal, store)).records == ()
        assert await store.asearch(ANA) == []
        assert (await audit(journal, store)).agrees


@pytest.mark.parametrize(
    "trial", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 12))]
)
def test_a_process_killed_at_any_point_loses_nothing(tmp_path: Path, trial: int):
    chance = random.Random(trial)
    acknowledged: list[str] = []
    for life in range(3):
        acknowledged += run_until_killed(
            tmp_path, seed=f"{trial}-{life}", seconds=chance.uniform(0.0, 0.25)
        )
        report = asyncio.run(check(tmp_path))
        assert report["strangers"] == 0
        assert report["lost"] == []
        assert report["broken"] == []
        assert report["again"] == 0
        assert report["problems"] == []
        assert report["agrees"]
        assert set(acknowledged) <= set(report["done"])
        assert report["recovered"] == report["pending"]
        assert report["records"] == report["receipts"]
        assert report["receipts"] == report["admitted"] + report["released"]
        assert report["held"] == report["quarantined"] - report["released"]
    assert acknowledged


# In order: compare, look up the new, put it, read it back, look up the old, mark it, read it back.
@pytest.mark.parametrize(
    "exchange",
    [5, *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 1, 2, 3, 4, 6, 7))],
)
def test_a_kill_between_storing_and_marking_loses_neither(tmp_path: Path, exchange: int):
    child = subprocess.run(
        [sys.executable, str(CHILD), str(tmp_path), "x", str(exchange)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert child.returncode == -signal.SIGKILL
    # Before the decision is logged, the old memory alone is there; after it, both are.
    report = asyncio.run(check(tmp_path))
    assert report["lost"] == report["broken"] == report["problems"] == []
    assert report["agrees"]
    assert report["records"] == (1 if exchange == 0 else 2)
    assert report["recovered"] == report["pending"] == (0 if exchange == 0 else 1)


def run_until_killed(folder: Path, *, seed: str, seconds: float) -> list[str]:
    child = subprocess.Popen(
        [sys.executable, str(CHILD), str(folder), seed],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    with child.stdout:
        first = child.stdout.readline()
        time.sleep(seconds)
        child.send_signal(signal.SIGKILL)
        lines = [first, *child.stdout.read().splitlines(keepends=True)]
    assert child.wait() == -signal.SIGKILL
    return [name for line in lines if line.endswith("\n") for name in json.loads(line)]
