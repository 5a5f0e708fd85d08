"""What reconciling a candidate costs: model calls, and our own CPU."""

import statistics
import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore

from benchmarks.reconcile.scripts import no_relation
from benchmarks.reconcile.sets import NOW
from benchmarks.reconcile.storing import PastMemory, store_memories
from memguard import create_write_guard
from memguard.journal.journal import Journal
from memguard.schema.memory import CandidateMemory, Conversation, Turn
from memguard.testing import HashEmbeddings, ScriptedChatModel

_CANDIDATES = 60
_WARM = 5
"""Candidates before the measured ones."""
_NEIGHBOURS = 8
"""Memories that are near, as many as the default takes."""


@dataclass(frozen=True, kw_only=True)
class CostFigures:
    """What one candidate costs."""

    calls_with_neighbours: float
    """Model calls of a candidate with near memories, on average."""
    calls_without_neighbours: float
    """Model calls of a candidate without any."""
    graph_ms: float
    """Median CPU milliseconds of the subgraph, with near memories and a model that answers at
    once."""
    guard_ms: float
    """Median CPU milliseconds of the write guard without reconciliation, for comparison."""
    guard_reconciled_ms: float
    """The same with reconciliation and near memories."""
    model_ms: float
    """Median CPU milliseconds of one call of the scripted model alone, which is not ours."""
    framework_ms: float
    """Median CPU milliseconds of a graph of three nodes that do nothing, for comparison."""


def _store() -> InMemoryStore:
    return InMemoryStore(index={"dims": 32, "embed": HashEmbeddings()})


def _near(number: int) -> str:
    return f"The user keeps the spare key of the summer house in drawer {number} of the hall."


def _far(number: int) -> str:
    return f"Quinces ripen late {number}"


async def _graph_times(journal: Journal) -> tuple[list[float], int, int]:
    """Seconds of each candidate with neighbours, and the calls with and without."""
    store, model = _store(), no_relation()
    namespace = ("memories", "graph")
    await store_memories(
        journal, store, namespace, [PastMemory(_near(n), NOW) for n in range(_NEIGHBOURS)]
    )
    from memguard.methods.reconcile import create_reconcile_graph

    graph = create_reconcile_graph(model, store=store, clock=lambda: NOW)
    seconds: list[float] = []
    for number in range(_CANDIDATES + _WARM):
        value = _input(_near(100 + number), namespace)
        start = time.process_time()
        await graph.ainvoke(value)
        seconds.append(time.process_time() - start)
    with_neighbours = len(model.calls)
    empty = ("memories", "empty")
    for number in range(_CANDIDATES):
        await graph.ainvoke(_input(_far(number), empty))
    return seconds[_WARM:], with_neighbours, len(model.calls) - with_neighbours


def _input(text: str, namespace: tuple[str, ...]) -> dict[str, Any]:
    turn = Turn(id="1", role="user", content=text, at=NOW)
    candidate = CandidateMemory(
        text=text, namespace=namespace, turn_ids=("1",), said_by="user", said_at=NOW
    )
    return {
        "candidate": candidate,
        "context": Conversation(id="cost", turns=(turn,)),
        "run_id": "cost",
    }


async def _guard_times(*, reconcile: bool) -> list[float]:
    """Seconds of the write guard, one candidate a run."""
    store, journal, model = _store(), Journal.memory(), no_relation()
    namespace = ("memories", "guard")
    await store_memories(
        journal, store, namespace, [PastMemory(_near(n), NOW) for n in range(_NEIGHBOURS)]
    )
    guard = create_write_guard(
        model, store=store, namespace=namespace, gates=[], receipts=journal, reconcile=reconcile
    )
    seconds: list[float] = []
    for number in range(_CANDIDATES + _WARM):
        text = _near(100 + number)
        turn = Turn(id="1", role="user", content=text, at=NOW)
        value = {
            "conversation": Conversation(id=f"cost-{number}", turns=(turn,)),
            "candidates": [{"text": text, "turn_ids": ["1"]}],
        }
        start = time.process_time()
        await guard.ainvoke(value)
        seconds.append(time.process_time() - start)
    await journal.aclose()
    return seconds[_WARM:]


async def _model_times(model: ScriptedChatModel) -> list[float]:
    prompt = "<stored_memories>\n" + "\n".join(f'[m{n}] "{_near(n)}"' for n in range(_NEIGHBOURS))
    seconds: list[float] = []
    for _ in range(_CANDIDATES):
        start = time.process_time()
        await model.ainvoke(f"{prompt}\n</stored_memories>")
        seconds.append(time.process_time() - start)
    return seconds


class _Nothing(TypedDict):
    number: int


async def _framework_times() -> list[float]:
    def pass_on(state: _Nothing) -> _Nothing:
        return state

    builder = StateGraph(_Nothing)
    names = ("recall", "relate", "decide")
    for name in names:
        builder.add_node(name, pass_on)
    builder.add_edge(START, names[0])
    for name, following in pairwise(names):
        builder.add_edge(name, following)
    graph = builder.compile()
    seconds: list[float] = []
    for number in range(_CANDIDATES + _WARM):
        start = time.process_time()
        await graph.ainvoke({"number": number})
        seconds.append(time.process_time() - start)
    return seconds[_WARM:]


async def measure_cost() -> CostFigures:
    """Measure calls and CPU in one run."""
    journal = Journal.memory()
    seconds, with_neighbours, without = await _graph_times(journal)
    await journal.aclose()
    plain = await _guard_times(reconcile=False)
    reconciled = await _guard_times(reconcile=True)
    return CostFigures(
        calls_with_neighbours=with_neighbours / (_CANDIDATES + _WARM),
        calls_without_neighbours=without / _CANDIDATES,
        graph_ms=1000 * statistics.median(seconds),
        guard_ms=1000 * statistics.median(plain),
        guard_reconciled_ms=1000 * statistics.median(reconciled),
        model_ms=1000 * statistics.median(await _model_times(no_relation())),
        framework_ms=1000 * statistics.median(await _framework_times()),
    )
