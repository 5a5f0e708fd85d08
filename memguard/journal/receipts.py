"""The receipt log: every decision, whole, in the order in which it was made.

Every method has an async twin with the prefix `a`; both run the same function in the journal's
thread.
"""

import functools
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from memguard.errors import ErrorCode, ReceiptError
from memguard.journal.events import (
    EventKind,
    JournalEvent,
    State,
    add_event,
    events_after,
    events_of,
    state_of,
    to_json,
)
from memguard.journal.journal import Journal
from memguard.journal.rows import Rows, namespace_bounds, time_conditions, utc_text
from memguard.schema.base import Namespace
from memguard.schema.memory import MemoryRecord, Provenance, record_key
from memguard.schema.receipt import Receipt, WriteOutcome


def record_of(receipt: Receipt) -> MemoryRecord:
    """The record that a receipt admits, or would admit when its candidate is released."""
    candidate = receipt.candidate
    return MemoryRecord(
        namespace=receipt.namespace,
        key=receipt.record_key or record_key(candidate.text),
        text=candidate.text,
        value=receipt.value,
        provenance=Provenance(
            candidate_id=candidate.id,
            receipt_id=receipt.id,
            conversation_id=candidate.conversation_id,
            turn_ids=candidate.turn_ids,
            subject=candidate.subject,
            said_by=candidate.said_by,
            said_at=candidate.said_at,
        ),
    )


_PLACED = frozenset({"stored", "quarantined"})
"""Outcomes whose candidate is, or may become, a record."""

RECEIPTS = Rows(
    table="receipts",
    model=Receipt,
    noun="receipt",
    erasure="forgotten at {at} by {actor}; its content is gone",
)
"""The rows of the log of decisions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReceiptFilter:
    """Which receipts; everything left out matches all."""

    namespace: Namespace = ()
    """The beginning of their namespace."""
    outcome: WriteOutcome | None = None
    """What became of the candidate."""
    run_id: str | None = None
    """The run they belong to."""
    candidate_id: str | None = None
    """The candidate they decide on."""
    since: datetime | None = None
    """The earliest time, itself included."""
    until: datetime | None = None
    """The latest time, itself left out."""

    def where(self) -> tuple[str, tuple[str, ...]]:
        """The condition in SQL, and the values that stand in it."""
        parts: list[str] = ["1"]
        values: list[str] = []
        for column in ("outcome", "run_id", "candidate_id"):
            value = getattr(self, column)
            if value is not None:
                parts.append(f"{column} = ?")
                values.append(value)
        for condition, at in time_conditions(self.since, self.until):
            parts.append(condition)
            values.append(at)
        if self.namespace:
            parts.append(
                "seq IN (SELECT seq FROM receipts WHERE namespace = ? "
                "UNION ALL SELECT seq FROM receipts WHERE namespace > ? AND namespace < ?)"
            )
            values.extend(namespace_bounds(self.namespace))
        return " AND ".join(parts), tuple(values)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReceiptPage:
    """Receipts, newest first."""

    receipts: tuple[Receipt, ...]
    """The receipts."""
    before: int | None
    """Give this to `list` for the next page; `None` on the last page."""


def record_decisions(
    db: sqlite3.Connection, receipts: Sequence[Receipt], *, actor: str, at: datetime
) -> tuple[Receipt, ...]:
    """Log decisions, with the intent to store what is admitted and the holding of what is doubted.

    A decision that the log knows is left as it is: a candidate is judged once under each policy.

    Args:
        db: The database, in a transaction.
        receipts: The decisions.
        actor: Who brings them.
        at: When.

    Returns:
        For each decision the receipt in the log, which may be an earlier one on the same candidate
        under the same policy.

    Raises:
        ReceiptError: If the id of a receipt is that of another decision, or of a forgotten one.
    """
    return tuple(_record(db, receipt, actor=actor, at=at) for receipt in receipts)


def _record(db: sqlite3.Connection, receipt: Receipt, *, actor: str, at: datetime) -> Receipt:
    placed = receipt.outcome in _PLACED and receipt.effect != "shadow"
    record = record_of(receipt) if placed else None
    if record is not None and receipt.outcome == "stored" and not receipt.record_key:
        receipt = receipt.model_copy(update={"record_key": record.key})
    candidate_id = receipt.candidate.id
    logged = _known(db, receipt, candidate_id=candidate_id)
    if logged is not None:
        return logged
    db.execute(
        "INSERT INTO receipts (id, candidate_id, policy_digest, namespace, record_key, outcome, "
        "reason, at, run_id, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            receipt.id,
            candidate_id,
            receipt.policy_digest,
            to_json(receipt.namespace),
            receipt.record_key if record is None else record.key,
            receipt.outcome,
            receipt.decision.reason,
            utc_text(receipt.at),
            receipt.run_id,
            receipt.model_dump_json(),
        ),
    )
    _begin_life(db, receipt, record, candidate_id=candidate_id, actor=actor, at=at)
    return receipt


def _begin_life(
    db: sqlite3.Connection,
    receipt: Receipt,
    record: MemoryRecord | None,
    *,
    candidate_id: str,
    actor: str,
    at: datetime,
) -> None:
    events: list[tuple[EventKind, str]] = [("decided", "{}")]
    if record is not None and receipt.outcome == "stored" and receipt.effect == "commit":
        events.append(("intended", f'{{"record":{record.model_dump_json()}}}'))
    elif record is not None and receipt.outcome == "quarantined":
        events.append(("held", "{}"))
    for kind, body in events:
        add_event(
            db,
            kind,
            receipt_id=receipt.id,
            candidate_id=candidate_id,
            actor=actor,
            at=at,
            body=body,
        )


def _known(db: sqlite3.Connection, receipt: Receipt, *, candidate_id: str) -> Receipt | None:
    logged = RECEIPTS.logged(db, receipt.id, receipt.model_dump_json())
    if logged is not None:
        return logged
    if any(event.kind == "forgotten" for event in events_of(db, receipt.id)):
        msg = f"receipt {receipt.id!r} was forgotten and cannot come back; use a new id"
        raise ReceiptError(msg, code=ErrorCode.RECEIPT_FAILED)
    return find(db, candidate_id, receipt.policy_digest)


def find(db: sqlite3.Connection, candidate_id: str, policy_digest: str) -> Receipt | None:
    """The decision on a candidate under a policy, if it was taken already."""
    row = db.execute(
        "SELECT body FROM receipts WHERE candidate_id = ? AND policy_digest = ?",
        (candidate_id, policy_digest),
    ).fetchone()
    return None if row is None else RECEIPTS.load(row[0])


def find_all(
    db: sqlite3.Connection, candidate_ids: Sequence[str], policy_digest: str
) -> dict[str, Receipt]:
    """The decisions on these candidates under a policy, by candidate id."""
    rows = db.execute(
        "SELECT candidate_id, body FROM receipts WHERE policy_digest = ? "
        "AND candidate_id IN (SELECT value FROM json_each(?))",
        (policy_digest, to_json(list(candidate_ids))),
    )
    return {candidate_id: RECEIPTS.load(body) for candidate_id, body in rows}


def page(
    db: sqlite3.Connection,
    which: ReceiptFilter,
    *,
    limit: int,
    before: int | None,
    also: str = "1",
) -> ReceiptPage:
    """Receipts, newest first; `also` is a further condition in SQL."""
    condition, values = which.where()
    receipts, following = RECEIPTS.page(
        db, f"{condition} AND {also}", values, limit=limit, before=before
    )
    return ReceiptPage(receipts=receipts, before=following)


def count(db: sqlite3.Connection, which: ReceiptFilter) -> dict[WriteOutcome, int]:
    """How many receipts there are of each outcome; an outcome without any is left out."""
    condition, values = which.where()
    rows = db.execute(
        f"SELECT outcome, count(*) FROM receipts WHERE {condition} "  # noqa: S608 - constants
        "GROUP BY outcome ORDER BY outcome",
        values,
    )
    return dict(rows.fetchall())


@dataclass(frozen=True, kw_only=True, slots=True)
class Forgotten:
    """What was taken out of the log."""

    candidate_id: str
    """The candidate whose text is gone."""
    receipt_ids: tuple[str, ...]
    """The decisions on it that were erased; empty when it was forgotten before, or undecided."""
    read_ids: tuple[str, ...] = ()
    """The reads that had recalled it, which were erased as well."""


def forget(
    db: sqlite3.Connection, *, which: str, actor: str, reason: str, at: datetime
) -> Forgotten:
    """Erase a candidate from receipts, events, extractions, reads and decompositions.

    Args:
        db: The database, in a transaction.
        which: A candidate id, or the id of a receipt, or the beginning of one.
        actor: Who wants it.
        reason: Why.
        at: When.

    Raises:
        InvalidInputError: If the log knows nothing of that id.
    """
    candidate_id = candidate_of(db, which)
    receipt_ids = tuple(
        row[0]
        for row in db.execute(
            "SELECT id FROM receipts WHERE candidate_id = ? ORDER BY seq", (candidate_id,)
        )
    )
    read_ids = tuple(
        row[0]
        for row in db.execute(
            "SELECT DISTINCT read_id FROM read_memories WHERE candidate_id = ? AND read_id IN "
            "(SELECT id FROM read_receipts) ORDER BY read_id",
            (candidate_id,),
        )
    )
    for receipt_id in (*(receipt_ids or ("",)), *read_ids):
        add_event(
            db,
            "forgotten",
            receipt_id=receipt_id,
            candidate_id=candidate_id,
            actor=actor,
            at=at,
            body=to_json({"reason": reason}),
        )
    # The triggers let these pass because the tombstones stand already.
    for receipt_id in receipt_ids:
        db.execute("DELETE FROM events WHERE receipt_id = ? AND kind <> 'forgotten'", (receipt_id,))
        db.execute("DELETE FROM receipts WHERE id = ?", (receipt_id,))
    db.execute("DELETE FROM extracted WHERE candidate_id = ?", (candidate_id,))
    db.execute("DELETE FROM decompositions WHERE candidate_id = ?", (candidate_id,))
    for read_id in read_ids:
        db.execute("DELETE FROM read_receipts WHERE id = ?", (read_id,))
        for table in ("read_places", "read_memories"):
            db.execute(f"DELETE FROM {table} WHERE read_id = ?", (read_id,))  # noqa: S608 - constants
    return Forgotten(candidate_id=candidate_id, receipt_ids=receipt_ids, read_ids=read_ids)


def candidate_of(db: sqlite3.Connection, which: str) -> str:
    """The candidate meant by an id of a candidate or a receipt, known or forgotten.

    Raises:
        InvalidInputError: If the log knows nothing of that id.
    """
    row = db.execute(
        """SELECT candidate_id FROM receipts WHERE candidate_id = :id
        UNION SELECT candidate_id FROM extracted WHERE candidate_id = :id
        UNION SELECT candidate_id FROM events
            WHERE kind = 'forgotten' AND (candidate_id = :id OR receipt_id = :id)
        LIMIT 1""",
        {"id": which},
    ).fetchone()
    return row[0] if row is not None else RECEIPTS.get(db, which).candidate.id


_ALL = ReceiptFilter()
_ACTOR = "memguard"
_REPLAY_BATCH = 500


class ReceiptLog:
    """The append-only log of decisions."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def append(self, receipt: Receipt, *, actor: str = _ACTOR) -> Receipt:
        """Log a decision; what it admits is then an intent, which `commit` or `recover` fulfils.

        Returns:
            The receipt in the log: an earlier one when the candidate was judged already under the
            same policy.

        Raises:
            ReceiptError: If the id is that of another decision.
        """
        return self._journal.write(
            functools.partial(_append, receipt=receipt, actor=actor, at=self._journal.now())
        )

    async def aappend(self, receipt: Receipt, *, actor: str = _ACTOR) -> Receipt:
        """See `append`."""
        return await self._journal.awrite(
            functools.partial(_append, receipt=receipt, actor=actor, at=self._journal.now())
        )

    def get(self, receipt_id: str) -> Receipt:
        """The receipt with this id, or the only one whose id begins so.

        Raises:
            InvalidInputError: If there is none, or more than one.
        """
        return self._journal.read(lambda db: RECEIPTS.get(db, receipt_id))

    async def aget(self, receipt_id: str) -> Receipt:
        """See `get`."""
        return await self._journal.aread(lambda db: RECEIPTS.get(db, receipt_id))

    def find(self, candidate_id: str, *, policy_digest: str) -> Receipt | None:
        """The decision on a candidate under a policy, if it was taken already."""
        return self.find_all([candidate_id], policy_digest=policy_digest).get(candidate_id)

    async def afind(self, candidate_id: str, *, policy_digest: str) -> Receipt | None:
        """See `find`."""
        receipts = await self.afind_all([candidate_id], policy_digest=policy_digest)
        return receipts.get(candidate_id)

    def find_all(self, candidate_ids: Sequence[str], *, policy_digest: str) -> dict[str, Receipt]:
        """The decisions on these candidates under a policy, by candidate id."""
        return self._journal.read(
            lambda db: find_all(db, candidate_ids, policy_digest=policy_digest)
        )

    async def afind_all(
        self, candidate_ids: Sequence[str], *, policy_digest: str
    ) -> dict[str, Receipt]:
        """See `find_all`."""
        return await self._journal.aread(
            lambda db: find_all(db, candidate_ids, policy_digest=policy_digest)
        )

    def list(
        self, which: ReceiptFilter = _ALL, *, limit: int = 50, before: int | None = None
    ) -> ReceiptPage:
        """Receipts, newest first.

        Args:
            which: What they have in common.
            limit: The most to return.
            before: Where the last page ended.
        """
        return self._journal.read(lambda db: page(db, which, limit=limit, before=before))

    async def alist(
        self, which: ReceiptFilter = _ALL, *, limit: int = 50, before: int | None = None
    ) -> ReceiptPage:
        """See `list`."""
        return await self._journal.aread(lambda db: page(db, which, limit=limit, before=before))

    def count(self, which: ReceiptFilter = _ALL) -> dict[WriteOutcome, int]:
        """How many receipts there are of each outcome."""
        return self._journal.read(functools.partial(count, which=which))

    async def acount(self, which: ReceiptFilter = _ALL) -> dict[WriteOutcome, int]:
        """See `count`."""
        return await self._journal.aread(functools.partial(count, which=which))

    def state(self, receipt_id: str) -> State | None:
        """Where a decision stands; `None` when the log does not know it."""
        return self._journal.read(functools.partial(state_of, receipt_id=receipt_id))

    async def astate(self, receipt_id: str) -> State | None:
        """See `state`."""
        return await self._journal.aread(functools.partial(state_of, receipt_id=receipt_id))

    def history(self, receipt_id: str) -> tuple[JournalEvent, ...]:
        """All that happened to a decision, in order."""
        return self._journal.read(functools.partial(events_of, receipt_id=receipt_id))

    async def ahistory(self, receipt_id: str) -> tuple[JournalEvent, ...]:
        """See `history`."""
        return await self._journal.aread(functools.partial(events_of, receipt_id=receipt_id))

    def replay(self) -> Iterator[JournalEvent]:
        """Every event of the log in order; `live_states` of them is the state of the log."""
        after = 0
        while batch := self._journal.read(
            functools.partial(events_after, seq=after, limit=_REPLAY_BATCH)
        ):
            yield from batch
            after = batch[-1].seq

    async def areplay(self) -> AsyncIterator[JournalEvent]:
        """See `replay`."""
        after = 0
        while batch := await self._journal.aread(
            functools.partial(events_after, seq=after, limit=_REPLAY_BATCH)
        ):
            for event in batch:
                yield event
            after = batch[-1].seq

    def forget(self, which: str, *, actor: str, reason: str) -> Forgotten:
        """Erase a candidate's text from the log; what stays says that, by whom and why.

        The memory store is not touched (`forget_memory` does both), nor are receipts of other
        candidates that were drawn from the same turns.

        Args:
            which: A candidate id, or the id of a receipt, or the beginning of one.
            actor: Who wants it.
            reason: Why; kept, so do not repeat the text.

        Raises:
            InvalidInputError: If the log knows nothing of that id.
        """
        done = self._journal.write(
            functools.partial(
                forget, which=which, actor=actor, reason=reason, at=self._journal.now()
            )
        )
        self._journal.read(_shrink)
        return done

    async def aforget(self, which: str, *, actor: str, reason: str) -> Forgotten:
        """See `forget`."""
        done = await self._journal.awrite(
            functools.partial(
                forget, which=which, actor=actor, reason=reason, at=self._journal.now()
            )
        )
        await self._journal.aread(_shrink)
        return done


def _append(db: sqlite3.Connection, *, receipt: Receipt, actor: str, at: datetime) -> Receipt:
    return record_decisions(db, [receipt], actor=actor, at=at)[0]


def _shrink(db: sqlite3.Connection) -> None:
    """Empty the write-ahead log, where the erased text would stay until it is overwritten."""
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
