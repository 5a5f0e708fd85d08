"""Admission by nearness alone, as a graph with the input and output of the other methods.

```text
START -> gate -> END
```
"""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from memguard.methods.adjudication.relevance import gate_by_relevance
from memguard.methods.adjudication.rendering import render_memories
from memguard.methods.adjudication.state import ReadInput, ReadOutput, ReadState
from memguard.portal import dual
from memguard.schema.ledger import ReadReport
from memguard.schema.read import RelevanceGate
from memguard.uncheckpointed import uncheckpointed

NAME = "relevance_gate"


async def gate(
    state: ReadState,
    *,
    spec: RelevanceGate,
    clock: Callable[[], datetime],
    new_id: Callable[[], str],
) -> dict[str, Any]:
    """Admit what is near enough to the query, without asking a model."""
    ledger = gate_by_relevance(state.memories, spec=spec)
    text = render_memories(ledger, rendering="neutral", when_empty=spec.when_empty)
    report = ReadReport(
        id=new_id(),
        at=clock().astimezone(UTC),
        run_id=state.run_id or new_id(),
        method=NAME,
        spec=spec.model_dump(mode="json"),
        query=state.query,
        dialogue=state.dialogue.turns,
        evidence=state.evidence,
        memories=state.memories,
        ledger=ledger,
        memory_context=text,
    )
    return {
        "memory_context": text,
        "admitted": ledger.shown,
        "withheld": ledger.withheld,
        "ledger": ledger,
        "report": report,
    }


def create_relevance_gate_graph(
    *,
    spec: RelevanceGate | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The gate as a graph: `{"query", "memories"}` in, the section out.

    Args:
        spec: The threshold; the default one when left out.
        clock: Gives the time of reports.
        new_id: Gives ids of reports.
    """
    builder = StateGraph(ReadState, input_schema=ReadInput, output_schema=ReadOutput)
    node = partial(gate, spec=spec or RelevanceGate(), clock=clock, new_id=new_id)
    builder.add_node("gate", dual(node))
    builder.add_edge(START, "gate")
    builder.add_edge("gate", END)
    # A graph although it has one node, so that it can be drawn and replaced like any admission.
    return uncheckpointed(builder.compile(name=NAME))
