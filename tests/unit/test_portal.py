"""The sync surface and nodes with two halves."""

# Answers are unions and fixtures untyped here: the assertions say what each one is.
# pyright: reportArgumentType=false
# pyright: reportOptionalSubscript=false
# pyright: reportTypedDictNotRequiredAccess=false
# pyright: reportUnknownLambdaType=false

import asyncio
import concurrent.futures
import contextvars
import functools
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import Command, interrupt

from memguard.errors import ConfigurationError
from memguard.portal import dual, run_sync

ROOT = Path(__file__).parents[2]
VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


async def double(x: int) -> int:
    await asyncio.sleep(0)
    return 2 * x


def test_twice_in_a_row_on_the_same_loop():
    async def loop_id():
        return id(asyncio.get_running_loop())

    assert run_sync(loop_id()) == run_sync(loop_id())


def test_in_worker_threads():
    results = []
    threads = [
        threading.Thread(target=lambda i=i: results.append(run_sync(double(i)))) for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [0, 2, 4, 6, 8, 10, 12, 14]


def test_inside_a_running_loop():
    async def notebook_cell():
        return run_sync(double(21))

    assert asyncio.run(notebook_cell()) == 42


def test_from_its_own_loop_is_an_error_that_names_the_coroutine():
    async def outer():
        run_sync(double(1))

    with pytest.raises(ConfigurationError, match="'double'"):
        run_sync(outer())


def test_errors_come_through():
    name = "what"

    async def fails():
        raise KeyError(name)

    with pytest.raises(KeyError, match="what"):
        run_sync(fails())


@pytest.mark.parametrize("end", [SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_what_ends_the_process_reaches_the_caller_and_not_the_portal(end: BaseException):
    async def ends():
        raise end

    with pytest.raises(type(end)) as caught:
        run_sync(ends())
    assert caught.value is end
    assert [entry.name for entry in caught.traceback][-1] == "ends"
    assert run_sync(double(1)) == 2


def test_a_cancellation_inside_the_work_is_an_error_for_the_caller():
    async def cancelled():
        raise asyncio.CancelledError

    with pytest.raises(concurrent.futures.CancelledError):
        run_sync(cancelled())


def test_context_variables_are_seen():
    async def read():
        return VARIABLE.get(), await asyncio.create_task(read_in_a_task())

    async def read_in_a_task():
        return VARIABLE.get()

    token = VARIABLE.set("mine")
    try:
        assert run_sync(read()) == ("mine", "mine")
    finally:
        VARIABLE.reset(token)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_process_gets_a_portal_of_its_own():
    code = """
import os, sys
from memguard.portal import run_sync
async def pid(): return os.getpid()
assert run_sync(pid()) == os.getpid()
child = os.fork()
if child == 0:
    os._exit(0 if run_sync(pid()) == os.getpid() else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run_python(code).returncode == 0


def test_a_task_left_running_ends_quietly():
    code = """
import asyncio
from memguard.portal import run_sync
async def leave():
    global task
    task = asyncio.create_task(asyncio.sleep(60))
run_sync(leave())
"""
    done = run_python(code)
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_ends_the_work():
    code = """
import asyncio, os, signal, threading
from memguard.portal import run_sync
# A background job of a shell starts with the signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
ended = threading.Event()
async def work():
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0.01)  # cleanup may wait: it is cancelled once, not at every await
        ended.set()
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    run_sync(work())
except KeyboardInterrupt:
    print(ended.wait(5))
"""
    done = run_python(code)
    assert (done.stdout.strip(), done.stderr) == ("True", "")


def run_python(code: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", code],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
    )


class State(TypedDict, total=False):
    x: int
    names: Annotated[list[str], lambda a, b: a + b]


class Narrow(TypedDict):
    x: int


async def first(state: Narrow) -> dict[str, Any]:
    get_stream_writer()({"event": "first"})
    assert set(state) == {"x"}
    return {"x": state["x"] + 1, "names": [get_runtime().context["name"]]}


async def second(state: State, runtime: Runtime, config: RunnableConfig) -> Command[Literal["ask"]]:
    entries = [runtime.context["name"], config["configurable"]["thread_id"]]
    return Command(goto="ask", update={"x": state["x"] * 2, "names": entries})


async def ask(state: State) -> dict[str, Any]:
    return {"x": interrupt(state["x"])}


def build():
    builder = StateGraph(State, context_schema=dict)
    builder.add_node(dual(first))
    builder.add_node(dual(second))
    builder.add_node(dual(ask))
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    builder.add_edge("ask", END)
    return builder.compile(checkpointer=InMemorySaver())


class Names(BaseCallbackHandler):
    def __init__(self):
        self.names = []

    def on_chain_start(self, serialized, inputs, **kwargs):
        self.names.append(kwargs.get("name"))


def test_j01_a_graph_both_ways():
    graph = build()
    assert {"first", "second", "ask"} <= set(graph.get_graph().nodes)
    assert ("second", "ask") in {(e.source, e.target) for e in graph.get_graph().edges}
    names = Names()

    def config(thread):
        return {"configurable": {"thread_id": thread}, "callbacks": [names]}

    sync = graph.invoke({"x": 1}, config("s"), context={"name": "ctx"})
    assert sync["__interrupt__"][0].value == 4
    assert sync["names"] == ["ctx", "ctx", "s"]
    assert graph.invoke(Command(resume=7), config("s"), context={"name": "ctx"})["x"] == 7
    assert names.names.count("first") == 1

    async def both():
        result = await graph.ainvoke({"x": 1}, config("a"), context={"name": "ctx"})
        assert result["__interrupt__"][0].value == 4
        assert result["names"] == ["ctx", "ctx", "a"]
        inner = graph.invoke({"x": 1}, config("b"), context={"name": "ctx"})
        assert inner["names"] == ["ctx", "ctx", "b"]

    asyncio.run(both())


def test_custom_events_come_through_both_ways():
    graph = build()
    config = {"configurable": {"thread_id": "e"}}
    sync = list(graph.stream({"x": 1}, config, context={"name": "c"}, stream_mode="custom"))

    async def events():
        config = {"configurable": {"thread_id": "f"}}
        stream = graph.astream({"x": 1}, config, context={"name": "c"}, stream_mode="custom")
        return [event async for event in stream]

    assert sync == asyncio.run(events()) == [{"event": "first"}]


def test_names_and_partials():
    async def judge(state: State, *, model: str) -> dict[str, Any]:
        return {"names": [model]}

    node = dual(functools.partial(judge, model="m"))
    assert node.get_name() == "judge"
    assert dual(judge, name="other").get_name() == "other"
    builder = StateGraph(State)
    builder.add_node(node)
    builder.add_edge(START, "judge")
    assert builder.compile().invoke({"x": 1, "names": []})["names"] == ["m"]


async def test_calling_a_node_calls_the_function():
    async def node(state):
        return {"x": state["x"]}

    runnable: Any = dual(node)
    assert await runnable({"x": 3}) == {"x": 3}


def test_a_graph_that_a_node_reaches_is_found():
    inner = build()

    async def outer(state: State) -> dict[str, Any]:
        return await inner.ainvoke(state)

    builder = StateGraph(State)
    builder.add_node("outer", dual(outer))
    builder.add_edge(START, "outer")
    assert [name for name, _ in builder.compile().get_subgraphs()] == ["outer"]


def test_a_sync_graph_inside_a_node_does_not_wait_for_itself():
    async def left(state: State) -> dict[str, Any]:
        return {"names": ["left"]}

    async def right(state: State) -> dict[str, Any]:
        return {"names": ["right"]}

    builder = StateGraph(State)
    for node in (left, right):
        builder.add_node(dual(node))
        builder.add_edge(START, node.__name__)
    graph = builder.compile()

    async def careless():
        return graph.invoke({"x": 1, "names": []})

    assert run_sync(careless())["names"] == ["left", "right"]
