"""Commits that happen at the same time share their waits for the disk and the store."""

import asyncio
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from langgraph.store.base import BaseStore

from memguard.errors import StoreError
from memguard.schema.receipt import Receipt
from memguard.stores.commit import commit
from memguard.stores.journal import Journal

_MOST_TOGETHER = 64
"""Receipts in one commit; more would make the first one wait for the last."""


@dataclass
class _Lane:
    """Commits of one event loop that wait for their turn."""

    waiting: list[tuple[Receipt, asyncio.Future[Receipt]]] = field(default_factory=list)
    running: asyncio.Task[None] | None = None


class Committer:
    """Durable commits, grouped: while one is on its way to the disk, the next ones gather.

    Grouping changes when, never whether: each `commit` returns after its own receipt and record
    are on disk, and fails for its own record only.
    """

    def __init__(self, journal: Journal, store: BaseStore) -> None:
        self._journal = journal
        self._store = store
        self._lanes: WeakKeyDictionary[asyncio.AbstractEventLoop, _Lane] = WeakKeyDictionary()

    async def commit(self, receipt: Receipt) -> Receipt:
        """Make one decision durable, with its record where it admits one.

        Returns:
            The receipt in the log; an earlier one when the decision was taken before.

        Raises:
            StoreError: If the store failed; the decision is logged and recovery stores it.
            ReceiptError: If the log failed; nothing was stored.
        """
        loop = asyncio.get_running_loop()
        lane = self._lanes.setdefault(loop, _Lane())
        done: asyncio.Future[Receipt] = loop.create_future()
        lane.waiting.append((receipt, done))
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
            for _, done in lane.waiting:
                done.cancel()
            lane.waiting.clear()

    async def _commit_batch(self, batch: list[tuple[Receipt, asyncio.Future[Receipt]]]) -> None:
        try:
            committed = await commit(self._journal, self._store, [receipt for receipt, _ in batch])
        except StoreError as error:
            if len(batch) == 1:
                if not batch[0][1].done():
                    batch[0][1].set_exception(error)
                return
            # One bad record must not fail its neighbours; committing again changes nothing.
            for entry in batch:
                await self._commit_batch([entry])
        except Exception as error:
            for _, done in batch:
                if not done.done():
                    done.set_exception(error)
        else:
            for (_, done), receipt in zip(batch, committed.receipts, strict=True):
                if not done.done():
                    done.set_result(receipt)
