"""The figures of an admission test: AUC, contamination and recall."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memguard.calibration.rules import Proportion, area_under_curve


@dataclass(frozen=True, kw_only=True)
class AdmissionFigures:
    """The quality of what a threshold admits."""

    contamination: Proportion
    """Wrong claims among the admitted claims."""
    recall: Proportion
    """Admitted claims among the correct claims."""


def auc(scores: Sequence[float], labels: Sequence[bool]) -> float | None:
    """Area under the ROC curve; `None` if all claims are correct or all are wrong."""
    right = [score for score, label in zip(scores, labels, strict=True) if label]
    wrong = [score for score, label in zip(scores, labels, strict=True) if not label]
    return area_under_curve(right, wrong) if right and wrong else None


def admission(scores: Sequence[float], labels: Sequence[bool], *, tau: float) -> AdmissionFigures:
    """Contamination and recall if scores from `tau` on are admitted."""
    admitted = [score >= tau for score in scores]
    correct = sum(a and label for a, label in zip(admitted, labels, strict=True))
    return AdmissionFigures(
        contamination=Proportion(count=sum(admitted) - correct, total=sum(admitted)),
        recall=Proportion(count=correct, total=sum(labels)),
    )


def platt(logits: NDArray[np.float64], labels: NDArray[np.bool_]) -> tuple[float, float]:
    """Fit slope and offset of `1 / (1 + exp(-(slope * logit + offset)))`, both classes alike.

    J. Platt, "Probabilistic outputs for support vector machines", 1999; by Newton's method.

    Args:
        logits: Shape (N,).
        labels: Whether each claim is correct, shape (N,); both values must occur.
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
        # A ridge, so that perfectly separated classes still have a solution.
        step = np.linalg.solve(hessian + 1e-9 * np.eye(2), gradient)
        slope, offset = slope - step[0], offset - step[1]
        if np.abs(step).max() < 1e-9:
            break
    return float(slope), float(offset)
