"""Every gate and admission in every host, and what a drawing or a stream shows of them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from pydantic import SecretStr

from memguard import (
    ConMem,
    ConsistencyGate,
    MemguardMiddleware,
    Recall,
    create_memory_agent,
    create_read_guard,
    create_write_guard,
)
from memguard.errors import ConfigurationError, ErrorCode
from memguard.journal.journal import Journal
from memguard.methods.adjudication.state import ReadInput, ReadOutput, ReadState
from memguard.stores import ChromaStore
from memguard.testing import HashEmbeddings, LoopbackModelServer, ScriptedChatModel
from memguard.testing.conmem import ConMemScript
from tests.unit.read.read_scripts import CUTS, ENTRY, JUDGES, reader
from tests.unit.read.test_read import ANA, filled, guard_of
from tests.unit.write.scripts import JUDGES as SUPPORT
from tests.unit.write.scripts import WRITES, scripted

CONTEXT: dict[str, Any] = {"user_id": "ana"}
TALK: dict[str, Any] = {"messages": [("user", "I own a red boat.")]}
GATES: dict[str, Any] = {
    "by name": ["consistency", "conmem"],
    "by spec": [ConsistencyGate(k=1), ConMem(preset="paper")],
    "alone": [ConMem()],
}


class Everything:
    """One model that writes, judges support, plays ConMem, adjudicates and answers."""

    def __init__(self) -> None:
        self.conmem = ConMemScript({"relevant": "helpful"})
        self._writer, self._reader = scripted(), reader()

    def model(self, **settings: Any) -> ScriptedChatModel:
        return ScriptedChatModel(rules=[("", self.answer)], **settings)

    def answer(self, messages: Any) -> Any:
        text = str(messages[-1].content)
        if WRITES.search(text) or SUPPORT.search(text):
            return self._writer.invoke(messages).content
        if JUDGES.search(text) or CUTS.search(text):
            return self._reader.invoke(messages).content
        if "## Task:" in text or len(messages) > 1:
            return self.conmem(messages)
        return "Noted."


@pytest.fixture
def store() -> Iterator[ChromaStore]:
    with ChromaStore.memory(embed=HashEmbeddings()) as opened:
        yield opened


def host_of(kind: str, model: Any, judge: Any, store: Any, **settings: Any) -> Any:
    if kind == "agent":
        return create_memory_agent(
            model, judge=judge, store=store, receipts=Journal.memory(), **settings
        )
    memory = MemguardMiddleware(judge, receipts=Journal.memory(), **settings)
    return create_agent(model, store=store, middleware=[memory], context_schema=dict)


def writes_of(kind: str, out: Any) -> Any:
    return out["writes"] if kind == "agent" else out["memguard"]["MemguardMiddleware"]["writes"]


@pytest.mark.parametrize("kind", ["agent", "middleware"])
@pytest.mark.parametrize("gates", sorted(GATES))
async def test_every_gate_rules_in_every_host(store: ChromaStore, kind: str, gates: str) -> None:
    everything = Everything()
    host = host_of(
        kind, ScriptedChatModel(["Noted."]), everything.model(), store, gates=GATES[gates]
    )
    out = await host.ainvoke(TALK, context=CONTEXT)
    (receipt,) = writes_of(kind, out).receipts
    *methods, last = [report.method for report in receipt.reports]
    assert last == "reconcile"
    assert methods == (["conmem"] if gates == "alone" else ["consistency_gate", "conmem"])
    assert receipt.outcome == "stored"
    assert everything.conmem.count("probe") == 1


@pytest.mark.parametrize("kind", ["agent", "middleware"])
async def test_models_by_stage_reach_both_guards(store: ChromaStore, kind: str) -> None:
    await store.aput(ANA, "k", {"content": "The user loves red boats."})
    everything = Everything()
    models = {
        "adjudicator": everything.model(model_name="adjudicator"),
        "decomposer": everything.model(model_name="decomposer"),
        "arms": everything.model(model_name="arms"),
        "writer": everything.model(model_name="writer"),
    }
    host = host_of(
        kind,
        ScriptedChatModel(["Noted."]),
        everything.model(model_name="rest"),
        store,
        gates=["conmem"],
        models=models,
        recall=Recall(safety_k=0),
    )
    out = await host.ainvoke(TALK, context=CONTEXT)
    read = out["read"] if kind == "agent" else out["memguard"]["MemguardMiddleware"]["read"]
    assert read.models == {"adjudicator": "scripted:adjudicator"}
    (receipt,) = writes_of(kind, out).receipts
    named = receipt.reports[0].models
    assert (named["arms"], named["quality"]) == ("scripted:arms", "scripted:rest")
    assert models["writer"].calls
    assert models["decomposer"].calls


@pytest.mark.parametrize("kind", ["agent", "middleware"])
async def test_every_admission_is_taken(store: ChromaStore, kind: str) -> None:
    await store.aput(ANA, "k", {"content": "The user loves red boats."})
    for admission, method in (("fc", "factor_compiled"), ("relevance", "relevance_gate")):
        host = host_of(
            kind,
            ScriptedChatModel(["Noted."]),
            reader(base=ENTRY),
            store,
            admission=admission,
            write=False,
        )
        out = await host.ainvoke(TALK, context=CONTEXT)
        read = out["read"] if kind == "agent" else out["memguard"]["MemguardMiddleware"]["read"]
        assert read.method == method


@pytest.mark.parametrize("kind", ["agent", "middleware"])
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"gates": ["conmem"], "write": False}, "`gates` has no effect, because `write` is False"),
        ({"admission": "fc", "read": False}, "`admission` has no effect"),
        ({"recall": Recall(k=3), "read": guard_of("local", None)}, "a guard of your own"),
        ({"models": {"judgge": "local"}}, "'judgge'"),
        ({"prompts": {"x/y": None}}, "'x/y'"),
        ({"gates": ["conmem"]}, "'local' is none|local"),
    ],
)
def test_a_setting_without_effect_is_refused(
    store: ChromaStore, kind: str, settings: Any, words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        host_of(kind, ScriptedChatModel(), "local", store, **settings)


async def test_conmem_over_http_in_an_agent(store: ChromaStore) -> None:
    script = ConMemScript({"relevant": "helpful"})

    def answer(request: Any) -> Any:
        text = str(request["messages"][-1]["content"])
        if WRITES.search(text):
            return json.dumps({"facts": [{"text": "The user owns a boat.", "turns": [1]}]})
        if len(request["messages"]) > 1:
            return script.serve(request)
        return "Noted."

    with LoopbackModelServer(answer) as server:
        model = ChatOpenAI(model="m", base_url=server.url, api_key=SecretStr("sk-test"))
        agent = create_memory_agent(
            model, store=store, receipts=Journal.memory(), gates=["conmem"], read=False
        )
        out = await agent.ainvoke(TALK, context=CONTEXT)
    (receipt,) = out["writes"].receipts
    assert [report.method for report in receipt.reports] == ["conmem", "reconcile"]
    assert receipt.outcome == "stored"


def names_in(graph: Any) -> set[str]:
    return {name for name, _ in graph.get_subgraphs(recurse=True)}


def drawn_in(graph: Any) -> set[str]:
    return set(graph.get_graph(xray=True).nodes)


@pytest.mark.parametrize(
    ("admission", "method", "first"),
    [
        ("ps", "permission_semantic", "decompose"),
        ("fc", "factor_compiled", "adjudicate"),
        ("relevance", "relevance_gate", "gate"),
    ],
)
def test_the_admission_is_a_node_under_its_own_name(
    admission: str, method: str, first: str
) -> None:
    guard = guard_of("local", filled(), admission=admission)
    assert names_in(guard) == {method}
    assert f"{method}:{first}" in drawn_in(guard)
    behind_keys = guard_of("local", filled(), admission=admission, keys={"messages": "chat"})
    assert names_in(behind_keys) == {"read_guard", f"read_guard|{method}"}


def own_admission(name: str, *, output: Any = None) -> Any:
    async def judge(state: ReadState) -> Any:
        return {"memory_context": "", **(output or {})}

    builder: Any = StateGraph(ReadState, input_schema=ReadInput, output_schema=ReadOutput)
    builder.add_node("judge", judge)
    builder.add_edge(START, "judge")
    builder.add_edge("judge", END)
    return builder.compile(name=name)


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("my_admission", "my_admission"),
        ("recall", "recall_admission"),
        ("messages", "messages_admission"),
        ("a:b|c", "a_b_c"),
        ("LangGraph", "LangGraph"),
    ],
)
def test_a_graph_of_your_own_is_a_node_under_its_name(name: str, node: str) -> None:
    guard = guard_of("local", filled(), admission=own_admission(name))
    assert names_in(guard) == {node}
    assert f"{node}:judge" in drawn_in(guard) or f"{node}" in drawn_in(guard)


async def test_a_graph_of_your_own_that_returns_no_report_is_your_mistake() -> None:
    journal = Journal.memory()
    own = own_admission("mine")
    guard = guard_of("local", filled(), admission=own, receipts=journal, on_failure="raise")
    with pytest.raises(
        ConfigurationError, match="'mine' returned no admitted, withheld, report"
    ) as refused:
        await guard.ainvoke({"query": "Which curry?"})
    assert refused.value.code == ErrorCode.SPEC_INVALID


def test_the_agent_shows_its_guards_with_the_methods_inside(store: ChromaStore) -> None:
    everything = Everything()
    agent = create_memory_agent(
        everything.model(), store=store, gates=["consistency", "conmem"], admission="ps"
    )
    assert {
        "recall",
        "recall|permission_semantic",
        "remember",
        "remember|gates|consistency_gate",
        "remember|gates|conmem",
    } <= names_in(agent)
    drawn = drawn_in(agent)
    for step in ("decompose", "adjudicate", "compile", "render"):
        assert f"recall:permission_semantic:{step}" in drawn
    assert "answer" in drawn
    assert any(node.startswith("remember:") for node in drawn)


def test_create_agent_shows_the_guards_of_the_middleware(store: ChromaStore) -> None:
    everything = Everything()
    memory = MemguardMiddleware(everything.model(), gates=["conmem"])
    agent: Any = create_agent(ScriptedChatModel(), store=store, middleware=[memory])
    name = "MemguardMiddleware"
    assert {
        f"{name}.before_agent",
        f"{name}.before_agent|permission_semantic",
        f"{name}.after_agent",
        f"{name}.after_agent|gates|conmem",
    } <= names_in(agent)
    drawn = drawn_in(agent)
    assert f"{name}.before_agent:permission_semantic:adjudicate" in drawn
    assert any(node.startswith(f"{name}.after_agent:") for node in drawn)


async def test_streams_name_the_guard_and_the_method(store: ChromaStore) -> None:
    await store.aput(ANA, "k", {"content": "The user loves red boats."})
    agent = create_memory_agent(
        ScriptedChatModel(["Noted.", "Noted."]), judge=reader(), store=store, write=False
    )
    paths: set[tuple[str, ...]] = set()
    stream = agent.astream(TALK, context=CONTEXT, stream_mode="updates", subgraphs=True)  # pyright: ignore[reportArgumentType]
    async for path, _ in stream:
        paths.add(tuple(part.partition(":")[0] for part in path))
    assert {("recall",), ("recall", "permission_semantic")} <= paths
    started = {
        event["name"]
        async for event in agent.astream_events(TALK, context=CONTEXT, version="v2")
        if event["event"] == "on_chain_start"
    }
    assert {"recall", "permission_semantic", "adjudicate"} <= started


def test_a_guard_of_your_own_is_shown_as_well(store: ChromaStore) -> None:
    agent = create_memory_agent(
        ScriptedChatModel(),
        store=store,
        read=create_read_guard("local", admission="fc"),
        write=create_write_guard("local"),
    )
    assert {"recall|factor_compiled", "remember"} <= names_in(agent)
