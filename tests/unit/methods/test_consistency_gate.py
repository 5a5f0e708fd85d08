"""ConsistencyGate as a graph, with a judge that follows a script."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from memguard import ConsistencyGate, create_consistency_gate_graph
from memguard.errors import ConfigurationError, ErrorCode, JudgeError
from memguard.prompts import parse_prompt
from memguard.testing import ScriptedChatModel
from tests.cases import case_input

SOURCE = "I am vegetarian since 2019."


def ask_gate(steps: Sequence[Any], *, spec: ConsistencyGate, **given: Any) -> dict[str, Any]:
    model = ScriptedChatModel(steps)
    gate: Any = create_consistency_gate_graph(model, spec=spec)
    result = gate.invoke({"candidate": "The user is vegetarian.", "context": SOURCE, **given})
    result["model"] = model
    return result


def test_a_supported_candidate_is_admitted_with_its_reason() -> None:
    answer = '{"reason": "the user says so", "turns": [1], "score": 0.9}'
    result = ask_gate([answer] * 3, spec=ConsistencyGate(k=3, early_stop=False))
    decision = result["decision"]
    assert (decision.outcome, decision.reason) == ("admit", "supported")
    assert decision.explanation == "support 0.90 >= 0.70 over 3 samples: the user says so"
    evidence = result["report"].evidence
    assert evidence["score"] == pytest.approx(0.9)
    assert evidence["decided_by"] == [{"turn": "1", "role": "user", "speaker": ""}]
    assert result["receipt"].usage.calls == 3
    assert result["receipt"].reports == (result["report"],)
    result["model"].assert_consumed()


def test_a_refused_candidate_does_not_get_the_last_judgement_of_its_thread() -> None:
    gate: Any = create_consistency_gate_graph(ScriptedChatModel(["1"]), spec=ConsistencyGate(k=1))
    gate.checkpointer = InMemorySaver()
    thread: RunnableConfig = {"configurable": {"thread_id": "t"}}
    gate.invoke({"candidate": "The user is vegetarian.", "context": SOURCE}, thread)
    result = gate.invoke({"candidate": " ", "context": SOURCE}, thread)
    assert (result["decision"].outcome, result["decision"].reason) == ("reject", "blank_text")
    assert result["report"].usage.calls == 0
    assert result["report"].context == ()


def test_every_setting_is_on_the_receipt() -> None:
    report = ask_gate(["1"], spec=ConsistencyGate(k=1))["report"]
    assert report.spec == ConsistencyGate(k=1).model_dump(mode="json")
    assert report.models["judge"].startswith("scripted")
    assert [stamp.name for stamp in report.prompts] == ["consistency_gate/support"]
    assert report.evidence["temperature"] == 0.0


def test_the_sampling_temperature_is_sent() -> None:
    model = ask_gate(["1"] * 5, spec=ConsistencyGate(early_stop=False))["model"]
    assert {call.kwargs.get("temperature") for call in model.calls} == {0.7}


def test_a01_what_the_assistant_suggested_is_not_the_users() -> None:
    given = case_input("A-01")
    spec = ConsistencyGate(k=given["config"]["K"], tau=given["config"]["tau"], early_stop=False)
    for candidate, scores in zip(given["candidates"], given["scripted_support"], strict=True):
        model = ScriptedChatModel(scores)
        result = create_consistency_gate_graph(model, spec=spec).invoke(
            {"candidate": candidate["text"], "context": given["conversation"]}
        )
        admitted = result["decision"].outcome == "admit"
        assert admitted == (candidate["want"] == "store")
        if not model.calls:
            # Most of its words are the assistant's alone: held before the judge is asked.
            assert result["decision"].reason == "no_user_words"
            continue
        shown = str(model.calls[0].messages[-1].content)
        for number, turn in enumerate(given["conversation"], start=1):
            assert shown.count(f"[{number}] {turn['role']}: ") == 1
            assert shown.count(turn["content"]) == 1


@pytest.mark.parametrize("index", range(5))
def test_f03_failed_samples_are_dropped_and_counted(index: int) -> None:
    given = case_input("F-03")
    row = given["rows"][index]
    k = row.get("K", given["config"]["K"])
    failures = {"<HTTP 500>": RuntimeError("HTTP 500"), "<timeout>": TimeoutError("slow")}
    steps: list[Any] = [failures.get(text, text) for text in row["outputs"]]
    model = ScriptedChatModel(steps)
    spec = ConsistencyGate(k=k, tau=given["config"]["tau"], early_stop=False)
    gate: Any = create_consistency_gate_graph(_once(model), spec=spec)
    result = gate.invoke({"candidate": "The user is vegetarian.", "context": SOURCE})
    want = row["want"]
    outcome = {"store": "admit", "reject": "reject"}.get(want["decision"], "quarantine")
    assert result["decision"].outcome == outcome
    evidence = result["report"].evidence
    assert evidence["usable"] == want.get("n_valid", k)
    if "mean" in want:
        assert evidence["score"] == pytest.approx(want["mean"], abs=1e-6)
    if outcome == "quarantine":
        assert result["decision"].reason == "inconclusive"
        failed = [s for s in evidence["samples"] if "inconclusive" in s]
        assert len(failed) == k - want["n_valid"]


def _once(model: ScriptedChatModel) -> Any:
    from memguard import resolve_model

    return resolve_model(model, max_attempts=1)


def test_b01_the_judge_sees_the_date_of_the_turn_in_its_own_offset() -> None:
    given = case_input("B-01")
    for at in (given["conversation_time"], "2025-12-31T22:40:00-05:00"):
        model = ScriptedChatModel(["1"])
        turns = [{**turn, "at": at} for turn in given["conversation"]]
        create_consistency_gate_graph(model, spec=ConsistencyGate(k=1)).invoke(
            {"candidate": given["candidates"][0]["text"], "context": turns}
        )
        shown = str(model.calls[0].messages[-1].content)
        assert f"{at[:10]} 22:40-05:00" in shown


MARKERS = re.compile(r"</?(?:source|memory)>")


def test_h01_no_text_adds_or_closes_a_marker() -> None:
    given = case_input("H-01")
    harmless = _shown_prompt("The user likes chess.", [{"role": "user", "content": "I like it."}])
    hostile = [*given["candidates"], "</memory>", "<memory>", f"{harmless}\n{harmless}"]
    for candidate in hostile:
        shown = _shown_prompt(candidate, given["conversation"])
        assert MARKERS.findall(shown) == MARKERS.findall(harmless)
        assert len(shown.splitlines()) == len(harmless.splitlines())
        assert "<memory-context>" not in shown


def _shown_prompt(candidate: str, conversation: Any) -> str:
    model = ScriptedChatModel(["0"])
    create_consistency_gate_graph(model, spec=ConsistencyGate(k=1)).invoke(
        {"candidate": candidate, "context": conversation}
    )
    return str(model.calls[0].messages[-1].content)


@pytest.mark.parametrize("index", range(3))
def test_h02_a_quoted_verdict_is_not_the_judges(index: int) -> None:
    given = case_input("H-02")
    model = ScriptedChatModel([given["scripted_judge"][index]])
    result = create_consistency_gate_graph(model, spec=ConsistencyGate(k=1)).invoke(
        {"candidate": given["candidates"][0]["text"], "context": given["conversation"]}
    )
    assert result["decision"].outcome != "admit"
    assert result["report"].evidence["score"] in {None, 0.05, 0.1, 0.0}


@pytest.mark.parametrize(
    ("candidate", "context", "reason"),
    [
        (" \u200b", SOURCE, "blank_text"),
        ("The user paints.", [], "no_source"),
        ("The user paints.", [{"role": "user", "content": " \n"}], "no_source"),
        ("The user paints.", [{"role": "system", "content": "Paint."}], "no_source"),
    ],
)
def test_e01_what_cannot_be_judged_costs_no_call(candidate: str, context: Any, reason: str) -> None:
    result = ask_gate([], spec=ConsistencyGate(), candidate=candidate, context=context)
    assert result["decision"].outcome == "reject"
    assert result["decision"].reason == reason
    assert result["model"].calls == []


@pytest.mark.parametrize(
    ("setting", "outcome"), [("quarantine", "quarantine"), ("reject", "reject"), ("admit", "admit")]
)
def test_policy_decides_what_inconclusive_means(setting: Any, outcome: str) -> None:
    spec = ConsistencyGate(k=1, on_inconclusive=setting)
    decision = ask_gate(["no idea"], spec=spec)["decision"]
    assert (decision.outcome, decision.reason) == (outcome, "inconclusive")
    assert decision.explanation == "not judged: 0 of 1 sample usable: 1 x parse_failure"


def test_inconclusive_can_raise() -> None:
    with pytest.raises(JudgeError) as caught:
        ask_gate(["no idea"], spec=ConsistencyGate(k=1, on_inconclusive="raise"))
    assert caught.value.code == ErrorCode.JUDGE_INCONCLUSIVE


async def test_memory_as_context_reads_exactly_its_namespace() -> None:
    store = InMemoryStore()
    store.put(("m", "ana"), "1", {"content": "The user is a vegetarian."})
    store.put(("m", "ana", "work"), "2", {"content": "SECRET of another scope"})
    model = ScriptedChatModel(["1"])
    spec = ConsistencyGate(k=1, context="memory")
    gate: Any = create_consistency_gate_graph(model, spec=spec, store=store)
    candidate = {"text": "The user is vegetarian.", "namespace": ("m", "ana")}
    result = await gate.ainvoke({"candidate": candidate, "context": "not shown"})
    shown = str(model.calls[0].messages[-1].content)
    assert "The user is a vegetarian." in shown
    assert "SECRET" not in shown
    assert "not shown" not in shown
    assert result["decision"].outcome == "admit"


async def test_the_adaptive_threshold_counts_the_namespace() -> None:
    store = InMemoryStore()
    for n in range(5):
        store.put(("m",), str(n), {"content": f"Fact {n}."})
    spec = ConsistencyGate(k=1, threshold="adaptive", capacity=10)
    gate: Any = create_consistency_gate_graph(ScriptedChatModel(["0.59"]), spec=spec, store=store)
    candidate = {"text": "The user is vegetarian.", "namespace": ("m",)}
    result = await gate.ainvoke({"candidate": candidate, "context": SOURCE})
    assert result["report"].evidence["tau"] == pytest.approx(0.6)
    assert result["report"].evidence["occupancy"] == 5
    assert result["decision"].outcome == "reject"


def test_a_gate_that_needs_a_store_says_so() -> None:
    with pytest.raises(ConfigurationError) as caught:
        ask_gate([], spec=ConsistencyGate(context="memory"))
    assert caught.value.code == ErrorCode.STORE_MISSING


def test_a_prompt_of_ones_own_is_checked_when_the_graph_is_made() -> None:
    text = "---\nversion: 7\nslots: source memory\n---\nJudge.\n---user---\n{{source}} {{memory}}"
    prompt = parse_prompt(text, name="mine")
    model = ScriptedChatModel(["1"])
    gate: Any = create_consistency_gate_graph(model, spec=ConsistencyGate(k=1), prompt=prompt)
    report = gate.invoke({"candidate": "x y", "context": SOURCE})["report"]
    assert report.prompts[0].version == "7"
    with pytest.raises(ConfigurationError) as caught:
        parse_prompt(text.replace("{{memory}}", ""), name="mine")
    assert caught.value.code == ErrorCode.PROMPT_SLOTS


def test_bad_input_names_the_field() -> None:
    with pytest.raises(Exception, match="candidate"):
        ask_gate([], spec=ConsistencyGate(), candidate=5)
