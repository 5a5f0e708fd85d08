"""Admission by nearness alone: the paper's Gate, as far as the paper describes it.

No adjudication, one bit per memory (arXiv 2610.11188, sections 2.2 and 4.1). An adaptation, because
the paper describes the gate that it re-implements by its inputs only. As a graph it has the input
and output of the other read-time methods.

```text
START -> gate -> END
```
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from langgraph.graph import END, START, StateGraph

from memguard.methods.adjudication.recalled_units import instructions_in, units_of
from memguard.methods.adjudication.rendering import render_memories, render_verbatim
from memguard.methods.adjudication.rows import INSTRUCTIONS
from memguard.methods.adjudication.state import ReadInput, ReadOutput, ReadState
from memguard.methods.adjudication.steps import method_output
from memguard.methods.adjudication.tables import TableRow
from memguard.portal import dual
from memguard.schema.base import is_blank
from memguard.schema.read import (
    Ledger,
    ReadReport,
    RecalledMemory,
    UnitVerdict,
    Withheld,
)
from memguard.schema.relevance_gate import RelevanceGate
from memguard.schema.results import AdmissionResults
from memguard.schema.units import Instruction, Unit
from memguard.uncheckpointed import UncheckpointedGraph, uncheckpointed

NAME = "relevance_gate"

NEAR = TableRow("near", "CONTEXT", "near enough to the query")
FAR = TableRow("far", "DENY", "not near enough to the query")
UNRANKED = TableRow("not-ranked", "DENY", "its nearness to the query is not known")


async def gate(
    state: ReadState,
    *,
    spec: RelevanceGate,
    clock: Callable[[], datetime],
    new_id: Callable[[], str],
) -> dict[str, Any]:
    """Admit what is near enough to the query, without asking a model."""
    instructions = await instructions_in(state.memories, spec=spec)
    ledger = gate_by_relevance(state.memories, spec=spec, instructions=instructions)
    if spec.verbatim:
        text = render_verbatim(verdict.unit.text for verdict in ledger.shown)
    else:
        text = render_memories(ledger, rendering="neutral", when_empty=spec.when_empty)
    withheld = any(verdict.unit.instruction for verdict in ledger.verdicts)
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
        flags=("instruction_withheld",) if withheld else (),
    )
    return method_output(ledger, text=text, report=report)


def gate_by_relevance(
    memories: Sequence[RecalledMemory],
    *,
    spec: RelevanceGate,
    instructions: Mapping[str, Instruction],
) -> Ledger:
    """The verdicts on the memories: near enough or not, the nearest first.

    Args:
        memories: The recalled memories; one without a score is denied.
        spec: The threshold, and how many memories there is room for.
        instructions: What memories demand of the assistant, by text; these are withheld.
    """
    texts = [memory for memory in memories if not is_blank(memory.text)]
    ranked = sorted(texts, key=lambda memory: -(memory.score if memory.score is not None else -1.0))
    verdicts: list[UnitVerdict] = []
    count = 0
    # After the sort, so that the limit leaves out the memories farthest from the query.
    # The gate does not decompose, so a memory is one unit.
    split = [units_of(memory, instruction=instructions.get(memory.text)) for memory in ranked]
    for unit in (unit for units in split for unit in units):
        row = _row(unit, theta=spec.theta)
        withheld: Withheld | None = None
        if row.then == "DENY":
            withheld = "denied"
        elif spec.max_units is not None and count >= spec.max_units:
            withheld = "max_units"
        else:
            count += 1
        verdicts.append(
            UnitVerdict(
                unit=unit,
                permission=row.then,
                row=row.id,
                explanation=row.why,
                withheld=withheld,
                position=count if withheld is None else None,
            )
        )
    return Ledger(scheme="relevance", verdicts=tuple(verdicts))


def _row(unit: Unit, *, theta: float) -> TableRow:
    if unit.instruction is not None:
        return INSTRUCTIONS[unit.instruction]
    # Without a score nothing is known of its nearness, so it fails closed.
    if unit.score is None:
        return UNRANKED
    return NEAR if unit.score >= theta else FAR


def create_relevance_gate_graph(
    *,
    spec: RelevanceGate | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
) -> UncheckpointedGraph[AdmissionResults]:
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
