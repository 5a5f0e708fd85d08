"""Stores the memories of a case, through the journal, as if they had been written before."""

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from langgraph.store.base import BaseStore

from benchmarks.reconcile.sets import NOW
from memguard.journal.commit import commit
from memguard.journal.journal import Journal
from memguard.schema.base import Namespace
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import CandidateMemory, Lifecycle, Moment, SaidBy, record_key
from memguard.schema.receipt import ReceiptFactory

_ADMITTED = AdmissionDecision(outcome="admit", reason="no_gate", explanation="stored before")


class PastMemory(NamedTuple):
    """A memory to store."""

    text: str
    said_at: Moment
    said_by: SaidBy = "user"
    speaker: str = ""
    lifecycle: Lifecycle = Lifecycle()


async def store_memories(
    journal: Journal, store: BaseStore, namespace: Namespace, memories: Sequence[PastMemory]
) -> None:
    """Store memories in an order in which those that others name come first."""
    create = ReceiptFactory(clock=lambda: NOW - timedelta(days=1)).create
    receipts = [
        create(
            CandidateMemory(
                text=memory.text,
                namespace=namespace,
                turn_ids=("1",),
                said_by=memory.said_by,
                said_at=memory.said_at,
                conversation_id=f"before-{number}",
                speaker=memory.speaker,
            ),
            _ADMITTED,
            record_key=record_key(memory.text),
            lifecycle=memory.lifecycle,
        )
        for number, memory in enumerate(memories)
    ]
    await commit(journal, store, receipts)
