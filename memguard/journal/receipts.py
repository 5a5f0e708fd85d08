"""The receipt log: every decision, complete, in the order in which it was made.

`ReceiptLog` is the public view. Its methods have async twins with the prefix `a`; both run the
same function, defined below it, in the journal's thread. Commits and the quarantine use these
functions, too.
"""

import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from memguard.errors import ErrorCode, ReceiptError
from memguard.journal.erasing import compact, erase_from_log
from memguard.journal.events import (
    EventKind,
    JournalEvent,
    RowFilter,
    Rows,
    State,
    add_event,
    events_after,
    events_of,
    state_of,
    to_json,
    utc_text,
)
from memguard.journal.journal import Journal
from memguard.journal.marks import (
    UNCOMPARED,
    Comparison,
    effective_changes,
    log_marks,
    refuse_outdated,
)
from memguard.journal.traces import Traces
from memguard.schema.base import Namespace
from memguard.schema.forgetting import ForgetSelection
from memguard.schema.memory import MemoryRecord, Provenance, record_key
from memguard.schema.receipt import Receipt, WriteOutcome
from memguard.schema.relations import RecordChange

RECEIPTS = Rows(
    table="receipts",
    model=Receipt,
    noun="receipt",
    erasure="forgotten at {at} by {actor}; its content is gone",
)
"""The rows of the log of decisions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReceiptFilter(RowFilter):
    """Conditions that receipts must meet; a condition that is left out matches all."""

    columns: ClassVar[tuple[str, ...]] = ("outcome", "run_id", "candidate_id")
    # A union and not OR, so that SQLite uses the index on namespaces for both parts.
    in_namespace: ClassVar[str] = (
        "seq IN (SELECT seq FROM receipts WHERE namespace = ? "
        "UNION ALL SELECT seq FROM receipts WHERE namespace > ? AND namespace < ?)"
    )

    outcome: WriteOutcome | None = None
    """The outcome of the decision."""
    candidate_id: str | None = None
    """The candidate that was decided on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReceiptPage:
    """Receipts, newest first."""

    receipts: tuple[Receipt, ...]
    """The receipts."""
    before: int | None
    """The value of `before` for the next page; `None` on the last page."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ForgetResult:
    """What was erased from the log."""

    candidate_ids: tuple[str, ...]
    """The candidates that were erased: all with this text."""
    receipt_ids: tuple[str, ...]
    """Their receipts that were erased; empty if it was forgotten before or never decided on."""
    read_ids: tuple[str, ...] = ()
    """The reads that had recalled it, which were erased as well."""


_ALL = ReceiptFilter()
ACTOR = "memguard"
"""The actor of events that no person caused."""
_REPLAY_BATCH = 500


class ReceiptLog:
    """The append-only log of decisions.

    Receipts that it returns have `[password]` and the like in place of secrets; `Quarantine.show`
    returns a candidate unchanged.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def append(self, receipt: Receipt, *, actor: str = ACTOR) -> Receipt:
        """Log a decision; if it admits the candidate, `commit` or `recover` stores the memory.

        Returns:
            The receipt in the log: an earlier one if the candidate was judged before under the
            same policy.

        Raises:
            ReceiptError: If another decision has this id.
        """
        at = self._journal.now()
        return self._journal.write(record_decision, receipt, actor=actor, at=at)

    async def aappend(self, receipt: Receipt, *, actor: str = ACTOR) -> Receipt:
        """See `append`."""
        at = self._journal.now()
        return await self._journal.awrite(record_decision, receipt, actor=actor, at=at)

    def get(self, receipt_id: str) -> Receipt:
        """The receipt with this id, or the only one whose id begins with it.

        Raises:
            InvalidInputError: If no receipt matches, or more than one.
        """
        return self._journal.read(RECEIPTS.get, receipt_id).redacted()

    async def aget(self, receipt_id: str) -> Receipt:
        """See `get`."""
        return (await self._journal.aread(RECEIPTS.get, receipt_id)).redacted()

    def find(self, candidate_id: str, *, policy_digest: str) -> Receipt | None:
        """The decision on a candidate under a policy, if there is one."""
        return self.find_all([candidate_id], policy_digest=policy_digest).get(candidate_id)

    async def afind(self, candidate_id: str, *, policy_digest: str) -> Receipt | None:
        """See `find`."""
        receipts = await self.afind_all([candidate_id], policy_digest=policy_digest)
        return receipts.get(candidate_id)

    def find_all(self, candidate_ids: Sequence[str], *, policy_digest: str) -> dict[str, Receipt]:
        """The decisions on these candidates under a policy, by candidate id."""
        return _redacted(self._journal.read(logged_decisions, candidate_ids, policy_digest))

    async def afind_all(
        self, candidate_ids: Sequence[str], *, policy_digest: str
    ) -> dict[str, Receipt]:
        """See `find_all`."""
        return _redacted(await self._journal.aread(logged_decisions, candidate_ids, policy_digest))

    def list(
        self, which: ReceiptFilter = _ALL, *, limit: int = 50, before: int | None = None
    ) -> ReceiptPage:
        """At most `limit` receipts, newest first; `before` is that of the previous page."""
        return self._journal.read(page, which, limit=limit, before=before)

    async def alist(
        self, which: ReceiptFilter = _ALL, *, limit: int = 50, before: int | None = None
    ) -> ReceiptPage:
        """See `list`."""
        return await self._journal.aread(page, which, limit=limit, before=before)

    def count(self, which: ReceiptFilter = _ALL) -> dict[WriteOutcome, int]:
        """The number of receipts of each outcome; an outcome without receipts is left out."""
        return self._journal.read(_count, which)

    async def acount(self, which: ReceiptFilter = _ALL) -> dict[WriteOutcome, int]:
        """See `count`."""
        return await self._journal.aread(_count, which)

    def state(self, receipt_id: str) -> State | None:
        """The state of a decision; `None` if it is not in the log."""
        return self._journal.read(state_of, receipt_id)

    async def astate(self, receipt_id: str) -> State | None:
        """See `state`."""
        return await self._journal.aread(state_of, receipt_id)

    def history(self, receipt_id: str) -> tuple[JournalEvent, ...]:
        """The events of a decision, in order."""
        return self._journal.read(events_of, receipt_id)

    async def ahistory(self, receipt_id: str) -> tuple[JournalEvent, ...]:
        """See `history`."""
        return await self._journal.aread(events_of, receipt_id)

    def replay(self) -> Iterator[JournalEvent]:
        """All events of the log, in order; `live_states` gives the state of the log after them."""
        # In batches: the log may be larger than memory, and other work gets its turn in between.
        after = 0
        while batch := self._journal.read(events_after, after, limit=_REPLAY_BATCH):
            yield from batch
            after = batch[-1].seq

    async def areplay(self) -> AsyncIterator[JournalEvent]:
        """See `replay`."""
        after = 0
        while batch := await self._journal.aread(events_after, after, limit=_REPLAY_BATCH):
            for event in batch:
                yield event
            after = batch[-1].seq

    def forget(self, which: str, *, actor: str, reason: str) -> ForgetResult:
        """Erase a memory from the log, and log who erased it, when and why.

        The memory store does not change; `memguard.journal.forgetting.forget` erases from both, and
        says what it covers.

        Args:
            which: The id of a candidate or a receipt, or the beginning of one.
            actor: Who requests it.
            reason: Why. It stays in the log, so do not repeat the text.

        Raises:
            InvalidInputError: If the log has no such id.
        """
        selection = ForgetSelection(memory=which)
        at = self._journal.now()
        traces = self._journal.write(erase_from_log, selection, actor=actor, reason=reason, at=at)
        # As a read, since SQLite can do this only outside of a transaction.
        self._journal.read(compact)
        return _forget_result(traces)

    async def aforget(self, which: str, *, actor: str, reason: str) -> ForgetResult:
        """See `forget`."""
        selection = ForgetSelection(memory=which)
        at = self._journal.now()
        traces = await self._journal.awrite(
            erase_from_log, selection, actor=actor, reason=reason, at=at
        )
        await self._journal.aread(compact)
        return _forget_result(traces)


def _forget_result(traces: Traces) -> ForgetResult:
    return ForgetResult(
        candidate_ids=tuple(sorted(traces.candidate_ids)),
        receipt_ids=tuple(traces.receipts.values()),
        read_ids=tuple(traces.reads.values()),
    )


def record_of(receipt: Receipt) -> MemoryRecord:
    """The record that a receipt admits, or would admit if its candidate were released."""
    candidate = receipt.candidate
    return MemoryRecord(
        namespace=receipt.namespace,
        key=receipt.record_key or record_key(candidate.text),
        text=candidate.text,
        value=receipt.value,
        lifecycle=receipt.lifecycle,
        provenance=Provenance(
            candidate_id=candidate.id,
            receipt_id=receipt.id,
            conversation_id=candidate.conversation_id,
            turn_ids=candidate.turn_ids,
            subject=candidate.subject,
            said_by=candidate.said_by,
            said_at=candidate.said_at,
            speaker=candidate.speaker,
        ),
    )


def record_decisions(
    db: sqlite3.Connection,
    receipts: Sequence[Receipt],
    *,
    actor: str,
    at: datetime,
    compared: Comparison = UNCOMPARED,
) -> tuple[Receipt, ...]:
    """Log several decisions; see `record_decision`."""
    return tuple(
        record_decision(db, receipt, actor=actor, at=at, compared=compared) for receipt in receipts
    )


def record_decision(
    db: sqlite3.Connection,
    receipt: Receipt,
    *,
    actor: str,
    at: datetime,
    compared: Comparison = UNCOMPARED,
) -> Receipt:
    """Log a decision, with the intent to store what it admits, or the start of a quarantine.

    A decision that is in the log stays as it is: a candidate is judged once under each policy. So
    the receipt in the log, which is returned, may be an earlier one. `compared` says what the store
    had of the memories that the decision changes.

    Raises:
        RecordChangedError: If a memory that it changes has changed since; nothing is logged.
        ReceiptError: If the id of the receipt is that of another decision, or of a forgotten one.
    """
    # A guard in shadow mode only observes: it neither stores nor quarantines.
    may_become_record = receipt.outcome in {"stored", "quarantined"} and receipt.effect != "shadow"
    record = record_of(receipt) if may_become_record else None
    if record is not None and receipt.outcome == "stored" and not receipt.record_key:
        receipt = receipt.model_copy(update={"record_key": record.key})
    logged = _logged(db, receipt)
    if logged is not None:
        return logged
    changes = effective_changes(receipt)
    refuse_outdated(db, receipt, changes, compared)
    db.execute(
        "INSERT INTO receipts (id, candidate_id, policy_digest, namespace, record_key, outcome, "
        "reason, at, run_id, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            receipt.id,
            receipt.candidate.id,
            receipt.policy_digest,
            to_json(receipt.namespace),
            receipt.record_key if record is None else record.key,
            receipt.outcome,
            receipt.decision.reason,
            utc_text(receipt.at),
            receipt.run_id,
            receipt.model_dump_json(exclude_computed_fields=True),
        ),
    )
    ids = (receipt.id, receipt.candidate.id)
    add_event(db, "decided", *ids, actor=actor, at=at)
    log_marks(db, receipt, changes, actor=actor, at=at)
    for kind, body in _events(receipt, record, changes):
        add_event(db, kind, *ids, actor=actor, at=at, body=body)
    return receipt


def _events(
    receipt: Receipt, record: MemoryRecord | None, changes: Sequence[RecordChange]
) -> list[tuple[EventKind, str]]:
    """The events that follow from a decision, with their bodies."""
    if record is not None and receipt.outcome == "quarantined":
        return [("held", "{}")]
    if record is not None and receipt.effect == "commit":
        return [("intended", intent_body(record, changes))]
    events: list[tuple[EventKind, str]] = []
    if changes:
        events.append(("change_intended", intent_body(None, changes)))
    if record is not None and receipt.effect == "caller":
        # Last: what the caller has not written yet is recognised by it.
        events.append(("allowed", "{}"))
    return events


def intent_body(
    record: MemoryRecord | None, changes: Sequence[RecordChange], *, reason: str | None = None
) -> str:
    """The body of the event of an intent, as JSON."""
    parts: list[str] = []
    if record is not None:
        parts.append(f'"record":{record.model_dump_json()}')
    if changes:
        listed = ",".join(change.model_dump_json() for change in changes)
        parts.append(f'"changes":[{listed}]')
    if reason is not None:
        parts.append(f'"reason":{to_json(reason)}')
    return "{" + ",".join(parts) + "}"


def _logged(db: sqlite3.Connection, receipt: Receipt) -> Receipt | None:
    """The receipt in the log with the same id and content, or on the same candidate and policy."""
    logged = RECEIPTS.logged(db, receipt.id, receipt.model_dump_json(exclude_computed_fields=True))
    if logged is not None:
        return logged
    # Otherwise a client that repeats its request would bring an erased text back.
    if any(event.kind == "forgotten" for event in events_of(db, receipt.id)):
        msg = f"receipt {receipt.id!r} was forgotten and cannot come back; use a new id"
        raise ReceiptError(msg, code=ErrorCode.RECEIPT_FAILED)
    candidate_id = receipt.candidate.id
    return logged_decisions(db, [candidate_id], receipt.policy_digest).get(candidate_id)


def logged_decisions(
    db: sqlite3.Connection, candidate_ids: Sequence[str], policy_digest: str
) -> dict[str, Receipt]:
    """The decisions on these candidates under a policy, by candidate id."""
    rows = db.execute(
        "SELECT candidate_id, body FROM receipts WHERE policy_digest = ? "
        "AND candidate_id IN (SELECT value FROM json_each(?))",
        (policy_digest, to_json(list(candidate_ids))),
    )
    return {candidate_id: RECEIPTS.load(body) for candidate_id, body in rows}


def origins_of(
    db: sqlite3.Connection, namespace: Namespace, keys: Sequence[str]
) -> dict[str, Provenance]:
    """Where the items under these keys came from, by the latest receipt that stored them."""
    rows = db.execute(
        "SELECT body FROM receipts WHERE namespace = ? AND outcome = 'stored' "
        "AND record_key IN (SELECT value FROM json_each(?)) ORDER BY seq",
        (to_json(namespace), to_json(list(keys))),
    )
    records = (record_of(RECEIPTS.load(body)) for (body,) in rows)
    return {record.key: record.provenance for record in records}


def _redacted(receipts: dict[str, Receipt]) -> dict[str, Receipt]:
    return {name: receipt.redacted() for name, receipt in receipts.items()}


def end_writes(
    db: sqlite3.Connection,
    done: Sequence[tuple[str, str, float | None]],
    *,
    actor: str,
    at: datetime,
) -> None:
    """Log that callers of a guarded store have made their writes.

    `done` has the receipt, the candidate and the minutes that the item lives, in the order of the
    writes: the last one to a key counts.
    """
    for receipt_id, candidate_id, ttl in done:
        body = to_json({} if ttl is None else {"ttl": ttl})
        add_event(db, "stored", receipt_id, candidate_id, actor=actor, at=at, body=body)


def is_latest_of_key(db: sqlite3.Connection, receipt_id: str) -> bool:
    """Whether a receipt still says what is under its key: nothing was deleted or written since."""
    if state_of(db, receipt_id) in {"deleting", "deleted", "missing", "forgotten"}:
        return False
    # CROSS JOIN makes SQLite look up the few receipts of the key first.
    row = db.execute(
        """SELECT 1 FROM receipts AS mine CROSS JOIN receipts AS other
        ON other.namespace = mine.namespace AND other.record_key = mine.record_key
        CROSS JOIN events ON events.receipt_id = other.id
        WHERE mine.id = ? AND other.id <> mine.id
        AND events.kind IN ('allowed', 'stored', 'released')
        AND events.seq > (SELECT max(seq) FROM events WHERE receipt_id = mine.id
            AND kind IN ('allowed', 'stored', 'released')) LIMIT 1""",
        (receipt_id,),
    ).fetchone()
    return row is None


def page(
    db: sqlite3.Connection,
    criteria: ReceiptFilter,
    *,
    limit: int,
    before: int | None,
    also: str = "1",
) -> ReceiptPage:
    """Receipts, newest first; `also` is a further condition in SQL."""
    condition, values = criteria.where()
    receipts, following = RECEIPTS.page(
        db, f"{condition} AND {also}", values, limit=limit, before=before
    )
    return ReceiptPage(receipts=tuple(map(Receipt.redacted, receipts)), before=following)


def _count(db: sqlite3.Connection, criteria: ReceiptFilter) -> dict[WriteOutcome, int]:
    condition, values = criteria.where()
    rows = db.execute(
        f"SELECT outcome, count(*) FROM receipts WHERE {condition} "  # noqa: S608 - constants
        "GROUP BY outcome ORDER BY outcome",
        values,
    )
    return dict(rows.fetchall())


def candidate_of(db: sqlite3.Connection, which: str) -> str:
    """The candidate with this id, or with a receipt of this id.

    Raises:
        InvalidInputError: If the log has no such id.
    """
    # A candidate may have extractions but no receipt.
    row = db.execute(
        """SELECT candidate_id FROM receipts WHERE candidate_id = :id
        UNION SELECT candidate_id FROM extracted WHERE candidate_id = :id LIMIT 1""",
        {"id": which},
    ).fetchone()
    return row[0] if row is not None else RECEIPTS.get(db, which).candidate.id
