"""Trials: answer each probe without and with the memory, and compare the two answers.

```text
START -> control, treatment -> judge, auditor -> END
```

Judge and auditor of a probe start as soon as its two answers are there, whatever the other probes
do. The tie-break and the reason of a rejection, which look at all trials together, are here too.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from pydantic import BaseModel, ConfigDict, Field, field_validator

from memguard.llm.ask import ParsedAnswer
from memguard.llm.parsing import parse_json
from memguard.llm.texts import parse_choice
from memguard.methods.conmem.config import ROLES, ProbeRole
from memguard.methods.conmem.ladder import ProbeState, probe_states
from memguard.methods.conmem.log import (
    Attribution,
    AttributionVerdict,
    ProbeTrial,
    QualityVerdict,
    ReasonType,
    ReasonVerdict,
    Response,
    TieBreakVerdict,
    TrialArm,
)
from memguard.methods.conmem.models import StageModels
from memguard.methods.conmem.rules import canonical_reason, explain_evidence, shown_as_a
from memguard.methods.conmem.state import (
    ConMemState,
    StageCall,
    TrialInput,
    TrialOutput,
    TrialPart,
    TrialState,
    TrialStep,
    event_step,
)
from memguard.portal import dual
from memguard.quoting import quote, quote_turns
from memguard.schema.decision import Inconclusive
from memguard.schema.usage import Usage

NAME = "run_probe"

_ANSWER_CONFIG = ConfigDict(extra="ignore")
"""Models add keys that were not asked for; they are ignored."""


class JudgeAnswer(BaseModel):
    """Which answer is better."""

    model_config = _ANSWER_CONFIG

    reason: str = ""
    winner: Literal["A", "B", "TIE"]

    @field_validator("winner", mode="before")
    @classmethod
    def _upper(cls, value: object) -> object:
        return value.strip().upper() if isinstance(value, str) else value


class AuditorAnswer(BaseModel):
    """What the memory did to the answer."""

    model_config = _ANSWER_CONFIG

    reason: str = ""
    used: bool
    changed: bool
    label: Attribution

    @field_validator("label", mode="before")
    @classmethod
    def _lower(cls, value: object) -> object:
        return value.strip().casefold() if isinstance(value, str) else value


class TieBreakAnswer(BaseModel):
    """Whether to store a candidate without an effect."""

    model_config = _ANSWER_CONFIG

    reason: str = ""
    decision: Literal["STORE", "DO_NOT_STORE"]

    @field_validator("decision", mode="before")
    @classmethod
    def _upper(cls, value: object) -> object:
        return value.strip().upper() if isinstance(value, str) else value


class ReasonAnswer(BaseModel):
    """Why a candidate was rejected."""

    model_config = _ANSWER_CONFIG

    reason_type: ReasonType
    confidence: float | None = Field(default=None, ge=0.0, le=1.0)
    explanation: str = ""

    @field_validator("reason_type", mode="before")
    @classmethod
    def _spelling(cls, value: object) -> object:
        return canonical_reason(value) if isinstance(value, str) else value


def read_judge(text: str) -> JudgeAnswer | Inconclusive:
    """Read a verdict as JSON, or as `[[B]]`, `Verdict: tie` and the like; no letter in prose."""
    letter = parse_choice(text, ("A", "B", "TIE"))
    if isinstance(letter, Inconclusive):
        return letter
    answer = parse_json(text, JudgeAnswer)
    # The explanation belongs to the verdict only if the JSON names the same winner.
    agrees = isinstance(answer, JudgeAnswer) and answer.winner == letter
    return answer if agrees else JudgeAnswer.model_validate({"winner": letter})


def read_tie_break(text: str) -> TieBreakAnswer | Inconclusive:
    """Read a decision as JSON, or named as a decision in words."""
    decision = parse_choice(text, ("DO_NOT_STORE", "STORE"))
    if isinstance(decision, Inconclusive):
        return decision
    answer = parse_json(text, TieBreakAnswer)
    agrees = isinstance(answer, TieBreakAnswer) and answer.decision == decision
    return answer if agrees else TieBreakAnswer.model_validate({"decision": decision})


def read_reason(text: str) -> ReasonAnswer | Inconclusive:
    """Read a reason from the closed list, except the one for admitted candidates."""
    # The prompt lists reasons to reject; the other one would contradict the decision.
    answer = parse_json(text, ReasonAnswer)
    if isinstance(answer, ReasonAnswer) and answer.reason_type == "directly_relevant":
        detail = "directly_relevant is not a reason to reject"
        return Inconclusive(reason="off_menu", detail=detail)
    return answer


def create_trial_graph(models: StageModels) -> CompiledStateGraph[Any, Any, Any, Any]:
    """One trial as a graph. A node that an ablation turns off is not in it."""
    builder = StateGraph(TrialState, input_schema=TrialInput, output_schema=TrialOutput)
    for arm in ("control", "treatment"):
        builder.add_node(arm, dual(partial(answer_arm, arm=arm, models=models), name=arm))
        builder.add_edge(START, arm)
    for enabled, node in ((models.spec.quality_judge, judge), (models.spec.auditor, auditor)):
        if enabled:
            builder.add_node(node.__name__, dual(partial(node, models=models)))
            # A list of sources waits for both arms.
            builder.add_edge(["control", "treatment"], node.__name__)
            builder.add_edge(node.__name__, END)
    return builder.compile(name=NAME)


async def answer_arm(state: TrialState, *, arm: TrialArm, models: StageModels) -> dict[str, Any]:
    """Answer the probe. The arms differ in the block with the memory and in nothing else."""
    # An empty block would tell the model that a memory exists: the control has no block at all.
    information = ""
    if arm == "treatment":
        information = f"<user_information>\n{quote(state['memory'])}\n</user_information>\n"
    with event_step(arm, case=state["case_id"], role=state["role"]) as event:
        answer = await models.respond(information=information, request=quote(state["query"]))
        value = answer.text
        if not isinstance(value, Inconclusive):
            value = Response(text=value, cut_off=answer.cut_off)
        event["usable"] = isinstance(value, Response)
    return _part(state, arm, value=value, prompt="respond", usage=answer.usage, notes=answer.notes)


async def judge(state: TrialState, *, models: StageModels) -> dict[str, Any]:
    """Compare the answers without naming the arms; makes no call if an answer is missing."""
    responses = _responses(state["parts"])
    if responses is None:
        return {}
    # Models favour the first answer; the order is random over cases and fixed for each case.
    first = shown_as_a(seed=models.spec.seed, case_id=state["case_id"], role=state["role"])
    second: TrialArm = "control" if first == "treatment" else "treatment"
    slots = {
        "history": quote_turns(state["history"]),
        "query": quote(state["query"]),
        "response_a": quote(responses[first].text),
        "response_b": quote(responses[second].text),
    }
    with event_step("judge", case=state["case_id"], role=state["role"]) as event:
        answer = await models.ask("quality", JudgeAnswer, slots=slots, parse=read_judge)
        value: Any = answer.value
        # An `Inconclusive` passes through as it is: it is evidence too.
        if isinstance(value, JudgeAnswer):
            value = QualityVerdict(letter=value.winner, shown_as_a=first, reason=value.reason)
        event["usable"] = isinstance(value, QualityVerdict)
    return _answer_part(state, "judge", value=value, prompt="quality", answer=answer)


async def auditor(state: TrialState, *, models: StageModels) -> dict[str, Any]:
    """Attribute the difference to the memory; makes no call if an answer is missing."""
    responses = _responses(state["parts"])
    if responses is None:
        return {}
    slots = {
        "history": quote_turns(state["history"]),
        "candidate": quote(state["memory"]),
        "query": quote(state["query"]),
        "control": quote(responses["control"].text),
        "treatment": quote(responses["treatment"].text),
    }
    with event_step("auditor", case=state["case_id"], role=state["role"]) as event:
        answer = await models.ask("audit", AuditorAnswer, slots=slots, parse=None)
        value: Any = answer.value
        if isinstance(value, AuditorAnswer):
            value = AttributionVerdict(**value.model_dump())
        event["usable"] = isinstance(value, AttributionVerdict)
    return _answer_part(state, "auditor", value=value, prompt="audit", answer=answer)


def _responses(parts: Sequence[TrialPart]) -> dict[TrialArm, Response] | None:
    responses: dict[TrialArm, Response] = {}
    for part in parts:
        if part.step in {"control", "treatment"} and isinstance(part.value, Response):
            responses["control" if part.step == "control" else "treatment"] = part.value
    return responses if len(responses) == len(("control", "treatment")) else None


def _answer_part(
    state: TrialState, step: TrialStep, *, value: Any, prompt: str, answer: ParsedAnswer[Any]
) -> dict[str, Any]:
    return _part(state, step, value=value, prompt=prompt, usage=answer.usage, notes=answer.notes)


def _part(
    state: TrialState,
    step: TrialStep,
    *,
    value: Any,
    prompt: str,
    usage: Usage,
    notes: tuple[str, ...],
) -> dict[str, Any]:
    part = TrialPart(role=state["role"], query=state["query"], step=step, value=value)
    return {"parts": [part], "calls": [StageCall(prompt=prompt, usage=usage, notes=notes)]}


def build_trials(state: ConMemState) -> tuple[ProbeTrial, ...]:
    """One trial per role, with the results that belong to its current probe."""
    return tuple(_trial(probe, state.parts) for probe in probe_states(state.rounds).values())


def _trial(probe: ProbeState, parts: Sequence[TrialPart]) -> ProbeTrial:
    validation = probe.audit.reason if probe.audit is not None else ""
    # `valid` is false only on a verdict; with a failed call, `failure` says that there is none.
    if not probe.is_valid:
        return ProbeTrial(
            role=probe.role,
            query=probe.query,
            valid=not probe.is_repairable,
            validation=validation,
            failure=probe.failure,
        )
    # Speculation may have answered an earlier request of this role: the query tells them apart.
    results = {
        part.step: part.value
        for part in parts
        if (part.role, part.query) == (probe.role, probe.query)
    }
    return ProbeTrial.model_validate(
        {
            "role": probe.role,
            "query": probe.query,
            "validation": validation,
            "control": results.get("control"),
            "treatment": results.get("treatment"),
            "quality": results.get("judge"),
            "attribution": results.get("auditor"),
        }
    )


def untried_probes(state: ConMemState) -> tuple[ProbeState, ...]:
    """Current probes without any answer yet."""
    states = probe_states(state.rounds)
    tried: set[tuple[ProbeRole, str]] = {(part.role, part.query) for part in state.parts}
    return tuple(
        states[role]
        for role in ROLES
        if states[role].query and (role, states[role].query) not in tried
    )


async def ask_tie_break(
    state: ConMemState, *, trials: Sequence[ProbeTrial], models: StageModels
) -> dict[str, Any]:
    """Let a judge decide from the raw log; it sees neither weights nor scores."""
    slots = {
        "history": quote_turns(state.history),
        "candidate": quote(state.candidate.text),
        "evidence": render_evidence(trials),
    }
    answer = await models.ask("tie_break", TieBreakAnswer, slots=slots, parse=read_tie_break)
    verdict: TieBreakVerdict | Inconclusive
    if isinstance(answer.value, TieBreakAnswer):
        store = answer.value.decision == "STORE"
        verdict = TieBreakVerdict(store=store, reason=answer.value.reason)
    else:
        verdict = answer.value
    call = StageCall(prompt="tie_break", usage=answer.usage, notes=answer.notes)
    return {"tie_break": verdict, "calls": [call]}


async def ask_reason(
    state: ConMemState, *, trials: Sequence[ProbeTrial], models: StageModels
) -> dict[str, Any]:
    """Ask why a candidate was rejected; the answer changes no decision."""
    if state.score is None:
        msg = "the reason is asked for after the decision"
        raise AssertionError(msg)
    explanation = explain_evidence(tuple(trials), score=state.score, tie_break=state.tie_break)
    slots = {
        "history": quote_turns(state.history),
        "candidate": quote(state.candidate.text),
        "decision": quote("DO_NOT_STORE"),
        "explanation": quote(explanation),
    }
    answer = await models.ask("reason", ReasonAnswer, slots=slots, parse=read_reason)
    verdict: ReasonVerdict | Inconclusive
    if isinstance(answer.value, ReasonAnswer):
        verdict = ReasonVerdict(**answer.value.model_dump())
    else:
        verdict = answer.value
    call = StageCall(prompt="reason", usage=answer.usage, notes=answer.notes)
    return {"reason": verdict, "calls": [call]}


def render_evidence(trials: Sequence[ProbeTrial]) -> str:
    """The raw log as quoted lines: requests, answers and verdicts."""
    return "\n".join(line for trial in trials for line in _trial_lines(trial))


def _trial_lines(trial: ProbeTrial) -> list[str]:
    # The judge should not guess from the absence of a probe: its line says why it has no answers.
    if trial.failure is not None or not trial.valid:
        return [f"{trial.role}: no usable request was found"]
    lines = [f"{trial.role}: {quote(trial.query)}"]
    for name, answer in (("control", trial.control), ("treatment", trial.treatment)):
        text = quote(answer.text) if isinstance(answer, Response) else "no usable answer"
        lines.append(f"- {name}: {text}")
    if isinstance(trial.quality, QualityVerdict):
        preference = trial.quality.preference
        preferred = "neither is better" if preference == "tie" else f"{preference} is better"
        lines.append(f"- blind judge: {preferred}, {quote(trial.quality.reason)}")
    if isinstance(trial.attribution, AttributionVerdict):
        audit = trial.attribution
        used = "used" if audit.used else "not used"
        changed = "changed the answer" if audit.changed else "changed nothing"
        lines.append(f"- auditor: {used}, {changed}, {audit.label}, {quote(audit.reason)}")
    return lines
