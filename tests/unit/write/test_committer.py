"""Group commit, also when the program is stopped."""

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import Op
from langgraph.store.memory import InMemoryStore

from memguard.errors import ErrorCode, StoreError
from memguard.journal.audit import audit
from memguard.journal.commit import Committer
from memguard.journal.journal import Journal
from memguard.journal.receipts import ReceiptLog
from memguard.schema.memory import record_key
from tests.unit.journal.conftest import ANA, build_receipt


class SlowStore(InMemoryStore):
    """Says when it is at work, and may be down."""

    def __init__(self) -> None:
        super().__init__()
        self.batches = 0
        self.at_work = asyncio.Event()
        self.error: Exception | None = None

    async def abatch(self, ops: Iterable[Op]) -> list[Any]:
        self.batches += 1
        self.at_work.set()
        await asyncio.sleep(0.005)
        if self.error is not None:
            raise self.error
        return await super().abatch(ops)


@pytest.fixture
def journal() -> Iterator[Journal]:
    with Journal.memory() as opened:
        yield opened


async def test_what_waits_shares_a_batch(journal: Journal) -> None:
    store = SlowStore()
    committer = Committer(journal, store)
    receipts = [build_receipt(f"r{n}") for n in range(40)]
    done = await asyncio.gather(*(committer.commit(each) for each in receipts))
    assert [receipt.id for receipt in done] == [receipt.id for receipt in receipts]
    # Four exchanges with the store each: what came first alone, then all that gathered.
    assert store.batches <= 2 * 4


async def test_a_store_that_is_down_fails_each_caller_and_not_the_next(journal: Journal) -> None:
    store = SlowStore()
    committer = Committer(journal, store)
    store.error = StoreError("down", code=ErrorCode.STORE_FAILED)
    given = [build_receipt(f"r{n}") for n in range(3)]
    ended = await asyncio.gather(
        *(committer.commit(each) for each in given), return_exceptions=True
    )
    assert [type(each) for each in ended] == [StoreError] * 3
    store.error = None
    assert (await committer.commit(build_receipt("later"))).id == "later"


@pytest.mark.parametrize("apart", [False, True], ids=["one-batch", "two-batches"])
async def test_a_text_that_two_runs_judged_is_stored_once(journal: Journal, apart: bool) -> None:
    """Candidates of two sessions: neither was stored when the other was screened."""
    store = SlowStore()
    committer = Committer(journal, store)
    given = [
        build_receipt(f"r{n}", text=text, turn=f"t{n}")
        for n, text in enumerate(["Ana dives.", "Ana dives", "Ana sings.", "Ana  dives."])
    ]
    tasks = [asyncio.create_task(committer.commit(each)) for each in given[: 1 if apart else 4]]
    if apart:
        await store.at_work.wait()
        tasks += [asyncio.create_task(committer.commit(each)) for each in given[1:]]
    done = await asyncio.gather(*tasks)
    assert [each.outcome for each in done] == ["stored", "duplicate", "stored", "duplicate"]
    assert [each.id for each in done] == [each.id for each in given]
    stored = await store.asearch(ANA)
    assert {item.value["memguard"]["receipt_id"] for item in stored} == {"r0", "r2"}
    assert (await audit(journal, store)).agrees
    # Again, as after a stop: the log stands.
    assert await asyncio.gather(*(committer.commit(each) for each in given)) == done


async def test_another_text_under_the_key_is_reported_and_is_no_duplicate(journal: Journal) -> None:
    store = SlowStore()
    receipt = build_receipt("a", text="Ana dives.")
    await store.aput(ANA, record_key("Ana dives."), {"content": "Ana cycles."})
    with pytest.raises(StoreError, match="holds another text"):
        await Committer(journal, store).commit(receipt)
    assert (await ReceiptLog(journal).aget("a")).outcome == "stored"
    assert await ReceiptLog(journal).astate("a") == "pending"


@pytest.mark.parametrize("count", [1, 64, 200])
def test_a_stopped_program_first_commits_what_is_decided(tmp_path: Path, count: int) -> None:
    """As ctrl-C does it: the main task ends, `asyncio.run` cancels all others."""
    receipts = [build_receipt(f"r{n}") for n in range(count)]

    async def main(journal: Journal) -> tuple[SlowStore, list[asyncio.Task[Any]]]:
        store = SlowStore()
        committer = Committer(journal, store)
        tasks = [asyncio.create_task(committer.commit(each)) for each in receipts]
        await store.at_work.wait()
        return store, tasks

    with Journal.open(tmp_path / "journal.sqlite") as journal:
        store, tasks = asyncio.run(main(journal))
        assert sum(task.cancelled() for task in tasks) == count
        log = ReceiptLog(journal)
        assert {log.state(receipt.id) for receipt in receipts} == {"stored"}
        assert len(store.search(ANA, limit=count + 1)) == count


def test_a_second_stop_ends_at_once(journal: Journal) -> None:
    """Whoever stops twice does not want to wait."""

    class StuckStore(InMemoryStore):
        async def abatch(self, ops: Iterable[Op]) -> list[Any]:
            await asyncio.Event().wait()
            return await super().abatch(ops)

    async def main() -> bool:
        committer = Committer(journal, StuckStore())
        waiting = asyncio.create_task(committer.commit(build_receipt("a")))
        others: set[asyncio.Task[Any]] = set()
        while not others:
            await asyncio.sleep(0.01)
            here = asyncio.current_task()
            others = {t for t in asyncio.all_tasks() if t not in (here, waiting)}
        (lane,) = others
        lane.cancel()
        await asyncio.sleep(0.05)
        assert not lane.done()
        lane.cancel()
        await asyncio.wait([waiting, lane], timeout=5)
        return waiting.cancelled() and lane.cancelled()

    assert asyncio.run(main())
