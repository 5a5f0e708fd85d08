"""ConMem (arXiv 2610.33432): what does a memory do to later answers?

```text
START -> write_probes -> validate_probes -> try_probe (one branch per probe) -> weigh
      -> (tie_break) -> decide -> (reason) -> END
```

`mend_probes` writes invalid probes again, up the ladder. With speculation the probes are tried
while they are validated. `weigh` and `decide` are arithmetic; what cannot be judged costs no call.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Overwrite, Send

from memguard.errors import ErrorCode, JudgeError
from memguard.llm.models import ModelLike
from memguard.methods.conmem.panel import Panel, make_panel
from memguard.methods.conmem.probing import validate_round, write_round
from memguard.methods.conmem.progress import step
from memguard.methods.conmem.record import build_report, build_trials, untried
from memguard.methods.conmem.state import ConMemInput, ConMemOutput, ConMemState
from memguard.methods.conmem.trial import create_trial_graph
from memguard.methods.conmem.verdicts import ask_reason, ask_tie_break
from memguard.policy.cmte import score_trials
from memguard.policy.conmem_decision import decide_on_effect, with_reason
from memguard.policy.conmem_history import cut_history
from memguard.policy.conmem_ladder import next_rung, standings
from memguard.policy.refusal import refuse_source, refuse_text
from memguard.portal import dual
from memguard.prompts import Prompt
from memguard.schema.conmem import ROLES, ConMem
from memguard.schema.conmem_log import ReasonVerdict
from memguard.schema.receipt import ReceiptFactory

NAME = "conmem"


async def write_probes(state: ConMemState, *, panel: Panel) -> dict[str, Any]:
    """Choose what is shown of the history, and write the three probes."""
    spec = panel.spec
    # A thread with a checkpointer still holds the last case's entries. Candidate and history are
    # handed on as they were read, or every node would read them again.
    fresh: dict[str, Any] = {
        "candidate": state.candidate, "context": state.context,
        "rounds": (), "parts": Overwrite([]), "score": None, "tie_break": None, "reason": None
    }  # fmt: skip
    evidence = state.context.evidence
    refusal = refuse_text(state.candidate.text, max_chars=spec.max_candidate_chars) or (
        refuse_source(evidence, required=True)
    )
    if refusal is not None:
        return {**fresh, "spent": Overwrite([]), "history": (), "notes": (), "decision": refusal}
    shown = cut_history(
        evidence,
        named=state.candidate.turn_ids,
        most_turns=spec.history_turns,
        most_chars=spec.history_chars,
    )
    begun = state.model_copy(update={"history": shown.turns, "rounds": (), "parts": []})
    with step("write_probes", case=state.candidate.id) as event:
        written = await write_round(begun, rung="generate", panel=panel)
        event["probes"] = len(written["rounds"][-1].probes)
    return {
        **fresh,
        "rounds": written["rounds"],
        "spent": Overwrite(written["spent"]),
        "history": shown.turns,
        "history_left_out": shown.left_out,
        "history_cut_short": shown.cut_short,
        "notes": shown.notes,
        "decision": None,
    }


async def validate_probes(state: ConMemState, *, panel: Panel) -> dict[str, Any]:
    """Ask whether the probes do what their roles ask."""
    with step("validate_probes", case=state.candidate.id) as event:
        found = await validate_round(state, panel=panel)
        now = standings(found.get("rounds", state.rounds))
        event["valid"] = sum(each.is_valid for each in now.values())
    return found


async def mend_probes(state: ConMemState, *, panel: Panel) -> dict[str, Any]:
    """The next round of the ladder for what is not valid."""
    rung = next_rung(state.rounds, spec=panel.spec)
    if rung is None:
        msg = "nothing is left to mend"
        raise AssertionError(msg)
    with step("mend_probes", case=state.candidate.id) as event:
        event["rung"] = rung
        return await write_round(state, rung=rung, panel=panel)


async def weigh(state: ConMemState, *, panel: Panel) -> dict[str, Any]:
    """Sum up what the probes say."""
    with step("weigh", case=state.candidate.id) as event:
        score = score_trials(build_trials(state), spec=panel.spec)
        event["ruling"] = score.ruling
    return {"score": score}


async def tie_break(state: ConMemState, *, panel: Panel) -> dict[str, Any]:
    """Ask the tie-break judge, who sees the raw log."""
    with step("tie_break", case=state.candidate.id):
        return await ask_tie_break(state, trials=build_trials(state), panel=panel)


async def decide(
    state: ConMemState,
    *,
    panel: Panel,
    receipts: ReceiptFactory | None,
) -> dict[str, Any]:
    """Rule on the effect; outside a guard, which writes its own, create the receipt too.

    Raises:
        JudgeError: If the candidate could not be judged and the spec says to raise.
    """
    why: ReasonVerdict | None = None
    decision = state.decision
    if decision is None:
        if state.score is None:
            msg = "neither weighed nor refused"
            raise AssertionError(msg)
        decision = decide_on_effect(state.score, spec=panel.spec, tie_break=state.tie_break)
        if decision.reason == "inconclusive" and panel.spec.on_inconclusive == "raise":
            msg = f"{state.candidate.text!r}: {decision.explanation}; ConMem is set to raise then"
            raise JudgeError(msg, code=ErrorCode.JUDGE_INCONCLUSIVE)
        if decision.outcome == "admit" and decision.reason != "inconclusive":
            why = ReasonVerdict(reason_type="directly_relevant")
    with step("decide", case=state.candidate.id) as event:
        event["outcome"] = decision.outcome
    settled = state.model_copy(update={"decision": decision, "reason": why})
    report = build_report(settled, panel=panel, decision=decision)
    ruling = {"decision": decision, "report": report, "reason": why}
    if receipts is None:
        return ruling
    receipt = receipts.create(state.candidate, decision, reports=(report,), run_id=state.run_id)
    return {**ruling, "receipt": receipt}


async def reason(state: ConMemState, *, panel: Panel) -> dict[str, Any]:
    """Name why the candidate was rejected; the decision stands whatever comes back."""
    with step("reason", case=state.candidate.id):
        found = await ask_reason(state, trials=build_trials(state), panel=panel)
    if state.decision is None:
        msg = "a reason is asked for after the decision"
        raise AssertionError(msg)
    verdict = found["reason"]
    known = verdict if isinstance(verdict, ReasonVerdict) else None
    decision = with_reason(state.decision, known)
    settled = state.model_copy(update={"reason": verdict, "spent": [*state.spent, *found["spent"]]})
    report = build_report(settled, panel=panel, decision=decision)
    ruling = {**found, "decision": decision, "report": report}
    if state.receipt is None:
        return ruling
    receipt = state.receipt.model_copy(update={"decision": decision, "reports": (report,)})
    return {**ruling, "receipt": receipt}


async def after_writing(state: ConMemState, *, spec: ConMem) -> Sequence[Send | str]:
    """To the auditor; with speculation, try the first set beside it."""
    if state.decision is not None:
        return ["decide"]
    trials = _trials(state, only_valid=False) if _speculates(state, spec=spec) else []
    nothing = not _has_probes(state) and next_rung(state.rounds, spec=spec) is None
    return ["weigh"] if nothing else ["validate_probes", *trials]


async def after_validation(state: ConMemState, *, spec: ConMem) -> Sequence[Send | str]:
    """Up the ladder, or on to the trials; with speculation these are under way."""
    if _speculates(state, spec=spec):
        return ["weigh"]
    if next_rung(state.rounds, spec=spec) is not None:
        return ["mend_probes"]
    return _trials(state, only_valid=True) or ["weigh"]


async def after_weighing(state: ConMemState, *, spec: ConMem) -> str:
    """Up the ladder, to the tie-break judge, or to the decision."""
    if next_rung(state.rounds, spec=spec) is not None:
        return "mend_probes"
    tie = state.score is not None and state.score.ruling == "tie"
    return "tie_break" if tie and spec.zero == "tie_break" else "decide"


async def after_decision(state: ConMemState, *, spec: ConMem) -> str:
    """To the reason of a rejection, where there is evidence to name it by."""
    judged = state.score is not None and state.decision is not None
    rejected = judged and state.decision is not None and state.decision.outcome == "reject"
    unclear = state.decision is not None and state.decision.reason == "inconclusive"
    return "reason" if spec.classify_reason and rejected and not unclear else END


def create_conmem_graph(
    model: "ModelLike | None" = None,
    *,
    spec: ConMem | None = None,
    models: Mapping[str, ModelLike] | None = None,
    prompts: Mapping[str, Prompt] | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """ConMem as a graph: `{"candidate", "context"}` in, decision and receipt out.

    Args:
        model: Who writes, answers and judges: `"provider:model"`, a `BaseChatModel` or a resolved
            model. There is no local one.
        spec: Settings; the `default` preset when left out.
        models: Other models by stage: `probe`, `validation`, `arms`, `quality`, `audit`,
            `tie_break`, `reason`; `judge` names one for the stages that judge.
        prompts: Your own prompts by name, for example `conmem/quality`.
        clock: Gives the time of receipts.
        new_id: Gives ids of receipts.

    Raises:
        ConfigurationError: If a model or a prompt cannot be used.
    """
    spec = spec or ConMem()
    panel = make_panel(model, spec=spec, models=models, prompts=prompts)
    return _compile(panel, receipts=ReceiptFactory(clock=clock, new_id=new_id))


def build_conmem_graph(panel: Panel) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The graph inside a guard: it returns decision and report, and the guard the receipt."""
    return _compile(panel, receipts=None)


def _compile(
    panel: Panel, *, receipts: ReceiptFactory | None
) -> CompiledStateGraph[Any, Any, Any, Any]:
    spec = panel.spec
    builder = StateGraph(ConMemState, input_schema=ConMemInput, output_schema=ConMemOutput)
    for node in (write_probes, validate_probes, mend_probes, weigh, tie_break, reason):
        builder.add_node(node.__name__, dual(partial(node, panel=panel)))
    builder.add_node("try_probe", create_trial_graph(panel))
    builder.add_node("decide", dual(partial(decide, panel=panel, receipts=receipts)))
    builder.add_edge(START, "write_probes")
    tried = ["try_probe"] if spec.speculate else []
    builder.add_conditional_edges(
        "write_probes",
        dual(partial(after_writing, spec=spec)),
        ["validate_probes", *tried, "weigh", "decide"],
    )
    builder.add_edge("mend_probes", "validate_probes")
    builder.add_conditional_edges(
        "validate_probes",
        dual(partial(after_validation, spec=spec)),
        ["mend_probes", "try_probe", "weigh"],
    )
    builder.add_edge("try_probe", "weigh")
    again = ["mend_probes"] if spec.speculate else []
    builder.add_conditional_edges(
        "weigh", dual(partial(after_weighing, spec=spec)), [*again, "tie_break", "decide"]
    )
    builder.add_edge("tie_break", "decide")
    builder.add_conditional_edges(
        "decide", dual(partial(after_decision, spec=spec)), ["reason", END]
    )
    builder.add_edge("reason", END)
    return builder.compile(name=NAME)


def _speculates(state: ConMemState, *, spec: ConMem) -> bool:
    """Only on the first set: nearly all pass, and a set that fails is likelier to fail again."""
    return spec.speculate and len(state.rounds) == 1


def _has_probes(state: ConMemState) -> bool:
    return any(each.query for each in standings(state.rounds).values())


def _trials(state: ConMemState, *, only_valid: bool) -> list[Send | str]:
    """One branch per probe that nobody has answered yet."""
    waiting = untried(state, ROLES)
    return [
        Send(
            "try_probe",
            {
                "role": each.role,
                "query": each.query,
                "memory": state.candidate.text,
                "history": state.history,
                "case_id": state.candidate.id,
            },
        )
        for each in waiting
        if each.is_valid or not only_valid
    ]
