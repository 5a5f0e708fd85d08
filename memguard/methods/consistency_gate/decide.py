"""From the judge's samples to the decision, its evidence and its report. Pure."""

from collections import Counter

from pydantic import JsonValue

from memguard.methods.consistency_gate.state import Judgement, SupportState, score_of
from memguard.policy.admission import METHOD, decide_on_support
from memguard.policy.support import rule_on_support
from memguard.schema.config import ConsistencyGate
from memguard.schema.decision import AdmissionDecision
from memguard.schema.receipt import MethodReport
from memguard.schema.usage import Usage
from memguard.schema.verdict import Inconclusive, SupportSample


def rule(
    state: SupportState, *, spec: ConsistencyGate
) -> tuple[AdmissionDecision, dict[str, JsonValue]]:
    """The decision on a candidate, with the numbers that it rests on."""
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
        why=_why(samples, mean=score.mean, inconclusive=score.ruling == "inconclusive"),
        used=len(samples),
        too_close=any(isinstance(s, Inconclusive) and s.reason == "too_close" for s in samples),
    )
    return decision, {
        "score": score.mean,
        "tau": judgement.tau,
        "k": judgement.k,
        "used": len(samples),
        "usable": score.usable,
        "mode": judgement.mode,
        "temperature": None if judgement.mode == "local" else spec.sampling_temperature,
        "occupancy": state.occupancy,
        "samples": [_sample_row(sample) for sample in samples],
        "decided_by": _deciding_turns(state, judgement),
        **judgement.details,
    }


def build_report(
    state: SupportState,
    *,
    spec: ConsistencyGate,
    decision: AdmissionDecision,
    evidence: dict[str, JsonValue],
) -> MethodReport:
    """All that a receipt keeps of this method's work on one candidate."""
    judgement = state.judged
    return MethodReport(
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


def _why(
    samples: tuple[SupportSample | Inconclusive, ...], *, mean: float | None, inconclusive: bool
) -> str:
    """The words of the judge nearest to the mean; or why samples could not be used."""
    if inconclusive or mean is None:
        doubts = [
            s.detail for s in samples if isinstance(s, Inconclusive) and s.reason == "too_close"
        ]
        if doubts:
            return doubts[0]
        failures = Counter(s.reason for s in samples if isinstance(s, Inconclusive))
        return ", ".join(f"{count} x {reason}" for reason, count in sorted(failures.items()))
    reasons = [s for s in samples if isinstance(s, SupportSample) and s.reason]
    if not reasons:
        return ""
    return min(reasons, key=lambda sample: (abs(sample.score - mean), sample.reason)).reason


def _sample_row(sample: SupportSample | Inconclusive) -> dict[str, JsonValue]:
    if isinstance(sample, Inconclusive):
        return {"inconclusive": sample.reason, "detail": sample.detail}
    return {"score": sample.score, "reason": sample.reason, "turns": list(sample.turn_ids)}


def _deciding_turns(state: SupportState, judgement: Judgement) -> list[JsonValue]:
    """The turns that judges named, with who said them; the candidate's own when none did."""
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
