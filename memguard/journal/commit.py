"""Putting records into a memory store so that each is known to be there.

Three exchanges with the store, however many records: look which keys are taken, put the others,
read those back. The steps are written once, as a generator of operations, and driven through
`batch` or `abatch`.
"""

import functools
import sqlite3
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp

from memguard.errors import ErrorCode, MemguardError, StoreError
from memguard.journal.events import Intent, end_intents, pending_intents
from memguard.journal.journal import Journal
from memguard.journal.receipts import record_decisions
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import MemoryRecord, same_text_form
from memguard.schema.receipt import Receipt
from memguard.store_calls import call_store

_Steps = Generator[list[Op], list[Any], "Placed"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Placed:
    """Which records are in the store, by place in the sequence given."""

    present: tuple[bool, ...]
    """Whether the record, or an earlier one of the same text, was read from the store."""
    problems: tuple[str, ...]
    """What is wrong with each of the others, for a person."""


def place(store: BaseStore, records: Sequence[MemoryRecord]) -> Placed:
    """Put records into the store and read them back.

    A key that is taken by the same text stays as it is: the record that came first keeps its
    provenance and its times.

    Raises:
        StoreError: If the store failed.
    """
    steps = _steps(records, ttl=_default_ttl(store))
    ops = next(steps)
    while True:
        try:
            results = store.batch(ops)
        except MemguardError:
            raise
        except Exception as error:  # a store of any make may raise anything
            raise _failed(error) from error
        try:
            ops = steps.send(results)
        except StopIteration as end:
            return end.value


async def aplace(store: BaseStore, records: Sequence[MemoryRecord]) -> Placed:
    """See `place`."""
    steps = _steps(records, ttl=_default_ttl(store))
    ops = next(steps)
    while True:
        try:
            results = await call_store(store, ops)
        except MemguardError:
            raise
        except Exception as error:  # a store of any make may raise anything
            raise _failed(error) from error
        try:
            ops = steps.send(results)
        except StopIteration as end:
            return end.value


def _steps(records: Sequence[MemoryRecord], *, ttl: float | None) -> _Steps:
    first = {(record.namespace, record.key): record for record in reversed(records)}
    items = dict(zip(first, (yield _gets(first)), strict=True))
    absent = [record for location, record in first.items() if _is_to_put(record, items[location])]
    if absent:
        yield [_put(record, ttl=ttl) for record in absent]
        locations = [(record.namespace, record.key) for record in absent]
        items |= dict(zip(locations, (yield _gets(locations)), strict=True))
    written = {id(record) for record in absent}
    problems = [
        _problem(record, items[record.namespace, record.key], written=id(record) in written)
        for record in records
    ]
    return Placed(
        present=tuple(problem is None for problem in problems),
        problems=tuple(problem for problem in problems if problem is not None),
    )


def _gets(places: Iterable[tuple[tuple[str, ...], str]]) -> list[Op]:
    return [GetOp(namespace=namespace, key=key) for namespace, key in places]


def _put(record: MemoryRecord, *, ttl: float | None) -> Op:
    return PutOp(
        namespace=record.namespace,
        key=record.key,
        value=record.to_value(),
        index=["content"] if record.value is None else None,
        ttl=ttl,
    )


def _is_to_put(record: MemoryRecord, item: Item | None) -> bool:
    """Whether it is missing; what a writer put under a key of its own replaces what is there."""
    return item is None or (record.value is not None and item.value != record.value)


def _default_ttl(store: BaseStore) -> float | None:
    """Minutes to live of what is put without saying so; `put` would fill this in, `batch` not."""
    config = store.ttl_config if store.supports_ttl else None
    return (config or {}).get("default_ttl")


def _problem(record: MemoryRecord, item: Item | None, *, written: bool) -> str | None:
    """Why the record does not count as stored; `None` when it does."""
    where = f"key {record.key!r} in namespace {record.namespace!r}"
    if item is None:
        return f"{where} is not there after it was put"
    value: Mapping[str, Any] = item.value
    if record.value is not None:
        return None if value == record.value else f"{where} came back changed"
    text = value.get("content")
    if not isinstance(text, str) or same_text_form(text) != same_text_form(record.text):
        return f"{where} holds another text, {text!r}; delete or move that item, then run again"
    if written and value != record.to_value() and owner_of(value) == record.provenance.candidate_id:
        return f"{where} came back changed"
    return None


def owner_of(value: Mapping[str, Any]) -> str | None:
    """The candidate that an item of the store says it came from."""
    provenance = value.get("memguard")
    return provenance.get("candidate_id") if isinstance(provenance, Mapping) else None


def _failed(error: Exception) -> StoreError:
    return StoreError(
        f"the memory store failed: {type(error).__name__}: {error}; what was to be stored is in "
        "the receipt log and is stored by the next `recover`",
        code=ErrorCode.STORE_FAILED,
    )


_ACTOR = "memguard"
_RECOVER_BATCH = 100

_OF_ONE_RECORD = frozenset(
    {
        ErrorCode.STORE_FAILED,
        ErrorCode.STORE_VALUE,
        ErrorCode.NAMESPACE_INVALID,
        ErrorCode.INPUT_INVALID,
        ErrorCode.EMBEDDER_FAILED,
        ErrorCode.EMBEDDER_OUTPUT,
    }
)
"""Failures that may be due to one record; after any other the next record would fail too."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Committed:
    """What a commit did."""

    receipts: tuple[Receipt, ...]
    """For each receipt given the one in the log: itself, or the earlier decision that stands."""
    records: tuple[MemoryRecord, ...]
    """The records that this commit found or put in the store, and marked as stored."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recovered:
    """What a recovery did."""

    records: tuple[MemoryRecord, ...]
    """The records that are in the store now and were in doubt before."""
    problems: tuple[str, ...]
    """Why the others are still in doubt, for a person."""


def duplicate_decision() -> AdmissionDecision:
    """The decision on a candidate whose exact text is stored."""
    return AdmissionDecision(
        outcome="reject",
        reason="duplicate",
        explanation="the same text is stored already; a repeat is no new evidence",
    )


async def commit(
    journal: Journal, store: BaseStore, receipts: Sequence[Receipt], *, actor: str = _ACTOR
) -> Committed:
    """Log decisions and store what they admit; when this returns, both are on disk.

    Committing a receipt again changes nothing, and redoes what an earlier try left undone.

    Args:
        journal: The log.
        store: The memory store.
        receipts: The decisions of a batch. A batch costs two waits for the disk and three
            exchanges with the store, however many it holds.
        actor: Who brings the decisions.

    Raises:
        StoreError: If the store failed. The decisions are logged, and `recover` stores them.
        ReceiptError: If the log failed. Nothing was stored that is not in the log.
    """
    logged, intents = await journal.awrite(
        functools.partial(_begin, receipts=receipts, actor=actor, at=journal.now())
    )
    if not intents:
        return Committed(receipts=logged, records=())
    records, problems = await _fulfil(journal, store, intents, actor=actor)
    if problems:
        raise StoreError("; ".join(problems), code=ErrorCode.STORE_FAILED)
    return Committed(receipts=logged, records=records)


async def recover(journal: Journal, store: BaseStore, *, actor: str = _ACTOR) -> Recovered:
    """Redo every write that was begun and not finished; run it before the first write.

    Safe beside other writers: what both store is the same record.

    Args:
        journal: The log.
        store: The memory store.
        actor: Who recovers.

    Raises:
        MemguardError: If the store or the log cannot be used at all; the intents stay.
    """
    records: list[MemoryRecord] = []
    problems: list[str] = []
    after = 0
    while batch := await journal.aread(
        functools.partial(pending_intents, after=after, limit=_RECOVER_BATCH)
    ):
        after = batch[-1][0]
        done, failed = await _fulfil_each(
            journal, store, tuple(intent for _, intent in batch), actor=actor
        )
        records.extend(done)
        problems.extend(failed)
    return Recovered(records=tuple(records), problems=tuple(problems))


def _begin(
    db: sqlite3.Connection, *, receipts: Sequence[Receipt], actor: str, at: datetime
) -> tuple[tuple[Receipt, ...], tuple[Intent, ...]]:
    logged = record_decisions(db, receipts, actor=actor, at=at)
    stored = [receipt.id for receipt in logged if receipt.outcome == "stored"]
    pending = pending_intents(db, receipt_ids=stored) if stored else ()
    return logged, tuple(intent for _, intent in pending)


async def _fulfil_each(
    journal: Journal, store: BaseStore, intents: Sequence[Intent], *, actor: str
) -> tuple[tuple[MemoryRecord, ...], tuple[str, ...]]:
    """As a batch; where the store refuses it, one by one, so that one bad record stops no other."""
    try:
        return await _fulfil(journal, store, intents, actor=actor)
    except MemguardError as error:
        if error.code not in _OF_ONE_RECORD:
            raise
    records: list[MemoryRecord] = []
    problems: list[str] = []
    for intent in intents:
        try:
            done, failed = await _fulfil(journal, store, (intent,), actor=actor)
        except MemguardError as error:
            if error.code not in _OF_ONE_RECORD:
                raise
            done, failed = (), (error.message,)
        records.extend(done)
        problems.extend(failed)
    return tuple(records), tuple(problems)


async def _fulfil(
    journal: Journal, store: BaseStore, intents: Sequence[Intent], *, actor: str
) -> tuple[tuple[MemoryRecord, ...], tuple[str, ...]]:
    """Put, read back, and mark what was read back."""
    placed = await aplace(store, [intent.record for intent in intents])
    done = [intent for intent, present in zip(intents, placed.present, strict=True) if present]
    if done:
        await journal.awrite(
            functools.partial(end_intents, intents=done, actor=actor, at=journal.now())
        )
    return tuple(intent.record for intent in done), placed.problems
