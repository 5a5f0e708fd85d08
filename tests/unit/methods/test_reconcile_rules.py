"""The policy of reconciliation: one action per case, and what several near memories give."""

from datetime import timedelta
from typing import Any

import pytest

from memguard.methods.reconcile.changes import changes_of, confirm, explain, lifecycle_after
from memguard.methods.reconcile.rules import (
    NeighbourRuling,
    RelationKey,
    SpokenAt,
    authors_of,
    combine,
    later_side,
    rule_on_neighbour,
)
from memguard.schema.memory import Lifecycle, Provenance
from memguard.schema.relations import Neighbour, RelationVerdict
from tests.unit.methods.reconciling import ANA, JULY, JUNE, MAY, said

DAY = timedelta(days=1)


def neighbour(text: str = "I live in Porto.", **details: Any) -> Neighbour:
    origin = {"candidate_id": "c", "receipt_id": "r", "said_by": "user", "said_at": MAY}
    origin |= {name: details.pop(name) for name in Provenance.model_fields if name in details}
    given: dict[str, Any] = {"namespace": ANA, "key": text, "text": text, "said_at": MAY}
    provenance = Provenance.model_validate(origin)
    return Neighbour.model_validate({**given, "provenance": provenance, **details})


def ruling(
    relation: Any,
    *,
    certain: bool = True,
    assertion: Any = "plain",
    candidate: Any = None,
    spoken: SpokenAt | None = None,
    **details: Any,
) -> NeighbourRuling:
    one = candidate or said("I live in Lisbon.")
    near = neighbour(**details)
    mine = SpokenAt(said_at=one.said_at, assumed_at=JULY)
    verdict = RelationVerdict(key=near.key, relation=relation, certain=certain, reason="moved")
    times = (mine, spoken or SpokenAt(said_at=near.said_at))
    return rule_on_neighbour(one, near, verdict, assertion=assertion, times=times)


@pytest.mark.parametrize(
    ("relation", "action"),
    [
        ("duplicate", "confirm"),
        ("refines", "store_detail"),
        ("supersedes", "supersede"),
        ("contradicts", "conflict"),
        ("coexists", "store"),
    ],
)
def test_a_certain_relation_between_words_of_one_speaker(
    relation: RelationKey, action: str
) -> None:
    assert ruling(relation).action == action


@pytest.mark.parametrize("said_by", ["document", "tool", "assistant", "unknown"])
@pytest.mark.parametrize("relation", ["duplicate", "refines", "supersedes", "contradicts"])
def test_another_author_changes_nothing(relation: RelationKey, said_by: str) -> None:
    by_other = ruling(relation, candidate=said("Ana lives in Lisbon.", said_by=said_by))
    assert (by_other.row, by_other.action) == ("other-author", "store")


@pytest.mark.parametrize("said_by", ["document", "tool", "assistant", "unknown"])
@pytest.mark.parametrize("relation", ["supersedes", "contradicts"])
def test_the_user_corrects_what_another_author_said(relation: RelationKey, said_by: str) -> None:
    assert ruling(relation, said_by=said_by).action == "supersede"
    assert ruling(relation, said_by=said_by, certain=False).action == "conflict"
    assert ruling(relation, said_by=said_by, assertion="doubtful").action == "store"
    later = SpokenAt(said_at=JULY)
    assert ruling(relation, said_by=said_by, spoken=later).action == "store"
    same = SpokenAt(said_at=JUNE)
    assert ruling(relation, said_by=said_by, spoken=same).action == "conflict"


@pytest.mark.parametrize("relation", ["duplicate", "refines"])
def test_the_users_words_do_not_confirm_another_author(relation: RelationKey) -> None:
    assert ruling(relation, said_by="document").action == "store"


def test_another_speaker_is_another_author() -> None:
    ben = said("I live in Lisbon.", speaker="Ben")
    assert authors_of(ben, neighbour(speaker="Ana")) == "candidate_other"
    assert authors_of(ben, neighbour(speaker="ben ")) == "same"
    assert authors_of(ben, neighbour()) == "same"


@pytest.mark.parametrize("assertion", ["temporary", "doubtful"])
def test_an_exception_or_a_doubt_changes_nothing(assertion: str) -> None:
    assert ruling("supersedes", assertion=assertion).row == "qualified"


def test_a_plan_changes_nothing() -> None:
    near, plan = neighbour(), SpokenAt(event_at=JULY, said_at=JUNE)
    verdict = RelationVerdict(key=near.key, relation="supersedes", certain=True)
    times = (plan, SpokenAt(said_at=MAY))
    one = rule_on_neighbour(said("x"), near, verdict, assertion="plain", times=times)
    assert (one.sureness, one.action) == ("qualified", "store")


LATER: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("said later", {"said_at": JUNE}, {"said_at": MAY}, "candidate"),
    ("said earlier", {"said_at": MAY}, {"said_at": JUNE}, "stored"),
    ("at once", {"said_at": MAY}, {"said_at": MAY}, "unknown"),
    ("no times", {"assumed_at": JULY}, {"assumed_at": JUNE}, "candidate"),
    ("a late import", {"said_at": MAY, "assumed_at": JULY}, {"assumed_at": JUNE}, "stored"),
    ("order of turns", {"position": 1, "assumed_at": JULY}, {"position": 4}, "stored"),
    ("one turn", {"position": 4, "assumed_at": JULY}, {"position": 4}, "unknown"),
    ("events", {"event_at": MAY, "said_at": JULY}, {"event_at": JUNE, "said_at": JUNE}, "stored"),
    # Told today, of a time before the other statement: it may have changed back since.
    ("an old event", {"event_at": MAY - 40 * DAY, "said_at": JULY}, {"said_at": MAY}, "unknown"),
    ("this month", {"event_at": MAY - 20 * DAY, "said_at": JULY}, {"said_at": MAY}, "candidate"),
    ("imported", {"event_at": MAY - 40 * DAY, "assumed_at": JULY}, {"said_at": MAY}, "stored"),
    (
        "old stored event",
        {"said_at": JUNE},
        {"event_at": MAY - 400 * DAY, "said_at": MAY},
        "candidate",
    ),
]


@pytest.mark.parametrize(
    ("candidate", "stored", "later"), [case[1:] for case in LATER], ids=[case[0] for case in LATER]
)
def test_which_is_later(candidate: Any, stored: Any, later: str) -> None:
    assert later_side(SpokenAt(**candidate), SpokenAt(**stored)) == later


def test_a_late_import_takes_its_place_in_the_chain() -> None:
    """Porto (May), Berlin (June), Lisbon (July); Berlin arrives last."""
    porto = ruling(
        "supersedes",
        text="Porto",
        lifecycle=Lifecycle(superseded_by="Lisbon", ended_as="superseded"),
        candidate=said("Berlin", said_at=JUNE),
    )
    lisbon = ruling(
        "supersedes",
        text="Lisbon",
        said_at=JULY,
        spoken=SpokenAt(said_at=JULY),
        candidate=said("Berlin", said_at=JUNE),
    )
    plan = combine([lisbon, porto], on_conflict="both")
    assert plan.successor == lisbon
    assert plan.superseded == (porto,)
    spoken = SpokenAt(said_at=JUNE)
    lifecycle = lifecycle_after(plan, spoken=spoken)
    assert (lifecycle.superseded_by, lifecycle.valid_until) == ("Lisbon", JULY)
    (change,) = changes_of(plan, said("Berlin"), key="Berlin", spoken=spoken)
    assert (change.key, change.after.superseded_by, change.after.valid_until) == (
        "Porto",
        "Berlin",
        JUNE,
    )


def test_a_repeat_of_one_and_correction_of_another() -> None:
    porto = ruling("supersedes", text="I live in Porto.")
    lisbon = ruling("duplicate", text="My home is Lisbon.")
    plan = combine([porto, lisbon], on_conflict="both")
    assert (plan.outcome, plan.confirmed, plan.superseded) == ("confirm", lisbon, (porto,))
    changes = changes_of(plan, said("x"), key="new", spoken=SpokenAt(said_at=JUNE))
    assert {change.key: change.after.superseded_by for change in changes} == {
        "I live in Porto.": "My home is Lisbon.",
        "My home is Lisbon.": "",
    }


def test_several_restatements_are_all_replaced() -> None:
    both = [ruling("supersedes", text=text) for text in ("I live in Porto.", "Home is Porto.")]
    plan = combine(both, on_conflict="both")
    assert plan.superseded == tuple(both)


def test_a_conflict_is_held_if_a_person_decides() -> None:
    both = [ruling("supersedes", text="Porto"), ruling("contradicts", text="Rome")]
    assert combine(both, on_conflict="both").outcome == "store"
    plan = combine(both, on_conflict="hold")
    assert plan.outcome == "hold"
    assert changes_of(plan, said("x"), key="new", spoken=SpokenAt()) == ()


def test_the_sentence_on_the_receipt() -> None:
    assert explain(combine([ruling("supersedes")], on_conflict="both")) == (
        'superseded "I live in Porto." (said 2026-05-01): moved'
    )


def test_a_turn_that_was_counted_does_not_confirm_again() -> None:
    near = neighbour(conversation_id="talk", turn_ids=("t1",))
    again = said("I live in Porto.", conversation_id="talk")
    assert confirm(near, again, at=JUNE) is None
    other = confirm(near, said("I live in Porto.", conversation_id="other"), at=JUNE)
    assert other is not None
    assert (other.after.confirmed_at, other.after.confirmed_by) == (JUNE, ("other:t1",))


def test_an_earlier_repeat_does_not_turn_the_clock_back() -> None:
    near = neighbour(lifecycle=Lifecycle(confirmed_at=JULY))
    change = confirm(near, said("I live in Porto.", conversation_id="other"), at=JUNE)
    assert change is not None
    assert change.after.confirmed_at == JULY
    near = neighbour(said_at=JULY)
    near = near.model_copy(update={"said_at": JULY})
    change = confirm(near, said("I live in Porto.", conversation_id="other"), at=JUNE)
    assert change is not None
    assert (change.after.confirmed_at, change.after.confirmed_by) == (None, ("other:t1",))
