"""Erases from the log what a forgetting concerns, and keeps the receipts of forgettings.

A forgetting is logged before anything changes, with what was selected, so that `recover` completes
it. The selection is erased together with the rest; what stays is who, when, why, and how much.
"""

import json
import sqlite3
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memguard.journal.erasure import drop_index, erase_text
from memguard.journal.events import add_event, to_json, utc_text
from memguard.journal.traces import ItemText, Traces, find_traces
from memguard.schema.forgetting import ForgetSelection, ForgettingReceipt

ForgettingState = Literal["started", "erased", "done"]
"""How far a forgetting is: `erased` if the log has no text any more, and only the bytes that the
store keeps of deleted items remain."""

_CHECKPOINT_SECONDS = 10.0
_INTENTS = "('intended', 'release_intended', 'change_intended')"


@dataclass(frozen=True, kw_only=True, slots=True)
class UnfinishedForgetting:
    """A forgetting that was interrupted."""

    id: str
    actor: str
    reason: str
    state: ForgettingState
    selection: ForgetSelection | None
    """What was selected; `None` once the log was erased."""
    last_receipt: int
    """The position of the last receipt when it was started."""
    at: datetime
    """When it was started."""


def start_forgetting(
    db: sqlite3.Connection,
    selection: ForgetSelection,
    items: Sequence[ItemText],
    *,
    actor: str,
    reason: str,
    at: datetime,
) -> tuple[str, Traces]:
    """Log that a forgetting begins, and keep `recover` from storing what is to be forgotten."""
    traces = find_traces(db, selection, items)
    reason = erase_text(reason, traces.quotes)
    forgetting_id = uuid.uuid4().hex
    last = db.execute("SELECT max(seq) FROM receipts").fetchone()[0] or 0
    body = to_json({"selection": selection.model_dump(mode="json"), "last_receipt": last})
    db.execute(
        "INSERT INTO forgettings (id, actor, reason, at, state, body) VALUES (?, ?, ?, ?, ?, ?)",
        (forgetting_id, actor, reason, utc_text(at), "started", body),
    )
    rows = db.execute(
        "SELECT DISTINCT receipt_id, candidate_id FROM events "  # noqa: S608 - a constant
        f"WHERE kind IN {_INTENTS} AND receipt_id IN (SELECT value FROM json_each(?))",
        (to_json(list(traces.receipts.values())),),
    ).fetchall()
    for receipt_id, candidate_id in rows:
        add_event(db, "delete_intended", receipt_id, candidate_id, actor=actor, at=at)
    return forgetting_id, traces


def erase_traces(
    db: sqlite3.Connection,
    forgetting_id: str,
    selection: ForgetSelection,
    items: Sequence[ItemText],
    *,
    counts: Mapping[str, int],
    last_receipt: int | None = None,
) -> Traces:
    """Erase what a forgetting concerns from the log, and its selection; the counts stay."""
    traces = find_traces(db, selection, items, last_receipt=last_receipt)
    actor, reason, at = db.execute(
        "SELECT actor, reason, at FROM forgettings WHERE id = ?", (forgetting_id,)
    ).fetchone()
    _name_rows(db, forgetting_id, traces)
    body = to_json({"reason": reason, "forgetting": forgetting_id})
    for document_id in (*traces.receipts.values(), *traces.reads.values()):
        # Without the id of the candidate, which is a digest of its text.
        add_event(
            db,
            "forgotten",
            document_id,
            f"forgotten-{document_id}",
            actor=actor,
            at=datetime.fromisoformat(at),
            body=body,
        )
    _delete(db, "events", traces.events)
    _delete(db, "receipts", traces.receipts)
    # Before their side tables: their triggers refuse a deletion while the read exists.
    _delete(db, "read_receipts", traces.reads)
    read_ids = to_json(list(traces.reads.values()))
    for table in ("read_places", "read_memories"):
        db.execute(
            f"DELETE FROM {table} WHERE read_id IN (SELECT value FROM json_each(?))",  # noqa: S608 - constants
            (read_ids,),
        )
    chunks = to_json(traces.extractions)
    for table in ("reads", "extracted"):
        db.execute(
            f"DELETE FROM {table} WHERE extraction IN (SELECT value FROM json_each(?))",  # noqa: S608 - constants
            (chunks,),
        )
    _delete(db, "extractions", traces.extractions)
    _delete(db, "decompositions", traces.decompositions)
    for (table, seq), document in traces.rewrites.items():
        db.execute(f"UPDATE {table} SET body = ? WHERE seq = ?", (document, seq))  # noqa: S608 - constants
    numbers = {**counts_of(traces), **counts}
    _set_state(db, forgetting_id, "erased", body=to_json({"counts": numbers}))
    return traces


def end_forgetting(db: sqlite3.Connection, forgetting_id: str) -> None:
    """Log that a forgetting is complete; from then on no row may be erased in its name."""
    drop_index()
    _set_state(db, forgetting_id, "done")


def erase_from_log(
    db: sqlite3.Connection, selection: ForgetSelection, *, actor: str, reason: str, at: datetime
) -> Traces:
    """A whole forgetting that leaves the store as it is."""
    forgetting_id, _ = start_forgetting(db, selection, (), actor=actor, reason=reason, at=at)
    traces = erase_traces(db, forgetting_id, selection, (), counts={})
    end_forgetting(db, forgetting_id)
    return traces


def counts_of(traces: Traces) -> dict[str, int]:
    """How much is erased from the log, by the names of `ForgetReport`."""
    return {
        "receipts": len(traces.receipts),
        "quarantined": traces.quarantined,
        "reads": len(traces.reads),
        "extractions": len(traces.extractions),
        "decompositions": len(traces.decompositions),
        "quotes": len({seq for source, seq in traces.rewrites if source == "receipts"}),
    }


def unfinished_forgettings(db: sqlite3.Connection) -> tuple[UnfinishedForgetting, ...]:
    """The forgettings that were interrupted, oldest first."""
    rows = db.execute(
        "SELECT id, actor, reason, at, state, body FROM forgettings "
        "WHERE state IN ('started', 'erased') ORDER BY seq"
    )
    unfinished: list[UnfinishedForgetting] = []
    for forgetting_id, actor, reason, at, state, body in rows:
        document = json.loads(body)
        selection = document.get("selection")
        unfinished.append(
            UnfinishedForgetting(
                id=forgetting_id,
                actor=actor,
                reason=reason,
                state=state,
                selection=None if selection is None else ForgetSelection.model_validate(selection),
                last_receipt=document.get("last_receipt", 0),
                at=datetime.fromisoformat(at),
            )
        )
    return tuple(unfinished)


def forgetting_receipts(db: sqlite3.Connection) -> tuple[ForgettingReceipt, ...]:
    """The receipts of all forgettings, newest first."""
    rows = db.execute(
        "SELECT id, at, actor, reason, state, body FROM forgettings ORDER BY seq DESC"
    )
    return tuple(
        ForgettingReceipt(
            id=forgetting_id,
            at=datetime.fromisoformat(at),
            actor=actor,
            reason=reason,
            is_done=state == "done",
            counts=json.loads(body).get("counts", {}),
        )
        for forgetting_id, at, actor, reason, state, body in rows
    )


def compact(db: sqlite3.Connection) -> bool:
    """Rewrite the file and empty its write-ahead log, where erased text could remain.

    `secure_delete` overwrites what is deleted, but not every copy that SQLite makes when it moves
    rows between pages. Not within a transaction.

    Returns:
        Whether the write-ahead log is empty; not while another process reads the file.
    """
    db.execute("VACUUM")
    deadline = time.monotonic() + _CHECKPOINT_SECONDS
    while True:
        is_busy = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if not is_busy or time.monotonic() > deadline:
            return not is_busy
        time.sleep(0.05)


def _name_rows(db: sqlite3.Connection, forgetting_id: str, traces: Traces) -> None:
    """Name the rows that the triggers are to let through."""
    rows: list[tuple[str, str, str, int]] = []
    tables: Mapping[str, Iterable[int]] = {
        "receipts": traces.receipts,
        "events": traces.events,
        "read_receipts": traces.reads,
        "extractions": traces.extractions,
    }
    for source, seqs in tables.items():
        rows += [(forgetting_id, "delete", source, seq) for seq in seqs]
    rows += [(forgetting_id, "rewrite", source, seq) for source, seq in traces.rewrites]
    db.executemany("INSERT INTO erasures (forgetting, kind, source, row) VALUES (?, ?, ?, ?)", rows)


def _delete(db: sqlite3.Connection, table: str, seqs: Iterable[int]) -> None:
    db.execute(
        f"DELETE FROM {table} WHERE seq IN (SELECT value FROM json_each(?))",  # noqa: S608 - constants
        (to_json(list(seqs)),),
    )


def _set_state(
    db: sqlite3.Connection, forgetting_id: str, state: ForgettingState, *, body: str | None = None
) -> None:
    db.execute(
        "UPDATE forgettings SET state = ?, body = coalesce(?, body) WHERE id = ?",
        (state, body, forgetting_id),
    )
