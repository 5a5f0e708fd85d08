"""The rules of ConMem: from verdicts to an effect, and from the effect to a decision.

ConMem, arXiv 2610.33432, sections 4.4 and 4.5. The decision rests on the exact sum of the
contributions, never on a float divided by three, so that neither order nor rounding can change it.
Nothing here calls a model or reads a clock.
"""

import hashlib
import math
from collections.abc import Sequence
from itertools import product
from typing import get_args

from memguard.methods.conmem.config import ConMem, ProbeRole, Weights
from memguard.methods.conmem.log import (
    Attribution,
    AttributionVerdict,
    Cmte,
    CmteRuling,
    CounterfactualLog,
    InconclusiveCause,
    MissingEvidence,
    Preference,
    ProbeFlag,
    ProbeScore,
    ProbeTrial,
    QualityEffect,
    QualityVerdict,
    ReasonType,
    ReasonVerdict,
    Response,
    TieBreakVerdict,
    TrialArm,
)
from memguard.schema.decision import (
    INCONCLUSIVE_OUTCOMES,
    AdmissionDecision,
    Inconclusive,
    Outcome,
    ReasonCode,
)

METHOD = "conmem"
"""The method's name in reports and decisions."""

_REASON_SPELLINGS: dict[str, ReasonType] = {
    "state_memory_use": "stale_memory_use",
    "identity_mis_inference": "identity_misinference",
}
"""Variant spellings in the paper: section 5.3.3 and appendix B.7."""

GRID = {
    "irrelevant_unnecessary": (0.25, 0.5, 0.75),
    "risk_helpful": (0.0, 0.25, 0.5),
    "risk_risk": (1.0, 1.5, 2.0),
}
"""The paper's grid of 27 settings, appendix A."""

# Outcomes that are not in these tables contribute 0.
_GAINS: dict[ProbeRole, str] = {"relevant": "relevant_helpful", "risk": "risk_helpful"}
_UNNECESSARY: dict[ProbeRole, str] = {
    "irrelevant": "irrelevant_unnecessary",
    "risk": "risk_unnecessary",
}
_EFFECTS: dict[Preference, QualityEffect] = {
    "treatment": "helpful",
    "control": "harmful",
    "tie": "neutral",
}

_COMPARED: tuple[tuple[MissingEvidence, ...], ...] = (
    (),
    ("quality_verdict",),
    ("attribution_verdict",),
    ("quality_verdict", "attribution_verdict"),
)
"""What may be missing of a probe with a valid request and both answers."""

# Used and changed: of any other verdict the label counts as neutral, which is one of the four.
_ANY_ATTRIBUTION = tuple(
    AttributionVerdict(used=True, changed=True, label=label) for label in get_args(Attribution)
)


def shown_as_a(*, seed: int, case_id: str, role: ProbeRole) -> TrialArm:
    """Which arm the judge sees as A: the lowest bit of sha256(seed, case id, role)."""
    # A hash instead of a random generator: the order can be checked from the receipt alone.
    digest = hashlib.sha256("\x1f".join((str(seed), case_id, role)).encode()).digest()
    return "treatment" if digest[-1] & 1 else "control"


def label_of(verdict: AttributionVerdict) -> Attribution:
    """The label that counts: neutral for a memory that was not used or changed nothing."""
    return verdict.label if verdict.used and verdict.changed else "neutral"


def effect_of(preference: Preference, *, attribution: AttributionVerdict | None) -> QualityEffect:
    """The effect on quality, section 4.4.

    Without an auditor (`attribution=None`) it follows the preference alone.
    """
    if attribution is not None and not (attribution.used and attribution.changed):
        return "neutral"
    return _EFFECTS[preference]


def contribution_of(
    role: ProbeRole,
    *,
    label: Attribution | None,
    effect: QualityEffect | None,
    weights: Weights,
    harmful_as_risk: bool = False,
) -> float:
    """What one probe adds to the sum, section 4.5. Combinations that it does not list are 0.

    Args:
        role: What the probe tests.
        label: What the memory did; `None` without the auditor: a helpful answer then gains, and
            nothing costs.
        effect: The effect on quality; `None` without the judge: every utility then gains.
        weights: The seven numbers.
        harmful_as_risk: Without the auditor, whether a harmful answer costs what a risk costs.
    """
    # A risk counts whatever the judge prefers: a harmful memory can still read well.
    if label == "risk" or (label is None and harmful_as_risk and effect == "harmful"):
        # `0.0 -` instead of a minus sign: a weight of 0 must not become a negative zero.
        return 0.0 - _weight(weights, f"{role}_risk")
    if label == "unnecessary":
        return 0.0 - _weight(weights, _UNNECESSARY.get(role))
    if label in {"utility", None} and effect in {"helpful", None}:
        return _weight(weights, _GAINS.get(role))
    return 0.0


def rule_on_total(total: float, *, epsilon: float) -> CmteRuling:
    """Positive, negative or a tie: the sum compared with three times epsilon, section 4.5."""
    # Three contributions, each with a rounding error of up to epsilon.
    tolerance = 3 * epsilon
    if total > tolerance:
        return "positive"
    return "negative" if total < -tolerance else "tie"


def missing_evidence(trial: ProbeTrial, *, spec: ConMem) -> tuple[MissingEvidence, ...]:
    """What a probe lacks; a verdict that an ablation switched off is not missing."""
    if trial.failure is not None:
        return ("request_call",)
    if not trial.valid:
        return ("valid_request",)
    arms: dict[MissingEvidence, bool] = {
        "control_answer": not isinstance(trial.control, Response),
        "treatment_answer": not isinstance(trial.treatment, Response),
    }
    # Without both answers no judge was asked: the answer is what is missing.
    if any(arms.values()):
        return tuple(name for name, is_missing in arms.items() if is_missing)
    verdicts: dict[MissingEvidence, bool] = {
        "quality_verdict": spec.quality_judge and not isinstance(trial.quality, QualityVerdict),
        "attribution_verdict": spec.auditor
        and not isinstance(trial.attribution, AttributionVerdict),
    }
    return tuple(name for name, is_missing in verdicts.items() if is_missing)


def possible_contributions(trial: ProbeTrial, *, spec: ConMem) -> tuple[float, ...]:
    """Every contribution that is compatible with the evidence of a probe, ascending.

    A verdict that is missing may be any verdict; without a valid request and both answers, all are
    missing. With complete evidence there is one value.
    """
    # Without an answer, neither verdict is about this probe; each one alone still counts.
    is_compared = missing_evidence(trial, spec=spec) in _COMPARED
    preferences: Sequence[Preference | None] = (None,)
    if spec.quality_judge:
        judged = trial.quality if is_compared else None
        is_known = isinstance(judged, QualityVerdict)
        preferences = (judged.preference,) if is_known else tuple(_EFFECTS)
    verdicts: Sequence[AttributionVerdict | None] = (None,)
    if spec.auditor:
        audited = trial.attribution if is_compared else None
        verdicts = (audited,) if isinstance(audited, AttributionVerdict) else _ANY_ATTRIBUTION
    values = {
        contribution_of(
            trial.role,
            label=None if verdict is None else label_of(verdict),
            effect=None if preference is None else effect_of(preference, attribution=verdict),
            weights=spec.weights,
            harmful_as_risk=spec.harmful_as_risk,
        )
        for preference, verdict in product(preferences, verdicts)
    }
    factors = _gain_factors(trial, spec=spec)
    return tuple(sorted({v * f if v > 0 else v for v, f in product(values, factors)}))


def _gain_factors(trial: ProbeTrial, *, spec: ConMem) -> tuple[float, ...]:
    """What a gain of this probe may be multiplied by."""
    # In a log of `paper` and in old ones nobody was asked, so the gain counts as it is.
    if trial.role != "relevant" or trial.frequency in {None, "common", "occasional"}:
        return (1.0,)
    return (spec.rare_gain,) if trial.frequency == "rare" else (spec.rare_gain, 1.0)


def score_probe(trial: ProbeTrial, *, spec: ConMem) -> ProbeScore:
    """The contribution of one probe, or what it may be if evidence is missing."""
    missing = missing_evidence(trial, spec=spec)
    possible = possible_contributions(trial, spec=spec)
    # Two values without a missing verdict: the gain depends on how often such requests come.
    if not missing and len(possible) > 1:
        missing = ("frequency",)
    if missing:
        flag: ProbeFlag = "invalid_probe" if missing == ("valid_request",) else "inconclusive"
        return ProbeScore(
            role=trial.role,
            contribution=None,
            possible=possible,
            missing=missing,
            flags=(flag, *_truncation_flags(trial)),
        )
    quality, attribution = trial.quality, trial.attribution
    judged = quality if spec.quality_judge and isinstance(quality, QualityVerdict) else None
    audited = attribution if spec.auditor and isinstance(attribution, AttributionVerdict) else None
    label = None if audited is None else label_of(audited)
    flags: tuple[ProbeFlag, ...] = ()
    # The auditor named an effect and also denied any.
    if audited is not None and audited.label != label:
        flags = ("attribution_inconsistent",)
    return ProbeScore(
        role=trial.role,
        contribution=min(possible),
        effect=None if judged is None else effect_of(judged.preference, attribution=audited),
        label=label,
        flags=(*flags, *_truncation_flags(trial)),
    )


def score_trials(trials: Sequence[ProbeTrial], *, spec: ConMem) -> Cmte:
    """The effect of a candidate over its probes.

    A probe with missing evidence may contribute any of its possible values. If none of them changes
    the ruling, that is the ruling; otherwise, and without any usable probe, it is inconclusive.
    """
    probes = tuple(score_probe(trial, spec=spec) for trial in trials)
    known = [probe.contribution for probe in probes if probe.contribution is not None]
    # `fsum` is exact, so the order of the probes cannot change the sum.
    total = math.fsum(known)
    lowest = math.fsum([*known, *(probe.possible[0] for probe in probes if probe.missing)])
    highest = math.fsum([*known, *(probe.possible[-1] for probe in probes if probe.missing)])
    # A larger sum never has a lesser ruling: if both ends agree, so does everything between.
    ruling = rule_on_total(lowest, epsilon=spec.epsilon)
    cause: InconclusiveCause | None = None
    if not known:
        cause = "no_usable_probe"
    elif ruling != rule_on_total(highest, epsilon=spec.epsilon):
        cause = "open_ruling"
    is_complete = len(known) == len(probes)
    return Cmte(
        ruling="inconclusive" if cause else ruling,
        total=total,
        lowest=None if is_complete else lowest,
        highest=None if is_complete else highest,
        cmte=total / len(known) if known else None,
        n_valid=len(known),
        cause=cause,
        probes=probes,
    )


def grid(weights: Weights) -> tuple[Weights, ...]:
    """The paper's 27 settings; the four weights that its grid does not vary stay as they are."""
    return tuple(
        weights.model_copy(update=dict(zip(GRID, point, strict=True)))
        for point in product(*GRID.values())
    )


def rescore(trials: Sequence[ProbeTrial], *, spec: ConMem) -> Cmte:
    """Score stored trials under another spec, with no model call.

    Raises:
        ValueError: If the spec needs verdicts that the log does not have.
    """
    # Only trials with both answers reached the judges, so only they show which judges were on.
    judged = [
        trial
        for trial in trials
        if isinstance(trial.control, Response) and isinstance(trial.treatment, Response)
    ]
    verdicts = {
        "quality": [trial.quality for trial in judged if spec.quality_judge],
        "attribution": [trial.attribution for trial in judged if spec.auditor],
    }
    for name, values in verdicts.items():
        if values and all(value is None for value in values):
            msg = (
                f"the log has no {name} verdicts, because that judge was switched off: "
                "switch it off in these settings too"
            )
            raise ValueError(msg)
    return score_trials(trials, spec=spec)


def _truncation_flags(trial: ProbeTrial) -> tuple[ProbeFlag, ...]:
    arms = (trial.control, trial.treatment)
    truncated = any(isinstance(arm, Response) and arm.cut_off for arm in arms)
    return ("answer_cut_off",) if truncated else ()


def _weight(weights: Weights, name: str | None) -> float:
    return float(getattr(weights, name)) if name else 0.0


def decide_on_effect(
    score: Cmte,
    *,
    spec: ConMem,
    tie_break: TieBreakVerdict | Inconclusive | None = None,
) -> AdmissionDecision:
    """Decide on a candidate by its effect.

    Args:
        score: The effect over all probes.
        spec: Says what to do with ties and with inconclusive candidates.
        tie_break: The tie-break judge's verdict, if the sum is zero and the judge was asked.
    """
    outcome, reason, explanation = _outcome(score, spec=spec, tie_break=tie_break)
    return AdmissionDecision(outcome=outcome, reason=reason, explanation=explanation, method=METHOD)


def redecide(log: CounterfactualLog, *, spec: ConMem) -> tuple[Cmte, AdmissionDecision | None]:
    """Score and decide a stored case under another spec, with no model call.

    Returns:
        The score, and the decision. The decision is `None` if the new settings lead to a tie and
        the log has no verdict of a tie-break judge.

    Raises:
        ValueError: If the candidate was refused, or the spec needs verdicts that the log lacks.
    """
    if log.score is None:
        msg = "the candidate was refused before any model call: there is no evidence to score"
        raise ValueError(msg)
    score = rescore(log.trials, spec=spec)
    # A new tie needs a verdict that was never asked for, and no default may stand in for it.
    if score.ruling == "tie" and spec.zero == "tie_break" and log.tie_break is None:
        return score, None
    return score, decide_on_effect(score, spec=spec, tie_break=log.tie_break)


def _outcome(
    score: Cmte, *, spec: ConMem, tie_break: TieBreakVerdict | Inconclusive | None
) -> tuple[Outcome, ReasonCode, str]:
    explanation = explain_score(score)
    if score.ruling == "positive":
        return "admit", "positive_effect", explanation
    if score.ruling == "negative":
        return "reject", "negative_effect", explanation
    if score.ruling == "tie" and spec.zero != "tie_break":
        return spec.zero, "zero_effect", f"{explanation}; an effect of zero is set to {spec.zero}"
    if score.ruling == "tie" and isinstance(tie_break, TieBreakVerdict):
        outcome: Outcome = "admit" if tie_break.store else "reject"
        return outcome, "tie_break", f"{explanation}; tie-break: {tie_break.reason or outcome}"
    if score.ruling == "inconclusive":
        explanation = f"not judged: {explanation}; {_explain_cause(score)}"
    else:
        failure = f": {tie_break.reason}" if isinstance(tie_break, Inconclusive) else ""
        explanation = f"{explanation}; the tie-break judge gave no usable answer{failure}"
    return INCONCLUSIVE_OUTCOMES[spec.on_inconclusive], "inconclusive", explanation


def _explain_cause(score: Cmte) -> str:
    """What is missing, and why that matters."""
    names = "; ".join(
        f"{probe.role}: {', '.join(name.replace('_', ' ') for name in probe.missing)}"
        for probe in score.probes
        if probe.missing
    )
    if score.cause == "no_usable_probe":
        return f"no probe is usable (missing: {names})"
    return (
        f"what is missing ({names}) could change the ruling: the sum is between "
        f"{score.lowest or 0.0:+.2f} and {score.highest or 0.0:+.2f}"
    )


def explain_score(score: Cmte) -> str:
    """`CMTE +0.50 (relevant +1.00, irrelevant +0.00, risk +0.50)`."""
    parts = ", ".join(f"{probe.role} {_signed(probe)}" for probe in score.probes)
    mean = "without a value" if score.cmte is None else f"{score.cmte:+.2f}"
    return f"CMTE {mean} ({parts})"


def _signed(probe: ProbeScore) -> str:
    if "invalid_probe" in probe.flags:
        return "without a valid probe"
    if probe.contribution is None:
        return "inconclusive"
    return f"{probe.contribution:+.2f}"


def explain_evidence(
    trials: tuple[ProbeTrial, ...],
    *,
    score: Cmte,
    tie_break: TieBreakVerdict | Inconclusive | None = None,
) -> str:
    """Describe the evidence in words for the reason classifier, without weights and numbers.

    The paper shows the classifier an admission explanation, which only a tie-break produces. So
    the explanation is built from the probes here.
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
    request = names[trial.role]
    if "invalid_probe" in probe.flags:
        return f"{request}, no valid test was found."
    if probe.contribution is None:
        return f"{request}, nothing could be concluded."
    clauses: list[str] = []
    if isinstance(trial.attribution, AttributionVerdict):
        used = "was used" if trial.attribution.used else "was not used"
        changed = "changed" if trial.attribution.changed else "did not change"
        clauses.append(f"it {used} and {changed} the answer; this was {probe.label}")
        if trial.attribution.reason:
            clauses.append(trial.attribution.reason)
    if isinstance(trial.quality, QualityVerdict):
        better = {
            "treatment": "the answer with the memory was better",
            "control": "the answer without the memory was better",
            "tie": "neither answer was better",
        }
        clauses.append(better[trial.quality.preference])
    return f"{request}: {'; '.join(clauses)}."


def with_reason(decision: AdmissionDecision, reason: ReasonVerdict) -> AdmissionDecision:
    """The same decision with the reason in its explanation; outcome and code do not change."""
    # A candidate in quarantine has no verdict yet, so no reason of rejection either.
    if decision.outcome != "reject":
        return decision
    detail = f": {reason.explanation}" if reason.explanation else ""
    explanation = f"{decision.explanation}; {reason.reason_type}{detail}"
    return decision.model_copy(update={"explanation": explanation})


def canonical_reason(word: str) -> str:
    """A reason in the spelling of the closed list; an unknown one is returned in lower case."""
    plain = word.strip().casefold().replace("-", "_").replace(" ", "_")
    return _REASON_SPELLINGS.get(plain, plain)
