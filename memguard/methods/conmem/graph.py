"""ConMem (arXiv 2610.33432) as a graph: what does a memory do to later answers?

```text
START -> generate_probes -> validate_probes -> run_probe (one branch per probe) -> cmte
      -> (tie_break) -> decide -> (reason) -> END
```

`run_probe` is a graph of its own: control and treatment, then judge and auditor. `repair_probes`
writes invalid probes again, up the ladder. With speculation the first probes run while they are
validated. `cmte` and `decide` are arithmetic.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Overwrite, Send

from memguard.conversations.passages import evidence_of
from memguard.errors import ErrorCode, JudgeError
from memguard.llm.models import ModelLike
from memguard.methods.admission import refuse_source, refuse_text
from memguard.methods.authorship import withhold
from memguard.methods.conmem.config import STAGES, ConMem
from memguard.methods.conmem.ladder import clip_history, next_step, probe_states
from memguard.methods.conmem.log import (
    CounterfactualLog,
    ReasonVerdict,
    Repairs,
    Response,
    TieBreakVerdict,
)
from memguard.methods.conmem.models import (
    PROMPTS,
    StageModels,
    prompt_names,
    resolve_stage_models,
)
from memguard.methods.conmem.probes import case_slots, validate_round, write_round
from memguard.methods.conmem.rules import (
    METHOD,
    decide_on_effect,
    explain_evidence,
    score_trials,
    with_reason,
)
from memguard.methods.conmem.state import (
    ConMemInput,
    ConMemOutput,
    ConMemState,
    StageCall,
    event_step,
)
from memguard.methods.conmem.trials import (
    ReasonAnswer,
    TieBreakAnswer,
    build_trials,
    create_trial_graph,
    read_reason,
    read_tie_break,
    render_evidence,
    untried_probes,
)
from memguard.portal import dual
from memguard.prompts import Prompt
from memguard.quoting import quote
from memguard.schema.decision import AdmissionDecision
from memguard.schema.receipt import MethodReport, ReceiptFactory, Usage
from memguard.schema.results import GateResult
from memguard.state_keys import check_names
from memguard.typed import TypedGraph, typed


async def generate_probes(
    state: ConMemState, *, models: StageModels, alone: bool
) -> dict[str, Any]:
    """Choose what is shown of the history, and generate the three probes.

    With `alone`, it also looks at who said what, which a guard has done before.
    """
    spec = models.spec
    # With a checkpointer, the thread still has the last case's values: reset all of them.
    # Candidate and history are stored as parsed; otherwise every node would parse them again.
    reset: dict[str, Any] = {
        "candidate": state.candidate,
        "context": state.context,
        "rounds": (),
        "parts": Overwrite([]),
        "score": None,
        "tie_break": None,
        "reason": None,
    }
    evidence = evidence_of(state.context)
    refusal = refuse_text(state.candidate.text, max_chars=spec.max_candidate_chars) or (
        refuse_source(evidence, required=True)
    )
    if refusal is None and alone:
        refusal = withhold(state.candidate, evidence)
    if refusal is not None:
        # Refused before any call: a text that cannot be judged must cost nothing.
        return {**reset, "calls": Overwrite([]), "history": (), "notes": (), "decision": refusal}
    history = clip_history(
        evidence,
        named=state.candidate.turn_ids,
        max_turns=spec.history_turns,
        max_chars=spec.history_chars,
    )
    new_case = state.model_copy(update={"history": history.turns, "rounds": (), "parts": []})
    with event_step("generate_probes", case=state.candidate.id) as event:
        written = await write_round(new_case, step="generate", models=models)
        event["probes"] = len(written["rounds"][-1].probes)
    return {
        **reset,
        "rounds": written["rounds"],
        "calls": Overwrite(written["calls"]),
        "history": history.turns,
        "history_left_out": history.left_out,
        "history_cut_short": history.cut_short,
        "notes": history.notes,
        "decision": None,
    }


async def validate_probes(state: ConMemState, *, models: StageModels) -> dict[str, Any]:
    """Ask the validator whether each new probe does what its role demands."""
    with event_step("validate_probes", case=state.candidate.id) as event:
        update = await validate_round(state, models=models)
        states = probe_states(update.get("rounds", state.rounds))
        event["valid"] = sum(probe.is_valid for probe in states.values())
    return update


async def repair_probes(state: ConMemState, *, models: StageModels) -> dict[str, Any]:
    """Write the invalid probes again, by the next step of the ladder."""
    step = next_step(state.rounds, spec=models.spec)
    if step is None:
        msg = "no probe needs a repair"
        raise AssertionError(msg)
    with event_step("repair_probes", case=state.candidate.id) as event:
        event["ladder"] = step
        return await write_round(state, step=step, models=models)


async def cmte(state: ConMemState, *, models: StageModels) -> dict[str, Any]:
    """Compute the counterfactual memory treatment effect."""
    with event_step("cmte", case=state.candidate.id) as event:
        score = score_trials(build_trials(state), spec=models.spec)
        event["ruling"] = score.ruling
    return {"score": score}


async def tie_break(state: ConMemState, *, models: StageModels) -> dict[str, Any]:
    """Let a judge decide from the raw log; it sees neither weights nor scores."""
    slots = {**case_slots(state), "evidence": render_evidence(build_trials(state))}
    with event_step("tie_break", case=state.candidate.id):
        answer = await models.ask("tie_break", TieBreakAnswer, slots=slots, parse=read_tie_break)
    verdict = answer.value
    if isinstance(verdict, TieBreakAnswer):
        verdict = TieBreakVerdict(store=verdict.decision == "STORE", reason=verdict.reason)
    return {"tie_break": verdict, "calls": [StageCall.from_answer("tie_break", answer)]}


async def decide(
    state: ConMemState, *, models: StageModels, receipts: ReceiptFactory | None
) -> dict[str, Any]:
    """Decide by the effect; outside a guard, which writes its own, create the receipt too.

    Raises:
        JudgeError: If the candidate is inconclusive and the spec says to raise.
    """
    reason: ReasonVerdict | None = None
    # `generate_probes` has already decided about a refused candidate.
    decision = state.decision
    if decision is None:
        if state.score is None:
            msg = "a candidate that was not refused has a score"
            raise AssertionError(msg)
        decision = decide_on_effect(state.score, spec=models.spec, tie_break=state.tie_break)
        if decision.reason == "inconclusive" and models.spec.on_inconclusive == "raise":
            msg = (
                f"{state.candidate.text!r}: {decision.explanation}; "
                "ConMem is configured with on_inconclusive='raise'"
            )
            raise JudgeError(msg, code=ErrorCode.JUDGE_INCONCLUSIVE)
        if decision.outcome == "admit" and decision.reason != "inconclusive":
            # The paper names one reason only for admission, so no model has to be asked.
            reason = ReasonVerdict(reason_type="directly_relevant")
    with event_step("decide", case=state.candidate.id) as event:
        event["outcome"] = decision.outcome
    decided = state.model_copy(update={"decision": decision, "reason": reason})
    report = build_report(decided, models=models, decision=decision)
    update = {"decision": decision, "report": report, "reason": reason}
    if receipts is None:
        return update
    receipt = receipts.create(state.candidate, decision, reports=(report,), run_id=state.run_id)
    return {**update, "receipt": receipt}


async def reason(state: ConMemState, *, models: StageModels) -> dict[str, Any]:
    """Ask why the candidate was rejected; the answer changes no decision."""
    if state.decision is None or state.score is None:
        msg = "the reason is asked for after the decision"
        raise AssertionError(msg)
    evidence = explain_evidence(build_trials(state), score=state.score, tie_break=state.tie_break)
    slots = {"decision": quote("DO_NOT_STORE"), "explanation": quote(evidence), **case_slots(state)}
    with event_step("reason", case=state.candidate.id):
        answer = await models.ask("reason", ReasonAnswer, slots=slots, parse=read_reason)
    call = StageCall.from_answer("reason", answer)
    verdict, decision = answer.value, state.decision
    # An inconclusive reason stays on the log; the explanation of the decision does without it.
    if isinstance(verdict, ReasonAnswer):
        verdict = ReasonVerdict(**verdict.model_dump())
        decision = with_reason(decision, verdict)
    final = state.model_copy(update={"reason": verdict, "calls": [*state.calls, call]})
    report = build_report(final, models=models, decision=decision)
    update = {"reason": verdict, "calls": [call], "decision": decision, "report": report}
    if state.receipt is None:
        return update
    receipt = state.receipt.model_copy(update={"decision": decision, "reports": (report,)})
    return {**update, "receipt": receipt}


async def after_generation(state: ConMemState, *, spec: ConMem) -> Sequence[Send | str]:
    """To the validator; with speculation, run the first probes at the same time."""
    if state.decision is not None:
        return ["decide"]
    runs = _runs(state, only_valid=False) if _speculates(state, spec=spec) else []
    return ["validate_probes", *runs]


async def after_validation(state: ConMemState, *, spec: ConMem) -> Sequence[Send | str]:
    """To the next step of the ladder, or to the trials, which speculation has already started."""
    if _speculates(state, spec=spec):
        # Both branches meet in `cmte`; probes that failed validation are repaired from there.
        return ["cmte"]
    if next_step(state.rounds, spec=spec) is not None:
        return ["repair_probes"]
    # Without a valid probe there is nothing to run, but the score must still say so.
    return _runs(state, only_valid=True) or ["cmte"]


async def after_cmte(state: ConMemState, *, spec: ConMem) -> str:
    """To the next step of the ladder after speculation, to the tie-break, or to the decision."""
    # Only after speculation: without it, `validate_probes` has climbed the ladder to its end.
    if next_step(state.rounds, spec=spec) is not None:
        return "repair_probes"
    tie = state.score is not None and state.score.ruling == "tie"
    return "tie_break" if tie and spec.zero == "tie_break" else "decide"


async def after_decision(state: ConMemState, *, spec: ConMem) -> str:
    """To the reason of a rejection, if there is evidence that can name it."""
    decision = state.decision
    rejected = (
        state.score is not None
        and decision is not None
        and decision.outcome == "reject"
        and decision.reason != "inconclusive"
    )
    return "reason" if spec.classify_reason and rejected else END


def create_conmem_graph(
    model: "ModelLike | None" = None,
    *,
    spec: ConMem | None = None,
    models: Mapping[str, ModelLike] | None = None,
    prompts: Mapping[str, Prompt] | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
) -> TypedGraph[GateResult]:
    """Create ConMem as a graph: `{"candidate", "context"}` in, decision and receipt out.

    Args:
        model: The model of all stages that `models` does not name: `"provider:model"`, a
            `BaseChatModel` or a resolved model. ConMem has no local model.
        spec: Settings; the `default` preset if omitted.
        models: Models by stage: `probe`, `validation`, `arms`, `quality`, `audit`, `tie_break`,
            `reason`; `judge` names one for all stages that judge.
        prompts: Your own prompts by name, for example `conmem/quality`.
        clock: Returns the time of receipts.
        new_id: Returns new ids of receipts.

    Raises:
        ConfigurationError: If a model or a prompt cannot be used, or a stage has no model.
    """
    check_names(models or {}, allowed=(*STAGES, "judge"), what="models")
    check_names(prompts or {}, allowed=prompt_names(), what="prompts")
    resolved = resolve_stage_models(model, spec=spec or ConMem(), models=models, prompts=prompts)
    receipts = ReceiptFactory(clock=clock, new_id=new_id)
    return typed(build_conmem_graph(resolved, receipts=receipts))


def build_conmem_graph(
    models: StageModels, *, receipts: ReceiptFactory | None = None
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The graph; without `receipts`, as inside a guard, it returns decision and report only."""
    spec = models.spec
    builder = StateGraph(ConMemState, input_schema=ConMemInput, output_schema=ConMemOutput)
    alone = receipts is not None
    generate = dual(partial(generate_probes, models=models, alone=alone))
    builder.add_node("generate_probes", generate)
    for node in (validate_probes, repair_probes, cmte, tie_break, reason):
        builder.add_node(node.__name__, dual(partial(node, models=models)))
    builder.add_node("run_probe", create_trial_graph(models))
    builder.add_node("decide", dual(partial(decide, models=models, receipts=receipts)))
    builder.add_edge(START, "generate_probes")
    # Without speculation, the edges that only it uses are missing: the drawing is the paper's.
    speculation = ["run_probe"] if spec.speculate else []
    late_repair = ["repair_probes"] if spec.speculate else []
    choices: dict[str, tuple[Any, list[str]]] = {
        "generate_probes": (after_generation, ["validate_probes", *speculation, "decide"]),
        "validate_probes": (after_validation, ["repair_probes", "run_probe", "cmte"]),
        "cmte": (after_cmte, [*late_repair, "tie_break", "decide"]),
        "decide": (after_decision, ["reason", END]),
    }
    for node, (choose, targets) in choices.items():
        builder.add_conditional_edges(node, dual(partial(choose, spec=spec)), targets)
    builder.add_edge("repair_probes", "validate_probes")
    builder.add_edge("run_probe", "cmte")
    builder.add_edge("tie_break", "decide")
    builder.add_edge("reason", END)
    return builder.compile(name=METHOD)


def _speculates(state: ConMemState, *, spec: ConMem) -> bool:
    # Only on the first round: nearly all first probes pass, and after a failure the next round is
    # likelier to fail as well.
    return spec.speculate and len(state.rounds) == 1


def _runs(state: ConMemState, *, only_valid: bool) -> list[Send | str]:
    """One branch per probe without an answer."""
    return [
        Send(
            "run_probe",
            {
                "role": probe.role,
                "query": probe.query,
                "memory": state.candidate.text,
                "history": state.history,
                "case_id": state.candidate.id,
            },
        )
        for probe in untried_probes(state)
        if probe.is_valid or not only_valid
    ]


def build_log(state: ConMemState, *, models: StageModels) -> CounterfactualLog:
    """The complete evidence of a case."""
    calls: dict[str, Usage] = {}
    for call in state.calls:
        stage = PROMPTS[call.prompt]
        calls[stage] = calls.get(stage, Usage()) + call.usage
    return CounterfactualLog(
        case_id=state.candidate.id,
        seed=models.spec.seed,
        rounds=state.rounds,
        trials=build_trials(state),
        score=state.score,
        tie_break=state.tie_break,
        reason=state.reason,
        repairs=_repairs(state),
        calls={stage: calls[stage] for stage in STAGES if stage in calls},
        history_left_out=state.history_left_out,
        history_cut_short=state.history_cut_short,
    )


def _repairs(state: ConMemState) -> Repairs:
    states = probe_states(state.rounds).values()
    valid = {(probe.role, probe.query) for probe in states if probe.is_valid}
    # Answers to a request that was later replaced were bought for nothing, and are counted.
    discarded = [part for part in state.parts if (part.role, part.query) not in valid]
    prompts = [call.prompt for call in state.calls]
    answers = sum(part.step in {"control", "treatment"} for part in discarded)
    return Repairs(
        regenerations=prompts.count("regenerate"),
        repairs=prompts.count("repair"),
        reconstructions=prompts.count("reconstruct"),
        discarded_answers=answers,
        discarded_verdicts=len(discarded) - answers,
        enlarged_answers=sum(call.enlarged for call in state.calls),
    )


def build_report(
    state: ConMemState, *, models: StageModels, decision: AdmissionDecision
) -> MethodReport:
    """The method's part of a receipt."""
    log = build_log(state, models=models)
    # Only prompts that were sent: a receipt names what can have influenced the decision.
    names = list(dict.fromkeys(call.prompt for call in state.calls))
    if "validation" in names and models.frequency_question:
        names.append("frequency")
    return MethodReport(
        method=METHOD,
        spec=models.spec.model_dump(mode="json"),
        decision=decision,
        evidence=log.model_dump(mode="json"),
        context=state.history,
        usage=sum((call.usage for call in state.calls), Usage()),
        prompts=tuple(models.prompts[name].stamp for name in names),
        models={stage: models.by_stage[stage].name for stage in STAGES if stage in log.calls},
        notes=tuple(dict.fromkeys((*state.notes, *_notes(state, log)))),
    )


def _notes(state: ConMemState, log: CounterfactualLog) -> list[str]:
    notes = [note for call in state.calls for note in call.notes]
    for trial in log.trials:
        for name, answer in (("control", trial.control), ("treatment", trial.treatment)):
            if isinstance(answer, Response) and answer.cut_off:
                notes.append(
                    f"the {name} answer of the {trial.role} probe reached its token limit again "
                    "and was judged as it was"
                )
    discarded = log.repairs.discarded_answers + log.repairs.discarded_verdicts
    if discarded:
        notes.append(f"speculation: {discarded} answers and verdicts were discarded")
    return notes
