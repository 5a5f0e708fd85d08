"""A decision table as data: rows over closed sets of values, the first that matches decides.

A row names the values that it accepts in some columns, and accepts any value in the others. A value
outside its set matches no row, and a key without a row is denied. The documentation shows tables
that are printed from these values.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from memguard.schema.units import WIDTH, Permission

Key = Mapping[str, str]
"""A value for each column."""

UNKNOWN = "unknown-key"
"""The id of the row for a key outside the table."""


@dataclass(frozen=True)
class TableRow:
    """One row."""

    id: str
    """Names the row on receipts."""
    then: Permission
    """Its permission."""
    why: str
    """The reason in one sentence, for a person."""
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """The values it accepts, by column."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows in order, over columns with closed sets of values."""

    name: str
    """Names the table in the documentation."""
    columns: Mapping[str, tuple[str, ...]]
    """Every value of every column."""
    rows: tuple[TableRow, ...]
    """In the order in which they are tried."""

    def decide(self, key: Key) -> TableRow:
        """The first row that matches; a row that denies for a key outside the table."""
        # A list inside: a generator would make this hot path slower.
        values = tuple([key.get(column) for column in self.columns])
        row = self._decided.get(values)
        if row is None:
            row = self._look_up(values)
            # Unknown keys are unbounded, so they are not cached.
            if row.id != UNKNOWN:
                self._decided[values] = row
        return row

    def _look_up(self, values: tuple[str | None, ...]) -> TableRow:
        # Checked before the rows: a row without conditions would match an invented value as well.
        for value, domain, column in zip(values, self._domains, self.columns, strict=True):
            if value not in domain:
                return _unknown(column, value)
        for row, tests in self._tests:
            if all(values[index] in accepted for index, accepted in tests):
                return row
        return _unknown("key", "")

    @cached_property
    def _decided(self) -> dict[tuple[str | None, ...], TableRow]:
        """The rows of earlier keys; there are at most as many as keys."""
        return {}

    @cached_property
    def _domains(self) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(values) for values in self.columns.values())

    @cached_property
    def _tests(self) -> tuple[tuple[TableRow, tuple[tuple[int, frozenset[str]], ...]], ...]:
        """The conditions of each row, by the index of the column."""
        indexes = {column: index for index, column in enumerate(self.columns)}
        return tuple(
            (row, tuple((indexes[name], frozenset(values)) for name, values in row.when.items()))
            for row in self.rows
        )


def _unknown(column: str, value: object) -> TableRow:
    return TableRow(UNKNOWN, "DENY", f"{column} {value!r} is not in the table")


def wider(first: TableRow, second: TableRow) -> TableRow:
    """The row with the wider permission; the first where they are equal."""
    return second if WIDTH[second.then] > WIDTH[first.then] else first


def stricter(first: TableRow, second: TableRow) -> TableRow:
    """The row with the narrower permission; the first where they are equal."""
    return second if WIDTH[second.then] < WIDTH[first.then] else first
