"""Candidates in quarantine, which a person releases or discards.

`Quarantine` is a view of the journal, so it cannot disagree with the receipts. An entry is
identified by the id of its receipt. Methods have async twins with the prefix `a`.
"""

import sqlite3
from dataclasses import dataclass
from datetime import datetime

from langgraph.store.base import BaseStore

from memguard.errors import ErrorCode, InvalidInputError, MemguardError, StoreError
from memguard.journal.events import (
    Intent,
    JournalEvent,
    State,
    add_event,
    events_of,
    pending_intents,
    state_of,
    to_json,
)
from memguard.journal.fulfilment import fulfil
from memguard.journal.journal import Journal
from memguard.journal.marks import Comparison, end_of_log, log_marks, refuse_outdated
from memguard.journal.receipts import (
    ACTOR,
    RECEIPTS,
    ReceiptFilter,
    ReceiptPage,
    intent_body,
    page,
    record_decision,
    record_of,
)
from memguard.journal.storing import get_items
from memguard.portal import run_sync
from memguard.schema.base import Namespace
from memguard.schema.memory import CandidateMemory, MemoryRecord, lifecycle_of
from memguard.schema.receipt import Receipt
from memguard.schema.relations import RecordChange

# A release that was started counts as out of quarantine: `recover` finishes it.
_IN_QUARANTINE = """id IN (SELECT receipt_id FROM events WHERE kind = 'held'
    EXCEPT SELECT receipt_id FROM events
    WHERE kind IN ('release_intended', 'released', 'discarded'))"""


@dataclass(frozen=True, kw_only=True, slots=True)
class QuarantineEntry:
    """A candidate that is or was in quarantine, and what happened to it."""

    receipt: Receipt
    """The decision to quarantine it."""
    state: State
    """`held`, `releasing`, `released`, `discarded` or `deleted`."""
    history: tuple[JournalEvent, ...]
    """Its events, with actor and time."""

    @property
    def candidate(self) -> CandidateMemory:
        """The candidate."""
        return self.receipt.candidate


@dataclass(frozen=True, kw_only=True, slots=True)
class ReleaseResult:
    """The result of a release from quarantine."""

    record: MemoryRecord
    """The record in the store."""
    already: bool
    """Whether it had been released before, so that this call changed nothing."""


class Quarantine:
    """The candidates that a decision put into quarantine."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def hold(self, receipt: Receipt, *, actor: str = ACTOR) -> Receipt:
        """Log a decision to quarantine a candidate; `commit` does this for a batch.

        Raises:
            InvalidInputError: If the decision is not to quarantine.
        """
        return self._journal.write(_hold, receipt, actor=actor, at=self._journal.now())

    async def ahold(self, receipt: Receipt, *, actor: str = ACTOR) -> Receipt:
        """See `hold`."""
        return await self._journal.awrite(_hold, receipt, actor=actor, at=self._journal.now())

    def list(
        self, *, namespace: Namespace = (), limit: int = 50, before: int | None = None
    ) -> ReceiptPage:
        """The decisions on the candidates that are in quarantine now, newest first.

        `namespace` is the beginning of their namespace, `before` is that of the previous page.
        """
        criteria = ReceiptFilter(namespace=namespace)
        return self._journal.read(page, criteria, limit=limit, before=before, also=_IN_QUARANTINE)

    async def alist(
        self, *, namespace: Namespace = (), limit: int = 50, before: int | None = None
    ) -> ReceiptPage:
        """See `list`."""
        criteria = ReceiptFilter(namespace=namespace)
        return await self._journal.aread(
            page, criteria, limit=limit, before=before, also=_IN_QUARANTINE
        )

    def show(self, receipt_id: str) -> QuarantineEntry:
        """One entry with its history, by the id of its receipt or the beginning of it.

        Raises:
            InvalidInputError: If there is no such receipt, or it never was in quarantine.
        """
        return self._journal.read(_show, receipt_id)

    async def ashow(self, receipt_id: str) -> QuarantineEntry:
        """See `show`."""
        return await self._journal.aread(_show, receipt_id)

    def release(
        self, receipt_id: str, *, actor: str, store: BaseStore, reason: str = ""
    ) -> ReleaseResult:
        """Store a candidate from quarantine; releasing it again changes nothing and says so.

        If this is interrupted, the next `recover` finishes the release.

        Args:
            receipt_id: The id of its receipt, or the beginning of it.
            actor: Who releases it.
            store: The memory store.
            reason: Why.

        Raises:
            InvalidInputError: If it is not in quarantine.
            RecordChangedError: If a memory that it changes was changed at the same time.
            StoreError: If the store failed; the next `recover` finishes the release.
        """
        # Not a second copy of the steps for sync stores: a release must store as a commit does.
        return run_sync(self.arelease(receipt_id, actor=actor, store=store, reason=reason))

    async def arelease(
        self, receipt_id: str, *, actor: str, store: BaseStore, reason: str = ""
    ) -> ReleaseResult:
        """See `release`."""
        receipt = await self._journal.aread(RECEIPTS.get, receipt_id)
        position = await self._journal.aread(end_of_log)
        changes = await _changes_now(receipt, store)
        intent = await self._journal.awrite(
            _intend_release,
            receipt.id,
            changes,
            Comparison(position=position),
            actor=actor,
            reason=reason,
            at=self._journal.now(),
        )
        if intent is not None:
            stored = await fulfil(self._journal, store, [intent], actor=actor)
            if stored.problems:
                raise StoreError(stored.problems[0], code=ErrorCode.STORE_FAILED)
        record = record_of(receipt) if intent is None else intent.record or record_of(receipt)
        return ReleaseResult(record=record, already=intent is None)

    def discard(self, receipt_id: str, *, actor: str, reason: str) -> QuarantineEntry:
        """Discard a candidate; its receipt stays. Discarding it again changes nothing.

        Raises:
            InvalidInputError: If it is not in quarantine.
        """
        at = self._journal.now()
        return self._journal.write(_discard, receipt_id, actor=actor, reason=reason, at=at)

    async def adiscard(self, receipt_id: str, *, actor: str, reason: str) -> QuarantineEntry:
        """See `discard`."""
        at = self._journal.now()
        return await self._journal.awrite(_discard, receipt_id, actor=actor, reason=reason, at=at)


def _hold(db: sqlite3.Connection, receipt: Receipt, *, actor: str, at: datetime) -> Receipt:
    if receipt.outcome != "quarantined":
        msg = (
            f"receipt {receipt.id!r} is {receipt.outcome!r}, not 'quarantined'; only a decision to "
            "quarantine puts a candidate there"
        )
        raise InvalidInputError(msg, code=ErrorCode.QUARANTINE_STATE)
    return record_decision(db, receipt, actor=actor, at=at)


def _show(db: sqlite3.Connection, receipt_id: str) -> QuarantineEntry:
    receipt = RECEIPTS.get(db, receipt_id)
    # By the full id: `receipt_id` may be the beginning of it.
    state = state_of(db, receipt.id)
    if receipt.outcome != "quarantined" or state is None:
        raise _wrong_state(receipt, state, action="show")
    return QuarantineEntry(receipt=receipt, state=state, history=events_of(db, receipt.id))


async def _changes_now(receipt: Receipt, store: BaseStore) -> tuple[RecordChange, ...]:
    """The changes that a release makes: those of the decision which still fit the store.

    An earlier record of the same text that is no longer current becomes current again.
    """
    record = record_of(receipt)
    locations = {(change.namespace, change.key) for change in receipt.changes}
    try:
        items = await get_items({*locations, (record.namespace, record.key)}, store=store)
    except MemguardError:
        # The release calls the same store once it is logged, and raises the error then.
        return receipt.changes
    states = {at: lifecycle_of(item.value) for at, item in items.items() if item is not None}
    changes = [
        change
        for change in receipt.changes
        if states.get((change.namespace, change.key)) == change.before
    ]
    # A value of a caller's own replaces the item, with what it says about itself.
    earlier = None if record.value else states.get((record.namespace, record.key))
    if earlier is not None and not earlier.is_current:
        changes.append(
            RecordChange(
                namespace=record.namespace,
                key=record.key,
                before=earlier,
                after=record.lifecycle,
                candidate_id=receipt.candidate.id,
            )
        )
    return tuple(changes)


def _intend_release(
    db: sqlite3.Connection,
    receipt_id: str,
    changes: tuple[RecordChange, ...],
    compared: Comparison,
    *,
    actor: str,
    reason: str,
    at: datetime,
) -> Intent | None:
    """Log the intent to store a candidate, and return it; `None` if it was released before."""
    receipt = RECEIPTS.get(db, receipt_id)
    state = state_of(db, receipt.id)
    if state == "released":
        return None
    # A release that was interrupted is completed by calling it again.
    if state not in {"held", "releasing", "pending"}:
        raise _wrong_state(receipt, state, action="release")
    if state == "held":
        refuse_outdated(db, receipt, changes, compared)
        log_marks(db, receipt, changes, actor=actor, at=at)
        body = intent_body(record_of(receipt), changes, reason=reason)
        ids = (receipt.id, receipt.candidate.id)
        add_event(db, "release_intended", *ids, actor=actor, at=at, body=body)
    # As it was logged: the store may have changed since an interruption.
    pending = pending_intents(db, receipt_ids=[receipt.id])
    return pending[0][1] if pending else None


def _discard(
    db: sqlite3.Connection, receipt_id: str, *, actor: str, reason: str, at: datetime
) -> QuarantineEntry:
    receipt = RECEIPTS.get(db, receipt_id)
    state = state_of(db, receipt.id)
    # Not "releasing": its memory may be in the store already.
    if state not in {"held", "discarded"}:
        raise _wrong_state(receipt, state, action="discard")
    body = to_json({"reason": reason})
    add_event(db, "discarded", receipt.id, receipt.candidate.id, actor=actor, at=at, body=body)
    return QuarantineEntry(receipt=receipt, state="discarded", history=events_of(db, receipt.id))


def _wrong_state(receipt: Receipt, state: State | None, *, action: str) -> InvalidInputError:
    msg = (
        f"cannot {action} receipt {receipt.id!r}: its candidate is {state!r} (outcome "
        f"{receipt.outcome!r}), not 'held'; `memguard quarantine list` shows what is held"
    )
    return InvalidInputError(msg, code=ErrorCode.QUARANTINE_STATE)
