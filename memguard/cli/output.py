"""Output for people (tables, styled text) and for programs (JSON)."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memguard.errors import ConfigurationError, MemguardError

if TYPE_CHECKING:
    from rich.console import Console

    from memguard.schema.receipt import Receipt
    from memguard.write.report import WriteReport

OUTCOME_STYLES = {
    "stored": "green",
    "duplicate": "dim",
    "quarantined": "yellow",
    "rejected": "red",
    "refused": "dim red",
    "deleted": "dim red",
    "undone": "cyan",
    "unjudged": "magenta",
}
"""The colour of each outcome, in the order in which outcomes are counted."""

RUN_FAILED, YOUR_MISTAKE = 1, 2
"""Exit codes; `memguard --help` explains them."""


def exit_code(error: "MemguardError") -> int:
    """The exit code for an error: whose mistake it is."""
    return YOUR_MISTAKE if isinstance(error, ConfigurationError) else RUN_FAILED


def error_body(error: "MemguardError") -> dict[str, Any]:
    """An error as a program reads it."""
    return {"error": {"code": error.code, "message": error.message, "url": error.url}}


def console() -> "Console":
    """A console for results, on which text from memories is never read as markup."""
    # Rich loads slowly, and output for programs does without it.
    from rich.console import Console

    # A new console every time, because standard output may have been replaced.
    return Console(markup=False, highlight=False, emoji=False)


def print_json(body: Any) -> None:
    """Write one JSON document to standard output, without escapes where the encoding allows it.

    Args:
        body: Values of JSON, in which any value may be a pydantic model.
    """
    # Otherwise JSON's own escapes: a program can read back no others.
    is_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    text = json.dumps(body, ensure_ascii=not is_unicode, indent=2, default=_jsonable)
    sys.stdout.write(f"{text}\n")


def _jsonable(value: Any) -> Any:
    # Not by type: importing pydantic would slow down commands that print no model.
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else str(value)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table whose last column takes the remaining width; each row has one cell a column."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", title_style="bold", expand=False, box=None)
    for column in columns[:-1]:
        table.add_column(column, no_wrap=True)
    table.add_column(columns[-1], overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell, style=OUTCOME_STYLES.get(cell, "")) for cell in row))
    console().print(table)


def print_decisions(receipts: Sequence["Receipt"], *, title: str) -> None:
    """Print one block for each candidate: the outcome, the text, and the reason."""
    console().print(title, style="bold")
    for receipt in receipts:
        print_entry(
            receipt.outcome,
            receipt.candidate.text,
            detail=f"{receipt.decision.explanation}  [{receipt.id[:8]}]",
            style=OUTCOME_STYLES[receipt.outcome],
        )


def print_entry(label: str, text: str, *, detail: str, style: str) -> None:
    """Print a styled label with a text next to it, and a dimmed detail below."""
    from rich.text import Text

    out = console()
    out.print(Text(f"{label:<12}", style=style).append(text, style="default"))
    out.print(Text(f"{'':<12}{detail}", style="dim"))


def print_indented(text: str, *, columns: int, style: str = "") -> None:
    """Print a text of which every line begins after this number of columns."""
    from rich.padding import Padding
    from rich.text import Text

    console().print(Padding(Text(text, style=style), (0, 0, 0, columns)))


def provenance_of(value: Mapping[str, Any]) -> dict[str, Any]:
    """What memguard recorded in the value of a stored item; empty if another program stored it."""
    provenance = value.get("memguard")
    return provenance if isinstance(provenance, dict) else {}


def total_counts(reports: "Iterable[WriteReport]") -> dict[Any, int]:
    """How many candidates of all reports had each outcome."""
    counts: Counter[Any] = Counter()
    for report in reports:
        counts.update(report.counts)
    return dict(counts)


def counts_line(counts: dict[Any, int]) -> str:
    """`12 stored, 3 rejected`; without outcomes that did not occur."""
    parts = [f"{counts[outcome]} {outcome}" for outcome in OUTCOME_STYLES if counts.get(outcome)]
    return ", ".join(parts) or "no candidates"
