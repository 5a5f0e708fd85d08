"""`memguard demo`: write a small example conversation into a temporary store."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memguard.cli.opening import open_store, pick_model
from memguard.cli.options import BaseUrlOption, EmbedOption, JsonOption, ModelOption
from memguard.cli.output import (
    OUTCOME_STYLES,
    console,
    counts_line,
    print_decisions,
    print_indented,
    print_json,
    total_counts,
)

if TYPE_CHECKING:
    from memguard.schema.receipt import Receipt
    from memguard.write.report import WriteReport

_INDENT = 39
"""Columns before the text of a planted memory: its outcome and its kind."""
_WITHOUT_MODEL = """\
No language model is set, so everything runs on this machine, without a key.
The local writer copies what a user states, word for word; it cannot rephrase.
The local judge is weaker than a strong model. It quarantines what it doubts,
misses details swapped within one turn, and knows English only. With a model:
  make demo MODEL=openai:NAME [BASE_URL=http://localhost:11434/v1]
"""


def demo(
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", help="File with a conversation to use instead of the example.", dir_okay=False
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option("--store", help="Folder to store in; a new temporary one by default."),
    ] = None,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    embed: EmbedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run memguard on a small example conversation.

    It needs no key and no network. With a model, that model writes and judges, and the verdicts
    of the local judge are printed next to its own.
    """
    import tempfile

    # Not deleted at the end: the commands that the demo suggests read it.
    folder = store or tempfile.mkdtemp(prefix="memguard-demo-")
    judge = pick_model(model, base_url=base_url)
    with open_store(folder, embed=embed) as opened:
        reports = _run(
            file or demo_conversation(), judge=judge, store=opened, with_planted=file is None
        )
    if as_json:
        print_json(reports)
        return
    _show(reports, folder=folder, local=judge == "local")


def demo_conversation() -> Path:
    """The conversation that ships with memguard."""
    return Path(__file__).with_name("demo.json")


def _run(file: Path, *, judge: Any, store: Any, with_planted: bool) -> "dict[str, WriteReport]":
    """Write the conversation, then offer the planted candidates to every judge."""
    from memguard.conversations import load_conversation
    from memguard.journal.journal import Journal
    from memguard.write.graph import create_write_guard

    def create_guard(model: Any, **storage: Any) -> Any:
        # If the model fails half-way, the demo still shows what was decided before.
        return create_write_guard(
            model, namespace=("memories", "demo"), on_failure="report", **storage
        )

    parts = load_conversation(file)
    written = [create_guard(judge, store=store).invoke({"conversation": part}) for part in parts]
    reports = {f"session {n}": part["writes"] for n, part in enumerate(written, start=1)}
    if not with_planted:
        return reports
    planted = [{key: entry[key] for key in ("text", "turn_ids")} for entry in _planted()]
    offered = {"conversation": parts[0], "candidates": planted}
    reports["planted"] = create_guard(judge, store=store).invoke(offered)["writes"]
    if judge != "local":
        from langgraph.store.memory import InMemoryStore

        # Only for comparison: what the local judge admits is stored in memory, not in the demo's
        # store.
        local = create_guard("local", store=InMemoryStore(), receipts=Journal.memory())
        reports["planted, local judge"] = local.invoke(offered)["writes"]
    return reports


def _planted() -> list[dict[str, Any]]:
    import json

    return json.loads(demo_conversation().read_text(encoding="utf-8"))["planted"]


def _show(reports: "dict[str, WriteReport]", *, folder: str, local: bool) -> None:
    out = console()
    if local:
        out.print(_WITHOUT_MODEL)
    sessions = [report for name, report in reports.items() if name.startswith("session")]
    receipts = [receipt for report in sessions for receipt in report.receipts]
    print_decisions(receipts, title="1. Candidates from the conversation")
    if "planted" in reports:
        _show_planted(reports)
    for failure in (failure for report in reports.values() for failure in report.failures):
        out.print(f"not done: {failure.step}: {failure.message}")
    counts = counts_line(total_counts(reports.values()))
    out.print(f"\nIn all: {counts}. Nothing is lost: what is in quarantine can be released,")
    out.print("and what was rejected stays on its receipt. Try:")
    for command in (
        "search 'What may Ines not eat?' --user demo",
        "quarantine list",
        "receipts list",
    ):
        out.print(f"  memguard {command} --store {folder}")


def _show_planted(reports: "dict[str, WriteReport]") -> None:
    from rich.text import Text

    out = console()
    local = reports.get("planted, local judge")
    title = "\n2. Planted candidates, which all look right: two are true, ten are wrong"
    out.print(title, style="bold")
    local_receipts = _by_text(local.receipts) if local else {}
    receipts = _by_text(reports["planted"].receipts)
    wrongly_stored: list[str] = []
    for entry in _planted():
        text = entry["text"]
        receipt = receipts.get(text)
        # The run may have failed before this candidate was judged.
        if receipt is None:
            continue
        if receipt.outcome == "stored" and entry["want"] == "reject":
            wrongly_stored.append(text)
        line = Text(f"{receipt.outcome:<12}", style=OUTCOME_STYLES[receipt.outcome])
        line.append(f"{entry['kind']:<27}", style="dim").append(text, style="default")
        out.print(line)
        print_indented(receipt.decision.explanation, columns=_INDENT, style="dim")
        if text in local_receipts:
            other = local_receipts[text]
            comparison = f"local judge: {other.outcome}, {other.decision.explanation}"
            print_indented(comparison, columns=_INDENT, style="dim")
    out.print(f"Stored although wrong: {len(wrongly_stored)} of ten.")
    for text in wrongly_stored:
        out.print(f"  {text!r} passed the judge; a better model may reject it.")


def _by_text(receipts: "Sequence[Receipt]") -> "dict[str, Receipt]":
    return {receipt.candidate.text: receipt for receipt in receipts}
