"""The gates of a guard as one graph: a candidate passes from gate to gate.

```text
START -> consistency_gate -(admitted: next gate)-> conmem -> conclude -> END
                └──────────── not admitted ─────────────────────┘
```

The write guard and `guard_store` both judge candidates with this graph. Every gate is a subgraph
under its own name, so that drawings, streams and `get_subgraphs` show it.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, TypeVar

from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel

from memguard.errors import ConfigurationError, ErrorCode, GuardError, MemguardError
from memguard.guard.gates import Gate, GateGraph
from memguard.portal import dual
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import CandidateMemory, Conversation
from memguard.schema.receipt import MethodReport

NAME = "gates"
ADMITTED = "admitted: next gate"
"""Label of the edge from a gate to the next one."""

T = TypeVar("T")


def _append(items: tuple[T, ...], item: T) -> tuple[T, ...]:
    return (*items, item)


class GatesInput(BaseModel):
    """What every gate reads."""

    candidate: CandidateMemory
    context: Conversation = Conversation()
    run_id: str = ""


class GatesOutput(BaseModel):
    """The decision of the guard and the reports of the gates that were run, in order."""

    conclusion: AdmissionDecision | None = None
    # The key is singular because each gate writes its own report under it.
    report: Annotated[tuple[MethodReport, ...], _append] = ()


class GatesState(GatesInput, GatesOutput):
    """What passes from gate to gate."""

    decision: Annotated[tuple[AdmissionDecision, ...], _append] = ()
    """One per gate that was run."""


@dataclass(frozen=True, kw_only=True)
class GatesResult:
    """What the gates decided about one candidate: either a decision or an error."""

    decision: AdmissionDecision | None = None
    """Of the last gate that was run; `None` after an error."""
    reports: tuple[MethodReport, ...] = ()
    """One per gate that finished."""
    error: MemguardError | None = None
    """What stopped a gate."""


class Pipeline:
    """The gates of a guard, ready to judge candidates.

    Args:
        gates: In the order in which they are run.
    """

    def __init__(self, gates: Sequence[Gate]) -> None:
        self.gates = tuple(gates)
        self.graph: GateGraph | None = _compile(self.gates) if self.gates else None
        """The gates as one graph; `None` without gates."""

    async def judge(
        self, candidate: CandidateMemory, *, source: Conversation, run_id: str
    ) -> GatesResult:
        """Run the gates in order until one does not admit the candidate.

        An error is part of the result, so that one candidate does not stop the others.
        """
        if self.graph is None:
            return GatesResult(decision=_admit_without_gate())
        state: dict[str, Any] = {}
        try:
            # Streamed rather than invoked, to keep the reports of the gates before an error.
            async for values in self.graph.astream(
                {"candidate": candidate, "context": source, "run_id": run_id},
                stream_mode="values",
            ):
                state = values
        except MemguardError as error:
            return GatesResult(reports=tuple(state.get("report", ())), error=error)
        if state.get("conclusion") is None:
            # LangGraph ends a run at an interrupt where there is no checkpointer to wait with.
            msg = (
                "the gates ended without a decision: a gate that interrupts its run needs a host "
                "graph with a checkpointer"
            )
            error = GuardError(msg, code=ErrorCode.JUDGE_INCONCLUSIVE)
            return GatesResult(reports=tuple(state.get("report", ())), error=error)
        return GatesResult(decision=state["conclusion"], reports=tuple(state["report"]))


def _compile(gates: Sequence[Gate]) -> GateGraph:
    builder = StateGraph(GatesState, input_schema=GatesInput, output_schema=GatesOutput)
    for gate in gates:
        builder.add_node(gate.name, gate.graph, input_schema=GatesInput)
    # A node of its own: LangGraph does not draw a subgraph that contains one subgraph only.
    names = tuple(gate.name for gate in gates)
    builder.add_node("conclude", dual(partial(conclude, names=names)))
    builder.add_edge(START, gates[0].name)
    for position, (gate, following) in enumerate(pairwise(gates), start=1):
        route = dual(partial(next_gate, position=position))
        ends: dict[Hashable, str] = {ADMITTED: following.name, "conclude": "conclude"}
        builder.add_conditional_edges(gate.name, route, ends)
    builder.add_edge(gates[-1].name, "conclude")
    builder.add_edge("conclude", END)
    return builder.compile(name=NAME)


async def next_gate(state: GatesState, *, position: int) -> str:
    """To the next gate only if this one, the `position`th, admitted the candidate."""
    complete = len(state.decision) == len(state.report) == position
    return ADMITTED if complete and state.decision[-1].outcome == "admit" else "conclude"


async def conclude(state: GatesState, *, names: Sequence[str]) -> dict[str, Any]:
    """The decision of the last gate is that of the guard.

    Raises:
        ConfigurationError: If a gate, which may be a graph of the user's own, returned none.
    """
    complete = min(len(state.decision), len(state.report))
    if complete == max(len(state.decision), len(state.report)) > 0:
        decision = state.decision[-1]
        if decision.outcome != "admit" or complete == len(names):
            return {"conclusion": decision}
    msg = (
        f"the gate {names[complete]!r} returned no decision or no report: a gate returns both, "
        "under the keys `decision` and `report`"
    )
    raise ConfigurationError(msg, code=ErrorCode.SPEC_INVALID)


def _admit_without_gate() -> AdmissionDecision:
    return AdmissionDecision(
        outcome="admit", reason="no_gate", explanation="the guard has no gate: all is stored"
    )
