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
        """A query ranks by likeness, best first, each with a score."""
        self.needs_index()
        await _fill(calls)
        found = await calls.search(SPACE, query="drinks green tea")
        assert found[0].key == "tea"
        assert found[0].score == pytest.approx(1.0, abs=1e-4)
        scores = [each.score for each in found if each.score is not None]
        assert len(scores) == 3
        assert scores == sorted(scores, reverse=True)

    async def test_unranked_last(self, calls: Calls) -> None:
        """Items without a vector come after the ranked ones, with the score `None`."""
        self.needs_index()
        await _fill(calls)
        found = await calls.search(SPACE, query="hidden")
        assert (found[-1].key, found[-1].score) == ("off", None)
        await calls.put(SPACE, "blank", {"other": 1})
        found = await calls.search(SPACE, query="tea")
        assert {each.key for each in found[-2:]} == {"off", "blank"}

    async def test_without_query_no_scores(self, calls: Calls) -> None:
        """Without a query everything comes, unranked."""
        await _fill(calls)
        found = await calls.search(SPACE)
        assert {each.key for each in found} == set(ITEMS)
        assert {each.score for each in found} == {None}

    async def test_unit_scores(self, calls: Calls) -> None:
        """Scores lie in [0, 1] whatever the vectors."""
        self.needs("unit_scores")
        for number in range(30):
            await calls.put(SPACE, str(number), {"text": f"word{number}"})
        found = await calls.search(SPACE, query="another", limit=50)
        assert len(found) == 30
        assert all(each.score is not None and 0.0 <= each.score <= 1.0 for each in found)

    async def test_paths_of_one_put(self, calls: Calls) -> None:
        """A put may name its own paths; an item counts by the best of its vectors."""
        self.needs_index()
        value = {"text": "zzz", "tags": ["red apple", "blue whale"], "note": "grey"}
        await calls.put(SPACE, "many", value, index=["tags[*]", "note"])
        await calls.put(SPACE, "one", {"text": "red car"})
        for query in ("blue whale", "red apple", "grey"):
            found = await calls.search(SPACE, query=query)
            assert found[0].key == "many"
            assert found[0].score == pytest.approx(1.0, abs=1e-4)
            assert [each.key for each in found].count("many") == 1

    async def test_fewer_vectors_after_replacement(self, calls: Calls) -> None:
        """Vectors of a replaced item find nothing any more."""
        self.needs_index()
        self.needs("keeps_created_at")
        await calls.put(SPACE, "k", {"tags": ["red", "green", "blue"]}, index=["tags[*]"])
        await calls.put(SPACE, "k", {"tags": ["green"]}, index=["tags[*]"])
        found = await calls.search(SPACE, query="blue")
        assert [each.key for each in found] == ["k"]
        assert found[0].score is not None
        assert found[0].score < 0.9
        await calls.put(SPACE, "k", {"tags": ["green"]}, index=False)
        found = await calls.search(SPACE, query="green")
        assert [(each.key, each.score) for each in found] == [("k", None)]

    async def test_filters(self, calls: Calls) -> None:
        """Filters are exact, with a query and without."""
        await _fill(calls)
        for wanted, keys in FILTERS:
            found = await calls.search(SPACE, filter=wanted)
            assert ({each.key for each in found}, wanted) == (keys, wanted)
            found = await calls.search(SPACE, query="tea", filter=wanted)
            assert ({each.key for each in found}, wanted) == (keys, wanted)

    async def test_ordered_filters(self, calls: Calls) -> None:
        """Comparisons are by number; an item without one does not match."""
        self.needs("refuses_filters")
        await _fill(calls)
        for wanted, keys in ORDERED:
            found = await calls.search(SPACE, filter=wanted)
            assert ({each.key for each in found}, wanted) == (keys, wanted)

    async def test_unknown_filters_are_refused(self, calls: Calls) -> None:
        """A filter that means nothing is an error, not an empty page."""
        self.needs("refuses_filters")
        for wanted in UNKNOWN:
            with pytest.raises(InvalidInputError):
                await calls.search(SPACE, filter=wanted)

    @pytest.mark.parametrize("query", [None, "item"])
    async def test_pages(self, calls: Calls, query: str | None) -> None:
        """Pages join without gap or repeat into the one long page."""
        if query is not None:
            self.needs("paged_unranked")
        for number in range(23):
            index = False if number % 5 == 0 else None
            await calls.put(SPACE, f"k{number}", {"text": f"item {number}"}, index=index)
        whole = await calls.search(SPACE, query=query, limit=100)
        assert len(whole) == 23
        pages = [
            each
            for offset in range(0, 30, 7)
            for each in await calls.search(SPACE, query=query, limit=7, offset=offset)
        ]
        assert [each.key for each in pages] == [each.key for each in whole]
        assert await calls.search(SPACE, query=query, limit=7, offset=23) == []

    async def test_empty_pages(self, calls: Calls) -> None:
        """Nothing stored, or nothing asked for, is an empty page."""
        assert await calls.search(("nowhere",), query="x") == []
        assert await calls.search(("nowhere",)) == []
        await _fill(calls)
        assert await calls.search(SPACE, limit=0) == []


async def _fill(calls: Calls) -> None:
    for key, value in ITEMS.items():
        await calls.put(SPACE, key, value, index=False if key == "off" else None)
