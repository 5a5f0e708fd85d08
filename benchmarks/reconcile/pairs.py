"""What a new memory does to a stored one without a language model."""

from collections.abc import Sequence
from dataclasses import dataclass

from langgraph.store.memory import InMemoryStore

from benchmarks.reconcile.policy import candidate_state, memory_state
from benchmarks.reconcile.sets import NOW, CandidateState, MemoryState, TextPair
from benchmarks.reconcile.storing import PastMemory, store_memories
from memguard.journal.journal import Journal
from memguard.local import LocalEmbeddings
from memguard.schema.memory import CandidateMemory, Conversation, Turn
from memguard.schema.receipt import ReceiptFactory


@dataclass(frozen=True, kw_only=True)
class PairResult:
    """What became of the two memories of a pair."""

    pair: TextPair
    stored: MemoryState
    """The state of the stored memory."""
    new: CandidateState
    """The state of the new one."""
    reason: str = ""
    """What the receipt says."""

    @property
    def is_superseded(self) -> bool:
        """Whether the stored memory is marked as superseded."""
        return self.stored == "superseded"

    @property
    def is_duplicate(self) -> bool:
        """Whether the new memory was taken for a repeat."""
        return self.new == "not_stored"


async def measure_pairs(pairs: Sequence[TextPair]) -> list[PairResult]:
    """Reconcile the new memory of every pair with the stored one, in a namespace of its own."""
    store = InMemoryStore(index={"dims": 384, "embed": LocalEmbeddings()})
    journal = Journal.memory()
    from memguard.methods.reconcile import create_reconcile_graph

    graph = create_reconcile_graph("local", store=store, clock=lambda: NOW)
    results: list[PairResult] = []
    for pair in pairs:
        namespace = ("memories", pair.id)
        stored = [PastMemory(pair.stored, pair.stored_at)]
        await store_memories(journal, store, namespace, stored)
        candidate = CandidateMemory(
            text=pair.new,
            namespace=namespace,
            turn_ids=("1",),
            said_by="user",
            said_at=pair.new_at,
            conversation_id=pair.id,
        )
        turn = Turn(id="1", role="user", content=pair.new, at=pair.new_at)
        output = await graph.ainvoke(
            {
                "candidate": candidate,
                "context": Conversation(id=pair.id, turns=(turn,)),
                "run_id": pair.id,
            }
        )
        receipt = ReceiptFactory(clock=lambda: NOW).create(
            candidate,
            output["decision"],
            lifecycle=output["lifecycle"],
            changes=output["changes"],
        )
        states: list[MemoryState] = [
            memory_state(change.before, change.after) for change in output["changes"]
        ]
        results.append(
            PairResult(
                pair=pair,
                stored=states[0] if states else "unchanged",
                new=candidate_state(receipt),
                reason=output["decision"].explanation,
            )
        )
    await journal.aclose()
    return results


@dataclass(frozen=True, kw_only=True)
class PairFigures:
    """The figures of a set, each a truth value per item."""

    wrongly_superseded: list[bool]
    """Of all pairs: marked as superseded although the new memory does not replace it."""
    supersedes_found: list[bool]
    """Of the pairs that are labelled so."""
    duplicates_found: list[bool]
    """Of the pairs that are labelled so."""
    duplicates_right: list[bool]
    """Of the new memories that were taken for repeats."""
    traps_safe: list[bool]
    """Of the traps: nothing was superseded, and nothing was taken for a repeat."""


def pair_figures(results: Sequence[PairResult]) -> PairFigures:
    """Count the results of a set."""
    return PairFigures(
        wrongly_superseded=[r.is_superseded and r.pair.label != "supersedes" for r in results],
        supersedes_found=[r.is_superseded for r in results if r.pair.label == "supersedes"],
        duplicates_found=[r.is_duplicate for r in results if r.pair.label == "duplicate"],
        duplicates_right=[r.pair.label == "duplicate" for r in results if r.is_duplicate],
        traps_safe=[not (r.is_superseded or r.is_duplicate) for r in results if r.pair.trap],
    )
