"""Search: ranking, filters, pages."""

from typing import Any

import pytest

from memguard.errors import InvalidInputError
from memguard.testing.conformance.base import Calls, Suite

SPACE = ("memories", "ana")

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

ORDERED: tuple[tuple[dict[str, Any], set[str]], ...] = (
    ({"score": {"$gt": 3}}, {"dog"}),
    ({"score": {"$gte": 3, "$lt": 5}}, {"tea"}),
    ({"score": {"$lte": 3}}, {"tea", "off"}),
    ({"score": {"$gte": "3"}}, {"tea", "dog"}),
)


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
        await _fill(calls)
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
        await _fill(calls)
        items = await calls.search(SPACE, query="hidden")
        assert (items[-1].key, items[-1].score) == ("off", None)
        await calls.put(SPACE, "blank", {"other": 1})
        items = await calls.search(SPACE, query="tea")
        assert {item.key for item in items[-2:]} == {"off", "blank"}

    async def test_without_query_no_scores(self, calls: Calls) -> None:
        """Without a query, all items come back without a score."""
        await _fill(calls)
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
        await _fill(calls)
        for condition, keys in FILTERS:
            items = await calls.search(SPACE, filter=condition)
            assert ({item.key for item in items}, condition) == (keys, condition)
            items = await calls.search(SPACE, query="tea", filter=condition)
            assert ({item.key for item in items}, condition) == (keys, condition)

    async def test_ordered_filters(self, calls: Calls) -> None:
        """Comparisons are by number; an item without one does not match."""
        self.needs("refuses_filters")
        await _fill(calls)
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
        await _fill(calls)
        assert await calls.search(SPACE, limit=0) == []


async def _fill(calls: Calls) -> None:
    for key, value in ITEMS.items():
        await calls.put(SPACE, key, value, index=False if key == "off" else None)
