"""From a support ruling to an admission decision, with the sentence that says why."""

from typing import assert_never

from memguard.policy.support import SupportScore
from memguard.schema.decision import AdmissionDecision, OnInconclusive, Outcome, ReasonCode

METHOD = "consistency_gate"

INCONCLUSIVE_OUTCOMES: dict[OnInconclusive, Outcome] = {
    "quarantine": "quarantine",
    "reject": "reject",
    "admit": "admit",
    # The method raises; until the error is seen, nothing may be stored.
    "raise": "quarantine",
}
"""What an inconclusive candidate becomes, by setting."""


def decide_on_support(
    score: SupportScore,
    *,
    on_inconclusive: OnInconclusive,
    why: str,
    used: int,
    too_close: bool = False,
) -> AdmissionDecision:
    """Make a decision of a support score.

    Args:
        score: The ruling on the samples.
        on_inconclusive: What becomes of a candidate that could not be judged.
        why: A judge's words for its score, or the reasons why samples were not usable.
        used: Samples asked in the end; fewer than `score.asked` after an early stop.
        too_close: Whether there is a score that only lies where it decides nothing.
    """
    outcome, reason = _outcome(score, on_inconclusive=on_inconclusive)
    return AdmissionDecision(
        outcome=outcome,
        reason=reason,
        explanation=f"too close to call: {why}" if too_close else _explain(score, why, used=used),
        method=METHOD,
    )


def _outcome(score: SupportScore, *, on_inconclusive: OnInconclusive) -> tuple[Outcome, ReasonCode]:
    match score.ruling:
        case "supported":
            return "admit", "supported"
        case "low_support":
            return "reject", "low_support"
        case "inconclusive":
            return INCONCLUSIVE_OUTCOMES[on_inconclusive], "inconclusive"
        case _:
            assert_never(score.ruling)


def _explain(score: SupportScore, why: str, *, used: int) -> str:
    samples = f"{used} of {score.asked} samples" if used < score.asked else _plural(score.asked)
    if score.ruling == "inconclusive" or score.mean is None:
        text = f"not judged: {score.usable} of {_plural(score.asked)} usable"
    else:
        sign = "<" if score.ruling == "low_support" else ">="
        text = f"support {score.mean:.2f} {sign} {score.tau:.2f} over {samples}"
    return f"{text}: {why}" if why else text


def _plural(count: int) -> str:
    return f"{count} sample" if count == 1 else f"{count} samples"
