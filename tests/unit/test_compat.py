"""Every function of `memguard.compat`, on the installed libraries: fails when an API goes away."""

import asyncio
import struct
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypedDict

import chromadb
import pytest
from langchain_core.language_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.language_models.chat_models import SimpleChatModel
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.store.base.batch import AsyncBatchedBaseStore
from langgraph.store.memory import InMemoryStore

from memguard import compat


class State(TypedDict, total=False):
    x: int


def graph_of(node: Any, **options: Any) -> CompiledStateGraph[Any, Any, Any, Any]:
    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    return builder.compile(**options)


def answer(x: int) -> Callable[[State], State]:
    def node(_: State) -> State:
        return {"x": x}

    return node


class TestLangGraph:
    def test_the_keys_are_those_of_langgraph(self) -> None:
        from langgraph._internal import _constants as theirs

        assert theirs.CONFIG_KEY_CHECKPOINTER == compat._CHECKPOINTER
        assert theirs.CONFIG_KEY_DURABILITY == compat._DURABILITY
        assert theirs.CONFIG_KEY_READ == compat._READ
        assert theirs.CONFIG_KEY_TASK_ID == compat._TASK_ID

    @pytest.mark.parametrize("saver", [None, InMemorySaver()], ids=["without", "with"])
    def test_a_checkpointer_is_seen(self, saver: InMemorySaver | None) -> None:
        answers: list[bool] = []

        def node(_: State) -> State:
            answers.append(compat.has_checkpointer(get_config().get("configurable", {})))
            return {}

        graph = graph_of(node, checkpointer=saver)
        graph.invoke({"x": 1}, {"configurable": {"thread_id": "t"}})
        assert answers == [saver is not None]

    def test_a_nested_graph_uses_the_checkpointer_that_replaces_the_hosts(self) -> None:
        inner = graph_of(answer(2), checkpointer=None)
        outer, other = InMemorySaver(), InMemorySaver()

        def node(state: State) -> Any:
            compat.replace_checkpointer(lambda _: other)
            return inner.invoke(state)

        host = graph_of(node, checkpointer=outer)
        config: Any = {"configurable": {"thread_id": "t"}}
        assert host.invoke({"x": 1}, config) == {"x": 2}
        assert host.get_state(config).values == {"x": 2}
        assert set(outer.storage["t"]) == {""}
        assert other.storage["t"]
        compat.replace_checkpointer(lambda _: pytest.fail("there is no host"))

    def test_the_state_can_be_read_where_it_is_not_passed(self) -> None:
        values: list[Any] = []

        def node(_: State) -> State:
            read = compat.state_reader(get_config().get("configurable", {}))
            assert read is not None
            values.append(read("x"))
            with pytest.raises(KeyError):
                read("messages")
            return {}

        graph_of(node).invoke({"x": 7})
        assert values == [7]
        assert compat.state_reader({}) is None

    def test_a_task_is_known_by_its_config_or_its_surroundings(self) -> None:
        answers: list[bool] = []

        def node(_: State) -> State:
            answers.append(compat.is_task(compat.surrounding_config().get("configurable", {})))
            return {}

        graph_of(node).invoke({"x": 1})
        assert answers == [True]
        assert not compat.is_task({"thread_id": "t"})

    async def test_an_uncheckpointed_graph_is_saved_by_no_host(self) -> None:
        inner = graph_of(answer(2), checkpointer=None)
        saver = InMemorySaver()

        def node(state: State) -> Any:
            return inner.invoke(state, {"configurable": compat.UNCHECKPOINTED})

        host = graph_of(node, checkpointer=saver)
        config: Any = {"configurable": {"thread_id": "t"}}
        assert host.invoke({"x": 1}, config, durability="sync") == {"x": 2}
        spaces = {
            (entry.config.get("configurable") or {})["checkpoint_ns"]
            for entry in saver.list(config)
        }
        assert spaces == {""}

    def test_a_graph_can_be_recast(self) -> None:
        class Named(CompiledStateGraph[Any, Any, Any, Any]):
            pass

        graph = graph_of(answer(3))
        same = compat.recast_graph(graph, Named)
        assert isinstance(same, Named)
        assert same.invoke({"x": 1}) == {"x": 3}
        assert same.get_graph().nodes.keys() == graph.get_graph().nodes.keys()

    async def test_the_loop_of_a_store(self) -> None:
        class Bound(AsyncBatchedBaseStore):
            def batch(self, ops: Any) -> Any:
                raise NotImplementedError

            async def abatch(self, ops: Any) -> Any:
                raise NotImplementedError

        store: BaseStore = Bound()
        assert compat.loop_of_store(store) is asyncio.get_running_loop()
        assert compat.loop_of_store(InMemoryStore()) is None


class TestLangChain:
    def test_the_surrounding_config(self) -> None:
        configs: list[Any] = []
        runnable = RunnableLambda(lambda _: configs.append(dict(compat.surrounding_config())))
        runnable.invoke(1, {"configurable": {"thread_id": "t"}})
        assert configs[0]["configurable"] == {"thread_id": "t"}
        assert compat.surrounding_config() == {}

    def test_the_kind_of_a_chat_model(self) -> None:
        assert compat.kind_of_chat(ChatOpenAI(model="m", api_key="k")) == "openai-chat"  # pyright: ignore[reportArgumentType]

    def test_which_models_stream(self) -> None:
        class Plain(SimpleChatModel):
            def _call(self, *_: Any, **__: Any) -> str:
                return "a"

            @property
            def _llm_type(self) -> str:
                return "plain"

        assert not compat.can_stream(Plain())
        assert compat.can_stream(FakeListChatModel(responses=["a"]))
        assert compat.can_stream(ChatOpenAI(model="m", api_key="k"))  # pyright: ignore[reportArgumentType]

    def test_the_openai_client_of_a_model_can_be_exchanged(self) -> None:
        chat = ChatOpenAI(model="m", api_key="k")  # pyright: ignore[reportArgumentType]
        client = compat.openai_client(chat)
        other = client.with_options(max_retries=0)
        copy = compat.with_openai_client(chat, other)
        assert compat.openai_client(copy) is other
        assert compat.openai_client(chat) is client
        assert copy.async_client is not chat.async_client  # pyright: ignore[reportAttributeAccessIssue]
        assert compat.openai_client(GenericFakeChatModel(messages=iter(()))) is None

    @pytest.mark.parametrize("choice", [None, True, False], ids=str)
    def test_the_responses_api_is_known(self, choice: bool | None) -> None:
        chat = ChatOpenAI(model="gpt-4o", api_key="k", use_responses_api=choice)  # pyright: ignore[reportArgumentType]
        assert hasattr(chat, "_use_responses_api")
        assert compat.uses_responses_api(chat) is bool(choice)
        assert not compat.uses_responses_api(FakeListChatModel(responses=["a"]))


class TestChroma:
    @pytest.fixture
    def client(self) -> Iterator[compat.MemoryChroma]:
        from chromadb.config import Settings

        client = compat.MemoryChroma(Settings(anonymized_telemetry=False))
        yield client
        client.close()

    def test_a_chroma_in_memory(self, client: compat.MemoryChroma) -> None:
        from chromadb.errors import NotFoundError

        collection = client.get_or_create_collection(
            "name", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )
        collection.upsert(ids=["a"], embeddings=[[1.0, 0.0]], metadatas=[{"k": 1}])  # pyright: ignore[reportArgumentType]
        assert client.get_collection("name", embedding_function=None).count() == 1
        assert [entry.name for entry in client.list_collections()] == ["name"]
        assert client.get_max_batch_size() > 1
        with pytest.raises(NotFoundError):
            client.get_collection("other")

    @pytest.mark.parametrize("space", ["cosine", "l2", "ip"])
    def test_the_distance_of_a_collection(self, client: compat.MemoryChroma, space: str) -> None:
        collection = client.get_or_create_collection(
            "name", configuration={"hnsw": {"space": space}}
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert compat.distance_of_collection(collection) == space

    def test_the_threshold_is_in_the_configuration(self, tmp_path: Path) -> None:
        client = chromadb.PersistentClient(path=str(tmp_path))
        configuration: Any = {"hnsw": {"sync_threshold": 50}}
        collection = client.create_collection("abc", configuration=configuration)
        assert compat.sync_threshold_of_collection(collection) == 50
        usual = client.create_collection("def")
        assert compat.sync_threshold_of_collection(usual) == 1_000

    def test_a_vacuum_leaves_no_deleted_row(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        client: Any = chromadb.PersistentClient(path=str(tmp_path))
        configuration: Any = {"hnsw": {"sync_threshold": 2}}
        collection = client.create_collection("abc", configuration=configuration)
        vectors = [[0.1, 0.2], [0.3, 0.4]]
        collection.add(["a", "b"], vectors, [{"text": "Quokkaburg"}, {"text": "stays"}])
        collection.update(["a"], [[0.5, 0.5]])
        collection.delete(["a"])
        collection.update(["none-1", "none-2"], metadatas=[{"x": 1}] * 2)
        client.close()
        database = tmp_path / "chroma.sqlite3"
        assert b"Quokkaburg" in database.read_bytes()
        monkeypatch.chdir(tmp_path.parent)
        assert compat.vacuum_chroma(Path(tmp_path.name), seconds=5.0)
        assert b"Quokkaburg" not in database.read_bytes()
        again = chromadb.PersistentClient(path=str(tmp_path))
        assert again.get_collection("abc").get()["ids"] == ["b"]

    def test_only_the_unused_part_of_an_index_is_blanked(self, tmp_path: Path) -> None:
        header, data = tmp_path / "header.bin", tmp_path / "data_level0.bin"
        compat.blank_unused_part(tmp_path)
        header.write_bytes(struct.pack("<iQQQQ", 1, 0, 3, 1, 4) + bytes(64))
        data.write_bytes(b"usedleftover")
        compat.blank_unused_part(tmp_path)
        assert data.read_bytes() == b"used" + bytes(8)
        lengths = tmp_path / "length.bin"
        lengths.write_bytes(b"usedleftover")
        compat.blank_unused_part(tmp_path)
        assert lengths.read_bytes() == b"used" + bytes(8)
        # Another layout, which might have elements there.
        for content in (struct.pack("<iQQQQ", 2, 0, 3, 1, 4), b"short"):
            header.write_bytes(content)
            data.write_bytes(b"usedleftover")
            compat.blank_unused_part(tmp_path)
            assert data.read_bytes() == b"usedleftover"

    def test_sockets_are_where_they_were(self) -> None:
        import httpx

        class Half:
            def __init__(self) -> None:
                self._server: Any = type("Server", (), {"_session": httpx.Client()})()

        client: Any = Half()
        client._admin_client = Half()
        compat.close_chroma_sockets(client)
        assert client._server._session.is_closed
        assert client._admin_client._server._session.is_closed
        compat.close_chroma_sockets(object())

    def test_the_http_client_keeps_its_session_under_that_name(self) -> None:
        import inspect

        from chromadb.api.client import Client
        from chromadb.api.fastapi import FastAPI

        assert "self._session" in inspect.getsource(FastAPI.__init__)
        assert "self._admin_client" in inspect.getsource(Client.__init__)

    def test_the_weights_are_fetched_by_chroma(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2

        calls: list[object] = []

        def fetch(self: object) -> None:
            calls.append(self)

        assert callable(ONNXMiniLM_L6_V2._download_model_if_not_exists)
        monkeypatch.setattr(ONNXMiniLM_L6_V2, "_download_model_if_not_exists", fetch)
        monkeypatch.setattr(ONNXMiniLM_L6_V2, "DOWNLOAD_PATH", tmp_path)
        assert compat.download_chroma_minilm() == tmp_path
        assert len(calls) == 1


def test_errors_of_onnxruntime_are_caught() -> None:
    import onnxruntime

    with pytest.raises(compat.onnxruntime_errors()):
        onnxruntime.InferenceSession(b"no model", providers=["CPUExecutionProvider"])


def test_a_function_runs_while_threads_can_still_be_started() -> None:
    assert callable(threading._register_atexit)  # pyright: ignore[reportAttributeAccessIssue]
    code = """
import concurrent.futures
from memguard import compat
pool = concurrent.futures.ThreadPoolExecutor(2)
pool.submit(int).result()
compat.run_before_threads_end(lambda: print(pool.submit(lambda: "ran").result()))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "ran\n"
