"""`memguard demo`: the main job on a small conversation of our own, in a store of its own."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memguard.cli.options import BaseUrlOption, EmbedOption, JsonOption, ModelOption

if TYPE_CHECKING:
    from memguard.schema.receipt import Receipt
    from memguard.schema.write import WriteReport

_INDENT = 39
_PLAIN = """\
No language model is set: all of this is done on this machine, with no key.
The local writer picks what a user states, word for word; it cannot reword.
The local judge is weaker than a strong model. It holds what it doubts, misses
details swapped within one turn, and knows English only. With a model:
  make demo MODEL=openai:NAME [BASE_URL=http://localhost:11434/v1]
"""


def demo(
    file: Annotated[
        Path | None, typer.Option("--file", help="A conversation of your own.", dir_okay=False)
    ] = None,
    store: Annotated[
        str | None, typer.Option("--store", help="Where to store; a new folder if left out.")
    ] = None,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    embed: EmbedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the main job: read a conversation, store what it supports, say why.

    Needs nothing. With a model set, that model writes and judges, and the local judge's verdicts
    stand beside its own.
    """
    import tempfile

    from memguard.cli.opening import open_store, pick_model

    folder = store or tempfile.mkdtemp(prefix="memguard-demo-")
    judge = pick_model(model, base_url=base_url)
    with open_store(folder, embed=embed) as opened:
        reports = _run(file or demo_conversation(), judge=judge, store=opened, own=file is None)
    if as_json:
        from memguard.cli.output import print_json

        print_json({name: report.model_dump(mode="json") for name, report in reports.items()})
        return
    _show(reports, folder=folder, local=judge == "local")


def demo_conversation() -> Path:
    """The conversation that ships with memguard."""
    return Path(__file__).with_name("demo.json")


def _run(file: Path, *, judge: Any, store: Any, own: bool) -> "dict[str, WriteReport]":
    """Write the conversation; then offer the planted candidates, to each judge there is."""
    from memguard.conversations import load_conversation
    from memguard.guard import create_write_guard
    from memguard.journal.journal import Journal

    def guard_of(model: Any, **where: Any) -> Any:
        return create_write_guard(
            model, namespace=("memories", "demo"), on_failure="report", **where
        )

    parts = load_conversation(file)
    written = [guard_of(judge, store=store).invoke({"conversation": part}) for part in parts]
    reports = {f"session {n}": part["writes"] for n, part in enumerate(written, start=1)}
    if not own:
        return reports
    planted = [{key: one[key] for key in ("text", "turn_ids")} for one in _planted()]
    offered = {"conversation": parts[0], "candidates": planted}
    reports["planted"] = guard_of(judge, store=store).invoke(offered)["writes"]
    if judge != "local":
        from langgraph.store.memory import InMemoryStore

        # Beside the model's verdicts, what the local judge says; nothing of it is kept.
        aside = guard_of("local", store=InMemoryStore(), receipts=Journal.memory())
        reports["planted, local judge"] = aside.invoke(offered)["writes"]
    return reports


def _planted() -> list[dict[str, Any]]:
    import json

    return json.loads(demo_conversation().read_text(encoding="utf-8"))["planted"]


def _show(reports: "dict[str, WriteReport]", *, folder: str, local: bool) -> None:
    from memguard.cli.output import console, counts_line, print_decisions

    out = console()
    if local:
        out.print(_PLAIN)
    sessions = [report for name, report in reports.items() if name.startswith("session")]
    receipts = [receipt for report in sessions for receipt in report.receipts]
    print_decisions(receipts, title="1. What the conversation gave")
    if "planted" in reports:
        _show_planted(reports)
    counts: dict[Any, int] = {}
    for report in reports.values():
        for outcome, count in report.counts.items():
            counts[outcome] = counts.get(outcome, 0) + count
        for failure in report.failures:
            out.print(f"not done: {failure.step}: {failure.message}")
    out.print(f"\nIn all: {counts_line(counts)}. Nothing is lost: what was held can be released,")
    out.print("what was rejected stays on its receipt. Look around:")
    for words in (
        "search 'What may Ines not eat?' --user demo",
        "quarantine list",
        "receipts list",
    ):
        out.print(f"  memguard {words} --store {folder}")


def _show_planted(reports: "dict[str, WriteReport]") -> None:
    from rich.text import Text

    from memguard.cli.output import OUTCOME_STYLES, console

    out = console()
    aside = reports.get("planted, local judge")
    title = "\n2. What we planted: memories that look right. Two are true, ten are wrong"
    out.print(Text(title, style="bold"))
    others = _by_text(aside.receipts) if aside else {}
    found = _by_text(reports["planted"].receipts)
    fooled: list[str] = []
    for one in _planted():
        receipt = found.get(one["text"])
        if receipt is None:
            continue
        if receipt.outcome == "stored" and one["want"] == "reject":
            fooled.append(one["text"])
        line = Text(f"{receipt.outcome:<12}", style=OUTCOME_STYLES[receipt.outcome])
        line.append(f"{one['kind']:<27}", style="dim").append(one["text"], style="default")
        out.print(line)
        _print_below(receipt.decision.explanation)
        other = others.get(one["text"])
        if other is not None:
            _print_below(f"local judge: {other.outcome}, {other.decision.explanation}")
    out.print(f"Stored in spite of being wrong: {len(fooled)} of ten.")
    for text in fooled:
        out.print(f"  {text!r} got past the judge: that is what a better model is for.")


def _print_below(text: str) -> None:
    """A reason, dim, under the text that it is about."""
    from rich.padding import Padding
    from rich.text import Text

    from memguard.cli.output import console

    console().print(Padding(Text(text, style="dim"), (0, 0, 0, _INDENT)))


def _by_text(receipts: "Sequence[Receipt]") -> "dict[str, Receipt]":
    return {receipt.candidate.text: receipt for receipt in receipts}
