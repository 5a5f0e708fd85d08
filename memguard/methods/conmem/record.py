"""From what the nodes left behind to trials, log and report. Pure."""

from collections.abc import Sequence

from memguard.methods.conmem.panel import PROMPTS, Panel
from memguard.methods.conmem.state import ConMemState, Spent, TrialPart
from memguard.policy.conmem_decision import METHOD
from memguard.policy.conmem_ladder import Standing, standings
from memguard.schema.conmem import STAGES, ProbeRole
from memguard.schema.conmem_log import CounterfactualLog, ProbeTrial, Repairs, Response
from memguard.schema.decision import AdmissionDecision
from memguard.schema.receipt import MethodReport
from memguard.schema.usage import Usage


def build_trials(state: ConMemState) -> tuple[ProbeTrial, ...]:
    """One trial per role, with the parts that belong to the probe that stands."""
    found = standings(state.rounds)
    return tuple(_trial(standing, state.parts) for standing in found.values())


def _trial(standing: Standing, parts: Sequence[TrialPart]) -> ProbeTrial:
    said = standing.audit.reason if standing.audit is not None else ""
    if not standing.is_valid:
        return ProbeTrial(
            role=standing.role,
            query=standing.query,
            valid=not standing.is_open,
            validation=said,
            failure=standing.failure,
        )
    own = {
        part.step: part.value
        for part in parts
        if (part.role, part.query) == (standing.role, standing.query)
    }
    return ProbeTrial.model_validate(
        {
            "role": standing.role,
            "query": standing.query,
            "validation": said,
            "control": own.get("control"),
            "treatment": own.get("treatment"),
            "quality": own.get("quality"),
            "attribution": own.get("audit"),
        }
    )


def untried(state: ConMemState, roles: Sequence[ProbeRole]) -> tuple[Standing, ...]:
    """Those of the roles whose present probe nobody has answered yet."""
    found = standings(state.rounds)
    tried = {(part.role, part.query) for part in state.parts}
    return tuple(
        found[role]
        for role in roles
        if found[role].query and (role, found[role].query) not in tried
    )


def build_log(state: ConMemState, *, panel: Panel) -> CounterfactualLog:
    """The evidence of a case, whole."""
    calls: dict[str, Usage] = {}
    for spent in state.spent:
        stage = PROMPTS[spent.prompt]
        calls[stage] = calls.get(stage, Usage()) + spent.usage
    return CounterfactualLog(
        case_id=state.candidate.id,
        seed=panel.spec.seed,
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
    valid = {(s.role, s.query) for s in standings(state.rounds).values() if s.is_valid}
    wasted = [part for part in state.parts if (part.role, part.query) not in valid]
    prompts = [spent.prompt for spent in state.spent]
    answers = sum(part.step in {"control", "treatment"} for part in wasted)
    return Repairs(
        regenerations=prompts.count("regenerate"),
        repairs=prompts.count("repair"),
        reconstructions=prompts.count("reconstruct"),
        discarded_answers=answers,
        discarded_verdicts=len(wasted) - answers,
    )


def build_report(state: ConMemState, *, panel: Panel, decision: AdmissionDecision) -> MethodReport:
    """All that a receipt keeps of this method's work on one candidate."""
    log = build_log(state, panel=panel)
    used = list(dict.fromkeys(spent.prompt for spent in state.spent))
    return MethodReport(
        method=METHOD,
        spec=panel.spec.model_dump(mode="json"),
        decision=decision,
        evidence=log.model_dump(mode="json"),
        context=state.history,
        usage=sum((spent.usage for spent in state.spent), Usage()),
        prompts=tuple(panel.prompts[name].stamp for name in used),
        models={stage: panel.models[stage].name for stage in STAGES if stage in log.calls},
        notes=tuple(dict.fromkeys((*state.notes, *_notes(state.spent, log)))),
    )


def _notes(spent: Sequence[Spent], log: CounterfactualLog) -> list[str]:
    notes = [note for each in spent for note in each.notes]
    for trial in log.trials:
        for name, answer in (("control", trial.control), ("treatment", trial.treatment)):
            if isinstance(answer, Response) and answer.cut_off:
                notes.append(
                    f"the {name} answer of the {trial.role} probe reached its cap of tokens and "
                    "was judged as far as it goes"
                )
    wasted = log.repairs.discarded_answers + log.repairs.discarded_verdicts
    if wasted:
        notes.append(f"speculation: {wasted} answers and verdicts were thrown away")
    return notes
