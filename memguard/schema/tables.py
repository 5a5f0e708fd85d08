"""Reports as tables: HTML in a notebook, text in a terminal, and data frames of pandas."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from importlib import import_module
from typing import Any, Protocol

from memguard.errors import ConfigurationError, ErrorCode
from memguard.schema.base import FrozenReport

Cell = str | float | None
"""A value of a table; `None` is shown as an empty cell."""

MAX_ROWS = 100
"""Rows that are shown; a data frame has all."""

MAX_CHARS = 300
"""Characters of a cell or line that are shown."""

# Notebooks align cells to the right, and would read two prices in dollars as a formula.
_TABLE = '<div class="tex2jax_ignore mathjax_ignore"><table>'
_CELL = '<{tag} dir="auto" style="text-align:left;vertical-align:top">{text}</{tag}>'


class Printer(Protocol):
    """The part of IPython's pretty printer that a report needs."""

    def text(self, text: str) -> None:
        """Print text as it is."""


@dataclass(frozen=True, kw_only=True)
class ReportTable:
    """Rows with a title above them and lines below them; all texts are untrusted."""

    title: str
    """The whole in a few words."""
    columns: tuple[str, ...]
    """A name for each cell of a row."""
    rows: tuple[tuple[Cell, ...], ...]
    """In the order in which they are shown."""
    lines: tuple[str, ...] = ()
    """What else a reader must know, such as failures."""

    def to_html(self) -> str:
        """The table as HTML that contains no markup but its own."""
        head = _row("th", self.columns)
        body = "".join(_row("td", map(_shown, row)) for row in self.rows[:MAX_ROWS])
        lines = "".join(f"<p>{escape(line)}</p>" for line in self._shown_lines())
        return (
            f"{_TABLE}<caption>{escape(_shown(self.title))}</caption>"
            f"<thead>{head}</thead><tbody>{body}</tbody></table>{lines}</div>"
        )

    def to_text(self) -> str:
        """The table as text, one row a line."""
        rows = (" | ".join(map(_shown, row)) for row in self.rows[:MAX_ROWS])
        return "\n".join(
            [_shown(self.title), " | ".join(self.columns), *rows, *self._shown_lines()]
        )

    def _shown_lines(self) -> Iterator[str]:
        hidden = len(self.rows) - MAX_ROWS
        if hidden > 0:
            yield f"{hidden} more rows; `to_frame()` has all"
        yield from map(_shown, self.lines)


class TableReport(FrozenReport):
    """A report that a notebook shows as a table."""

    @abstractmethod
    def to_table(self) -> ReportTable:
        """The report as a table."""

    def to_frame(self) -> Any:
        """The rows of the table as a `pandas.DataFrame`; a missing value is `None` or NaN.

        Raises:
            ConfigurationError: If pandas is not installed.
        """
        try:
            # By name, because no part of memguard but this one needs pandas.
            pandas = import_module("pandas")
        except ImportError as error:
            msg = "a data frame needs pandas, which is not installed: pip install pandas"
            raise ConfigurationError(msg, code=ErrorCode.FRAME_EXTRA) from error
        table = self.to_table()
        return pandas.DataFrame(list(table.rows), columns=list(table.columns))

    def _repr_html_(self) -> str:
        return self.to_table().to_html()

    # IPython keeps a text beside the HTML; the default would be the whole report in one line.
    def _repr_pretty_(self, printer: Printer, _: bool) -> None:
        printer.text(self.to_table().to_text())


def _row(tag: str, cells: Iterator[str] | tuple[str, ...]) -> str:
    inner = "".join(_CELL.format(tag=tag, text=escape(cell)) for cell in cells)
    return f"<tr>{inner}</tr>"


def _shown(cell: Cell) -> str:
    """The cell in one line, not too long."""
    if cell is None:
        return ""
    line = " ".join(cell.split()) if isinstance(cell, str) else f"{cell:.2f}"
    return line if len(line) <= MAX_CHARS else f"{line[: MAX_CHARS - 1]}…"
