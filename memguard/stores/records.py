"""From a decision to the record it admits, and the key of that record."""

import hashlib
import uuid

from memguard.schema.memory import MemoryRecord, Provenance
from memguard.schema.receipt import Receipt


def same_text(text: str) -> str:
    """Text without the white space that makes no difference; equal results are one memory."""
    return " ".join(text.split())


def record_key(text: str) -> str:
    """The key of a memory within its namespace: the same text has one key, so it is stored once.

    A SHA-256 of the text, white space aside; upper and lower case differ. Spelled as a UUID,
    because langmem's memory tool edits and deletes by UUID.
    """
    digest = hashlib.sha256(same_text(text).encode()).digest()
    return str(uuid.UUID(bytes=digest[:16]))


def record_of(receipt: Receipt) -> MemoryRecord:
    """The record that a receipt admits, or would admit when its candidate is released."""
    candidate = receipt.candidate
    return MemoryRecord(
        namespace=receipt.namespace,
        key=receipt.record_key or record_key(candidate.text),
        text=candidate.text,
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
