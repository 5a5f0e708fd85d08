"""Stores with memories near a candidate, and shorthand for one reconciliation."""

from datetime import UTC, datetime
from typing import Any

from langgraph.store.memory import InMemoryStore

from memguard.schema.memory import CandidateMemory, Lifecycle, MemoryRecord, Provenance, record_key
from memguard.testing import HashEmbeddings

ANA = ("memories", "ana")
MAY = datetime(2026, 5, 1, tzinfo=UTC)
JUNE = datetime(2026, 6, 1, tzinfo=UTC)
JULY = datetime(2026, 7, 1, tzinfo=UTC)


def indexed_store(**settings: Any) -> InMemoryStore:
    """A store that ranks by common words."""
    embed = HashEmbeddings(**settings)
    return InMemoryStore(index={"dims": embed.dims, "embed": embed, "fields": ["content"]})


def remembered(
    store: Any,
    text: str,
    *,
    namespace: tuple[str, ...] = ANA,
    lifecycle: Lifecycle | None = None,
    **origin: Any,
) -> str:
    """Store a memory as memguard does; returns its key."""
    details: dict[str, Any] = {
        "candidate_id": "c",
        "receipt_id": "r",
        "said_by": "user",
        "said_at": MAY,
        **origin,
    }
    record = MemoryRecord(
        namespace=namespace,
        key=record_key(text),
        text=text,
        provenance=Provenance(**details),
        lifecycle=lifecycle or Lifecycle(),
    )
    store.put(namespace, record.key, record.to_value(), index=["content"])
    return record.key


def said(text: str, **details: Any) -> CandidateMemory:
    """A candidate of the user's own words, said in June."""
    given: dict[str, Any] = {
        "namespace": ANA,
        "said_by": "user",
        "said_at": JUNE,
        "turn_ids": ("t1",),
        **details,
    }
    return CandidateMemory(text=text, **given)
