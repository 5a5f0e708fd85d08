"""Commits: decisions are logged, then the memories that they admit are stored and read back.

`commit` first logs decisions together with the intent to store, then stores, then logs that the
memory is there. `recover` repeats what an interruption left between these steps.

A `Committer` makes one batch of the commits of concurrent runs. A `Backing` has all of this for one
store and its journal; a guard finds the one of the running graph by its `Backings`.
"""

import asyncio
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from weakref import WeakKeyDictionary

from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore

from memguard.errors import ConfigurationError, ErrorCode, RecordChangedError, StoreError
from memguard.journal.caches import ExtractionLog
from memguard.journal.current_keys import KeyChoice, choose_keys
from memguard.journal.events import Intent, pending_intents
from memguard.journal.fulfilment import compare_with_store, fulfil
from memguard.journal.journal import Journal
from memguard.journal.marks import Comparison
from memguard.journal.receipts import ACTOR, ReceiptLog, record_decisions
from memguard.journal.recovery import recover
from memguard.journal.storing import NamespacedKey
from memguard.schema.base import Namespace
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import Lifecycle, MemoryRecord, record_key
from memguard.schema.receipt import Receipt

IN_MEMORY_NOTE = (
    "receipts and quarantine are kept in memory and end with the process: pass `receipts=PATH`"
)
"""The note of a guard whose journal is in memory."""

# Receipts in one commit; with more, the first would wait long for the last.
_MAX_BATCH = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitResult:
    """The result of a commit."""

    receipts: tuple[Receipt, ...]
    """The receipts in the log, in the order of the decisions: the same ones, or earlier ones."""
    records: tuple[MemoryRecord, ...]
    """The records that this commit read from the store and logged as stored."""


def duplicate_decision() -> AdmissionDecision:
    """The decision on a candidate whose text is stored already."""
    return AdmissionDecision(
        outcome="reject",
        reason="duplicate",
        explanation="the same text is stored already; a repeat is no new evidence",
    )


async def commit(
    journal: Journal, store: BaseStore, receipts: Sequence[Receipt], *, actor: str = ACTOR
) -> CommitResult:
    """Log decisions and store what they admit; when this returns, both are on disk.

    Committing a receipt again changes nothing, and completes what an earlier call left undone. A
    batch costs two waits for the disk and three exchanges with the store, whatever its size. Where
    receipts change other memories, these are compared first and changed last, which costs four
    more exchanges.

    Raises:
        RecordChangedError: If a memory that one of the receipts changes has changed since. None of
            the receipts is logged, and nothing is stored.
        StoreError: If the store failed. The decisions are logged, and `recover` stores them.
        ReceiptError: If the log failed. Nothing was stored that is not in the log.
    """
    compared = await compare_with_store(journal, store, receipts)
    logged, intents = await journal.awrite(
        _log, receipts, actor=actor, at=journal.now(), compared=compared
    )
    if not intents:
        return CommitResult(receipts=logged, records=())
    stored = await fulfil(journal, store, intents, actor=actor)
    if stored.problems:
        raise StoreError("; ".join(stored.problems), code=ErrorCode.STORE_FAILED)
    return CommitResult(receipts=logged, records=stored.records)


def _log(
    db: sqlite3.Connection,
    receipts: Sequence[Receipt],
    *,
    actor: str,
    at: datetime,
    compared: Comparison,
) -> tuple[tuple[Receipt, ...], tuple[Intent, ...]]:
    logged = record_decisions(db, receipts, actor=actor, at=at, compared=compared)
    intended = [receipt.id for receipt in logged if receipt.outcome == "stored" or receipt.changes]
    # From the log, since an earlier commit of the same receipt may have stored its memory.
    pending = pending_intents(db, receipt_ids=intended) if intended else ()
    return logged, tuple(intent for _, intent in pending)


async def log_decisions(
    journal: Journal, store: BaseStore, receipts: Sequence[Receipt], *, actor: str = ACTOR
) -> tuple[Receipt, ...]:
    """Log decisions whose memories their caller stores; `finish_changes` follows the write.

    Raises:
        RecordChangedError: If a memory that one of the receipts changes has changed since.
        ReceiptError: If the log failed.
    """
    compared = await compare_with_store(journal, store, receipts)
    return await journal.awrite(
        record_decisions, receipts, actor=actor, at=journal.now(), compared=compared
    )


async def finish_changes(
    journal: Journal, store: BaseStore, receipts: Sequence[Receipt], *, actor: str = ACTOR
) -> None:
    """Change what these decisions change, after the caller of a guarded store made its write.

    Raises:
        StoreError: If the store failed; `recover` makes the changes.
    """
    ids = [receipt.id for receipt in receipts if receipt.changes]
    if not ids:
        return
    pending = await journal.aread(pending_intents, receipt_ids=ids)
    intents = [intent for _, intent in pending if intent.kind == "change_intended"]
    stored = await fulfil(journal, store, intents, actor=actor)
    if stored.problems:
        raise StoreError("; ".join(stored.problems), code=ErrorCode.STORE_FAILED)


# -- batches of concurrent commits ------------------------------------------------------------


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
        self.left_pending = False
        """Whether a commit failed after its decision was logged, so that `recover` has work."""

    async def commit(self, receipt: Receipt) -> Receipt:
        """Write one decision to disk, with the record that it admits.

        Returns:
            The receipt in the log: an earlier one if the candidate was decided on before, or that
            of a duplicate if the text was stored after the candidate was screened.

        Raises:
            RecordChangedError: If a memory that it changes has changed since; nothing is logged.
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
        """Turn decisions on a stored text, or on a text earlier in the batch, into duplicates.

        A text that was superseded, and is stored again, gets the key of its next generation.
        """
        memories = [entry for entry in batch if _is_memory(entry.receipt)]
        choices = await self._choose_keys([entry.receipt for entry in memories])
        owners: dict[NamespacedKey, str | None] = {}
        for entry in memories:
            receipt, candidate_id = entry.receipt, entry.receipt.candidate.id
            choice = choices.get((receipt.namespace, receipt.candidate.text))
            key = receipt.record_key or record_key(receipt.candidate.text)
            if choice is not None:
                # A receipt that is committed again keeps its record, whatever became of it since.
                key = choice.ended.get(receipt.id, choice.key)
                if choice.is_stored and key == choice.key:
                    owners.setdefault((receipt.namespace, key), choice.owner)
            if owners.setdefault((receipt.namespace, key), candidate_id) != candidate_id:
                receipt = _as_duplicate(receipt)
            entry.receipt = _under_key(receipt, key)
        # Once only: after an interrupted commit, a memory would be compared with itself.
        for entry in batch:
            entry.compared = True

    async def _choose_keys(
        self, receipts: Sequence[Receipt]
    ) -> dict[tuple[Namespace, str], KeyChoice]:
        """The keys of the texts of some receipts, by namespace and text."""
        pairs = [(receipt.namespace, receipt.candidate.text) for receipt in receipts]
        try:
            return await choose_keys(self._store, pairs)
        except Exception:
            # The commit that follows calls the same store, logs the decision and raises the error.
            return {}

    async def _commit_batch(self, batch: Sequence[_QueuedCommit]) -> None:
        try:
            committed = await commit(self._journal, self._store, [entry.receipt for entry in batch])
        except (StoreError, RecordChangedError) as error:
            if len(batch) == 1:
                self.left_pending |= isinstance(error, StoreError)
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


def _under_key(receipt: Receipt, key: str) -> Receipt:
    """The receipt with the key of its record, also where its changes name that record."""
    assumed = receipt.record_key or record_key(receipt.candidate.text)
    changes = receipt.changes
    if key != assumed:
        changes = tuple(
            change.model_copy(update={"after": _renamed(change.after, assumed, key)})
            for change in changes
        )
    return receipt.model_copy(update={"record_key": key, "changes": changes})


def _renamed(lifecycle: Lifecycle, old: str, new: str) -> Lifecycle:
    successor = new if lifecycle.superseded_by == old else lifecycle.superseded_by
    conflicts = tuple(new if key == old else key for key in lifecycle.conflicts_with)
    return lifecycle.model_copy(update={"superseded_by": successor, "conflicts_with": conflicts})


def _as_duplicate(receipt: Receipt) -> Receipt:
    # The record that came first has made the changes, or they were decided without it.
    update = {"decision": duplicate_decision(), "lifecycle": Lifecycle(), "changes": ()}
    return receipt.model_copy(update=update)


# -- the store of a guard ---------------------------------------------------------------------


class Backing:
    """A store and its journal, which is opened at its first use."""

    def __init__(self, *, store: BaseStore, journal: Journal) -> None:
        self.store = store
        self.journal = journal
        self.recovered = False
        self.receipts = ReceiptLog(journal)
        self.extractions = ExtractionLog(journal)
        self.committer = Committer(journal, store)

    async def recover_once(self) -> tuple[str, ...]:
        """Complete the interrupted writes and deletions, before the first write.

        Also after a commit that failed in this process: its decision is logged and will not be
        made again.

        Returns:
            What was done, and why something could not be completed; the latter is tried again at
            the next call.
        """
        if self.recovered and not self.committer.left_pending:
            return ()
        # Before the recovery: a commit that fails meanwhile needs another one.
        self.committer.left_pending = False
        try:
            result = await recover(self.journal, self.store)
        except BaseException:
            self.committer.left_pending = True
            raise
        self.recovered = not result.problems
        return (*((result.line,) if result.line else ()), *result.problems)


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
            if store not in self._backings:
                self._backings[store] = Backing(store=store, journal=self._journal_of(store))
            return self._backings[store]

    def _journal_of(self, store: BaseStore) -> Journal:
        if isinstance(self._receipts, Journal):
            return self._receipts
        path = self._receipts or getattr(store, "journal_path", None)
        return Journal.memory() if path is None else Journal.open(path)
