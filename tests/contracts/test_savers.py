"""Every surface of memguard runs in a host with every checkpointer that LangGraph ships.

Each test is one row: a surface under `invoke` or `ainvoke`, with every saver. `pytest -s` on this
file prints the rows, which make the matrix.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.channels import UntrackedValue
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.func import entrypoint
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import get_runtime
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt

from memguard import (
    CandidateMemory,
    ConsistencyGate,
    MemguardMiddleware,
    create_conmem_graph,
    create_consistency_gate_graph,
    create_factor_compiled_graph,
    create_memory_agent,
    create_permission_semantic_graph,
    create_read_guard,
    create_write_guard,
    create_writer_graph,
    guard_store,
    use_source,
)
from memguard.journal.journal import Journal
from memguard.schema.decision import AdmissionDecision
from memguard.schema.receipt import MethodReport
from memguard.testing import ConMemScript, ScriptedChatModel
from memguard.testing.embeddings import HashEmbeddings
from tests.slow.postgres import find_binaries, private_cluster

SAID = "I own a blue boat."
FACT = {"text": SAID, "about": "the user", "turns": [1]}
GIVEN: dict[str, Any] = {
    "messages": [{"role": "user", "content": SAID, "id": "m1"}],
    "conversation": [{"role": "user", "content": SAID, "id": "m1"}],
    "candidate": SAID,
    "context": SAID,
    "query": "What do I own?",
    "memories": [SAID],
}
THREAD: RunnableConfig = {"configurable": {"thread_id": "t1", "user_id": "ana"}}
APPROVE: Any = Command(resume={"decisions": [{"type": "approve"}]})
Build = Callable[[Any, Any], Any]
"""Builds a host from a checkpointer and a store."""


class State(TypedDict, total=False):
    """The state of a host; what the surfaces return is not checkpointed."""

    messages: list[Any]
    conversation: list[Any]
    candidate: str
    context: str
    query: str
    memories: list[str]
    writes: Annotated[Any, UntrackedValue]
    report: Annotated[Any, UntrackedValue]
    receipt: Annotated[Any, UntrackedValue]
    candidates: Annotated[Any, UntrackedValue]
    memory_context: Annotated[Any, UntrackedValue]


class GuardState(MessagesState, total=False):
    """The state of a host of guards."""

    writes: Annotated[Any, UntrackedValue]
    report: Annotated[Any, UntrackedValue]
    memory_context: Annotated[Any, UntrackedValue]


class OwnGate(TypedDict, total=False):
    candidate: CandidateMemory
    decision: AdmissionDecision
    report: MethodReport


def own_gate(*, asks: bool) -> Any:
    """A gate of the user's own, which may ask a person in the middle of a run."""

    def decide(_: OwnGate) -> OwnGate:
        explanation = str(interrupt("admit?")) if asks else "yes"
        decision = AdmissionDecision(outcome="admit", reason="supported", explanation=explanation)
        report = MethodReport(method="own", spec={}, decision=decision, evidence={})
        return {"decision": decision, "report": report}

    builder: Any = StateGraph(OwnGate)
    builder.add_node("decide", decide)
    builder.add_edge(START, "decide")
    return builder.compile(name="own")


def judge(score: str = "0.9") -> ScriptedChatModel:
    """A writer with one fact and a judge with one score; an answer without a score is doubt."""
    return ScriptedChatModel(rules=[("<new_turns>", {"facts": [FACT]}), ("", score)])


def guard(score: str = "0.9", **settings: Any) -> Any:
    settings = {"gates": [ConsistencyGate(k=1)], **settings}
    return create_write_guard(judge(score), receipts=Journal.memory(), **settings)


def asking_guard(**settings: Any) -> Any:
    return guard("Hard to say.", review="interrupt", **settings)


def store_guard(gate: Any) -> Callable[[], Any]:
    """A node that writes to a guarded store, as a tool does."""

    def create() -> Any:
        def guarded() -> Any:
            store = get_runtime().store
            assert store is not None
            return guard_store(store, model=judge(), gates=[gate()], receipts=Journal.memory())

        value = {"content": SAID}

        def put(_: Any) -> Any:
            with use_source(SAID):
                guarded().put(("memories", "ana"), "k", value)

        async def aput(_: Any) -> Any:
            with use_source(SAID):
                await guarded().aput(("memories", "ana"), "k", value)

        return RunnableLambda(put, aput)

    return create


def conmem() -> Any:
    return ConMemScript({"relevant": "helpful"}).model()


def node(surface: Callable[[], Any], *, state: Any = GuardState) -> Build:
    """A host whose one node is the surface."""

    def build(saver: Any, store: Any) -> Any:
        builder: Any = StateGraph(state)
        builder.add_node("surface", surface())
        builder.add_edge(START, "surface")
        return builder.compile(checkpointer=saver, store=store)

    return build


def method(surface: Callable[[], Any]) -> Build:
    return node(surface, state=State)


def agent(**settings: Callable[[], Any]) -> Build:
    def build(saver: Any, store: Any) -> Any:
        return create_memory_agent(
            ScriptedChatModel(rules=[("", "Noted.")]),
            judge=judge(),
            store=store,
            checkpointer=saver,
            receipts=Journal.memory(),
            **{name: create() for name, create in settings.items()},
        )

    return build


def middleware(**settings: Callable[[], Any]) -> Build:
    def build(saver: Any, store: Any) -> Any:
        created = {name: create() for name, create in settings.items()}
        memory = MemguardMiddleware(judge(), receipts=Journal.memory(), **created)
        answering = ScriptedChatModel(rules=[("", "Noted.")])
        host: Any = create_agent(answering, middleware=[memory], checkpointer=saver, store=store)
        host.drain = memory.drain
        return host

    return build


class InAnEntrypoint:
    """The functional API; an entrypoint is sync or async, so there are two."""

    def __init__(self, saver: Any, store: Any) -> None:
        self._saver = saver
        self._guard = guard(store=store)

    def invoke(self, values: Any, config: Any) -> Any:
        @entrypoint(checkpointer=self._saver)
        def turn(values: Any) -> Any:
            return self._guard.invoke({"messages": values["messages"]})["writes"].counts

        return turn.invoke(values, config)

    async def ainvoke(self, values: Any, config: Any) -> Any:
        @entrypoint(checkpointer=self._saver)
        async def turn(values: Any) -> Any:
            out = await self._guard.ainvoke({"messages": values["messages"]})
            return out["writes"].counts

        return await turn.ainvoke(values, config)


WRITES: dict[str, Build] = {
    "write guard": node(guard),
    "write guard, keys": node(lambda: guard(keys={"writes": "report"})),
    "write guard, conmem": node(
        lambda: create_write_guard(
            conmem(), models={"writer": judge()}, gates=["conmem"], receipts=Journal.memory()
        )
    ),
    "write guard, entrypoint": InAnEntrypoint,
    "store guard": node(store_guard(lambda: ConsistencyGate(k=1))),
    "store guard, own gate": node(store_guard(lambda: own_gate(asks=False))),
    "agent": agent(),
    "agent, own guard": agent(write=guard),
    "middleware": middleware(),
    "middleware, own guard": middleware(write=guard),
    "middleware, background": middleware(background=lambda: True),
}
"""These store a memory."""
PAUSES: dict[str, tuple[Build, Any]] = {
    "write guard, review": (node(asking_guard), APPROVE),
    "write guard, keys, review": (node(lambda: asking_guard(keys={"writes": "report"})), APPROVE),
    "write guard, own gate": (
        node(lambda: guard(gates=[own_gate(asks=True)])),
        Command(resume="yes"),
    ),
    "agent, review": (agent(write=asking_guard), APPROVE),
    "middleware, review": (middleware(write=asking_guard), APPROVE),
}
"""These ask a person, and store the memory when the answer is there."""
VALUES: dict[str, tuple[Build, str]] = {
    "read guard": (node(lambda: create_read_guard("local")), "memory_context"),
    "read guard, keys": (
        node(lambda: create_read_guard("local", keys={"memory_context": "report"})),
        "report",
    ),
    "writer": (method(lambda: create_writer_graph(judge())), "candidates"),
    "consistency gate": (method(lambda: create_consistency_gate_graph("local")), "receipt"),
    "conmem": (method(lambda: create_conmem_graph(conmem())), "receipt"),
    "fc": (method(lambda: create_factor_compiled_graph("local")), "report"),
    "ps": (method(lambda: create_permission_semantic_graph("local")), "report"),
}
"""These return a text under a key of the host's state."""


def stored(store: Any) -> list[str]:
    return [item.value["content"] for item in store.search(("memories", "ana"))]


@pytest.fixture(scope="module")
def postgres() -> Iterator[str | None]:
    """How to connect to a cluster of our own; `None` where there is no Postgres."""
    binaries = find_binaries()
    with nullcontext() if binaries is None else private_cluster(binaries) as connection:
        yield connection


SAVERS = ("memory", "sqlite", "async-sqlite", "postgres", "async-postgres")
IN_POSTGRES = ("postgres", "async-postgres")
SYNC_ONLY = ("sqlite", "postgres")
"""LangGraph itself refuses these under `ainvoke`."""


@asynccontextmanager
async def opened(name: str, *, path: Path, postgres: str | None) -> AsyncGenerator[Any]:
    """A checkpointer of LangGraph's, without threads."""
    if name == "memory":
        yield InMemorySaver()
    elif name == "sqlite":
        with SqliteSaver.from_conn_string(str(path)) as saver:
            yield saver
    elif name == "async-sqlite":
        async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
            yield saver
    else:
        if postgres is None:
            pytest.skip("no Postgres here: there is no `initdb` on the PATH")
        module = pytest.importorskip("langgraph.checkpoint.postgres")
        if name == "postgres":
            with module.PostgresSaver.from_conn_string(postgres) as saver:
                saver.setup()
                saver.delete_thread("t1")
                yield saver
        else:
            aio = pytest.importorskip("langgraph.checkpoint.postgres.aio")
            async with aio.AsyncPostgresSaver.from_conn_string(postgres) as saver:
                await saver.setup()
                await saver.adelete_thread("t1")
                yield saver


def new_store() -> InMemoryStore:
    return InMemoryStore(index={"dims": 64, "embed": HashEmbeddings(dims=64)})


async def run(host: Any, values: Any, *, how: str) -> Any:
    if how == "async":
        return await host.ainvoke(values, THREAD)
    # In a worker thread: the async savers answer on the loop that they were opened on.
    return await asyncio.to_thread(host.invoke, values, THREAD)


def show(row: str, how: str, saver: str) -> None:
    print(f"| {row} | {how} | {saver} | works |")  # noqa: T201 - the matrix


CELLS = [
    pytest.param(
        (saver, how), id=f"{saver}-{how}", marks=[pytest.mark.slow] if saver in IN_POSTGRES else []
    )
    for saver in SAVERS
    for how in ("sync", "async")
]


@pytest.fixture(params=CELLS)
async def cell(
    request: pytest.FixtureRequest, tmp_path: Path, postgres: str | None
) -> AsyncGenerator[tuple[Any, str, str]]:
    """A saver, its name, and `sync` or `async`."""
    name, how = request.param
    if how == "async" and name in SYNC_ONLY:
        pytest.skip(f"LangGraph has no async form of the saver {name!r}")
    async with opened(name, path=tmp_path / "threads.sqlite", postgres=postgres) as saver:
        yield saver, name, how


@pytest.mark.parametrize("row", WRITES)
async def test_a_write_is_stored(row: str, cell: tuple[Any, str, str]) -> None:
    saver, name, how = cell
    store = new_store()
    host = WRITES[row](saver, store)
    await run(host, {"messages": GIVEN["messages"]}, how=how)
    if "background" in row:
        await asyncio.to_thread(host.drain)
    assert stored(store) == [SAID]
    show(row, how, name)


@pytest.mark.parametrize("row", PAUSES)
async def test_a_pause_resumes(row: str, cell: tuple[Any, str, str]) -> None:
    saver, name, how = cell
    build, answer = PAUSES[row]
    store = new_store()
    host = build(saver, store)
    paused = await run(host, {"messages": GIVEN["messages"]}, how=how)
    assert len(paused["__interrupt__"]) == 1
    assert stored(store) == []
    await run(host, answer, how=how)
    assert stored(store) == [SAID]
    show(row, how, name)


@pytest.mark.parametrize("row", VALUES)
async def test_a_value_is_returned(row: str, cell: tuple[Any, str, str]) -> None:
    saver, name, how = cell
    build, key = VALUES[row]
    store = new_store()
    store.put(("memories", "ana"), "k", {"content": SAID})
    out = await run(build(saver, store), GIVEN, how=how)
    assert "blue boat" in str(out[key])
    show(row, how, name)
