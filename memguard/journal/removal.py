"""Deletes a memory from the store, with or without its text in the log."""

import json
import sqlite3
from datetime import datetime

from langgraph.store.base import BaseStore, PutOp

from memguard.journal.commit import NamespacedKey, call_or_advise
from memguard.journal.events import add_event, to_json
from memguard.journal.journal import Journal
from memguard.journal.receipts import ForgetResult, ReceiptLog, candidate_of


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
        StoreError: If the store failed. The log has not changed then; call again.
    """
    locations = await journal.aread(_record_locations, which)
    if not locations:
        return ()
    # The store first: if the log came first, an interruption would leave a memory that the log
    # says is deleted.
    deletions = [PutOp(namespace, key, None) for namespace, key in locations]
    await call_or_advise(store, deletions, advice="delete again")
    return await journal.awrite(
        log_deletion, locations, actor=actor, reason=reason, at=journal.now()
    )


async def forget_memory(
    journal: Journal, store: BaseStore, which: str, *, actor: str, reason: str
) -> ForgetResult:
    """Delete a memory from the store, and erase its text from the log; see `ReceiptLog.forget`.

    Call it again if it was interrupted. Receipts of other candidates stay: those with the same
    text are logged as deleted, and those from the same turns still quote the turns.
    """
    # The log last, because only its receipts tell where the memory is in the store.
    await delete_memory(journal, store, which, actor=actor, reason=reason)
    return await ReceiptLog(journal).aforget(which, actor=actor, reason=reason)


def _record_locations(db: sqlite3.Connection, which: str) -> tuple[NamespacedKey, ...]:
    # Intents count, stored or not: an interrupted write may have reached the store.
    rows = db.execute(
        """SELECT DISTINCT namespace, record_key FROM receipts WHERE candidate_id = ?
        AND (outcome = 'duplicate' AND record_key <> '' OR EXISTS (SELECT 1 FROM events
            WHERE receipt_id = receipts.id AND kind IN ('intended', 'release_intended')))""",
        (candidate_of(db, which),),
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
    """Log that the memories at some locations are deleted; returns their receipts."""
    body = to_json({"reason": reason})
    deleted: list[str] = []
    for namespace, key in locations:
        # CROSS JOIN makes SQLite look up the receipts first; there are many more stored events.
        rows = db.execute(
            "SELECT DISTINCT id, receipts.candidate_id FROM receipts CROSS JOIN events "
            "ON events.receipt_id = receipts.id WHERE namespace = ? AND record_key = ? "
            "AND kind IN ('stored', 'released')",
            (to_json(namespace), key),
        ).fetchall()
        for receipt_id, candidate_id in rows:
            add_event(db, "deleted", receipt_id, candidate_id, actor=actor, at=at, body=body)
            deleted.append(receipt_id)
    return tuple(deleted)
