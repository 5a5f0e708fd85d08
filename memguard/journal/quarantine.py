"""Candidates held on doubt: nothing is lost, a person releases or discards them.

Quarantine is a view of the journal, so it cannot disagree with the receipts. An entry is named by
the id of its receipt. Methods that wait have a twin for event loops with an `a` before the name.
"""

import functools
import sqlite3
from dataclasses import dataclass
from datetime import datetime

from langgraph.store.base import BaseStore

from memguard.errors import ErrorCode, InvalidInputError, StoreError
from memguard.journal.commit import Placed, aplace, place
from memguard.journal.events import (
    Intent,
    JournalEvent,
    State,
    add_event,
    end_intents,
    events_of,
    state_of,
    to_json,
)
from memguard.journal.journal import Journal
from memguard.journal.receipts import (
    RECEIPTS,
    ReceiptFilter,
    ReceiptPage,
    page,
    record_decisions,
    record_of,
)
from memguard.schema.base import Namespace
from memguard.schema.memory import CandidateMemory, MemoryRecord
from memguard.schema.receipt import Receipt

_ACTOR = "memguard"

_HELD = """id IN (SELECT receipt_id FROM events WHERE kind = 'held'
    EXCEPT SELECT receipt_id FROM events
    WHERE kind IN ('release_intended', 'released', 'discarded'))"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Held:
    """A candidate that was put in quarantine, and what became of it."""

    receipt: Receipt
    """The decision that put it there."""
    state: State
    """`held`, `releasing`, `released`, `discarded` or `deleted`."""
    history: tuple[JournalEvent, ...]
    """All that happened to it, with actor and time."""

    @property
    def candidate(self) -> CandidateMemory:
        """The candidate."""
        return self.receipt.candidate


@dataclass(frozen=True, kw_only=True, slots=True)
class Released:
    """A candidate that left quarantine for the memory store."""

    record: MemoryRecord
    """The record in the store."""
    already: bool
    """Whether it had been released before, so that this call changed nothing."""


class Quarantine:
    """The candidates held on doubt."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def hold(self, receipt: Receipt, *, actor: str = _ACTOR) -> Receipt:
        """Log a decision to quarantine a candidate; `commit` does this for a batch.

        Raises:
            InvalidInputError: If the decision is not to quarantine.
        """
        return self._journal.write(
            functools.partial(_hold, receipt=receipt, actor=actor, at=self._journal.now())
        )

    async def ahold(self, receipt: Receipt, *, actor: str = _ACTOR) -> Receipt:
        """See `hold`."""
        return await self._journal.awrite(
            functools.partial(_hold, receipt=receipt, actor=actor, at=self._journal.now())
        )

    def list(
        self, *, namespace: Namespace = (), limit: int = 50, before: int | None = None
    ) -> ReceiptPage:
        """The decisions on candidates that are held now, newest first.

        Args:
            namespace: The beginning of their namespace.
            limit: The most to return.
            before: Where the last page ended.
        """
        return self._journal.read(lambda db: _list(db, namespace, limit=limit, before=before))

    async def alist(
        self, *, namespace: Namespace = (), limit: int = 50, before: int | None = None
    ) -> ReceiptPage:
        """See `list`."""
        return await self._journal.aread(
            lambda db: _list(db, namespace, limit=limit, before=before)
        )

    def show(self, receipt_id: str) -> Held:
        """One entry with its history, by the id of its receipt or the beginning of it.

        Raises:
            InvalidInputError: If there is no such receipt, or it never was in quarantine.
        """
        return self._journal.read(functools.partial(_show, receipt_id=receipt_id))

    async def ashow(self, receipt_id: str) -> Held:
        """See `show`."""
        return await self._journal.aread(functools.partial(_show, receipt_id=receipt_id))

    def release(
        self, receipt_id: str, *, actor: str, store: BaseStore, reason: str = ""
    ) -> Released:
        """Store a held candidate after all; releasing it again changes nothing and says so.

        Interrupted at any point, the release is finished by the next `recover`.

        Args:
            receipt_id: The id of its receipt, or the beginning of it.
            actor: Who releases it.
            store: The memory store.
            reason: Why.

        Raises:
            InvalidInputError: If it is not held.
            StoreError: If the store failed; the release is finished by the next `recover`.
        """
        intent = self._journal.write(
            functools.partial(
                _release, receipt_id=receipt_id, actor=actor, reason=reason, at=self._journal.now()
            )
        )
        if intent.kind == "released":
            return Released(record=intent.record, already=True)
        _require(place(store, [intent.record]))
        self._journal.write(
            functools.partial(end_intents, intents=[intent], actor=actor, at=self._journal.now())
        )
        return Released(record=intent.record, already=False)

    async def arelease(
        self, receipt_id: str, *, actor: str, store: BaseStore, reason: str = ""
    ) -> Released:
        """See `release`."""
        intent = await self._journal.awrite(
            functools.partial(
                _release, receipt_id=receipt_id, actor=actor, reason=reason, at=self._journal.now()
            )
        )
        if intent.kind == "released":
            return Released(record=intent.record, already=True)
        _require(await aplace(store, [intent.record]))
        await self._journal.awrite(
            functools.partial(end_intents, intents=[intent], actor=actor, at=self._journal.now())
        )
        return Released(record=intent.record, already=False)

    def discard(self, receipt_id: str, *, actor: str, reason: str) -> Held:
        """Throw a held candidate out; its receipt stays. Discarding it again changes nothing.

        Raises:
            InvalidInputError: If it is not held.
        """
        return self._journal.write(
            functools.partial(
                _discard, receipt_id=receipt_id, actor=actor, reason=reason, at=self._journal.now()
            )
        )

    async def adiscard(self, receipt_id: str, *, actor: str, reason: str) -> Held:
        """See `discard`."""
        return await self._journal.awrite(
            functools.partial(
                _discard, receipt_id=receipt_id, actor=actor, reason=reason, at=self._journal.now()
            )
        )


def _hold(db: sqlite3.Connection, *, receipt: Receipt, actor: str, at: datetime) -> Receipt:
    if receipt.outcome != "quarantined":
        msg = (
            f"receipt {receipt.id!r} is {receipt.outcome!r}, not 'quarantined'; only a decision to "
            "quarantine puts a candidate there"
        )
        raise InvalidInputError(msg, code=ErrorCode.QUARANTINE_STATE)
    return record_decisions(db, [receipt], actor=actor, at=at)[0]


def _list(
    db: sqlite3.Connection, namespace: Namespace, *, limit: int, before: int | None
) -> ReceiptPage:
    return page(db, ReceiptFilter(namespace=namespace), limit=limit, before=before, also=_HELD)


def _show(db: sqlite3.Connection, *, receipt_id: str) -> Held:
    receipt = RECEIPTS.get(db, receipt_id)
    state = state_of(db, receipt.id)
    if receipt.outcome != "quarantined" or state is None:
        raise _wrong_state(receipt, state, wish="show")
    return Held(receipt=receipt, state=state, history=events_of(db, receipt.id))


def _release(
    db: sqlite3.Connection, *, receipt_id: str, actor: str, reason: str, at: datetime
) -> Intent:
    """The intent to store; its kind is `released` when that is done already."""
    receipt = RECEIPTS.get(db, receipt_id)
    state = state_of(db, receipt.id)
    record = record_of(receipt)
    if state == "released":
        return Intent(receipt_id=receipt.id, kind="released", record=record)
    if state not in {"held", "releasing"}:
        raise _wrong_state(receipt, state, wish="release")
    add_event(
        db,
        "release_intended",
        receipt_id=receipt.id,
        candidate_id=receipt.candidate.id,
        actor=actor,
        at=at,
        body=to_json({"record": record.model_dump(mode="json"), "reason": reason}),
    )
    return Intent(receipt_id=receipt.id, kind="release_intended", record=record)


def _discard(
    db: sqlite3.Connection, *, receipt_id: str, actor: str, reason: str, at: datetime
) -> Held:
    receipt = RECEIPTS.get(db, receipt_id)
    state = state_of(db, receipt.id)
    if state not in {"held", "discarded"}:
        raise _wrong_state(receipt, state, wish="discard")
    add_event(
        db,
        "discarded",
        receipt_id=receipt.id,
        candidate_id=receipt.candidate.id,
        actor=actor,
        at=at,
        body=to_json({"reason": reason}),
    )
    return Held(receipt=receipt, state="discarded", history=events_of(db, receipt.id))


def _require(placed: Placed) -> None:
    if placed.problems:
        raise StoreError(placed.problems[0], code=ErrorCode.STORE_FAILED)


def _wrong_state(receipt: Receipt, state: State | None, *, wish: str) -> InvalidInputError:
    msg = (
        f"cannot {wish} receipt {receipt.id!r}: its candidate is {state!r} (outcome "
        f"{receipt.outcome!r}), not 'held'; `memguard quarantine list` shows what is held"
    )
    return InvalidInputError(msg, code=ErrorCode.QUARANTINE_STATE)
