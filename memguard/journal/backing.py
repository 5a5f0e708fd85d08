"""Commits that happen at the same time share their waits for the disk and the store."""

import asyncio
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore, GetOp

from memguard.errors import ConfigurationError, ErrorCode, StoreError
from memguard.journal.caches import ExtractionLog
from memguard.journal.commit import commit, duplicate_decision, owner_of, recover
from memguard.journal.journal import Journal
from memguard.journal.receipts import ReceiptLog
from memguard.schema.base import Namespace
from memguard.schema.memory import record_key
from memguard.schema.receipt import Receipt
from memguard.store_calls import call_store

_MAX_BATCH = 64
"""Receipts in one commit; more would make the first one wait for the last."""


Location = tuple[Namespace, str]
"""A namespace and a key in it."""


@dataclass
class _Entry:
    """A decision on its way to the disk, and whom to tell."""

    receipt: Receipt
    done: asyncio.Future[Receipt]
    compared: bool = False
    """Whether it is known not to repeat what is stored, or says so."""


@dataclass
class _Queue:
    """Commits of one event loop that wait for their turn."""

    waiting: list[_Entry] = field(default_factory=list[_Entry])
    running: asyncio.Task[None] | None = None


class Committer:
    """Durable commits, grouped: while one is on its way to the disk, the next ones gather.

    Grouping changes when, never whether: each `commit` returns after its own receipt and record
    are on disk, and fails for its own record only.

    Concurrent runs may have judged the same text. The first commit stores it, and the receipt of
    the next says that it is a duplicate, as it would have been a moment later.
    """

    def __init__(self, journal: Journal, store: BaseStore) -> None:
        self._journal = journal
        self._store = store
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue] = WeakKeyDictionary()

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
        queue = self._queues.setdefault(loop, _Queue())
        done: asyncio.Future[Receipt] = loop.create_future()
        queue.waiting.append(_Entry(receipt, done))
        if queue.running is None:
            queue.running = loop.create_task(self._run(queue))
        return await done

    async def _run(self, queue: _Queue) -> None:
        """Commit until nothing waits, also when the program is being stopped.

        A stop cancels this task once. What waits here is decided and was paid for: it goes to
        the disk first. Committing a batch again changes nothing.
        """
        stop: asyncio.CancelledError | None = None
        try:
            while queue.waiting:
                batch = queue.waiting[:_MAX_BATCH]
                try:
                    await self._compare([entry for entry in batch if not entry.compared])
                    await self._commit_batch(batch)
                except asyncio.CancelledError as error:
                    if stop is not None:
                        raise
                    stop = error
                else:
                    del queue.waiting[: len(batch)]
            if stop is not None:
                raise stop
        finally:
            queue.running = None
            for entry in queue.waiting:
                entry.done.cancel()
            queue.waiting.clear()

    async def _compare(self, batch: Sequence[_Entry]) -> None:
        """Turn what repeats a stored text, or an earlier one of the batch, into a duplicate."""
        memories = [entry for entry in batch if _is_memory(entry.receipt)]
        owners = await self._owners({_location(entry.receipt) for entry in memories})
        for entry in memories:
            candidate_id = entry.receipt.candidate.id
            if owners.setdefault(_location(entry.receipt), candidate_id) != candidate_id:
                entry.receipt = entry.receipt.model_copy(update={"decision": duplicate_decision()})
        for entry in batch:
            entry.compared = True

    async def _owners(self, locations: Iterable[Location]) -> dict[Location, str | None]:
        """The candidates that the stored ones of these memories came from."""
        wanted = list(locations)
        if not wanted:
            return {}
        try:
            items: list[Any] = await call_store(
                self._store, [GetOp(*location, refresh_ttl=False) for location in wanted]
            )
        except Exception:
            # The commit that follows meets the same store, logs the decision and says what failed.
            return {}
        return {
            location: owner_of(item.value)
            for location, item in zip(wanted, items, strict=True)
            # What else may lie under that key is for the commit to report.
            if item is not None and record_key(str(item.value.get("content"))) == location[1]
        }

    async def _commit_batch(self, batch: Sequence[_Entry]) -> None:
        try:
            committed = await commit(self._journal, self._store, [entry.receipt for entry in batch])
        except StoreError as error:
            if len(batch) == 1:
                if not batch[0].done.done():
                    batch[0].done.set_exception(error)
                return
            # One bad record must not fail its neighbours; committing again changes nothing.
            for entry in batch:
                await self._commit_batch([entry])
        except Exception as error:
            for entry in batch:
                if not entry.done.done():
                    entry.done.set_exception(error)
        else:
            for entry, receipt in zip(batch, committed.receipts, strict=True):
                if not entry.done.done():
                    entry.done.set_result(receipt)


def _is_memory(receipt: Receipt) -> bool:
    """Whether it stores a memory under its text; what a writer put has a key of its own."""
    return receipt.outcome == "stored" and receipt.effect == "commit" and receipt.value is None


def _location(receipt: Receipt) -> Location:
    return receipt.namespace, record_key(receipt.candidate.text)


IN_MEMORY_NOTE = (
    "receipts and quarantine are kept in memory and end with the process: pass `receipts=PATH`"
)


@dataclass
class Backing:
    """A store and its journal. Opens nothing before its first use."""

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
        """Before the first write, finish what an earlier process started; return problems."""
        if self.recovered:
            return ()
        done = await recover(self.journal, self.store)
        self.recovered = not done.problems
        return done.problems


class Backings:
    """Finds the backing of the run in progress, and creates each one once."""

    def __init__(self, store: BaseStore | None, receipts: Journal | str | Path | None) -> None:
        self._store = store
        self._receipts = receipts
        self._lock = threading.Lock()
        self._backings: WeakKeyDictionary[BaseStore, Backing] = WeakKeyDictionary()

    def current(self) -> Backing:
        """The backing of the guard's own store, or else of the store of the host graph.

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
        # Inside a guarded store: what this guard commits has been judged.
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
