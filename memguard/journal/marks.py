"""The changes that decisions make to memories which are stored already, as the log has them.

Each change is a `marking` event, which names the memory by a digest of its namespace and key, and
the states before and after by theirs. So the log finds all decisions on a memory by an index, and
an event repeats no text.

A change is refused if another decision in the log has changed the memory since the state that the
change is made from. This is checked in the transaction that logs the change, which processes with
one journal file share.
"""

import hashlib
import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from memguard.errors import ErrorCode, RecordChangedError
from memguard.journal.erasure import FORGOTTEN
from memguard.journal.events import add_event, events_of, to_json
from memguard.schema.base import Namespace
from memguard.schema.memory import Lifecycle
from memguard.schema.receipt import Receipt
from memguard.schema.relations import RecordChange

_SETTLED = "('stored', 'released', 'changed', 'discarded', 'missing', 'delete_intended', 'deleted')"
"""Events after which a change is in the store, or never will be."""


_INTENTS = frozenset({"intended", "release_intended", "change_intended"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """A logged change of one memory."""

    seq: int
    """Its position in the log."""
    receipt_id: str
    """The decision that made it."""
    before: str
    """The digest of the state that it was made from."""
    after: str
    """The digest of the state that it led to."""
    settled: bool
    """Whether it is in the store, or never will be; `False` while it is pending."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """What the store had when changes were compared with it."""

    position: int = 0
    """The end of the log before the store was read; later changes are not in what was read."""
    outdated: Mapping[str, str] | None = None
    """Why the changes of a receipt do not fit the store, as a message, by receipt id."""


UNCOMPARED = Comparison()
"""Nothing was compared with the store: no later change in the log counts as read."""


def location_id(namespace: Namespace, key: str) -> str:
    """A digest of the place of a memory, which finds the decisions that changed it."""
    # JSON separates the labels, and escapes what UTF-8 cannot encode.
    return hashlib.sha256(to_json([*namespace, "", key]).encode()).hexdigest()[:32]


def state_digest(lifecycle: Lifecycle) -> str:
    """A digest of a lifecycle."""
    body = lifecycle.model_dump_json(exclude_defaults=True)
    return hashlib.sha256(body.encode()).hexdigest()[:16]


def effective_changes(receipt: Receipt) -> tuple[RecordChange, ...]:
    """The changes that follow from a receipt at once.

    None in shadow mode, which only observes; those of a candidate in quarantine follow its release.
    """
    is_open = receipt.effect == "shadow" or receipt.outcome == "quarantined"
    return () if is_open else receipt.changes


def log_marks(
    db: sqlite3.Connection,
    receipt: Receipt,
    changes: Sequence[RecordChange],
    *,
    actor: str,
    at: datetime,
) -> None:
    """Log which memories a decision changes."""
    for change in changes:
        digest = location_id(change.namespace, change.key)
        body = to_json({"before": state_digest(change.before), "after": state_digest(change.after)})
        add_event(db, "marking", receipt.id, digest, actor=actor, at=at, body=body)


def marks_of(db: sqlite3.Connection, namespace: Namespace, key: str) -> tuple[Mark, ...]:
    """The logged changes of a memory, oldest first, without those that were lost."""
    digest = location_id(namespace, key)
    rows = db.execute(
        f"""SELECT mark.seq, mark.receipt_id, mark.body,
            EXISTS (SELECT 1 FROM events AS done WHERE done.receipt_id = mark.receipt_id
                AND done.kind IN {_SETTLED}),
            (SELECT body FROM events AS loss WHERE loss.receipt_id = mark.receipt_id
                AND loss.kind = 'change_lost'),
            EXISTS (SELECT 1 FROM events AS done WHERE done.receipt_id = mark.receipt_id
                AND done.kind IN ('stored', 'released', 'changed'))
        FROM events AS mark WHERE mark.kind = 'marking' AND mark.candidate_id = ?
        ORDER BY mark.seq""",  # noqa: S608 - a constant
        (digest,),
    )
    marks: list[Mark] = []
    for seq, receipt_id, body, settled, loss, is_done in rows:
        # Deleted while it was pending, or never written by its caller.
        is_void = settled and not is_done
        if is_void or digest in _places(loss):
            continue
        states = json.loads(body)
        marks.append(
            Mark(
                seq=seq,
                receipt_id=receipt_id,
                before=states["before"],
                after=states["after"],
                settled=bool(settled),
            )
        )
    return tuple(marks)


def logged_changes(db: sqlite3.Connection, receipt_id: str) -> tuple[RecordChange, ...]:
    """The changes that a decision or its release made, without those that were lost."""
    changes: list[RecordChange] = []
    lost: set[str] = set()
    for event in events_of(db, receipt_id):
        listed = event.body.get("changes")
        if event.kind in _INTENTS and isinstance(listed, list):
            changes += [RecordChange.model_validate(entry) for entry in listed]
        elif event.kind == "change_lost":
            lost = _places(to_json(event.body))
    # A memory that was forgotten since has no place to be changed back in.
    return tuple(
        change
        for change in changes
        if change.key != FORGOTTEN and location_id(change.namespace, change.key) not in lost
    )


def logged_lifecycle(
    db: sqlite3.Connection, initial: Lifecycle, namespace: Namespace, key: str
) -> Lifecycle:
    """What became of a memory that began with a state, according to the log."""
    for mark in reversed(marks_of(db, namespace, key)):
        for change in logged_changes(db, mark.receipt_id):
            if (change.namespace, change.key) == (namespace, key):
                return change.after
    return initial


def _places(body: str | None) -> set[str]:
    return set() if body is None else {loss["place"] for loss in json.loads(body)["lost"]}


def end_of_log(db: sqlite3.Connection) -> int:
    """The position of the last event."""
    return db.execute("SELECT ifnull(max(seq), 0) FROM events").fetchone()[0]


def refuse_outdated(
    db: sqlite3.Connection,
    receipt: Receipt,
    changes: Sequence[RecordChange],
    compared: Comparison,
) -> None:
    """Refuse a decision if a memory that it changes is no longer in the state it was made from.

    Raises:
        RecordChangedError: If another decision in the log came first, or the store has another
            state.
    """
    for change in changes:
        newer = [
            mark
            for mark in marks_of(db, change.namespace, change.key)
            if mark.receipt_id != receipt.id
            # What ended before the store was read is in what was read.
            and (mark.seq > compared.position or not mark.settled)
        ]
        if newer and newer[-1].after != state_digest(change.before):
            raise changed_error(change, f"by the decision {newer[-1].receipt_id!r}")
    message = (compared.outdated or {}).get(receipt.id)
    if message is not None:
        raise RecordChangedError(message, code=ErrorCode.RECORD_CHANGED)


def changed_error(change: RecordChange, how: str) -> RecordChangedError:
    """The error about a memory that somebody else has changed."""
    return RecordChangedError(changed_message(change, how), code=ErrorCode.RECORD_CHANGED)


def changed_message(change: RecordChange, how: str) -> str:
    """What happened to a memory, and what to do."""
    when = "" if change.said_at is None else f", said {change.said_at:%Y-%m-%d}"
    return (
        f"the memory {change.key!r} in namespace {change.namespace!r}{when} was changed {how} "
        "since this decision was made, so nothing was stored; write the candidate again, to have "
        "it compared with the memory as it is now"
    )
