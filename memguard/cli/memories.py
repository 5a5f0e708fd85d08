"""`memguard list | show | history`: what is remembered about a user, and how it came to be."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from memguard.cli import options
from memguard.cli.opening import open_memories
from memguard.cli.output import console, print_indented, print_json
from memguard.errors import InvalidInputError

if TYPE_CHECKING:
    from rich.text import Text

    from memguard.journal.lineage import LineageEntry
    from memguard.journal.receipts import ReceiptLog
    from memguard.memories.values import MemoryDetail, MemoryEntry, MemoryPage

_STATE_STYLES = {
    "current": "",
    "superseded": "yellow",
    "edited": "cyan",
    "deleted": "red",
    "undone": "magenta",
}
"""The colour of each state; a current memory has none, as it is the usual case."""

SHORT_ID = 8
"""Characters of an id that are printed; commands accept any unique beginning."""


def list_memories(
    store: options.StoreOption = "memory",
    embed: options.EmbedOption = None,
    user: options.UserOption = None,
    namespace: options.NamespaceOption = None,
    show_all: Annotated[
        bool,
        typer.Option("--all", help="Also those that were superseded, edited, deleted or undone."),
    ] = False,
    contains: Annotated[
        str | None, typer.Option(help="Only memories with this text, in any case.")
    ] = None,
    since: Annotated[
        datetime | None, typer.Option(help="Only memories said at this time or later, in UTC.")
    ] = None,
    until: Annotated[
        datetime | None, typer.Option(help="Only memories said before this time, in UTC.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of memories.")] = 50,
    before: Annotated[
        str | None, typer.Option(help="Continue here: what the previous page ended with.")
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """List what is remembered, newest first.

    Memories that are no longer current are only counted; --all lists them, too, with the reason.
    """
    with open_memories(store, embed=embed, user=user, namespace=namespace) as memories:
        page = memories.list(
            limit=limit,
            include_superseded=show_all,
            contains=contains,
            since=since,
            until=until,
            before=before,
        )
        labels = memories.namespace
    if as_json:
        print_json(page)
        return
    _print_page(page, title=" / ".join(labels))
    if page.before is not None:
        console().print(f"\nmore: --before {page.before}")


def show(
    memory_id: options.MemoryArgument,
    store: options.StoreOption = "memory",
    embed: options.EmbedOption = None,
    user: options.UserOption = None,
    namespace: options.NamespaceOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Print everything about one memory.

    That is its state, why it was stored, and what was said.
    """
    with open_memories(store, embed=embed, user=user, namespace=namespace) as memories:
        detail = memories.show(memory_id)
    if as_json:
        print_json(detail)
    else:
        print_detail(detail)


def history(
    memory_id: options.MemoryArgument,
    store: options.StoreOption = "memory",
    embed: options.EmbedOption = None,
    user: options.UserOption = None,
    namespace: options.NamespaceOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Print the corrections of a memory, oldest first.

    Any memory of a chain of corrections names the chain.
    """
    from memguard.journal.receipts import ReceiptLog

    with open_memories(store, embed=embed, user=user, namespace=namespace) as memories:
        chain = memories.history(memory_id)
        if as_json:
            print_json({"history": [asdict(entry) for entry in chain]})
        else:
            print_history(chain, log=ReceiptLog(memories.journal))


def _print_page(page: "MemoryPage", *, title: str) -> None:
    out = console()
    hidden = f"; {page.hidden} more with --all, no longer current" if page.hidden else ""
    count = {0: "no memories", 1: "1 memory"}.get(page.total, f"{page.total} memories")
    out.print(f"{title}: {count}{hidden}", style="bold")
    if page.memories:
        out.print("")
        print_entries(page.memories)


def print_entries(entries: Sequence["MemoryEntry"], *, numbered: bool = False) -> None:
    """Print memories as a table: id or number, date, and the text with what became of it."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for number, entry in enumerate(entries, start=1):
        style = "" if entry.is_current else "dim"
        text = Text(entry.text, style=style)
        for line in _remarks(entry):
            text.append("\n").append_text(line)
        name = str(number) if numbered else entry.id[:SHORT_ID]
        table.add_row(name, f"{entry.at:%Y-%m-%d}", text)
    console().print(table)


def _remarks(entry: "MemoryEntry") -> list["Text"]:
    """What a person must know of a memory in a list, a line each; nothing of a plain one."""
    from rich.text import Text

    lines: list[Text] = []
    if not entry.is_current:
        # Who edited it is on the receipt: "edited by" an id would read like an actor.
        preposition = "by" if entry.state == "superseded" else "to"
        by = f" {preposition} {entry.superseded_by[:SHORT_ID]}" if entry.superseded_by else ""
        line = Text(f"{entry.state}{by}", style=_STATE_STYLES[entry.state])
        # The reason of a deletion begins with the word itself.
        repeats = entry.reason.startswith(f"{entry.state} ")
        rest = entry.reason.removeprefix(entry.state) if repeats else f": {entry.reason}"
        lines.append(line.append(rest if entry.reason else "", style="dim"))
    if entry.conflicts_with:
        others = ", ".join(key[:SHORT_ID] for key in entry.conflicts_with)
        lines.append(Text(f"contradicts {others}", style="yellow"))
    if entry.detail_of:
        lines.append(Text(f"a detail of {entry.detail_of[:SHORT_ID]}", style="dim"))
    if entry.confirmed and entry.is_current:
        lines.append(Text(_confirmed(entry), style="dim"))
    return lines


def _confirmed(entry: "MemoryEntry") -> str:
    times = "once" if entry.confirmed == 1 else f"{entry.confirmed} times"
    last = f", last on {entry.confirmed_at:%Y-%m-%d}" if entry.confirmed_at else ""
    return f"said again {times}{last}"


def print_detail(detail: "MemoryDetail") -> None:
    """Print a memory with its origin, its state, and the decision that stored it."""
    out = console()
    entry = detail.memory
    out.print(entry.text, style="bold")
    print_indented(_origin(entry), columns=2)
    for line in _remarks(entry):
        print_indented(line.plain, columns=2, style=_STATE_STYLES[entry.state])
    if entry.event_at is not None:
        print_indented(f"what it says began on {entry.event_at:%Y-%m-%d}", columns=2)
    if entry.valid_until is not None:
        print_indented(f"held until {entry.valid_until:%Y-%m-%d}", columns=2)
    print_indented(f"id {entry.id}", columns=2, style="dim")
    if detail.details:
        out.print("\nDetails")
        print_entries(detail.details)
    if detail.receipt is not None:
        out.print("\nWhy it was stored")
        print_indented(detail.explanation, columns=2)
        print_indented(f"receipt {detail.receipt.id}", columns=2, style="dim")
    elif not entry.is_guarded:
        out.print("\nAnother program stored it, so there is no receipt.")
    if detail.source:
        out.print("\nWhat was said")
    for turn in detail.source:
        day = f" ({turn.at:%Y-%m-%d})" if turn.at else ""
        print_indented(f"{turn.speaker or turn.role}{day}: {turn.content}", columns=2)


def _origin(entry: "MemoryEntry") -> str:
    who = {"user": "the user", "mixed": "the user and others", "unknown": ""}
    name = who.get(entry.said_by, f"a {entry.said_by}")
    speaker = f" ({entry.speaker})" if entry.speaker else ""
    parts = [entry.state]
    if entry.said_at is not None:
        parts.append(f"said {entry.said_at:%Y-%m-%d}" + (f" by {name}{speaker}" if name else ""))
    elif name:
        parts.append(f"said by {name}{speaker}")
    parts.append(f"stored {entry.stored_at:%Y-%m-%d %H:%M} UTC")
    return ", ".join(parts)


def print_history(chain: Sequence["LineageEntry"], *, log: "ReceiptLog") -> None:
    """Print a chain of corrections, oldest first, with the decisions on each memory."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="dim")
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for entry in chain:
        life = entry.lifecycle
        state = "current" if life.is_current else life.ended_as or "superseded"
        # One that is no longer in the store was erased from there by another program, or deleted.
        state = state if entry.is_stored else "removed from the store"
        text = Text(entry.text, style="bold" if state == "current" else "")
        text.append(f"\n{state}", style=_STATE_STYLES.get(state, "red") or "green")
        for line in _decisions(entry, log=log):
            text.append(f"\n{line}", style="dim")
        day = f"{entry.said_at:%Y-%m-%d}" if entry.said_at else ""
        table.add_row(entry.key[:SHORT_ID], day, text)
    console().print(table)


def _decisions(entry: "LineageEntry", *, log: "ReceiptLog") -> list[str]:
    """The decisions on a memory, a line each: when, by whom, and why."""
    lines: list[str] = []
    first = {event.receipt_id: event for event in reversed(entry.events)}
    for receipt_id, event in sorted(first.items(), key=lambda pair: pair[1].seq):
        try:
            explanation = log.get(receipt_id).decision.explanation
        except InvalidInputError:
            continue  # it was forgotten
        lines.append(f"{event.at:%Y-%m-%d} {explanation} [{receipt_id[:SHORT_ID]}]")
    return lines
