"""The events of each decision, and its state, which follows from the last of them.

```text
decided ── intended ── stored ── deleted ─┐
   │                                      ├─ forgotten
   └────── held ─┬─ release_intended ── released ── deleted
                 └─ discarded
```

`intended` and `release_intended` carry the whole record, so that a write that was interrupted at
any point can be redone from the log alone.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal

from pydantic import JsonValue

from memguard.schema.base import Frozen
from memguard.schema.memory import MemoryRecord

EventKind = Literal[
    "decided",
    "intended",
    "stored",
    "held",
    "release_intended",
    "released",
    "discarded",
    "deleted",
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
    "deleted",
    "forgotten",
]
"""The state of a decision.

* `logged`: nothing is to be stored.
* `pending`, `releasing`: its memory is about to be stored, or storing it was interrupted.
* `stored`, `released`: its memory is in the store, and was read back from there.
* `held`, `discarded`: its candidate is in quarantine, or was discarded from it.
* `deleted`: its memory was removed from the store on purpose.
* `forgotten`: its text was erased from the log as well.
"""

STATE_AFTER: MappingProxyType[EventKind, State] = MappingProxyType(
    {
        "decided": "logged",
        "intended": "pending",
        "stored": "stored",
        "held": "held",
        "release_intended": "releasing",
        "released": "released",
        "discarded": "discarded",
        "deleted": "deleted",
        "forgotten": "forgotten",
    }
)
"""The state that an event leads to."""

DONE_BY: MappingProxyType[EventKind, EventKind] = MappingProxyType(
    {"intended": "stored", "release_intended": "released"}
)
"""The event that ends an intent."""


class JournalEvent(Frozen):
    """One entry of the log."""

    seq: int
    """Its position in the log."""
    receipt_id: str
    """The decision; empty for a candidate that was forgotten before any decision on it."""
    candidate_id: str
    """The candidate."""
    kind: EventKind
    """What happened."""
    actor: str
    """Who did it."""
    at: datetime
    """When, in UTC."""
    body: dict[str, JsonValue]
    """The record of an intent; the reason that a person gave."""


class Intent(Frozen):
    """A record that is to be in the memory store."""

    receipt_id: str
    """The decision that admitted it."""
    kind: EventKind
    """`intended` or `release_intended`."""
    record: MemoryRecord
    """What is to be stored."""
    reason: str = ""
    """The reason, if a person released it."""


def moment(at: datetime) -> str:
    """A time as text of the log, which sorts chronologically for times of one offset."""
    # A fixed number of digits: "…:05.5" would sort after "…:05.123".
    return at.isoformat(timespec="microseconds")


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
        (receipt_id, candidate_id, kind, actor, moment(at), body),
    )
    return cursor.rowcount > 0


def end_intents(
    db: sqlite3.Connection, intents: Sequence[Intent], *, actor: str, at: datetime
) -> None:
    """Log that the records of these intents are in the memory store."""
    for intent in intents:
        candidate_id = intent.record.provenance.candidate_id
        add_event(db, DONE_BY[intent.kind], intent.receipt_id, candidate_id, actor=actor, at=at)


def pending_intents(
    db: sqlite3.Connection,
    *,
    receipt_ids: Sequence[str] | None = None,
    after: int = 0,
    limit: int = -1,
) -> tuple[tuple[int, Intent], ...]:
    """The intents that are not fulfilled, oldest first, each with its position in the log.

    Args:
        db: The database.
        receipt_ids: The receipts to look at; `None` for all.
        after: The position in the log to start after.
        limit: The maximum number of intents; -1 for all.
    """
    condition = ""
    values: list[Any] = [after]
    if receipt_ids is not None:
        # One JSON list instead of a variable per id: SQLite limits the number of variables.
        condition = "AND intent.receipt_id IN (SELECT value FROM json_each(?))"
        values.append(to_json(list(receipt_ids)))
    rows = db.execute(
        f"""SELECT intent.seq, intent.receipt_id, intent.kind, intent.body FROM events AS intent
        WHERE intent.kind IN ('intended', 'release_intended') AND intent.seq > ? {condition}
        AND NOT EXISTS (SELECT 1 FROM events AS done
            WHERE done.receipt_id = intent.receipt_id AND done.kind =
            CASE intent.kind WHEN 'intended' THEN 'stored' ELSE 'released' END)
        ORDER BY intent.seq LIMIT ?""",  # noqa: S608 - the only insertion is the constant above
        (*values, limit),
    )
    return tuple(
        (seq, Intent.model_validate({"receipt_id": receipt, "kind": kind, **json.loads(body)}))
        for seq, receipt, kind, body in rows
    )


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


_SELECT = "SELECT seq, receipt_id, candidate_id, kind, actor, at, body FROM events"


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
