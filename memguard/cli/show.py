"""One receipt, as a page for a person."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memguard.schema.receipt import MethodReport, Receipt


def print_receipt(receipt: "Receipt", *, history: tuple[Any, ...] = ()) -> None:
    """The candidate, its source, each method's numbers and ruling, and what it cost."""
    from rich.text import Text

    from memguard.cli.output import OUTCOME_STYLES, console

    out = console()
    outcome = {"admit": "stored", "quarantine": "quarantined", "reject": "rejected"}
    style = OUTCOME_STYLES[outcome[receipt.decision.outcome]]
    out.print(Text(f"{receipt.decision.outcome}: {receipt.candidate.text}", style=f"bold {style}"))
    out.print(f"  {receipt.decision.explanation}")
    out.print(
        f"  receipt {receipt.id}, {receipt.at:%Y-%m-%d %H:%M} UTC, reason {receipt.decision.reason}"
    )
    candidate = receipt.candidate
    said_at = f" on {candidate.said_at:%Y-%m-%d}" if candidate.said_at else ""
    turns = ", ".join(candidate.turn_ids) or "not named"
    out.print(f"  said by {candidate.said_by}{said_at}, turns {turns}")
    if receipt.namespace:
        out.print(f"  namespace {' / '.join(receipt.namespace)}")
    for report in receipt.reports:
        _print_report(report)
    usage = receipt.usage
    out.print(
        f"  {usage.calls} calls ({usage.attempts} attempts), {usage.prompt_tokens} tokens read, "
        f"{usage.completion_tokens} written, {usage.latency:.1f} s of waiting"
    )
    for event in history:
        out.print(f"  {event.at:%Y-%m-%d %H:%M:%S} {event.kind} by {event.actor}")


def _print_report(report: "MethodReport") -> None:
    from memguard.cli.output import console

    out = console()
    settings = ", ".join(f"{name} {value}" for name, value in report.models.items())
    out.print(
        f"\n{report.method}: {report.decision.explanation}" + (f" ({settings})" * bool(settings))
    )
    samples: Any = report.evidence.get("samples") or []
    for number, sample in enumerate(samples, start=1):
        if "score" in sample:
            turns = ", ".join(sample.get("turns") or [])
            where = f"  [turns {turns}]" if turns else ""
            out.print(f"  sample {number}: {sample['score']:.2f}  {sample['reason']}{where}")
        else:
            out.print(f"  sample {number}: {sample['inconclusive']}  {sample['detail']}")
    if report.context:
        out.print("  source:")
    for turn in report.context:
        who = turn.speaker or turn.role
        out.print(f"    [{turn.id}] {who}: {turn.content}")
    for prompt in report.prompts:
        out.print(f"  prompt {prompt.name} version {prompt.version} ({prompt.digest})")
    for note in report.notes:
        out.print(f"  note: {note}")
