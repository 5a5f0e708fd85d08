"""Carries out in the memory store what the log intends: new records first, then changes of others.

The new record comes first, so that no reader finds the old memory retired and its successor
missing. A memory store has no transaction and no conditional write. A change is therefore read,
written and read back. Where several processes may share the store, it is read once more after
`SETTLE_SECONDS`, which is longer than another writer takes between its own read and write. A writer
that then finds another state has lost: its record stays, and its record and that of the winner name
each other as in conflict.
"""

import asyncio
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from langgraph.store.base import BaseStore, Item, Op, PutOp
from langgraph.store.memory import InMemoryStore

from memguard.errors import MemguardError
from memguard.journal.events import DONE_BY, Intent, add_event, state_of, to_json
from memguard.journal.journal import Journal
from memguard.journal.marks import (
    Comparison,
    changed_message,
    effective_changes,
    end_of_log,
    location_id,
    marks_of,
)
from memguard.journal.storing import (
    ErasingStore,
    NamespacedKey,
    StoredRecords,
    call_or_advise,
    default_ttl,
    get_items,
    owner_of,
    store_records,
)
from memguard.schema.memory import Lifecycle, lifecycle_of, with_lifecycle
from memguard.schema.receipt import Receipt
from memguard.schema.relations import RecordChange

SETTLE_SECONDS = 0.25
"""How long a change is watched in a store that several processes may share, at least."""

_RECOVERABLE = "the change is in the receipt log, and the next `recover` makes it"
_DELETED = "the memory is not in the store any more"


@dataclass(frozen=True, kw_only=True, slots=True)
class LostChange:
    """A change that another process made impossible between its check and its write."""

    change: RecordChange
    """The change."""
    reason: str
    """What the store has instead, for a person."""
    winner: str = ""
    """The key of the memory that the store names as the successor."""


@dataclass
class _Applied:
    """The result of an attempt to make some changes, by receipt id."""

    problems: dict[str, str] = field(default_factory=dict[str, str])
    lost: dict[str, list[LostChange]] = field(default_factory=dict[str, list[LostChange]])

    def lose(self, intent: Intent, change: RecordChange, item: Item | None) -> None:
        losses = self.lost.setdefault(intent.receipt_id, [])
        if item is None:
            losses.append(LostChange(change=change, reason=_DELETED))
            return
        current = lifecycle_of(item.value)
        winner = current.superseded_by
        reason = (
            f"superseded by {winner!r}" if winner else f"{current.ended_as or 'changed'} elsewhere"
        )
        losses.append(LostChange(change=change, reason=reason, winner=winner))


async def compare_with_store(
    journal: Journal, store: BaseStore, receipts: Sequence[Receipt]
) -> Comparison:
    """Compare the memories that some receipts change with the state they are changed from.

    Without changes this reads nothing. If the store fails, nothing is outdated: the decision is
    logged, and compared again when the changes are made.
    """
    pairs = [(receipt, change) for receipt in receipts for change in effective_changes(receipt)]
    if not pairs:
        return Comparison()
    # Before the store: a change that is logged after this may not be in what is read.
    position = await journal.aread(end_of_log)
    try:
        items = await get_items({(c.namespace, c.key) for _, c in pairs}, store=store)
    except MemguardError:
        return Comparison(position=position)
    outdated: dict[str, str] = {}
    # The receipts of one batch may build on each other.
    states = {at: lifecycle_of(item.value) for at, item in items.items() if item is not None}
    for receipt, change in pairs:
        at = (change.namespace, change.key)
        if at not in states:
            outdated.setdefault(receipt.id, changed_message(change, "(it was deleted)"))
        elif states[at] != change.before:
            by = states[at].superseded_by
            how = f"(it is superseded by {by!r})" if by else "by another process"
            outdated.setdefault(receipt.id, changed_message(change, how))
        else:
            states[at] = change.after
    return Comparison(position=position, outdated=outdated)


async def fulfil(
    journal: Journal, store: BaseStore, intents: Sequence[Intent], *, actor: str
) -> StoredRecords:
    """Store the records of intents, then make their changes, and log those that were read back.

    Raises:
        StoreError: If the store failed.
        ReceiptError: If the log failed.
    """
    records = [intent.record for intent in intents if intent.record is not None]
    refusals = iter(await store_records(records, store=store))
    problems = [None if intent.record is None else next(refusals) for intent in intents]
    stored = [intent for intent, problem in zip(intents, problems, strict=True) if problem is None]
    applied = _Applied()
    if any(intent.changes for intent in stored):
        applied = await _apply_changes(journal, store, stored)
    done = [intent for intent in stored if intent.receipt_id not in applied.problems]
    if done:
        forgotten = await journal.awrite(
            _end_intents, done, applied.lost, actor=actor, at=journal.now()
        )
        await _remove(store, forgotten)
    return StoredRecords(
        records=tuple(intent.record for intent in done if intent.record is not None),
        problems=(*(p for p in problems if p is not None), *applied.problems.values()),
        changed=tuple(intent.receipt_id for intent in done if intent.record is None),
    )


async def _remove(store: BaseStore, intents: Sequence[Intent]) -> None:
    """Delete the records of decisions that were forgotten while their records were stored."""
    records = [intent.record for intent in intents if intent.record is not None]
    if records:
        deletions = [PutOp(record.namespace, record.key, None) for record in records]
        await call_or_advise(store, deletions, advice="forget the memory again")
        if isinstance(store, ErasingStore):
            await store.aerase()


def _end_intents(
    db: sqlite3.Connection,
    intents: Sequence[Intent],
    lost: Mapping[str, Sequence[LostChange]],
    *,
    actor: str,
    at: datetime,
) -> tuple[Intent, ...]:
    """Log that the records and changes of these intents are in the memory store.

    Returns:
        The intents of decisions that were forgotten meanwhile, of which nothing is logged.
    """
    forgotten: list[Intent] = []
    for intent in intents:
        if state_of(db, intent.receipt_id) == "forgotten":
            forgotten.append(intent)
            continue
        ids = (intent.receipt_id, intent.candidate_id)
        if intent.receipt_id in lost:
            losses = [
                {
                    "place": location_id(loss.change.namespace, loss.change.key),
                    "key": loss.change.key,
                    "reason": loss.reason,
                    "winner": loss.winner,
                }
                for loss in lost[intent.receipt_id]
            ]
            add_event(db, "change_lost", *ids, actor=actor, at=at, body=to_json({"lost": losses}))
        add_event(db, DONE_BY[intent.kind], *ids, actor=actor, at=at)
    return tuple(forgotten)


# -- changes ----------------------------------------------------------------------------------


async def _apply_changes(journal: Journal, store: BaseStore, intents: Sequence[Intent]) -> _Applied:
    """Make the changes of some intents, in their order; doing it again changes nothing."""
    applied = _Applied()
    places = {(change.namespace, change.key) for intent in intents for change in intent.changes}
    # A later decision on the same memory began with the result of this one, so it was made.
    overtaken = await journal.aread(_overtaken, intents)
    items = await get_items(places, store=store)
    states = {at: lifecycle_of(item.value) for at, item in items.items() if item is not None}
    changes: list[tuple[Intent, RecordChange]] = []
    for intent in intents:
        for change in intent.changes:
            at = (change.namespace, change.key)
            if (intent.receipt_id, location_id(*at)) in overtaken:
                continue
            if states.get(at) == change.before:
                states[at] = change.after
            if states.get(at) == change.after:
                changes.append((intent, change))
            else:
                applied.lose(intent, change, items[at])
    lifecycles = {
        at: states[at]
        for at, item in items.items()
        if item is not None and states[at] != lifecycle_of(item.value)
    }
    if lifecycles:
        await _put_and_watch(journal, store, items, lifecycles, changes=changes, applied=applied)
    if applied.lost:
        await _mark_conflicts(store, intents, applied)
    return applied


async def _put_and_watch(
    journal: Journal,
    store: BaseStore,
    items: Mapping[NamespacedKey, Item | None],
    lifecycles: Mapping[NamespacedKey, Lifecycle],
    *,
    changes: Sequence[tuple[Intent, RecordChange]],
    applied: _Applied,
) -> None:
    """Put items with their new lifecycles, and see whether they stay."""
    start = time.monotonic()
    await _put(journal, store, items, lifecycles)
    readings = [await get_items(lifecycles, store=store)]
    if is_shared(store):
        # Where an exchange takes long, it takes long for the other writer as well.
        await asyncio.sleep(max(SETTLE_SECONDS, 2 * (time.monotonic() - start)))
        readings.append(await get_items(lifecycles, store=store))
    lost: dict[NamespacedKey, Item | None] = {}
    ignored: set[NamespacedKey] = set()
    for reading in readings:
        for at, item in reading.items():
            old = items[at]
            if item is None:
                lost.setdefault(at, item)
            elif old is not None and item.value == old.value:
                ignored.add(at)
            elif lifecycle_of(item.value) != lifecycles[at]:
                lost.setdefault(at, item)
    for intent, change in changes:
        at = (change.namespace, change.key)
        if at in lost:
            applied.lose(intent, change, lost[at])
        elif at in ignored:
            applied.problems[intent.receipt_id] = (
                f"key {at[1]!r} in namespace {at[0]!r} came back without its change"
            )


async def _put(
    journal: Journal,
    store: BaseStore,
    items: Mapping[NamespacedKey, Item | None],
    lifecycles: Mapping[NamespacedKey, Lifecycle],
) -> None:
    ops: list[Op] = []
    for (namespace, key), lifecycle in lifecycles.items():
        item = items[namespace, key]
        if item is None:
            continue
        is_ours = owner_of(item.value) is not None
        ttl = default_ttl(store)
        if not is_ours and store.supports_ttl:
            ttl = await journal.aread(_logged_ttl, namespace, key, default=ttl)
        ops.append(
            PutOp(
                namespace=namespace,
                key=key,
                value=with_lifecycle(item.value, lifecycle),
                # As the record was put; other items are indexed as the store is configured.
                index=["content"] if is_ours else None,
                ttl=ttl,
            )
        )
    await call_or_advise(store, ops, advice=_RECOVERABLE)


async def repeat_changes(
    journal: Journal, store: BaseStore, changes: Sequence[RecordChange]
) -> None:
    """Make changes again that the store has lost; the caller has compared it with the log.

    Raises:
        StoreError: If the store failed.
    """
    lifecycles = {(change.namespace, change.key): change.after for change in changes}
    items = await get_items(lifecycles, store=store)
    await _put(journal, store, items, lifecycles)


async def _mark_conflicts(store: BaseStore, intents: Sequence[Intent], applied: _Applied) -> None:
    """Let the record of a lost supersession and that of the winner name each other.

    Both are stored, and nothing says which of them holds. Without this, both would be served as
    certain.
    """
    rivals: list[tuple[NamespacedKey, str]] = []
    for intent in intents:
        for loss in applied.lost.get(intent.receipt_id, ()):
            successor = loss.change.after.superseded_by
            if successor and loss.winner and loss.winner != successor:
                namespace = loss.change.namespace
                rivals.append(((namespace, successor), loss.winner))
                rivals.append(((namespace, loss.winner), successor))
    if not rivals:
        return
    items = await get_items({at for at, _ in rivals}, store=store)
    values: dict[NamespacedKey, dict[str, Any]] = {}
    for at, rival in rivals:
        item = items[at]
        if item is None:
            continue
        value = values.get(at, item.value)
        lifecycle = lifecycle_of(value)
        if rival not in lifecycle.conflicts_with:
            keys = (*lifecycle.conflicts_with, rival)
            changed = lifecycle.model_copy(update={"conflicts_with": keys})
            values[at] = with_lifecycle(value, changed)
    ops = [
        PutOp(*at, value, index=["content"] if owner_of(value) else None, ttl=default_ttl(store))
        for at, value in values.items()
    ]
    if ops:
        await call_or_advise(store, ops, advice=_RECOVERABLE)


def is_shared(store: BaseStore) -> bool:
    """Whether another process may write to the store at the same time."""
    return getattr(store, "is_shared", not isinstance(store, InMemoryStore))


def _overtaken(db: sqlite3.Connection, intents: Sequence[Intent]) -> set[tuple[str, str]]:
    """The changes after which another decision on the same memory ended, as receipt and place."""
    overtaken: set[tuple[str, str]] = set()
    batch = {intent.receipt_id for intent in intents}
    for intent in intents:
        for change in intent.changes:
            marks = marks_of(db, change.namespace, change.key)
            first = [mark.seq for mark in marks if mark.receipt_id == intent.receipt_id]
            later = (
                mark
                for mark in marks
                if first and mark.seq > first[0] and mark.settled and mark.receipt_id not in batch
            )
            if any(later):
                digest = location_id(change.namespace, change.key)
                overtaken.add((intent.receipt_id, digest))
    return overtaken


def _logged_ttl(
    db: sqlite3.Connection, namespace: tuple[str, ...], key: str, *, default: float | None
) -> float | None:
    """The minutes that the caller of a guarded store gave the item at its latest put."""
    row = db.execute(
        """SELECT json_extract(events.body, '$.ttl') FROM receipts CROSS JOIN events
        ON events.receipt_id = receipts.id AND events.kind = 'stored'
        WHERE namespace = ? AND record_key = ? ORDER BY events.seq DESC LIMIT 1""",
        (to_json(namespace), key),
    ).fetchone()
    return default if row is None or row[0] is None else float(row[0])
