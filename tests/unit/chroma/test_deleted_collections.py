"""A collection that another program deletes, or creates anew, behind an open store."""

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import chromadb
import pytest
from chromadb.config import Settings
from langgraph.store.base import GetOp, PutOp

from memguard import compat
from memguard.errors import ErrorCode, StoreError
from memguard.stores import ChromaStore
from memguard.testing.embeddings import HashEmbeddings
from tests.chroma_server import ChromaServer

ANA, BOB = ("memories", "ana"), ("memories", "bob")
Client = Any


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaServer]:
    with ChromaServer(tmp_path_factory.mktemp("chroma")) as running:
        yield running


@pytest.fixture(params=["local", pytest.param("server", marks=pytest.mark.slow)])
def opened(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[Callable[[], ChromaStore], Client]]:
    """How to open a store without blocks in memory, and another client of its Chroma."""
    quiet = Settings(anonymized_telemetry=False)
    if request.param == "local":
        client: Client = chromadb.PersistentClient(str(tmp_path), settings=quiet)

        def create() -> ChromaStore:
            return ChromaStore.local(tmp_path, embed=HashEmbeddings(), cache_bytes=0)
    else:
        running: ChromaServer = request.getfixturevalue("server")
        client = chromadb.HttpClient(running.host, running.port, settings=quiet)

        def create() -> ChromaStore:
            return ChromaStore.server(running.host, running.port, embed=HashEmbeddings())

    yield create, client
    for collection in client.list_collections():
        client.delete_collection(collection.name)
    client.close()
    compat.close_chroma_sockets(client)


OPERATIONS: dict[str, Callable[[ChromaStore], object]] = {
    "put": lambda store: store.put(ANA, "new", {"text": "x"}),
    "get": lambda store: store.get(ANA, "k"),
    "search": lambda store: store.search(ANA, query="tea"),
    "list": lambda store: store.search(ANA),
    "delete": lambda store: store.delete(ANA, "k"),
    "batch": lambda store: store.batch([GetOp(ANA, "k"), PutOp(BOB, "k", {"text": "y"})]),
    "count": lambda store: store.count(ANA),
    "delete_namespace": lambda store: store.delete_namespace(ANA),
    "sweep": lambda store: store.sweep_ttl(),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_says_so_once(
    opened: tuple[Callable[[], ChromaStore], Client], name: str
) -> None:
    create, client = opened
    with create() as store, create() as other:
        store.put(ANA, "k", {"text": "Ana drinks tea."})
        store.put(BOB, "k", {"text": "Bob drinks tea."})
        other.get(ANA, "k")
        for collection in client.list_collections():
            client.delete_collection(collection.name)
        with pytest.raises(StoreError) as caught:
            OPERATIONS[name](store)
        assert caught.value.code is ErrorCode.STORE_COLLECTION
        # Without a restart, in this store object and in others.
        for each in (store, other):
            with contextlib.suppress(StoreError):  # each object may say so once
                each.put(ANA, "k", {"text": "Ana drinks coffee."})
            each.put(ANA, "k", {"text": "Ana drinks coffee."})
        assert [item.value["text"] for item in other.search((), query="tea")] == [
            "Ana drinks coffee."
        ]
        assert store.list_namespaces() == [ANA]


def test_a_shard_alone_takes_its_namespaces_from_the_list(
    opened: tuple[Callable[[], ChromaStore], Client],
) -> None:
    create, client = opened
    with create() as store:
        store.put(ANA, "k", {"text": "Ana drinks tea."})
        store.put(BOB, "k", {"text": "Bob drinks tea."})
        shards = {c.name for c in client.list_collections() if c.name != "memguard"}
        assert len(shards) == 2
        lost = next(
            name
            for name in shards
            if "ana" in client.get_collection(name).get()["metadatas"][0]["ns"]
        )
        client.delete_collection(lost)
        # Created anew, with another distance, and left empty.
        client.create_collection(lost, embedding_function=None)
        with pytest.raises(StoreError):
            store.get(ANA, "k")
        assert store.list_namespaces() == [BOB]
        assert store.get(ANA, "k") is None
        store.put(ANA, "l", {"text": "Ana drinks coffee."})
        assert store.list_namespaces() == [ANA, BOB]
        assert len(store.search(("memories",), query="coffee")) == 2


def test_a_catalogue_alone_is_made_anew_from_the_rows(
    opened: tuple[Callable[[], ChromaStore], Client],
) -> None:
    create, client = opened
    with create() as store:
        store.put(ANA, "k", {"text": "Ana drinks tea."})
        store.put(BOB, "k", {"text": "Bob drinks tea."}, ttl=60)
        client.delete_collection("memguard")
        with pytest.raises(StoreError):
            store.put(("memories", "new"), "k", {"text": "x"})
        assert store.list_namespaces() == [ANA, BOB]
        assert len(store.search((), query="tea")) == 2
        client.delete_collection("memguard")
    # In a new object: the shards have the settings of the store, and the rows the namespaces.
    with create() as again:
        assert again.list_namespaces() == [ANA, BOB]
        again.put(("memories", "new"), "k", {"text": "x"})
        assert again.count(ANA) == 1


@pytest.mark.slow
def test_another_process_deletes_them_and_blocks_are_dropped(tmp_path: Path) -> None:
    code = (
        "import chromadb, sys; from chromadb.config import Settings; "
        "c = chromadb.PersistentClient(sys.argv[1], settings=Settings(anonymized_telemetry=False));"
        "[c.delete_collection(each.name) for each in c.list_collections()]"
    )
    with ChromaStore.local(tmp_path, embed=HashEmbeddings()) as store:
        store.put(ANA, "k", {"text": "Ana drinks tea."})
        subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=60)
        with pytest.raises(StoreError) as caught:
            store.put(ANA, "l", {"text": "Ana drinks coffee."})
        assert caught.value.code is ErrorCode.STORE_COLLECTION
        store.put(ANA, "l", {"text": "Ana drinks coffee."})
        assert [item.key for item in store.search(ANA, query="tea")] == ["l"]


async def test_the_async_methods_too(tmp_path: Path) -> None:
    async with ChromaStore.memory(embed=HashEmbeddings(), cache_bytes=0) as store:
        await store.aput(ANA, "k", {"text": "Ana drinks tea."})
        engine: Any = await store.aopen() and store._engine
        client = engine.connection.client
        for collection in client.list_collections():
            client.delete_collection(collection.name)
        with pytest.raises(StoreError) as caught:
            await store.aget(ANA, "k")
        assert caught.value.code is ErrorCode.STORE_COLLECTION
        await store.aput(ANA, "k", {"text": "Ana drinks coffee."})
        assert await store.acount(ANA) == 1
