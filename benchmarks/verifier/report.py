"""The figures of a measurement as table rows for people and as JSON values for programs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.verifier.figures import AdmissionFigures, admission, auc
from benchmarks.verifier.measure import EvaluationSet, JudgeScores
from memguard.calibration.rules import Proportion

TableRows = list[tuple[str, ...]]
# Thresholds of the table that shows how contamination and recall trade off.
_TAUS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True, kw_only=True)
class SetMeasurement:
    """One set with the scores of every judge."""

    evaluation_set: EvaluationSet
    """The set."""
    judges: Sequence[JudgeScores]
    """The scores of each judge, the verifier's first."""

    @property
    def name(self) -> str:
        """The set's name with its language."""
        return f"{self.evaluation_set.name} ({self.evaluation_set.language})"


JUDGE_COLUMNS = ("set", "claims", "judge", "AUC", "contamination", "recall", "admitted from")


def judge_rows(measured: Sequence[SetMeasurement]) -> TableRows:
    """TableRows of `JUDGE_COLUMNS`, one per set and judge."""
    return [
        (
            row.name,
            str(len(judge.claims)),
            judge.judge,
            f"{auc(judge.scores, judge.labels) or 0:.3f}",
            *_shares(admission(judge.scores, judge.labels, tau=judge.tau)),
            _threshold(judge),
        )
        for row in measured
        for judge in row.judges
    ]


def _shares(figures: AdmissionFigures) -> tuple[str, str]:
    return str(figures.contamination), str(figures.recall)


def _threshold(judge: JudgeScores) -> str:
    if judge.has_own_tau:
        return f"{judge.tau:.2f}" + (f", {judge.unusable} unusable" if judge.unusable else "")
    # With one score for all claims, any threshold admits all of them or none.
    return "the verifier's recall" if min(judge.scores) < max(judge.scores) else "everything"


def kind_rows(measured: Sequence[SetMeasurement]) -> TableRows:
    """Share of wrong claims that the verifier admits: a row per kind, a column per set."""
    kinds = sorted({claim.kind for row in measured for _, claim in row.evaluation_set.claims})
    return [
        (kind, *(_with_total(_admitted_of(row.judges[0], kind)) for row in measured))
        for kind in kinds
        if kind != "correct"
    ]


def _with_total(proportion: Proportion) -> str:
    return f"{proportion} of {proportion.total}" if proportion.total else "-"


def _admitted_of(judge: JudgeScores, kind: str) -> Proportion:
    matching = [
        s for s, claim in zip(judge.scores, judge.claims, strict=True) if claim.kind == kind
    ]
    return Proportion(count=sum(score >= judge.tau for score in matching), total=len(matching))


def threshold_rows(measured: Sequence[SetMeasurement]) -> TableRows:
    """Contamination and recall of the verifier: a row per threshold, a column per set."""
    rows: TableRows = []
    for tau in _TAUS:
        cells: list[str] = []
        for row in measured:
            verifier = row.judges[0]
            figures = admission(verifier.scores, verifier.labels, tau=tau)
            shares = (figures.contamination.value, figures.recall.value)
            cells.append(" / ".join("-" if s is None else f"{100 * s:.0f}" for s in shares))
        rows.append((f"{tau:.2f}", *cells))
    return rows


def cpu_line(measured: Sequence[SetMeasurement]) -> str:
    """One line about the verifier's CPU time for a claim whose turns are cached."""
    times = [1000 * seconds for row in measured for seconds in row.judges[0].cpu]
    return (
        f"CPU per pair, turns cached: median {np.median(times):.1f} ms, "
        f"95th percentile {np.quantile(times, 0.95):.1f} ms, one thread"
    )


def as_values(measured: Sequence[SetMeasurement]) -> list[dict[str, Any]]:
    """The same figures as JSON values, one object per set and judge."""
    return [
        {
            "set": row.evaluation_set.name,
            "language": row.evaluation_set.language,
            "judge": judge.judge,
            "claims": len(judge.claims),
            "unusable": judge.unusable,
            "auc": auc(judge.scores, judge.labels),
            "tau": judge.tau,
            **_figure_values(admission(judge.scores, judge.labels, tau=judge.tau)),
            "admitted_by_kind": {
                kind: _proportion_value(_admitted_of(judge, kind))
                for kind in sorted({claim.kind for claim in judge.claims} - {"correct"})
            },
            "cpu_ms_median": 1000 * float(np.median(judge.cpu)) if judge.cpu else None,
        }
        for row in measured
        for judge in row.judges
    ]


def _figure_values(figures: AdmissionFigures) -> dict[str, Any]:
    return {
        "contamination": _proportion_value(figures.contamination),
        "recall": _proportion_value(figures.recall),
    }


def _proportion_value(proportion: Proportion) -> dict[str, Any]:
    ends = proportion.interval
    interval = (ends.low, ends.high) if ends else None
    return {"value": proportion.value, "of": proportion.total, "interval": interval}
