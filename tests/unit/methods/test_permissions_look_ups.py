"""The rows of look-ups: what they admit, and that nothing else changed by them."""

import hashlib
import json
from collections import defaultdict
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memguard.methods.adjudication import permissions
from memguard.methods.adjudication.permissions import FC_TABLE, PS_TABLE
from memguard.methods.adjudication.tables import Table
from memguard.schema.units import WIDTH

GOLDEN = Path(__file__).parents[2] / "golden" / "tables" / "before_look_ups.json"
EARLIER: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8"))
"""The row of every key before there were look-ups: per table and row the number of keys, and a
digest over them in order."""

UNIT = {
    "kind": "claim",
    "subject": "world",
    "epistemic": "stated",
    "temporality": "current",
    "relevance": "direct",
    "target": "world",
    "mode": "factual",
    "asks_view": "no",
    "lookup": "told_before",
}
"""What the user said of the world, and the request looks it up."""
ENTRY = {
    "scope": "in",
    "subject": "match",
    "role": "fact",
    "epistemic": "stated",
    "temporal": "current",
    "utility": "needed",
    "allowed": "empty",
    "target": "world",
    "mode": "factual",
    "asks_view": "no",
    "lookup": "told_before",
}
PAST = {"lookup": "past", "temporality": "superseded"}
PAST_ENTRY = {"lookup": "past", "temporal": "superseded"}


@pytest.mark.parametrize("name", sorted(EARLIER))
def test_outside_look_ups_every_key_has_the_row_that_it_had(name: str) -> None:
    table: Table = getattr(permissions, name)
    columns = sorted(column for column in table.columns if column != "lookup")
    digests: defaultdict[str, Any] = defaultdict(hashlib.sha256)
    counts: defaultdict[str, int] = defaultdict(int)
    for values in product(*(table.columns[column] for column in columns)):
        key = {"lookup": "none", **dict(zip(columns, values, strict=True))}
        row = table.decide({column: key[column] for column in table.columns})
        name_of_row = f"{row.id} {row.then}"
        counts[name_of_row] += 1
        digests[name_of_row].update(("\x1f".join(values) + "\n").encode())
    actual = {
        row: {"keys": counts[row], "digest": digests[row].hexdigest()[:24]}
        for row in sorted(counts)
    }
    assert actual == EARLIER[name]


def keys_of(table: Table) -> st.SearchStrategy[dict[str, str]]:
    return st.fixed_dictionaries(
        {column: st.sampled_from(values) for column, values in table.columns.items()}
    )


@given(
    st.one_of(keys_of(PS_TABLE).map(lambda key: (PS_TABLE, key)))
    | keys_of(FC_TABLE).map(lambda key: (FC_TABLE, key))
)
def test_a_look_up_denies_nothing_that_was_admitted(case: tuple[Table, dict[str, str]]) -> None:
    table, key = case
    before = table.decide({**key, "lookup": "none"})
    after = table.decide(key)
    # One row narrows: what the user did is what is asked for, and no reason to adapt the answer.
    if before.id != "experience-skill":
        assert WIDTH[after.then] >= WIDTH[before.then]
    assert (after.then == "DENY") <= (before.then == "DENY")


@given(keys_of(PS_TABLE))
def test_a_look_up_opens_only_what_bears_on_it(key: dict[str, str]) -> None:
    before = PS_TABLE.decide({**key, "lookup": "none"})
    after = PS_TABLE.decide(key)
    if before.then != "DENY" or after.then == "DENY":
        return
    assert key["relevance"] == "direct"
    assert key["subject"] != "bystander"
    assert key["epistemic"] != "contradicted"
    assert key["kind"] != "belief" or key["asks_view"] == "yes"
    assert key["temporality"] != "superseded" or key["lookup"] == "past"


@given(keys_of(FC_TABLE))
def test_a_look_up_opens_only_entries_that_it_needs(key: dict[str, str]) -> None:
    before = FC_TABLE.decide({**key, "lookup": "none"})
    after = FC_TABLE.decide(key)
    if before.then != "DENY" or after.then == "DENY":
        return
    assert key["utility"] == "needed"
    assert key["subject"] != "mismatch"
    assert key["scope"] != "out"
    assert key["epistemic"] != "contradicted"
    assert key["role"] != "belief" or key["asks_view"] == "yes"
    assert key["temporal"] != "superseded" or key["lookup"] == "past"


@pytest.mark.parametrize(
    ("changed", "then"),
    [
        ({}, "CONTEXT"),
        ({"lookup": "none"}, "DENY"),
        ({"epistemic": "uncertain"}, "CONTEXT_UNCERTAIN"),
        ({"epistemic": "inferred"}, "CONTEXT_UNCERTAIN"),
        ({"temporality": "uncertain"}, "CONTEXT_UNCERTAIN"),
        ({"temporality": "superseded"}, "DENY"),
        ({"epistemic": "contradicted"}, "DENY"),
        ({"relevance": "indirect"}, "DENY"),
        ({"subject": "bystander"}, "DENY"),
        ({"kind": "fact"}, "CONTEXT"),
        ({"kind": "fact", "target": "third_party", "subject": "third_party"}, "CONTEXT"),
        ({"kind": "fact", "epistemic": "uncertain"}, "CONTEXT_UNCERTAIN"),
        ({"kind": "experience", "target": "user", "subject": "user"}, "CONTEXT"),
        ({"kind": "preference", "subject": "user"}, "DENY"),
        ({"kind": "preference", "subject": "user", "target": "user"}, "PERSONALIZE"),
        ({"kind": "belief"}, "DENY"),
        ({"kind": "belief", "asks_view": "yes"}, "MENTION_VIEW"),
        ({"asks_view": "yes"}, "MENTION_VIEW"),
        (PAST, "CONTEXT"),
        ({**PAST, "kind": "fact"}, "CONTEXT"),
        ({**PAST, "kind": "constraint"}, "CONTEXT"),
        ({**PAST, "kind": "preference", "subject": "user", "target": "user"}, "CONTEXT"),
        ({**PAST, "epistemic": "uncertain"}, "CONTEXT_UNCERTAIN"),
        ({**PAST, "epistemic": "contradicted"}, "DENY"),
        ({**PAST, "relevance": "indirect"}, "DENY"),
        ({**PAST, "kind": "belief"}, "DENY"),
        ({**PAST, "kind": "belief", "asks_view": "yes"}, "MENTION_VIEW"),
    ],
    ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else value,
)
def test_units_in_a_look_up(changed: dict[str, str], then: str) -> None:
    assert PS_TABLE.decide({**UNIT, **changed}).then == then


@pytest.mark.parametrize(
    ("changed", "then"),
    [
        ({}, "CONTEXT"),
        ({"lookup": "none"}, "CONTEXT_UNCERTAIN"),
        ({"epistemic": "inferred"}, "CONTEXT_UNCERTAIN"),
        ({"epistemic": "uncertain"}, "CONTEXT_UNCERTAIN"),
        ({"epistemic": "uncertain", "utility": "helpful"}, "DENY"),
        ({"temporal": "superseded"}, "DENY"),
        ({"epistemic": "contradicted"}, "DENY"),
        ({"subject": "mismatch"}, "DENY"),
        ({"role": "context", "temporal": "uncertain"}, "CONTEXT_UNCERTAIN"),
        ({"role": "preference"}, "DENY"),
        ({"role": "belief"}, "DENY"),
        ({"role": "belief", "asks_view": "yes"}, "MENTION_VIEW"),
        (PAST_ENTRY, "CONTEXT"),
        ({**PAST_ENTRY, "utility": "helpful"}, "DENY"),
        ({**PAST_ENTRY, "role": "belief"}, "DENY"),
        ({**PAST_ENTRY, "role": "belief", "asks_view": "yes"}, "MENTION_VIEW"),
        ({**PAST_ENTRY, "scope": "partial"}, "DENY"),
        ({**PAST_ENTRY, "scope": "partial", "allowed": "given"}, "CONTEXT"),
    ],
    ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else value,
)
def test_entries_in_a_look_up(changed: dict[str, str], then: str) -> None:
    assert FC_TABLE.decide({**ENTRY, **changed}).then == then
