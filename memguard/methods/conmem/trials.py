"""Trials: answer each probe without and with the memory, and compare the two answers.

```text
START -> control, treatment -> judge, auditor -> END
```

Judge and auditor of a probe start as soon as its two answers are there, whatever the other probes
do. What the later judges read, and how their answers are read, is here too.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from pydantic import BaseModel, BeforeValidator, Field

from memguard.llm.ask import ParsedAnswer, TextAnswer
from memguard.llm.parsing import parse_json
from memguard.llm.texts import parse_choice
from memguard.methods.conmem.config import ProbeRole
from memguard.methods.conmem.ladder import ProbeState, probe_states
from memguard.methods.conmem.log import (
    Attribution,
    AttributionVerdict,
    ProbeTrial,
    QualityVerdict,
    ReasonType,
    Response,
    TrialArm,
)
from memguard.methods.conmem.models import StageModels
from memguard.methods.conmem.rules import canonical_reason, shown_as_a
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

ARMS: tuple[TrialArm, ...] = ("control", "treatment")

M = TypeVar("M", bound=BaseModel)


# Words are compared without case: a verdict in another spelling is still a verdict, and asking
# again would cost a call. Keys that a model adds are ignored by Pydantic.
def _spelled(rule: Callable[[str], str]) -> BeforeValidator:
    def respell(value: object) -> object:
        return rule(value.strip()) if isinstance(value, str) else value

    return BeforeValidator(respell)


class JudgeAnswer(BaseModel):
    """Which answer is better."""

    reason: str = ""
    winner: Annotated[Literal["A", "B", "TIE"], _spelled(str.upper)]


class AuditorAnswer(BaseModel):
    """What the memory did to the answer."""

    reason: str = ""
    used: bool
    changed: bool
    label: Annotated[Attribution, _spelled(str.casefold)]


class TieBreakAnswer(BaseModel):
    """Whether to store a candidate without an effect."""

    reason: str = ""
    decision: Annotated[Literal["STORE", "DO_NOT_STORE"], _spelled(str.upper)]


class ReasonAnswer(BaseModel):
    """Why a candidate was rejected."""

    reason_type: Annotated[ReasonType, _spelled(canonical_reason)]
    confidence: float | None = Field(default=None, ge=0.0, le=1.0)
    explanation: str = ""


def read_judge(text: str) -> JudgeAnswer | Inconclusive:
    """Read a verdict as JSON, or as `[[B]]`, `Verdict: tie` and the like; no letter in prose."""
    return _read_choice(text, JudgeAnswer, field="winner", options=("A", "B", "TIE"))


def read_tie_break(text: str) -> TieBreakAnswer | Inconclusive:
    """Read a decision as JSON, or named as a decision in words."""
    return _read_choice(text, TieBreakAnswer, field="decision", options=("DO_NOT_STORE", "STORE"))


def _read_choice(
    text: str, schema: type[M], *, field: str, options: tuple[str, ...]
) -> M | Inconclusive:
    choice = parse_choice(text, options)
    if isinstance(choice, Inconclusive):
        return choice
    answer = parse_json(text, schema)
    # The explanation belongs to the choice only if the JSON names the same one.
    agrees = not isinstance(answer, Inconclusive) and getattr(answer, field) == choice
    return answer if agrees else schema.model_validate({field: choice})


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
    for arm in ARMS:
        builder.add_node(arm, dual(partial(answer_arm, arm=arm, models=models), name=arm))
        builder.add_edge(START, arm)
    for enabled, node in ((models.spec.quality_judge, judge), (models.spec.auditor, auditor)):
        if enabled:
            builder.add_node(node.__name__, dual(partial(node, models=models)))
            # An edge from a list waits for both arms; two edges would run the node twice.
            builder.add_edge(list(ARMS), node.__name__)
            builder.add_edge(node.__name__, END)
    return builder.compile(name="run_probe")


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
    return _part(state, arm, value=value, prompt="respond", answer=answer)


async def judge(state: TrialState, *, models: StageModels) -> dict[str, Any]:
    """Compare the answers without naming the arms; makes no call if an answer is missing."""
    responses = _responses(state["parts"])
    if responses is None:
        return {}
    # Models favour the first answer. The order is random over cases, so that the bias cancels, and
    # fixed for each case, so that a run can be repeated.
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
        # An `Inconclusive` stays as it is: it is evidence too.
        if isinstance(value, JudgeAnswer):
            value = QualityVerdict(letter=value.winner, shown_as_a=first, reason=value.reason)
        event["usable"] = isinstance(value, QualityVerdict)
    return _part(state, "judge", value=value, prompt="quality", answer=answer)


async def auditor(state: TrialState, *, models: StageModels) -> dict[str, Any]:
    """Attribute the difference to the memory; makes no call if an answer is missing."""
    responses = _responses(state["parts"])
    if responses is None:
        return {}
    # Unlike the judge, the auditor is shown the memory and which answer had it.
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
    return _part(state, "auditor", value=value, prompt="audit", answer=answer)


def _responses(parts: Sequence[TrialPart]) -> dict[TrialStep, Response] | None:
    """Both answers; `None` if one is missing or not usable."""
    responses: dict[TrialStep, Response] = {
        part.step: part.value for part in parts if isinstance(part.value, Response)
    }
    return responses if len(responses) == len(ARMS) else None


def _part(
    state: TrialState,
    step: TrialStep,
    *,
    value: Any,
    prompt: str,
    answer: ParsedAnswer[Any] | TextAnswer,
) -> dict[str, Any]:
    part = TrialPart(role=state["role"], query=state["query"], step=step, value=value)
    return {"parts": [part], "calls": [StageCall.from_answer(prompt, answer)]}


def build_trials(state: ConMemState) -> tuple[ProbeTrial, ...]:
    """One trial per role, with the results that belong to its current probe."""
    return tuple(_trial(probe, state.parts) for probe in probe_states(state.rounds).values())


def _trial(probe: ProbeState, parts: Sequence[TrialPart]) -> ProbeTrial:
    audit = probe.audit
    validation = audit.reason if audit is not None else ""
    # `valid` is false only on a verdict. With a failed call, `failure` says why there is none, or
    # why the probe was not written again.
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
            "frequency": audit.frequency if audit is not None else None,
            "control": results.get("control"),
            "treatment": results.get("treatment"),
            "quality": results.get("judge"),
            "attribution": results.get("auditor"),
        }
    )


def untried_probes(state: ConMemState) -> tuple[ProbeState, ...]:
    """Current probes without any answer yet, except those that are known to be invalid."""
    # By the request and not by the role: a probe that was written again has not been tried.
    tried: set[tuple[ProbeRole, str]] = {(part.role, part.query) for part in state.parts}
    return tuple(
        probe
        for probe in probe_states(state.rounds).values()
        if probe.query and not probe.is_repairable and (probe.role, probe.query) not in tried
    )


def render_evidence(trials: Sequence[ProbeTrial]) -> str:
    """The raw log as quoted lines: requests, answers and verdicts."""
    return "\n".join(line for trial in trials for line in _trial_lines(trial))


def _trial_lines(trial: ProbeTrial) -> list[str]:
    # The judge should not guess from the absence of a probe: its line says why it has no answers.
    if trial.failure is not None or not trial.valid:
        return [f"{trial.role}: no usable request was found"]
    lines = [f"{trial.role}: {quote(trial.query)}"]
    if trial.frequency is not None:
        lines.append(f"- such a request: {trial.frequency}")
    for name, answer in (("control", trial.control), ("treatment", trial.treatment)):
        text = quote(answer.text) if isinstance(answer, Response) else "no usable answer"
        lines.append(f"- {name}: {text}")
    if isinstance(trial.quality, QualityVerdict):
        preference = trial.quality.preference
        preferred = "neither is better" if preference == "tie" else f"{preference} is better"
        lines.append(f"- blind judge: {preferred}, {quote(trial.quality.reason)}")
    if isinstance(trial.attribution, AttributionVerdict):
        audit = trial.attribution
        lines.append(f"- auditor: {audit.summary}, {audit.label}, {quote(audit.reason)}")
    return lines
