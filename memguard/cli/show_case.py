"""Print the counterfactual log of one case."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

    from memguard.methods.conmem.log import (
        AttributionVerdict,
        CounterfactualLog,
        ProbeScore,
        ProbeTrial,
        QualityVerdict,
        Response,
    )
    from memguard.schema.receipt import MethodReport
    from memguard.schema.verdict import Inconclusive


def print_case(report: "MethodReport") -> None:
    """Print the probes, both answers side by side, the verdicts, and the effect."""
    from memguard.cli.output import console
    from memguard.methods.conmem.log import CounterfactualLog

    log = CounterfactualLog.model_validate(report.evidence)
    # A refused candidate has a log without a score.
    scores = {probe.role: probe for probe in log.score.probes} if log.score else {}
    out = console()
    for trial in log.trials:
        _print_trial(trial, scores.get(trial.role))
    if log.score is not None:
        mean = "no value" if log.score.cmte is None else f"{log.score.cmte:+.3f}"
        out.print(
            f"  CMTE {mean}, sum {log.score.total:+.2f} over {log.score.n_valid} valid probes: "
            f"{log.score.ruling}"
        )
    for line in _case_lines(log):
        out.print(f"  {line}")


def _print_trial(trial: "ProbeTrial", score: "ProbeScore | None") -> None:
    from rich.table import Table
    from rich.text import Text

    from memguard.cli.output import console

    out = console()
    contribution = "" if score is None else f"  {_contribution(score)}"
    out.print(Text(f"\n  {trial.role}{contribution}", style="bold"))
    out.print(f"    {trial.query or '(no request)'}")
    if trial.failure is not None:
        out.print(f"    no verdict on the probe: {trial.failure.reason} {trial.failure.detail}")
    if not trial.valid:
        out.print(f"    not valid: {trial.validation}")
    if trial.control is not None or trial.treatment is not None:
        table = Table(show_edge=False, pad_edge=False, padding=(0, 2), expand=True)
        table.add_column("without the memory", ratio=1, overflow="fold")
        table.add_column("with the memory", ratio=1, overflow="fold")
        table.add_row(_answer(trial.control), _answer(trial.treatment))
        out.print(_indented(table))
    if trial.quality is not None:
        out.print(f"    judge: {_quality(trial.quality)}")
    if trial.attribution is not None:
        out.print(f"    auditor: {_attribution(trial.attribution)}")
    if score is not None and score.flags:
        out.print(f"    flagged: {', '.join(score.flags)}")


def _contribution(score: "ProbeScore") -> str:
    if score.contribution is None:
        return "inconclusive"
    words = " ".join(word for word in (score.effect, score.label) if word)
    return f"{score.contribution:+.2f}" + (f"  ({words})" if words else "")


def _answer(answer: "Response | Inconclusive | None") -> str:
    from memguard.methods.conmem.log import Response

    if answer is None:
        return "(not asked)"
    if not isinstance(answer, Response):
        return f"({answer.reason}: {answer.detail})"
    return answer.text + (" (cut off)" if answer.cut_off else "")


def _quality(verdict: "QualityVerdict | Inconclusive") -> str:
    from memguard.schema.verdict import Inconclusive

    if isinstance(verdict, Inconclusive):
        return f"{verdict.reason} {verdict.detail}"
    preferred = {
        "control": "better without the memory",
        "treatment": "better with the memory",
        "tie": "neither is better",
    }[verdict.preference]
    return (
        f"{preferred} (answered {verdict.letter}; A was the {verdict.shown_as_a}): {verdict.reason}"
    )


def _attribution(verdict: "AttributionVerdict | Inconclusive") -> str:
    from memguard.schema.verdict import Inconclusive

    if isinstance(verdict, Inconclusive):
        return f"{verdict.reason} {verdict.detail}"
    used = "used" if verdict.used else "not used"
    changed = "changed the answer" if verdict.changed else "changed nothing"
    return f"{verdict.label}; {used}, {changed}: {verdict.reason}"


def _case_lines(log: "CounterfactualLog") -> list[str]:
    from memguard.methods.conmem.log import ReasonVerdict, TieBreakVerdict

    lines: list[str] = []
    if isinstance(log.tie_break, TieBreakVerdict):
        decision = "store" if log.tie_break.store else "do not store"
        lines.append(f"tie-break: {decision}: {log.tie_break.reason}")
    elif log.tie_break is not None:
        lines.append(f"tie-break: {log.tie_break.reason} {log.tie_break.detail}")
    if isinstance(log.reason, ReasonVerdict):
        confidence = log.reason.confidence
        certainty = "" if confidence is None else f", confidence {confidence:.2f}"
        detail = f": {log.reason.explanation}" if log.reason.explanation else ""
        lines.append(f"reason: {log.reason.reason_type}{certainty}{detail}")
    elif log.reason is not None:
        lines.append(f"reason: {log.reason.reason} {log.reason.detail}")
    counted = {name.replace("_", " "): n for name, n in log.repairs.model_dump().items() if n}
    if counted:
        lines.append("repaired: " + ", ".join(f"{name} {n}" for name, n in counted.items()))
    if log.calls:
        calls = ", ".join(f"{stage} {usage.calls}" for stage, usage in log.calls.items())
        lines.append(f"calls: {calls}")
    return lines


def _indented(table: "RenderableType") -> "RenderableType":
    from rich.padding import Padding

    return Padding(table, (0, 0, 0, 4))
