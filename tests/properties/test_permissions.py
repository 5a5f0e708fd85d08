"""What holds of every read: nothing is lost, nothing denied is shown, constraints are never cut."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from memguard.methods.adjudication.authors import OTHER_AUTHORS, is_of_another
from memguard.methods.adjudication.ledger import Compiled, Costs, compile_ledger
from memguard.methods.adjudication.permissions import FC_COLUMNS, PS_COLUMNS
from memguard.methods.adjudication.ruling import (
    SITUATIONS,
    Ruling,
    credibility_of,
    is_about_safety,
    rule_on_unit,
    rule_on_units,
    settle_conflicts,
)
from memguard.schema.decision import Inconclusive
from memguard.schema.memory import SaidBy
from memguard.schema.read import (
    Adjudication,
    Conflict,
    PermissionSemantic,
    ReadSpec,
    Row,
    UnitVerdict,
)
from memguard.schema.units import (
    SECTIONS,
    WIDTH,
    FactorAttributes,
    Instruction,
    Kind,
    Unit,
    UnitAttributes,
)

BEGAN = datetime(2024, 1, 1, tzinfo=UTC)
SAFE_WORDS = ("is allergic to nuts", "rows on Sundays", "prefers tea", "thinks tea heals")

lost = st.just(Inconclusive(reason="off_menu"))
unit_attributes = st.fixed_dictionaries(
    {
        name: st.sampled_from(PS_COLUMNS[name])
        for name in ("kind", "subject", "epistemic", "temporality", "relevance")
    }
).map(UnitAttributes.model_validate)
factor_attributes = st.fixed_dictionaries(
    {
        "safety": st.booleans(),
        "allowed_content": st.sampled_from(["", "The user"]),
        **{
            name: st.sampled_from(FC_COLUMNS[name])
            for name in ("scope", "subject", "role", "epistemic", "temporal", "utility")
        },
    }
).map(FactorAttributes.model_validate)


@st.composite
def reads(draw: st.DrawFn) -> tuple[tuple[Unit, ...], Adjudication]:
    count = draw(st.integers(0, 7))
    units = tuple(
        Unit(
            id=f"u{n}",
            memory_id=f"m{n // 2}",
            text=f"The user {draw(st.sampled_from(SAFE_WORDS))}, number {n}.",
            kind=draw(st.one_of(st.none(), st.sampled_from(get_args(Kind)))),
            said_at=draw(st.one_of(st.none(), st.integers(0, 3).map(_day))),
            score=draw(st.one_of(st.none(), st.floats(0, 1))),
            superseded=draw(st.booleans()) and draw(st.booleans()),
            said_by=draw(st.sampled_from(get_args(SaidBy))),
            instruction=draw(st.sampled_from([None, None, None, *get_args(Instruction)])),
        )
        for n in range(count)
    )
    ids = [unit.id for unit in units] or ["u0"]
    found = draw(st.sampled_from([unit_attributes, factor_attributes]))
    row = st.builds(
        Row,
        unit_id=st.sampled_from(ids),
        attributes=st.one_of(found, found, found, lost),
        evidence_conflict=st.booleans(),
        influence=st.one_of(st.none(), st.floats(0, 1)),
    )
    pair = st.builds(Conflict, first=st.sampled_from(ids), second=st.sampled_from([*ids, "no"]))
    return units, Adjudication(
        situation=draw(st.one_of(st.sampled_from(SITUATIONS), lost)),
        rows=tuple(draw(st.lists(row, max_size=2 * count))),
        conflicts=tuple(draw(st.lists(pair, max_size=4))),
    )


def _day(number: int) -> datetime:
    return BEGAN + timedelta(days=number)


switches = st.booleans()
specs = st.builds(
    PermissionSemantic,
    evidence_conflict=switches,
    memory_conflict=switches,
    safety=switches,
    personalization_guard=switches,
    authorship=switches,
    max_units=st.one_of(st.none(), st.integers(1, 5)),
    max_tokens=st.one_of(st.none(), st.integers(1, 200)),
)


def compiled(units: Any, found: Adjudication, spec: ReadSpec) -> Compiled:
    rulings = rule_on_units(units, adjudication=found, spec=spec)
    return compile_ledger(
        rulings,
        adjudication=found,
        spec=spec,
        scheme="units",
        costs=Costs(
            units={unit.id: 7 + n for n, unit in enumerate(units)},
            frames={"frame": 40, **dict.fromkeys(SECTIONS, 9)},
        ),
        repeats={},
    )


@given(reads(), specs)
@settings(max_examples=400)
def test_every_unit_has_one_fate_and_nothing_denied_is_shown(read: Any, spec: ReadSpec) -> None:
    units, found = read
    ledger = compiled(units, found, spec).ledger
    assert [verdict.unit.id for verdict in ledger.verdicts] == [unit.id for unit in units]
    for verdict in ledger.verdicts:
        assert (verdict.withheld == "denied") == (verdict.permission == "DENY")
        assert verdict.shown == (verdict.position is not None)
        assert verdict.row
        assert verdict.explanation
    assert sorted(v.position or 0 for v in ledger.shown) == list(range(1, len(ledger.shown) + 1))
    sections = [SECTIONS.index(verdict.permission) for verdict in ledger.shown]
    assert sections == sorted(sections)


@given(reads(), st.randoms(use_true_random=False), st.data())
def test_no_query_moves_what_is_shown(read: Any, luck: Random, data: st.DataObject) -> None:
    """Units come by memory, the nearest memory first; another query has another order of those."""
    units, found = read
    memories: dict[str, list[Unit]] = {}
    for unit in units:
        score = data.draw(st.floats(0, 1))
        memories.setdefault(unit.memory_id, []).append(unit.model_copy(update={"score": score}))
    mixed = list(memories.values())
    luck.shuffle(mixed)
    spec = PermissionSemantic(max_units=None, max_tokens=None)
    before = compiled(units, found, spec).ledger.shown
    after = compiled([unit for memory in mixed for unit in memory], found, spec).ledger.shown
    assert [each.unit.id for each in before] == [each.unit.id for each in after]


@given(reads(), specs)
def test_constraints_and_safety_are_never_cut(read: Any, spec: ReadSpec) -> None:
    units, found = read
    rulings = {r.unit.id: r for r in rule_on_units(units, adjudication=found, spec=spec)}
    out = compiled(units, found, spec)
    for verdict in out.ledger.withheld:
        if verdict.withheld == "denied":
            continue
        assert verdict.permission != "APPLY_CONSTRAINT"
        assert not (spec.safety and is_about_safety(rulings[verdict.unit.id]))
    if spec.max_units is not None and not out.flags:
        assert len(out.ledger.shown) <= spec.max_units


@given(reads())
def test_a_rule_of_ours_that_denies_never_widens_and_one_that_keeps_never_narrows(
    read: Any,
) -> None:
    units, found = read
    paper = PermissionSemantic(preset="paper")

    def widths(**switched: bool) -> list[int]:
        spec = paper.model_copy(update=switched)
        return [WIDTH[r.row.then] for r in rule_on_units(units, adjudication=found, spec=spec)]

    base = widths()
    for name in ("evidence_conflict", "memory_conflict"):
        assert all(a <= b for a, b in zip(widths(**{name: True}), base, strict=True))
    assert all(a >= b for a, b in zip(widths(personalization_guard=True), base, strict=True))


@given(reads(), st.randoms())
def test_the_order_of_conflicts_and_of_rows_cannot_show(read: Any, rng: Any) -> None:
    units, found = read
    spec = PermissionSemantic()
    rows, pairs = list(found.rows), list(found.conflicts)
    rng.shuffle(rows)
    rng.shuffle(pairs)
    turned = tuple(Conflict(first=p.second, second=p.first) for p in pairs)
    again = found.model_copy(update={"rows": tuple(rows), "conflicts": turned})
    before = rule_on_units(units, adjudication=found, spec=spec)
    after = rule_on_units(units, adjudication=again, spec=spec)
    assert [r.row.then for r in before] == [r.row.then for r in after]


def test_of_rows_that_are_as_strict_the_same_one_counts_in_either_order() -> None:
    """Found by the property above: whether a unit speaks against another hung on it."""
    units = tuple(
        Unit(id=f"u{n}", memory_id=f"m{n}", text=f"The user rows, number {n}.") for n in range(2)
    )
    entry = {"scope": "in", "role": "constraint", "epistemic": "verified", "temporal": "current"}
    told = FactorAttributes.model_validate({**entry, "subject": "match", "utility": "needed"})
    rows = [
        Row(unit_id="u0", attributes=told, evidence_conflict=True),
        Row(unit_id="u0", attributes=told.model_copy(update={"subject": "mismatch"})),
    ]
    found = Adjudication(
        situation=Inconclusive(reason="off_menu"),
        rows=(*rows, Row(unit_id="u1", attributes=told)),
        conflicts=(Conflict(first="u0", second="u1"),),
    )
    for spec in (PermissionSemantic(), PermissionSemantic(evidence_conflict=False)):
        turned = found.model_copy(update={"rows": found.rows[::-1]})
        assert rule_on_units(units, adjudication=found, spec=spec) == rule_on_units(
            units, adjudication=turned, spec=spec
        )


@given(reads(), st.booleans())
def test_settling_conflicts_twice_is_settling_them_once_or_narrower(
    read: Any, safety: bool
) -> None:
    units, found = read
    spec = PermissionSemantic(memory_conflict=False)
    rulings = rule_on_units(units, adjudication=found, spec=spec)
    once = settle_conflicts(rulings, conflicts=found.conflicts, safety=safety)
    for before, after in zip(rulings, once, strict=True):
        assert WIDTH[after.row.then] <= WIDTH[before.row.then]
    assert settle_conflicts(once, conflicts=found.conflicts, safety=safety) == once


@given(reads(), specs)
def test_no_usable_row_leaves_only_what_fails_open(read: Any, spec: ReadSpec) -> None:
    units, _ = read
    nothing = Adjudication(situation=Inconclusive(reason="timeout"))
    for verdict in compiled(units, nothing, spec).ledger.verdicts:
        is_limited = spec.authorship and verdict.unit.said_by in OTHER_AUTHORS
        shown = "CONTEXT_UNCERTAIN" if is_limited else "CONTEXT"
        assert verdict.permission in {shown, "DENY"}
        assert _fails_open(verdict) == (verdict.permission == shown)


def _fails_open(verdict: UnitVerdict) -> bool:
    unit = verdict.unit
    safe = unit.kind == "safety" or "allergic" in unit.text
    liked = unit.kind == "preference" or (unit.kind is None and "prefers" in unit.text)
    return (safe or liked) and not (unit.superseded or unit.instruction)


@given(reads(), specs)
def test_another_author_is_at_most_uncertain_and_narrows_nothing_of_the_user(
    read: Any, spec: ReadSpec
) -> None:
    units, found = read
    spec = spec.model_copy(update={"authorship": True})
    rulings = rule_on_units(units, adjudication=found, spec=spec)
    users = [unit for unit in units if unit.said_by not in OTHER_AUTHORS]
    for ruling in rulings:
        if ruling.unit.said_by in OTHER_AUTHORS:
            assert WIDTH[ruling.row.then] <= WIDTH["CONTEXT_UNCERTAIN"]
    alone = rule_on_units(users, adjudication=found, spec=spec)
    assert [r for r in rulings if r.unit.said_by not in OTHER_AUTHORS] == [*alone]


@given(reads(), specs)
def test_an_adjudicator_that_fails_open_only_widens(read: Any, spec: ReadSpec) -> None:
    units, found = read
    spec = spec.model_copy(update={"memory_conflict": False})
    closed = rule_on_units(units, adjudication=found, spec=spec)
    opened = rule_on_units(
        units, adjudication=found.model_copy(update={"fails_open": True}), spec=spec
    )
    for before, after in zip(closed, opened, strict=True):
        assert WIDTH[before.row.then] <= WIDTH[after.row.then]
        # Of what doubt admits, only a safety constraint is more than uncertain. Of several rows,
        # one that says so is enough: each of the others admits as much by itself.
        if before.row.then == "DENY" != after.row.then and not _is_safety_by_a_row(after, found):
            assert after.row.then == "CONTEXT_UNCERTAIN"


def _is_safety_by_a_row(ruling: Ruling, found: Adjudication) -> bool:
    rows = [row for row in found.rows if row.unit_id == ruling.unit.id]
    return any(is_about_safety(replace(ruling, finding=row)) for row in rows or [ruling.finding])


@given(reads(), specs, st.booleans())
def test_several_rows_permit_no_more_than_the_strictest(
    read: Any, spec: ReadSpec, fails_open: bool
) -> None:
    units, found = read
    for unit in units:
        rows = [row for row in found.rows if row.unit_id == unit.id]

        def width(rows: list[Row], unit: Unit = unit) -> int:
            ruling = rule_on_unit(
                unit, rows, situation=found.situation, spec=spec, fails_open=fails_open
            )
            return WIDTH[ruling.row.then]

        assert width(rows) == min([width([row]) for row in rows] or [width([])])


@given(unit_attributes, st.sampled_from(SITUATIONS), specs)
def test_without_a_model_a_safety_constraint_is_shown_unless_the_store_replaced_it(
    attributes: UnitAttributes, situation: Any, spec: ReadSpec
) -> None:
    attributes = attributes.model_copy(update={"kind": "safety"})
    unit = Unit(id="u", memory_id="m", text="The user is allergic to nuts.", said_by="user")
    found = Adjudication(
        situation=situation, rows=(Row(unit_id="u", attributes=attributes),), fails_open=True
    )
    (ruling,) = rule_on_units([unit], adjudication=found, spec=spec)
    if attributes.subject != "bystander":
        assert WIDTH[ruling.row.then] >= WIDTH["CONTEXT"]
    replaced = unit.model_copy(update={"superseded": True})
    (ruling,) = rule_on_units([replaced], adjudication=found, spec=spec)
    assert ruling.row.then == "DENY"


@given(reads(), specs)
def test_an_instruction_is_denied_whatever_was_found(read: Any, spec: ReadSpec) -> None:
    units, found = read
    for ruling in rule_on_units(units, adjudication=found, spec=spec):
        if ruling.unit.instruction:
            assert ruling.row.then == "DENY"
            assert ruling.row.id.startswith("instruction-")


def before_conflicts(read: Any) -> tuple[tuple[Ruling, ...], tuple[Conflict, ...]]:
    units, found = read
    spec = PermissionSemantic(memory_conflict=False)
    return rule_on_units(units, adjudication=found, spec=spec), found.conflicts


@given(reads(), st.data())
def test_a_doubtful_unit_never_narrows_a_better_grounded_one(
    read: Any, data: st.DataObject
) -> None:
    """It is added later or at any time, and in conflict with as many of them as one likes."""
    rulings, conflicts = before_conflicts(read)
    doubtful = Unit(
        id="doubt",
        memory_id="doubt",
        text="A joke.",
        said_at=data.draw(st.one_of(st.none(), st.integers(0, 9).map(_day))),
        said_by=data.draw(st.sampled_from(["unknown", "assistant"])),
    )
    attributes = data.draw(unit_attributes).model_copy(update={"epistemic": "uncertain"})
    added = rule_on_unit(
        doubtful,
        [Row(unit_id="doubt", attributes=attributes)],
        situation=data.draw(st.sampled_from(SITUATIONS)),
        spec=PermissionSemantic(),
    )
    more = [*conflicts, *(Conflict(first="doubt", second=r.unit.id) for r in rulings)]
    without = settle_conflicts(rulings, conflicts=conflicts, safety=True)
    after = settle_conflicts([*rulings, added], conflicts=more, safety=True)
    for ruling, narrowed in zip(without, after[:-1], strict=True):
        if credibility_of(ruling).may_replace:
            assert narrowed == ruling
        assert (narrowed.row.then == "DENY") == (ruling.row.then == "DENY")


@given(reads())
def test_a_denied_unit_has_no_effect_on_others(read: Any) -> None:
    rulings, conflicts = before_conflicts(read)
    permitted = [ruling for ruling in rulings if ruling.row.then != "DENY"]
    after = settle_conflicts(rulings, conflicts=conflicts, safety=True)
    alone = settle_conflicts(permitted, conflicts=conflicts, safety=True)
    assert [ruling for ruling in after if ruling.unit.id in {r.unit.id for r in alone}] == [*alone]


@given(reads(), st.booleans())
def test_what_loses_a_conflict_leaves_something_to_show(read: Any, safety: bool) -> None:
    rulings, conflicts = before_conflicts(read)
    after = {r.unit.id: r for r in settle_conflicts(rulings, conflicts=conflicts, safety=safety)}
    links = [{pair.first, pair.second} for pair in conflicts]
    for ruling in after.values():
        if ruling.row.id != "conflict-lost":
            continue
        reached = {ruling.unit.id}
        for _ in after:
            reached |= {name for link in links if link & reached for name in link}
        shown = [after[name] for name in reached if name in after]
        assert any(
            other.row.then != "DENY"
            and credibility_of(other).equals_or_exceeds(credibility_of(ruling))
            for other in shown
        )
