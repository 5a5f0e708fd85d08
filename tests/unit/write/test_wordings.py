"""A second wording of one fact within a run is merged, or reported as a near repeat."""

from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from memguard import ConsistencyGate, create_write_guard
from memguard.schema.memory import CandidateMemory, Conversation
from memguard.write.proposals import merge_repeats, near_repeats
from memguard.write.state import Proposal
from tests.unit.write.scripts import JUDGES, calls_of, scripted


def proposals(*texts: str, turns: tuple[str, ...] = ("1",)) -> list[Proposal]:
    return [
        Proposal(candidate=CandidateMemory(text=text, turn_ids=turns), source=Conversation())
        for text in texts
    ]


def merged(*texts: str, turns: tuple[str, ...] = ("1",)) -> list[str]:
    given = proposals(*texts, turns=turns)
    return [p.candidate.text for p in merge_repeats(given, conversation=Conversation())]


@pytest.mark.parametrize(
    "second", ["User lives in Porto", "the user lives in porto!", "The user lives in the Porto."]
)
def test_the_same_words_of_the_same_turn_are_one_candidate(second: str) -> None:
    assert merged("The user lives in Porto.", second) == ["The user lives in Porto."]
    # Without turns, or of other turns, they may be two facts.
    assert len(merged("The user lives in Porto.", second, turns=())) == 2


@pytest.mark.parametrize(
    "second",
    [
        "Porto lives in the user.",
        "The user does not live in Porto.",
        "The user lives in Porto 2.",
        "The user's -5 lives in Porto.",
    ],
)
def test_other_words_stay_two_candidates(second: str) -> None:
    assert len(merged("The user lives in Porto.", second)) == 2


def test_nearly_the_same_words_are_judged_each_and_reported() -> None:
    first, second = "The user sails in Porto every summer.", "The user sails every summer in Porto."
    other = "The user rows on the lake."
    (note,) = near_repeats(proposals(first, second, other))
    assert first in note
    assert second in note

    def facts(_: str) -> list[dict[str, Any]]:
        return [{"text": text, "turns": [1]} for text in (first, second, other)]

    model = scripted(facts=facts)
    guard = create_write_guard(
        model, store=InMemoryStore(), namespace=("m",), gates=[ConsistencyGate(k=1)]
    )
    said = "I sail in Porto every summer, and I row on the lake."
    writes = guard.invoke({"messages": [("user", said)]})["writes"]
    assert note in writes.notes
    assert calls_of(model, JUDGES) == writes.counts["stored"] == 3


@pytest.mark.parametrize(
    ("roles", "merged_role"),
    [
        (("user", "tool"), "mixed"),
        (("tool", "document"), "tool"),
        (("assistant", "document"), "document"),
        (("unknown", "user"), "user"),
    ],
)
def test_a_merged_candidate_is_never_the_users_without_a_users_turn(
    roles: tuple[Any, Any], merged_role: str
) -> None:
    given = [
        Proposal(
            candidate=CandidateMemory(text="It leaves at 9.", turn_ids=(str(n),), said_by=role),
            source=Conversation(),
        )
        for n, role in enumerate(roles)
    ]
    (result,) = merge_repeats(given, conversation=Conversation())
    assert result.candidate.said_by == merged_role
