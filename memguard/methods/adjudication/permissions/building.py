"""What the tables of FC and PS have in common: their rows, the situation, and the floors' rows."""

from dataclasses import replace
from typing import get_args

from memguard.methods.adjudication.tables import TableRow
from memguard.schema.read import Lookup, Mode, Target
from memguard.schema.units import Permission

Values = dict[str, tuple[str, ...]]
"""Accepted values by column."""


def row(name: str, then: Permission, why: str, **when: str | tuple[str, ...]) -> TableRow:
    """A row; the keywords are its conditions, one value or several per column."""
    accepted = {
        column: (values,) if isinstance(values, str) else values for column, values in when.items()
    }
    return TableRow(name, then, why, accepted)


def rows_with(shared: Values, *rows: TableRow) -> tuple[TableRow, ...]:
    """The rows with further conditions, which they share."""
    return tuple(replace(row, when={**shared, **row.when}) for row in rows)


SITUATION: Values = {
    "target": get_args(Target),
    "mode": get_args(Mode),
    "asks_view": ("yes", "no"),
    "lookup": get_args(Lookup),
}
"""The columns of what the request asks for."""


def columns_of(columns: Values, *names: str) -> Values:
    """Some of the columns, by their names."""
    return {name: columns[name] for name in names}


ADVICE: Values = {"mode": ("recommendation", "planning")}
"""The modes that ask for advice."""
LOOK_UP: Values = {"lookup": ("told_before", "past")}
"""The request looks up what the user told: only the user could have told it."""
IN_THE_PAST: Values = {"lookup": ("past",)}
"""The request is about the past, so that what no longer holds may answer it."""
OF_SAFETY: Values = {"of_safety": ("yes", "no")}
"""Whether a unit is about safety; a column of the floors `FC_OPEN` and `PS_OPEN`."""
SAFETY_EVEN_SO = (
    "open-safety",
    "CONTEXT",
    "a safety constraint is shown with every answer, unless the store has a later record of it",
)
NOTHING_AGAINST = (
    "open",
    "CONTEXT_UNCERTAIN",
    "nothing speaks against it, and it was not judged by a model",
)
