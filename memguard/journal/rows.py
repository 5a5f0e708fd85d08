"""What the log of decisions and the log of reads have in common: filters, pages and look-ups.

Both logs store one JSON document per row, in chronological order. Both can be searched by the
beginning of an id, by run, by namespace and by time window.
"""

import json
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from memguard.errors import ErrorCode, InvalidInputError, ReceiptError
from memguard.journal.events import events_of, moment, to_json
from memguard.schema.base import Namespace

M = TypeVar("M", bound=BaseModel)

_MAX_MATCHES = 5
"""Ids listed in the error when the beginning of an id matches several rows."""

_LAST_ROW = 2**63 - 1
"""The largest integer of SQLite."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RowFilter:
    """Conditions that the rows of a log must meet; a condition that is left out matches all."""

    columns: ClassVar[tuple[str, ...]] = ("run_id",)
    """Fields that are compared with the column of the same name."""
    in_namespace: ClassVar[str]
    """The SQL condition of a namespace, with slots for the values of `namespace_bounds`."""

    namespace: Namespace = ()
    """The beginning of a namespace that the row belongs to."""
    run_id: str | None = None
    """The run that the row belongs to."""
    since: datetime | None = None
    """The earliest time, inclusive."""
    until: datetime | None = None
    """The latest time, exclusive."""

    def where(self) -> tuple[str, tuple[str, ...]]:
        """The condition in SQL, and the values of its slots."""
        # "1" is true, so that a filter without any condition is valid SQL as well.
        parts = ["1"]
        values: list[str] = []
        for column in self.columns:
            value = getattr(self, column)
            if value is not None:
                parts.append(f"{column} = ?")
                values.append(value)
        for sign, at in ((">=", self.since), ("<", self.until)):
            if at is not None:
                parts.append(f"at {sign} ?")
                values.append(utc_text(at))
        if self.namespace:
            parts.append(self.in_namespace)
            values.extend(namespace_bounds(self.namespace))
        return " AND ".join(parts), tuple(values)


def namespace_bounds(namespace: Namespace) -> tuple[str, str, str]:
    """A namespace as text of the log, and the exclusive bounds of the namespaces below it."""
    # Within JSON a longer namespace continues with a comma, and "-" follows the comma in ASCII.
    whole = to_json(namespace)
    return whole, whole[:-1] + ",", whole[:-1] + "-"


def utc_text(at: datetime) -> str:
    """A time as text of the log; a naive time is read as UTC."""
    # Rows are compared and sorted as text, so all must have the same offset.
    return moment((at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC))


@dataclass(frozen=True, kw_only=True, slots=True)
class Rows(Generic[M]):
    """The rows of one log, each a document of one model."""

    table: str
    """The table; it has the columns `seq`, `id` and `body`."""
    model: type[M]
    """The model of a document."""
    noun: str
    """What messages call a row: `receipt` or `read`."""
    erasure: str
    """How messages describe the erasure of a row, with the slots `{at}` and `{actor}`."""

    def load(self, body: str) -> M:
        """Parse the document of a row.

        Raises:
            ReceiptError: If this version cannot read it.
        """
        try:
            return self.model.model_validate_json(body)
        except ValidationError as error:
            version = json.loads(body).get("schema_version")
            msg = (
                f"cannot read a {self.noun} of schema version {version!r}: {error}; it may be from "
                "a newer memguard, upgrade"
            )
            raise ReceiptError(msg, code=ErrorCode.RECEIPT_FAILED) from error

    def logged(self, db: sqlite3.Connection, document_id: str, body: str) -> M | None:
        """The document with this id and content, if it is in the log.

        Raises:
            ReceiptError: If the id is in the log with other content.
        """
        row = self._body(db, document_id)
        if row is None:
            return None
        # Compared as JSON, because a NaN among the evidence is logged as null.
        if row == body:
            return self.load(row)
        msg = (
            f"{self.noun} {document_id!r} is in the log with other content; give each "
            f"{self.noun} its own id"
        )
        raise ReceiptError(msg, code=ErrorCode.RECEIPT_FAILED)

    def matching(self, db: sqlite3.Connection, prefix: str) -> tuple[str, ...]:
        """The id itself if it is in the log, else up to six ids that begin with it."""
        if self._body(db, prefix) is not None:
            return (prefix,)
        # A range and not LIKE: "%" and "_" in the prefix stand for themselves.
        rows = db.execute(
            f"SELECT id FROM {self.table} WHERE id > ? AND id < ? ORDER BY id LIMIT ?",  # noqa: S608 - constants
            (prefix, prefix + "\U0010ffff", _MAX_MATCHES + 1),
        )
        return tuple(row[0] for row in rows)

    def get(self, db: sqlite3.Connection, prefix: str) -> M:
        """The document with this id, or the only one whose id begins with it.

        Raises:
            InvalidInputError: If no document matches, or more than one.
        """
        ids = self.matching(db, prefix)
        if len(ids) == 1:
            return self.load(self._body(db, ids[0]) or "")
        erasures = [event for event in events_of(db, prefix) if event.kind == "forgotten"]
        if ids:
            names = ", ".join(repr(name) for name in ids[:_MAX_MATCHES])
            more = " and more" if len(ids) > _MAX_MATCHES else ""
            msg = f"{prefix!r} fits {names}{more}; give more of the id"
        elif erasures:
            at, actor = erasures[0].at.isoformat(), repr(erasures[0].actor)
            msg = f"{self.noun} {prefix!r} was {self.erasure.format(at=at, actor=actor)}"
        else:
            msg = f"no receipt has the id {prefix!r}; `memguard receipts list` shows all"
        raise InvalidInputError(msg, code=ErrorCode.RECEIPT_NOT_FOUND)

    def page(
        self,
        db: sqlite3.Connection,
        condition: str,
        values: tuple[str, ...],
        *,
        limit: int,
        before: int | None,
    ) -> tuple[tuple[M, ...], int | None]:
        """Documents that meet an SQL condition, newest first, and where the next page begins."""
        rows = db.execute(
            f"SELECT seq, body FROM {self.table} WHERE {condition} AND seq < ? "  # noqa: S608 - constants
            "ORDER BY seq DESC LIMIT ?",
            (*values, _LAST_ROW if before is None else before, limit + 1),
        ).fetchall()
        # One row more than asked for tells whether there is a next page.
        visible = rows[:limit]
        following = visible[-1][0] if visible and len(rows) > limit else None
        return tuple(self.load(body) for _, body in visible), following

    def _body(self, db: sqlite3.Connection, document_id: str) -> str | None:
        statement = f"SELECT body FROM {self.table} WHERE id = ?"  # noqa: S608 - a constant
        row = db.execute(statement, (document_id,)).fetchone()
        return None if row is None else row[0]
