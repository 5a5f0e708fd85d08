"""What holds of every decision of reconciliation, whatever the readers say."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st

from memguard.methods.reconcile.changes import changes_of, lifecycle_after
from memguard.methods.reconcile.rules import (
    RECONCILE_TABLE,
    ReconcilePlan,
    SpokenAt,
    all_keys,
    combine,
    later_side,
    row_for,
    rule_on_neighbour,
)
from memguard.schema.decision import Inconclusive
from memguard.schema.memory import CandidateMemory, Lifecycle, Provenance, SaidBy
from memguard.schema.relations import Assertion, Neighbour, Relation, RelationVerdict

START = datetime(2026, 1, 1, tzinfo=UTC)
NOW = START + timedelta(days=900)
NAMESPACE = ("memories", "ana")

days = st.integers(0, 800).map(lambda number: START + timedelta(days=number))
maybe_days = st.none() | days
spoken = st.builds(
    SpokenAt,
    event_at=maybe_days,
    said_at=maybe_days,
    assumed_at=st.just(NOW),
    position=st.none() | st.integers(0, 5),
)
authors = st.sampled_from(get_args(SaidBy))
names = st.sampled_from(["", "Ana", "Ben"])
candidates = st.builds(
    CandidateMemory,
    text=st.just("I live in Lisbon."),
    namespace=st.just(NAMESPACE),
    said_by=authors,
    speaker=names,
    said_at=maybe_days,
    turn_ids=st.just(("t1",)),
)
relations = st.sampled_from([*get_args(Relation), Inconclusive(reason="timeout")])
lifecycles = st.just(Lifecycle()) | st.just(
    Lifecycle(superseded_by="k0", ended_as="superseded", valid_until=START)
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[CandidateMemory, SpokenAt, list[Any]]:
    """A candidate, its times, and the rulings on up to four near memories."""
    candidate, times = draw(candidates), draw(spoken)
    assertion = draw(st.sampled_from(get_args(Assertion)))
    rulings: list[Any] = []
    for number in range(draw(st.integers(0, 4))):
        origin = Provenance(
            candidate_id="c", receipt_id="r", said_by=draw(authors), speaker=draw(names)
        )
        near = Neighbour(
            namespace=NAMESPACE,
            key=f"k{number}",
            text=f"memory {number}",
            said_at=draw(days),
            provenance=origin,
            lifecycle=draw(lifecycles),
        )
        verdict = RelationVerdict(
            key=near.key, relation=draw(relations), certain=draw(st.booleans())
        )
        rulings.append(
            rule_on_neighbour(
                candidate, near, verdict, assertion=assertion, times=(times, draw(spoken))
            )
        )
    return candidate, times, rulings


settings_of_conflict = st.sampled_from(["both", "hold"])


def test_every_key_has_exactly_one_row() -> None:
    for key in all_keys():
        assert [row.id for row in RECONCILE_TABLE if row.accepts(key)] == [row_for(key).id]
    used = {row_for(key).id for key in all_keys()}
    assert used == {row.id for row in RECONCILE_TABLE}


def test_only_a_certain_later_value_in_the_users_words_replaces() -> None:
    for key in all_keys():
        relation, authors, later, sureness = key
        is_correction = (
            (relation == "supersedes" and authors == "same")
            or (relation in {"supersedes", "contradicts"} and authors == "stored_other")
        ) and (later, sureness) == ("candidate", "certain")
        assert (row_for(key).action == "supersede") == is_correction


def plan_of(case: Any, on_conflict: Any) -> tuple[ReconcilePlan, Any]:
    candidate, times, rulings = case
    plan = combine(rulings, on_conflict=on_conflict)
    return plan, changes_of(plan, candidate, key="new", spoken=times)


@given(cases(), settings_of_conflict)
def test_another_author_never_ends_or_confirms_a_memory(case: Any, on_conflict: Any) -> None:
    candidate, _, rulings = case
    _, changes = plan_of(case, on_conflict)
    if candidate.said_by not in {"user", "mixed"}:
        assert changes == ()
    # Of another named speaker of the same namespace, nothing is changed either.
    others = {ruling.neighbour.key for ruling in rulings if ruling.authors == "candidate_other"}
    assert others.isdisjoint(change.key for change in changes)


@given(cases(), settings_of_conflict)
def test_a_replaced_value_is_never_current_next_to_its_successor(
    case: Any, on_conflict: Any
) -> None:
    """A certain correction by the same speaker leaves one of the two current."""
    _, times, rulings = case
    plan, changes = plan_of(case, on_conflict)
    ended = {change.key for change in changes if not change.after.is_current}
    lifecycle = lifecycle_after(plan, spoken=times)
    for ruling in rulings:
        key = ("supersedes", "same", ruling.later, "certain")
        actual = (ruling.verdict.relation, ruling.authors, ruling.later, ruling.sureness)
        is_current = ruling.neighbour.lifecycle.is_current
        if actual != key or not is_current or plan.outcome == "hold":
            continue
        if ruling.later == "candidate":
            assert ruling.neighbour.key in ended
        elif ruling.later == "stored" and plan.outcome == "store":
            assert not lifecycle.is_current
            assert ruling.neighbour.key not in ended


@given(cases(), settings_of_conflict)
def test_an_admitted_candidate_is_never_lost(case: Any, on_conflict: Any) -> None:
    plan, changes = plan_of(case, on_conflict)
    if plan.outcome == "confirm":
        assert plan.confirmed is not None
        assert plan.confirmed.neighbour.lifecycle.is_current
    if plan.outcome == "repeat":
        assert plan.confirmed is not None
        assert plan.confirmed.verdict.relation == "duplicate"
    if plan.outcome in {"hold", "repeat"}:
        assert changes == ()
    # A memory is changed once, from the state that it is in, and never loses what it had.
    assert len({change.key for change in changes}) == len(changes)
    for change in changes:
        assert set(change.before.conflicts_with) <= set(change.after.conflicts_with)
        assert change.after.detail_of == change.before.detail_of


@given(cases(), settings_of_conflict, st.randoms(use_true_random=False))
def test_the_order_of_near_memories_does_not_decide_what_ends(
    case: Any, on_conflict: Any, shuffle: random.Random
) -> None:
    candidate, times, rulings = case
    plan, changes = plan_of(case, on_conflict)
    mixed = list(rulings)
    shuffle.shuffle(mixed)
    other, others = plan_of((candidate, times, mixed), on_conflict)
    assert other.outcome == plan.outcome
    if plan.outcome != "confirm":
        assert {(c.key, c.after) for c in others} == {(c.key, c.after) for c in changes}
        assert lifecycle_after(other, spoken=times).superseded_by == (
            lifecycle_after(plan, spoken=times).superseded_by
        )


@given(spoken, spoken)
def test_which_is_later_does_not_depend_on_the_side(one: SpokenAt, other: SpokenAt) -> None:
    opposite = {"candidate": "stored", "stored": "candidate", "unknown": "unknown"}
    assert later_side(other, one) == opposite[later_side(one, other)]
