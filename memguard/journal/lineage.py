"""The life of one memory: what it replaced, what replaced it, and who decided each step.

The marks in the store link the memories of a chain, also where another process wrote them. The log
adds what the marks no longer show: steps that were undone, records that were deleted, and the
events of every decision with actor and time.
"""

import heapq
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from langgraph.store.base import BaseStore, Item, SearchOp

from memguard.journal.events import JournalEvent, events_of, to_json
from memguard.journal.journal import Journal
from memguard.journal.marks import logged_changes, logged_lifecycle, marks_of
from memguard.journal.receipts import RECEIPTS
from memguard.journal.storing import call_or_advise, get_items, record_of_item
from memguard.schema.base import Namespace
from memguard.schema.memory import Lifecycle, MemoryRecord
from memguard.schema.receipt import Receipt, WriteOutcome

_BATCH = 500
_EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, kw_only=True, slots=True)
class LineageEntry:
    """One memory of a chain of corrections."""

    text: str
    """The memory."""
    key: str
    """Its key."""
    said_at: datetime | None
    """When it was said; the time of the decision or of storing where that is not known."""
    event_at: datetime | None
    """When what it says happened or began, if its words tell."""
    lifecycle: Lifecycle
    """What became of it."""
    receipt_id: str
    """The decision that stored it; empty if neither store nor log know it."""
    outcome: WriteOutcome | None
    """The outcome of that decision; `None` if it is in the log of another process."""
    is_stored: bool
    """Whether it is in the store; `False` if it was deleted."""
    events: tuple[JournalEvent, ...]
    """What happened to it, in order: the events of its decision, and of those that changed it."""


@dataclass
class _Links:
    """What the log knows of one memory."""

    receipts: list[Receipt] = field(default_factory=list[Receipt])
    """The decisions on it: those that stored it, then those that changed it."""
    admitted: set[str] = field(default_factory=set[str])
    """The ids of those that stored it."""
    events: list[JournalEvent] = field(default_factory=list[JournalEvent])
    keys: set[str] = field(default_factory=set[str])
    """The memories that it replaced or that replaced it, as the log has them."""
    lifecycle: Lifecycle = field(default_factory=Lifecycle)
    """What became of it, as the log has it."""


async def lineage(
    journal: Journal, store: BaseStore, namespace: Namespace, key: str
) -> tuple[LineageEntry, ...]:
    """The chain of a memory, oldest first: what it replaced, itself, and what replaced it.

    It also has the steps that were undone. An unknown key gives an empty chain.

    Raises:
        StoreError: If the store failed.
        ReceiptError: If the log failed.
    """
    replaced = await _replaced_keys(store, namespace)
    items: dict[str, Item | None] = {}
    links: dict[str, _Links] = {}
    following = {key}
    while following:
        locations = [(namespace, name) for name in sorted(following)]
        fetched = await get_items(locations, store=store)
        items |= {name: item for (_, name), item in fetched.items()}
        links |= await journal.aread(_links_of, namespace, tuple(following))
        related: set[str] = set()
        for name in following:
            item = items[name]
            record = None if item is None else record_of_item(item)
            successor = "" if record is None else record.lifecycle.superseded_by
            related |= {successor} | links[name].keys | replaced.get(name, set())
        following = {name for name in related if name} - items.keys()
    entries = [
        entry for name in items if (entry := _entry(name, items[name], links[name])) is not None
    ]
    return tuple(_in_order(entries))


async def _replaced_keys(store: BaseStore, namespace: Namespace) -> dict[str, set[str]]:
    """The keys of the memories that each memory of a namespace replaced, by the marks."""
    replaced: dict[str, set[str]] = {}
    offset = 0
    while True:
        page = SearchOp(namespace, limit=_BATCH, offset=offset, refresh_ttl=False)
        (items,) = await call_or_advise(store, [page], advice="ask again")
        for item in items:
            record = record_of_item(item) if tuple(item.namespace) == namespace else None
            if record is not None and record.lifecycle.superseded_by:
                replaced.setdefault(record.lifecycle.superseded_by, set()).add(item.key)
        offset += len(items)
        if len(items) < _BATCH:
            return replaced


def _links_of(
    db: sqlite3.Connection, namespace: Namespace, keys: tuple[str, ...]
) -> dict[str, _Links]:
    return {key: _links(db, namespace, key) for key in keys}


def _links(db: sqlite3.Connection, namespace: Namespace, key: str) -> _Links:
    links = _Links()
    rows = db.execute(
        "SELECT id FROM receipts WHERE namespace = ? AND record_key = ? "
        "AND outcome IN ('stored', 'quarantined') AND EXISTS (SELECT 1 FROM events "
        "WHERE receipt_id = receipts.id AND kind IN ('intended', 'allowed', 'release_intended')) "
        "ORDER BY seq",
        (to_json(namespace), key),
    ).fetchall()
    ids = [row[0] for row in rows]
    links.admitted = set(ids)
    ids += [mark.receipt_id for mark in marks_of(db, namespace, key)]
    for receipt_id in dict.fromkeys(ids):
        receipt = RECEIPTS.get(db, receipt_id)
        links.receipts.append(receipt)
        links.events += events_of(db, receipt_id)
        for change in logged_changes(db, receipt_id):
            successors = {change.before.superseded_by, change.after.superseded_by} - {""}
            if change.namespace == namespace and (change.key == key or key in successors):
                links.keys |= {change.key} | successors
    links.events.sort(key=lambda event: event.seq)
    initial = links.receipts[0].lifecycle if links.admitted else Lifecycle()
    links.lifecycle = logged_lifecycle(db, initial, namespace, key)
    return links


def _entry(key: str, item: Item | None, links: _Links) -> LineageEntry | None:
    record: MemoryRecord | None = None if item is None else record_of_item(item)
    admitted = [r for r in links.receipts if r.id in links.admitted]
    if record is not None:
        stored_by = record.provenance.receipt_id
        receipt = next((r for r in links.receipts if r.id == stored_by), None)
        receipt = receipt or (None if stored_by else next(iter(admitted), None))
        return LineageEntry(
            text=record.text,
            key=key,
            said_at=record.provenance.said_at or _stored_at(item, receipt),
            event_at=record.lifecycle.event_at,
            lifecycle=record.lifecycle,
            receipt_id=stored_by or (receipt.id if receipt else ""),
            outcome=receipt.outcome if receipt else None,
            is_stored=True,
            events=tuple(links.events),
        )
    if not admitted:
        return None
    receipt = admitted[0].redacted()
    return LineageEntry(
        text=receipt.candidate.text,
        key=key,
        said_at=receipt.candidate.said_at or receipt.at,
        event_at=links.lifecycle.event_at,
        lifecycle=links.lifecycle,
        receipt_id=receipt.id,
        outcome=receipt.outcome,
        is_stored=False,
        events=tuple(links.events),
    )


def _stored_at(item: Item | None, receipt: Receipt | None) -> datetime | None:
    # Not every store keeps the time of creation when an item is put again.
    if receipt is not None:
        return receipt.at
    return None if item is None else item.created_at


def _in_order(entries: Iterable[LineageEntry]) -> list[LineageEntry]:
    """The entries by time, except that a memory always comes before the one that replaced it."""
    by_key: Mapping[str, LineageEntry] = {entry.key: entry for entry in entries}
    waiting = dict.fromkeys(by_key, 0)
    for entry in by_key.values():
        if entry.lifecycle.superseded_by in waiting:
            waiting[entry.lifecycle.superseded_by] += 1
    heap = [_rank(entry) for key, entry in by_key.items() if not waiting[key]]
    heapq.heapify(heap)
    ordered: list[LineageEntry] = []
    while heap:
        entry = by_key[heapq.heappop(heap)[-1]]
        ordered.append(entry)
        successor = entry.lifecycle.superseded_by
        if successor in waiting:
            waiting[successor] -= 1
            if not waiting[successor]:
                heapq.heappush(heap, _rank(by_key[successor]))
    # Marks that somebody wrote by hand may form a circle.
    listed = {entry.key for entry in ordered}
    return ordered + sorted((e for k, e in by_key.items() if k not in listed), key=_rank)


def _rank(entry: LineageEntry) -> tuple[datetime, int, str]:
    first = entry.events[0].seq if entry.events else 0
    return (entry.said_at or _EARLIEST, first, entry.key)
