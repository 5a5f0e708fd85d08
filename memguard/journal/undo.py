"""Takes back a decision, a release, a discard or a deletion; nothing that was logged is erased.

An undo is a decision with a receipt of its own, and so can be undone as well. It makes the changes
of the earlier decision backwards. A memory that it takes back stays in the store, marked as
`undone`. It is refused if a later decision has changed the same memories: that one comes first.
"""

import hashlib
import sqlite3
import uuid
from dataclasses import dataclass

from langgraph.store.base import BaseStore, Item, PutOp
from pydantic import JsonValue

from memguard.errors import ErrorCode, InvalidInputError, RecordChangedError
from memguard.journal.commit import commit
from memguard.journal.erasure import FORGOTTEN
from memguard.journal.events import State, state_of
from memguard.journal.journal import Journal
from memguard.journal.marks import logged_changes, logged_lifecycle, marks_of, state_digest
from memguard.journal.quarantine import Quarantine
from memguard.journal.receipts import RECEIPTS, is_latest_of_key, logged_decisions
from memguard.journal.removal import end_deletions, intend_deletions
from memguard.journal.storing import call_or_advise, get_items
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import Lifecycle, lifecycle_of, record_key
from memguard.schema.receipt import MethodReport, Receipt, ReceiptFactory
from memguard.schema.relations import RecordChange

METHOD = "undo"
"""The method on the receipts of undone decisions."""

_ADVICE = "the deletion is in the receipt log, and the next `recover` completes it"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Case:
    """A decision that is to be undone, as the log has it."""

    receipt: Receipt
    """The decision."""
    state: State | None
    """Its state."""
    number: int
    """How often it was undone before."""
    undone_by: Receipt | None
    """The undo that holds, if there is one."""
    changes: tuple[RecordChange, ...]
    """The changes that it made."""

    @property
    def key(self) -> str:
        return self.receipt.record_key or record_key(self.receipt.candidate.text)

    @property
    def is_admitted(self) -> bool:
        """Whether it put a record into the store."""
        if self.receipt.outcome == "stored":
            return self.state in {"stored", "missing"}
        return self.receipt.outcome == "quarantined" and self.state in {"released", "missing"}


async def undo(
    journal: Journal, store: BaseStore, receipt_id: str, *, actor: str, reason: str = ""
) -> Receipt:
    """Take back what followed from a decision; doing it again changes nothing.

    * A correction: the old memory is current again, and the new one is marked as `undone`.
    * A stored memory: it is marked as `undone`.
    * A confirmation: the memory has the confirmations that it had before.
    * A deleted memory: it is stored again from the log.
    * A release from quarantine, or a discard: the candidate is in quarantine again.
    * An undo: what it took back holds again.

    Args:
        journal: The log.
        store: The memory store.
        receipt_id: The decision, or the beginning of its id.
        actor: Who takes it back.
        reason: Why. It stays in the log and on the memory.

    Returns:
        The receipt of the undo.

    Raises:
        InvalidInputError: If there is no such decision, or nothing followed from it.
        RecordChangedError: If a later decision has changed the same memories; undo that one first.
        StoreError: If the store failed; the next `recover` completes what was logged.
    """
    case = await journal.aread(_case_of, receipt_id)
    if case.undone_by is not None:
        # Completes an undo that was interrupted.
        return await _carry_out(journal, store, case, [case.undone_by], actor=actor)
    if case.state == "deleted":
        return await _restore(journal, store, case, actor=actor, reason=reason)
    if _evidence(case.receipt).get("restored") and case.state == "stored":
        return await _delete_again(journal, store, case, actor=actor, reason=reason)
    await journal.aread(_refuse_later, case)
    changes = [_backwards(change) for change in case.changes]
    if case.is_admitted:
        changes.append(await _own_change(journal, store, case, reason=reason))
    is_discard = case.receipt.outcome == "quarantined" and case.state == "discarded"
    held_again = _evidence(case.receipt).get("held_again", "")
    if not changes and not is_discard and not held_again:
        raise _nothing_to_undo(case)
    if held_again:
        await journal.aread(_refuse_left_quarantine, case, str(held_again))
    receipts = [_undo_receipt(case, tuple(changes), actor=actor, reason=reason)]
    if case.receipt.outcome == "quarantined":
        receipts = _with_quarantine(case, receipts[0])
    return await _carry_out(journal, store, case, receipts, actor=actor)


async def _carry_out(
    journal: Journal, store: BaseStore, case: _Case, receipts: list[Receipt], *, actor: str
) -> Receipt:
    committed = await commit(journal, store, receipts, actor=actor)
    held_again = _evidence(case.receipt).get("held_again")
    if held_again:
        # After the commit, which may be refused.
        await Quarantine(journal).adiscard(
            str(held_again), actor=actor, reason=f"undo {case.receipt.id} was undone"
        )
    return committed.receipts[0]


def _backwards(change: RecordChange) -> RecordChange:
    return change.model_copy(update={"before": change.after, "after": change.before})


async def _own_change(
    journal: Journal, store: BaseStore, case: _Case, *, reason: str
) -> RecordChange:
    """The change that marks the record of a decision as undone.

    Raises:
        InvalidInputError: If the record is not there, or came from another decision.
    """
    receipt = case.receipt
    at = (receipt.namespace, case.key)
    item = (await get_items([at], store=store))[at]
    if item is None:
        msg = f"receipt {receipt.id!r} cannot be undone: its memory is not in the store any more"
        raise InvalidInputError(msg, code=ErrorCode.RECEIPT_NOT_FOUND)
    origin = _receipt_of(item)
    is_own = origin == receipt.id
    if not origin:
        is_own = await journal.aread(is_latest_of_key, receipt.id)
    if not is_own:
        first = f"receipt {origin!r}; undo that one" if origin else "a later write of its key"
        msg = f"receipt {receipt.id!r} cannot be undone: its memory is that of {first}"
        raise InvalidInputError(msg, code=ErrorCode.RECEIPT_NOT_FOUND)
    before = lifecycle_of(item.value)
    if not before.is_current and before != receipt.lifecycle:
        by = before.superseded_by
        if by == FORGOTTEN:
            msg = (
                f"receipt {receipt.id!r} cannot be undone: its memory {case.key!r} was replaced by "
                "one that was forgotten; if it holds again, store it anew"
            )
            raise RecordChangedError(msg, code=ErrorCode.RECORD_CHANGED)
        raise _later(receipt, case.key, f"elsewhere, and is superseded by {by!r}")
    after = before.model_copy(update={"ended_as": "undone", "reason": reason or before.reason})
    return RecordChange(
        namespace=receipt.namespace,
        key=case.key,
        before=before,
        after=after,
        candidate_id=receipt.candidate.id,
        said_at=receipt.candidate.said_at,
    )


def _receipt_of(item: Item) -> str:
    fields = item.value.get("memguard")
    return str(fields.get("receipt_id", "")) if isinstance(fields, dict) else ""


async def _restore(
    journal: Journal, store: BaseStore, case: _Case, *, actor: str, reason: str
) -> Receipt:
    """Store a deleted memory again, as it was before its deletion."""
    at = (case.receipt.namespace, case.key)
    if (await get_items([at], store=store))[at] is not None:
        msg = f"receipt {case.receipt.id!r} cannot be restored: its key {case.key!r} is in use"
        raise InvalidInputError(msg, code=ErrorCode.RECEIPT_NOT_FOUND)
    lifecycle = await journal.aread(logged_lifecycle, case.receipt.lifecycle, *at)
    receipt = _undo_receipt(case, (), actor=actor, reason=reason, restored=lifecycle)
    return (await commit(journal, store, [receipt], actor=actor)).receipts[0]


async def _delete_again(
    journal: Journal, store: BaseStore, case: _Case, *, actor: str, reason: str
) -> Receipt:
    """Delete a memory that an undo had restored."""
    location = (case.receipt.namespace, case.key)
    words = reason or f"undo {case.receipt.id} was undone"
    ids = await intend_deletions(journal, [location], actor=actor, reason=words)
    await call_or_advise(store, [PutOp(*location, None)], advice=_ADVICE)
    await end_deletions(journal, ids, actor=actor)
    receipt = _undo_receipt(case, (), actor=actor, reason=reason)
    return (await commit(journal, store, [receipt], actor=actor)).receipts[0]


# -- receipts ---------------------------------------------------------------------------------


def _undo_receipt(
    case: _Case,
    changes: tuple[RecordChange, ...],
    *,
    actor: str,
    reason: str,
    restored: Lifecycle | None = None,
) -> Receipt:
    undone = case.receipt
    verb = "took back" if restored is None else "restored the deleted memory of"
    why = f": {reason}" if reason else ""
    decision = AdmissionDecision(
        outcome="reject" if restored is None else "admit",
        reason="undone",
        explanation=f"{verb} receipt {undone.id}{why}",
        method=METHOD,
    )
    evidence: dict[str, JsonValue] = {
        "actor": actor,
        "undone_receipt": undone.id,
        "reason": reason,
    }
    if restored is not None:
        evidence["restored"] = True
    report = MethodReport(method=METHOD, spec={}, decision=decision, evidence=evidence)
    receipt = ReceiptFactory().create(
        undone.candidate,
        decision,
        reports=(report,),
        record_key=case.key,
        policy_digest=_digest(undone.id, case.number),
        value=undone.value if restored is not None else None,
        lifecycle=restored,
        changes=changes,
    )
    return receipt.model_copy(update={"namespace": undone.namespace})


def _with_quarantine(case: _Case, receipt: Receipt) -> list[Receipt]:
    """The receipt of an undo, and that under which the candidate is in quarantine again."""
    undone, held_id = case.receipt, uuid.uuid4().hex
    explanation = f"{undone.decision.explanation} (in quarantine again; see receipt {receipt.id})"
    held_receipt = undone.model_copy(
        update={
            "id": held_id,
            "at": receipt.at,
            "run_id": receipt.run_id,
            "record_key": case.key,
            "policy_digest": _digest(f"held {undone.id}", case.number),
            "decision": undone.decision.model_copy(update={"explanation": explanation}),
        }
    )
    (report,) = receipt.reports
    evidence = {**report.evidence, "held_again": held_id}
    reports = (report.model_copy(update={"evidence": evidence}),)
    return [receipt.model_copy(update={"reports": reports}), held_receipt]


def _evidence(receipt: Receipt) -> dict[str, JsonValue]:
    """What the receipt of an undo says about it; empty for another receipt."""
    return next((report.evidence for report in receipt.reports if report.method == METHOD), {})


def undone_receipt(receipt: Receipt) -> str:
    """The decision that an undo took back; empty for another receipt."""
    return str(_evidence(receipt).get("undone_receipt", ""))


def _digest(receipt_id: str, number: int) -> str:
    # The log has one receipt per candidate and digest, so this finds the undo of a decision.
    return hashlib.sha256(f"{METHOD}\x1f{receipt_id}\x1f{number}".encode()).hexdigest()[:16]


# -- what the log says ------------------------------------------------------------------------


def _case_of(db: sqlite3.Connection, receipt_id: str) -> _Case:
    receipt = RECEIPTS.get(db, receipt_id)
    state = state_of(db, receipt.id)
    number, latest = latest_undo(db, receipt)
    holds = latest is not None and is_in_force(db, latest)
    if latest is not None and state == "deleted":
        # A memory that was restored may be deleted once more, and restored once more.
        holds = bool(_evidence(latest).get("restored")) and state_of(db, latest.id) != "deleted"
    return _Case(
        receipt=receipt,
        state=state,
        number=number,
        undone_by=latest if holds else None,
        changes=_changes_made(db, receipt, state),
    )


def latest_undo(db: sqlite3.Connection, receipt: Receipt) -> tuple[int, Receipt | None]:
    """How often a decision was undone, and the receipt of the last time."""
    number, latest = 0, None
    candidate_id = receipt.candidate.id
    while True:
        digest = _digest(receipt.id, number)
        undone = logged_decisions(db, [candidate_id], digest).get(candidate_id)
        if undone is None:
            return number, latest
        number, latest = number + 1, undone


def is_in_force(db: sqlite3.Connection, receipt: Receipt) -> bool:
    """Whether a decision holds: it was never undone, or the undo was undone."""
    _, latest = latest_undo(db, receipt)
    return latest is None or not is_in_force(db, latest)


def _changes_made(
    db: sqlite3.Connection, receipt: Receipt, state: State | None
) -> tuple[RecordChange, ...]:
    """The changes that a decision or its release made to others, without those that were lost."""
    if state in {"pending", "releasing"}:
        msg = f"receipt {receipt.id!r} is {state!r}; `memguard doctor --repair` completes it first"
        raise InvalidInputError(msg, code=ErrorCode.QUARANTINE_STATE)
    changes = logged_changes(db, receipt.id)
    if receipt.outcome == "quarantined":
        # The record itself is marked as undone; what it was before is not restored.
        own_location = (receipt.namespace, receipt.record_key or record_key(receipt.candidate.text))
        changes = tuple(c for c in changes if (c.namespace, c.key) != own_location)
    return changes


def _refuse_later(db: sqlite3.Connection, case: _Case) -> None:
    """Refuse an undo if a later decision has changed one of the memories.

    Raises:
        RecordChangedError: If one has; it names that decision.
    """
    expected = [(change.namespace, change.key, change.after) for change in case.changes]
    if case.is_admitted:
        expected.append((case.receipt.namespace, case.key, case.receipt.lifecycle))
    for namespace, key, lifecycle in expected:
        marks = marks_of(db, namespace, key)
        # Of the decision itself, a forgetting may have taken words out of the state.
        is_later = bool(marks) and marks[-1].receipt_id != case.receipt.id
        if is_later and marks[-1].after != state_digest(lifecycle):
            raise _later(case.receipt, key, f"by the later decision {marks[-1].receipt_id!r}")


def _later(receipt: Receipt, key: str, how: str) -> RecordChangedError:
    msg = (
        f"receipt {receipt.id!r} cannot be undone: the memory {key!r} was changed {how}; undo "
        "that one first"
    )
    return RecordChangedError(msg, code=ErrorCode.RECORD_CHANGED)


def _refuse_left_quarantine(db: sqlite3.Connection, case: _Case, held_id: str) -> None:
    state = state_of(db, held_id)
    if state not in {"held", "discarded"}:
        msg = (
            f"receipt {case.receipt.id!r} cannot be undone: its candidate, in quarantine again "
            f"under receipt {held_id!r}, is {state!r} by now; undo that one first"
        )
        raise RecordChangedError(msg, code=ErrorCode.RECORD_CHANGED)


def _nothing_to_undo(case: _Case) -> InvalidInputError:
    msg = (
        f"receipt {case.receipt.id!r} cannot be undone: nothing followed from it (outcome "
        f"{case.receipt.outcome!r}, state {case.state!r}); `memguard receipts show` prints it"
    )
    return InvalidInputError(msg, code=ErrorCode.QUARANTINE_STATE)
