"""Candidates in quarantine, which a person releases or discards.

`Quarantine` is a view of the journal, so it cannot disagree with the receipts. An entry is
identified by the id of its receipt. Methods have async twins with the prefix `a`.
"""

import sqlite3
from dataclasses import dataclass
from datetime import datetime

from langgraph.store.base import BaseStore

from memguard.errors import ErrorCode, InvalidInputError, StoreError
from memguard.journal.events import (
    Intent,
    JournalEvent,
    State,
    add_event,
    events_of,
    state_of,
    to_json,
)
from memguard.journal.journal import Journal
from memguard.journal.receipts import (
    ACTOR,
    RECEIPTS,
    ReceiptFilter,
    ReceiptPage,
    page,
    record_decision,
    record_of,
)
from memguard.journal.storing import fulfil
from memguard.portal import run_sync
from memguard.schema.base import Namespace
from memguard.schema.memory import CandidateMemory, MemoryRecord
from memguard.schema.receipt import Receipt

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
            StoreError: If the store failed; the next `recover` finishes the release.
        """
        # Not a second copy of the steps for sync stores: a release must store as a commit does.
        return run_sync(self.arelease(receipt_id, actor=actor, store=store, reason=reason))

    async def arelease(
        self, receipt_id: str, *, actor: str, store: BaseStore, reason: str = ""
    ) -> ReleaseResult:
        """See `release`."""
        at = self._journal.now()
        intent = await self._journal.awrite(
            _intend_release, receipt_id, actor=actor, reason=reason, at=at
        )
        already = intent.kind == "released"
        if not already:
            stored = await fulfil(self._journal, store, [intent], actor=actor)
            if stored.problems:
                raise StoreError(stored.problems[0], code=ErrorCode.STORE_FAILED)
        return ReleaseResult(record=intent.record, already=already)

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


def _intend_release(
    db: sqlite3.Connection, receipt_id: str, *, actor: str, reason: str, at: datetime
) -> Intent:
    """Log the intent to store a candidate; its kind is `released` if that was done before."""
    receipt = RECEIPTS.get(db, receipt_id)
    state = state_of(db, receipt.id)
    record = record_of(receipt)
    if state == "released":
        return Intent(receipt_id=receipt.id, kind="released", record=record)
    # A release that was interrupted is completed by calling it again.
    if state not in {"held", "releasing"}:
        raise _wrong_state(receipt, state, action="release")
    body = to_json({"record": record.model_dump(mode="json"), "reason": reason})
    kind = "release_intended"
    add_event(db, kind, receipt.id, receipt.candidate.id, actor=actor, at=at, body=body)
    return Intent(receipt_id=receipt.id, kind=kind, record=record)


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
