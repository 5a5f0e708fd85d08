"""The store suite on every store we ship, and on LangGraph's own for its general part."""

import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from memguard.stores import ChromaStore
from memguard.testing.conformance import Calls, Capabilities, StoreConformance
from memguard.testing.embeddings import HashEmbeddings
from tests.chroma_server import ChromaServer

CHROMA = Capabilities(
    any_label=True,
    keeps_created_at=True,
    refuses_values=True,
    refuses_filters=True,
    counts=True,
    unit_scores=True,
    paged_unranked=True,
    drops_empty_namespaces=True,
    copies_values=True,
)
_serial = itertools.count()


def index() -> dict[str, Any]:
    return {"dims": 32, "embed": HashEmbeddings(dims=32), "fields": ["text"]}


class TestLocal(StoreConformance):
    capabilities = CHROMA

    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[BaseStore]:
        async with ChromaStore.local(tmp_path / "store", index=index(), shards=4) as store:
            yield store


class TestLocalWithoutResidentBlocks(StoreConformance):
    capabilities = CHROMA

    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[BaseStore]:
        path = tmp_path / "store"
        async with ChromaStore.local(path, index=index(), cache_bytes=0, shards=4) as store:
            yield store


class TestMemory(StoreConformance):
    capabilities = CHROMA

    @pytest.fixture
    async def store(self) -> AsyncIterator[BaseStore]:
        async with ChromaStore.memory(index=index(), shards=4) as store:
            yield store


class TestServer(StoreConformance):
    capabilities = CHROMA

    @pytest.fixture
    async def store(self, chroma_server: ChromaServer) -> AsyncIterator[BaseStore]:
        name = f"suite-{next(_serial)}"
        host, port = chroma_server.host, chroma_server.port
        async with ChromaStore.server(
            host, port, index=index(), collection=name, shards=4
        ) as store:
            yield store


class TestInMemoryStore(StoreConformance):
    @pytest.fixture
    def store(self) -> BaseStore:
        return InMemoryStore(index=index())  # pyright: ignore[reportArgumentType]

    @pytest.mark.xfail(reason="a get of a missing item lists its namespace")
    async def test_reads_before_writes(self, calls: Calls) -> None:
        await super().test_reads_before_writes(calls)


def test_a_subclass_cannot_change_a_test() -> None:
    with pytest.raises(TypeError, match="overrides a conformance test"):

        class Cheating(StoreConformance):  # pyright: ignore[reportUnusedClass]
            async def test_put_replaces(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
                pass


def test_a_difference_is_written_down() -> None:
    class Honest(StoreConformance):
        @pytest.mark.xfail(reason="stores values by reference")
        async def test_put_replaces(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            pass

    assert Honest.capabilities == Capabilities()
