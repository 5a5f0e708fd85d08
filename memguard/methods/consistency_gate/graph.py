r"""ConsistencyGate (arXiv 2607.22962): is a candidate supported by its source?

```text
START -> gather -> judge -> decide -> END
            \________________/
        nothing to judge: no model call
```
"""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Literal

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore

from memguard.errors import ConfigurationError, ErrorCode, JudgeError
from memguard.llm.models import ModelLike, resolve_model
from memguard.methods.consistency_gate.decide import build_report, rule
from memguard.methods.consistency_gate.judge import Judge
from memguard.methods.consistency_gate.state import GateInput, GateOutput, GateState
from memguard.policy.refusal import refuse_source, refuse_text
from memguard.policy.support import adaptive_threshold
from memguard.portal import dual
from memguard.prompts import Prompt, load_prompt
from memguard.protocols import CountsRecords
from memguard.schema.base import Namespace
from memguard.schema.config import ConsistencyGate
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import Turn
from memguard.schema.receipt import Receipt

NAME = "consistency_gate"


async def gather(
    state: GateState, *, spec: ConsistencyGate, store: BaseStore | None
) -> dict[str, Any]:
    """Collect the text that may support the candidate, and the threshold it has to reach."""
    refusal = refuse(state, spec=spec)
    if refusal is not None:
        return {"decision": refusal, "tau": spec.tau}
    needs_store = spec.context != "source" or spec.threshold == "adaptive"
    memory = _store(store) if needs_store else None
    source: tuple[Turn, ...] = ()
    if spec.context != "memory":
        source = state.context.evidence
    if memory is not None and spec.context != "source":
        source += await recall_support(memory, state=state, limit=spec.memory_k)
    if memory is None or spec.threshold == "fixed":
        return {"source": source, "tau": spec.tau}
    occupancy = await count_records(memory, state.candidate.namespace, at_most=spec.capacity)
    tau = adaptive_threshold(
        occupancy, tau_min=spec.tau_min, tau_max=spec.tau_max, capacity=spec.capacity
    )
    return {"source": source, "tau": tau, "occupancy": occupancy}


async def judge(state: GateState, *, judge: Judge) -> dict[str, Any]:
    """Ask the model for its samples."""
    return {"judged": await judge.ask(state.candidate, source=state.source, tau=state.tau)}


async def decide(
    state: GateState,
    *,
    spec: ConsistencyGate,
    clock: Callable[[], datetime],
    new_id: Callable[[], str],
) -> dict[str, Any]:
    """Rule on the samples, and write the receipt.

    Raises:
        JudgeError: If the candidate could not be judged and the spec says to raise.
    """
    decision, evidence = rule(state, spec=spec)
    if decision.reason == "inconclusive" and spec.on_inconclusive == "raise":
        msg = f"{state.candidate.text!r} was {decision.explanation}; the gate is set to raise then"
        raise JudgeError(msg, code=ErrorCode.JUDGE_INCONCLUSIVE)
    report = build_report(state, spec=spec, decision=decision, evidence=evidence)
    receipt = Receipt(
        id=new_id(),
        at=clock(),
        run_id=state.run_id or new_id(),
        candidate=state.candidate,
        namespace=state.candidate.namespace,
        decision=decision,
        reports=(report,),
    )
    return {"decision": decision, "report": report, "receipt": receipt}


def needs_judge(state: GateState) -> Literal["judge", "decide"]:
    """Ask the model only where there is something to judge."""
    return "judge" if state.decision is None else "decide"


def refuse(state: GateState, *, spec: ConsistencyGate) -> AdmissionDecision | None:
    """The ruling on what cannot be judged, or `None` when it can be."""
    return refuse_text(state.candidate.text) or (
        refuse_source(state.context.evidence, required=spec.context == "source")
        if spec.context != "memory"
        else None
    )


async def recall_support(store: BaseStore, *, state: GateState, limit: int) -> tuple[Turn, ...]:
    """The stored memories nearest to the candidate, from exactly its namespace."""
    namespace = state.candidate.namespace
    found = await store.asearch(namespace, query=state.candidate.text, limit=limit)
    return tuple(
        Turn(id=f"memory:{item.key}", role="user", content=str(item.value.get("content", "")))
        for item in found
        if item.namespace == namespace
    )


async def count_records(store: BaseStore, namespace: Namespace, *, at_most: int) -> int:
    """Records in exactly this namespace; counting stops at `at_most` in stores without a count."""
    if isinstance(store, CountsRecords):
        return await store.acount(namespace)
    found = await store.asearch(namespace, limit=at_most)
    return sum(item.namespace == namespace for item in found)


def create_consistency_gate_graph(
    model: ModelLike,
    *,
    spec: ConsistencyGate | None = None,
    store: BaseStore | None = None,
    prompt: Prompt | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """ConsistencyGate as a graph: `{"candidate", "context"}` in, decision and receipt out.

    Args:
        model: The judge: `"provider:model"`, a `BaseChatModel`, or a resolved model.
        spec: Settings; the paper's recommended ones when left out.
        store: Where stored memories are read for `context="memory" | "both"` and counted for the
            adaptive threshold; the graph's own store when left out.
        prompt: Your own judge prompt, with the slots `source` and `memory`.
        clock: Gives the time of receipts.
        new_id: Gives ids of receipts.

    Raises:
        ConfigurationError: If the model or the prompt cannot be used.
    """
    spec = spec or ConsistencyGate()
    name = "support" if spec.variant == "soft" else "support_yes_no"
    asker = Judge(model=resolve_model(model), spec=spec, prompt=prompt or load_prompt(NAME, name))
    builder = StateGraph(GateState, input_schema=GateInput, output_schema=GateOutput)
    builder.add_node("gather", dual(partial(gather, spec=spec, store=store), name="gather"))
    builder.add_node("judge", dual(partial(judge, judge=asker), name="judge"))
    builder.add_node(
        "decide", dual(partial(decide, spec=spec, clock=clock, new_id=new_id), name="decide")
    )
    builder.add_edge(START, "gather")
    builder.add_conditional_edges("gather", needs_judge)
    builder.add_edge("judge", "decide")
    builder.add_edge("decide", END)
    return builder.compile(name=NAME)


def _store(store: BaseStore | None) -> BaseStore:
    found = store if store is not None else get_runtime().store
    if found is None:
        msg = (
            "this ConsistencyGate reads stored memories (`context` or `threshold` say so), but "
            "there is no store: pass `store=` or compile the host graph with one"
        )
        raise ConfigurationError(msg, code=ErrorCode.STORE_MISSING)
    return found
