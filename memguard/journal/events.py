"""The events of each decision, and its state, which follows from the last of them.

```text
decided ─┬─ intended ── stored ── delete_intended ── deleted ─┐
         ├─ allowed ─── stored                                ├─ forgotten
         ├─ change_intended ── changed ───────────────────────┤
         └─ held ─┬─ release_intended ── released ── ...      │
                  └─ discarded ───────────────────────────────┘
```

`intended` and `release_intended` carry the whole record, and the changes of other memories, so that
a write that was interrupted at any point can be redone from the log alone. `change_intended` is for
a decision with changes alone. `allowed` carries no record: the caller of a guarded store makes the
write. After `stored` or `released`, a memory that is not in the store is `missing`, and becomes
`restored` if it is stored again from the log.

One `marking` event per changed memory lets the log find the decisions on it. `change_lost` has the
changes that another process prevented.

`Rows` and `RowFilter` read the documents of decisions and of reads, each from a table of its own.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Literal, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from memguard.errors import ErrorCode, InvalidInputError, ReceiptError
from memguard.schema.base import Frozen, Namespace
from memguard.schema.memory import MemoryRecord
from memguard.schema.relations import RecordChange

M = TypeVar("M", bound=BaseModel)

EventKind = Literal[
    "decided",
    "marking",
    "intended",
    "change_intended",
    "allowed",
    "change_lost",
    "stored",
    "changed",
    "held",
    "release_intended",
    "released",
    "discarded",
    "delete_intended",
    "deleted",
    "missing",
    "restored",
    "forgotten",
]
"""What happened to a decision; each kind happens to a receipt at most once."""

State = Literal[
    "logged",
    "pending",
    "stored",
    "held",
    "releasing",
    "released",
    "discarded",
    "deleting",
    "deleted",
    "missing",
    "forgotten",
]
"""The state of a decision.

* `logged`: nothing is to be stored.
* `pending`, `releasing`: its memory or its changes are about to be stored, or that was interrupted.
* `stored`, `released`: its memory and its changes are in the store, and were read back from there.
* `held`, `discarded`: its candidate is in quarantine, or was discarded from it.
* `deleting`, `deleted`: its memory is about to be removed from the store on purpose, or was.
* `missing`: its memory is not in the store, although nobody deleted it through memguard.
* `forgotten`: its text was erased from the log as well.
"""

STATE_AFTER: MappingProxyType[EventKind, State] = MappingProxyType(
    {
        "decided": "logged",
        "marking": "logged",
        "intended": "pending",
        "change_intended": "pending",
        "allowed": "pending",
        # The end of the intent follows in the same transaction.
        "change_lost": "pending",
        "stored": "stored",
        "changed": "stored",
        "held": "held",
        "release_intended": "releasing",
        "released": "released",
        "discarded": "discarded",
        "delete_intended": "deleting",
        "deleted": "deleted",
        "missing": "missing",
        "restored": "stored",
        "forgotten": "forgotten",
    }
)
"""The state that an event leads to."""

DONE_BY: MappingProxyType[EventKind, EventKind] = MappingProxyType(
    {"intended": "stored", "release_intended": "released", "change_intended": "changed"}
)
"""The event that ends an intent."""

_SELECT = "SELECT seq, receipt_id, candidate_id, kind, actor, at, body FROM events"
# Ids listed in the error when the beginning of an id matches several rows.
_MAX_MATCHES = 5
# The largest integer of SQLite.
_LAST_ROW = 2**63 - 1


class JournalEvent(Frozen):
    """One entry of the log."""

    seq: int
    """Its position in the log."""
    receipt_id: str
    """The decision; empty for a candidate that was forgotten before any decision on it."""
    candidate_id: str
    """The candidate; for `marking`, a digest of the namespace and key of the memory."""
    kind: EventKind
    """What happened."""
    actor: str
    """Who did it."""
    at: datetime
    """When, in UTC."""
    body: dict[str, JsonValue]
    """The record of an intent; the reason for a deletion; the minutes that a stored item lives."""


class Intent(Frozen):
    """What a decision is to do in the memory store."""

    receipt_id: str
    """The decision."""
    candidate_id: str
    """The candidate that was decided on."""
    kind: EventKind
    """`intended`, `release_intended` or `change_intended`."""
    record: MemoryRecord | None = None
    """What is to be stored; `None` if the decision only changes other memories."""
    changes: tuple[RecordChange, ...] = ()
    """The changes of other memories, which follow once the record is stored."""
    reason: str = ""
    """The reason, if a person released it."""


def utc_text(at: datetime) -> str:
    """A time as text of the log; a naive time is read as UTC."""
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    # Rows are compared and sorted as text, so all have the same offset and number of digits:
    # "…:05.5" would sort after "…:05.123".
    return aware.astimezone(UTC).isoformat(timespec="microseconds")


def to_json(value: object) -> str:
    """JSON without white space."""
    # ASCII escapes, because SQLite cannot store the unpaired surrogates of a caller's strings.
    return json.dumps(value, separators=(",", ":"))


def add_event(
    db: sqlite3.Connection,
    kind: EventKind,
    receipt_id: str,
    candidate_id: str,
    *,
    actor: str,
    at: datetime,
    body: str = "{}",
) -> bool:
    """Log an event; returns `False` if it is in the log already."""
    # A repeated event is ignored by a trigger, and then no row has changed.
    cursor = db.execute(
        "INSERT INTO events (receipt_id, candidate_id, kind, actor, at, body) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (receipt_id, candidate_id, kind, actor, utc_text(at), body),
    )
    return cursor.rowcount > 0


def pending_intents(
    db: sqlite3.Connection,
    *,
    receipt_ids: Sequence[str] | None = None,
    after: int = 0,
    limit: int = -1,
) -> tuple[tuple[int, Intent], ...]:
    """The intents that are not fulfilled, oldest first, each with its position in the log.

    Only those of `receipt_ids` if these are given, and those after the position `after`. The
    changes of a guarded store's caller are pending once the caller's own write was made.
    """
    condition = ""
    values: list[Any] = [after]
    if receipt_ids is not None:
        # One JSON list instead of a variable per id: SQLite limits the number of variables.
        condition = "AND intent.receipt_id IN (SELECT value FROM json_each(?))"
        values.append(to_json(list(receipt_ids)))
    rows = db.execute(
        f"""SELECT intent.seq, intent.receipt_id, intent.candidate_id, intent.kind, intent.body
        FROM events AS intent
        WHERE intent.kind IN ('intended', 'release_intended', 'change_intended')
        AND intent.seq > ? {condition}
        AND NOT EXISTS (SELECT 1 FROM events AS done
            WHERE done.receipt_id = intent.receipt_id AND done.kind = CASE intent.kind
            WHEN 'intended' THEN 'stored' WHEN 'release_intended' THEN 'released'
            ELSE 'changed' END)
        AND NOT (intent.kind = 'change_intended' AND EXISTS (SELECT 1 FROM events AS allowed
            WHERE allowed.receipt_id = intent.receipt_id AND allowed.kind = 'allowed')
            AND NOT EXISTS (SELECT 1 FROM events AS put
            WHERE put.receipt_id = intent.receipt_id AND put.kind = 'stored'))
        AND NOT EXISTS (SELECT 1 FROM events AS deletion
            WHERE deletion.receipt_id = intent.receipt_id
            AND deletion.kind IN ('delete_intended', 'deleted'))
        ORDER BY intent.seq LIMIT ?""",  # noqa: S608 - the only insertion is the constant above
        (*values, limit),
    )
    return tuple(
        (
            seq,
            Intent.model_validate(
                {
                    "receipt_id": receipt,
                    "candidate_id": candidate,
                    "kind": kind,
                    **json.loads(body),
                }
            ),
        )
        for seq, receipt, candidate, kind, body in rows
    )


def pending_receipts(db: sqlite3.Connection, kind: EventKind) -> tuple[str, ...]:
    """The receipts whose last event is of this kind, oldest first."""
    rows = db.execute(
        """SELECT receipt_id FROM events AS latest WHERE kind = ? AND NOT EXISTS (SELECT 1
            FROM events WHERE receipt_id = latest.receipt_id AND seq > latest.seq) ORDER BY seq""",
        (kind,),
    )
    return tuple(row[0] for row in rows)


def events_of(db: sqlite3.Connection, receipt_id: str) -> tuple[JournalEvent, ...]:
    """The events of a decision, in order."""
    rows = db.execute(f"{_SELECT} WHERE receipt_id = ? ORDER BY seq", (receipt_id,))
    return tuple(map(_event, rows))


def events_after(db: sqlite3.Connection, seq: int, *, limit: int) -> tuple[JournalEvent, ...]:
    """The events after a position in the log, in order."""
    rows = db.execute(f"{_SELECT} WHERE seq > ? ORDER BY seq LIMIT ?", (seq, limit))
    return tuple(map(_event, rows))


def state_of(db: sqlite3.Connection, receipt_id: str) -> State | None:
    """The state of a decision; `None` if it is not in the log."""
    row = db.execute(
        "SELECT kind FROM events WHERE receipt_id = ? ORDER BY seq DESC LIMIT 1", (receipt_id,)
    ).fetchone()
    return None if row is None else STATE_AFTER[row[0]]


def live_states(events: Iterable[JournalEvent]) -> dict[str, State]:
    """The state of every decision after these events, by receipt id."""
    # A later event of the same receipt replaces an earlier one.
    return {event.receipt_id: STATE_AFTER[event.kind] for event in events if event.receipt_id}


def _event(row: tuple[Any, ...]) -> JournalEvent:
    seq, receipt_id, candidate_id, kind, actor, at, body = row
    return JournalEvent(
        seq=seq,
        receipt_id=receipt_id,
        candidate_id=candidate_id,
        kind=kind,
        actor=actor,
        at=datetime.fromisoformat(at),
        body=json.loads(body),
    )


# -- rows of documents ------------------------------------------------------------------------


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
