"""Erasing a candidate's text from the log, leaving a tombstone."""

import sqlite3
from dataclasses import dataclass
from datetime import datetime

from memguard.stores import receipt_rows
from memguard.stores.events import add_event, to_json


@dataclass(frozen=True, kw_only=True, slots=True)
class Forgotten:
    """What was taken out of the log."""

    candidate_id: str
    """The candidate whose text is gone."""
    receipt_ids: tuple[str, ...]
    """The decisions on it that were erased; empty when it was forgotten before, or undecided."""
    read_ids: tuple[str, ...] = ()
    """The reads that had recalled it, which were erased as well."""


def forget(
    db: sqlite3.Connection, *, which: str, actor: str, reason: str, at: datetime
) -> Forgotten:
    """Erase a candidate from receipts, events, extractions, reads and decompositions.

    Args:
        db: The database, in a transaction.
        which: A candidate id, or the id of a receipt, or the beginning of one.
        actor: Who wants it.
        reason: Why.
        at: When.

    Raises:
        InvalidInputError: If the log knows nothing of that id.
    """
    candidate_id = candidate_of(db, which)
    receipt_ids = tuple(
        row[0]
        for row in db.execute(
            "SELECT id FROM receipts WHERE candidate_id = ? ORDER BY seq", (candidate_id,)
        )
    )
    read_ids = tuple(
        row[0]
        for row in db.execute(
            "SELECT DISTINCT read_id FROM read_memories WHERE candidate_id = ? AND read_id IN "
            "(SELECT id FROM read_receipts) ORDER BY read_id",
            (candidate_id,),
        )
    )
    for receipt_id in (*(receipt_ids or ("",)), *read_ids):
        add_event(
            db,
            "forgotten",
            receipt_id=receipt_id,
            candidate_id=candidate_id,
            actor=actor,
            at=at,
            body=to_json({"reason": reason}),
        )
    # The triggers let these pass because the tombstones stand already.
    for receipt_id in receipt_ids:
        db.execute("DELETE FROM events WHERE receipt_id = ? AND kind <> 'forgotten'", (receipt_id,))
        db.execute("DELETE FROM receipts WHERE id = ?", (receipt_id,))
    db.execute("DELETE FROM extracted WHERE candidate_id = ?", (candidate_id,))
    db.execute("DELETE FROM decompositions WHERE candidate_id = ?", (candidate_id,))
    for read_id in read_ids:
        db.execute("DELETE FROM read_receipts WHERE id = ?", (read_id,))
        for table in ("read_places", "read_memories"):
            db.execute(f"DELETE FROM {table} WHERE read_id = ?", (read_id,))  # noqa: S608 - constants
    return Forgotten(candidate_id=candidate_id, receipt_ids=receipt_ids, read_ids=read_ids)


def candidate_of(db: sqlite3.Connection, which: str) -> str:
    """The candidate meant by an id of a candidate or a receipt, known or forgotten.

    Raises:
        InvalidInputError: If the log knows nothing of that id.
    """
    row = db.execute(
        """SELECT candidate_id FROM receipts WHERE candidate_id = :id
        UNION SELECT candidate_id FROM extracted WHERE candidate_id = :id
        UNION SELECT candidate_id FROM events
            WHERE kind = 'forgotten' AND (candidate_id = :id OR receipt_id = :id)
        LIMIT 1""",
        {"id": which},
    ).fetchone()
    return row[0] if row is not None else receipt_rows.get(db, which).candidate.id
