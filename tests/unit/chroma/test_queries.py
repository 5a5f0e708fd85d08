"""Vectors of queries are kept for the next time: bounded, in any thread, never a failure."""

import asyncio
import threading
from datetime import UTC, datetime
from functools import partial

import pytest
from langchain_core.embeddings import Embeddings

from memguard.chroma.settings import MAX_QUERIES
from memguard.errors import StoreError
from memguard.local.encoder import RecentItems, text_key
from memguard.read.recall import SAFETY_QUERIES, recall
from memguard.schema.read import Recall
from memguard.stores import ChromaStore
from memguard.testing.embeddings import HashEmbeddings


class Counting(HashEmbeddings):
    """Says what was asked of it, whichever way."""

    def __init__(self) -> None:
        super().__init__(dims=8)
        self.asked: list[str] = []

    def embed_query(self, text: str) -> list[float]:
        self.asked.append(text)
        return super().embed_query(text)

    async def aembed_query(self, text: str) -> list[float]:
        return self.embed_query(text)


def test_a_query_is_embedded_once_in_every_way_of_asking() -> None:
    embed = Counting()
    with ChromaStore.memory(embed=embed, shards=1) as store:
        store.put(("a",), "k", {"text": "x"})
        first = store.search(("a",), query="x")
        assert store.search(("a",), query="x") == first
        # In two other loops, and in threads.
        assert asyncio.run(store.asearch(("a",), query="x")) == first
        assert asyncio.run(store.asearch(("a",), query="x")) == first
        search = partial(store.search, ("a",), query="x")
        threads = [threading.Thread(target=search) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert embed.asked == ["x"]
        store.search(("a",), query="y")
        assert embed.asked == ["x", "y"]


async def test_reads_embed_the_safety_queries_once() -> None:
    embed = Counting()
    async with ChromaStore.memory(embed=embed, shards=1) as store:
        await store.aput(("a",), "k", {"text": "a peanut allergy"})
        for query in ("one", "two", "three"):
            await recall(
                store,
                query=query,
                namespaces=[("a",)],
                spec=Recall(),
                k=3,
                now=datetime(2026, 3, 1, tzinfo=UTC),
            )
    assert sorted(embed.asked) == sorted(["one", "two", "three", *SAFETY_QUERIES])


async def test_what_failed_is_asked_again() -> None:
    class Once(Embeddings):
        failed = False

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[1.0, 0.0] for _ in texts]

        def embed_query(self, text: str) -> list[float]:
            if not self.failed:
                self.failed = True
                raise OSError(text)
            return [1.0, 0.0]

    async with ChromaStore.memory(embed=Once(), shards=1) as store:
        await store.aput(("a",), "k", {"text": "x"})
        with pytest.raises(StoreError):
            await store.asearch(("a",), query="x")
        assert len(await store.asearch(("a",), query="x")) == 1


def test_those_used_last_are_kept() -> None:
    cache = RecentItems[bytes, list[float]](2)
    a, b, c, lone = (text_key(text) for text in ("a", "b", "c", "\ud800"))
    vector = [1.0]
    assert cache.get([a]) == {}
    cache.put({a: vector})
    assert cache.get([a])[a] is vector
    cache.put({b: [2.0]})
    assert cache.get([a])[a] is vector
    cache.put({c: [3.0]})
    assert cache.get([a, b, c]) == {a: vector, c: [3.0]}
    cache.put({lone: [4.0]})
    assert cache.get([lone]) == {lone: [4.0]}
    assert MAX_QUERIES < 100
