"""Opening, sharing, closing, time to live, servers."""

import asyncio
import datetime as dt
import logging
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from blockbuster import blockbuster_ctx
from chromadb.errors import InternalError
from langchain_core.embeddings import Embeddings

from memguard.errors import ErrorCode, InvalidInputError, StoreConfigurationError, StoreError
from memguard.stores import ChromaStore
from memguard.testing.embeddings import HashEmbeddings
from tests.chroma_server import ChromaServer

NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> dt.datetime:
        return self.now

    def forward(self, minutes: float) -> None:
        self.now += dt.timedelta(minutes=minutes)


@pytest.mark.slow
def test_import_is_light() -> None:
    code = (
        "import sys, memguard.stores; from memguard.stores import ChromaStore; "
        "print([n for n in ('chromadb', 'numpy', 'onnxruntime') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert "chromadb" not in done.stdout
    assert "onnxruntime" not in done.stdout


async def test_nothing_blocks_the_loop(tmp_path: Path) -> None:
    with blockbuster_ctx():
        store = ChromaStore.local(tmp_path, embed=HashEmbeddings())
        await store.aput(("a",), "k", {"text": "x"})
        assert len(await store.asearch(("a",), query="x")) == 1
        assert await store.acount(("a",)) == 1
        assert await store.asweep_ttl() == 0
        await store.aclose()


def test_closed_store_says_so(tmp_path: Path) -> None:
    store = ChromaStore.local(tmp_path, embed=HashEmbeddings())
    store.put(("a",), "k", {"text": "x"})
    store.close()
    store.close()
    for call in (
        lambda: store.get(("a",), "k"),
        lambda: store.batch([]),
        lambda: store.count(("a",)),
        store.sweep_ttl,
        store.start_ttl_sweeper,
        store.open,
    ):
        with pytest.raises(StoreConfigurationError) as caught:
            call()
        assert caught.value.code is ErrorCode.STORE_CLOSED
    with pytest.raises(StoreConfigurationError):
        asyncio.run(store.aget(("a",), "k"))


def test_one_path_twice_in_one_process(tmp_path: Path) -> None:
    one = ChromaStore.local(tmp_path, embed=HashEmbeddings())
    other = ChromaStore.local(tmp_path / "." / "", embed=HashEmbeddings())
    one.put(("a",), "k", {"text": "x"})
    assert len(other.search(("a",), query="x")) == 1
    one.close()
    other.put(("a",), "l", {"text": "y"})
    other.close()
    with ChromaStore.local(tmp_path, embed=HashEmbeddings()) as again:
        assert again.count(("a",)) == 2


_HOLDER = """
import sys
from memguard.stores import ChromaStore
store = ChromaStore.local(sys.argv[1], index=False)
print("held", flush=True)
sys.stdin.read()
store.close()
"""


@pytest.mark.slow
def test_a_second_process_is_kept_out(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreConfigurationError) as caught:
            ChromaStore.local(tmp_path, index=False)
        holder.communicate("")
    assert caught.value.code is ErrorCode.STORE_LOCKED
    for part in (str(holder.pid), "chroma run", "ChromaStore.server"):
        assert part in str(caught.value)
    with ChromaStore.local(tmp_path, index=False) as store:
        store.put(("a",), "k", {})


def test_a_path_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StoreConfigurationError) as caught:
            ChromaStore.local(path, index=False)
        assert caught.value.code is ErrorCode.STORE_PATH


async def test_in_a_loop_it_opens_on_first_use(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    store = ChromaStore.local(tmp_path / "file", index=False)
    with pytest.raises(StoreConfigurationError):
        await store.aopen()
    with pytest.raises(StoreConfigurationError):
        await store.aput(("a",), "k", {})
    await store.aclose()


def test_memory_stores_are_apart() -> None:
    with ChromaStore.memory(index=False) as one, ChromaStore.memory(index=False) as other:
        one.put(("a",), "k", {})
        assert other.get(("a",), "k") is None
        assert other.list_namespaces() == []


def test_a_store_without_index(tmp_path: Path) -> None:
    with ChromaStore.local(tmp_path, index=False) as store:
        store.put(("a",), "k", {"text": "x"})
        found = store.search(("a",), query="x")
        assert [(each.key, each.score) for each in found] == [("k", None)]
    with pytest.raises(StoreConfigurationError) as caught:
        ChromaStore.local(tmp_path, embed=HashEmbeddings())
    assert caught.value.code is ErrorCode.STORE_EMBEDDER


def test_an_indexed_store_opened_without_index(tmp_path: Path) -> None:
    with ChromaStore.local(tmp_path, embed=HashEmbeddings()) as store:
        store.put(("a",), "k", {"text": "x"})
    with ChromaStore.local(tmp_path, index=False) as store:
        store.put(("a",), "plain", {"text": "y"})
        assert {each.key for each in store.search(("a",), query="x")} == {"k", "plain"}
    with ChromaStore.local(tmp_path, embed=HashEmbeddings()) as store:
        found = store.search(("a",), query="x")
        assert [each.score is None for each in found] == [False, True]


def test_many_unindexed_items_cost_no_recall() -> None:
    with ChromaStore.memory(embed=HashEmbeddings(), shards=1, cache_bytes=0) as store:
        for number in range(300):
            store.put(("a",), f"plain{number}", {"text": "same"}, index=False)
        store.put(("a",), "k", {"text": "needle"})
        assert store.search(("a",), query="needle", limit=1)[0].key == "k"
        assert len(store.search(("a",), query="needle", limit=400)) == 301


@pytest.mark.parametrize(
    "options",
    [
        {"embed": 7},
        {"index": 7},
        {"index": {"dim": 3}},
        {"index": {"dims": 0}},
        {"index": {"fields": "text"}},
        {"index": {"fields": [1]}},
        {"index": False, "embed": HashEmbeddings()},
        {"ttl": {"default": 1}},
        {"ttl": {"default_ttl": -1}},
        {"collection": "a b"},
        {"shards": 0},
        {"cache_bytes": -1},
        {"unknown": 1},
    ],
    ids="+".join,
)
def test_bad_options_are_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        ChromaStore.memory(**options)


@pytest.mark.parametrize("call", [{"limit": -1}, {"offset": -1}, {"limit": 2.5}], ids=str)
def test_bad_pages(call: dict[str, Any]) -> None:
    with ChromaStore.memory(index=False) as store, pytest.raises(InvalidInputError):
        store.search(("a",), **call)


class Failing(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise OSError(texts)

    def embed_query(self, text: str) -> list[float]:
        raise OSError(text)


async def test_an_embedder_that_raises() -> None:
    async with ChromaStore.memory(index={"dims": 3, "embed": Failing()}) as store:
        with pytest.raises(StoreError) as caught:
            await store.aput(("a",), "k", {"text": "x"})
        assert caught.value.code is ErrorCode.EMBEDDER_FAILED
        assert isinstance(caught.value.__cause__, OSError)
        assert await store.aget(("a",), "k") is None
        await store.aput(("a",), "k", {"text": "x"}, index=False)
        with pytest.raises(StoreError):
            await store.asearch(("a",), query="x")


async def test_kinds_of_embedders() -> None:
    threads: set[str] = set()

    def plain(texts: Any) -> list[list[float]]:
        threads.add(threading.current_thread().name)
        return HashEmbeddings(dims=4).embed_documents(list(texts))

    async def coroutine(texts: Any) -> list[list[float]]:
        await asyncio.sleep(0)
        return plain(texts)

    class Sync(HashEmbeddings):
        aembed_documents = Embeddings.aembed_documents
        aembed_query = Embeddings.aembed_query

    for embed in (plain, coroutine, Sync(dims=4), HashEmbeddings(dims=4)):
        async with ChromaStore.memory(embed=embed, shards=1) as store:
            await store.aput(("a",), "k", {"text": "x"})
            assert len(await store.asearch(("a",), query="x")) == 1
            await asyncio.to_thread(store.put, ("a",), "l", {"text": "y"})
            assert len(await asyncio.to_thread(lambda: store.search(("a",), query="y"))) == 2
    assert any(name.startswith("memguard-chroma") for name in threads)


def test_time_to_live() -> None:
    clock = Clock()
    ttl = {"default_ttl": 10, "refresh_on_read": False}
    with ChromaStore.memory(embed=HashEmbeddings(), ttl=ttl, clock=clock, shards=2) as store:
        store.put(("a",), "default", {"text": "x"})
        store.put(("a",), "short", {"text": "x"}, ttl=1)
        store.put(("a",), "always", {"text": "x"}, ttl=None)
        store.put(("b",), "short", {"text": "x"}, ttl=1)
        assert store.list_namespaces() == [("a",), ("b",)]
        clock.forward(2)
        assert store.get(("a",), "short") is None
        assert {each.key for each in store.search(("a",), query="x")} == {"default", "always"}
        assert store.count(("a",)) == 2
        assert store.list_namespaces() == [("a",)]
        assert store.sweep_ttl() == 2
        assert store.sweep_ttl() == 0
        clock.forward(20)
        assert store.delete_namespace(("a",)) == 1


def test_an_expired_item_is_put_anew() -> None:
    clock = Clock()
    with ChromaStore.memory(embed=HashEmbeddings(), clock=clock) as store:
        store.put(("a",), "k", {"text": "x"}, ttl=1)
        clock.forward(2)
        store.put(("a",), "k", {"text": "y"})
        item = store.get(("a",), "k")
        assert item is not None
        assert item.created_at == clock.now


@pytest.mark.parametrize("cache_bytes", [0, 2**20])
def test_reading_renews(cache_bytes: int) -> None:
    clock = Clock()
    with ChromaStore.memory(embed=HashEmbeddings(), clock=clock, cache_bytes=cache_bytes) as store:
        store.put(("a",), "got", {"text": "x"}, ttl=10)
        store.put(("a",), "found", {"tags": ["p", "q"]}, index=["tags[*]"], ttl=10)
        store.put(("b",), "left", {"text": "x"}, ttl=10)
        clock.forward(8)
        assert store.get(("a",), "got") is not None
        assert len(store.search(("a",), query="p", filter={"tags": ["p", "q"]})) == 1
        assert store.get(("b",), "left", refresh_ttl=False) is not None
        clock.forward(8)
        assert store.get(("a",), "got", refresh_ttl=False) is not None
        assert store.get(("a",), "found", refresh_ttl=False) is not None
        assert store.get(("b",), "left") is None


def test_expired_items_can_be_shown() -> None:
    clock = Clock()
    ttl = {"omit_expired": False, "refresh_on_read": False}
    with ChromaStore.memory(index=False, ttl=ttl, clock=clock) as store:
        store.put(("a",), "k", {}, ttl=1)
        clock.forward(2)
        assert store.get(("a",), "k") is not None
        assert store.sweep_ttl() == 1
        assert store.get(("a",), "k") is None


def test_sweeper(caplog: pytest.LogCaptureFixture) -> None:
    swept = threading.Event()
    clock = Clock()
    store = ChromaStore.memory(index=False, clock=clock)
    store.put(("a",), "k", {}, ttl=1)
    clock.forward(2)
    sweeper = store.start_ttl_sweeper(0.0005)
    assert store.start_ttl_sweeper(0.0005) is sweeper
    while store.delete_namespace(("a",)) or store.list_namespaces():
        swept.wait(0.01)
    assert store.stop_ttl_sweeper(timeout=10)
    assert not sweeper.is_running
    clock.now = clock.now.replace(tzinfo=None)
    with caplog.at_level(logging.CRITICAL):
        store.start_ttl_sweeper(0.0005)
        while not store.sweep_failures:
            swept.wait(0.01)
    store.close()
    assert store.sweep_failures


def test_server_that_is_not_there() -> None:
    with pytest.raises(StoreError) as caught:
        ChromaStore.server("127.0.0.1", 9, index=False)
    assert caught.value.code is ErrorCode.STORE_UNREACHABLE
    for part in ("127.0.0.1:9", "chroma run"):
        assert part in str(caught.value)


@pytest.mark.slow
async def test_server_restart_and_other_clients(tmp_path: Path) -> None:
    with ChromaServer(tmp_path / "data") as server:
        options: Any = {"embed": HashEmbeddings(), "shards": 2}
        async with (
            ChromaStore.server(server.host, server.port, **options) as one,
            ChromaStore.server(server.host, server.port, headers={"x": "y"}, **options) as other,
        ):
            await one.aput(("a",), "k", {"text": "x"})
            assert await other.aget(("a",), "k") is not None
            await other.aput(("a", "below"), "k", {"text": "x"})
            assert len(await one.asearch(("a",), query="x")) == 2
            await one.adelete(("a",), "k")
            assert await other.alist_namespaces() == [("a", "below")]
            await asyncio.to_thread(server.stop)
            with pytest.raises(StoreError) as caught:
                await one.aget(("a",), "k")
            assert caught.value.code is ErrorCode.STORE_UNREACHABLE
            await asyncio.to_thread(server.start)
            assert await one.aget(("a", "below"), "k") is not None
            await one.aput(("a",), "back", {"text": "y"})
            assert await other.aget(("a",), "back") is not None


def test_a_local_chroma_that_failed_is_opened_again(tmp_path: Path) -> None:
    def fails() -> None:
        msg = "(code: 13) database or disk is full"
        raise InternalError(msg)

    with (
        ChromaStore.local(tmp_path, embed=HashEmbeddings(), cache_bytes=0) as store,
        ChromaStore.local(tmp_path, embed=HashEmbeddings(), collection="other") as other,
    ):
        store.put(("a",), "k", {"text": "x"})
        other.put(("a",), "k", {"text": "x"})
        connection: Any = store._open().connection
        before = connection.client
        with pytest.raises(StoreError, match="disk is full"):
            connection.call(fails)
        # Its transaction may keep a lock, for which the next write would wait.
        assert connection.is_doubtful
        store.put(("a",), "l", {"text": "y"})
        assert connection.client is not before
        assert not connection.is_doubtful
        assert other.count(("a",)) == 1
        other.put(("a",), "l", {"text": "y"})
        assert len(store.search(("a",), query="x")) == len(other.search(("a",), query="x")) == 2
