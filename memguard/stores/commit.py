"""The durable write: receipts, quarantine and memory store agree whenever the process may die.

```text
1  one transaction   receipts, with an intent per admitted and a hold per doubted candidate
2  the memory store  put what is absent, read it back
3  one transaction   the intents that were read back are marked stored
```

A process killed between 1 and 3 leaves intents; `recover` redoes them, which is harmless for what
was stored already. So a record in the store always has a receipt, a write that was acknowledged is
in both, and after `recover` they hold the same.

`recover` looks at intents only. A memory store that lost what it held, as one in memory does when
its process ends, is not filled again from a journal on disk; `audit` shows what is missing.
"""

import functools
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from langgraph.store.base import BaseStore

from memguard.errors import ErrorCode, MemguardError, StoreError
from memguard.schema.memory import MemoryRecord
from memguard.schema.receipt import Receipt
from memguard.stores.events import Intent, end_intents, pending_intents
from memguard.stores.journal import Journal
from memguard.stores.placing import aplace
from memguard.stores.receipt_rows import record_decisions

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
