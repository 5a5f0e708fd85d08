"""What becomes of stored memories and of a candidate, with a reader that is always right."""

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from benchmarks.reconcile.scripts import OneDirection, exact_reader
from benchmarks.reconcile.sets import (
    NOW,
    CandidateState,
    MemoryState,
    PolicyCase,
    StoredMemory,
    start_of_day,
)
from benchmarks.reconcile.storing import PastMemory, store_memories
from memguard.journal.commit import commit
from memguard.journal.journal import Journal
from memguard.schema.base import Namespace
from memguard.schema.memory import (
    CandidateMemory,
    Conversation,
    Lifecycle,
    lifecycle_of,
    record_key,
)
from memguard.schema.receipt import Receipt, ReceiptFactory


@dataclass(frozen=True, kw_only=True)
class PolicyResult:
    """The states after a case."""

    case: PolicyCase
    memories: dict[str, MemoryState]
    """By the name of the memory."""
    candidate: CandidateState
    current: frozenset[str]
    """Names of the memories that are current; `new` is the candidate."""
    recalled: frozenset[str]
    """Names of the memories that the reader was shown."""

    @property
    def wrong(self) -> tuple[str, ...]:
        """What is not as it must be."""
        states: list[tuple[str, str, Sequence[str]]] = [
            (memory.name, self.memories[memory.name], memory.after) for memory in self.case.memories
        ]
        states.append(("new", self.candidate, self.case.candidate.after))
        return tuple(
            f"{name} is {state}, not {' or '.join(right)}"
            for name, state, right in states
            if state not in right
        )

    @property
    def wrongly_superseded(self) -> tuple[str, ...]:
        """Memories that were superseded although nothing replaces them."""
        return tuple(
            memory.name
            for memory in self.case.memories
            if self.memories[memory.name] == "superseded" and "superseded" not in memory.after
        )


def memory_state(before: Lifecycle, after: Lifecycle) -> MemoryState:
    """What a change made of a memory."""
    if before.is_current and not after.is_current:
        return "superseded"
    if set(after.conflicts_with) - set(before.conflicts_with):
        return "conflicting"
    if after.confirmed_at != before.confirmed_at or after.confirmed_by != before.confirmed_by:
        return "confirmed"
    return "unchanged"


def candidate_state(receipt: Receipt) -> CandidateState:
    """What became of a candidate."""
    if receipt.outcome == "quarantined":
        return "held"
    if receipt.outcome != "stored":
        return "not_stored"
    if not receipt.lifecycle.is_current:
        return "superseded"
    if receipt.lifecycle.conflicts_with:
        return "conflicting"
    return "detail" if receipt.lifecycle.detail_of else "current"


async def run_case(
    case: PolicyCase, *, embeddings: Embeddings | None = None, store: BaseStore | None = None
) -> PolicyResult:
    """Store the memories of a case, reconcile the candidate, commit, and read everything back.

    Args:
        case: The case.
        embeddings: What tells which memories are near; without, all of them are.
        store: An empty store; without, one in memory.
    """
    store = store or InMemoryStore(
        index={"dims": 2, "embed": OneDirection()}
        if embeddings is None
        else {"dims": 384, "embed": embeddings}
    )
    journal = Journal.memory()
    namespace = ("memories", case.id)
    before = {memory.name: _lifecycle(memory, case) for memory in case.memories}
    await store_memories(
        journal,
        store,
        namespace,
        [
            PastMemory(memory.text, memory.said_at, memory.said_by, memory.speaker, before[name])
            for name, memory in zip(before, case.memories, strict=True)
        ],
    )
    model = exact_reader(case)
    from memguard.journal.current_keys import current_keys
    from memguard.methods.reconcile import create_reconcile_graph

    graph = create_reconcile_graph(model, store=store, clock=lambda: NOW)
    candidate = _candidate(case).located(namespace)
    choices = await current_keys(store, namespace, [candidate.text])
    key = choices[candidate.text].key
    output = await graph.ainvoke(
        {
            "candidate": candidate,
            "context": Conversation(id=case.id, turns=case.candidate.turns),
            "run_id": case.id,
            "record_key": key,
        }
    )
    receipt = ReceiptFactory(clock=lambda: NOW).create(
        candidate,
        output["decision"],
        reports=(output["report"],),
        lifecycle=output["lifecycle"],
        changes=output["changes"],
        record_key=key,
    )
    committed = await commit(journal, store, [receipt])
    after = {
        memory.name: await _read_lifecycle(store, namespace, memory.text)
        for memory in case.memories
    }
    shown = " ".join(call.text for call in model.calls)
    states: dict[str, MemoryState] = {
        name: memory_state(before[name], after[name]) for name in before
    }
    state = candidate_state(committed.receipts[0])
    current = {name for name, lifecycle in after.items() if lifecycle.is_current}
    if state in ("current", "detail", "conflicting"):
        current.add("new")
    await journal.aclose()
    return PolicyResult(
        case=case,
        memories=states,
        candidate=state,
        current=frozenset(current),
        recalled=frozenset(m.name for m in case.memories if m.text in shown),
    )


async def _read_lifecycle(store: BaseStore, namespace: Namespace, text: str) -> Lifecycle:
    item = await store.aget(namespace, record_key(text))
    if item is None:
        msg = f"{text!r} is no longer stored"
        raise LookupError(msg)
    return lifecycle_of(item.value)


def _candidate(case: PolicyCase) -> CandidateMemory:
    candidate = case.candidate
    return CandidateMemory(
        text=candidate.text,
        turn_ids=candidate.turn_ids,
        said_by=candidate.said_by,
        said_at=candidate.said_at,
        conversation_id=case.id,
        speaker=candidate.speaker,
    )


def _lifecycle(memory: StoredMemory, case: PolicyCase) -> Lifecycle:
    keys = {other.name: record_key(other.text) for other in case.memories}
    successor = next((m for m in case.memories if m.name == memory.superseded_by), None)
    return Lifecycle(
        superseded_by=keys.get(memory.superseded_by, ""),
        ended_as="superseded" if memory.superseded_by else None,
        valid_until=successor.said_at if successor else None,
        event_at=start_of_day(memory.event_at),
        conflicts_with=tuple(keys[name] for name in memory.conflicts_with),
    )
