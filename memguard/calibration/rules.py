"""How well a judge's scores separate supported memories from changed ones. Pure.

The inputs are the scores of supported memories, and those of changed memories, in which one detail
is wrong. An inconclusive answer has no score; the caller counts it and must not pass it as 0.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memguard.methods.consistency_gate.rules import passes_threshold

Z_95 = 1.959963984540054
"""Two-sided 95 % point of the normal distribution."""

TARGET = 0.1
"""Default of the target contamination, the share of changed memories among the admitted ones."""

GRID = tuple(step / 10 for step in range(1, 10))
"""Thresholds of a curve, in addition to the one in force and the suggested one."""

# Enough halvings of [0, 1] to exhaust the precision of a float.
_HALVINGS = 60
_MAX_DIGITS = 12
_CHANCE = 0.5


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A 95 % confidence interval."""

    low: float
    """Its lower end."""
    high: float
    """Its upper end."""


@dataclass(frozen=True, kw_only=True)
class Proportion:
    """A count out of a total, with Wilson's interval."""

    count: int
    """The numerator."""
    total: int
    """The denominator."""

    @property
    def value(self) -> float | None:
        """The proportion in [0, 1]; `None` if the total is 0."""
        return self.count / self.total if self.total else None

    @property
    def interval(self) -> Interval | None:
        """The interval of the true proportion; `None` if the total is 0."""
        return wilson(self.count, self.total)

    def __str__(self) -> str:
        if self.value is None or self.interval is None:
            return "-"
        low, high = self.interval.low, self.interval.high
        # The interval without decimals: samples are small, and more digits would be noise.
        return f"{100 * self.value:.1f} % [{100 * low:.0f}-{100 * high:.0f}]"


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """The memories that one threshold admits."""

    tau: float
    """The threshold; it admits scores greater than or equal to it."""
    recall: Proportion
    """Admitted memories among the supported ones."""
    contamination: Proportion
    """Changed memories among the admitted ones."""


@dataclass(frozen=True, kw_only=True)
class JudgeCalibration:
    """A judge's figures on labelled memories."""

    auc: float
    """Probability that a supported memory scores above a changed one; 0.5 is guessing."""
    interval: Interval
    """The interval of the AUC."""
    now: CurvePoint
    """The result of the threshold in use."""
    suggested: CurvePoint | None
    """The threshold with the highest recall that meets the target; `None` if none meets it."""
    target: float
    """Maximum contamination."""
    changed: int
    """Number of changed memories with a score."""
    curve: tuple[CurvePoint, ...]
    """One point per threshold, in ascending order."""

    @property
    def is_chance(self) -> bool:
        """Whether the interval of the AUC includes guessing."""
        return self.interval.low <= _CHANCE

    @property
    def admits_nothing(self) -> bool:
        """Whether the threshold in use admits no memory."""
        return self.now.contamination.total == 0

    @property
    def admits_everything(self) -> bool:
        """Whether the threshold in use admits every memory."""
        return self.now.contamination.total == self.now.recall.total + self.changed


def calibrate_scores(
    supported: Sequence[float], changed: Sequence[float], *, tau: float, target: float = TARGET
) -> JudgeCalibration | None:
    """Compute a judge's figures from its scores.

    Args:
        supported: Scores of memories that their source supports.
        changed: Scores of memories with one detail changed.
        tau: The threshold in use.
        target: Maximum contamination of a suggested threshold.

    Returns:
        The figures, or `None` if one side has no scores.
    """
    if not supported or not changed:
        return None
    auc = area_under_curve(supported, changed)
    suggested = suggest_threshold(supported, changed, target=target)
    thresholds = {*GRID, tau, *([] if suggested is None else [suggested])}
    return JudgeCalibration(
        auc=auc,
        interval=auc_interval(auc, supported=len(supported), changed=len(changed)),
        now=at_threshold(supported, changed, tau=tau),
        suggested=None if suggested is None else at_threshold(supported, changed, tau=suggested),
        target=target,
        curve=tuple(at_threshold(supported, changed, tau=value) for value in sorted(thresholds)),
        changed=len(changed),
    )


def area_under_curve(supported: Sequence[float], changed: Sequence[float]) -> float:
    """The share of (supported, changed) pairs in the right order; a tie counts half.

    The Mann-Whitney statistic over the number of pairs (Hanley and McNeil 1982,
    https://doi.org/10.1148/radiology.143.1.7063747).

    Raises:
        ValueError: If a side is empty.
    """
    if not supported or not changed:
        msg = "the area under the curve needs scores of both sides"
        raise ValueError(msg)
    ranked = sorted(changed)
    # Twice the count, in whole numbers: halves of large counts stay exact.
    doubled = sum(bisect_left(ranked, score) + bisect_right(ranked, score) for score in supported)
    return doubled / (2 * len(supported) * len(changed))


def auc_interval(auc: float, *, supported: int, changed: int) -> Interval:
    """The 95 % score interval of an AUC, which keeps its width at 0 and 1.

    Newcombe 2006, method 5 (https://doi.org/10.1002/sim.2324): solve |AUC - a| = z sqrt(V(a)),
    with the variance of Hanley and McNeil at the mean of the two sample sizes.

    Args:
        auc: The measured area.
        supported: Number of supported memories.
        changed: Number of changed memories.
    """
    freedom = (supported + changed) / 2 - 1

    def variance(a: float) -> float:
        pairs = 1 + freedom * (1 - a) / (2 - a) + freedom * a / (1 + a)
        return a * (1 - a) * pairs / (supported * changed)

    def low(measured: float) -> float:
        return _root(lambda a: measured - a - Z_95 * math.sqrt(variance(a)), end=measured)

    # The variance is the same at a and at 1 - a, so the upper end is the mirrored lower one.
    return Interval(low=low(auc), high=1 - low(1 - auc))


def wilson(count: int, total: int) -> Interval | None:
    """Wilson's 95 % interval for a proportion (1927, https://doi.org/10.2307/2276774).

    Args:
        count: The numerator of the proportion.
        total: Its denominator.

    Returns:
        The interval, or `None` if the total is 0.
    """
    if total == 0:
        return None
    share, square = count / total, Z_95 * Z_95
    center = share + square / (2 * total)
    margin = Z_95 * math.sqrt(share * (1 - share) / total + square / (4 * total * total))
    scale = 1 + square / total
    # At the ends the formula gives 0 and 1, except for rounding.
    low = 0.0 if count == 0 else (center - margin) / scale
    high = 1.0 if count == total else (center + margin) / scale
    return Interval(low=max(0.0, low), high=min(1.0, high))


def at_threshold(supported: Sequence[float], changed: Sequence[float], *, tau: float) -> CurvePoint:
    """Recall and contamination of a threshold."""
    # The gate's own comparison, so that the figures hold for the gate also at the threshold itself.
    correct = sum(passes_threshold(score, tau=tau) for score in supported)
    wrong = sum(passes_threshold(score, tau=tau) for score in changed)
    return CurvePoint(
        tau=tau,
        recall=Proportion(count=correct, total=len(supported)),
        contamination=Proportion(count=wrong, total=correct + wrong),
    )


def suggest_threshold(
    supported: Sequence[float], changed: Sequence[float], *, target: float
) -> float | None:
    """The threshold with the highest recall whose contamination is at most the target, or `None`.

    It is rounded and about midway between two scores, so that it does not depend on a single score.

    Args:
        supported: Scores of supported memories.
        changed: Scores of changed memories.
        target: Maximum contamination.
    """
    scores = sorted({*supported, *changed})
    points = [(at_threshold(supported, changed, tau=score), i) for i, score in enumerate(scores)]
    # Only scores need a trial: between two of them, the admitted memories are the same.
    admissible = [
        (point, i)
        for point, i in points
        if point.recall.count and (point.contamination.value or 0.0) <= target
    ]
    if not admissible:
        return None
    # Of thresholds with the same recall, the highest admits the fewest wrong memories.
    best, i = max(admissible, key=lambda item: (item[0].recall.count, item[0].tau))
    return best.tau if i == 0 else _between(scores[i - 1], best.tau)


def _between(low: float, high: float) -> float:
    """A number with few digits that admits `high` but not `low`, near their middle."""
    for digits in range(2, _MAX_DIGITS):
        rounded = round((low + high) / 2, digits)
        if passes_threshold(high, tau=rounded) and not passes_threshold(low, tau=rounded):
            return rounded
    # The scores are too close for a number between them.
    return high


def _root(falling: Callable[[float], float], *, end: float) -> float:
    """The zero of a decreasing function on [0, end], by bisection."""
    low, high = 0.0, end
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return (low + high) / 2
