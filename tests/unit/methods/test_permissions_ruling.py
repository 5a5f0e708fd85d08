"""Ruling on units: what is settled beforehand, the floors, what was not judged, conflicts, room."""

from datetime import UTC, datetime
from typing import Any

import pytest

from memguard.local.pieces import looks_like_preference, looks_like_safety
from memguard.methods.adjudication.ledger import Costs, compile_ledger
from memguard.methods.adjudication.ruling import (
    Ruling,
    rule_on_unit,
    rule_on_units,
    settle_conflicts,
)
from memguard.schema.decision import Inconclusive
from memguard.schema.read import (
    Adjudication,
    Conflict,
    FactorCompiled,
    PermissionSemantic,
    Row,
    Situation,
)
from memguard.schema.units import FactorAttributes, Unit, UnitAttributes
from tests.unit.methods.reading import ENTRY, UNIT

PAPER = PermissionSemantic(preset="paper")
DEFAULT = PermissionSemantic()
ADVICE = Situation(target="user", mode="recommendation")
FACTS = Situation(target="world", mode="factual")
LOST = Inconclusive(reason="timeout")


def unit(text: str = "The user lives in Porto.", **given: Any) -> Unit:
    return Unit(id=given.pop("id", "a"), memory_id=given.pop("memory_id", "m"), text=text, **given)


def row(unit_id: str = "a", *, conflict: Any = False, **changed: Any) -> Row:
    attributes = UnitAttributes.model_validate({**UNIT, **changed})
    return Row(unit_id=unit_id, attributes=attributes, evidence_conflict=conflict)


def entry(unit_id: str = "a", **changed: Any) -> Row:
    return Row(unit_id=unit_id, attributes=FactorAttributes.model_validate({**ENTRY, **changed}))


def ruled(*rows: Row, of: Unit | None = None, spec: Any = DEFAULT, now: Any = ADVICE) -> Ruling:
    return rule_on_unit(of or unit(), rows, situation=now, spec=spec)


def test_the_evidence_wins_where_the_switch_is_on() -> None:
    for kind in ("fact", "preference", "constraint", "safety"):
        assert ruled(row(kind=kind, conflict=True), spec=PAPER).row.then != "DENY"
    for kind in ("fact", "preference"):
        assert ruled(row(kind=kind, conflict=True)).row.id == "evidence-conflict"


def test_evidence_alone_lifts_no_constraint() -> None:
    """A menu without a dish for a coeliac does not make the person well."""
    ruling = ruled(row(kind="safety", conflict=True))
    assert (ruling.row.id, ruling.row.then) == ("evidence-conflict-safety", "CONTEXT")
    ruling = ruled(row(kind="constraint", conflict=True))
    assert (ruling.row.id, ruling.row.then) == ("evidence-conflict-constraint", "CONTEXT")
    # What is denied for another reason stays denied.
    assert ruled(row(kind="safety", conflict=True, subject="bystander")).row.then == "DENY"


def test_what_the_store_replaced_is_denied_whatever_was_found() -> None:
    old = unit(superseded=True)
    for spec in (PAPER, DEFAULT):
        assert ruled(row(kind="constraint"), of=old, spec=spec).row.id == "superseded-record"
        assert ruled(of=old, spec=spec).row.then == "DENY"


@pytest.mark.parametrize("doubt", ["epistemic", "relevance"])
def test_safety_holds_through_doubt_where_the_switch_is_on(doubt: str) -> None:
    found = row(kind="safety", **{doubt: "uncertain"})
    assert ruled(found).row.then == "APPLY_CONSTRAINT"
    assert ruled(found, spec=PAPER).row.then == "CONTEXT"
    for other in ("subject", "temporality"):
        assert ruled(row(kind="safety", **{other: "uncertain"})).row.then == "CONTEXT"


def test_the_decomposers_word_for_safety_counts_too() -> None:
    of = unit("The user carries a pen.", kind="safety")
    assert ruled(row(kind="fact", epistemic="uncertain"), of=of).row.id == "safety"
    assert ruled(row(kind="fact", relevance="none"), of=of).row.then == "DENY"


def test_a_preference_holds_through_doubt_when_advising_the_user() -> None:
    found = row(kind="preference", epistemic="uncertain", relevance="uncertain")
    assert ruled(found).row.id == "preference-kept"
    assert ruled(found, spec=PAPER).row.id == "preference-doubt"
    assert ruled(found, now=FACTS).row.then == "DENY"


def test_fc_keeps_safety_whatever_its_role() -> None:
    spec = FactorCompiled()
    found = entry(role="fact", epistemic="uncertain", safety=True)
    assert ruled(found, spec=spec).row.id == "safety"
    assert ruled(found, spec=FactorCompiled(preset="paper")).row.id == "8-fact-doubt"
    partial = entry(role="constraint", scope="partial", safety=True)
    kept = ruled(partial, spec=spec)
    assert (kept.row.id, kept.unit.text) == ("safety", unit().text)


def test_allowed_content_takes_the_place_of_the_text() -> None:
    of = unit("The user likes jazz at home and rock at work.")
    spec = FactorCompiled()
    some = entry(role="preference", scope="partial", allowed_content="likes jazz at home")
    assert ruled(some, of=of, spec=spec).unit.text == "likes jazz at home"
    whole = entry(role="preference", allowed_content="likes jazz at home")
    assert ruled(whole, of=of, spec=spec).unit.text == of.text


@pytest.mark.parametrize(
    ("role", "row_id", "then"),
    [
        ("constraint", "5-constraint-doubt", "CONTEXT"),
        ("preference", "preference-kept", "PERSONALIZE"),
        ("fact", "2-nothing-allowed", "DENY"),
        ("context", "2-nothing-allowed", "DENY"),
    ],
)
def test_allowed_content_in_other_words_is_void(role: str, row_id: str, then: str) -> None:
    """What fails open is shown whole, since its part is not known; the rest fails closed."""
    of = unit("The user likes jazz.")
    found = entry(role=role, scope="partial", allowed_content="The user adores opera.")
    ruling = ruled(found, of=of, spec=FactorCompiled())
    assert (ruling.row.id, ruling.row.then) == (row_id, then)
    assert "own words" in ruling.notes[0]
    assert ruling.unit.text == of.text


def test_a_needed_safety_constraint_stays_where_its_part_was_paraphrased() -> None:
    found = entry(
        role="constraint", safety=True, scope="partial", allowed_content="must avoid groundnuts"
    )
    ruling = ruled(found, of=unit("The user is allergic to peanuts."), spec=FactorCompiled())
    assert ruling.row.then == "APPLY_CONSTRAINT"


@pytest.mark.parametrize(
    ("of", "then"),
    [
        (unit("The user is allergic to peanuts."), "CONTEXT"),
        (unit("The user sits a lot.", kind="safety"), "CONTEXT"),
        (unit("L'utilisatrice est en fauteuil roulant."), "CONTEXT"),
        (unit("用户对花生过敏。"), "CONTEXT"),
        (unit("The user prefers aisle seats."), "CONTEXT"),
        (unit("An aisle seat.", kind="preference"), "CONTEXT"),
        (unit("An aisle seat.", kind="preference", superseded=True), "DENY"),
        (unit("The user must have receipts.", kind="constraint"), "DENY"),
        (unit("The user thinks the earth is flat.", kind="belief"), "DENY"),
        (unit("The user lives in Porto."), "DENY"),
    ],
    ids=range(10),
)
def test_what_was_not_judged(of: Unit, then: str) -> None:
    for rows in ((), (Row(unit_id="a", attributes=LOST),)):
        for spec in (DEFAULT, PAPER):
            assert ruled(*rows, of=of, spec=spec).row.then == then


def test_of_several_rows_the_stricter_holds_whatever_their_order() -> None:
    good, bad = row(), row(relevance="none")
    for rows in ((good, bad), (bad, good)):
        ruling = ruled(*rows)
        assert ruling.row.id == "irrelevant"
        assert ruling.notes == ("a: 2 rows that differ; the strictest applies",)
    assert ruled(good, good).notes == ()
    assert ruled(good, Row(unit_id="a", attributes=LOST)).row.then == "DENY"


def test_an_unknown_situation_gets_the_narrowest_permission() -> None:
    lost = Inconclusive(reason="off_menu")
    assert ruled(row(kind="belief"), now=lost).row.then == "DENY"
    assert ruled(row(), now=lost).row.then == "CONTEXT"
    assert ruled(row(kind="preference"), now=lost).row.then == "CONTEXT"
    assert ruled(row(kind="safety"), now=lost).row.then == "CONTEXT"
    assert ruled(row(kind="safety", relevance="none"), now=lost).row.then == "DENY"
    assert ruled(row(kind="preference", temporality="superseded"), now=lost).row.then == "DENY"
    assert ruled(entry(role="preference"), now=lost, spec=FactorCompiled()).row.then == "CONTEXT"


EARLY, LATE = datetime(2024, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)


def settled(
    first: Ruling, second: Ruling, *, safety: bool = True, swap: bool = False
) -> tuple[str, str]:
    pair = [first.unit.id, second.unit.id]
    conflict = Conflict(first=pair[swap], second=pair[not swap])
    after = settle_conflicts([first, second], conflicts=[conflict], safety=safety)
    return after[0].row.id, after[1].row.id


def pair(one: datetime | None, other: datetime | None, **changed: Any) -> tuple[Ruling, Ruling]:
    first = ruled(row("a", **changed), of=unit(id="a", said_at=one))
    second = ruled(row("b", **changed), of=unit(id="b", said_at=other))
    return first, second


@pytest.mark.parametrize("swap", [False, True])
def test_the_later_of_two_wins(swap: bool) -> None:
    assert settled(*pair(EARLY, LATE), swap=swap) == ("conflict-lost", "fact")
    assert settled(*pair(LATE, EARLY), swap=swap) == ("fact", "conflict-lost")


def test_where_time_does_not_decide_both_are_doubtful() -> None:
    for times in ((EARLY, EARLY), (None, LATE), (EARLY, None), (None, None)):
        assert settled(*pair(*times)) == ("conflict-open", "conflict-open")


def against(earlier: Row, later: Row, **said_by: Any) -> tuple[str, str]:
    """What is ruled on an earlier unit `a` and a later unit `b` that contradict each other."""
    return settled(
        ruled(earlier, of=unit(id="a", said_at=EARLY, said_by=said_by.get("a", "user"))),
        ruled(later, of=unit(id="b", said_at=LATE, said_by=said_by.get("b", "user"))),
    )


@pytest.mark.parametrize("kind", ["fact", "preference", "constraint"])
def test_a_doubtful_later_unit_does_not_beat_a_certain_earlier_one(kind: Any) -> None:
    stated = row("a", kind=kind)
    before = ruled(stated).row.id
    for doubt in ({"epistemic": "uncertain"}, {"epistemic": "inferred"}, {"subject": "uncertain"}):
        after, later = against(stated, row("b", kind=kind, **doubt))
        assert after == before
        assert later not in {before, "conflict-lost"}
    assert against(stated, row("b", kind=kind)) == ("conflict-lost", before)


def test_a_better_grounded_earlier_unit_stays_and_the_later_one_is_shown_as_doubtful() -> None:
    inferred = row("b", epistemic="inferred")
    assert against(row("a"), inferred) == ("fact", "fact-inferred")
    preferred = row("b", kind="preference", epistemic="inferred")
    assert against(row("a", kind="preference"), preferred) == (
        "preference-advice",
        "conflict-doubtful",
    )
    verified = row("a", epistemic="verified")
    assert against(verified, row("b")) == ("fact", "conflict-doubtful")
    assert against(row("a"), row("b", epistemic="verified")) == ("conflict-lost", "fact")


def test_only_who_may_know_replaces_what_the_user_said() -> None:
    stated, later = row("a"), row("b")
    assert against(stated, later, b="assistant") == ("fact", "conflict-doubtful")
    assert against(stated, later, b="unknown") == ("fact", "conflict-doubtful")
    assert against(stated, later, a="unknown", b="unknown") == ("conflict-lost", "fact")
    assert against(stated, later, a="assistant", b="user") == ("conflict-lost", "fact")
    # Nobody replaces anything with an assistant's word, not even another assistant's.
    assert against(stated, later, a="assistant", b="assistant") == (
        "conflict-open",
        "conflict-open",
    )
    # The one is better grounded and the other better placed to know: both are shown as doubtful.
    checked = row("b", epistemic="verified")
    assert against(stated, checked, b="assistant") == ("conflict-open", "conflict-open")


def test_two_doubtful_units_do_not_take_each_other_out() -> None:
    guess = {"kind": "preference", "epistemic": "uncertain"}
    assert against(row("a", **guess), row("b", **guess)) == ("conflict-open", "conflict-open")


def test_a_denied_winner_takes_nothing_out() -> None:
    """Otherwise nothing at all would be shown."""
    for denial in ({"relevance": "none"}, {"subject": "bystander"}, {"epistemic": "contradicted"}):
        later = row("b", **denial)
        assert against(row("a"), later) == ("fact", ruled(later).row.id)
    planted = ruled(row("b"), of=unit(id="b", said_at=LATE, instruction="command"))
    assert settled(pair(EARLY, None)[0], planted) == ("fact", "instruction-command")


def test_a_conflict_never_widens_and_never_speaks_for_what_does_not_hold() -> None:
    first, second = pair(EARLY, EARLY, relevance="none")
    assert settled(first, second) == ("irrelevant", "irrelevant")
    gone = ruled(row("b", temporality="superseded"), of=unit(id="b", said_at=LATE))
    assert settled(pair(EARLY, None)[0], gone) == ("fact", "superseded")
    denied = ruled(row("b", conflict=True), of=unit(id="b", said_at=LATE))
    assert settled(pair(EARLY, None)[0], denied) == ("fact", "evidence-conflict")


def test_safety_stays_in_sight_in_a_conflict() -> None:
    first, second = pair(EARLY, LATE, kind="safety")
    assert settled(first, second) == ("conflict-safety", "constraint")
    assert settled(first, second, safety=False) == ("conflict-lost", "constraint")


def test_a_conflict_with_itself_or_with_nobody_says_nothing() -> None:
    first, second = pair(EARLY, LATE)
    odd = [Conflict(first="a", second="a"), Conflict(first="a", second="zz")]
    assert settle_conflicts([first, second], conflicts=odd, safety=True) == (first, second)


def test_conflicts_are_ignored_where_the_switch_is_off() -> None:
    units = (unit(id="a", said_at=EARLY), unit(id="b", said_at=LATE))
    found = Adjudication(
        situation=ADVICE, rows=(row("a"), row("b")), conflicts=(Conflict(first="a", second="b"),)
    )
    rows = rule_on_units(units, adjudication=found, spec=PAPER)
    assert [each.row.id for each in rows] == ["fact", "fact"]
    rows = rule_on_units(units, adjudication=found, spec=DEFAULT)
    assert [each.row.id for each in rows] == ["conflict-lost", "fact"]


def compiled(spec: PermissionSemantic, *rulings: Ruling, cost: int = 10) -> Any:
    return compile_ledger(
        rulings,
        adjudication=Adjudication(situation=ADVICE),
        spec=spec,
        scheme="units",
        costs=Costs(units={each.unit.id: cost for each in rulings}, frames={"frame": 5}),
        repeats={},
    )


def many(**kinds: str) -> list[Ruling]:
    return [
        ruled(row(name, kind=kind, epistemic="verified"), of=unit(id=name, score=0.5))
        for name, kind in kinds.items()
    ]


def test_constraints_come_first_and_are_never_cut() -> None:
    rulings = many(a="fact", b="preference", c="constraint", d="safety", e="constraint")
    found = compiled(PermissionSemantic(max_units=2), *rulings)
    assert [each.unit.id for each in found.ledger.shown] == ["c", "d", "e"]
    assert found.flags == ("limits_exceeded",)
    assert {each.withheld for each in found.ledger.withheld} == {"max_units"}
    tokens = compiled(PermissionSemantic(max_tokens=30), *rulings)
    assert [each.unit.id for each in tokens.ledger.shown] == ["c", "d", "e"]
    assert {each.withheld for each in tokens.ledger.withheld} == {"max_tokens"}


def test_safety_is_not_cut_even_as_context() -> None:
    doubtful = ruled(row("s", kind="safety", subject="uncertain"), of=unit(id="s", score=0.0))
    assert doubtful.row.then == "CONTEXT"
    found = compiled(PermissionSemantic(max_units=1), *many(a="constraint", b="fact"), doubtful)
    assert [each.unit.id for each in found.ledger.shown] == ["a", "s"]


def test_what_the_query_needs_stays_longest_then_what_is_nearest() -> None:
    direct_far = ruled(row("a"), of=unit(id="a", score=0.1))
    direct_near = ruled(row("b"), of=unit(id="b", score=0.9))
    beside = ruled(row("c", relevance="indirect"), of=unit(id="c", score=1.0))
    found = compiled(PermissionSemantic(max_units=2), beside, direct_far, direct_near)
    assert {each.unit.id for each in found.ledger.shown} == {"a", "b"}
    found = compiled(PermissionSemantic(max_units=1), beside, direct_far, direct_near)
    assert [verdict.position for verdict in found.ledger.verdicts] == [None, None, 1]


def test_within_a_section_the_oldest_stands_first_whatever_is_nearest() -> None:
    told = datetime(2026, 3, 1, tzinfo=UTC)
    late = ruled(row("late"), of=unit(id="late", score=0.9, said_at=told.replace(month=5)))
    second = ruled(row("q.2"), of=unit(id="q.2", memory_id="q", score=0.5, said_at=told))
    first = ruled(row("q.1"), of=unit(id="q.1", memory_id="q", score=0.5, said_at=told))
    other = ruled(row("p.1"), of=unit(id="p.1", memory_id="p", score=0.1, said_at=told))
    undated = ruled(row("when"), of=unit(id="when", score=0.2))
    safe = ruled(row("safe", kind="safety"), of=unit(id="safe", said_at=told.replace(month=6)))
    found = compiled(DEFAULT, late, first, second, other, undated, safe)
    order = ["safe", "when", "p.1", "q.1", "q.2", "late"]
    assert [each.unit.id for each in found.ledger.shown] == order


def test_no_limit_shows_everything_permitted() -> None:
    found = compiled(PAPER, *many(**{f"u{n}": "fact" for n in range(80)}))
    assert len(found.ledger.shown) == 80
    assert found.flags == ()


def test_the_words_of_safety_and_preference() -> None:
    for text in ("coeliac disease", "carries an EpiPen", "is on blood thinners", "is deaf"):
        assert looks_like_safety(f"The user {text}.")
    for text in ("The user lives in Porto.", "Nobody likes a deafening silence."):
        assert not looks_like_safety(text)
    assert looks_like_preference("The user dislikes loud restaurants.")
    assert not looks_like_preference("The user lives in Porto.")


TOLD = Situation(target="world", mode="factual", lookup="told_before")
PAST = Situation(target="world", mode="factual", lookup="past")


def test_a_question_about_the_past_admits_what_the_store_superseded() -> None:
    old = unit(superseded=True, ended_as="superseded")
    found = row(kind="fact")
    assert ruled(found, of=old, now=PAST).row.id == "past"
    assert ruled(found, of=old, now=TOLD).row.id == "superseded-record"
    assert ruled(found, of=old, now=FACTS).row.id == "superseded-record"
    assert ruled(found, of=old, now=PAST, spec=PAPER).row.id == "superseded-record"
    # Without a verdict nothing says that it is what is asked for.
    assert ruled(of=old, now=PAST).row.id == "superseded-record"
    assert ruled(row(kind="fact", relevance="indirect"), of=old, now=PAST).row.then == "DENY"


@pytest.mark.parametrize("ended_as", ["undone", "edited", "deleted"])
def test_what_was_taken_back_was_never_so(ended_as: str) -> None:
    old = unit(superseded=True, ended_as=ended_as)
    assert ruled(row(kind="fact"), of=old, now=PAST).row.id == "superseded-record"


def in_look_up(*units: Unit, conflicts: tuple[Conflict, ...] = (), **found: Any) -> list[str]:
    adjudication = Adjudication(
        situation=TOLD,
        rows=tuple(
            row(kind="claim").model_copy(update={"unit_id": one.id, **found}) for one in units
        ),
        conflicts=conflicts,
    )
    return [
        ruling.row.id for ruling in rule_on_units(units, adjudication=adjudication, spec=DEFAULT)
    ]


def test_two_values_in_a_look_up_are_both_shown_as_uncertain() -> None:
    day = datetime(2026, 1, 5, tzinfo=UTC)
    first = unit(id="a", memory_id="a", said_at=day, said_by="user")
    second = unit(id="b", memory_id="b", said_at=day.replace(day=9), said_by="user")
    pair = Conflict(first="a", second="b")
    assert in_look_up(first, second, conflicts=(pair,)) == ["conflict-looked-up"] * 2
    # What the store superseded stays out, and weakens nothing.
    old = first.model_copy(update={"superseded": True})
    assert in_look_up(old, second, conflicts=(pair,)) == ["superseded-record", "look-up-claim"]


def test_what_the_store_marks_as_conflicting_is_uncertain_where_both_are_recalled() -> None:
    first = unit(id="a", memory_id="m1", conflicts_with=("m2",), said_by="user")
    second = unit(id="b", memory_id="m2", said_by="user")
    assert in_look_up(first, second) == ["conflict-marked"] * 2
    assert in_look_up(first) == ["look-up-claim"]
    # The words of another author weaken nothing.
    document = second.model_copy(update={"said_by": "document"})
    assert in_look_up(first, document) == ["look-up-claim", "another-author"]


def test_the_adjudicators_word_for_another_author_counts_where_the_store_has_none() -> None:
    assert in_look_up(unit(id="a"), author="other") == ["another-author"]
    assert in_look_up(unit(id="a", said_by="user"), author="other") == ["look-up-claim"]
