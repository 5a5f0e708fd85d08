"""Comparing the log with the memory store, and taking memories out of both.

An audit reads while others may write: run it when nothing does, or run it again before acting on
what it finds.
"""

import functools
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from langgraph.store.base import BaseStore, GetOp, Item, SearchOp

from memguard.journal.events import pending_intents, to_json
from memguard.journal.journal import Journal
from memguard.journal.receipts import ReceiptFilter
from memguard.schema.base import Namespace
from memguard.schema.memory import same_text_form
from memguard.store_calls import call_store

_BATCH = 500

_PRESENT = """EXISTS (SELECT 1 FROM events AS done WHERE done.receipt_id = receipts.id
    AND done.kind IN ('stored', 'released'))
    AND NOT EXISTS (SELECT 1 FROM events AS gone WHERE gone.receipt_id = receipts.id
    AND gone.kind = 'deleted')"""
"""Receipts whose memory must be in the store."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordLocation:
    """A key in the memory store."""

    namespace: Namespace
    """Its namespace."""
    key: str
    """The key."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """Where the log and the memory store disagree."""

    without_receipt: tuple[RecordLocation, ...]
    """Items of the store that no receipt accounts for: written past the guard, or the log lost."""
    without_record: tuple[str, ...]
    """Receipts whose memory is gone from the store, though nobody deleted it through memguard."""
    altered: tuple[str, ...]
    """Receipts whose key holds another text now."""
    pending: tuple[str, ...]
    """Receipts whose write was begun and not finished; `recover` finishes it."""
    checked_records: int
    """Items of the store that were looked at."""
    checked_receipts: int
    """Receipts that were looked at."""

    @property
    def agrees(self) -> bool:
        """Whether nothing was found."""
        return not (self.without_receipt or self.without_record or self.altered or self.pending)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Expected:
    seq: int
    receipt_id: str
    namespace: Namespace
    key: str
    text: str
    value: str | None
    """What a writer put, as JSON; absent for what memguard stored in its own form."""


async def audit(journal: Journal, store: BaseStore, *, namespace: Namespace = ()) -> Audit:
    """Compare the log with the memory store.

    Args:
        journal: The log.
        store: The memory store.
        namespace: The beginning of the namespaces to look at; those below it belong to it.

    Raises:
        MemguardError: If the log or the store cannot be read.
    """
    gone, altered, receipts = await _check_receipts(journal, store, namespace)
    strangers, records = await _check_records(journal, store, namespace)
    pending = await journal.aread(pending_intents)
    return Audit(
        without_receipt=strangers,
        without_record=gone,
        altered=altered,
        pending=tuple(
            intent.receipt_id
            for _, intent in pending
            if intent.record.namespace[: len(namespace)] == namespace
        ),
        checked_records=records,
        checked_receipts=receipts,
    )


async def _check_receipts(
    journal: Journal, store: BaseStore, namespace: Namespace
) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    gone: list[str] = []
    altered: list[str] = []
    checked = after = 0
    while expected := await journal.aread(
        functools.partial(_expected, namespace=namespace, after=after)
    ):
        after = expected[-1].seq
        checked += len(expected)
        items = await call_store(store, [GetOp(entry.namespace, entry.key) for entry in expected])
        for entry, item in zip(expected, items, strict=True):
            if not isinstance(item, Item):
                gone.append(entry.receipt_id)
            elif not _holds(item, entry):
                altered.append(entry.receipt_id)
    return tuple(gone), tuple(altered), checked


async def _check_records(
    journal: Journal, store: BaseStore, namespace: Namespace
) -> tuple[tuple[RecordLocation, ...], int]:
    unaccounted: list[RecordLocation] = []
    offset = 0
    while True:
        page = SearchOp(namespace, limit=_BATCH, offset=offset, refresh_ttl=False)
        (items,) = await call_store(store, [page])
        locations = [
            RecordLocation(namespace=tuple(item.namespace), key=item.key) for item in items
        ]
        offset += len(locations)
        accounted = await journal.aread(functools.partial(_accounted, locations=locations))
        unaccounted.extend(location for location in locations if location not in accounted)
        if len(locations) < _BATCH:
            return tuple(unaccounted), offset


def _expected(db: sqlite3.Connection, *, namespace: Namespace, after: int) -> tuple[_Expected, ...]:
    condition, values = ReceiptFilter(namespace=namespace).where()
    rows = db.execute(
        f"""SELECT seq, id, namespace, record_key, json_extract(body, '$.candidate.text'),
            json_extract(body, '$.value')
        FROM receipts WHERE {condition} AND {_PRESENT} AND seq > ?
        ORDER BY seq LIMIT ?""",  # noqa: S608 - constants
        (*values, after, _BATCH),
    )
    return tuple(
        _Expected(
            seq=seq,
            receipt_id=rid,
            namespace=tuple(json.loads(labels)),
            key=key,
            text=text,
            value=value,
        )
        for seq, rid, labels, key, text, value in rows
    )


def _accounted(
    db: sqlite3.Connection, *, locations: Sequence[RecordLocation]
) -> frozenset[RecordLocation]:
    """The places that a receipt accounts for, stored or about to be."""
    return frozenset(
        location
        for location in locations
        if db.execute(
            # CROSS JOIN keeps SQLite from going through all intents for each place.
            "SELECT 1 FROM receipts CROSS JOIN events ON events.receipt_id = receipts.id "
            "WHERE namespace = ? AND record_key = ? AND (kind IN ('intended', 'release_intended') "
            # What a guarded store let through was put by its writer.
            "OR json_extract(receipts.body, '$.effect') IN ('caller', 'shadow'))",
            (to_json(location.namespace), location.key),
        ).fetchone()
    )


def _holds(item: Item, expected: _Expected) -> bool:
    if expected.value is not None:
        return item.value == json.loads(expected.value)
    content = item.value.get("content")
    return isinstance(content, str) and same_text_form(content) == same_text_form(expected.text)
