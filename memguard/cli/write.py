"""`memguard write FILE`: store the memories that a conversation supports."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memguard.cli import options
from memguard.cli.opening import create_journal, open_store, pick_model
from memguard.cli.options import namespace_of, template_of
from memguard.cli.output import (
    RUN_FAILED,
    console,
    counts_line,
    error_body,
    exit_code,
    print_decisions,
    print_json,
    total_counts,
)
from memguard.errors import MemguardError

if TYPE_CHECKING:
    from memguard.schema.memory import Conversation
    from memguard.schema.receipt import Usage
    from memguard.write.gates import GateGraph
    from memguard.write.report import WriteReport

_MAX_PRINTED = 40
"""Decisions printed in full after a write."""


def write(
    file: Annotated[
        Path, typer.Argument(help="JSON or JSONL of messages, or a LoCoMo file.", dir_okay=False)
    ],
    store: options.StoreOption = "memory",
    model: options.ModelOption = None,
    base_url: options.BaseUrlOption = None,
    embed: options.EmbedOption = None,
    user: options.UserOption = None,
    namespace: options.NamespaceOption = None,
    conversation: options.ConversationOption = None,
    gate: options.GateOption = None,
    preset: options.PresetOption = None,
    sessions: Annotated[int, typer.Option(min=1, help="Sessions worked on at once.")] = 4,
    as_json: options.JsonOption = False,
) -> None:
    """Remember what a conversation supports.

    Stop it with ctrl-C at any time: the same command continues where it stopped, and repeats no
    model call.
    """
    import asyncio

    from memguard.conversations import load_conversation
    from memguard.presets import choose_gates
    from memguard.write.graph import create_write_guard
    from memguard.write.report import first_error

    parts = load_conversation(file, name=conversation)
    gates = choose_gates(gate or ["consistency"], presets=preset or ())
    labels = namespace_of(user, namespace)
    # File, gates and model are checked first: a mistake in them must not create a store.
    judge = pick_model(model, base_url=base_url)
    with open_store(store, embed=embed) as opened, create_journal(store) as journal:
        guard = create_write_guard(
            judge,
            store=opened,
            namespace=template_of(labels),
            gates=gates,
            receipts=journal,
            # One session that fails must not hide the reports of the others.
            on_failure="report",
        )
        # One loop for all sessions, in which they wait for the model together.
        reports = asyncio.run(_write_all(guard, parts, at_once=sessions, quiet=as_json))
    error = first_error([failure for report in reports for failure in report.failures])
    if as_json:
        _print_as_json(reports, error=error)
        return
    _print(reports, store=store)
    if error is not None:
        raise error
    if _is_unfinished(reports):
        raise typer.Exit(RUN_FAILED)


async def _write_all(
    guard: "GateGraph", parts: Sequence["Conversation"], *, at_once: int, quiet: bool
) -> list["WriteReport"]:
    import asyncio

    from memguard.cli.progress import WriteProgress
    from memguard.methods.writer import readable_turns
    from memguard.methods.writer.config import Writer

    reports: dict[int, WriteReport] = {}
    queue = iter(enumerate(parts))
    turns = sum(len(readable_turns(part.turns, spec=Writer())) for part in parts)

    # The workers share one iterator: each takes the next session as soon as it has finished one.
    async def work() -> None:
        for index, part in queue:
            reports[index] = await _write_one(guard, part, note=progress.note)

    with WriteProgress(turns=turns, quiet=quiet) as progress:
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(at_once, len(parts))):
                    group.create_task(work())
        except ExceptionGroup as failed:
            # One error is what a person can act on; a group would hide its code.
            raise failed.exceptions[0] from None
        progress.finish()
    return [reports[index] for index in sorted(reports)]


async def _write_one(guard: "GateGraph", part: "Conversation", *, note: Any) -> "WriteReport":
    result: dict[str, Any] = {}
    stream: Any = guard.astream({"conversation": part}, stream_mode=["custom", "values"])
    async for mode, data in stream:
        if mode == "custom":
            note(data)
        else:
            result = data
    return result["writes"]


def _is_unfinished(reports: Sequence["WriteReport"]) -> bool:
    """Whether turns are still to be read, or candidates to be judged, by a later run."""
    return any(report.unread or report.unjudged for report in reports)


def _usage(reports: Sequence["WriteReport"]) -> "Usage":
    from memguard.schema.receipt import Usage

    return sum((report.usage for report in reports), Usage())


def _print_as_json(reports: Sequence["WriteReport"], *, error: "MemguardError | None") -> None:
    body = {
        "counts": total_counts(reports),
        "resumed": sum(report.resumed for report in reports),
        "usage": _usage(reports),
        "reports": reports,
    }
    if error is None:
        print_json(body)
        raise typer.Exit(RUN_FAILED if _is_unfinished(reports) else 0)
    # Results and error in one document: a program could not parse two.
    print_json({**body, **error_body(error)})
    raise typer.Exit(exit_code(error))


def _print(reports: Sequence["WriteReport"], *, store: str) -> None:
    from memguard.write.report import corrections_line

    receipts = [receipt for report in reports for receipt in report.receipts]
    printed = receipts
    if len(receipts) > _MAX_PRINTED:
        # A person looks for what was not stored; the rest is in the log.
        printed = [receipt for receipt in receipts if receipt.outcome != "stored"][:_MAX_PRINTED]
    print_decisions(printed, title=f"Decided on {len(receipts)} candidates")
    out, usage = console(), _usage(reports)
    if len(printed) < len(receipts):
        out.print(f"and {len(receipts) - len(printed)} more: `memguard receipts list`")
    counts = counts_line(total_counts(reports))
    out.print(f"\n{counts}; {usage.calls} model calls, {usage.tokens} tokens")
    corrections = Counter[Any]()
    for report in reports:
        corrections.update(report.corrections)
    if line := corrections_line(corrections):
        out.print(line)
    resumed = sum(report.resumed for report in reports)
    if resumed:
        out.print(f"{resumed} candidates were decided by an earlier run")
    # Sessions often report the same note and the same failure: each is printed once.
    for note in dict.fromkeys(note for report in reports for note in report.notes):
        out.print(f"note: {note}")
    for failure in dict.fromkeys(failure for report in reports for failure in report.failures):
        out.print(f"not done: {failure.step} {failure.about}: {failure.code} {failure.message}")
    if _is_unfinished(reports):
        out.print("run the same command again: it does what was not done, and nothing twice")
    out.print(f"`memguard receipts show ID --store {store}` prints the full record of a decision")
