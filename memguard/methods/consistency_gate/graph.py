"""ConsistencyGate (arXiv 2607.22962): is a candidate supported by its source?

```text
START -> judge -> decide -> END
```

`judge` collects what may support the candidate and asks the model; what cannot be judged costs no
call. `decide` is arithmetic.
"""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore

from memguard.errors import ErrorCode, JudgeError
from memguard.llm.models import ModelLike
from memguard.methods.consistency_gate.decide import build_report, rule
from memguard.methods.consistency_gate.gather import gather
from memguard.methods.consistency_gate.judges import Judge, make_judge
from memguard.methods.consistency_gate.state import GateInput, GateOutput, GateRuling, SupportState
from memguard.portal import dual
from memguard.prompts import Prompt
from memguard.schema.config import ConsistencyGate
from memguard.schema.receipt import ReceiptFactory

NAME = "consistency_gate"


async def judge(
    state: SupportState, *, asker: Judge, store: BaseStore | None, check_text: bool
) -> dict[str, Any]:
    """Collect the source and the threshold, and ask the model for its samples."""
    evidence = await gather(state, spec=asker.spec, store=store, check_text=check_text)
    if evidence.refusal is not None:
        return {"decision": evidence.refusal, "tau": evidence.tau}
    judgement = await asker.ask(state.candidate, source=evidence.source, tau=evidence.tau)
    return {
        "source": evidence.source,
        "tau": evidence.tau,
        "occupancy": evidence.occupancy,
        "judged": judgement,
    }


async def decide(
    state: SupportState, *, spec: ConsistencyGate, receipts: ReceiptFactory | None
) -> dict[str, Any]:
    """Decide on the samples; outside a guard, which writes its own, create the receipt too.

    Raises:
        JudgeError: If the candidate could not be judged and the spec says to raise.
    """
    decision, evidence = rule(state, spec=spec)
    if decision.reason == "inconclusive" and spec.on_inconclusive == "raise":
        msg = f"{state.candidate.text!r} was {decision.explanation}; the gate is set to raise then"
        raise JudgeError(msg, code=ErrorCode.JUDGE_INCONCLUSIVE)
    report = build_report(state, spec=spec, decision=decision, evidence=evidence)
    ruling = {"decision": decision, "report": report}
    if receipts is None:
        return ruling
    receipt = receipts.create(state.candidate, decision, reports=(report,), run_id=state.run_id)
    return {**ruling, "receipt": receipt}


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
        model: The judge: `"provider:model"`, a `BaseChatModel`, a resolved model, or `"local"` for
            the support verifier that needs no language model.
        spec: Settings; the paper's recommended ones when left out.
        store: Where stored memories are read for `context="memory" | "both"` and counted for the
            adaptive threshold; the graph's own store when left out.
        prompt: Your own judge prompt, with the slots `source` and `memory`.
        clock: Gives the time of receipts.
        new_id: Gives ids of receipts.

    Raises:
        ConfigurationError: If the model or the prompt cannot be used.
    """
    asker = make_judge(model, spec=spec or ConsistencyGate(), prompt=prompt)
    return _compile(asker, store=store, receipts=ReceiptFactory(clock=clock, new_id=new_id))


def build_consistency_gate_graph(
    asker: Judge, *, store: BaseStore | None
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The graph inside a guard, which has checked the text and creates the receipt itself."""
    return _compile(asker, store=store, receipts=None)


def _compile(
    asker: Judge, *, store: BaseStore | None, receipts: ReceiptFactory | None
) -> CompiledStateGraph[Any, Any, Any, Any]:
    alone = receipts is not None
    output = GateOutput if alone else GateRuling
    builder = StateGraph(SupportState, input_schema=GateInput, output_schema=output)
    builder.add_node("judge", dual(partial(judge, asker=asker, store=store, check_text=alone)))
    builder.add_node("decide", dual(partial(decide, spec=asker.spec, receipts=receipts)))
    builder.add_edge(START, "judge")
    builder.add_edge("judge", "decide")
    builder.add_edge("decide", END)
    return builder.compile(name=NAME)
