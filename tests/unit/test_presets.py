"""Presets by name, wherever a method is chosen."""

from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from memguard import ConsistencyGate, Writer, create_write_guard, create_writer_graph
from memguard.errors import ConfigurationError, InvalidInputError
from memguard.methods.consistency_gate.config import CONSISTENCY_GATE_PRESETS
from memguard.presets import (
    ADMISSION_PRESETS,
    GATE_PRESETS,
    choose_admission,
    choose_gates,
    choose_writer,
)
from memguard.read.admission import BY_NAME as ADMISSIONS
from memguard.testing import ScriptedChatModel
from memguard.write.gates import BY_NAME as GATES


def test_the_paper_is_a_preset_of_every_method() -> None:
    for gates in (["consistency"], ["conmem"], ["consistency", "conmem"]):
        assert len(choose_gates(gates, presets=["paper"])) == len(gates)
    for name in ADMISSION_PRESETS:
        assert choose_admission(name, presets=["paper"]) == ADMISSION_PRESETS[name]["paper"]
    assert choose_writer(["paper"]) == Writer.preset("paper")
    with pytest.raises(InvalidInputError, match="'default', 'paper'"):
        choose_writer(["best"])


def test_the_gates_presets_are_the_papers_settings() -> None:
    assert list(CONSISTENCY_GATE_PRESETS) == ["recommended", "adaptive", "fast", "paper", "small"]
    paper = ConsistencyGate.preset("paper")
    assert (paper.k, paper.tau, paper.threshold) == (5, 0.7, "fixed")
    assert (paper.prompts, paper.early_stop, paper.local_first) == ("paper", False, False)


def test_a_small_model_is_asked_the_short_question() -> None:
    small = ConsistencyGate.preset("small")
    assert (small.variant, small.prompts, small.tau) == ("logprob", "paper", 0.7)


def test_a_name_may_have_a_preset() -> None:
    for method, presets in GATE_PRESETS.items():
        for name, spec in presets.items():
            assert GATES[f"{method}:{name}"] == spec
    for method in ("ps", "fc"):
        assert ADMISSIONS[f"{method}:paper"] == ADMISSION_PRESETS[method]["paper"]
    guard: Any = create_write_guard(
        ScriptedChatModel(), store=InMemoryStore(), gates=["consistency:paper", "conmem:paper"]
    )
    assert guard is not None
    best: Any = ["consistency:best"]
    with pytest.raises(ConfigurationError, match="consistency:paper"):
        create_write_guard(ScriptedChatModel(), gates=best)


def test_the_papers_judge_is_asked_for_all_samples_in_one_message() -> None:
    model = ScriptedChatModel(["1.0"] * 5)
    store = InMemoryStore()
    guard = create_write_guard(
        model, store=store, namespace=("m",), gates=["consistency:paper"], writer=Writer()
    )
    writes = guard.invoke({"messages": [("user", "I row.")], "candidates": ["The user rows."]})
    assert writes["writes"].counts["stored"] == 1
    assert len(model.calls) == 5
    (message,) = model.calls[0].messages
    assert message.type == "human"
    assert str(message.content).startswith("You are a fact-checking assistant.")


@pytest.mark.parametrize(
    "answer",
    [
        '["Ana rows.", "Ana lives in Porto."]',
        'Here:\n```json\n["Ana rows.", "Ana lives in Porto."]\n```',
        '<think>a list [1]</think>["Ana rows.", "Ana lives in Porto."]',
        '{"facts": [{"text": "Ana rows."}, {"text": "Ana lives in Porto."}]}',
    ],
)
def test_the_papers_writer_answers_with_a_list_of_sentences(answer: str) -> None:
    model = ScriptedChatModel([answer])
    writer = create_writer_graph(model, spec=Writer.preset("paper"))
    result = writer.invoke({"conversation": [("user", "I row, and I live in Porto.")]})
    assert [candidate.text for candidate in result["candidates"]] == [
        "Ana rows.",
        "Ana lives in Porto.",
    ]
    # The prompt asks for no turns, so they are not known.
    assert {candidate.said_by for candidate in result["candidates"]} == {"unknown"}


def test_an_answer_without_a_list_is_repaired_once() -> None:
    model = ScriptedChatModel(["I found nothing.", '{"facts": []}'])
    writer = create_writer_graph(model, spec=Writer.preset("paper"))
    assert writer.invoke({"conversation": [("user", "Hi.")]})["unread"] == ()
    assert len(model.calls) == 2
