"""Commits: decisions are logged, then the memories that they admit are stored and read back.

`commit` first logs decisions together with the intent to store, then stores, then logs that the
memory is there. `recover` repeats what an interruption left between these steps. Storing needs
three exchanges with the store, however many records there are: look up which keys are taken, put
the others, read those back.

A `Committer` makes one batch of the commits of concurrent runs. A `Backing` has all of this for one
store and its journal; a guard finds the one of the running graph by its `Backings`.
"""

import asyncio
import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp

from memguard.errors import ConfigurationError, ErrorCode, MemguardError, StoreError
from memguard.journal.caches import ExtractionLog
from memguard.journal.events import Intent, end_intents, pending_intents
from memguard.journal.journal import Journal
from memguard.journal.receipts import ACTOR, ReceiptLog, record_decisions
from memguard.portal import call_store
from memguard.schema.base import Namespace
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import MemoryRecord, record_key, same_text_form
from memguard.schema.receipt import Receipt

NamespacedKey = tuple[Namespace, str]
"""A namespace and a key in it."""

IN_MEMORY_NOTE = (
    "receipts and quarantine are kept in memory and end with the process: pass `receipts=PATH`"
)
"""The note of a guard whose journal is in memory."""

_RECOVER_BATCH = 100
# Receipts in one commit; with more, the first would wait long for the last.
_MAX_BATCH = 64

_RECOVERABLE = "the memory is in the receipt log, and the next `recover` stores it"

_RECORD_ERRORS = frozenset(
    {
        ErrorCode.STORE_FAILED,
        ErrorCode.STORE_VALUE,
        ErrorCode.NAMESPACE_INVALID,
        ErrorCode.INPUT_INVALID,
        ErrorCode.EMBEDDER_FAILED,
        ErrorCode.EMBEDDER_OUTPUT,
    }
)
"""Failures that may be due to one record; after any other, the next record would fail, too."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitResult:
    """The result of a commit."""

    receipts: tuple[Receipt, ...]
    """The receipts in the log, in the order of the decisions: the same ones, or earlier ones."""
    records: tuple[MemoryRecord, ...]
    """The records that this commit read from the store and logged as stored."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecoveryResult:
    """The result of a recovery, or of an attempt to store the records of some intents."""

    records: tuple[MemoryRecord, ...]
    """The pending records that are in the store now."""
    problems: tuple[str, ...]
    """Why the others are still pending, as messages for a person."""


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
    batch costs two waits for the disk and three exchanges with the store, whatever its size.

    Raises:
        StoreError: If the store failed. The decisions are logged, and `recover` stores them.
        ReceiptError: If the log failed. Nothing was stored that is not in the log.
    """
    logged, intents = await journal.awrite(_log, receipts, actor=actor, at=journal.now())
    if not intents:
        return CommitResult(receipts=logged, records=())
    stored = await fulfil(journal, store, intents, actor=actor)
    if stored.problems:
        raise StoreError("; ".join(stored.problems), code=ErrorCode.STORE_FAILED)
    return CommitResult(receipts=logged, records=stored.records)


async def recover(journal: Journal, store: BaseStore, *, actor: str = ACTOR) -> RecoveryResult:
    """Complete every write that was interrupted; call it before the first write.

    Other writers may run at the same time: both would store the same record.

    Raises:
        MemguardError: If the store or the log cannot be used at all; the intents stay.
    """
    results: list[RecoveryResult] = []
    after = 0
    # By position and not until none is pending: a record that cannot be stored stays pending.
    while batch := await journal.aread(pending_intents, after=after, limit=_RECOVER_BATCH):
        after = batch[-1][0]
        intents = [intent for _, intent in batch]
        results += await _fulfil_possible(journal, store, intents, actor=actor)
    return RecoveryResult(
        records=tuple(record for result in results for record in result.records),
        problems=tuple(problem for result in results for problem in result.problems),
    )


def _log(
    db: sqlite3.Connection, receipts: Sequence[Receipt], *, actor: str, at: datetime
) -> tuple[tuple[Receipt, ...], tuple[Intent, ...]]:
    logged = record_decisions(db, receipts, actor=actor, at=at)
    stored = [receipt.id for receipt in logged if receipt.outcome == "stored"]
    # From the log, since an earlier commit of the same receipt may have stored its memory.
    pending = pending_intents(db, receipt_ids=stored) if stored else ()
    return logged, tuple(intent for _, intent in pending)


async def _fulfil_possible(
    journal: Journal, store: BaseStore, intents: Sequence[Intent], *, actor: str
) -> list[RecoveryResult]:
    """Store the records that the store takes; the refusal of a record becomes a problem."""
    try:
        return [await fulfil(journal, store, intents, actor=actor)]
    except MemguardError as error:
        if error.code not in _RECORD_ERRORS:
            raise
        if len(intents) == 1:
            return [RecoveryResult(records=(), problems=(error.message,))]
    # One record that the store refuses must not keep the others from being stored.
    singly = [await _fulfil_possible(journal, store, [i], actor=actor) for i in intents]
    return [result for results in singly for result in results]


async def fulfil(
    journal: Journal, store: BaseStore, intents: Sequence[Intent], *, actor: str
) -> RecoveryResult:
    """Store the records of intents, read them back, and log those that were read back.

    Raises:
        StoreError: If the store failed.
        ReceiptError: If the log failed.
    """
    problems = await _store([intent.record for intent in intents], store=store)
    done = [intent for intent, problem in zip(intents, problems, strict=True) if problem is None]
    if done:
        await journal.awrite(end_intents, done, actor=actor, at=journal.now())
    return RecoveryResult(
        records=tuple(intent.record for intent in done),
        problems=tuple(problem for problem in problems if problem is not None),
    )


async def _store(records: Sequence[MemoryRecord], *, store: BaseStore) -> list[str | None]:
    """Put records into the store and read them back.

    A key that is taken by the same text stays as it is: the record that came first keeps its
    provenance and its times.

    Returns:
        For each record why it does not count as stored; `None` if it does.
    """
    ttl = _default_ttl(store)
    # Reversed, so that of records with the same location the first is stored.
    by_location = {(record.namespace, record.key): record for record in reversed(records)}
    items = await _get(by_location, store=store)
    missing = [record for at, record in by_location.items() if _is_missing(record, items[at])]
    if missing:
        ops = [_put_op(record, ttl=ttl) for record in missing]
        await call_or_advise(store, ops, advice=_RECOVERABLE)
        # Read back, since a store may lose or change an item without an error.
        locations = [(record.namespace, record.key) for record in missing]
        items |= await _get(locations, store=store)
    # By identity: a repeat of the same record in the batch was not put itself.
    written = {id(record) for record in missing}
    return [
        _problem(record, items[record.namespace, record.key], written=id(record) in written)
        for record in records
    ]


async def _get(
    locations: Iterable[NamespacedKey], *, store: BaseStore
) -> dict[NamespacedKey, Item | None]:
    keys = list(locations)
    items = await call_or_advise(store, [GetOp(*key) for key in keys], advice=_RECOVERABLE)
    return dict(zip(keys, items, strict=True))


async def call_or_advise(store: BaseStore, ops: Sequence[Op], *, advice: str) -> list[Any]:
    """As `call_store`; any failure is a `MemguardError` that ends with what to do."""
    try:
        return await call_store(store, ops)
    except MemguardError:
        raise
    except Exception as error:  # a third-party store may raise anything
        msg = f"the memory store failed: {type(error).__name__}: {error}; {advice}"
        raise StoreError(msg, code=ErrorCode.STORE_FAILED) from error


def _put_op(record: MemoryRecord, *, ttl: float | None) -> Op:
    return PutOp(
        namespace=record.namespace,
        key=record.key,
        value=record.to_value(),
        # Only the text is embedded, not its provenance. A writer's own item has other fields,
        # which the store's configuration selects.
        index=["content"] if record.value is None else None,
        ttl=ttl,
    )


def _is_missing(record: MemoryRecord, item: Item | None) -> bool:
    # An item that a writer put under a key of its own replaces the item there.
    return item is None or (record.value is not None and item.value != record.value)


def _default_ttl(store: BaseStore) -> float | None:
    """The store's default time to live in minutes, which `put` fills in but `batch` does not."""
    config = store.ttl_config if store.supports_ttl else None
    return (config or {}).get("default_ttl")


def _problem(record: MemoryRecord, item: Item | None, *, written: bool) -> str | None:
    where = f"key {record.key!r} in namespace {record.namespace!r}"
    if item is None:
        return f"{where} is not there after it was put"
    value: Mapping[str, Any] = item.value
    if record.value is not None:
        return None if value == record.value else f"{where} came back changed"
    text = value.get("content")
    if not isinstance(text, str) or same_text_form(text) != same_text_form(record.text):
        return f"{where} holds another text, {text!r}; delete or move that item, then run again"
    # Another writer may have stored the same text in the meantime; then its provenance differs.
    if written and value != record.to_value() and owner_of(value) == record.provenance.candidate_id:
        return f"{where} came back changed"
    return None


def owner_of(value: Mapping[str, Any]) -> str | None:
    """The candidate that an item of the store came from, according to its provenance."""
    provenance = value.get("memguard")
    return provenance.get("candidate_id") if isinstance(provenance, Mapping) else None


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

    async def _owners(self, locations: Iterable[NamespacedKey]) -> dict[NamespacedKey, str | None]:
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


def _location(receipt: Receipt) -> NamespacedKey:
    return receipt.namespace, record_key(receipt.candidate.text)


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
            if store not in self._backings:
                self._backings[store] = Backing(store=store, journal=self._journal_of(store))
            return self._backings[store]

    def _journal_of(self, store: BaseStore) -> Journal:
        if isinstance(self._receipts, Journal):
            return self._receipts
        path = self._receipts or getattr(store, "journal_path", None)
        return Journal.memory() if path is None else Journal.open(path)
