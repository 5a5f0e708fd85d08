"""From the counts of a binary admission to accuracy, balanced accuracy and macro-F1. Pure.

With them the figures of the paper (arXiv 2610.33432, tables 1, 4 and 7) can be recomputed from its
counts. Positive is "store".
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Confusion:
    """Counts of a binary decision against its gold label."""

    tp: int
    """To be stored, and admitted."""
    fn: int
    """To be stored, and not admitted."""
    tn: int
    """Not to be stored, and not admitted."""
    fp: int
    """Not to be stored, and admitted."""

    @property
    def count(self) -> int:
        """All cases."""
        return self.tp + self.fn + self.tn + self.fp

    @property
    def accuracy(self) -> float:
        """The share that is right, in [0, 1]."""
        return (self.tp + self.tn) / self.count

    @property
    def recalls(self) -> tuple[float, float]:
        """Of what was to be stored, and of what was not; 0 where there is none."""
        return _share(self.tp, self.tp + self.fn), _share(self.tn, self.tn + self.fp)

    @property
    def balanced_accuracy(self) -> float:
        """The mean of both recalls: what a constant answer cannot raise above one half."""
        return sum(self.recalls) / 2

    @property
    def macro_f1(self) -> float:
        """The mean of the F1 of both classes."""
        store = _share(2 * self.tp, 2 * self.tp + self.fp + self.fn)
        skip = _share(2 * self.tn, 2 * self.tn + self.fp + self.fn)
        return (store + skip) / 2


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
