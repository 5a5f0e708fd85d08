"""`memguard demo`: a conversation, planted errors, and a request with and without a guard."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memguard.cli.opening import open_store, pick_model
from memguard.cli.options import BaseUrlOption, EmbedOption, JsonOption, ModelOption
from memguard.cli.output import (
    OUTCOME_STYLES,
    console,
    counts_line,
    print_json,
    total_counts,
)

if TYPE_CHECKING:
    from memguard.llm.models import Model
    from memguard.schema.memory import Lifecycle
    from memguard.schema.read import ReadReport
    from memguard.schema.receipt import Receipt
    from memguard.stores import ChromaStore
    from memguard.write.report import WriteReport

_NAMESPACE = ("memories", "demo")
_RECALLED = 6
"""Memories that both sides recall; the read guard recalls safety constraints in addition."""
_SHORT = {
    "APPLY_CONSTRAINT": "constraint",
    "PERSONALIZE": "preference",
    "MENTION_VIEW": "view",
    "CONTEXT": "context",
    "CONTEXT_UNCERTAIN": "uncertain",
}
"""A word for each permission of what is in the prompt."""
# The dinner is on 14 March 2026. The clock's date would turn it into the past.
_NOW = datetime(2026, 3, 3, 9, tzinfo=UTC)
_WIDE = 100
"""Columns of a terminal from which the verdicts of two judges fit on a line with the source."""
_INDENT = 12
"""Columns before a text: its outcome."""
_WITHOUT_MODEL = """\
No language model is set, so everything runs on this machine, without a key.
The writer copies sentences. The judge quarantines what it doubts, true or not.
With a model: make demo MODEL=openai:NAME [BASE_URL=http://localhost:11434/v1]
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

    It needs no key and no network. It writes the conversation, offers planted errors to the judge,
    and shows what one request gets from memory with and without a guard. With a model, that model
    writes, judges and answers, and the verdicts of the local judge are printed next to its own.
    """
    import tempfile

    # Not deleted at the end: the commands that the demo suggests read it.
    folder = store or tempfile.mkdtemp(prefix="memguard-demo-")
    judge = pick_model(model, base_url=base_url)
    with open_store(folder, embed=embed) as opened:
        reports = _run(
            file or demo_conversation(), judge=judge, store=opened, with_planted=file is None
        )
        comparison, later = None, None
        if file is None:
            comparison = _compare(reports, judge=judge, store=opened, embed=embed)
            # After the request: the dinner is over by then.
            later = _correct(judge=judge, store=opened)
    if as_json:
        request = {} if comparison is None else {"request": comparison.to_json()}
        print_json({**reports, **request, **({} if later is None else {"later": later.report})})
        return
    _show(reports, comparison, later, folder=folder, is_local=judge == "local")


def demo_conversation() -> Path:
    """The conversation that ships with memguard."""
    return Path(__file__).with_name("demo.json")


def _run(
    file: Path, *, judge: "Model | str", store: "ChromaStore", with_planted: bool
) -> "dict[str, WriteReport]":
    """Write the conversation, then offer the planted candidates to every judge."""
    from memguard.conversations import load_conversation
    from memguard.journal.journal import Journal
    from memguard.write.graph import create_write_guard

    def create_guard(model: Any, **storage: Any) -> Any:
        # If the model fails half-way, the demo still shows what was decided before.
        return create_write_guard(model, namespace=_NAMESPACE, on_failure="report", **storage)

    parts = load_conversation(file)
    written = [create_guard(judge, store=store).invoke({"conversation": part}) for part in parts]
    reports = {f"session {n}": part["writes"] for n, part in enumerate(written, start=1)}
    if not with_planted:
        return reports
    planted = [{key: entry[key] for key in ("text", "turn_ids")} for entry in _shipped("planted")]
    offered = {"conversation": parts[0], "candidates": planted}
    reports["planted"] = create_guard(judge, store=store).invoke(offered)["writes"]
    if judge != "local":
        from langgraph.store.memory import InMemoryStore

        # Only for comparison: what the local judge admits is stored in memory, not in the demo's
        # store.
        local = create_guard("local", store=InMemoryStore(), receipts=Journal.memory())
        reports["planted, local judge"] = local.invoke(offered)["writes"]
    return reports


@dataclass(frozen=True, kw_only=True)
class _Corrections:
    """What a later conversation changed."""

    report: "WriteReport"
    texts: dict[str, str]
    """The memories that it changed, by key."""


def _correct(*, judge: "Model | str", store: "ChromaStore") -> _Corrections:
    """Write a later conversation, in which some of what was said before has changed."""
    from memguard.conversations import read_conversation
    from memguard.write.graph import create_write_guard

    talk = _shipped("later")
    conversation = read_conversation(talk["messages"], conversation_id=talk["id"])
    guard = create_write_guard(judge, store=store, namespace=_NAMESPACE, on_failure="report")
    report = guard.invoke({"conversation": conversation})["writes"]
    keys = [change.key for receipt in report.receipts for change in receipt.changes]
    items = {key: store.get(_NAMESPACE, key) for key in keys}
    texts = {key: item.value["content"] for key, item in items.items() if item is not None}
    return _Corrections(report=report, texts=texts)


def _shipped(key: str) -> Any:
    import json

    return json.loads(demo_conversation().read_text(encoding="utf-8"))[key]


@dataclass(frozen=True, kw_only=True)
class _Comparison:
    """What one request gets from memory, with and without a guard."""

    query: str
    without: tuple[str, ...]
    """The nearest of all candidates, as a memory that stores them all recalls them."""
    read: "ReadReport"
    """The guarded read."""
    section: str
    """The section of the guarded read."""
    answers: tuple[str, str] | None
    """A model's answers without and with a guard; `None` without a model."""

    @property
    def admitted(self) -> tuple[tuple[str, str], ...]:
        """What the guard lets into the prompt: text, and permission in one word."""
        verdicts = self.read.ledger.shown if self.read.ledger else ()
        return tuple((verdict.unit.text, _SHORT[verdict.permission]) for verdict in verdicts)

    def to_json(self) -> dict[str, Any]:
        """The comparison for programs."""
        answers = dict(zip(("without", "with"), self.answers, strict=True)) if self.answers else {}
        return {
            "query": self.query,
            "without": list(self.without),
            "with": self.read,
            "answers": answers,
        }


def _compare(
    reports: "dict[str, WriteReport]",
    *,
    judge: "Model | str",
    store: "ChromaStore",
    embed: str | None,
) -> _Comparison:
    from memguard.read.graph import create_read_guard
    from memguard.schema.read import Recall

    query = _shipped("request")["query"]
    guard = create_read_guard(
        judge,
        store=store,
        namespace=_NAMESPACE,
        recall=Recall(k=_RECALLED),
        clock=lambda: _NOW,
    )
    output = guard.invoke({"query": query})
    names = [name for name in reports if not name.endswith("local judge")]
    candidates = [r.candidate.text for name in names for r in reports[name].receipts]
    without = _nearest(list(dict.fromkeys(candidates)), query=query, embed=embed)
    section = output["memory_context"]
    return _Comparison(
        query=query,
        without=without,
        read=output["read"],
        section=section,
        answers=None if isinstance(judge, str) else _answers(judge, query, without, section),
    )


def _nearest(texts: Sequence[str], *, query: str, embed: str | None) -> tuple[str, ...]:
    """What a memory without a guard recalls: it stores everything, and ranks by similarity."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder, open_store(folder, embed=embed) as opened:
        for number, text in enumerate(texts):
            opened.put(("unguarded",), str(number), {"content": text}, index=["content"])
        items = opened.search(("unguarded",), query=query, limit=_RECALLED)
        return tuple(item.value["content"] for item in items)


def _answers(model: "Model", query: str, without: Sequence[str], section: str) -> tuple[str, str]:
    """The model's answers to the request without and with a guard."""
    from langchain_core.messages import HumanMessage, SystemMessage

    from memguard.llm.call import TEMPERATURE_ZERO, request
    from memguard.llm.limits import Meter
    from memguard.portal import run_sync
    from memguard.schema.receipt import Budget

    async def answer(memory: str) -> str:
        system = f"Answer in at most 60 words.\n\n{memory}"
        messages = [SystemMessage(system), HumanMessage(query)]
        reply = await request(
            model, messages, settings=TEMPERATURE_ZERO, meter=Meter(Budget()), name="demo"
        )
        if reply.failure is not None:
            return f"(no answer: {reply.failure.detail})"
        return reply.messages[0].text

    listed = "\n".join(f"- {text}" for text in without)
    unguarded = f"What is remembered about the user:\n{listed}"
    return run_sync(answer(unguarded)), run_sync(answer(section))


def _show(
    reports: "dict[str, WriteReport]",
    comparison: _Comparison | None,
    later: _Corrections | None,
    *,
    folder: str,
    is_local: bool,
) -> None:
    out = console()
    if is_local:
        out.print(_WITHOUT_MODEL)
    sessions = [report for name, report in reports.items() if name.startswith("session")]
    _show_written([receipt for report in sessions for receipt in report.receipts])
    if "planted" in reports:
        _show_mail(reports)
        _show_planted(reports)
    for failure in (failure for report in reports.values() for failure in report.failures):
        out.print(f"not done: {failure.step}: {failure.message}")
    if comparison is not None:
        _show_comparison(comparison, reports)
    stored = [report for name, report in reports.items() if not name.endswith("local judge")]
    if later is not None:
        _show_corrections(later)
        stored.append(later.report)
    out.print(f"\nIn all: {counts_line(total_counts(stored))}.")
    out.print("Nothing is lost: what is in quarantine can be released, and what was rejected or")
    out.print("replaced stays on its receipt. Try:")
    for command in ("search 'What may Ines not eat?' --user demo", "quarantine list"):
        # A path that is broken over two lines cannot be copied.
        out.print(f"  memguard {command} --store {folder}", soft_wrap=True)


def _show_written(receipts: "Sequence[Receipt]") -> None:
    console().print("1. The conversation", style="bold")
    for receipt in receipts:
        _print_outcome(receipt)


def _print_outcome(receipt: "Receipt") -> None:
    detail = "" if receipt.outcome == "stored" else receipt.decision.explanation
    style = OUTCOME_STYLES[receipt.outcome]
    _print_row(receipt.outcome, receipt.candidate.text, detail=detail, style=style)


def _print_row(label: str, text: str, *, detail: str, style: str) -> None:
    from rich.table import Table
    from rich.text import Text

    # A grid, because it continues a long text below the text and not below the label.
    row = Table.grid()
    row.add_column(width=_INDENT)
    row.add_column()
    # On one line, even if a writer took several lines of a mail for one statement.
    cell = Text(" ".join(text.split()))
    if detail:
        cell.append(f"  {detail}", "dim")
    row.add_row(Text(label, style=style), cell)
    console().print(row)


def _show_mail(reports: "dict[str, WriteReport]") -> None:
    turn = _shipped("mail")
    receipts = [r for r in reports["session 1"].receipts if turn in r.candidate.turn_ids]
    stored = sum(_is_stored(receipt) for receipt in receipts)
    console().print(
        f"(Of the pasted mail in turn {turn}: {len(receipts)} candidates, {stored} stored.)"
    )


def _show_planted(reports: "dict[str, WriteReport]") -> None:
    planted: list[dict[str, Any]] = _shipped("planted")
    true = [entry for entry in planted if entry["kind"] == "true"]
    subjects = [entry for entry in planted if entry["kind"] == "subject"]
    others = [entry for entry in planted if entry not in (*true, *subjects)]
    out = console()
    receipts = _by_text(reports["planted"])
    for entries, title in (
        (true, "\n2. Planted candidates, which all look right. Two are true."),
        (subjects, "Ten have the wrong person."),
        (others, "Ten are wrong in another way."),
    ):
        stored = sum(_is_stored(receipts.get(entry["text"])) for entry in entries)
        count = "Stored" if entries is true else "Stored although wrong"
        out.print(f"{title} {count}: {stored} of {len(entries)}.", style="bold")
        _show_group(entries, reports=reports)


def _is_stored(receipt: "Receipt | None") -> bool:
    return receipt is not None and receipt.outcome in {"stored", "duplicate"}


def _show_group(entries: Sequence[dict[str, Any]], *, reports: "dict[str, WriteReport]") -> None:
    from rich.table import Table
    from rich.text import Text

    out = console()
    receipts = _by_text(reports["planted"])
    local = _by_text(reports["planted, local judge"]) if "planted, local judge" in reports else {}
    # A second judge leaves a narrow terminal no room for the source.
    has_source = not local or out.width >= _WIDE
    table = Table(box=None, padding=(0, 1, 0, 0), show_header=bool(local))
    table.add_column("judge", width=_INDENT - 1)
    if local:
        table.add_column("local judge", width=_INDENT - 1)
    table.add_column("candidate")
    if has_source:
        table.add_column("what was said", style="dim")
    for entry in entries:
        receipt = receipts.get(entry["text"])
        # The run may have failed before this candidate was judged.
        if receipt is None:
            continue
        outcomes = [receipt.outcome]
        if local:
            outcomes.append(local[entry["text"]].outcome)
        cells = [Text(outcome, style=OUTCOME_STYLES[outcome]) for outcome in outcomes]
        source = [Text(entry["said"])] if has_source else []
        table.add_row(*cells, Text(entry["text"]), *source)
    out.print(table)


def _by_text(report: "WriteReport") -> "dict[str, Receipt]":
    return {receipt.candidate.text: receipt for receipt in report.receipts}


def _show_comparison(comparison: _Comparison, reports: "dict[str, WriteReport]") -> None:
    from rich.table import Table
    from rich.text import Text

    out = console()
    out.print("\n3. One request, without and with a guard", style="bold")
    out.print(comparison.query)
    names = [name for name in reports if not name.endswith("local judge")]
    stored = {r.candidate.text for n in names for r in reports[n].receipts if _is_stored(r)}
    table = Table(box=None, padding=(0, 2, 0, 0), expand=True)
    table.add_column("in the prompt without a guard", ratio=1)
    table.add_column("in the prompt with it", ratio=1)
    without, guarded = Table.grid(padding=(0, 1, 0, 0)), Table.grid(padding=(0, 1, 0, 0))
    for text in comparison.without:
        mark = "x" if _is_wrong(text) else " " if text in stored else "?"
        without.add_row(Text(mark, style="bold red"), Text(text))
    for text, permission in comparison.admitted:
        mark = "x" if _is_wrong(text) else " "
        guarded.add_row(Text(mark, style="bold red"), Text(text).append(f" {permission}", "dim"))
    table.add_row(without, guarded)
    if comparison.answers:
        table.add_row("", "")
        table.add_row(*(Text(answer) for answer in comparison.answers))
    out.print(table)
    out.print("x: wrong. ?: not stored by the write guard.", style="dim")
    _show_needs(comparison)


def _show_corrections(later: _Corrections) -> None:
    """What a later conversation stores, and what became of the memories that it replaces."""
    out = console()
    out.print("\n4. Seven weeks later", style="bold")
    for receipt in later.report.receipts:
        _print_outcome(receipt)
        for change in receipt.changes:
            _print_change(later.texts[change.key], change.after)
    out.print("What was replaced is kept and marked. Recall leaves it out.", style="dim")


def _print_change(text: str, lifecycle: "Lifecycle") -> None:
    """What became of a memory that was stored before."""
    if lifecycle.is_current:
        label, detail = "still there", "in conflict" if lifecycle.conflicts_with else "said again"
    else:
        until = lifecycle.valid_until
        label, detail = "replaced", f"held until {until.date()}" if until is not None else ""
    _print_row(label, text, detail=detail, style="cyan")


def _is_wrong(text: str) -> bool:
    planted = [entry["text"] for entry in _shipped("planted") if entry["kind"] != "true"]
    # And sentences of the conversation that were corrected later, or are not the user's.
    # Without the full stop, because a unit of a memory may lack it.
    parts = (*(part.rstrip(".") for part in planted), *_shipped("request")["wrong"])
    return any(part in text for part in parts)


def _show_needs(comparison: _Comparison) -> None:
    """Which facts the answer needs, and how many wrong ones it gets, on both sides."""
    out = console()
    sides = {
        "without": comparison.without,
        "with": tuple(text for text, _ in comparison.admitted),
    }
    for name, texts in sides.items():
        right = [text for text in texts if not _is_wrong(text)]
        missing = [
            need["what"]
            for need in _shipped("request")["needs"]
            if not any(all(word in text for word in need["words"]) for text in right)
        ]
        count = len(texts) - len(right)
        out.print(f"{name + ':':<9}{count} wrong; missing: {', '.join(missing) or 'nothing'}.")
