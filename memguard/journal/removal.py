"""Removing a memory from the store, with or without its text in the log."""

import functools
import json
import sqlite3
from datetime import datetime

from langgraph.store.base import BaseStore, PutOp

from memguard.errors import ErrorCode, MemguardError, StoreError
from memguard.journal.events import add_event, to_json
from memguard.journal.journal import Journal
from memguard.journal.receipts import Forgotten, ReceiptLog, candidate_of
from memguard.schema.base import Namespace
from memguard.store_calls import call_store


async def delete_memory(
    journal: Journal, store: BaseStore, which: str, *, actor: str, reason: str
) -> tuple[str, ...]:
    """Remove a memory from the store; its receipts stay, and note that this was on purpose.

    Args:
        journal: The log.
        store: The memory store.
        which: The candidate's id, or the id of a receipt, or the beginning of one.
        actor: Who wants it.
        reason: Why. It stays in the log, so do not repeat the text.

    Returns:
        The receipts whose memory is gone: all that led to the same record, duplicates of other
        conversations included.

    Raises:
        InvalidInputError: If the log knows nothing of that id.
        StoreError: If the store failed. The log is unchanged then; call again.
    """
    locations = await journal.aread(functools.partial(_record_locations, which=which))
    if not locations:
        return ()
    try:
        await call_store(store, [PutOp(namespace, key, None) for namespace, key in locations])
    except MemguardError:
        raise
    except Exception as error:  # a third-party store may raise anything
        msg = f"the memory store failed: {type(error).__name__}: {error}; delete again"
        raise StoreError(msg, code=ErrorCode.STORE_FAILED) from error
    return await journal.awrite(
        functools.partial(
            _mark_deleted, locations=locations, actor=actor, reason=reason, at=journal.now()
        )
    )


async def forget_memory(
    journal: Journal, store: BaseStore, which: str, *, actor: str, reason: str
) -> Forgotten:
    """Remove a memory from the store, and its text from the log; see `ReceiptLog.forget`.

    Call it again if it was interrupted. Receipts of other candidates stay: those with the same
    text are marked as deleted, those drawn from the same turns still quote the turns.
    """
    await delete_memory(journal, store, which, actor=actor, reason=reason)
    return await ReceiptLog(journal).aforget(which, actor=actor, reason=reason)


def _record_locations(db: sqlite3.Connection, *, which: str) -> tuple[tuple[Namespace, str], ...]:
    """Where the memory of a candidate may be in the store."""
    rows = db.execute(
        """SELECT DISTINCT namespace, record_key FROM receipts WHERE candidate_id = ?
        AND (outcome = 'duplicate' AND record_key <> '' OR EXISTS (SELECT 1 FROM events
            WHERE receipt_id = receipts.id AND kind IN ('intended', 'release_intended')))""",
        (candidate_of(db, which),),
    )
    return tuple((tuple(json.loads(namespace)), key) for namespace, key in rows)


def _mark_deleted(
    db: sqlite3.Connection,
    *,
    locations: tuple[tuple[Namespace, str], ...],
    actor: str,
    reason: str,
    at: datetime,
) -> tuple[str, ...]:
    marked: list[str] = []
    for namespace, key in locations:
        rows = db.execute(
            "SELECT DISTINCT id, receipts.candidate_id FROM receipts CROSS JOIN events "
            "ON events.receipt_id = receipts.id WHERE namespace = ? AND record_key = ? "
            "AND kind IN ('stored', 'released')",
            (to_json(namespace), key),
        ).fetchall()
        for receipt_id, candidate_id in rows:
            add_event(
                db,
                "deleted",
                receipt_id=receipt_id,
                candidate_id=candidate_id,
                actor=actor,
                at=at,
                body=to_json({"reason": reason}),
            )
            marked.append(receipt_id)
    return tuple(marked)
