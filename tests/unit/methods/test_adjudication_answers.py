"""Reading an adjudicator's rows one by one, and what the server is told they look like."""

import json
import re
from typing import Any, get_args

import pytest

from memguard.llm.ask import json_schema_format
from memguard.llm.parsing import parse_json
from memguard.methods.adjudication.answers import (
    RowsAnswer,
    answer_form,
    read_answer_rows,
    read_situation,
    without_fields,
)
from memguard.methods.adjudication.model import ConflictsAnswer
from memguard.methods.permission_semantic.graph import DecomposeAnswer
from memguard.prompts import load_prompt
from memguard.schema.decision import Inconclusive
from memguard.schema.read import PermissionSemantic, Situation
from memguard.schema.units import FactorAttributes, Kind, Scheme, UnitAttributes
from tests.unit.methods.reading import SITUATION, entry_row, unit_row

PAPER = PermissionSemantic(preset="paper")
SPECS = (PAPER, PermissionSemantic(), PermissionSemantic(influence=True))
METHODS: dict[Scheme, str] = {"units": "permission_semantic", "factors": "factor_compiled"}
OURS = {
    "asks_view",
    "author",
    "conflicts_with",
    "evidence_conflict",
    "influence",
    "lookup",
    "reason",
    "safety",
}

NAMES = {"u1": "a", "u2": "b", "u3": "c"}


def read(*rows: Any, scheme: Any = "units", known: Any = NAMES) -> Any:
    text = json.dumps({"situation": SITUATION, "units": rows[0] if len(rows) == 1 else rows})
    parsed = parse_json(text, answer_form(scheme))
    assert isinstance(parsed, RowsAnswer), parsed
    return read_answer_rows(
        parsed.situation, parsed.units, scheme=scheme, requested=NAMES, names=known
    )


@pytest.mark.parametrize(
    "name", ["u1", "U1", " u1 ", "[u1]", "`u1`", '"u1"', "u1.", "#u1"], ids=range(8)
)
def test_a_name_may_be_marked_up(name: str) -> None:
    assert [row.unit_id for row in read([unit_row(name)]).rows] == ["a"]


@pytest.mark.parametrize("name", ["1", "u01", "u9", "", None, 1], ids=range(6))
def test_another_name_is_nobodys(name: Any) -> None:
    reading = read([{**unit_row("u1"), "unit": name}])
    assert reading.rows == ()
    assert "not one of the units" in reading.notes[0]


def test_an_answer_of_invented_names_does_not_fill_the_receipt() -> None:
    reading = read([{**unit_row("u1"), "unit": f"x{number}"} for number in range(500)])
    assert len(reading.notes) == 21
    assert reading.notes[-1] == "and 480 more such notes"


@pytest.mark.parametrize("key", ["unit", "unit_id", "id"])
def test_the_name_stands_under_one_of_three_keys(key: str) -> None:
    row = unit_row("u2")
    row[key] = row.pop("unit")
    assert read([row]).rows[0].unit_id == "b"


def test_rows_may_come_as_an_object_by_name() -> None:
    reading = read({"u1": unit_row(""), "u3": unit_row("")} | {"x": "no row"})
    assert reading.rows == ()
    inner = {name: {k: v for k, v in unit_row("").items() if k != "unit"} for name in ("u1", "u3")}
    assert [row.unit_id for row in read(inner).rows] == ["a", "c"]


@pytest.mark.parametrize("word", ["Third_Party", "third-party", "THIRD PARTY", " third_party. "])
def test_case_and_hyphens_are_tolerated(word: str) -> None:
    attributes = read([unit_row("u1", subject=word)]).rows[0].attributes
    assert isinstance(attributes, UnitAttributes)
    assert attributes.subject == "third_party"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("somewhat", "off_menu"),
        ("direct or indirect", "off_menu"),
        ("", "parse_failure"),
        (None, "parse_failure"),
        (3, "off_menu"),
        (["direct"], "off_menu"),
    ],
    ids=range(6),
)
def test_a_word_that_is_not_offered_is_never_read_as_another(value: Any, reason: str) -> None:
    found = read([unit_row("u1", relevance=value), unit_row("u2")]).rows
    assert isinstance(found[0].attributes, Inconclusive)
    assert found[0].attributes.reason == reason
    assert isinstance(found[1].attributes, UnitAttributes)


def test_a_broken_row_spoils_no_other() -> None:
    reading = read("u1 is fine", [1], None, unit_row("u2"))
    assert [row.unit_id for row in reading.rows] == ["b"]
    assert len(reading.notes) == 3


@pytest.mark.parametrize(
    ("value", "share"),
    [
        (0.5, 0.5),
        ("0.5", 0.5),
        (1, 1.0),
        (0, 0.0),
        *((odd, None) for odd in (5, -1, "high", True, None, float("nan"))),
    ],
    ids=range(10),
)
def test_an_influence_is_a_number_or_nothing(value: Any, share: float | None) -> None:
    row = {**unit_row("u1"), "influence": value}
    found = read_answer_rows({}, [row], scheme="units", requested=NAMES, names=NAMES)
    assert found.rows[0].influence == share


@pytest.mark.parametrize(
    ("value", "pairs"),
    [
        (["u2", "U3"], [("a", "b"), ("a", "c")]),
        ("u2, u3", [("a", "b"), ("a", "c")]),
        (["u1"], []),
        ("none", []),
        (None, []),
        (["u7"], []),
    ],
    ids=range(6),
)
def test_conflicts_name_units(value: Any, pairs: list[tuple[str, str]]) -> None:
    reading = read([unit_row("u1", conflicts_with=value)])
    assert [(c.first, c.second) for c in reading.conflicts] == pairs
    assert any("not a unit" in note for note in reading.notes) == (value == ["u7"])


@pytest.mark.parametrize(("value", "yes"), [(True, True), ("Yes", True), ("no", False), (1, False)])
def test_a_yes_is_a_yes(value: Any, yes: bool) -> None:
    assert read([unit_row("u1", evidence_conflict=value)]).rows[0].evidence_conflict == yes


def test_entries_have_factors() -> None:
    row = entry_row("u1", safety="true", scope="Partial", allowed_content=None)
    attributes = read([row], scheme="factors").rows[0].attributes
    assert isinstance(attributes, FactorAttributes)
    assert (attributes.safety, attributes.scope, attributes.allowed_content) == (
        True,
        "partial",
        "",
    )


def test_the_situation_is_read_or_inconclusive() -> None:
    told = read_situation({"target": "World", "mode": "factual", "asks_view": "yes", "why": "x"})
    assert told == Situation(target="world", mode="factual", asks_view=True)
    for written in ({}, {"target": "world"}, {"target": "them", "mode": "factual"}):
        assert isinstance(read_situation(written), Inconclusive)


@pytest.mark.parametrize(
    "form",
    [
        *(answer_form(scheme, spec.unasked) for scheme in get_args(Scheme) for spec in SPECS),
        DecomposeAnswer,
        ConflictsAnswer,
    ],
    ids=range(8),
)
def test_what_the_server_is_told_is_strict_and_stands_alone(form: Any) -> None:
    schema = json_schema_format(form)["json_schema"]["schema"]
    assert "$ref" not in json.dumps(schema)

    def strict(part: Any) -> None:
        if isinstance(part, dict):
            if "properties" in part:
                assert part["additionalProperties"] is False
                assert part["required"] == list(part["properties"])
            for inner in part.values():
                strict(inner)

    strict(schema)


def test_the_server_is_told_the_closed_sets() -> None:
    schema = json_schema_format(answer_form("units"))["json_schema"]["schema"]
    row = schema["properties"]["units"]["items"]["properties"]
    assert row["kind"]["enum"] == list(get_args(Kind))
    assert list(row)[:2] == ["unit", "reason"]
    assert list(schema["properties"]) == ["situation", "units"]


def fields_of(prompt: str) -> tuple[set[str], dict[str, Any]]:
    """The fields that a prompt defines, and its example of an answer."""
    example = next(line for line in prompt.splitlines() if line.startswith("{"))
    return set(re.findall(r"^- (\w+):", prompt, re.MULTILINE)), json.loads(example)


@pytest.mark.parametrize("scheme", get_args(Scheme))
def test_the_preset_of_the_paper_asks_for_the_fields_of_the_paper_alone(scheme: Scheme) -> None:
    asked = without_fields(load_prompt(METHODS[scheme], "adjudicate"), PAPER.unasked)
    fields, example = fields_of(asked.system)
    of_paper = {
        "units": {"kind", "subject", "epistemic", "temporality", "relevance"},
        "factors": {
            "scope",
            "allowed_content",
            "subject",
            "role",
            "epistemic",
            "temporal",
            "utility",
        },
    }[scheme]
    assert fields == {"target", "mode", "unit", *of_paper}
    assert set(example["situation"]) == {"target", "mode"}
    assert all(set(row) == {"unit", *of_paper} for row in example["units"])
    # PS names safety as a kind, and definitions speak of authors and reasons.
    assert not (OURS - {"author", "reason", "safety"}) & set(re.findall(r"\w+", asked.system))
    assert "evidence says" not in asked.system
    assert asked.stamp != load_prompt(METHODS[scheme], "adjudicate").stamp


@pytest.mark.parametrize("scheme", get_args(Scheme))
@pytest.mark.parametrize("spec", SPECS, ids=["paper", "default", "influence"])
def test_a_prompt_asks_for_what_its_form_has_and_its_example_is_usable(
    scheme: Scheme, spec: PermissionSemantic
) -> None:
    prompt = without_fields(load_prompt(METHODS[scheme], "adjudicate"), spec.unasked)
    fields, example = fields_of(prompt.system)
    schema = answer_form(scheme, spec.unasked).model_json_schema()["properties"]
    rows = set(schema["units"]["items"]["properties"])
    assert fields == rows | set(schema["situation"]["properties"])
    assert all(set(row) == rows for row in example["units"])
    parsed = parse_json(json.dumps(example), answer_form(scheme, spec.unasked))
    assert isinstance(parsed, RowsAnswer)
    reading = read_answer_rows(
        parsed.situation, parsed.units, scheme=scheme, requested=NAMES, names=NAMES
    )
    assert reading.judged == {"a", "b"}
    assert isinstance(reading.situation, Situation)


def test_no_more_is_asked_than_a_rule_reads() -> None:
    assert PermissionSemantic().unasked == {"influence"}
    assert PAPER.unasked == OURS
    assert PermissionSemantic(evidence_conflict=False, influence=True).unasked == {
        "evidence_conflict"
    }


def test_a_prompt_of_another_form_is_sent_as_it_is() -> None:
    prompt = load_prompt("permission_semantic", "decompose")
    assert without_fields(prompt, PAPER.unasked) == prompt
