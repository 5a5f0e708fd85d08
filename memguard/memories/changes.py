"""What a person changes: the receipts of a text that was added, edited, confirmed or deleted.

A text of a person is stored as it is. No judge is asked, and the receipt says so. A stored text
never changes: an edit stores another one and marks the first, in one commit.
"""

import uuid
from collections.abc import Mapping
from datetime import datetime

from langgraph.store.base import Item
from pydantic import JsonValue

from memguard.errors import ErrorCode, InvalidInputError
from memguard.local.event_times import event_time
from memguard.memories.lookup import entry_of, origin_of
from memguard.methods.admission import refuse_text
from memguard.methods.writer.config import Writer
from memguard.read.recall import text_of
from memguard.schema.base import Namespace
from memguard.schema.decision import AdmissionDecision, Outcome, ReasonCode
from memguard.schema.memory import (
    CandidateMemory,
    Lifecycle,
    Turn,
    lifecycle_of,
    same_text_form,
)
from memguard.schema.receipt import MethodReport, Receipt, ReceiptFactory
from memguard.schema.relations import RecordChange
from memguard.write.gates import digest_of

# Receipts name these as their method.
WORDING_METHOD = "human_wording"
DELETION_METHOD = "human_deletion"

_PERSON = "person"
"""Stands in for the conversation where a person says something again without one."""


def check_text(text: str) -> None:
    """Refuse a text of a person that cannot be a memory.

    Raises:
        InvalidInputError: If it is blank, too long, a secret, or an instruction to the assistant.
    """
    refusal = refuse_text(text, max_chars=Writer().max_candidate_chars)
    if refusal is None:
        return
    explanation = refusal.explanation.removeprefix("not judged: ")
    # Its own text is not repeated: an error message may be logged, and the text may be a secret.
    advice = {
        "secret": "a password or key belongs into a password store, not into memory",
        "instruction": "state it as a fact about the user instead",
        "text_too_long": "split it into one fact each",
    }.get(refusal.reason, "pass a text that says something")
    msg = f"not stored: {explanation}; {advice}"
    raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)


def add_receipt(
    text: str,
    *,
    namespace: Namespace,
    key: str,
    actor: str,
    said_at: datetime,
    receipts: ReceiptFactory,
) -> Receipt:
    """The receipt that stores a text of a person under a key."""
    candidate = _candidate(text, namespace=namespace, said_at=said_at)
    return _receipt(
        candidate,
        outcome="admit",
        reason="human_approved",
        explanation=f"worded by a person ({actor}); not judged",
        method=WORDING_METHOD,
        evidence={"actor": actor, "instead_of": ""},
        key=key,
        lifecycle=Lifecycle(event_at=event_time(text, said_at=said_at)),
        receipts=receipts,
    )


def confirm_receipt(
    text: str, *, item: Item, actor: str, said_at: datetime, receipts: ReceiptFactory
) -> Receipt:
    """The receipt of a text that is stored already, which raises the time of its confirmation."""
    namespace = tuple(item.namespace)
    receipt_id = receipts.new_id()
    return _receipt(
        _candidate(text, namespace=namespace, said_at=said_at),
        outcome="reject",
        reason="duplicate",
        explanation=f"the same text is stored already; said again by a person ({actor})",
        method=WORDING_METHOD,
        evidence={"actor": actor},
        key=item.key,
        changes=(_confirmation(item, at=said_at, receipt_id=receipt_id),),
        receipts=receipts,
        receipt_id=receipt_id,
    )


def edit_receipt(
    text: str,
    *,
    old: Item,
    key: str,
    existing: Item | None,
    actor: str,
    reason: str,
    at: datetime,
    receipts: ReceiptFactory,
) -> Receipt:
    """The receipt that puts a text in the place of a stored one, which it marks as edited.

    Args:
        text: The new text.
        old: The memory that is edited.
        key: The key of the new text.
        existing: The current memory with the new text, if there is one: it is confirmed.
        actor: Who edits.
        reason: Why, for the receipt and the mark.
        at: The time of the edit.
        receipts: Creates the receipt.
    """
    before = lifecycle_of(old.value)
    origin = origin_of(old.value)
    receipt_id = receipts.new_id()
    words = reason or f"edited by {actor}"
    ended = before.model_copy(update={"superseded_by": key, "ended_as": "edited", "reason": words})
    changes = (_change(old, before=before, after=ended),)
    if existing is not None:
        changes += (_confirmation(existing, at=at, receipt_id=receipt_id),)
    old_text = text_of(old.value)
    because = f" ({reason})" if reason else ""
    candidate = _candidate(text, namespace=tuple(old.namespace), said_at=at)
    if origin is not None:
        candidate = candidate.model_copy(update={"subject": origin.subject})
    return _receipt(
        candidate,
        outcome="admit" if existing is None else "reject",
        reason="human_approved" if existing is None else "duplicate",
        explanation=(
            f"worded by a person ({actor}) in place of {old_text!r}{because}; not judged"
            + ("" if existing is None else "; the same text was stored already")
        ),
        method=WORDING_METHOD,
        evidence={"actor": actor, "instead_of": old_text, "reason": reason},
        key=key,
        lifecycle=Lifecycle(event_at=event_time(text, said_at=at)) if existing is None else None,
        changes=changes,
        receipts=receipts,
        receipt_id=receipt_id,
    )


def delete_receipt(item: Item, *, actor: str, reason: str, receipts: ReceiptFactory) -> Receipt:
    """The receipt of a deletion: it marks the memory, and has its text for an undo."""
    before = lifecycle_of(item.value)
    origin = origin_of(item.value)
    because = f": {reason}" if reason else ""
    ended = before.model_copy(
        update={"ended_as": "deleted", "reason": f"deleted by {actor}{because}"}
    )
    entry = entry_of(item)
    candidate = CandidateMemory(
        text=entry.text,
        namespace=entry.namespace,
        said_by=entry.said_by,
        said_at=entry.said_at,
        subject=entry.subject,
        speaker=entry.speaker,
        turn_ids=() if origin is None else origin.turn_ids,
        conversation_id="" if origin is None else origin.conversation_id,
    )
    return _receipt(
        candidate,
        outcome="reject",
        reason="human_deleted",
        explanation=(
            f"deleted by a person ({actor}){because}; an undo of this receipt brings it back, and "
            "forgetting the memory erases its text"
        ),
        method=DELETION_METHOD,
        evidence={"actor": actor, "reason": reason},
        key=item.key,
        changes=(_change(item, before=before, after=ended),),
        receipts=receipts,
    )


def check_edit(text: str, *, old: Item) -> None:
    """Refuse an edit that changes nothing, or of a memory that is no longer current.

    Raises:
        InvalidInputError: In both cases.
    """
    check_current(old, verb="edited")
    if same_text_form(text) == same_text_form(text_of(old.value)):
        msg = (
            f"memory {old.key!r} has this text already, apart from white space, look-alike letters "
            "and the final full stop: pass another text"
        )
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)


def check_current(item: Item, *, verb: str) -> None:
    """Refuse a change of a memory that is no longer current.

    Raises:
        InvalidInputError: If it was superseded, edited, deleted or undone.
    """
    entry = entry_of(item)
    if entry.is_current:
        return
    instead = f", in favour of {entry.superseded_by}" if entry.superseded_by else ""
    msg = (
        f"memory {item.key!r} is {entry.state}{instead}, so it cannot be {verb}: undo that first, "
        "or change the memory in its place"
    )
    raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)


def _candidate(text: str, *, namespace: Namespace, said_at: datetime) -> CandidateMemory:
    return CandidateMemory(text=text, namespace=namespace, said_by="user", said_at=said_at)


def _change(item: Item, *, before: Lifecycle, after: Lifecycle) -> RecordChange:
    origin = origin_of(item.value)
    return RecordChange(
        namespace=tuple(item.namespace),
        key=item.key,
        before=before,
        after=after,
        candidate_id="" if origin is None else origin.candidate_id,
        said_at=None if origin is None else origin.said_at,
    )


def _confirmation(item: Item, *, at: datetime, receipt_id: str) -> RecordChange:
    before = lifecycle_of(item.value)
    # A text that was said earlier than the last confirmation must not lower its time.
    latest = at if before.confirmed_at is None else max(at, before.confirmed_at)
    again = (*before.confirmed_by, f"{_PERSON}:{receipt_id}")
    after = before.model_copy(update={"confirmed_at": latest, "confirmed_by": again})
    return _change(item, before=before, after=after)


def _receipt(
    candidate: CandidateMemory,
    *,
    outcome: Outcome,
    reason: ReasonCode,
    explanation: str,
    method: str,
    evidence: Mapping[str, JsonValue],
    key: str,
    receipts: ReceiptFactory,
    lifecycle: Lifecycle | None = None,
    changes: tuple[RecordChange, ...] = (),
    receipt_id: str = "",
) -> Receipt:
    decision = AdmissionDecision(
        outcome=outcome, reason=reason, explanation=explanation, method=method
    )
    turn = Turn(id="1", role="user", content=candidate.text, at=candidate.said_at)
    report = MethodReport(
        method=method,
        spec={},
        decision=decision,
        evidence={**evidence},
        context=(turn,) if method == WORDING_METHOD else (),
    )
    return receipts.create(
        candidate,
        decision,
        reports=(report,),
        record_key=key,
        # Never equal to an earlier one: the same text may be deleted and written again.
        policy_digest=digest_of(method, uuid.uuid4().hex),
        lifecycle=lifecycle,
        changes=changes,
        receipt_id=receipt_id,
    )
