"""Completes what an interruption left between the log and the memory store.

A write, a release or a deletion is logged before the store is called, and logged as done after it.
`recover` repeats the step in between, which changes nothing if it was made. A write of the caller
of a guarded store cannot be repeated; the log then says whether it reached the store.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from langgraph.store.base import BaseStore

from memguard.errors import ErrorCode, MemguardError
from memguard.journal.events import (
    Intent,
    add_event,
    pending_intents,
    pending_receipts,
    to_json,
)
from memguard.journal.forgetting import finish_forgettings
from memguard.journal.fulfilment import fulfil
from memguard.journal.journal import Journal
from memguard.journal.receipts import ACTOR, RECEIPTS
from memguard.journal.removal import finish_deletions
from memguard.journal.storing import StoredRecords, get_items, is_item_of
from memguard.schema.memory import MemoryRecord
from memguard.schema.receipt import Receipt

logger = logging.getLogger(__name__)

_BATCH = 100
_NOT_MADE = "the program ended before this write reached the store"

_RECORD_ERRORS = frozenset(
    {
        ErrorCode.STORE_FAILED,
        ErrorCode.STORE_COLLECTION,
        ErrorCode.STORE_VALUE,
        ErrorCode.NAMESPACE_INVALID,
        ErrorCode.INPUT_INVALID,
        ErrorCode.EMBEDDER_FAILED,
        ErrorCode.EMBEDDER_OUTPUT,
    }
)
"""Failures that may be due to one record; after any other, the next record would fail, too."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecoveryResult:
    """The result of a recovery."""

    records: tuple[MemoryRecord, ...] = ()
    """The pending records that are in the store now."""
    problems: tuple[str, ...] = ()
    """Why the others are still pending, as messages for a person."""
    changed: tuple[str, ...] = ()
    """Receipts whose changes of other memories were completed."""
    deleted: tuple[str, ...] = ()
    """Receipts whose deletion was completed."""
    confirmed: tuple[str, ...] = ()
    """Receipts of a guarded store whose write had reached the store."""
    missing: tuple[str, ...] = ()
    """Receipts of a guarded store whose write had not reached the store."""
    forgotten: tuple[str, ...] = ()
    """Receipts of forgettings that were completed."""
    line: str = field(init=False, default="")
    """What was done, in one line; empty if there was nothing to do."""

    def __post_init__(self) -> None:
        """Word the line."""
        parts = (
            (len(self.records), "interrupted writes completed"),
            (len(self.changed), "interrupted changes completed"),
            (len(self.deleted), "interrupted deletions completed"),
            (len(self.forgotten), "interrupted forgettings completed"),
            (len(self.confirmed), "writes of a guarded store found in the store"),
            (len(self.missing), "writes of a guarded store not found, and marked as missing"),
        )
        text = ", ".join(f"{what}: {count}" for count, what in parts if count)
        object.__setattr__(self, "line", f"recovery: {text}" if text else "")


async def recover(journal: Journal, store: BaseStore, *, actor: str = ACTOR) -> RecoveryResult:
    """Complete every write and deletion that was interrupted; call it before the first write.

    Other writers may run at the same time: both would store the same record.

    Raises:
        MemguardError: If the store or the log cannot be used at all; what is pending stays so.
    """
    # First, so that a memory that was to be forgotten or deleted is not stored once more.
    forgotten = await finish_forgettings(journal, store)
    deleted = await finish_deletions(journal, store, actor=actor)
    # Before the changes that go with such writes.
    confirmed, missing = await _settle_allowed(journal, store, actor=actor)
    records: list[MemoryRecord] = []
    changed: list[str] = []
    problems: list[str] = []
    after = 0
    # By position and not until none is pending: a record that cannot be stored stays pending.
    while batch := await journal.aread(pending_intents, after=after, limit=_BATCH):
        after = batch[-1][0]
        intents = [intent for _, intent in batch]
        for stored in await _fulfil_possible(journal, store, intents, actor=actor):
            records += stored.records
            problems += stored.problems
            changed += stored.changed
    result = RecoveryResult(
        records=tuple(records),
        changed=tuple(changed),
        problems=tuple(problems),
        deleted=deleted,
        forgotten=forgotten,
        confirmed=confirmed,
        missing=missing,
    )
    if result.line:
        logger.warning("%s", result.line)
    return result


async def _fulfil_possible(
    journal: Journal, store: BaseStore, intents: Sequence[Intent], *, actor: str
) -> list[StoredRecords]:
    """Store the records that the store takes; the refusal of a record becomes a problem."""
    try:
        return [await fulfil(journal, store, intents, actor=actor)]
    except MemguardError as error:
        if error.code not in _RECORD_ERRORS:
            raise
        if len(intents) == 1:
            return [StoredRecords(records=(), problems=(error.message,))]
    # One record that the store refuses must not keep the others from being stored.
    results: list[StoredRecords] = []
    for intent in intents:
        results += await _fulfil_possible(journal, store, [intent], actor=actor)
    return results


async def _settle_allowed(
    journal: Journal, store: BaseStore, *, actor: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Find out which writes of callers reached the store, and log it.

    They are not repeated: the caller may have written something else under the key since.
    """
    pending = await journal.aread(pending_receipts, "allowed")
    confirmed: list[str] = []
    missing: list[str] = []
    for start in range(0, len(pending), _BATCH):
        ids = pending[start : start + _BATCH]
        receipts: list[Receipt] = [await journal.aread(RECEIPTS.get, each) for each in ids]
        locations = [(receipt.namespace, receipt.record_key) for receipt in receipts]
        items = await get_items(locations, store=store)
        for receipt, location in zip(receipts, locations, strict=True):
            item = items[location]
            there = item is not None and is_item_of(item, value=receipt.value, text=None)
            (confirmed if there else missing).append(receipt.id)
            await journal.awrite(
                add_event,
                "stored" if there else "missing",
                receipt.id,
                receipt.candidate.id,
                actor=actor,
                at=journal.now(),
                body="{}" if there else to_json({"reason": _NOT_MADE}),
            )
    return tuple(confirmed), tuple(missing)
