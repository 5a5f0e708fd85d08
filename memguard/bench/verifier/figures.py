"""The figures of an admission test: AUC, contamination, recall, with intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_Z = 1.959964


@dataclass(frozen=True, kw_only=True)
class Share:
    """A proportion with its Wilson interval; undefined when there was nothing to count."""

    hits: int
    """How many."""
    total: int
    """Out of how many."""

    @property
    def value(self) -> float | None:
        """The proportion."""
        return self.hits / self.total if self.total else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % Wilson interval (E. B. Wilson, 1927)."""
        if not self.total:
            return None
        n, p, z = self.total, self.hits / self.total, _Z
        centre = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        return max(0.0, centre - half), min(1.0, centre + half)

    def __str__(self) -> str:
        if self.value is None or self.interval is None:
            return "-"
        low, high = self.interval
        return f"{100 * self.value:.1f} % [{100 * low:.0f}-{100 * high:.0f}]"


@dataclass(frozen=True, kw_only=True)
class Admission:
    """What a threshold lets in."""

    contamination: Share
    """Wrong claims among the admitted."""
    recall: Share
    """Admitted among the correct."""


def auc(scores: Sequence[float], labels: Sequence[bool]) -> float | None:
    """Chance that a correct claim scores above a wrong one; ties count half."""
    values, truth = np.asarray(scores, dtype=float), np.asarray(labels, dtype=bool)
    positives, negatives = int(truth.sum()), int((~truth).sum())
    if not positives or not negatives:
        return None
    ranks = _ranks(values)
    return float((ranks[truth].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return ((ends - counts + 1 + ends) / 2.0)[inverse]


def admission(scores: Sequence[float], labels: Sequence[bool], *, tau: float) -> Admission:
    """What is admitted at a threshold."""
    admitted = [score >= tau for score in scores]
    good = sum(a and label for a, label in zip(admitted, labels, strict=True))
    return Admission(
        contamination=Share(hits=sum(admitted) - good, total=sum(admitted)),
        recall=Share(hits=good, total=sum(labels)),
    )


def platt(logits: NDArray[np.float64], labels: NDArray[np.bool_]) -> tuple[float, float]:
    """Slope and offset of `1 / (1 + exp(-(slope * logit + offset)))`, classes weighted alike.

    J. Platt, "Probabilistic outputs for support vector machines", 1999; by Newton's method.
    """
    slope, offset = 1.0, 0.0
    weight = np.where(labels, 0.5 / labels.sum(), 0.5 / (~labels).sum())
    for _ in range(50):
        p = 1.0 / (1.0 + np.exp(-(slope * logits + offset)))
        error, curve = weight * (p - labels), weight * p * (1 - p) + 1e-12
        gradient = np.array([(error * logits).sum(), error.sum()])
        hessian = np.array(
            [
                [(curve * logits**2).sum(), (curve * logits).sum()],
                [(curve * logits).sum(), curve.sum()],
            ]
        )
        step = np.linalg.solve(hessian + 1e-9 * np.eye(2), gradient)
        slope, offset = slope - step[0], offset - step[1]
        if np.abs(step).max() < 1e-9:
            break
    return float(slope), float(offset)
