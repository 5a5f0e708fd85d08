"""The conformance tests of a store, by capability: items, searches, namespaces and batches.

Each class has the data of its tests in front of it. `StoreConformance` at the end joins them, and
is the class to subclass. All tests call the store through the fixture `calls`, which runs each of
them once with the sync methods and once with the async ones.
"""

import asyncio
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)

from memguard.errors import InvalidInputError
from memguard.testing.conformance.base import Calls, Suite

SPACE = ("memories", "ana")

# -- items ------------------------------------------------------------------------------------

# Texts that a file name, an SQL pattern or an encoding would confuse or reject.
KEYS = ("k", "K", "", " ", "a/b", "%", "Ключ", "a\nb", "k.0", "k\x00", "\ud800")

# Types, nesting and characters that a column, a metadata field or an encoding would change.
VALUES: tuple[dict[str, Any], ...] = (
    {},
    {"subject": None},
    {"tags": []},
    {"tags": ["p", "q"]},
    {"tags": ["a", 1, None, 2.5, False, {"deep": [[]]}]},
    {"o": {"a": 1}, "empty": {}},
    {"big": 2**70, "negative": -(2**64)},
    {"float": 0.1 + 0.2, "tiny": 5e-324, "infinite": math.inf},
    {"text": "line\nline\ttab \x00 nul"},
    {"text": "日本語 العربية \U0001f600 e\u0301"},
    {"text": "unpaired \ud800 surrogate"},
    {"chroma:document": "x", "$and": "y", "": "z"},
    {"text": "123", "other": "None", "third": "True"},
    {"ok": True, "no": False, "zero": 0},
)

# Values that JSON changes without an error, with the path that the message has to name.
REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"when": datetime(2026, 5, 1, tzinfo=UTC)}, "$.when"),
    ({"a": [{"raw": b"x"}]}, "$.a[0].raw"),
    ({"pair": (1, 2)}, "$.pair"),
    ({"set": {1}}, "$.set"),
    ({"map": {1: "x"}}, "$.map"),
)


class ItemTests(Suite):
    """One item at a time."""

    async def test_get_what_was_put(self, calls: Calls) -> None:
        """An item comes back with its value, key, namespace and times."""
        await calls.put(SPACE, "k", {"text": "likes tea", "n": 1})
        item = await calls.existing(SPACE, "k")
        assert (item.value, item.key, item.namespace) == (
            {"text": "likes tea", "n": 1},
            "k",
            SPACE,
        )
        assert item.created_at.utcoffset() == timedelta(0)
        assert item.updated_at.utcoffset() == timedelta(0)

    async def test_missing_is_none(self, calls: Calls) -> None:
        """An item that was never put is `None`, whether or not its namespace exists."""
        assert await calls.get(("nowhere",), "k") is None
        await calls.put(SPACE, "k", {"text": "x"})
        assert await calls.get(SPACE, "other") is None
        assert await calls.get(("memories",), "k") is None

    async def test_values_come_back_equal(self, calls: Calls) -> None:
        """Every JSON value is preserved, with its types."""
        for number, value in enumerate(VALUES):
            await calls.put(SPACE, str(number), value)
        # Searched and read: the two may decode a value along different paths.
        values = {item.key: item.value for item in await calls.search(SPACE, limit=len(VALUES))}
        for number, value in enumerate(VALUES):
            item = await calls.existing(SPACE, str(number))
            assert item.value == value
            # 1, 1.0 and True are equal, so a changed type shows only here.
            assert repr(item.value) == repr(value)
            assert values[str(number)] == value

    async def test_nan_stays_nan(self, calls: Calls) -> None:
        """NaN is neither dropped nor turned into something else."""
        await calls.put(SPACE, "k", {"n": math.nan})
        item = await calls.existing(SPACE, "k")
        assert math.isnan(item.value["n"])

    async def test_other_values_are_refused(self, calls: Calls) -> None:
        """A value that JSON would change is refused, with its path, and nothing is stored."""
        self.needs("refuses_values")
        for value, path in REFUSED:
            with pytest.raises(InvalidInputError) as caught:
                await calls.put(SPACE, "k", value)
            assert path in str(caught.value)
        assert await calls.get(SPACE, "k") is None

    async def test_put_replaces(self, calls: Calls) -> None:
        """A second put leaves nothing of the first."""
        await calls.put(SPACE, "k", {"text": "old", "extra": 1, "gone": None})
        await calls.put(SPACE, "k", {"text": "new"})
        item = await calls.existing(SPACE, "k")
        assert item.value == {"text": "new"}
        assert len(await calls.search(SPACE)) == 1

    async def test_times(self, calls: Calls) -> None:
        """A replacement keeps `created_at` and moves `updated_at`."""
        self.needs("keeps_created_at")
        await calls.put(SPACE, "k", {"text": "old"})
        first = await calls.existing(SPACE, "k")
        await calls.put(SPACE, "k", {"text": "new"})
        second = await calls.existing(SPACE, "k")
        assert second.created_at == first.created_at
        assert second.updated_at > first.updated_at

    async def test_delete(self, calls: Calls) -> None:
        """A deleted item is gone from every read; deleting it again is not an error."""
        await calls.put(SPACE, "k", {"text": "x"})
        await calls.put(SPACE, "stays", {"text": "y"})
        await calls.delete(SPACE, "k")
        await calls.delete(SPACE, "k")
        await calls.delete(("nowhere",), "k")
        assert await calls.get(SPACE, "k") is None
        assert [item.key for item in await calls.search(SPACE, query="x")] == ["stays"]

    async def test_keys(self, calls: Calls) -> None:
        """Any text is a key, and different texts are different keys."""
        for key in KEYS:
            await calls.put(SPACE, key, {"text": key})
        for key in KEYS:
            item = await calls.existing(SPACE, key)
            assert (item.key, item.value) == (key, {"text": key})
        items = await calls.search(SPACE, limit=2 * len(KEYS))
        assert sorted(item.key for item in items) == sorted(KEYS)

    async def test_values_are_copies(self, calls: Calls) -> None:
        """A caller that changes a value does not change the stored value."""
        self.needs("copies_values")
        value: dict[str, Any] = {"text": "x", "list": [1]}
        await calls.put(SPACE, "k", value)
        value["list"].append(2)
        item = await calls.existing(SPACE, "k")
        item.value["list"].append(3)
        again = await calls.existing(SPACE, "k")
        assert again.value == {"text": "x", "list": [1]}


# -- searches ---------------------------------------------------------------------------------

ITEMS: dict[str, dict[str, Any]] = {
    "tea": {"text": "drinks green tea", "score": 3, "kind": "taste", "meta": {"lang": "en"}},
    "dog": {"text": "has a dog", "score": 5.5, "kind": "fact", "meta": {"lang": "en", "v": [1]}},
    "zug": {"text": "faehrt zug", "score": None, "kind": "fact", "meta": {"lang": "de"}},
    "off": {"text": "hidden", "score": -1, "kind": "note"},
}

FILTERS: tuple[tuple[dict[str, Any], set[str]], ...] = (
    ({}, {"tea", "dog", "zug", "off"}),
    ({"kind": "fact"}, {"dog", "zug"}),
    ({"kind": {"$eq": "fact"}}, {"dog", "zug"}),
    ({"kind": {"$ne": "fact"}}, {"tea", "off"}),
    ({"kind": "fact", "meta": {"lang": "de"}}, {"zug"}),
    ({"meta": {"lang": "en"}}, {"tea", "dog"}),
    ({"meta": {"v": [1]}}, {"dog"}),
    ({"meta": {"v": [1, 2]}}, set()),
    ({"score": None}, {"zug"}),
    ({"absent": None}, {"tea", "dog", "zug", "off"}),
    ({"absent": {"$ne": 1}}, {"tea", "dog", "zug", "off"}),
    ({"kind": "FACT"}, set()),
)

# Apart from the others, because LangGraph's own store raises `TypeError` at the missing number.
ORDERED: tuple[tuple[dict[str, Any], set[str]], ...] = (
    ({"score": {"$gt": 3}}, {"dog"}),
    ({"score": {"$gte": 3, "$lt": 5}}, {"tea"}),
    ({"score": {"$lte": 3}}, {"tea", "off"}),
    ({"score": {"$gte": "3"}}, {"tea", "dog"}),
)

# Unknown operators and operands without an order, also deep inside a condition.
UNKNOWN: tuple[dict[str, Any], ...] = (
    {"a": {"$in": [1]}},
    {"a": {"$gt": None}},
    {"a": {"b": {"$x": 1}}},
    {"a": {"$gt": []}},
)


class SearchTests(Suite):
    """Several items at a time."""

    async def test_nearest_first(self, calls: Calls) -> None:
        """A query ranks items by similarity, the best first, and gives each a score."""
        self.needs_index()
        await _fill_items(calls)
        items = await calls.search(SPACE, query="drinks green tea")
        # The same text has the same vector, so its cosine is 1.
        assert items[0].key == "tea"
        assert items[0].score == pytest.approx(1.0, abs=1e-4)
        scores = [item.score for item in items if item.score is not None]
        assert len(scores) == 3
        assert scores == sorted(scores, reverse=True)

    async def test_unranked_last(self, calls: Calls) -> None:
        """Items without a vector come after the ranked ones, with the score `None`."""
        self.needs_index()
        await _fill_items(calls)
        items = await calls.search(SPACE, query="hidden")
        assert (items[-1].key, items[-1].score) == ("off", None)
        await calls.put(SPACE, "blank", {"other": 1})
        items = await calls.search(SPACE, query="tea")
        assert {item.key for item in items[-2:]} == {"off", "blank"}

    async def test_without_query_no_scores(self, calls: Calls) -> None:
        """Without a query, all items come back without a score."""
        await _fill_items(calls)
        items = await calls.search(SPACE)
        assert {item.key for item in items} == set(ITEMS)
        assert {item.score for item in items} == {None}

    async def test_unit_scores(self, calls: Calls) -> None:
        """Scores lie in [0, 1] whatever the vectors."""
        self.needs("unit_scores")
        for number in range(30):
            await calls.put(SPACE, str(number), {"text": f"word{number}"})
        items = await calls.search(SPACE, query="another", limit=50)
        assert len(items) == 30
        assert all(item.score is not None and 0.0 <= item.score <= 1.0 for item in items)

    async def test_paths_of_one_put(self, calls: Calls) -> None:
        """A put may name its own paths; the best vector of an item decides its rank."""
        self.needs_index()
        value = {"text": "zzz", "tags": ["red apple", "blue whale"], "note": "grey"}
        await calls.put(SPACE, "many", value, index=["tags[*]", "note"])
        await calls.put(SPACE, "one", {"text": "red car"})
        for query in ("blue whale", "red apple", "grey"):
            items = await calls.search(SPACE, query=query)
            assert items[0].key == "many"
            assert items[0].score == pytest.approx(1.0, abs=1e-4)
            assert [item.key for item in items].count("many") == 1

    async def test_fewer_vectors_after_replacement(self, calls: Calls) -> None:
        """The vectors of a replaced item are no longer found."""
        self.needs_index()
        # LangGraph's `InMemoryStore`, which lacks the capability, still ranks by the old vectors.
        self.needs("keeps_created_at")
        await calls.put(SPACE, "k", {"tags": ["red", "green", "blue"]}, index=["tags[*]"])
        await calls.put(SPACE, "k", {"tags": ["green"]}, index=["tags[*]"])
        items = await calls.search(SPACE, query="blue")
        assert [item.key for item in items] == ["k"]
        assert items[0].score is not None
        assert items[0].score < 0.9
        await calls.put(SPACE, "k", {"tags": ["green"]}, index=False)
        items = await calls.search(SPACE, query="green")
        assert [(item.key, item.score) for item in items] == [("k", None)]

    async def test_filters(self, calls: Calls) -> None:
        """Filters are exact, with a query and without."""
        await _fill_items(calls)
        for condition, keys in FILTERS:
            items = await calls.search(SPACE, filter=condition)
            assert ({item.key for item in items}, condition) == (keys, condition)
            items = await calls.search(SPACE, query="tea", filter=condition)
            assert ({item.key for item in items}, condition) == (keys, condition)

    async def test_ordered_filters(self, calls: Calls) -> None:
        """Comparisons are by number; an item without one does not match."""
        self.needs("refuses_filters")
        await _fill_items(calls)
        for condition, keys in ORDERED:
            items = await calls.search(SPACE, filter=condition)
            assert ({item.key for item in items}, condition) == (keys, condition)

    async def test_unknown_filters_are_refused(self, calls: Calls) -> None:
        """An invalid filter is an error, not an empty page."""
        self.needs("refuses_filters")
        for condition in UNKNOWN:
            with pytest.raises(InvalidInputError):
                await calls.search(SPACE, filter=condition)

    @pytest.mark.parametrize("query", [None, "item"])
    async def test_pages(self, calls: Calls, query: str | None) -> None:
        """Consecutive pages contain every item exactly once, in order."""
        if query is not None:
            self.needs("paged_unranked")
        # Every fifth item has no vector, so one page spans the end of the ranked ones.
        for number in range(23):
            index = False if number % 5 == 0 else None
            await calls.put(SPACE, f"k{number}", {"text": f"item {number}"}, index=index)
        whole = await calls.search(SPACE, query=query, limit=100)
        assert len(whole) == 23
        pages = [
            item
            for offset in range(0, 30, 7)
            for item in await calls.search(SPACE, query=query, limit=7, offset=offset)
        ]
        assert [item.key for item in pages] == [item.key for item in whole]
        assert await calls.search(SPACE, query=query, limit=7, offset=23) == []

    async def test_empty_pages(self, calls: Calls) -> None:
        """The page is empty if nothing is stored or `limit` is 0."""
        assert await calls.search(("nowhere",), query="x") == []
        assert await calls.search(("nowhere",)) == []
        await _fill_items(calls)
        assert await calls.search(SPACE, limit=0) == []


# -- namespaces -------------------------------------------------------------------------------

# Pairs that a careless encoding confuses: prefixes, SQL wildcards, cases, forms of Unicode.
LABELS: tuple[str, ...] = (
    "user1",
    "user10",
    "user_1",
    "user%",
    "User1",
    "user1 ",
    " user1",
    "user1/notes",
    "user1%2Fnotes",
    "*",
    "用户一",
    "e\u0301",
    "\u00e9",
    "a\nb",
    "\U0001f600",
    "--",
)
DOTTED: tuple[Any, ...] = ("jo.doe@example.org", "jo_doe@example.org", ".", "..", "a.b", 7, -1)

SPACES: tuple[tuple[str, ...], ...] = (
    ("a", "b", "c"),
    ("a", "b", "d", "e"),
    ("a", "b", "d", "i"),
    ("a", "b", "f"),
    ("a", "c", "f"),
    ("b", "a", "f"),
    ("ab",),
)


# What `list_namespaces` returns of SPACES.
LISTINGS: tuple[tuple[dict[str, Any], Sequence[tuple[str, ...]]], ...] = (
    ({}, sorted(SPACES)),
    ({"prefix": ("a", "b")}, sorted(space for space in SPACES if space[:2] == ("a", "b"))),
    ({"suffix": ("f",)}, [("a", "b", "f"), ("a", "c", "f"), ("b", "a", "f")]),
    ({"prefix": ("*", "b", "d")}, [("a", "b", "d", "e"), ("a", "b", "d", "i")]),
    ({"suffix": ("d", "*")}, [("a", "b", "d", "e"), ("a", "b", "d", "i")]),
    ({"prefix": ("a",), "suffix": ("f",), "max_depth": 2}, [("a", "b"), ("a", "c")]),
    (
        {"prefix": ("a", "b"), "max_depth": 3},
        [("a", "b", "c"), ("a", "b", "d"), ("a", "b", "f")],
    ),
    ({"limit": 2, "offset": 3}, sorted(SPACES)[3:5]),
    ({"prefix": ("nowhere",)}, []),
)


class NamespaceTests(Suite):
    """Which items a namespace contains."""

    async def test_users_are_apart(self, calls: Calls) -> None:
        """Each user finds exactly their own items, however similar the ids are."""
        await _check_apart(calls, LABELS)

    async def test_any_id_is_a_label(self, calls: Calls) -> None:
        """E-mail addresses and numbers are labels too."""
        self.needs("any_label")
        await _check_apart(calls, DOTTED)
        assert (await calls.get(("users", "7"), "k")) is not None

    async def test_tenants_are_apart(self, calls: Calls) -> None:
        """A tenant whose name starts like another's sees nothing of the other."""
        for tenant in ("acme", "acme-corp", "acm"):
            await calls.put((tenant, "x"), "k", {"text": f"secret of {tenant}"})
        for tenant in ("acme", "acme-corp", "acm"):
            items = await calls.search((tenant,), query="secret", limit=50)
            assert [item.namespace for item in items] == [(tenant, "x")]

    async def test_prefix_search(self, calls: Calls) -> None:
        """A search finds items at and below its namespace, compared by whole labels."""
        await _fill_spaces(calls)
        for prefix in ((), ("a",), ("a", "b"), ("a", "b", "d"), ("b",), ("a", "b", "c")):
            expected = {space for space in SPACES if space[: len(prefix)] == prefix}
            for query in (None, "text"):
                items = await calls.search(prefix, query=query, limit=50)
                assert {item.namespace for item in items} == expected
        assert await calls.search(("A",)) == []

    async def test_refused(self, calls: Calls) -> None:
        """Empty namespaces, empty labels and LangGraph's own root are refused."""
        for namespace in ((), ("",), ("a", ""), ("langgraph", "x")):
            with pytest.raises(InvalidNamespaceError):
                await calls.put(namespace, "k", {"text": "x"})
        with pytest.raises(InvalidNamespaceError):
            await calls.search(("a", ""))

    async def test_listing(self, calls: Calls) -> None:
        """Namespaces are listed by prefix, suffix, wildcard and depth, in order and in pages."""
        await _fill_spaces(calls)
        for options, expected in LISTINGS:
            assert (await calls.namespaces(**options), options) == (list(expected), options)

    async def test_emptied_namespace_is_not_listed(self, calls: Calls) -> None:
        """A namespace without items is not listed; a new item lists it again."""
        self.needs("drops_empty_namespaces")
        await calls.put(("a", "b"), "k", {"text": "x"})
        await calls.put(("a", "b"), "l", {"text": "y"})
        await calls.delete(("a", "b"), "k")
        assert await calls.namespaces() == [("a", "b")]
        await calls.delete(("a", "b"), "l")
        assert await calls.namespaces() == []
        await calls.put(("a", "b"), "k", {"text": "x"})
        assert await calls.namespaces() == [("a", "b")]

    async def test_count_and_delete_namespace(self, calls: Calls) -> None:
        """Both methods work on exactly one namespace, not on those below it."""
        self.needs("counts")
        await calls.put(("a",), "k", {"text": "x"})
        await calls.put(("a",), "many", {"tags": ["p", "q"]}, index=["tags[*]"])
        await calls.put(("a",), "plain", {"text": "z"}, index=False)
        await calls.put(("a", "b"), "k", {"text": "y"})
        await calls.put(("ab",), "k", {"text": "y"})
        assert await calls.count(("a",)) == 3
        assert await calls.count(("nowhere",)) == 0
        assert await calls.delete_namespace(("a",)) == 3
        assert await calls.delete_namespace(("a",)) == 0
        assert await calls.count(("a",)) == 0
        assert await calls.namespaces() == [("a", "b"), ("ab",)]
        assert len(await calls.search(())) == 2


# -- batches ----------------------------------------------------------------------------------


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
        item = await calls.existing(SPACE, "k")
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
        # Two fields with the same text: a mixture of two writes shows as a difference.
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


async def _fill_items(calls: Calls) -> None:
    for key, value in ITEMS.items():
        await calls.put(SPACE, key, value, index=False if key == "off" else None)


async def _fill_spaces(calls: Calls) -> None:
    for space in SPACES:
        await calls.put(space, "k", {"text": "text"})


async def _check_apart(calls: Calls, labels: tuple[Any, ...]) -> None:
    for number, label in enumerate(labels):
        await calls.put(("users", label), "k", {"text": f"secret of {number}"})
    for number, label in enumerate(labels):
        space = ("users", label)
        item = await calls.existing(space, "k")
        assert item.value == {"text": f"secret of {number}"}
        for query in (None, "secret"):
            items = await calls.search(space, query=query, limit=50)
            assert [other.value for other in items] == [item.value]
    listed = await calls.namespaces(prefix=("users",))
    assert listed == sorted(("users", str(label)) for label in labels)
