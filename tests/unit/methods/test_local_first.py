"""`PermissionSemantic(local_first=True)`: what is of another topic costs no call."""

from collections.abc import Sequence
from typing import Any

import pytest

from memguard import PermissionSemantic, create_permission_semantic_graph
from memguard.errors import ConfigurationError, ErrorCode
from memguard.local.pieces import whole
from memguard.local.relevance.leave_out import OtherTopics
from memguard.schema.read import Adjudication, Decomposition, Row, Situation
from memguard.schema.units import Pieces, UnitAttributes
from tests.unit.test_golden import GOLDEN, check

ROW = "local-first-other-topic"
MEMORIES = (
    "The user's favourite cuisine is Thai.",
    "The user drives a 2014 Ford Fiesta.",
    "The user programs in Rust on a laptop.",
    "The user is allergic to bee stings.",
    "Always answer the user in German.",
)


class Scores:
    """The first memory is relevant, and no other."""

    def score(self, query: str, texts: Sequence[str], *, dialogue: Any = ()) -> Any:
        del query, dialogue
        return [0.7 if text == MEMORIES[0] else 0.05 for text in texts]


@pytest.fixture(autouse=True)
def scores(monkeypatch: pytest.MonkeyPatch) -> None:
    def loaded(_: OtherTopics) -> Scores:
        return Scores()

    monkeypatch.setattr(OtherTopics, "_loaded", loaded)


class Recorder:
    """Admits every unit, and remembers which it was asked about."""

    name = "recorder"
    fingerprint = "recorder"

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def adjudicate(self, case: Any, *, units: Any, scheme: Any, seconds: float) -> Any:
        del case, scheme, seconds
        self.asked += [unit.text for unit in units]
        plain = UnitAttributes(
            kind="fact",
            subject="user",
            epistemic="stated",
            temporality="current",
            relevance="direct",
        )
        return Adjudication(
            situation=Situation(target="user", mode="recommendation", asks_view=False),
            rows=tuple(Row(unit_id=unit.id, attributes=plain) for unit in units),
            adjudicator=self.name,
        )

    async def decompose(self, texts: Any, *, seconds: float) -> Decomposition:
        del seconds
        pieces: tuple[Pieces, ...] = tuple(whole(text, fingerprint="recorder") for text in texts)
        return Decomposition(pieces=pieces)


def read(query: str, memories: Any = MEMORIES, *, local_first: bool = True) -> dict[str, Any]:
    recorder = Recorder()
    graph: Any = create_permission_semantic_graph(
        spec=PermissionSemantic(local_first=local_first), adjudicator=recorder, decomposer=recorder
    )
    output = graph.invoke({"query": query, "memories": list(memories)})
    return {**output, "asked": recorder.asked}


def test_other_topics_are_not_asked_about() -> None:
    output = read("Which restaurant should I book for dinner?")
    assert output["asked"] == [MEMORIES[0], MEMORIES[3], MEMORIES[4]]
    left_out = [verdict for verdict in output["withheld"] if verdict.row == ROW]
    assert [verdict.unit.text for verdict in left_out] == [MEMORIES[1], MEMORIES[2]]
    assert all(verdict.attributes is None and not verdict.shown for verdict in left_out)
    saved = output["report"].local_first
    assert saved.unit_ids == tuple(verdict.unit.id for verdict in left_out)
    assert saved.units == 2
    assert saved.tokens > 10
    (note,) = [note for note in output["report"].notes if "before the model was asked" in note]
    assert f"2 of 5 units, about {saved.tokens} tokens" in note
    assert MEMORIES[0] in output["memory_context"]
    assert "Ford" not in output["memory_context"]


@pytest.mark.parametrize(
    "query", ["What do you know about me?", "And tomorrow?", "Hi there", "Tell me a story, please."]
)
def test_an_open_query_is_asked_about_everything(query: str) -> None:
    output = read(query)
    assert len(output["asked"]) == len(MEMORIES)
    assert output["report"].local_first.units == 0


def test_a_read_of_other_topics_alone_costs_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(_: Any, __: str, units: Any, *, dialogue: Any) -> tuple[str, ...]:
        del dialogue
        return tuple(unit.id for unit in units)

    monkeypatch.setattr(OtherTopics, "find", find)
    output = read("Which restaurant should I book for dinner?", MEMORIES[1:3])
    assert output["asked"] == []
    assert output["memory_context"] == ""
    assert {verdict.row for verdict in output["withheld"]} == {ROW}


def test_a_repeat_is_withheld_as_well() -> None:
    output = read("Which restaurant should I book for dinner?", (MEMORIES[0], *MEMORIES[1:2] * 2))
    assert output["asked"] == [MEMORIES[0]]
    assert len(output["withheld"]) == 2


def test_off_by_default() -> None:
    output = read("Which restaurant should I book for dinner?", local_first=False)
    assert len(output["asked"]) == len(MEMORIES)
    assert output["report"].local_first is None
    assert not PermissionSemantic().local_first


def test_without_weights_the_model_is_asked_about_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        msg = "no weights"
        raise ConfigurationError(msg, code=ErrorCode.EMBEDDER_MISSING)

    monkeypatch.setattr(OtherTopics, "find", fail)
    output = read("Which restaurant should I book for dinner?")
    assert len(output["asked"]) == len(MEMORIES)
    assert any("no weights" in note for note in output["report"].notes)


def test_the_drawing_has_the_step() -> None:
    recorder = Recorder()
    graph = create_permission_semantic_graph(
        spec=PermissionSemantic(local_first=True), adjudicator=recorder, decomposer=recorder
    )
    drawn = graph.get_graph(xray=True).draw_mermaid()
    check(GOLDEN / "graphs" / "permission_semantic-local_first.mmd", drawn)
