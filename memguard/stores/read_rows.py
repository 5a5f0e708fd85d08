"""Receipts of reads as rows: writing them and reading them back, inside one transaction."""

import json
import sqlite3
from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError

from memguard.errors import ErrorCode, InvalidInputError, ReceiptError
from memguard.schema.base import Namespace
from memguard.schema.ledger import ReadReport
from memguard.stores.events import events_of, to_json
from memguard.stores.receipt_rows import namespace_bounds, time_conditions, utc_text

_NAMED = 5
"""Matches named when a prefix fits several receipts."""

_LAST = 2**63 - 1
"""The largest integer of SQLite."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadFilter:
    """Which reads; everything left out matches all."""

    namespace: Namespace = ()
    """The beginning of a namespace that was read."""
    run_id: str | None = None
    """The run they belong to."""
    since: datetime | None = None
    """The earliest time, itself included."""
    until: datetime | None = None
    """The latest time, itself left out."""

    def where(self) -> tuple[str, tuple[str, ...]]:
        """The condition in SQL, and the values that stand in it."""
        parts: list[str] = ["1"]
        values: list[str] = []
        if self.run_id is not None:
            parts.append("run_id = ?")
            values.append(self.run_id)
        for condition, at in time_conditions(self.since, self.until):
            parts.append(condition)
            values.append(at)
        if self.namespace:
            parts.append(
                "id IN (SELECT read_id FROM read_places WHERE namespace = ? "
                "OR (namespace > ? AND namespace < ?))"
            )
            values.extend(namespace_bounds(self.namespace))
        return " AND ".join(parts), tuple(values)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadPage:
    """Reads, newest first."""

    reads: tuple[ReadReport, ...]
    """The receipts."""
    before: int | None
    """Give this to `list` for the next page; `None` on the last page."""


def add(db: sqlite3.Connection, report: ReadReport) -> None:
    """Log a read; the same one again changes nothing.

    Raises:
        ReceiptError: If the id is that of another read.
    """
    body = report.model_dump_json()
    row = db.execute("SELECT body FROM read_receipts WHERE id = ?", (report.id,)).fetchone()
    if row is not None:
        if row[0] == body:
            return
        msg = (
            f"read {report.id!r} is in the log with other content; give each read an id of its own"
        )
        raise ReceiptError(msg, code=ErrorCode.RECEIPT_FAILED)
    db.execute(
        "INSERT INTO read_receipts (id, at, run_id, body) VALUES (?, ?, ?, ?)",
        (report.id, utc_text(report.at), report.run_id, body),
    )
    db.executemany(
        "INSERT INTO read_places (read_id, namespace) VALUES (?, ?)",
        [(report.id, to_json(namespace)) for namespace in dict.fromkeys(report.namespaces)],
    )
    # What a later forgetting finds this receipt by.
    db.executemany(
        "INSERT INTO read_memories (read_id, candidate_id) VALUES (?, ?)",
        [(report.id, candidate_id) for candidate_id in _candidates(report)],
    )


def get(db: sqlite3.Connection, read_id: str) -> ReadReport:
    """The read with this id, or the only one whose id begins so.

    Raises:
        InvalidInputError: If there is none, or more than one.
    """
    ids = matching(db, read_id)
    if len(ids) == 1:
        body = db.execute("SELECT body FROM read_receipts WHERE id = ?", ids).fetchone()[0]
        return load(body)
    if ids:
        names = ", ".join(repr(match) for match in ids[:_NAMED])
        more = " and more" if len(ids) > _NAMED else ""
        msg = f"{read_id!r} fits {names}{more}; give more of the id"
        raise _not_found(msg)
    tomb = [event for event in events_of(db, read_id) if event.kind == "forgotten"]
    if tomb:
        msg = (
            f"read {read_id!r} was erased at {tomb[0].at.isoformat()} by {tomb[0].actor!r}, "
            "together with a memory that it had recalled"
        )
        raise _not_found(msg)
    msg = f"no receipt has the id {read_id!r}; `memguard receipts list` shows all"
    raise _not_found(msg)


def matching(db: sqlite3.Connection, read_id: str) -> tuple[str, ...]:
    """The id itself if there is such a read, else the ids that begin so, a few of them."""
    if db.execute("SELECT 1 FROM read_receipts WHERE id = ?", (read_id,)).fetchone() is not None:
        return (read_id,)
    rows = db.execute(
        "SELECT id FROM read_receipts WHERE id > ? AND id < ? ORDER BY id LIMIT ?",
        (read_id, read_id + "\U0010ffff", _NAMED + 1),
    )
    return tuple(row[0] for row in rows)


def page(db: sqlite3.Connection, which: ReadFilter, *, limit: int, before: int | None) -> ReadPage:
    """Reads, newest first."""
    condition, values = which.where()
    rows = db.execute(
        f"SELECT seq, body FROM read_receipts WHERE {condition} AND seq < ? "  # noqa: S608 - constants
        "ORDER BY seq DESC LIMIT ?",
        (*values, _LAST if before is None else before, limit + 1),
    ).fetchall()
    visible = rows[:limit]
    return ReadPage(
        reads=tuple(load(body) for _, body in visible),
        before=visible[-1][0] if visible and len(rows) > limit else None,
    )


def count(db: sqlite3.Connection, which: ReadFilter) -> int:
    """How many reads there are."""
    condition, values = which.where()
    statement = f"SELECT count(*) FROM read_receipts WHERE {condition}"  # noqa: S608 - constants
    return int(db.execute(statement, values).fetchone()[0])


def load(body: str) -> ReadReport:
    """The read of a row.

    Raises:
        ReceiptError: If this version cannot read it.
    """
    try:
        return ReadReport.model_validate_json(body)
    except ValidationError as error:
        version = json.loads(body).get("schema_version")
        msg = (
            f"cannot read the receipt of a read of schema version {version!r}: {error}; it may be "
            "from a newer memguard, upgrade"
        )
        raise ReceiptError(msg, code=ErrorCode.RECEIPT_FAILED) from error


def _candidates(report: ReadReport) -> list[str]:
    provenances = (memory.provenance for memory in report.memories)
    return list(
        dict.fromkeys(
            provenance.candidate_id for provenance in provenances if provenance is not None
        )
    )


def _not_found(message: str) -> InvalidInputError:
    return InvalidInputError(message, code=ErrorCode.RECEIPT_NOT_FOUND)
