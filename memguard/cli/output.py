"""What a person sees, and what a program reads."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from memguard.errors import MemguardError
    from memguard.schema.receipt import Receipt

OUTCOME_STYLES = {
    "stored": "green",
    "duplicate": "dim",
    "quarantined": "yellow",
    "rejected": "red",
    "refused": "dim red",
    "unjudged": "magenta",
}


RUN_FAILED, YOUR_MISTAKE = 1, 2
"""Exit codes."""


def exit_code(error: "MemguardError") -> int:
    """The exit code of an error."""
    from memguard.errors import ConfigurationError

    return YOUR_MISTAKE if isinstance(error, ConfigurationError) else RUN_FAILED


def error_body(error: "MemguardError") -> dict[str, Any]:
    """An error as a program reads it."""
    return {"error": {"code": error.code, "message": error.message, "url": error.url}}


def console(*, least_width: int = 0) -> "Console":
    """A console for results; text from memories is never read as markup.

    Args:
        least_width: Columns of a file or a pipe, which have no width of their own.
    """
    from rich.console import Console

    out = Console(markup=False, highlight=False, emoji=False)
    if not out.is_terminal and out.width < least_width:
        out.width = least_width
    return out


def print_json(body: Any) -> None:
    """One JSON document on standard output, in the source's own letters where it takes them."""
    # Escapes of JSON itself are the only ones that a program can read back.
    any_letter = (sys.stdout.encoding or "").lower().startswith("utf")
    sys.stdout.write(json.dumps(body, ensure_ascii=not any_letter, indent=2, default=str) + "\n")


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, least_width: int = 0
) -> None:
    """A table; the last column takes the room that is left.

    Args:
        title: Above it.
        columns: Their headings.
        rows: A cell for each column.
        least_width: Columns that a file or a pipe is given.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", title_style="bold", expand=False, box=None)
    for column in columns[:-1]:
        table.add_column(column, no_wrap=True)
    table.add_column(columns[-1], overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell, style=OUTCOME_STYLES.get(cell, "")) for cell in row))
    console(least_width=least_width).print(table)


def print_decisions(receipts: Sequence["Receipt"], *, title: str) -> None:
    """One block per candidate: what became of it, its text, and why."""
    from rich.text import Text

    out = console()
    out.print(Text(title, style="bold"))
    for receipt in receipts:
        line = Text(f"{receipt.outcome:<12}", style=OUTCOME_STYLES[receipt.outcome])
        line.append(receipt.candidate.text, style="default")
        out.print(line)
        out.print(Text(f"{'':<12}{receipt.decision.explanation}  [{receipt.id[:8]}]", style="dim"))


def counts_line(counts: dict[Any, int]) -> str:
    """`12 stored, 3 rejected`; outcomes that did not occur are left out."""
    said = [f"{counts[outcome]} {outcome}" for outcome in OUTCOME_STYLES if counts.get(outcome)]
    return ", ".join(said) or "no candidates"
