"""The suite for a LangGraph store, and its tests of batches and concurrent callers."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)

from memguard.testing.conformance.base import Calls, Suite
from memguard.testing.conformance.items import ItemTests
from memguard.testing.conformance.searches import SearchTests
from memguard.testing.conformance.spaces import NamespaceTests

SPACE = ("memories", "ana")


class BatchTests(Suite):
    """Several operations in one batch, and several callers at once."""

    async def test_results_in_order(self, calls: Calls) -> None:
        """The results are in the order of the operations."""
        await calls.put(SPACE, "k", {"text": "x"})
        ops: list[Op] = [
            PutOp(SPACE, "new", {"text": "y"}),
            GetOp(SPACE, "k"),
            ListNamespacesOp((MatchCondition("prefix", ("memories",)),)),
            SearchOp(SPACE, query="x"),
            GetOp(SPACE, "none"),
        ]
        results = await calls.batch(ops)
        assert results[0] is None
        assert isinstance(results[1], Item)
        assert results[2] == [SPACE]
        assert isinstance(results[3], list)
        assert len(results[3]) == 1
        assert results[4] is None

    async def test_reads_before_writes(self, calls: Calls) -> None:
        """The reads of a batch see the state before it, wherever they are in the batch."""
        ops: list[Op] = [
            PutOp(SPACE, "k", {"text": "x"}),
            GetOp(SPACE, "k"),
            SearchOp(SPACE),
            ListNamespacesOp(),
        ]
        assert await calls.batch(ops) == [None, None, [], []]
        assert await calls.get(SPACE, "k") is not None

    async def test_last_put_counts(self, calls: Calls) -> None:
        """Of several puts of one key, the last one counts; it may be a deletion."""
        await calls.batch([PutOp(SPACE, "k", {"text": f"{n}"}) for n in range(5)])
        item = await calls.get(SPACE, "k")
        assert item is not None
        assert item.value == {"text": "4"}
        await calls.batch([PutOp(SPACE, "k", {"text": "again"}), PutOp(SPACE, "k", None)])
        assert await calls.get(SPACE, "k") is None
        await calls.batch([PutOp(SPACE, "k", None), PutOp(SPACE, "k", {"text": "back"})])
        assert await calls.get(SPACE, "k") is not None

    async def test_empty_batch(self, calls: Calls) -> None:
        """No operations, no results."""
        assert await calls.batch([]) == []

    async def test_batch_over_many_namespaces(self, calls: Calls) -> None:
        """One batch may write to any number of namespaces."""
        ops: list[Op] = [
            PutOp(("many", str(n % 20)), f"k{n}", {"text": f"item {n}"}) for n in range(100)
        ]
        await calls.batch(ops)
        assert len(await calls.search(("many",), limit=200)) == 100
        assert len(await calls.namespaces(prefix=("many",))) == 20

    async def test_own_writes_are_read(self, store: BaseStore) -> None:
        """Concurrent calls from one loop lose nothing, and each reads what it wrote."""
        self.needs_surface("async")

        async def write_then_read(number: int) -> Any:
            await store.aput(SPACE, f"k{number}", {"text": f"item {number}"})
            return await store.aget(SPACE, f"k{number}")

        items = await asyncio.gather(*(write_then_read(number) for number in range(25)))
        assert [item.value["text"] for item in items] == [f"item {n}" for n in range(25)]
        assert len(await store.asearch(SPACE, limit=100)) == 25

    async def test_one_key_from_many_callers(self, store: BaseStore) -> None:
        """Concurrent writers of one key leave the complete value of one of them."""
        self.needs_surface("async")
        writes = (store.aput(SPACE, "k", {"text": f"v{n}", "same": f"v{n}"}) for n in range(10))
        await asyncio.gather(*writes)
        item = await store.aget(SPACE, "k")
        assert item is not None
        assert item.value["text"] == item.value["same"]
        assert len(await store.asearch(SPACE, query="v1")) == 1

    async def test_threads_and_loops(self, store: BaseStore) -> None:
        """Threads, with and without event loops of their own, share one store."""
        self.needs_surface("async")

        def with_a_loop(number: int) -> None:
            asyncio.run(store.aput(SPACE, f"loop{number}", {"text": f"item {number}"}))

        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(4) as pool:
            work = [partial(with_a_loop, n) for n in range(4)]
            work += [partial(store.put, SPACE, f"sync{n}", {"text": f"item {n}"}) for n in range(8)]
            # Leaving the pool blocks this loop, which some calls may need: they finish before.
            results = await asyncio.gather(
                *(loop.run_in_executor(pool, call) for call in work), return_exceptions=True
            )
        assert [result for result in results if result is not None] == []
        assert len(await store.asearch(SPACE, query="item", limit=50)) == 12


class StoreConformance(ItemTests, SearchTests, NamespaceTests, BatchTests):
    """All tests of a store; a subclass provides the fixture `store`.

    The fixture returns an empty store with an index on the field `text`, created with
    `HashEmbeddings(dims=32)`.
    """
