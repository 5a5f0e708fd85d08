"""A decision table as data: rows over closed sets of values, the first that fits decides.

A row names the values that it accepts in some columns; in every other column it accepts any value
of the set. A value outside the set fits no row, and what no row fits is denied. Tables are printed
into the documentation from these values (`print_table`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import get_args

from memguard.schema.read import Mode, Situation, Target
from memguard.schema.units import (
    WIDTH,
    Epistemic,
    FactorAttributes,
    FactorRole,
    Permission,
    Scope,
    SubjectMatch,
    Temporal,
    Utility,
)

Key = Mapping[str, str]
"""A value for each column."""

UNKNOWN = "unknown-key"
"""The id of the row for a key outside the table."""


@dataclass(frozen=True, kw_only=True)
class TableRow:
    """One row."""

    id: str
    """Names the row on receipts."""
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """The values it accepts, by column."""
    then: Permission
    """Its permission."""
    why: str
    """The reason in one sentence, for a person."""


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
        """The first row that fits; a row that denies for a key outside the table."""
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
        indexes = {column: index for index, column in enumerate(self.columns)}
        return tuple(
            (
                row,
                tuple((indexes[column], frozenset(values)) for column, values in row.when.items()),
            )
            for row in self.rows
        )

    def every_key(self) -> Iterator[dict[str, str]]:
        """Every key of the table."""
        for values in product(*self.columns.values()):
            yield dict(zip(self.columns, values, strict=True))


def wider(first: TableRow, second: TableRow) -> TableRow:
    """The row with the wider permission; the first where they are equal."""
    return second if WIDTH[second.then] > WIDTH[first.then] else first


def stricter(first: TableRow, second: TableRow) -> TableRow:
    """The row with the narrower permission; the first where they are equal."""
    return second if WIDTH[second.then] < WIDTH[first.then] else first


def print_table(table: Table, *, names: Mapping[Permission, str] | None = None) -> str:
    """The table in Markdown, as the documentation shows it.

    Args:
        table: The table.
        names: Other names of the permissions, for example those of channels.
    """
    lines = ["| row | when | then | because |", "|---|---|---|---|"]
    for row in table.rows:
        parts = [
            f"{column} {'/'.join(f'`{value}`' for value in values)}"
            for column, values in row.when.items()
        ]
        then = names[row.then] if names else row.then
        lines.append(f"| `{row.id}` | {', '.join(parts) or 'else'} | `{then}` | {row.why} |")
    return "\n".join(lines)


def _unknown(column: str, value: object) -> TableRow:
    return TableRow(id=UNKNOWN, then="DENY", why=f"{column} {value!r} is not in the table")


COLUMNS: dict[str, tuple[str, ...]] = {
    "scope": get_args(Scope),
    "subject": get_args(SubjectMatch),
    "role": get_args(FactorRole),
    "epistemic": get_args(Epistemic),
    "temporal": get_args(Temporal),
    "utility": get_args(Utility),
    "allowed": ("given", "empty"),
    "target": get_args(Target),
    "mode": get_args(Mode),
    "asks_view": ("yes", "no"),
}
"""Factors of the entry, whether it names its allowed content, and the situation."""

_IN = ("in", "partial")
_GROUNDED = ("verified", "stated", "inferred")
_CERTAIN: dict[str, tuple[str, ...]] = {
    "scope": _IN,
    "subject": ("match",),
    "epistemic": _GROUNDED,
    "temporal": ("current",),
}
"""What it takes for nothing to be uncertain, after the exclusions."""

# The order matters: exclusions first, so that no later row can widen what they deny.
FC_TABLE = Table(
    name="FC_TABLE",
    columns=COLUMNS,
    rows=(
        TableRow(
            id="1-subject", when={"subject": ("mismatch",)}, then="DENY", why="about another person"
        ),
        TableRow(
            id="2-scope", when={"scope": ("out",)}, then="DENY", why="meant for other situations"
        ),
        TableRow(
            id="2-nothing-allowed",
            when={"scope": ("partial",), "allowed": ("empty",)},
            then="DENY",
            why="only a part may be used, and no part was named",
        ),
        TableRow(
            id="3-superseded",
            when={"temporal": ("superseded",)},
            then="DENY",
            why="no longer holds",
        ),
        TableRow(
            id="3-contradicted",
            when={"epistemic": ("contradicted",)},
            then="DENY",
            why="contradicted",
        ),
        TableRow(
            id="4-no-use",
            when={"utility": ("none",), "role": ("preference", "belief", "fact", "context")},
            then="DENY",
            why="adds nothing to this answer",
        ),
        TableRow(
            id="5-constraint",
            when={"role": ("constraint",), **_CERTAIN},
            then="APPLY_CONSTRAINT",
            why="a constraint, and nothing about it is uncertain",
        ),
        TableRow(
            id="5-constraint-doubt",
            when={"role": ("constraint",)},
            then="CONTEXT",
            why="a constraint fails open: doubtful, so it supports",
        ),
        TableRow(
            id="6-preference-on-facts",
            when={"role": ("preference",), "mode": ("factual",), "target": ("world",)},
            then="DENY",
            why="what is so does not depend on what the user likes",
        ),
        TableRow(
            id="6-preference",
            when={"role": ("preference",), **_CERTAIN},
            then="PERSONALIZE",
            why="a current preference, and nothing about it is uncertain",
        ),
        TableRow(
            id="6-preference-doubt",
            when={"role": ("preference",)},
            then="CONTEXT",
            why="a preference fails open: doubtful, so it supports",
        ),
        TableRow(
            id="7-belief-of-user",
            when={"role": ("belief",), **_CERTAIN, "target": ("user",)},
            then="MENTION_VIEW",
            why="a view of the user, and the answer is about the user",
        ),
        TableRow(
            id="7-belief-asked-for",
            when={"role": ("belief",), **_CERTAIN, "asks_view": ("yes",)},
            then="MENTION_VIEW",
            why="the query asks for the user's view",
        ),
        TableRow(
            id="7-belief",
            when={"role": ("belief",)},
            then="DENY",
            why="a belief fails closed: doubtful, or not asked for",
        ),
        TableRow(
            id="8-fact-verified",
            when={"role": ("fact",), "epistemic": ("verified",)},
            then="CONTEXT",
            why="a verified fact",
        ),
        TableRow(
            id="8-fact-unverified",
            when={"role": ("fact",), **_CERTAIN},
            then="CONTEXT_UNCERTAIN",
            why="an unverified fact, and nothing else about it is uncertain",
        ),
        TableRow(
            id="8-fact-doubt",
            when={"role": ("fact",)},
            then="DENY",
            why="an unverified fact fails closed",
        ),
        TableRow(
            id="9-context",
            when={"role": ("context",), **_CERTAIN},
            then="CONTEXT",
            why="background, and nothing about it is uncertain",
        ),
        TableRow(
            id="9-context-doubt",
            when={"role": ("context",)},
            then="CONTEXT_UNCERTAIN",
            why="doubtful background",
        ),
    ),
)
"""The nine steps, first match wins."""


def _only(*names: str) -> dict[str, tuple[str, ...]]:
    return {name: COLUMNS[name] for name in names}


_LIVE: dict[str, tuple[str, ...]] = {
    "scope": ("in", "partial", "uncertain"),
    "epistemic": (*_GROUNDED, "uncertain"),
}

FC_SAFETY = Table(
    name="FC_SAFETY",
    columns=_only("scope", "subject", "epistemic", "temporal"),
    rows=(
        TableRow(
            id="safety",
            when={**_LIVE, "subject": ("match",), "temporal": ("current",)},
            then="APPLY_CONSTRAINT",
            why="a safety constraint holds through doubt",
        ),
        TableRow(
            id="safety-doubt",
            when={
                **_LIVE,
                "subject": ("match", "uncertain"),
                "temporal": ("current", "uncertain"),
            },
            then="CONTEXT",
            why="a safety constraint whose person or time is doubtful stays in sight",
        ),
        TableRow(id="safety-not-here", then="DENY", why="certainly not for this answer"),
    ),
)
"""The least that an entry about safety gets, whatever its role; ours, switched by `safety`."""

_ADVICE: dict[str, tuple[str, ...]] = {
    "epistemic": _LIVE["epistemic"],
    "role": ("preference",),
    "subject": ("match",),
    "temporal": ("current",),
    "utility": ("needed", "helpful"),
    "target": ("user",),
    "mode": ("recommendation", "planning"),
}

FC_PERSONALIZATION = Table(
    name="FC_PERSONALIZATION",
    columns=_only(
        "scope", "subject", "role", "epistemic", "temporal", "utility", "allowed", "target", "mode"
    ),
    rows=(
        TableRow(
            id="preference-kept",
            when={**_ADVICE, "scope": ("in", "uncertain")},
            then="PERSONALIZE",
            why="a current preference of the user holds through doubt when advising the user",
        ),
        TableRow(
            id="preference-part-kept",
            when={**_ADVICE, "scope": ("partial",), "allowed": ("given",)},
            then="PERSONALIZE",
            why="the same of the part that may be used",
        ),
        TableRow(id="no-preference", then="DENY", why="not such a preference"),
    ),
)
"""The least that a current preference gets; ours, switched by `personalization_guard`."""


def factor_key(attributes: FactorAttributes, *, situation: Situation) -> Key:
    """The key of an entry in the tables of this module."""
    return {
        "scope": attributes.scope,
        "subject": attributes.subject,
        "role": attributes.role,
        "epistemic": attributes.epistemic,
        "temporal": attributes.temporal,
        "utility": attributes.utility,
        "allowed": "given" if attributes.allowed_content.strip() else "empty",
        **situation_key(situation),
    }


def situation_key(situation: Situation) -> dict[str, str]:
    """The columns of a table that the situation fills."""
    return {
        "target": situation.target,
        "mode": situation.mode,
        "asks_view": "yes" if situation.asks_view else "no",
    }
