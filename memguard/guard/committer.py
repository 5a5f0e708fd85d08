"""Commits that happen at the same time share their waits for the disk and the store."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from langgraph.store.base import BaseStore, GetOp

from memguard.errors import StoreError
from memguard.guard.screen import repeat
from memguard.journal.commit import commit, owner_of
from memguard.journal.journal import Journal
from memguard.policy.dedupe import record_key
from memguard.schema.base import Namespace
from memguard.schema.receipt import Receipt
from memguard.store_calls import call_store

_MOST_TOGETHER = 64
"""Receipts in one commit; more would make the first one wait for the last."""


Place = tuple[Namespace, str]
"""A namespace and a key in it."""


@dataclass
class _Waiting:
    """A decision on its way to the disk, and whom to tell."""

    receipt: Receipt
    done: asyncio.Future[Receipt]
    compared: bool = False
    """Whether it is known not to repeat what is stored, or says so."""


@dataclass
class _Lane:
    """Commits of one event loop that wait for their turn."""

    waiting: list[_Waiting] = field(default_factory=list[_Waiting])
    running: asyncio.Task[None] | None = None


class Committer:
    """Durable commits, grouped: while one is on its way to the disk, the next ones gather.

    Grouping changes when, never whether: each `commit` returns after its own receipt and record
    are on disk, and fails for its own record only.

    Runs beside each other may have judged the same text. The first one here stores it, and the
    receipt of the next says that it is a duplicate, as it would have been a moment later.
    """

    def __init__(self, journal: Journal, store: BaseStore) -> None:
        self._journal = journal
        self._store = store
        self._lanes: WeakKeyDictionary[asyncio.AbstractEventLoop, _Lane] = WeakKeyDictionary()

    async def commit(self, receipt: Receipt) -> Receipt:
        """Make one decision durable, with its record where it admits one.

        Returns:
            The receipt in the log: an earlier one when the decision was taken before, and that of
            a duplicate when the text was stored since the candidate was screened.

        Raises:
            StoreError: If the store failed; the decision is logged and recovery stores it.
            ReceiptError: If the log failed; nothing was stored.
        """
        loop = asyncio.get_running_loop()
        lane = self._lanes.setdefault(loop, _Lane())
        done: asyncio.Future[Receipt] = loop.create_future()
        lane.waiting.append(_Waiting(receipt, done))
        if lane.running is None:
            lane.running = loop.create_task(self._run(lane))
        return await done

    async def _run(self, lane: _Lane) -> None:
        """Commit until nothing waits, also when the program is being stopped.

        A stop cancels this task once. What waits here is decided and was paid for: it goes to
        the disk first. Committing a batch again changes nothing.
        """
        stop: asyncio.CancelledError | None = None
        try:
            while lane.waiting:
                batch = lane.waiting[:_MOST_TOGETHER]
                try:
                    await self._compare([each for each in batch if not each.compared])
                    await self._commit_batch(batch)
                except asyncio.CancelledError as error:
                    if stop is not None:
                        raise
                    stop = error
                else:
                    del lane.waiting[: len(batch)]
            if stop is not None:
                raise stop
        finally:
            lane.running = None
            for each in lane.waiting:
                each.done.cancel()
            lane.waiting.clear()

    async def _compare(self, batch: Sequence[_Waiting]) -> None:
        """Turn what repeats a stored text, or an earlier one of the batch, into a duplicate."""
        memories = [each for each in batch if _is_memory(each.receipt)]
        owners = await self._owners({_place(each.receipt) for each in memories})
        for each in memories:
            candidate_id = each.receipt.candidate.id
            if owners.setdefault(_place(each.receipt), candidate_id) != candidate_id:
                each.receipt = each.receipt.model_copy(update={"decision": repeat()})
        for each in batch:
            each.compared = True

    async def _owners(self, places: Iterable[Place]) -> dict[Place, str | None]:
        """The candidates that the stored ones of these memories came from."""
        wanted = list(places)
        if not wanted:
            return {}
        try:
            found: list[Any] = await call_store(
                self._store, [GetOp(*place, refresh_ttl=False) for place in wanted]
            )
        except Exception:
            # The commit that follows meets the same store, logs the decision and says what failed.
            return {}
        return {
            place: owner_of(item.value)
            for place, item in zip(wanted, found, strict=True)
            # What else may lie under that key is for the commit to report.
            if item is not None and record_key(str(item.value.get("content"))) == place[1]
        }

    async def _commit_batch(self, batch: Sequence[_Waiting]) -> None:
        try:
            committed = await commit(self._journal, self._store, [each.receipt for each in batch])
        except StoreError as error:
            if len(batch) == 1:
                if not batch[0].done.done():
                    batch[0].done.set_exception(error)
                return
            # One bad record must not fail its neighbours; committing again changes nothing.
            for each in batch:
                await self._commit_batch([each])
        except Exception as error:
            for each in batch:
                if not each.done.done():
                    each.done.set_exception(error)
        else:
            for each, receipt in zip(batch, committed.receipts, strict=True):
                if not each.done.done():
                    each.done.set_result(receipt)


def _is_memory(receipt: Receipt) -> bool:
    """Whether it stores a memory under its text; what a writer put has a key of its own."""
    return receipt.outcome == "stored" and receipt.effect == "commit" and receipt.value is None


def _place(receipt: Receipt) -> Place:
    return receipt.namespace, record_key(receipt.candidate.text)
