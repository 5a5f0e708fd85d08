"""The figures of a measurement as tables for people, and as plain values for programs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from memguard.bench.verifier.figures import Admission, Share, admission, auc
from memguard.bench.verifier.measure import EvaluationSet, Judged

Rows = list[tuple[str, ...]]
_TAUS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One set and what every judge made of it."""

    chosen: EvaluationSet
    """The set."""
    judged: Sequence[Judged]
    """The verifier first."""

    @property
    def name(self) -> str:
        """The set's name with its language."""
        return f"{self.chosen.name} ({self.chosen.language})"


JUDGE_COLUMNS = ("set", "claims", "judge", "AUC", "contamination", "recall", "admitted from")


def judge_rows(measured: Sequence[Measured]) -> Rows:
    """AUC, contamination and recall of every judge on every set."""
    return [
        (
            each.name,
            str(len(one.claims)),
            one.judge,
            f"{auc(one.scores, one.labels) or 0:.3f}",
            *_shares(admission(one.scores, one.labels, tau=one.tau)),
            _threshold(one),
        )
        for each in measured
        for one in each.judged
    ]


def _shares(figures: Admission) -> tuple[str, str]:
    return str(figures.contamination), str(figures.recall)


def _threshold(one: Judged) -> str:
    if one.own_tau:
        return f"{one.tau:.2f}" + (f", {one.unusable} unusable" if one.unusable else "")
    return "the verifier's recall" if min(one.scores) < max(one.scores) else "everything"


def kind_rows(measured: Sequence[Measured]) -> Rows:
    """Share of wrong claims that the verifier admits, by what was changed, a column per set."""
    kinds = sorted({claim.kind for each in measured for _, claim in each.chosen.claims})
    return [
        (kind, *(_passed(_admitted_of(each.judged[0], kind)) for each in measured))
        for kind in kinds
        if kind != "correct"
    ]


def _passed(passed: Share) -> str:
    return f"{passed} of {passed.total}" if passed.total else "-"


def _admitted_of(one: Judged, kind: str) -> Share:
    own = [s for s, claim in zip(one.scores, one.claims, strict=True) if claim.kind == kind]
    return Share(hits=sum(score >= one.tau for score in own), total=len(own))


def threshold_rows(measured: Sequence[Measured]) -> Rows:
    """Contamination and recall of the verifier as its threshold moves, a column per set."""
    rows: Rows = []
    for tau in _TAUS:
        cells: list[str] = []
        for each in measured:
            own = each.judged[0]
            figures = admission(own.scores, own.labels, tau=tau)
            shares = (figures.contamination.value, figures.recall.value)
            cells.append(" / ".join("-" if s is None else f"{100 * s:.0f}" for s in shares))
        rows.append((f"{tau:.2f}", *cells))
    return rows


def cpu_line(measured: Sequence[Measured]) -> str:
    """CPU time of a pair whose turns are cached."""
    times = [1000 * seconds for each in measured for seconds in each.judged[0].cpu]
    return (
        f"CPU per pair, turns cached: median {np.median(times):.1f} ms, "
        f"95th percentile {np.quantile(times, 0.95):.1f} ms, one thread"
    )


def as_values(measured: Sequence[Measured]) -> list[dict[str, Any]]:
    """The same for programs."""
    return [
        {
            "set": each.chosen.name,
            "language": each.chosen.language,
            "judge": one.judge,
            "claims": len(one.claims),
            "unusable": one.unusable,
            "auc": auc(one.scores, one.labels),
            "tau": one.tau,
            **_share_values(admission(one.scores, one.labels, tau=one.tau)),
            "admitted_by_kind": {
                kind: _share_value(_admitted_of(one, kind))
                for kind in sorted({claim.kind for claim in one.claims} - {"correct"})
            },
            "cpu_ms_median": 1000 * float(np.median(one.cpu)) if one.cpu else None,
        }
        for each in measured
        for one in each.judged
    ]


def _share_values(figures: Admission) -> dict[str, Any]:
    return {
        "contamination": _share_value(figures.contamination),
        "recall": _share_value(figures.recall),
    }


def _share_value(share: Share) -> dict[str, Any]:
    return {"value": share.value, "of": share.total, "interval": share.interval}
