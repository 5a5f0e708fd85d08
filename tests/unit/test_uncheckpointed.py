"""Nothing of a read's own steps is in a host's checkpoints, wherever the guard stands in it."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain_core.runnables import RunnableConfig
from langgraph.channels import UntrackedValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.func import entrypoint
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from memguard import (
    MemguardMiddleware,
    create_factor_compiled_graph,
    create_memory_agent,
    create_permission_semantic_graph,
    create_read_guard,
)
from memguard.methods.adjudication.state import ReadInput, ReadOutput, ReadState
from memguard.portal import dual
from memguard.testing import ScriptedChatModel
from memguard.uncheckpointed import UncheckpointedGraph
from tests.unit.read.read_scripts import ENTRY, reader
from tests.unit.read.test_read import filled, guard_of

ADMITTED = "The user has an allergy to zanzibarnuts."
WITHHELD = "The user owns a quicksilverboat."
MARKERS = (b"zanzibarnuts", b"quicksilverboat")
ROWS: dict[str, dict[str, Any]] = {
    ADMITTED: {"kind": "safety", "role": "constraint", "safety": True},
    WITHHELD: {"relevance": "none", "scope": "out"},
}
ASK = "Which curry should I cook?"
THREAD: RunnableConfig = {"configurable": {"thread_id": "t1", "user_id": "ana"}}
DURABILITY = ("sync", "async", "exit")
KINDS = ("memory", "sqlite")

Host = Callable[[Any], Any]


class State(TypedDict, total=False):
    query: str
    chat: list[Any]
    memory_context: Annotated[str, UntrackedValue]
    notes: Annotated[str, UntrackedValue]
    memories: Annotated[tuple[str, ...], UntrackedValue]
    length: int


def _length(state: State) -> State:
    text = state.get("memory_context") or state.get("notes") or ""
    assert ADMITTED in text
    assert WITHHELD not in text
    return {"length": len(text)}


def _host(saver: Any, *nodes: tuple[str, Any]) -> Any:
    builder: Any = StateGraph(State)
    for before, (name, node) in zip((START, *(n for n, _ in nodes)), nodes, strict=False):
        builder.add_node(name, node)
        builder.add_edge(before, name)
    return builder.compile(checkpointer=saver, store=filled(ADMITTED, WITHHELD))


def _guard(**settings: Any) -> Any:
    return guard_of(reader(ROWS), filled(ADMITTED, WITHHELD), **settings)


def as_node(saver: Any) -> Any:
    return _host(saver, ("recall", _guard()), ("length", _length))


def with_factors(saver: Any) -> Any:
    model = reader(ROWS, base=ENTRY)
    guard = guard_of(model, filled(ADMITTED, WITHHELD), admission="fc")
    return _host(saver, ("recall", guard), ("length", _length))


def behind_keys(saver: Any) -> Any:
    guard = _guard(keys={"messages": "chat", "memory_context": "notes"})
    return _host(saver, ("recall", guard), ("length", _length))


def in_a_node(saver: Any) -> Any:
    guard = _guard()

    async def recall(state: State) -> State:
        output = await guard.ainvoke({"query": state.get("query", "")})
        return {"memory_context": output["memory_context"]}

    return _host(saver, ("recall", dual(recall)), ("length", _length))


def in_an_entrypoint(saver: Any) -> Any:
    guard = _guard()

    async def work(values: dict[str, Any]) -> dict[str, Any]:
        output = await guard.ainvoke({"query": values["query"]})
        return dict(_length({"memory_context": output["memory_context"]}))

    recall = dual(work)

    @entrypoint(checkpointer=saver)
    async def flow(values: dict[str, Any]) -> dict[str, Any]:
        return await recall.ainvoke(values)

    @entrypoint(checkpointer=saver)
    def sync_flow(values: dict[str, Any]) -> dict[str, Any]:
        return recall.invoke(values)

    return flow if isinstance(saver, AsyncSqliteSaver | InMemorySaver) else sync_flow


def _recalled(_: State) -> State:
    return {"memories": (ADMITTED, WITHHELD)}


def method_as_node(saver: Any) -> Any:
    method = create_permission_semantic_graph(reader(ROWS))
    return _host(saver, ("recall", _recalled), ("admit", method), ("length", _length))


def other_method_as_node(saver: Any) -> Any:
    method = create_factor_compiled_graph(reader(ROWS, base=ENTRY))
    return _host(saver, ("recall", _recalled), ("admit", method), ("length", _length))


def with_an_admission_of_your_own(saver: Any) -> Any:
    """A plain LangGraph graph, that by itself would be saved."""
    builder: Any = StateGraph(ReadState, input_schema=ReadInput, output_schema=ReadOutput)
    builder.add_node("judge", create_permission_semantic_graph(reader(ROWS)))
    builder.add_edge(START, "judge")
    return _host(saver, ("recall", _guard(admission=builder.compile())), ("length", _length))


HOSTS: tuple[Host, ...] = (
    as_node,
    with_factors,
    behind_keys,
    in_a_node,
    method_as_node,
    other_method_as_node,
    with_an_admission_of_your_own,
)
PLACES: list[tuple[Host, str]] = [
    *((make, "memory") for make in HOSTS),
    (as_node, "sqlite"),
    (behind_keys, "sqlite"),
]
GIVEN: dict[str, Any] = {"query": ASK, "chat": [("user", ASK)]}


def _bytes_of(saver: Any, path: Path) -> bytes:
    """Everything that was saved, as it was written."""
    if isinstance(saver, InMemorySaver):
        return b"\n".join(_leaves([saver.storage, saver.writes, saver.blobs]))
    with closing(sqlite3.connect(path)) as connection:
        tables = ("checkpoints", "writes")
        rows = [connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables]
    return b"\n".join(_leaves(rows))


def _leaves(value: Any) -> Iterator[bytes]:
    if isinstance(value, bytes):
        yield value
    elif isinstance(value, dict):
        for pair in value.items():  # pyright: ignore[reportUnknownVariableType]
            yield from _leaves(pair)
    elif isinstance(value, list | tuple):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _leaves(item)
    else:
        yield str(value).encode()


@contextmanager
def _saver(kind: str, path: Path) -> Generator[Any]:
    if kind == "memory":
        yield InMemorySaver()
    else:
        with SqliteSaver.from_conn_string(str(path)) as saver:
            yield saver


@asynccontextmanager
async def _async_saver(kind: str, path: Path) -> AsyncGenerator[Any]:
    if kind == "memory":
        yield InMemorySaver()
    else:
        async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
            yield saver


def _check(stored: bytes) -> None:
    assert b"t1" in stored  # the thread itself is there
    assert [marker for marker in MARKERS if marker in stored] == []


@pytest.mark.parametrize("durability", DURABILITY)
@pytest.mark.parametrize(("make", "kind"), [*PLACES, (in_an_entrypoint, "memory")])
async def test_async(make: Host, kind: str, durability: Any, tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    async with _async_saver(kind, path) as saver:
        host = make(saver)
        out = await host.ainvoke(GIVEN, THREAD, durability=durability)
        assert out["length"]
        again = await host.ainvoke(GIVEN, THREAD, durability=durability)
        assert again["length"] == out["length"]
    _check(_bytes_of(saver, path))


@pytest.mark.parametrize("durability", DURABILITY)
@pytest.mark.parametrize(("make", "kind"), PLACES)
def test_sync(make: Host, kind: str, durability: Any, tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    with _saver(kind, path) as saver:
        host = make(saver)
        assert host.invoke(GIVEN, THREAD, durability=durability)["length"]
        _check(_bytes_of(saver, path))


@pytest.mark.parametrize("durability", DURABILITY)
def test_in_a_sync_entrypoint(durability: Any, tmp_path: Path) -> None:
    path = tmp_path / "threads.sqlite"
    with _saver("sqlite", path) as saver:
        assert in_an_entrypoint(saver).invoke(GIVEN, THREAD, durability=durability)["length"]
        _check(_bytes_of(saver, path))


@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_like_any_other_would_be_found(kind: str, tmp_path: Path) -> None:
    """The search above sees what is there."""
    guard = _guard()
    plain = CompiledStateGraph.__new__(CompiledStateGraph)
    vars(plain).update(vars(guard))
    path = tmp_path / "threads.sqlite"
    with _saver(kind, path) as saver:
        _host(saver, ("recall", plain), ("length", _length)).invoke(GIVEN, THREAD)
        stored = _bytes_of(saver, path)
    assert all(marker in stored for marker in MARKERS)


@pytest.mark.parametrize("durability", DURABILITY)
@pytest.mark.parametrize("own_guard", [False, True])
async def test_in_the_agent(durability: Any, own_guard: bool) -> None:
    saver = InMemorySaver()
    reading: dict[str, Any] = (
        {"read": _guard()} if own_guard else {"read": create_read_guard(reader(ROWS))}
    )
    agent = create_memory_agent(
        ScriptedChatModel(["Rice."]),
        judge="local",
        store=filled(ADMITTED, WITHHELD),
        write=False,
        checkpointer=saver,
        **reading,
    )
    values = {"messages": [("user", ASK)]}
    out = await agent.ainvoke(values, THREAD, context={"user_id": "ana"}, durability=durability)
    assert ADMITTED in out["memory_context"]
    _check(_bytes_of(saver, Path()))


@pytest.mark.parametrize("durability", DURABILITY)
@pytest.mark.parametrize("how", ["sync", "async"])
async def test_in_the_middleware(durability: Any, how: str) -> None:
    saver = InMemorySaver()
    memory = MemguardMiddleware(reader(ROWS), write=False)
    model = ScriptedChatModel(["Rice."])
    agent: Any = create_agent(
        model,
        middleware=[memory],
        store=filled(ADMITTED, WITHHELD),
        checkpointer=saver,
        context_schema=dict,
    )
    options: dict[str, Any] = {"context": {"user_id": "ana"}, "durability": durability}
    values = {"messages": [("user", ASK)]}
    if how == "sync":
        await asyncio.to_thread(agent.invoke, values, THREAD, **options)
    else:
        await agent.ainvoke(values, THREAD, **options)
    assert ADMITTED in model.calls[0].text
    _check(_bytes_of(saver, Path()))


async def test_its_events_and_its_insides_still_show() -> None:
    host = as_node(InMemorySaver())
    steps = [
        (len(path), event["step"])
        async for path, event in host.astream(GIVEN, THREAD, stream_mode="custom", subgraphs=True)
    ]
    assert steps == [(1, "recalled"), (1, "admitted"), (1, "reported")]
    nodes = {
        (path[-1].partition(":")[0] if path else "", node)
        async for path, update in host.astream(GIVEN, THREAD, stream_mode="updates", subgraphs=True)
        for node in update
    }
    assert {
        ("", "recall"),
        ("recall", "permission_semantic"),
        ("permission_semantic", "adjudicate"),
    } <= nodes
    drawn = {name.rpartition(":")[2] for name in host.get_graph(xray=True).nodes}
    assert {"adjudicate", "render", "report"} <= drawn
    state = await host.aget_state(THREAD, subgraphs=True)
    assert state.values["length"]
    assert not state.next


async def test_by_itself_it_keeps_threads_like_any_graph() -> None:
    """As in LangGraph Studio, which lends each graph its own checkpointer."""
    saver = InMemorySaver()
    guard = _guard().copy({"checkpointer": saver})
    assert isinstance(guard, UncheckpointedGraph)
    await guard.ainvoke({"query": ASK}, THREAD)
    state = await guard.aget_state(THREAD)
    assert ADMITTED in state.values["memory_context"]
    checkpoints = [entry async for entry in saver.alist(None)]
    # Its own steps, and none of the method within.
    assert {entry.config.get("configurable", {})["checkpoint_ns"] for entry in checkpoints} == {""}
