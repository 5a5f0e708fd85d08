"""Receipts as rows: writing decisions and reading them back, inside one transaction."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import ValidationError

from memguard.errors import ErrorCode, InvalidInputError, ReceiptError
from memguard.schema.base import Namespace
from memguard.schema.memory import MemoryRecord
from memguard.schema.receipt import Receipt, WriteOutcome
from memguard.stores.events import EventKind, add_event, events_of, moment, to_json
from memguard.stores.records import record_of

_NAMED = 5
"""Matches named when a prefix fits several receipts."""

_PLACED = frozenset({"stored", "quarantined"})
"""Outcomes whose candidate is, or may become, a record."""

_LAST = 2**63 - 1
"""The largest integer of SQLite."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReceiptFilter:
    """Which receipts; everything left out matches all."""

    namespace: Namespace = ()
    """The beginning of their namespace."""
    outcome: WriteOutcome | None = None
    """What became of the candidate."""
    run_id: str | None = None
    """The run they belong to."""
    candidate_id: str | None = None
    """The candidate they decide on."""
    since: datetime | None = None
    """The earliest time, itself included."""
    until: datetime | None = None
    """The latest time, itself left out."""

    def where(self) -> tuple[str, tuple[str, ...]]:
        """The condition in SQL, and the values that stand in it."""
        parts: list[str] = ["1"]
        values: list[str] = []
        for column in ("outcome", "run_id", "candidate_id"):
            value = getattr(self, column)
            if value is not None:
                parts.append(f"{column} = ?")
                values.append(value)
        for condition, at in time_conditions(self.since, self.until):
            parts.append(condition)
            values.append(at)
        if self.namespace:
            parts.append(
                "seq IN (SELECT seq FROM receipts WHERE namespace = ? "
                "UNION ALL SELECT seq FROM receipts WHERE namespace > ? AND namespace < ?)"
            )
            values.extend(namespace_bounds(self.namespace))
        return " AND ".join(parts), tuple(values)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReceiptPage:
    """Receipts, newest first."""

    receipts: tuple[Receipt, ...]
    """The receipts."""
    before: int | None
    """Give this to `list` for the next page; `None` on the last page."""


def time_conditions(since: datetime | None, until: datetime | None) -> Iterator[tuple[str, str]]:
    """The conditions of a half-open time window in SQL, each with the value that stands in it."""
    for sign, at in ((">=", since), ("<", until)):
        if at is not None:
            yield f"at {sign} ?", utc_text(at)


def namespace_bounds(namespace: Namespace) -> tuple[str, str, str]:
    """A namespace as the log writes it, and what all that lies below it stands between."""
    # Within JSON a longer namespace goes on with a comma, and "-" follows it in ASCII.
    whole = to_json(namespace)
    return whole, whole[:-1] + ",", whole[:-1] + "-"


def utc_text(at: datetime) -> str:
    """An instant as the log writes it; a naive time is read as UTC."""
    return moment((at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC))


def load(body: str) -> Receipt:
    """The receipt of a row.

    Raises:
        ReceiptError: If this version cannot read it.
    """
    try:
        return Receipt.model_validate_json(body)
    except ValidationError as error:
        version = json.loads(body).get("schema_version")
        msg = (
            f"cannot read a receipt of schema version {version!r}: {error}; it may be from a newer "
            "memguard, upgrade"
        )
        raise ReceiptError(msg, code=ErrorCode.RECEIPT_FAILED) from error


def record_decisions(
    db: sqlite3.Connection, receipts: Sequence[Receipt], *, actor: str, at: datetime
) -> tuple[Receipt, ...]:
    """Log decisions, with the intent to store what is admitted and the holding of what is doubted.

    A decision that the log knows is left as it is: a candidate is judged once under each policy.

    Args:
        db: The database, in a transaction.
        receipts: The decisions.
        actor: Who brings them.
        at: When.

    Returns:
        For each decision the receipt in the log, which may be an earlier one on the same candidate
        under the same policy.

    Raises:
        ReceiptError: If the id of a receipt is that of another decision, or of a forgotten one.
    """
    return tuple(_record(db, receipt, actor=actor, at=at) for receipt in receipts)


def _record(db: sqlite3.Connection, receipt: Receipt, *, actor: str, at: datetime) -> Receipt:
    placed = receipt.outcome in _PLACED and receipt.effect != "shadow"
    record = record_of(receipt) if placed else None
    if record is not None and receipt.outcome == "stored" and not receipt.record_key:
        receipt = receipt.model_copy(update={"record_key": record.key})
    candidate_id = receipt.candidate.id
    logged = _known(db, receipt, candidate_id=candidate_id)
    if logged is not None:
        return logged
    db.execute(
        "INSERT INTO receipts (id, candidate_id, policy_digest, namespace, record_key, outcome, "
        "reason, at, run_id, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            receipt.id,
            candidate_id,
            receipt.policy_digest,
            to_json(receipt.namespace),
            receipt.record_key if record is None else record.key,
            receipt.outcome,
            receipt.decision.reason,
            utc_text(receipt.at),
            receipt.run_id,
            receipt.model_dump_json(),
        ),
    )
    _begin_life(db, receipt, record, candidate_id=candidate_id, actor=actor, at=at)
    return receipt


def _begin_life(
    db: sqlite3.Connection,
    receipt: Receipt,
    record: MemoryRecord | None,
    *,
    candidate_id: str,
    actor: str,
    at: datetime,
) -> None:
    events: list[tuple[EventKind, str]] = [("decided", "{}")]
    if record is not None and receipt.outcome == "stored" and receipt.effect == "commit":
        events.append(("intended", f'{{"record":{record.model_dump_json()}}}'))
    elif record is not None and receipt.outcome == "quarantined":
        events.append(("held", "{}"))
    for kind, body in events:
        add_event(
            db,
            kind,
            receipt_id=receipt.id,
            candidate_id=candidate_id,
            actor=actor,
            at=at,
            body=body,
        )


def _known(db: sqlite3.Connection, receipt: Receipt, *, candidate_id: str) -> Receipt | None:
    row = db.execute("SELECT body FROM receipts WHERE id = ?", (receipt.id,)).fetchone()
    if row is not None:
        # As JSON, because a NaN among the evidence is logged as null.
        if row[0] == receipt.model_dump_json():
            return load(row[0])
        msg = (
            f"receipt {receipt.id!r} is in the log with other content; give each decision an id "
            "of its own"
        )
        raise ReceiptError(msg, code=ErrorCode.RECEIPT_FAILED)
    if any(event.kind == "forgotten" for event in events_of(db, receipt.id)):
        msg = (
            f"receipt {receipt.id!r} was forgotten and cannot come back; decide anew under a new id"
        )
        raise ReceiptError(msg, code=ErrorCode.RECEIPT_FAILED)
    return find(db, candidate_id, receipt.policy_digest)


def find(db: sqlite3.Connection, candidate_id: str, policy_digest: str) -> Receipt | None:
    """The decision on a candidate under a policy, if it was taken already."""
    row = db.execute(
        "SELECT body FROM receipts WHERE candidate_id = ? AND policy_digest = ?",
        (candidate_id, policy_digest),
    ).fetchone()
    return None if row is None else load(row[0])


def find_all(
    db: sqlite3.Connection, candidate_ids: Sequence[str], policy_digest: str
) -> dict[str, Receipt]:
    """The decisions on these candidates under a policy, by candidate id."""
    rows = db.execute(
        "SELECT candidate_id, body FROM receipts WHERE policy_digest = ? "
        "AND candidate_id IN (SELECT value FROM json_each(?))",
        (policy_digest, to_json(list(candidate_ids))),
    )
    return {candidate_id: load(body) for candidate_id, body in rows}


def page(
    db: sqlite3.Connection,
    which: ReceiptFilter,
    *,
    limit: int,
    before: int | None,
    also: str = "1",
) -> ReceiptPage:
    """Receipts, newest first; `also` is a further condition in SQL."""
    condition, values = which.where()
    rows = db.execute(
        f"SELECT seq, body FROM receipts WHERE {condition} AND {also} AND seq < ? "  # noqa: S608 - constants
        "ORDER BY seq DESC LIMIT ?",
        (*values, _LAST if before is None else before, limit + 1),
    ).fetchall()
    visible = rows[:limit]
    return ReceiptPage(
        receipts=tuple(load(body) for _, body in visible),
        before=visible[-1][0] if visible and len(rows) > limit else None,
    )


def count(db: sqlite3.Connection, which: ReceiptFilter) -> dict[WriteOutcome, int]:
    """How many receipts there are of each outcome; an outcome without any is left out."""
    condition, values = which.where()
    rows = db.execute(
        f"SELECT outcome, count(*) FROM receipts WHERE {condition} "  # noqa: S608 - constants
        "GROUP BY outcome ORDER BY outcome",
        values,
    )
    return dict(rows.fetchall())


def get(db: sqlite3.Connection, receipt_id: str) -> Receipt:
    """The receipt with this id, or the only one whose id begins so.

    Raises:
        InvalidInputError: If there is none, or more than one.
    """
    row = db.execute("SELECT body FROM receipts WHERE id = ?", (receipt_id,)).fetchone()
    if row is not None:
        return load(row[0])
    rows = db.execute(
        "SELECT id, body FROM receipts WHERE id > ? AND id < ? ORDER BY id LIMIT ?",
        (receipt_id, receipt_id + "\U0010ffff", _NAMED + 1),
    ).fetchall()
    if len(rows) == 1:
        return load(rows[0][1])
    if rows:
        names = ", ".join(repr(ids) for ids, _ in rows[:_NAMED])
        more = " and more" if len(rows) > _NAMED else ""
        msg = f"{receipt_id!r} fits {names}{more}; give more of the id"
        raise _not_found(msg)
    tomb = [event for event in events_of(db, receipt_id) if event.kind == "forgotten"]
    if tomb:
        msg = (
            f"receipt {receipt_id!r} was forgotten at {tomb[0].at.isoformat()} by "
            f"{tomb[0].actor!r}; its content is gone"
        )
        raise _not_found(msg)
    msg = f"no receipt has the id {receipt_id!r}; `memguard receipts list` shows all"
    raise _not_found(msg)


def _not_found(message: str) -> InvalidInputError:
    return InvalidInputError(message, code=ErrorCode.RECEIPT_NOT_FOUND)
