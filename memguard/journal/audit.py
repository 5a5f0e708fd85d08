"""Compares the log with the memory store.

Other processes may write during an audit. Run it when none does, or repeat it before acting on its
result.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from langgraph.store.base import BaseStore, GetOp, Item, SearchOp

from memguard.journal.events import pending_intents, pending_receipts, to_json
from memguard.journal.journal import Journal
from memguard.journal.marks import location_id, logged_changes, marks_of, state_digest
from memguard.journal.receipts import ReceiptFilter
from memguard.journal.storing import NamespacedKey, is_item_of
from memguard.portal import call_store
from memguard.schema.base import Namespace
from memguard.schema.memory import Lifecycle, lifecycle_of
from memguard.schema.relations import RecordChange

_BATCH = 500

_STORED = """EXISTS (SELECT 1 FROM events AS done WHERE done.receipt_id = receipts.id
    AND done.kind IN ('stored', 'released', 'restored')
    AND NOT EXISTS (SELECT 1 FROM events AS loss WHERE loss.receipt_id = receipts.id
        AND (loss.kind IN ('delete_intended', 'deleted')
            OR (loss.kind = 'missing' AND loss.seq > done.seq)))
    AND NOT EXISTS (SELECT 1 FROM receipts AS later CROSS JOIN events AS put
        ON put.receipt_id = later.id AND put.kind IN ('stored', 'released')
        WHERE later.namespace = receipts.namespace AND later.record_key = receipts.record_key
        AND put.seq > done.seq AND json_extract(later.body, '$.value') IS NOT NULL))"""
"""Condition of the receipts whose memory must be in the store.

A later write of the caller of a guarded store has replaced the item under the same key. CROSS JOIN
makes SQLite look up the few receipts of that key first.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordLocation:
    """A key in the memory store."""

    namespace: Namespace
    """Its namespace."""
    key: str
    """The key."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """Differences between the log and the memory store."""

    without_receipt: tuple[RecordLocation, ...]
    """Items of the store without a receipt: not written through the guard, or the log was lost."""
    without_record: tuple[str, ...]
    """Receipts whose memory is not in the store, though it was not deleted through memguard."""
    altered: tuple[str, ...]
    """Receipts whose key contains another text now."""
    pending: tuple[str, ...]
    """Receipts whose write or deletion was interrupted; `recover` completes it."""
    unmarked: tuple[str, ...] = ()
    """Receipts whose change of another memory is not in the store, though that memory is."""
    checked_records: int = 0
    """Number of items of the store that were compared."""
    checked_receipts: int = 0
    """Number of receipts that were compared."""

    @property
    def agrees(self) -> bool:
        """Whether there is no difference."""
        missing = self.without_receipt or self.without_record or self.unmarked
        return not (missing or self.altered or self.pending)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Expected:
    seq: int
    receipt_id: str
    namespace: Namespace
    key: str
    text: str | None
    """The text of the memory; `None` if any value is right; see `is_item_of`."""
    value: str | None
    """The item of a guarded store's caller, as JSON; `None` for memguard's own form."""


async def audit(journal: Journal, store: BaseStore, *, namespace: Namespace = ()) -> Audit:
    """Compare the log with the memory store, in the namespaces that begin with `namespace`.

    Raises:
        MemguardError: If the log or the store cannot be read.
    """
    missing, altered, receipts = await _check_receipts(journal, store, namespace)
    unmarked = await missing_marks(journal, store, namespace=namespace)
    unaccounted, records = await _check_records(journal, store, namespace)
    # Last: writes that end during the audit are not reported as interrupted.
    pending = await journal.aread(_pending, namespace)
    return Audit(
        without_receipt=unaccounted,
        without_record=missing,
        altered=altered,
        unmarked=tuple(dict.fromkeys(mark.receipt_id for mark in unmarked)),
        pending=pending,
        checked_records=records,
        checked_receipts=receipts,
    )


async def _check_receipts(
    journal: Journal, store: BaseStore, namespace: Namespace
) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    missing: list[str] = []
    altered: list[str] = []
    checked = after = 0
    while expected := await journal.aread(_expected, namespace, after=after):
        after = expected[-1].seq
        checked += len(expected)
        items = await call_store(store, [GetOp(entry.namespace, entry.key) for entry in expected])
        for entry, item in zip(expected, items, strict=True):
            if not isinstance(item, Item):
                missing.append(entry.receipt_id)
            elif not is_item_of(
                item,
                value=None if entry.value is None else json.loads(entry.value),
                text=entry.text,
            ):
                altered.append(entry.receipt_id)
    return tuple(missing), tuple(altered), checked


async def _check_records(
    journal: Journal, store: BaseStore, namespace: Namespace
) -> tuple[tuple[RecordLocation, ...], int]:
    unaccounted: list[RecordLocation] = []
    offset = 0
    while True:
        # An audit must not prolong the life of an item that expires.
        page = SearchOp(namespace, limit=_BATCH, offset=offset, refresh_ttl=False)
        (items,) = await call_store(store, [page])
        locations = [
            RecordLocation(namespace=tuple(item.namespace), key=item.key) for item in items
        ]
        offset += len(locations)
        accounted = await journal.aread(_accounted, locations)
        unaccounted.extend(location for location in locations if location not in accounted)
        if len(locations) < _BATCH:
            return tuple(unaccounted), offset


@dataclass(frozen=True, kw_only=True, slots=True)
class MissingMark:
    """A change that is in the log and not in the store."""

    receipt_id: str
    """The last decision on the memory."""
    change: RecordChange
    """From the state that the store has to the one that the log has."""


async def missing_marks(
    journal: Journal, store: BaseStore, *, namespace: Namespace = ()
) -> tuple[MissingMark, ...]:
    """The changes of memories that the store has lost, below a namespace.

    A memory that the store has in a state which the log does not know was changed by another
    process, and is left out.

    Raises:
        MemguardError: If the log or the store cannot be read.
    """
    missing: list[MissingMark] = []
    after = 0
    while marked := await journal.aread(_marked, namespace, after=after):
        after = marked[-1].seq
        locations = [GetOp(*mark.location, refresh_ttl=False) for mark in marked]
        items = await call_store(store, locations)
        for mark, item in zip(marked, items, strict=True):
            state = None if item is None else lifecycle_of(item.value)
            if state is None or state == mark.state or state_digest(state) not in mark.earlier:
                continue
            labels, key = mark.location
            change = RecordChange(namespace=labels, key=key, before=state, after=mark.state)
            missing.append(MissingMark(receipt_id=mark.receipt_id, change=change))
    return tuple(missing)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Marked:
    seq: int
    receipt_id: str
    location: NamespacedKey
    state: Lifecycle
    """The last state that the log has."""
    earlier: frozenset[str]
    """Digests of the states before."""


def _marked(db: sqlite3.Connection, namespace: Namespace, *, after: int) -> list[_Marked]:
    """The memories that decisions have changed, each at its last change."""
    rows = db.execute(
        """SELECT max(seq) AS last, receipt_id, candidate_id FROM events WHERE kind = 'marking'
        GROUP BY candidate_id HAVING last > ? ORDER BY last LIMIT ?""",
        (after, _BATCH),
    ).fetchall()
    marked: list[_Marked] = []
    for seq, receipt_id, digest in rows:
        for change in logged_changes(db, receipt_id):
            if location_id(change.namespace, change.key) != digest:
                continue
            marks = marks_of(db, change.namespace, change.key)
            is_settled = bool(marks) and marks[-1].seq == seq and marks[-1].settled
            is_below = change.namespace[: len(namespace)] == namespace
            if is_settled and is_below and not _is_replaced(db, change, seq):
                marked.append(
                    _Marked(
                        seq=seq,
                        receipt_id=receipt_id,
                        location=(change.namespace, change.key),
                        state=change.after,
                        earlier=frozenset(mark.before for mark in marks),
                    )
                )
    return marked


def _is_replaced(db: sqlite3.Connection, change: RecordChange, seq: int) -> bool:
    """Whether the caller of a guarded store has put another item under the key since."""
    row = db.execute(
        """SELECT 1 FROM receipts CROSS JOIN events AS put
        ON put.receipt_id = receipts.id AND put.kind IN ('stored', 'released')
        WHERE namespace = ? AND record_key = ? AND put.seq > ?
        AND json_extract(receipts.body, '$.value') IS NOT NULL LIMIT 1""",
        (to_json(change.namespace), change.key, seq),
    ).fetchone()
    return row is not None


def _expected(db: sqlite3.Connection, namespace: Namespace, *, after: int) -> tuple[_Expected, ...]:
    condition, values = ReceiptFilter(namespace=namespace).where()
    rows = db.execute(
        f"""SELECT seq, id, namespace, record_key, json_extract(body, '$.candidate.text'),
            json_extract(body, '$.value'), json_extract(body, '$.effect')
        FROM receipts WHERE {condition} AND {_STORED} AND seq > ?
        ORDER BY seq LIMIT ?""",  # noqa: S608 - constants
        (*values, after, _BATCH),
    )
    return tuple(
        _Expected(
            seq=seq,
            receipt_id=rid,
            namespace=tuple(json.loads(labels)),
            key=key,
            text=None if effect == "caller" else text,
            value=value,
        )
        for seq, rid, labels, key, text, value, effect in rows
    )


def _pending(db: sqlite3.Connection, namespace: Namespace) -> tuple[str, ...]:
    ids = [intent.receipt_id for _, intent in pending_intents(db)]
    ids += pending_receipts(db, "allowed")
    ids += pending_receipts(db, "delete_intended")
    condition, values = ReceiptFilter(namespace=namespace).where()
    rows = db.execute(
        f"SELECT id FROM receipts WHERE {condition} "  # noqa: S608 - constants
        "AND id IN (SELECT value FROM json_each(?)) ORDER BY seq",
        (*values, to_json(ids)),
    )
    return tuple(row[0] for row in rows)


def _accounted(
    db: sqlite3.Connection, locations: Sequence[RecordLocation]
) -> frozenset[RecordLocation]:
    """The locations that have a receipt, including those whose write is pending."""
    return frozenset(
        location
        for location in locations
        if db.execute(
            # CROSS JOIN keeps SQLite from scanning all intents for each location.
            "SELECT 1 FROM receipts CROSS JOIN events ON events.receipt_id = receipts.id "
            "WHERE namespace = ? AND record_key = ? AND (kind IN ('intended', 'release_intended') "
            # These were put by the caller of a guarded store, without an intent.
            "OR json_extract(receipts.body, '$.effect') IN ('caller', 'shadow'))",
            (to_json(location.namespace), location.key),
        ).fetchone()
    )
