"""The two calls about a case as a whole: the tie-break, and the reason of a rejection."""

from collections.abc import Sequence
from typing import Any

from memguard.methods.conmem.answers import Reason, TieBreak, read_reason, read_tie_break
from memguard.methods.conmem.panel import Panel
from memguard.methods.conmem.state import ConMemState, Spent
from memguard.policy.conmem_decision import explain_evidence
from memguard.rendering.quote import quote, quote_turns
from memguard.schema.conmem_log import (
    AttributionVerdict,
    ProbeTrial,
    QualityVerdict,
    ReasonVerdict,
    Response,
    TieBreakVerdict,
)
from memguard.schema.verdict import Inconclusive


async def ask_tie_break(
    state: ConMemState, *, trials: Sequence[ProbeTrial], panel: Panel
) -> dict[str, Any]:
    """Let a judge decide from the raw log; it sees no weight and no score."""
    got = await panel.ask(
        "tie_break",
        TieBreak,
        slots={
            "history": quote_turns(state.history),
            "candidate": quote(state.candidate.text),
            "evidence": render_evidence(trials),
        },
        parse=read_tie_break,
    )
    value: TieBreakVerdict | Inconclusive
    if isinstance(got.value, TieBreak):
        value = TieBreakVerdict(store=got.value.decision == "STORE", reason=got.value.reason)
    else:
        value = got.value
    spent = Spent(prompt="tie_break", usage=got.usage, notes=got.notes)
    return {"tie_break": value, "spent": [spent]}


async def ask_reason(
    state: ConMemState, *, trials: Sequence[ProbeTrial], panel: Panel
) -> dict[str, Any]:
    """Ask why a rejected candidate was rejected; the decision stands whatever comes back."""
    if state.score is None or state.decision is None:
        msg = "a reason is asked for after the decision"
        raise AssertionError(msg)
    said = explain_evidence(tuple(trials), score=state.score, tie_break=state.tie_break)
    got = await panel.ask(
        "reason",
        Reason,
        slots={
            "history": quote_turns(state.history),
            "candidate": quote(state.candidate.text),
            "decision": quote("DO_NOT_STORE"),
            "explanation": quote(said),
        },
        parse=read_reason,
    )
    value: ReasonVerdict | Inconclusive
    if isinstance(got.value, Reason):
        value = ReasonVerdict(
            reason_type=got.value.reason_type,
            confidence=got.value.confidence,
            explanation=got.value.explanation,
        )
    else:
        value = got.value
    spent = Spent(prompt="reason", usage=got.usage, notes=got.notes)
    return {"reason": value, "spent": [spent]}


def render_evidence(trials: Sequence[ProbeTrial]) -> str:
    """The raw log as quoted lines: requests, answers, verdicts."""
    return "\n".join(line for trial in trials for line in _trial_lines(trial))


def _trial_lines(trial: ProbeTrial) -> list[str]:
    if trial.failure is not None or not trial.valid:
        return [f"{trial.role}: no usable request was found"]
    lines = [f"{trial.role}: {quote(trial.query)}"]
    for name, answer in (("control", trial.control), ("treatment", trial.treatment)):
        text = quote(answer.text) if isinstance(answer, Response) else "no usable answer"
        lines.append(f"- {name}: {text}")
    if isinstance(trial.quality, QualityVerdict):
        said = trial.quality.preference
        preferred = "neither is better" if said == "tie" else f"{said} is better"
        lines.append(f"- blind judge: {preferred}, {quote(trial.quality.reason)}")
    if isinstance(trial.attribution, AttributionVerdict):
        audit = trial.attribution
        used = "used" if audit.used else "not used"
        changed = "changed the answer" if audit.changed else "changed nothing"
        lines.append(f"- auditor: {used}, {changed}, {audit.label}, {quote(audit.reason)}")
    return lines
