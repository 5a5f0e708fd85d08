"""`memguard write FILE`: a conversation in, supported memories durably stored."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memguard.cli.options import (
    BaseUrlOption,
    ConversationOption,
    EmbedOption,
    GateOption,
    JsonOption,
    ModelOption,
    NamespaceOption,
    PresetOption,
    StoreOption,
    UserOption,
    namespace_of,
    template_of,
)

if TYPE_CHECKING:
    from memguard.errors import MemguardError
    from memguard.schema.memory import Conversation
    from memguard.schema.usage import Usage
    from memguard.write.gates import GateGraph
    from memguard.write.report import WriteReport

_MOST_SHOWN = 40
"""Decisions printed in full after a write."""


def write(
    file: Annotated[
        Path, typer.Argument(help="JSON or JSONL of messages, or a LoCoMo file.", dir_okay=False)
    ],
    store: StoreOption = "memory",
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    embed: EmbedOption = None,
    user: UserOption = None,
    namespace: NamespaceOption = None,
    conversation: ConversationOption = None,
    gate: GateOption = None,
    preset: PresetOption = None,
    sessions: Annotated[int, typer.Option(min=1, help="Sessions worked on at once.")] = 4,
    as_json: JsonOption = False,
) -> None:
    """Remember what a conversation supports.

    Stop it with ctrl-C at any time: the same command goes on where it stopped, and asks the model
    nothing twice.
    """
    import asyncio

    from memguard.cli.opening import make_journal, open_store, pick_model
    from memguard.cli.output import RUN_FAILED
    from memguard.conversations import load_conversation
    from memguard.presets import choose_gates
    from memguard.write.graph import create_write_guard
    from memguard.write.report import first_error

    parts = load_conversation(file, name=conversation)
    gates = choose_gates(gate or ["consistency"], presets=preset or ())
    place = namespace_of(user, namespace)
    judge = pick_model(model, base_url=base_url)
    with open_store(store, embed=embed) as opened, make_journal(store) as journal:
        guard = create_write_guard(
            judge,
            store=opened,
            namespace=template_of(place),
            gates=gates,
            receipts=journal,
            on_failure="report",
        )
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
    """Whether a later run has something left to read or to judge."""
    return any(report.unread or report.unjudged for report in reports)


def _counts(reports: Sequence["WriteReport"]) -> dict[Any, int]:
    counts: dict[Any, int] = {}
    for report in reports:
        for outcome, count in report.counts.items():
            counts[outcome] = counts.get(outcome, 0) + count
    return counts


def _usage(reports: Sequence["WriteReport"]) -> "Usage":
    from memguard.schema.usage import Usage

    return sum((report.usage for report in reports), Usage())


def _print_as_json(reports: Sequence["WriteReport"], *, error: "MemguardError | None") -> None:
    from memguard.cli.output import RUN_FAILED, error_body, exit_code, print_json

    body = {
        "counts": _counts(reports),
        "resumed": sum(report.resumed for report in reports),
        "usage": _usage(reports).model_dump(mode="json"),
        "reports": [report.model_dump(mode="json") for report in reports],
    }
    if error is None:
        print_json(body)
        raise typer.Exit(RUN_FAILED if _is_unfinished(reports) else 0)
    # One document, what was done and what stopped it: a second one could not be parsed.
    print_json({**body, **error_body(error)})
    raise typer.Exit(exit_code(error))


def _print(reports: Sequence["WriteReport"], *, store: str) -> None:
    from memguard.cli.output import console, counts_line, print_decisions

    receipts = [receipt for report in reports for receipt in report.receipts]
    shown = receipts
    if len(receipts) > _MOST_SHOWN:
        # What was stored as it should be is the least news.
        shown = [receipt for receipt in receipts if receipt.outcome != "stored"][:_MOST_SHOWN]
    print_decisions(shown, title=f"Decided on {len(receipts)} candidates")
    if len(shown) < len(receipts):
        console().print(f"and {len(receipts) - len(shown)} more: `memguard receipts list`")
    out, usage = console(), _usage(reports)
    out.print(
        f"\n{counts_line(_counts(reports))}; {usage.calls} model calls, {usage.tokens} tokens"
    )
    resumed = sum(report.resumed for report in reports)
    if resumed:
        out.print(f"{resumed} candidates were decided by an earlier run")
    for note in dict.fromkeys(note for report in reports for note in report.notes):
        out.print(f"note: {note}")
    for failure in dict.fromkeys(failure for report in reports for failure in report.failures):
        out.print(f"not done: {failure.step} {failure.about}: {failure.code} {failure.message}")
    if _is_unfinished(reports):
        out.print("the same command takes up what was not done, and nothing twice")
    out.print(f"see `memguard receipts show ID --store {store}` for the whole record of a decision")
