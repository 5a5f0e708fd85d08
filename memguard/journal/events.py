"""The life of each decision, as events, and its state as the last of them.

```text
decided ── intended ── stored ── deleted ─┐
   │                                      ├─ forgotten
   └────── held ─┬─ release_intended ── released ── deleted
                 └─ discarded
```

`intended` and `release_intended` carry the whole record, so that a write interrupted at any point
can be redone from the log alone.
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
"""What happened to a decision; each happens to a receipt at most once."""

State = Literal[
    "logged", "pending", "stored", "held", "releasing", "released", "discarded", "deleted",
    "forgotten",
]  # fmt: skip
"""Where a decision stands.

* `logged`: nothing is to be stored.
* `pending`, `releasing`: about to be put into the memory store, or interrupted while it was.
* `stored`, `released`: in the memory store, and read back from there.
* `held`, `discarded`: in quarantine, or thrown out of it.
* `deleted`: taken out of the memory store on purpose.
* `forgotten`: its text is gone from the log as well.
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
    """Its place in the log."""
    receipt_id: str
    """The decision it happened to; empty for a candidate that was forgotten undecided."""
    candidate_id: str
    """The candidate."""
    kind: EventKind
    """What happened."""
    actor: str
    """Who did it."""
    at: datetime
    """When, in UTC."""
    body: dict[str, JsonValue]
    """The record of an intent, the reason of a person's act."""


class Intent(Frozen):
    """A record that is to be in the memory store."""

    receipt_id: str
    """The decision that admitted it."""
    kind: EventKind
    """`intended` or `release_intended`."""
    record: MemoryRecord
    """What is to be stored."""
    reason: str = ""
    """Why, when a person wants it."""


def moment(at: datetime) -> str:
    """An instant as the log writes it: text that sorts by time."""
    return at.isoformat(timespec="microseconds")


def to_json(value: object) -> str:
    """JSON without white space; any string survives, an unpaired surrogate too."""
    return json.dumps(value, separators=(",", ":"))


def add_event(
    db: sqlite3.Connection,
    kind: EventKind,
    *,
    receipt_id: str,
    candidate_id: str,
    actor: str,
    at: datetime,
    body: str = "{}",
) -> bool:
    """Log that something happened; `False` when that is in the log already."""
    cursor = db.execute(
        "INSERT INTO events (receipt_id, candidate_id, kind, actor, at, body) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (receipt_id, candidate_id, kind, actor, moment(at), body),
    )
    return cursor.rowcount > 0


def end_intents(
    db: sqlite3.Connection, intents: Sequence[Intent], *, actor: str, at: datetime
) -> None:
    """Log that these records are in the memory store."""
    for intent in intents:
        add_event(
            db,
            DONE_BY[intent.kind],
            receipt_id=intent.receipt_id,
            candidate_id=intent.record.provenance.candidate_id,
            actor=actor,
            at=at,
        )


def pending_intents(
    db: sqlite3.Connection,
    *,
    receipt_ids: Sequence[str] | None = None,
    after: int = 0,
    limit: int = -1,
) -> tuple[tuple[int, Intent], ...]:
    """The intents that nothing ended, oldest first, each with its place in the log."""
    chosen = ""
    values: list[Any] = [after]
    if receipt_ids is not None:
        chosen = "AND begun.receipt_id IN (SELECT value FROM json_each(?))"
        values.append(to_json(list(receipt_ids)))
    rows = db.execute(
        f"""SELECT begun.seq, begun.receipt_id, begun.kind, begun.body FROM events AS begun
        WHERE begun.kind IN ('intended', 'release_intended') AND begun.seq > ? {chosen}
        AND NOT EXISTS (SELECT 1 FROM events AS done
            WHERE done.receipt_id = begun.receipt_id AND done.kind =
            CASE begun.kind WHEN 'intended' THEN 'stored' ELSE 'released' END)
        ORDER BY begun.seq LIMIT ?""",  # noqa: S608 - the only insertion is the constant above
        (*values, limit),
    )
    return tuple(
        (seq, Intent.model_validate({"receipt_id": rid, "kind": kind, **json.loads(body)}))
        for seq, rid, kind, body in rows
    )


def events_of(db: sqlite3.Connection, receipt_id: str) -> tuple[JournalEvent, ...]:
    """All that happened to a decision, in order."""
    return tuple(
        _event(row)
        for row in db.execute(
            "SELECT seq, receipt_id, candidate_id, kind, actor, at, body FROM events "
            "WHERE receipt_id = ? ORDER BY seq",
            (receipt_id,),
        )
    )


def events_after(db: sqlite3.Connection, seq: int, *, limit: int) -> tuple[JournalEvent, ...]:
    """The events after a place in the log, in order."""
    return tuple(
        _event(row)
        for row in db.execute(
            "SELECT seq, receipt_id, candidate_id, kind, actor, at, body FROM events "
            "WHERE seq > ? ORDER BY seq LIMIT ?",
            (seq, limit),
        )
    )


def state_of(db: sqlite3.Connection, receipt_id: str) -> State | None:
    """Where a decision stands; `None` when the log does not know it."""
    row = db.execute(
        "SELECT kind FROM events WHERE receipt_id = ? ORDER BY seq DESC LIMIT 1", (receipt_id,)
    ).fetchone()
    return None if row is None else STATE_AFTER[row[0]]


def live_states(events: Iterable[JournalEvent]) -> dict[str, State]:
    """The state of every decision after these events."""
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
