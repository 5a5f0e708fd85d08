"""Accuracy, balanced accuracy and macro-F1 from the counts of a binary admission. Pure.

These are the metrics of the ConMem paper (arXiv 2610.33432, tables 1, 4 and 7), which can be
recomputed from its counts. The positive class is "store".
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Confusion:
    """Counts of decisions by gold label."""

    tp: int
    """True positives: to be stored, and admitted."""
    fn: int
    """False negatives: to be stored, and not admitted."""
    tn: int
    """True negatives: not to be stored, and not admitted."""
    fp: int
    """False positives: not to be stored, and admitted."""

    @property
    def count(self) -> int:
        """Number of cases."""
        return self.tp + self.fn + self.tn + self.fp

    @property
    def accuracy(self) -> float:
        """The share of correct decisions, in [0, 1]."""
        return (self.tp + self.tn) / self.count

    @property
    def recalls(self) -> tuple[float, float]:
        """Recall of both classes, "store" first, in [0, 1]; 0 for a class without cases."""
        return _share(self.tp, self.tp + self.fn), _share(self.tn, self.tn + self.fp)

    @property
    def balanced_accuracy(self) -> float:
        """The mean of both recalls, in [0, 1]."""
        # Unlike accuracy, it is one half for a constant answer, however many cases a class has.
        return sum(self.recalls) / 2

    @property
    def macro_f1(self) -> float:
        """The mean F1 of both classes, in [0, 1]."""
        store = _share(2 * self.tp, 2 * self.tp + self.fp + self.fn)
        skip = _share(2 * self.tn, 2 * self.tn + self.fp + self.fn)
        return (store + skip) / 2


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
