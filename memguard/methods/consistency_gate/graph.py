"""ConsistencyGate as a graph: is a candidate supported by its source?

```text
START -> judge -> decide -> END
```

`judge` collects the turns and stored memories that may support the candidate and the threshold it
has to reach, and asks the judge for its samples. `decide` turns the samples into a decision.
"""

import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore
from pydantic import JsonValue

from memguard.conversations.passages import evidence_of
from memguard.errors import ConfigurationError, ErrorCode, JudgeError
from memguard.llm.call import call_metadata
from memguard.llm.models import ModelLike
from memguard.methods.admission import refuse_source, refuse_text
from memguard.methods.authorship import withhold
from memguard.methods.consistency_gate.config import ConsistencyGate
from memguard.methods.consistency_gate.judges import (
    GateInput,
    GateOutput,
    GateRuling,
    Judge,
    Judgement,
    SupportState,
    build_judge,
)
from memguard.methods.consistency_gate.rules import (
    METHOD,
    adaptive_threshold,
    decide_on_support,
    rule_on_support,
    score_of,
)
from memguard.paging import search_exactly
from memguard.portal import dual
from memguard.prompts import Prompt
from memguard.protocols import CountsRecords
from memguard.schema.base import Namespace
from memguard.schema.decision import (
    AdmissionDecision,
    Inconclusive,
    InconclusiveReason,
    SupportSample,
)
from memguard.schema.memory import Turn
from memguard.schema.receipt import MethodReport, ReceiptFactory, Usage
from memguard.schema.results import GateResult
from memguard.typed import TypedGraph, typed

_DOUBTS: dict[InconclusiveReason, str] = {"too_close": "too close to call", "doubtful": "in doubt"}
"""What the explanation of a decision calls a doubt."""


async def judge(
    state: SupportState, *, asker: Judge, store: BaseStore | None, alone: bool
) -> dict[str, Any]:
    """Collect the source and the threshold, and ask the judge for its samples.

    Args:
        state: The candidate and its context.
        asker: The judge.
        store: The memory store; the graph's own store by default.
        alone: Whether there is no guard, which looks at text and authors before all gates.

    Raises:
        ConfigurationError: If the spec needs stored memories and there is no store.
    """
    spec, evidence = asker.spec, evidence_of(state.context)
    # With `both`, stored memories may support what no turn does, so no source is required.
    refusal = refuse_text(state.candidate.text) if alone else None
    if refusal is None and spec.context != "memory":
        refusal = refuse_source(evidence, required=spec.context == "source")
    if refusal is None and alone:
        refusal = withhold(state.candidate, evidence)
    if refusal is not None:
        # A thread with a checkpointer still has the values of the last candidate.
        return {
            "decision": refusal,
            "tau": spec.tau,
            "source": (),
            "occupancy": None,
            "judged": None,
        }
    source = evidence if spec.context != "memory" else ()
    tau, occupancy = spec.tau, None
    if spec.context != "source":
        source += await _recall(_store(store), state=state, limit=spec.memory_k)
    if spec.threshold == "adaptive":
        occupancy = await _count_records(
            _store(store), state.candidate.namespace, limit=spec.capacity
        )
        tau = adaptive_threshold(
            occupancy, tau_min=spec.tau_min, tau_max=spec.tau_max, capacity=spec.capacity
        )
    with call_metadata(method=METHOD):
        judgement = await asker.ask(state.candidate, source=source, tau=tau)
    return {"source": source, "tau": tau, "occupancy": occupancy, "judged": judgement}


def _store(store: BaseStore | None) -> BaseStore:
    memory = store if store is not None else get_runtime().store
    if memory is None:
        msg = (
            "this ConsistencyGate reads stored memories (`context` or `threshold` say so), but "
            "there is no store: pass `store=` or compile the host graph with one"
        )
        raise ConfigurationError(msg, code=ErrorCode.STORE_MISSING)
    return memory


async def _recall(store: BaseStore, *, state: SupportState, limit: int) -> tuple[Turn, ...]:
    """The stored memories nearest to the candidate, from exactly its namespace."""
    namespace = state.candidate.namespace
    matches = await search_exactly(store, namespace, query=state.candidate.text, limit=limit)
    return tuple(
        Turn(id=f"memory:{item.key}", role="user", content=str(item.value.get("content", "")))
        for item in matches
    )


async def _count_records(store: BaseStore, namespace: Namespace, *, limit: int) -> int:
    """Records in exactly this namespace; at most `limit` in stores that cannot count."""
    # LangGraph's stores cannot count. Beyond the capacity the threshold no longer changes, so a
    # search for that many records is enough.
    if isinstance(store, CountsRecords):
        return await store.acount(namespace)
    return len(await search_exactly(store, namespace, limit=limit))


async def decide(
    state: SupportState, *, spec: ConsistencyGate, receipts: ReceiptFactory | None
) -> dict[str, Any]:
    """Decide on the samples; outside a guard, which writes its own, create the receipt too.

    Raises:
        JudgeError: If the candidate could not be judged and the spec says to raise.
    """
    decision, evidence = _rule(state, spec=spec)
    if decision.reason == "inconclusive" and spec.on_inconclusive == "raise":
        msg = f"{state.candidate.text!r} was {decision.explanation}; the gate is set to raise then"
        raise JudgeError(msg, code=ErrorCode.JUDGE_INCONCLUSIVE)
    judgement = state.judged
    report = MethodReport(
        method=METHOD,
        spec=spec.model_dump(mode="json"),
        decision=decision,
        evidence=evidence,
        context=state.source,
        usage=judgement.usage if judgement else Usage(),
        prompts=(judgement.prompt,) if judgement and judgement.prompt else (),
        models={"judge": judgement.model} if judgement else {},
        notes=judgement.notes if judgement else (),
    )
    ruling = {"decision": decision, "report": report}
    if receipts is None:
        return ruling
    receipt = receipts.create(state.candidate, decision, reports=(report,), run_id=state.run_id)
    return {**ruling, "receipt": receipt}


def _rule(
    state: SupportState, *, spec: ConsistencyGate
) -> tuple[AdmissionDecision, dict[str, JsonValue]]:
    """The decision on a candidate, with the numbers that it is based on."""
    judgement = state.judged
    if judgement is None:
        if state.decision is None:
            msg = "neither a judgement nor a refusal"
            raise AssertionError(msg)
        return state.decision, {"tau": state.tau, "score": None, "samples": []}
    samples = judgement.samples
    scores = [score_of(sample) for sample in samples]
    score = rule_on_support(scores, k=judgement.k, tau=judgement.tau)
    decision = decide_on_support(
        score,
        on_inconclusive=spec.on_inconclusive,
        # One reason of several: those of a sample near the mean fit the decision.
        why=_why(samples, mean=score.mean, inconclusive=score.ruling == "inconclusive"),
        used=len(samples),
        doubt=next((_DOUBTS[sample.reason] for sample in _doubts(samples)), ""),
    )
    # Enough to compute the decision again. Readers of receipts know these names, so they stay.
    return decision, {
        "score": score.mean,
        "tau": judgement.tau,
        "k": judgement.k,
        "used": len(samples),
        "usable": score.usable,
        "mode": judgement.mode,
        "temperature": judgement.temperature,
        "occupancy": state.occupancy,
        "samples": [_sample_row(sample) for sample in samples],
        "decided_by": _deciding_turns(state, judgement),
        **judgement.details,
    }


def _doubts(samples: Sequence[SupportSample | Inconclusive]) -> list[Inconclusive]:
    """The samples of a judge that understood the question, and could not decide."""
    return [s for s in samples if isinstance(s, Inconclusive) and s.reason in _DOUBTS]


def _why(
    samples: tuple[SupportSample | Inconclusive, ...], *, mean: float | None, inconclusive: bool
) -> str:
    """The reason of the sample nearest to the mean; or why samples could not be used."""
    if inconclusive or mean is None:
        for sample in _doubts(samples):
            return sample.detail
        failures = Counter(s.reason for s in samples if isinstance(s, Inconclusive))
        return ", ".join(f"{count} x {reason}" for reason, count in sorted(failures.items()))
    reasons = [s for s in samples if isinstance(s, SupportSample) and s.reason]
    if not reasons:
        return ""
    # The reason breaks ties, so that the order in which answers arrive does not matter.
    return min(reasons, key=lambda sample: (abs(sample.score - mean), sample.reason)).reason


def _sample_row(sample: SupportSample | Inconclusive) -> dict[str, JsonValue]:
    if isinstance(sample, Inconclusive):
        return {"inconclusive": sample.reason, "detail": sample.detail}
    return {"score": sample.score, "reason": sample.reason, "turns": list(sample.turn_ids)}


def _deciding_turns(state: SupportState, judgement: Judgement) -> list[JsonValue]:
    """The turns that the judge named, with who said them; else those that the candidate names."""
    # Samples of one judgement may name different turns; every one of them counts.
    named = {
        turn_id
        for sample in judgement.samples
        if isinstance(sample, SupportSample)
        for turn_id in sample.turn_ids
    } or set(state.candidate.turn_ids)
    return [
        {"turn": turn.id, "role": turn.role, "speaker": turn.speaker}
        for turn in state.source
        if turn.id in named
    ]


def create_consistency_gate_graph(
    model: ModelLike,
    *,
    spec: ConsistencyGate | None = None,
    store: BaseStore | None = None,
    prompt: Prompt | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
) -> TypedGraph[GateResult]:
    """ConsistencyGate as a graph: `{"candidate", "context"}` in, decision and receipt out.

    Args:
        model: The judge: `"provider:model"`, a `BaseChatModel`, a resolved model, or `"local"` for
            the support verifier that needs no language model.
        spec: Settings; the paper's recommended ones by default.
        store: Where stored memories are read for `context="memory" | "both"` and counted for the
            adaptive threshold; the graph's own store by default.
        prompt: Your own judge prompt, with the slots `source` and `memory`.
        clock: Returns the time of a receipt.
        new_id: Returns the id of a receipt.

    Raises:
        ConfigurationError: If the model or the prompt cannot be used.
    """
    asker = build_judge(model, spec=spec or ConsistencyGate(), prompt=prompt)
    receipts = ReceiptFactory(clock=clock, new_id=new_id)
    return typed(build_consistency_gate_graph(asker, store=store, receipts=receipts))


def build_consistency_gate_graph(
    asker: Judge, *, store: BaseStore | None, receipts: ReceiptFactory | None = None
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The graph around a judge that exists already.

    Without `receipts` it is the graph inside a guard, which checks texts before any gate, for all
    gates, and creates the receipts itself.
    """
    alone = receipts is not None
    output = GateOutput if alone else GateRuling
    builder = StateGraph(SupportState, input_schema=GateInput, output_schema=output)
    builder.add_node("judge", dual(partial(judge, asker=asker, store=store, alone=alone)))
    builder.add_node("decide", dual(partial(decide, spec=asker.spec, receipts=receipts)))
    builder.add_edge(START, "judge")
    builder.add_edge("judge", "decide")
    builder.add_edge("decide", END)
    return builder.compile(name=METHOD)
