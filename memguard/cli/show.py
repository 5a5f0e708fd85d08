"""One receipt, as a page for a person."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memguard.schema.receipt import MethodReport, Receipt


def print_receipt(
    receipt: "Receipt", *, history: tuple[Any, ...] = (), committed: bool = True
) -> None:
    """The candidate, its source, each method's numbers and ruling, and what it cost.

    Args:
        receipt: The record of one decision.
        history: What happened to it since.
        committed: Whether the decision was carried out; `check` only says what it would be.
    """
    from rich.text import Text

    from memguard.cli.output import OUTCOME_STYLES, console

    out = console()
    said = receipt.outcome if committed else receipt.decision.outcome
    style = OUTCOME_STYLES[receipt.outcome]
    out.print(Text(f"{said}: {receipt.candidate.text}", style=f"bold {style}"))
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
        f"  model calls {usage.calls} (attempts {usage.attempts}), tokens read "
        f"{usage.prompt_tokens}, written {usage.completion_tokens}, waited {usage.latency:.1f} s"
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
    if report.method == "conmem":
        from memguard.cli.show_case import print_case

        print_case(report)
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
