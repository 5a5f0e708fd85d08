"""From the effect of a memory to an admission decision, with the words that say why."""

from memguard.policy.admission import INCONCLUSIVE_OUTCOMES
from memguard.policy.cmte import rescore
from memguard.schema.conmem import ConMem, ProbeRole
from memguard.schema.conmem_log import (
    AttributionVerdict,
    Cmte,
    CounterfactualLog,
    ProbeScore,
    ProbeTrial,
    QualityVerdict,
    ReasonType,
    ReasonVerdict,
    TieBreakVerdict,
)
from memguard.schema.decision import AdmissionDecision, Outcome, ReasonCode
from memguard.schema.verdict import Inconclusive

METHOD = "conmem"

_ALIASES: dict[str, ReasonType] = {
    "state_memory_use": "stale_memory_use",
    "identity_mis_inference": "identity_misinference",
}
"""Other spellings in the paper: section 5.3.3 and appendix B.7."""


def decide_on_effect(
    score: Cmte,
    *,
    spec: ConMem,
    tie_break: TieBreakVerdict | Inconclusive | None = None,
) -> AdmissionDecision:
    """Make a decision of an effect.

    Args:
        score: What the probes come to.
        spec: What ties and inconclusive candidates become.
        tie_break: The tie-break judge's word, where the sum is zero and the judge was asked.
    """
    outcome, reason, why = _outcome(score, spec=spec, tie_break=tie_break)
    return AdmissionDecision(outcome=outcome, reason=reason, explanation=why, method=METHOD)


def redecide(log: CounterfactualLog, *, spec: ConMem) -> tuple[Cmte, AdmissionDecision | None]:
    """Score and decide a stored case under another spec, with no model call.

    Returns:
        The score, and the decision; `None` where a tie-break judge would have to be asked who was
        not asked then.

    Raises:
        ValueError: If the log holds no case, or the spec wants verdicts that were never asked for.
    """
    if log.score is None:
        msg = "the candidate was refused before anything was asked: there is nothing to score"
        raise ValueError(msg)
    score = rescore(log.trials, spec=spec)
    if score.ruling == "tie" and spec.zero == "tie_break" and log.tie_break is None:
        return score, None
    return score, decide_on_effect(score, spec=spec, tie_break=log.tie_break)


def _outcome(
    score: Cmte, *, spec: ConMem, tie_break: TieBreakVerdict | Inconclusive | None
) -> tuple[Outcome, ReasonCode, str]:
    said = explain_score(score)
    if score.ruling == "positive":
        return "admit", "positive_effect", said
    if score.ruling == "negative":
        return "reject", "negative_effect", said
    if score.ruling == "tie" and spec.zero != "tie_break":
        return spec.zero, "zero_effect", f"{said}; an effect of zero is set to {spec.zero}"
    if score.ruling == "tie" and isinstance(tie_break, TieBreakVerdict):
        outcome: Outcome = "admit" if tie_break.store else "reject"
        return outcome, "tie_break", f"{said}; tie-break: {tie_break.reason or outcome}"
    unclear = INCONCLUSIVE_OUTCOMES[spec.on_inconclusive]
    if score.ruling == "inconclusive":
        return unclear, "inconclusive", f"not judged: {said}"
    failed = f": {tie_break.reason}" if isinstance(tie_break, Inconclusive) else ""
    return unclear, "inconclusive", f"{said}; the tie-break judge gave nothing usable{failed}"


def explain_score(score: Cmte) -> str:
    """`CMTE +0.50 (relevant +1.00, irrelevant +0.00, risk +0.50)`."""
    parts = ", ".join(f"{probe.role} {_signed(probe)}" for probe in score.probes)
    mean = "without a value" if score.cmte is None else f"{score.cmte:+.2f}"
    return f"CMTE {mean} ({parts})"


def _signed(probe: ProbeScore) -> str:
    if probe.contribution is None:
        return "inconclusive"
    if "invalid_probe" in probe.flags:
        return "without a valid probe"
    return f"{probe.contribution:+.2f}"


def explain_evidence(
    trials: tuple[ProbeTrial, ...],
    *,
    score: Cmte,
    tie_break: TieBreakVerdict | Inconclusive | None = None,
) -> str:
    """The evidence in words, for the reason classifier: no weight, no number.

    The paper shows that classifier an admission explanation, which only tie-breaks have; so it is
    built from the probes.
    """
    by_role = {probe.role: probe for probe in score.probes}
    lines = [_explain_trial(trial, by_role[trial.role]) for trial in trials]
    if isinstance(tie_break, TieBreakVerdict):
        lines.append(f"The tie-break judge: {tie_break.reason}")
    return " ".join(lines)


def _explain_trial(trial: ProbeTrial, probe: ProbeScore) -> str:
    names: dict[ProbeRole, str] = {
        "relevant": "On a request where the memory should help",
        "irrelevant": "On a request that has nothing to do with the memory",
        "risk": "On a request where the memory should not carry over",
    }
    where = names[trial.role]
    if probe.contribution is None:
        return f"{where}, nothing could be concluded."
    if "invalid_probe" in probe.flags:
        return f"{where}, no valid test was found."
    said: list[str] = []
    if isinstance(trial.attribution, AttributionVerdict):
        used = "was used" if trial.attribution.used else "was not used"
        changed = "changed" if trial.attribution.changed else "did not change"
        said.append(f"it {used} and {changed} the answer; this was {probe.label}")
        if trial.attribution.reason:
            said.append(trial.attribution.reason)
    if isinstance(trial.quality, QualityVerdict):
        better = {
            "treatment": "the answer with the memory was better",
            "control": "the answer without the memory was better",
            "tie": "neither answer was better",
        }
        said.append(better[trial.quality.preference])
    return f"{where}: {'; '.join(said)}."


def with_reason(decision: AdmissionDecision, reason: ReasonVerdict | None) -> AdmissionDecision:
    """The same decision with the reason in its explanation; outcome and code stay."""
    if reason is None or decision.outcome != "reject":
        return decision
    more = f": {reason.explanation}" if reason.explanation else ""
    said = f"{decision.explanation}; {reason.reason_type}{more}"
    return decision.model_copy(update={"explanation": said})


def canonical_reason(word: str) -> str:
    """The list's own spelling of a reason; an unknown word comes back as it is, in lower case."""
    plain = word.strip().casefold().replace("-", "_").replace(" ", "_")
    return _ALIASES.get(plain, plain)
