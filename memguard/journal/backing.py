"""The store and the journal of a guard, and the committer that writes to both.

`Backings` finds the store of the run in progress and opens its journal. `Committer` batches the
commits of concurrent runs, which then share their waits for the disk and the store.
"""

import asyncio
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from weakref import WeakKeyDictionary

from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore, GetOp

from memguard.errors import ConfigurationError, ErrorCode, StoreError
from memguard.journal.caches import ExtractionLog
from memguard.journal.commit import Location, commit, duplicate_decision, owner_of, recover
from memguard.journal.journal import Journal
from memguard.journal.receipts import ReceiptLog
from memguard.schema.memory import record_key
from memguard.schema.receipt import Receipt
from memguard.store_calls import call_store

_MAX_BATCH = 64
"""Receipts in one commit; with more, the first would wait long for the last."""


@dataclass
class _QueuedCommit:
    """A decision that waits for its commit."""

    receipt: Receipt
    done: asyncio.Future[Receipt]
    """The result for the caller."""
    compared: bool = False
    """Whether the receipt was compared with the stored texts; see `_mark_duplicates`."""


@dataclass
class _Queue:
    """The waiting commits of one event loop."""

    waiting: list[_QueuedCommit] = field(default_factory=list[_QueuedCommit])
    running: asyncio.Task[None] | None = None


class Committer:
    """Batches durable commits: those that arrive while one batch is written form the next.

    Each `commit` still returns only after its own receipt and record are on disk, and fails only
    because of its own record.

    Concurrent runs may have judged the same text. The first commit stores it, and the receipt of
    the next one says that it is a duplicate, as if it had been judged later.
    """

    def __init__(self, journal: Journal, store: BaseStore) -> None:
        self._journal = journal
        self._store = store
        # One queue per loop: a future may only be resolved in the loop that waits for it.
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue] = WeakKeyDictionary()

    async def commit(self, receipt: Receipt) -> Receipt:
        """Write one decision to disk, with the record that it admits.

        Returns:
            The receipt in the log: an earlier one if the candidate was decided on before, or that
            of a duplicate if the text was stored after the candidate was screened.

        Raises:
            StoreError: If the store failed; the decision is logged, and `recover` stores it.
            ReceiptError: If the log failed; nothing was stored.
        """
        loop = asyncio.get_running_loop()
        queue = self._queues.setdefault(loop, _Queue())
        done: asyncio.Future[Receipt] = loop.create_future()
        queue.waiting.append(_QueuedCommit(receipt, done))
        if queue.running is None:
            queue.running = loop.create_task(self._run(queue))
        return await done

    async def _run(self, queue: _Queue) -> None:
        """Commit until the queue is empty, even after a cancellation.

        A program that stops cancels this task once. The waiting decisions have cost model calls,
        so they are written first. Committing a batch again changes nothing.
        """
        stop: asyncio.CancelledError | None = None
        try:
            while queue.waiting:
                batch = queue.waiting[:_MAX_BATCH]
                try:
                    await self._mark_duplicates([entry for entry in batch if not entry.compared])
                    await self._commit_batch(batch)
                except asyncio.CancelledError as error:
                    if stop is not None:
                        raise
                    stop = error
                else:
                    # Only now: a batch that was cancelled is committed once more.
                    del queue.waiting[: len(batch)]
            if stop is not None:
                raise stop
        finally:
            queue.running = None
            for entry in queue.waiting:
                entry.done.cancel()
            queue.waiting.clear()

    async def _mark_duplicates(self, batch: Sequence[_QueuedCommit]) -> None:
        """Turn decisions on a stored text, or on a text earlier in the batch, into duplicates."""
        memories = [entry for entry in batch if _is_memory(entry.receipt)]
        owners = await self._owners({_location(entry.receipt) for entry in memories})
        for entry in memories:
            candidate_id = entry.receipt.candidate.id
            if owners.setdefault(_location(entry.receipt), candidate_id) != candidate_id:
                entry.receipt = entry.receipt.model_copy(update={"decision": duplicate_decision()})
        # Once only: after an interrupted commit, a memory would be compared with itself.
        for entry in batch:
            entry.compared = True

    async def _owners(self, locations: Iterable[Location]) -> dict[Location, str | None]:
        """The candidates that the memories at these locations came from."""
        keys = list(locations)
        if not keys:
            return {}
        try:
            items = await call_store(self._store, [GetOp(*key, refresh_ttl=False) for key in keys])
        except Exception:
            # The commit that follows calls the same store, logs the decision and raises the error.
            return {}
        return {
            location: owner_of(item.value)
            for location, item in zip(keys, items, strict=True)
            # An item with another text under that key is reported by the commit.
            if item is not None and record_key(str(item.value.get("content"))) == location[1]
        }

    async def _commit_batch(self, batch: Sequence[_QueuedCommit]) -> None:
        try:
            committed = await commit(self._journal, self._store, [entry.receipt for entry in batch])
        except StoreError as error:
            if len(batch) == 1:
                _resolve(batch[0], error)
                return
            # One bad record must not fail the others; committing again changes nothing.
            for entry in batch:
                await self._commit_batch([entry])
        except Exception as error:
            for entry in batch:
                _resolve(entry, error)
        else:
            for entry, receipt in zip(batch, committed.receipts, strict=True):
                _resolve(entry, receipt)


def _resolve(entry: _QueuedCommit, result: Receipt | Exception) -> None:
    # A caller that was cancelled has cancelled its future.
    if entry.done.done():
        return
    if isinstance(result, Exception):
        entry.done.set_exception(result)
    else:
        entry.done.set_result(result)


def _is_memory(receipt: Receipt) -> bool:
    # The key of a memory follows from its text; an item of a guarded store has its writer's key.
    return receipt.outcome == "stored" and receipt.effect == "commit" and receipt.value is None


def _location(receipt: Receipt) -> Location:
    return receipt.namespace, record_key(receipt.candidate.text)


IN_MEMORY_NOTE = (
    "receipts and quarantine are kept in memory and end with the process: pass `receipts=PATH`"
)
"""The note of a guard whose journal is in memory."""


@dataclass
class Backing:
    """A store and its journal, which is opened at its first use."""

    store: BaseStore
    journal: Journal
    recovered: bool = False
    receipts: ReceiptLog = field(init=False)
    extractions: ExtractionLog = field(init=False)
    committer: Committer = field(init=False)

    def __post_init__(self) -> None:
        """Create the views of the journal."""
        self.receipts = ReceiptLog(self.journal)
        self.extractions = ExtractionLog(self.journal)
        self.committer = Committer(self.journal, self.store)

    async def recover_once(self) -> tuple[str, ...]:
        """Complete the interrupted writes of earlier processes, before the first write.

        Returns:
            Why some of them could not be completed; these are tried again at the next call.
        """
        if self.recovered:
            return ()
        result = await recover(self.journal, self.store)
        self.recovered = not result.problems
        return result.problems


class Backings:
    """Finds the backing of the run in progress, and creates one for each store."""

    def __init__(self, store: BaseStore | None, receipts: Journal | str | Path | None) -> None:
        self._store = store
        self._receipts = receipts
        # Runs in several threads must not open two journals on one file.
        self._lock = threading.Lock()
        self._backings: WeakKeyDictionary[BaseStore, Backing] = WeakKeyDictionary()

    def current(self) -> Backing:
        """The backing of the guard's own store, or of the store of the graph around it.

        Raises:
            ConfigurationError: If there is no store.
        """
        store = self._store if self._store is not None else get_runtime().store
        if store is None:
            msg = (
                "memguard has no store: pass `store=`, for example "
                "`ChromaStore.local('memory')`, or give one to the graph or agent around it"
            )
            raise ConfigurationError(msg, code=ErrorCode.STORE_MISSING)
        # The store itself, not the guard around it: what this guard commits has been judged.
        store = getattr(store, "unguarded", store)
        with self._lock:
            backing = self._backings.get(store)
            if backing is None:
                backing = Backing(store=store, journal=self._journal_of(store))
                self._backings[store] = backing
            return backing

    def _journal_of(self, store: BaseStore) -> Journal:
        if isinstance(self._receipts, Journal):
            return self._receipts
        path = self._receipts or getattr(store, "journal_path", None)
        return Journal.memory() if path is None else Journal.open(path)
