"""From a decision to the record it admits."""

from memguard.policy.dedupe import record_key
from memguard.schema.memory import MemoryRecord, Provenance
from memguard.schema.receipt import Receipt


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
