"""The tables of read time: total, without dead rows, and never wider for a stricter attribute."""

from collections.abc import Iterator
from functools import cache
from itertools import product

import pytest

from memguard.methods.adjudication.permissions import (
    FC_OPEN,
    FC_PERSONALIZATION,
    FC_SAFETY,
    FC_TABLE,
    PS_OPEN,
    PS_PERSONALIZATION,
    PS_SAFETY,
    PS_TABLE,
)
from memguard.methods.adjudication.tables import UNKNOWN, Table, TableRow
from memguard.schema.units import WIDTH, Permission

TABLES = (
    FC_TABLE,
    FC_SAFETY,
    FC_PERSONALIZATION,
    FC_OPEN,
    PS_TABLE,
    PS_SAFETY,
    PS_PERSONALIZATION,
    PS_OPEN,
)

STRICTER: dict[str, tuple[tuple[str, str], ...]] = {
    "relevance": (("direct", "indirect"), ("indirect", "uncertain"), ("uncertain", "none")),
    "epistemic": (
        ("verified", "stated"),
        ("stated", "inferred"),
        ("inferred", "uncertain"),
        ("uncertain", "contradicted"),
    ),
    "temporality": (("current", "uncertain"), ("uncertain", "superseded")),
    "temporal": (("current", "uncertain"), ("uncertain", "superseded")),
    "scope": (("in", "uncertain"), ("in", "partial"), ("uncertain", "out"), ("partial", "out")),
    "utility": (("needed", "helpful"), ("helpful", "none")),
    "allowed": (("given", "empty"),),
}
"""By column: a value, and one that is stricter."""

OF_ENTRIES = (("match", "uncertain"), ("uncertain", "mismatch"))
OF_UNITS = (
    ("user", "uncertain"),
    ("third_party", "uncertain"),
    ("world", "uncertain"),
    ("uncertain", "bystander"),
)

Values = tuple[str, ...]


BY_NAME = {table.name: table for table in TABLES}


def every_key(table: Table) -> Iterator[dict[str, str]]:
    for values in product(*table.columns.values()):
        yield dict(zip(table.columns, values, strict=True))


def ruled(table: Table) -> dict[Values, TableRow]:
    """Every key with its row. The tables are small enough to be looked through whole."""
    return _ruled(table.name)


@cache
def _ruled(name: str) -> dict[Values, TableRow]:
    table = BY_NAME[name]
    return {tuple(key.values()): table.decide(key) for key in every_key(table)}


def steps(table: Table) -> Iterator[tuple[int, str, str]]:
    """Every step to a stricter value: the column's place, the value, the stricter one."""
    of_subject = OF_UNITS if table.name.startswith("PS") else OF_ENTRIES
    pairs = {**STRICTER, "subject": of_subject}
    for place, column in enumerate(table.columns):
        for value, strict in pairs.get(column, ()):
            yield place, value, strict


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_key_has_a_row_and_every_row_a_key(table: Table) -> None:
    size = 1
    for values in table.columns.values():
        size *= len(values)
    rows = ruled(table)
    assert len(rows) == size
    assert {row.id for row in rows.values()} == {row.id for row in table.rows}
    assert len({row.id for row in table.rows}) == len(table.rows)
    assert all(row.why for row in table.rows)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_rows_name_only_columns_and_values_that_there_are(table: Table) -> None:
    for row in table.rows:
        for column, values in row.when.items():
            assert set(values) <= set(table.columns[column]), row.id


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_an_unknown_or_missing_value_denies(table: Table) -> None:
    for key in (dict.fromkeys(table.columns, values) for values in ("", "Direct", "verified ")):
        assert table.decide(key).then == "DENY"
    good = next(every_key(table))
    for column in table.columns:
        for key in ({**good, column: "new"}, {k: v for k, v in good.items() if k != column}):
            row = table.decide(key)
            assert (row.id, row.then) == (UNKNOWN, "DENY")
            assert column in row.why


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_stricter_attribute_never_widens(table: Table) -> None:
    rows = ruled(table)
    columns = list(table.columns)
    for place, value, strict in steps(table):
        for key, row in rows.items():
            if key[place] != value or _is_mismatch(columns, key, value, strict):
                continue
            after = rows[(*key[:place], strict, *key[place + 1 :])]
            assert WIDTH[after.then] <= WIDTH[row.then], (key, strict, row.id, after.id)


def _is_mismatch(columns: list[str], key: Values, value: str, strict: str) -> bool:
    """For an answer about another person, what is the user's own is a mismatch, no doubt."""
    return (value, strict) == ("user", "uncertain") and key[columns.index("target")] == (
        "third_party"
    )


def doubtful(table: Table, **fixed: str) -> Iterator[tuple[Values, TableRow]]:
    """Keys with at least one uncertain value, and with the values given."""
    columns = list(table.columns)
    for key, row in ruled(table).items():
        if "uncertain" in key and all(key[columns.index(c)] == v for c, v in fixed.items()):
            yield key, row


@pytest.mark.parametrize(
    ("table", "fixed"),
    [
        (FC_TABLE, {"role": "constraint"}),
        (FC_TABLE, {"role": "preference", "temporal": "current"}),
        (PS_TABLE, {"kind": "safety"}),
        (PS_TABLE, {"kind": "constraint"}),
        (PS_TABLE, {"kind": "preference", "temporality": "current"}),
    ],
    ids=["fc-constraint", "fc-preference", "ps-safety", "ps-constraint", "ps-preference"],
)
def test_constraints_and_current_preferences_never_fall_through_doubt_alone(
    table: Table, fixed: dict[str, str]
) -> None:
    """Denied in doubt means: whatever the truth, some certain value would have denied it too."""
    rows = ruled(table)
    best = {"scope": "in", "subject": "match", "epistemic": "stated", "temporal": "current"}
    if table.name.startswith("PS"):
        best = {"epistemic": "stated", "temporality": "current", "relevance": "direct"}
    columns = list(table.columns)
    for key, row in doubtful(table, **fixed):
        # What no longer holds is certain, and only a question about the past opens it.
        if row.then != "DENY" or "superseded" in key:
            continue
        # With every doubt resolved in its favour it would be denied as well.
        kind = columns.index("subject")
        resolved = list(key)
        for place, column in enumerate(columns):
            if key[place] == "uncertain":
                resolved[place] = best.get(column, "user")
        for subject in (resolved[kind],) if key[kind] != "uncertain" else _subjects(table):
            resolved[kind] = subject
            if rows[tuple(resolved)].then == "DENY":
                break
        else:
            pytest.fail(f"{dict(zip(columns, key, strict=True))} falls through doubt: {row.id}")


def _subjects(table: Table) -> Values:
    return tuple(
        value
        for value in table.columns["subject"]
        if value not in {"uncertain", "mismatch", "bystander"}
    )


@pytest.mark.parametrize(
    ("table", "fixed"),
    [
        (FC_TABLE, {"role": "belief"}),
        (FC_TABLE, {"role": "fact", "epistemic": "stated"}),
        (FC_TABLE, {"role": "fact", "epistemic": "inferred"}),
        (FC_TABLE, {"role": "fact", "epistemic": "uncertain"}),
        (PS_TABLE, {"kind": "belief"}),
        (PS_TABLE, {"kind": "claim", "epistemic": "stated"}),
        (PS_TABLE, {"kind": "claim", "epistemic": "uncertain"}),
        (PS_TABLE, {"kind": "fact", "epistemic": "stated"}),
        (PS_TABLE, {"kind": "fact", "epistemic": "uncertain"}),
        (PS_TABLE, {"kind": "experience", "epistemic": "stated"}),
    ],
    ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else value.name,
)
def test_beliefs_and_unverified_facts_fail_closed(table: Table, fixed: dict[str, str]) -> None:
    assert {row.then for _, row in doubtful(table, **fixed, lookup="none")} == {"DENY"}
    # Beliefs fail closed in a look-up too, except for a view of the past that is asked for.
    wider = {row.then for _, row in doubtful(table, **fixed, asks_view="no")} - {"DENY"}
    is_belief = "belief" in fixed.values()
    assert wider <= (set() if is_belief else {"CONTEXT", "CONTEXT_UNCERTAIN"})


def ps(**changed: str) -> Permission:
    key = {
        "kind": "experience",
        "subject": "user",
        "epistemic": "stated",
        "temporality": "current",
        "relevance": "direct",
        "target": "user",
        "mode": "support",
        "asks_view": "no",
        "lookup": "none",
        **changed,
    }
    return PS_TABLE.decide(key).then


def fc(**changed: str) -> Permission:
    key = {
        "scope": "in",
        "subject": "match",
        "role": "context",
        "epistemic": "stated",
        "temporal": "current",
        "utility": "helpful",
        "allowed": "empty",
        "target": "user",
        "mode": "support",
        "asks_view": "no",
        "lookup": "none",
        **changed,
    }
    return FC_TABLE.decide(key).then


@pytest.mark.parametrize("mode", ["support", "factual"])
def test_the_bitcoin_example_how_do_i_buy_keeps_the_expertise(mode: str) -> None:
    assert ps(mode=mode) == "PERSONALIZE"
    assert ps(mode=mode, target="world") == "PERSONALIZE"
    assert fc(mode=mode) == "CONTEXT"


def test_the_bitcoin_example_what_should_i_invest_in_makes_it_context() -> None:
    """A past purchase is no current preference."""
    assert ps(mode="recommendation") == "CONTEXT"
    assert ps(mode="recommendation", kind="preference") == "PERSONALIZE"
    assert fc(mode="recommendation") == "CONTEXT"
    assert fc(mode="recommendation", role="preference") == "PERSONALIZE"


def test_the_bitcoin_example_a_resume_has_no_use_for_it() -> None:
    assert ps(relevance="none") == "DENY"
    assert fc(utility="none") == "DENY"
    assert fc(scope="out") == "DENY"


@pytest.mark.parametrize(
    ("changed", "then"),
    [
        ({"role": "constraint"}, "APPLY_CONSTRAINT"),
        ({"role": "constraint", "utility": "none"}, "APPLY_CONSTRAINT"),
        ({"role": "constraint", "subject": "mismatch"}, "DENY"),
        ({"role": "constraint", "scope": "uncertain"}, "CONTEXT"),
        ({"role": "preference", "mode": "factual", "target": "world"}, "DENY"),
        ({"role": "preference", "mode": "factual"}, "PERSONALIZE"),
        ({"role": "preference", "temporal": "uncertain"}, "CONTEXT"),
        ({"role": "belief"}, "MENTION_VIEW"),
        ({"role": "belief", "target": "world"}, "DENY"),
        ({"role": "belief", "target": "world", "asks_view": "yes"}, "MENTION_VIEW"),
        ({"role": "belief", "epistemic": "uncertain"}, "DENY"),
        ({"role": "fact", "epistemic": "verified"}, "CONTEXT"),
        ({"role": "fact", "epistemic": "verified", "scope": "uncertain"}, "CONTEXT"),
        ({"role": "fact"}, "CONTEXT_UNCERTAIN"),
        ({"role": "fact", "temporal": "uncertain"}, "DENY"),
        ({"role": "context"}, "CONTEXT"),
        ({"role": "context", "epistemic": "uncertain"}, "CONTEXT_UNCERTAIN"),
        ({"role": "context", "scope": "partial"}, "DENY"),
        ({"role": "context", "scope": "partial", "allowed": "given"}, "CONTEXT"),
        ({"epistemic": "contradicted"}, "DENY"),
        ({"temporal": "superseded"}, "DENY"),
    ],
    ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else value,
)
def test_the_nine_steps_of_fc(changed: dict[str, str], then: Permission) -> None:
    assert fc(**changed) == then
