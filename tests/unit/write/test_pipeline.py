"""The gates of a guard as one graph: names, drawing, streams, order, broken gates."""

import asyncio
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore

from memguard import ConMem, ConsistencyGate, create_write_guard, guard_store
from memguard.errors import ConfigurationError, ErrorCode
from memguard.llm.models import resolve_stages
from memguard.methods.consistency_gate.judges import GateInput, GateOutput
from memguard.schema.base import is_blank
from memguard.schema.memory import CandidateMemory, Conversation, Turn, record_key
from memguard.store_guard.store import GuardedStore
from memguard.testing import ScriptedChatModel, UnexpectedModelCallError
from memguard.testing.conmem import ConMemScript
from memguard.write.gates import ADMITTED, Gate, Pipeline, build_gates
from memguard.write.proposals import merge_repeats
from memguard.write.state import Proposal
from tests.unit.write.scripts import JUDGES, scripted

NAMESPACE = ("memories", "ana")
TALK = [("user", "I row.")]
FACT = "The user rows."
GATES = [ConsistencyGate(k=1), ConMem(preset="paper")]


def model() -> ScriptedChatModel:
    effect = ConMemScript({"relevant": "helpful"})
    return ScriptedChatModel(rules=[(JUDGES, "0.9"), ("", effect)])


def guard_of(gates: Any, **settings: Any) -> Any:
    return create_write_guard(
        settings.pop("model", None) or model(),
        store=InMemoryStore(),
        namespace=NAMESPACE,
        gates=gates,
        **settings,
    )


def graph_that(returns: dict[str, Any], *, name: str = "own") -> Any:
    builder: Any = StateGraph(GateInput, input_schema=GateInput, output_schema=GateOutput)

    async def rule(state: GateInput) -> dict[str, Any]:
        del state
        return returns

    builder.add_node("rule", rule)
    builder.add_edge(START, "rule")
    return builder.compile(name=name)


def test_every_gate_is_a_subgraph_under_its_own_name() -> None:
    guard = guard_of(GATES)
    names = {name for name, _ in guard.get_subgraphs(recurse=True)}
    assert {"gates", "gates|consistency_gate", "gates|conmem"} <= names
    drawing = guard.get_graph(xray=True).draw_mermaid()
    assert "subgraph consistency_gate" in drawing
    assert "subgraph conmem" in drawing
    assert f"&nbsp;{ADMITTED}&nbsp;" in drawing


def test_a_single_gate_is_drawn_by_its_name() -> None:
    drawing = guard_of(["consistency"]).get_graph(xray=True).draw_mermaid()
    assert "subgraph gates" in drawing
    assert "subgraph consistency_gate" in drawing


async def test_streams_of_subgraphs_name_every_gate() -> None:
    namespaces: set[tuple[str, ...]] = set()
    events: list[tuple[tuple[str, ...], dict[str, Any]]] = []
    async for namespace, mode, chunk in guard_of(GATES).astream(
        {"messages": TALK, "candidates": [FACT]},
        stream_mode=["updates", "custom"],
        subgraphs=True,
    ):
        names = tuple(part.partition(":")[0] for part in namespace)
        namespaces.add(names)
        if mode == "custom":
            events.append((names, chunk))
    assert {("gates",), ("gates", "consistency_gate"), ("gates", "conmem")} <= namespaces
    assert ("gates", "conmem") in {names for names, event in events if "step" in event}


def test_two_gates_of_one_method_and_awkward_names_are_told_apart() -> None:
    ruling = {}
    guard = guard_of(
        [
            ConsistencyGate(k=1),
            ConsistencyGate(k=3),
            graph_that(ruling, name="report"),
            graph_that(ruling, name="a:b|c"),
            graph_that(ruling, name="My gate"),
        ]
    )
    names = {name.partition("|")[2] for name, _ in guard.get_subgraphs(recurse=True)}
    assert {"consistency_gate", "consistency_gate_2", "report_gate", "a_b_c", "My gate"} <= names


def test_a_store_runs_the_gates_by_the_same_graph() -> None:
    store = guard_store(InMemoryStore(), model=model(), gates=GATES, source="I row.")
    assert isinstance(store, GuardedStore)
    store.put(NAMESPACE, "k", {"content": FACT})
    (receipt,) = store.receipts.list().receipts
    assert [report.method for report in receipt.reports] == ["consistency_gate", "conmem"]
    assert store.get(NAMESPACE, "k") is not None


@pytest.mark.parametrize("first", [True, False])
def test_a_gate_that_returns_no_decision_admits_nothing(first: bool) -> None:
    broken = graph_that({}, name="broken")
    gates = [broken, ConsistencyGate(k=1)] if first else [ConsistencyGate(k=1), broken]
    store = InMemoryStore()
    guard = create_write_guard(model(), store=store, namespace=NAMESPACE, gates=gates)
    with pytest.raises(ConfigurationError, match="'broken' returned no decision") as caught:
        guard.invoke({"messages": TALK, "candidates": [FACT]})
    assert caught.value.code == ErrorCode.SPEC_INVALID
    assert not store.search(NAMESPACE)


async def test_reports_before_an_error_are_kept() -> None:
    first, second = guard_gates([ConsistencyGate(k=1), graph_that({}, name="broken")])
    pipeline = Pipeline([first, second])
    judgement = await pipeline.judge(
        CandidateMemory(text=FACT), source=conversation(["I row."]), run_id="r"
    )
    assert judgement.decision is None
    assert isinstance(judgement.error, ConfigurationError)
    assert [report.method for report in judgement.reports][:1] == ["consistency_gate"]


def guard_gates(gates: Any) -> tuple[Gate, ...]:
    return build_gates(gates, models=resolve_stages(model(), None), store=None, prompts={})


def test_no_receipt_is_made_inside_a_guard() -> None:
    for gate in guard_gates(GATES):
        output = gate.graph.invoke({"candidate": FACT, "context": "I row."})
        assert {"decision", "report"} <= set(output)
        assert "receipt" not in output


def test_a_model_for_one_stage_serves_no_other() -> None:
    with pytest.raises(ConfigurationError, match="'writer' needs a model") as caught:
        create_write_guard(store=InMemoryStore(), models={"judge": scripted()})
    assert caught.value.code == ErrorCode.MODEL_MISSING
    with pytest.raises(ConfigurationError, match="'judge' needs a model"):
        create_write_guard(store=InMemoryStore(), models={"writer": scripted()})
    with pytest.raises(ConfigurationError, match="'probe' needs a model"):
        guard_store(InMemoryStore(), gates=[ConMem()], models={"judge": scripted()})
    create_write_guard(store=InMemoryStore(), models={"writer": scripted(), "judge": scripted()})


def test_a_call_that_is_not_in_the_script_fails_the_test_through_a_whole_guard() -> None:
    guard = guard_of([ConsistencyGate(k=1)], model=ScriptedChatModel(), on_failure="report")
    with pytest.raises(UnexpectedModelCallError):
        guard.invoke({"messages": TALK, "candidates": [FACT]})
    with pytest.raises(UnexpectedModelCallError):
        asyncio.run(guard.ainvoke({"messages": TALK, "candidates": [FACT]}))


# -- repeats ----------------------------------------------------------------------------------


def conversation(contents: list[str]) -> Conversation:
    turns = tuple(Turn(id=text, role="user", content=text) for text in contents)
    return Conversation(turns=turns, id="c")


TURN_IDS = st.lists(st.sampled_from("abcdef"), unique=True, max_size=4)


def proposal(text: str, turn_ids: list[str], others: list[str]) -> Proposal:
    contents = list(dict.fromkeys([*turn_ids, *others]))
    return Proposal(
        candidate=CandidateMemory(text=text, turn_ids=tuple(turn_ids)),
        source=conversation(contents),
    )


TEXTS = st.sampled_from(["I row.", "I  row", "I sail.", "", " "])
PROPOSALS = st.lists(st.builds(proposal, TEXTS, TURN_IDS, TURN_IDS), max_size=8)


@given(PROPOSALS, st.randoms(use_true_random=False))
def test_repeats_are_merged_with_all_their_turns_and_sources(
    proposals: list[Proposal], random: Random
) -> None:
    talk = conversation(list("abcdef"))
    merged = merge_repeats(proposals, conversation=talk)
    texts = [p for p in proposals if not is_blank(p.candidate.text)]
    keys = [record_key(p.candidate.text) for p in texts]
    results = [p for p in merged if not is_blank(p.candidate.text)]
    assert [record_key(p.candidate.text) for p in results] == list(dict.fromkeys(keys))
    assert len(merged) - len(results) == len(proposals) - len(texts)
    for result in results:
        key = record_key(result.candidate.text)
        same = list(dict.fromkeys(p for p, k in zip(texts, keys, strict=True) if k == key))
        if len(same) == 1:
            assert result == same[0]
            continue
        # In the order of the conversation, complete, and without duplicates.
        assert result.candidate.text in {p.candidate.text for p in same}
        turn_ids = {turn_id for p in same for turn_id in p.candidate.turn_ids}
        assert list(result.candidate.turn_ids) == sorted(turn_ids)
        shown = {turn.id for p in same for turn in p.source.turns}
        assert [turn.id for turn in result.source.turns] == sorted(shown)
    assert merge_repeats(merged, conversation=talk) == merged
    # A resumed run has the passes in another order and must know the candidates again.
    distinct = [p for p in proposals if p.candidate.turn_ids and p.candidate.text == "I row."]
    again = random.sample(distinct, len(distinct))
    assert [p.candidate.id for p in merge_repeats(distinct, conversation=talk)] == [
        p.candidate.id for p in merge_repeats(again, conversation=talk)
    ]


def test_a_repeat_is_judged_on_the_stronger_source_too() -> None:
    """The same text is drawn from two passes; only the second one's turns support it."""
    strong = "I row every Sunday."
    prompts: list[str] = []

    def judge(messages: Any) -> str:
        prompts.append(str(messages[-1].content))
        return "0.9" if strong in prompts[-1] else "0.1"

    turns = [Turn(id=str(n), role="user", content=f"Filler {n}.") for n in range(30)]
    talk = Conversation(turns=(*turns, Turn(id="strong", role="user", content=strong)), id="c")
    guard = guard_of([ConsistencyGate(k=1)], model=ScriptedChatModel(rules=[(JUDGES, judge)]))
    candidates = [
        CandidateMemory(text=FACT, turn_ids=("0",)),
        CandidateMemory(text=FACT, turn_ids=("strong",)),
    ]
    writes = guard.invoke({"conversation": talk, "candidates": candidates})["writes"]
    (receipt,) = writes.receipts
    assert receipt.outcome == "stored"
    assert receipt.candidate.turn_ids == ("0", "strong")
    assert len(prompts) == 1
