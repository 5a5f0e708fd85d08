"""From support scores to a decision: mean, threshold, early stop, inconclusive rule. Pure.

ConsistencyGate, arXiv 2607.22962, section 4: a candidate is admitted when the mean of K support
scores reaches a threshold. All comparisons are made on exact fractions, so that neither the order
of the samples nor binary rounding can change a decision.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from memguard.schema.decision import (
    INCONCLUSIVE_OUTCOMES,
    AdmissionDecision,
    Inconclusive,
    OnInconclusive,
    Outcome,
    SupportSample,
)

METHOD = "consistency_gate"

TOLERANCE = 1e-9
"""Slack of the comparison with the threshold: three samples of 0.7 pass tau = 0.7."""

SupportRuling = Literal["supported", "low_support", "inconclusive"]
"""The result of the scores, before the setting for inconclusive ones is applied."""


@dataclass(frozen=True, kw_only=True)
class SupportScore:
    """The scores of one candidate, combined."""

    ruling: SupportRuling
    """The result."""
    mean: float | None
    """Mean of the usable samples, in [0, 1]; `None` without any."""
    tau: float
    """The threshold that was applied."""
    usable: int
    """Number of samples with a score."""
    k: int
    """Number of samples requested."""


def score_of(answer: SupportSample | Inconclusive) -> float | None:
    """The score, or `None` if the judge gave no usable answer."""
    return None if isinstance(answer, Inconclusive) else answer.score


def passes_threshold(mean: float | None, *, tau: float) -> bool:
    """Whether a mean reaches `tau`; `None` and NaN never do."""
    if mean is None or math.isnan(mean):
        return False
    return Fraction(mean) >= _exact_threshold(tau)


def adaptive_threshold(occupancy: int, *, tau_min: float, tau_max: float, capacity: int) -> float:
    """The threshold of a namespace that holds `occupancy` records.

    `tau_min + (tau_max - tau_min) * min(1, occupancy / capacity)`, arXiv 2607.22962, section 4.3.
    The fuller the namespace, the stricter the gate; nothing is evicted.

    Args:
        occupancy: Records in the namespace, not negative.
        tau_min: The threshold at 0 records.
        tau_max: The threshold from `capacity` records on.
        capacity: Records at which the namespace counts as full, above 0.

    Returns:
        A threshold between `tau_min` and `tau_max`, never falling as occupancy grows.
    """
    share = min(1.0, occupancy / capacity)
    # `min`, because rounding may put the sum a little above `tau_max`.
    return min(tau_max, tau_min + (tau_max - tau_min) * share)


# Half is ours; the paper has no rule for samples without a score.
def enough_usable(usable: int, *, k: int) -> bool:
    """Whether at least half of K samples have a score; with fewer, nothing can be concluded."""
    return usable > 0 and 2 * usable >= k


def rule_on_support(scores: Sequence[float | None], *, k: int, tau: float) -> SupportScore:
    """Combine the samples of one candidate.

    Args:
        scores: One entry per sample used: a score in [0, 1], or `None` if the judge gave no
            usable answer. NaN counts as unusable.
        k: Number of samples requested; `scores` is shorter when sampling stopped early.
        tau: The threshold.

    Returns:
        The ruling with its mean and counts. Fewer than half of `k` usable is inconclusive.
    """
    usable = _usable(scores)
    mean = _exact_sum(usable) / len(usable) if usable else None
    if mean is None or not enough_usable(len(usable), k=k):
        ruling: SupportRuling = "inconclusive"
    elif mean >= _exact_threshold(tau):
        ruling = "supported"
    else:
        ruling = "low_support"
    return SupportScore(
        ruling=ruling,
        mean=None if mean is None else float(mean),
        tau=tau,
        usable=len(usable),
        k=k,
    )


def is_settled(scores: Sequence[float | None], *, remaining: int, k: int, tau: float) -> bool:
    """Whether the remaining samples cannot change the ruling, whatever they turn out to be.

    Exact, not statistical: each remaining sample may be any score in [0, 1] or unusable. Never
    true before half of K samples are usable, so stopping early never hides an inconclusive case.

    Args:
        scores: Samples so far, `None` where unusable.
        remaining: Samples still to come.
        k: Number of samples requested.
        tau: The threshold.
    """
    usable = _usable(scores)
    if not enough_usable(len(usable), k=k):
        return False
    total, count, threshold = _exact_sum(usable), len(usable) + remaining, _exact_threshold(tau)
    # The mean is lowest when every remaining sample is 0, highest when every one is 1.
    return total / count >= threshold or (total + remaining) / count < threshold


def _usable(scores: Sequence[float | None]) -> list[float]:
    return [score for score in scores if score is not None and not math.isnan(score)]


def _exact_sum(scores: Sequence[float]) -> Fraction:
    return sum(map(Fraction, scores), Fraction(0))


def _exact_threshold(tau: float) -> Fraction:
    # 0.7 as a double is a little above or below 0.7, and so is a mean of such scores.
    return Fraction(tau) - Fraction(TOLERANCE)


def decide_on_support(
    score: SupportScore,
    *,
    on_inconclusive: OnInconclusive,
    why: str,
    used: int,
    doubt: str = "",
) -> AdmissionDecision:
    """Turn a support score into a decision.

    Args:
        score: The combined samples.
        on_inconclusive: The outcome for a candidate that could not be judged.
        why: A judge's reason for its score, or the reasons why samples were not usable.
        used: Number of samples drawn; fewer than `score.k` after an early stop.
        doubt: What kind of doubt a judge has that had no failure; it begins the explanation.
    """
    outcomes: dict[SupportRuling, Outcome] = {
        "supported": "admit",
        "low_support": "reject",
        "inconclusive": INCONCLUSIVE_OUTCOMES[on_inconclusive],
    }
    return AdmissionDecision(
        outcome=outcomes[score.ruling],
        reason=score.ruling,
        # Counts of samples would explain nothing here: there is one, with a score.
        explanation=f"{doubt}: {why}" if doubt else _explain(score, why, used=used),
        method=METHOD,
    )


def _explain(score: SupportScore, why: str, *, used: int) -> str:
    samples = f"{used} of {score.k} samples" if used < score.k else _plural(score.k)
    if score.ruling == "inconclusive" or score.mean is None:
        text = f"not judged: {score.usable} of {_plural(score.k)} usable"
    else:
        sign = "<" if score.ruling == "low_support" else ">="
        text = f"support {score.mean:.2f} {sign} {score.tau:.2f} over {samples}"
    return f"{text}: {why}" if why else text


def _plural(count: int) -> str:
    return f"{count} sample" if count == 1 else f"{count} samples"
