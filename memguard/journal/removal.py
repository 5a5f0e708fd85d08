"""Deletes a memory from the store; its receipts stay.

A deletion is logged before the store is called and again after it, so that `recover` completes one
that was interrupted in between.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime

from langgraph.store.base import BaseStore, PutOp

from memguard.journal.events import add_event, pending_receipts, to_json
from memguard.journal.forgetting import forget_memory as forget_memory  # noqa: PLC0414 - documented here
from memguard.journal.journal import Journal
from memguard.journal.receipts import candidate_of
from memguard.journal.storing import NamespacedKey, call_or_advise

_ADVICE = "the deletion is in the receipt log, and the next `recover` completes it"


async def delete_memory(
    journal: Journal, store: BaseStore, which: str, *, actor: str, reason: str
) -> tuple[str, ...]:
    """Delete a memory from the store; its receipts stay, and the log says who deleted it and why.

    `which` is as in `ReceiptLog.forget`. The reason stays in the log, so do not repeat the text.

    Returns:
        The receipts whose memory was deleted: all that led to the same record, including
        duplicates from other conversations.

    Raises:
        InvalidInputError: If the log has no such id.
        StoreError: If the store failed; the next `recover` completes the deletion.
    """
    locations = await journal.aread(_record_locations, which)
    if not locations:
        return ()
    receipt_ids = await intend_deletions(journal, locations, actor=actor, reason=reason)
    deletions = [PutOp(namespace, key, None) for namespace, key in locations]
    await call_or_advise(store, deletions, advice=_ADVICE)
    return await end_deletions(journal, receipt_ids, actor=actor)


async def intend_deletions(
    journal: Journal, locations: Iterable[NamespacedKey], *, actor: str, reason: str
) -> tuple[str, ...]:
    """Log that the records at these locations are about to be deleted; returns their receipts."""
    return await journal.awrite(
        _intend, tuple(locations), actor=actor, reason=reason, at=journal.now()
    )


async def end_deletions(
    journal: Journal, receipt_ids: Sequence[str], *, actor: str
) -> tuple[str, ...]:
    """Log that the memories of these receipts are no longer in the store."""
    if not receipt_ids:
        return ()
    return await journal.awrite(_end, tuple(receipt_ids), actor=actor, at=journal.now())


async def finish_deletions(journal: Journal, store: BaseStore, *, actor: str) -> tuple[str, ...]:
    """Complete the deletions that were interrupted; returns their receipts.

    Raises:
        StoreError: If the store failed; they stay pending.
    """
    receipt_ids = await journal.aread(pending_receipts, "delete_intended")
    if not receipt_ids:
        return ()
    # The store may fail at a deletion and take a new item under the same key: that item stays.
    locations = await journal.aread(_locations_of, receipt_ids)
    if locations:
        deletions = [PutOp(namespace, key, None) for namespace, key in locations]
        await call_or_advise(store, deletions, advice=_ADVICE)
    return await end_deletions(journal, receipt_ids, actor=actor)


def _record_locations(db: sqlite3.Connection, which: str) -> tuple[NamespacedKey, ...]:
    # Intents count, stored or not: an interrupted write may have reached the store.
    rows = db.execute(
        """SELECT DISTINCT namespace, record_key FROM receipts WHERE candidate_id = ?
        AND (outcome = 'duplicate' AND record_key <> '' OR EXISTS (SELECT 1 FROM events
            WHERE receipt_id = receipts.id AND kind IN ('intended', 'release_intended')))""",
        (candidate_of(db, which),),
    )
    return tuple((tuple(json.loads(namespace)), key) for namespace, key in rows)


def _locations_of(db: sqlite3.Connection, receipt_ids: Sequence[str]) -> tuple[NamespacedKey, ...]:
    """The locations of interrupted deletions, without those that were written to since."""
    # CROSS JOIN makes SQLite look up the few receipts of the key first.
    rows = db.execute(
        """SELECT DISTINCT mine.namespace, mine.record_key FROM receipts AS mine
        WHERE mine.id IN (SELECT value FROM json_each(?)) AND NOT EXISTS (
            SELECT 1 FROM receipts AS other CROSS JOIN events ON events.receipt_id = other.id
            WHERE other.namespace = mine.namespace AND other.record_key = mine.record_key
            AND events.kind IN ('intended', 'release_intended', 'allowed', 'stored', 'released')
            AND events.seq > (SELECT max(seq) FROM events
                WHERE receipt_id = mine.id AND kind = 'delete_intended'))""",
        (to_json(list(receipt_ids)),),
    )
    return tuple((tuple(json.loads(namespace)), key) for namespace, key in rows)


def log_deletion(
    db: sqlite3.Connection,
    locations: tuple[NamespacedKey, ...],
    *,
    actor: str,
    reason: str,
    at: datetime,
) -> tuple[str, ...]:
    """Log a deletion as done, for a caller that completes it by itself; returns its receipts."""
    receipt_ids = _intend(db, locations, actor=actor, reason=reason, at=at)
    return _end(db, receipt_ids, actor=actor, at=at)


def _intend(
    db: sqlite3.Connection,
    locations: tuple[NamespacedKey, ...],
    *,
    actor: str,
    reason: str,
    at: datetime,
) -> tuple[str, ...]:
    body = to_json({"reason": reason})
    affected: list[str] = []
    for namespace, key in locations:
        # CROSS JOIN makes SQLite look up the receipts first; there are many more stored events.
        # Intents count: `recover` must not store a memory that was deleted while it was pending.
        rows = db.execute(
            "SELECT DISTINCT id, receipts.candidate_id FROM receipts CROSS JOIN events "
            "ON events.receipt_id = receipts.id WHERE namespace = ? AND record_key = ? "
            "AND kind IN ('stored', 'released', 'intended', 'release_intended', 'allowed')",
            (to_json(namespace), key),
        ).fetchall()
        for receipt_id, candidate_id in rows:
            add_event(
                db, "delete_intended", receipt_id, candidate_id, actor=actor, at=at, body=body
            )
            affected.append(receipt_id)
    return tuple(affected)


def _end(
    db: sqlite3.Connection, receipt_ids: Sequence[str], *, actor: str, at: datetime
) -> tuple[str, ...]:
    for receipt_id in receipt_ids:
        # With the words of the intent, so that a reader of the last event sees who and why.
        row = db.execute(
            "SELECT candidate_id, actor, body FROM events "
            "WHERE receipt_id = ? AND kind = 'delete_intended'",
            (receipt_id,),
        ).fetchone()
        candidate_id, intended_by, body = row
        add_event(
            db, "deleted", receipt_id, candidate_id, actor=intended_by or actor, at=at, body=body
        )
    return tuple(receipt_ids)
