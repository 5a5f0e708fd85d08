"""The gates of a guard: built from what a user lists, run as one graph.

`build_gates` turns specs, names and graphs into gates. `Pipeline` compiles them into a graph in
which each gate is a node, and judges a candidate with it. The write guard and the guard around a
store use the same pipeline.
"""

import hashlib
import json
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeVar

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from pydantic import BaseModel

from memguard.errors import ConfigurationError, ErrorCode, GuardError, MemguardError
from memguard.llm.models import DEFAULT, LOCAL, ModelLike, model_of
from memguard.methods.conmem.config import CONMEM_PRESETS, ROLES, ConMem
from memguard.methods.conmem.config import STAGES as CONMEM_STAGES
from memguard.methods.conmem.graph import build_conmem_graph
from memguard.methods.conmem.models import prompt_names, resolve_stage_models
from memguard.methods.consistency_gate import build_consistency_gate_graph, build_judge
from memguard.methods.consistency_gate.config import CONSISTENCY_GATE_PRESETS, ConsistencyGate
from memguard.portal import dual
from memguard.prompts import Prompt
from memguard.redaction import Screen
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import CandidateMemory, Conversation
from memguard.schema.receipt import MethodReport, Receipt
from memguard.state_keys import node_name, spec_named
from memguard.uncheckpointed import uncheckpointed

GateGraph = CompiledStateGraph[Any, Any, Any, Any]
"""A method: `{"candidate", "context", "run_id"}` in, `{"decision", "report"}` out."""

GateName = Literal[
    "consistency",
    "consistency:recommended",
    "consistency:adaptive",
    "consistency:fast",
    "consistency:paper",
    "conmem",
    "conmem:default",
    "conmem:paper",
]
"""The short name of a method, alone for its default or with one of its presets."""

GateLike = ConsistencyGate | ConMem | GateName | GateGraph
"""A spec, its name, or a graph of your own with a method's input and output."""

BY_NAME: dict[str, ConsistencyGate | ConMem] = {
    "conmem": ConMem(),
    "consistency": ConsistencyGate(),
    **{f"conmem:{name}": spec for name, spec in CONMEM_PRESETS.items()},
    **{f"consistency:{name}": spec for name, spec in CONSISTENCY_GATE_PRESETS.items()},
}
"""The default spec of each method by its short name, and its presets, such as `conmem:paper`."""

STAGES = ("default", "writer", "judge", "reconciler", *CONMEM_STAGES)
"""Stages that `models` can name; `judge` also serves `reconciler` and the stages of ConMem that
judge, and `default` every stage without a model of its own."""

PROMPTS = (
    "writer/extract",
    "consistency_gate/support",
    "consistency_gate/support_yes_no",
    "reconcile/relate",
    *prompt_names(),
)
"""The prompts that can be replaced."""

ADMITTED = "admitted: next gate"
"""Label of the edge from a gate to the next one."""

RECONCILED = "admitted"
"""Label of the edge from the gates to what follows them."""

_RESERVED_NAMES = frozenset(
    {"candidate", "context", "run_id", "decision", "report", "conclusion", "conclude", "reconcile"}
)
"""State keys and a node of the graph of all gates; LangGraph refuses a gate of the same name."""


@dataclass(frozen=True, kw_only=True)
class Gate:
    """A method that is ready to judge."""

    name: str
    """Name of its node: the method's name, with a number for a second gate of the same name."""
    graph: GateGraph
    """The method."""
    fingerprint: str
    """Changes with everything that can change a ruling: settings, model, prompt."""
    min_calls: int = 0
    """Model calls that a candidate costs here at least; 0 if unknown."""
    custom: bool = False
    """Whether it is a graph of the user's, which may interrupt its run."""


def build_gates(
    gates: Sequence[GateLike],
    *,
    models: Mapping[str, ModelLike],
    store: BaseStore | None,
    prompts: Mapping[str, Prompt],
) -> tuple[Gate, ...]:
    """Build each gate once, in order: cheap ones belong first.

    Args:
        gates: Specs, names or graphs.
        models: By stage, as `memguard.llm.models.resolve_stages` returns them.
        store: The memory store, for gates that read it.
        prompts: Your own prompts by name, for example `consistency_gate/support`.

    Raises:
        ConfigurationError: If a gate is unknown or cannot be built, or a stage has no model.
    """
    built: list[Gate] = []
    for gate_like in gates:
        spec = (
            spec_named(gate_like, BY_NAME, kind="gate") if isinstance(gate_like, str) else gate_like
        )
        if isinstance(spec, ConMem):
            gate = _conmem(spec, models=models, prompts=prompts)
        elif isinstance(spec, ConsistencyGate):
            gate = _consistency(spec, models=models, store=store, prompts=prompts)
        else:
            # The name is all that is known of a user's graph: a new version needs a new name.
            fingerprint = f"graph:{spec.get_name()}"
            gate = Gate(name=spec.get_name(), graph=spec, fingerprint=fingerprint, custom=True)
        names = {earlier.name for earlier in built}
        built.append(replace(gate, name=_unique_name(gate.name, names)))
    return tuple(built)


def _consistency(
    spec: ConsistencyGate,
    *,
    models: Mapping[str, ModelLike],
    store: BaseStore | None,
    prompts: Mapping[str, Prompt],
) -> Gate:
    prompt_name = "support" if spec.variant == "soft" else "support_yes_no"
    model = model_of(models, "judge")
    judge = build_judge(model, spec=spec, prompt=prompts.get(f"consistency_gate/{prompt_name}"))
    # All settings, so that a candidate is judged again under a setting that was changed.
    settings = json.dumps(spec.model_dump(mode="json"), sort_keys=True)
    return Gate(
        name="consistency_gate",
        graph=build_consistency_gate_graph(judge, store=store),
        fingerprint=f"consistency_gate:{settings}:{judge.fingerprint}",
        # With `local_first` the local judge may decide alone.
        min_calls=0 if model == LOCAL or spec.local_first else 1,
    )


def _conmem(
    spec: ConMem, *, models: Mapping[str, ModelLike], prompts: Mapping[str, Prompt]
) -> Gate:
    overrides = {name: prompt for name, prompt in prompts.items() if name.startswith("conmem/")}
    resolved = resolve_stage_models(
        models.get(DEFAULT), spec=spec, models=models, prompts=overrides
    )
    settings = json.dumps(spec.model_dump(mode="json"), sort_keys=True)
    return Gate(
        name="conmem",
        graph=build_conmem_graph(resolved),
        fingerprint=f"conmem:{settings}:{resolved.fingerprint}",
        # One to generate, one to validate; per probe two answers, and the judges of these.
        min_calls=2 + len(ROLES) * (2 + spec.quality_judge + spec.auditor),
    )


def _unique_name(name: str, names: Collection[str]) -> str:
    """A name that LangGraph accepts for a node and that no earlier gate has."""
    base = node_name(name, reserved=_RESERVED_NAMES, suffix="gate")
    number, unique = 1, base
    while unique in names:
        number += 1
        unique = f"{base}_{number}"
    return unique


def digest_of(*parts: str) -> str:
    """A short name for settings: equal parts give equal digests."""
    # Joined by a control character, so that moving text from one part to the next changes it.
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:12]


def screen_digest(screen: Screen) -> tuple[str, ...]:
    """What `screen` adds to a digest: nothing by default, as in older receipts."""
    return () if screen == "secrets" else (f"screen:{screen}",)


_Item = TypeVar("_Item")


# With `operator.add` as reducer, every gate would have to return a tuple with one entry.
def _append(items: tuple[_Item, ...], item: _Item) -> tuple[_Item, ...]:
    return (*items, item)


class GatesInput(BaseModel):
    """The input of the graph, and of every gate in it."""

    candidate: CandidateMemory
    context: Conversation = Conversation()
    run_id: str = ""


class GatesOutput(BaseModel):
    """The decision of the guard and the reports of the gates that were run, in order."""

    conclusion: AdmissionDecision | None = None
    # The key is singular because each gate writes its own report under it.
    report: Annotated[tuple[MethodReport, ...], _append] = ()


class GatesState(GatesInput, GatesOutput):
    """The state of the graph."""

    decision: Annotated[tuple[AdmissionDecision, ...], _append] = ()
    """One per gate that was run."""


@dataclass(frozen=True, kw_only=True)
class GatesResult:
    """The result for one candidate: either a decision or an error."""

    decision: AdmissionDecision | None = None
    """Of the last gate that was run; `None` after an error."""
    reports: tuple[MethodReport, ...] = ()
    """One per gate that finished."""
    error: MemguardError | None = None
    """The error that stopped a gate."""


class Pipeline:
    """The gates of a guard, ready to judge candidates.

    Args:
        gates: In the order in which they are run.
        before_commit: The graph that the guard runs on what the gates admit, for drawings.
    """

    def __init__(self, gates: Sequence[Gate], *, before_commit: GateGraph | None = None) -> None:
        self.gates = tuple(gates)
        self.interrupts = any(gate.custom for gate in self.gates)
        """Whether a gate may interrupt the run; the host's checkpointer then stores its steps."""
        self.graph: GateGraph | None = _compile(self.gates) if self.gates else None
        """The gates as one graph; `None` without gates."""
        if self.graph is not None and not self.interrupts:
            self.graph = uncheckpointed(self.graph)
        self.drawn: GateGraph | None = _drawn(self.gates, self.graph, before_commit)
        """The gates and what follows them, as drawings show it; `None` without either."""

    async def judge(
        self, candidate: CandidateMemory, *, source: Conversation, run_id: str
    ) -> GatesResult:
        """Run the gates in order until one does not admit the candidate.

        An error is part of the result, so that one candidate does not stop the others.
        """
        if self.graph is None:
            no_gate = "the guard has no gate: all is stored"
            return GatesResult(
                decision=AdmissionDecision(outcome="admit", reason="no_gate", explanation=no_gate)
            )
        state: dict[str, Any] = {}
        error: MemguardError | None = None
        try:
            # Streamed rather than invoked, to keep the reports of the gates before an error.
            async for values in self.graph.astream(
                {"candidate": candidate, "context": source, "run_id": run_id},
                stream_mode="values",
            ):
                state = values
        except MemguardError as gate_error:
            error = gate_error
        if error is None and state.get("conclusion") is None:
            # LangGraph ends a run at an interrupt where there is no checkpointer to wait with.
            msg = (
                "the gates ended without a decision: a gate that interrupts its run needs a host "
                "graph with a checkpointer"
            )
            error = GuardError(msg, code=ErrorCode.JUDGE_INCONCLUSIVE)
        return GatesResult(
            decision=state.get("conclusion") if error is None else None,
            reports=tuple(state.get("report", ())),
            error=error,
        )


def _drawn(
    gates: Sequence[Gate], graph: GateGraph | None, before_commit: GateGraph | None
) -> GateGraph | None:
    if graph is None or before_commit is None:
        return before_commit or graph
    # The guard runs the two one after the other, because it holds the turn of the namespace from
    # the second one until the commit. A node is drawn with one graph only, so this joins them.
    return _compile(gates, last=before_commit)


def _compile(gates: Sequence[Gate], *, last: GateGraph | None = None) -> GateGraph:
    builder = StateGraph(GatesState, input_schema=GatesInput, output_schema=GatesOutput)
    for gate in gates:
        # The method is a subgraph, so that drawings, streams and traces show its steps.
        builder.add_node(gate.name, gate.graph, input_schema=GatesInput)
    # A node of its own: LangGraph does not draw a subgraph that contains one subgraph only. What
    # it costs cannot be told from the noise of `benchmarks.perf cpu`.
    names = tuple(gate.name for gate in gates)
    builder.add_node("conclude", dual(partial(conclude, names=names)))
    builder.add_edge(START, gates[0].name)
    for position, (gate, following) in enumerate(pairwise(gates), start=1):
        route = dual(partial(next_gate, position=position))
        ends: dict[Hashable, str] = {ADMITTED: following.name, "conclude": "conclude"}
        builder.add_conditional_edges(gate.name, route, ends)
    builder.add_edge(gates[-1].name, "conclude")
    if last is None:
        builder.add_edge("conclude", END)
    else:
        builder.add_node(last.get_name(), last, input_schema=GatesInput)
        steps: dict[Hashable, str] = {RECONCILED: last.get_name(), END: END}
        builder.add_conditional_edges("conclude", dual(is_admitted), steps)
        builder.add_edge(last.get_name(), END)
    return builder.compile(name="gates")


async def next_gate(state: GatesState, *, position: int) -> str:
    """Continue only if this gate, the `position`th, admitted the candidate."""
    # A gate without a decision must not pass for one that admitted; `conclude` raises then.
    complete = len(state.decision) == len(state.report) == position
    return ADMITTED if complete and state.decision[-1].outcome == "admit" else "conclude"


async def is_admitted(state: GatesState) -> str:
    """Go on with what the gates admit."""
    conclusion = state.conclusion
    return RECONCILED if conclusion is not None and conclusion.outcome == "admit" else END


async def conclude(state: GatesState, *, names: Sequence[str]) -> dict[str, Any]:
    """Take the decision of the last gate that was run as that of the guard.

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


def cascade_notes(receipts: Sequence[Receipt], *, gates: Sequence[Gate]) -> tuple[str, ...]:
    """For each gate after the first: how many candidates were decided before it, and the saving.

    Args:
        receipts: Of one run; those of candidates that no gate judged do not count.
        gates: In the order in which they are run.
    """
    judged = [receipt for receipt in receipts if receipt.reports]
    notes: list[str] = []
    for position, gate in enumerate(gates):
        skipped = sum(len(receipt.reports) <= position for receipt in judged)
        if skipped and gate.min_calls:
            notes.append(
                f"cascade: {skipped} of {len(judged)} candidates ended before {gate.name}; "
                f"at least {skipped * gate.min_calls} model calls saved"
            )
    return tuple(notes)
