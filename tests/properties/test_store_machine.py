"""`ChromaStore` against LangGraph's `InMemoryStore`, by random operations."""

import contextlib
import math
from collections.abc import Sequence
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from langgraph.store.base import GetOp, Item, Op, PutOp, SearchItem, SearchOp
from langgraph.store.memory import InMemoryStore

from memguard.stores import ChromaStore
from memguard.testing.embeddings import HashEmbeddings
from tests import strategies

DIFFERENCES = {
    "order": "Without a query InMemoryStore gives insertion order and we give the latest change "
    "first: compared as sets.",
    "ties": "Items of equal score come in any order: compared by score.",
    "clamp": "InMemoryStore's scores go down to -1 and ours stop at 0.",
    "pages": "InMemoryStore repeats the unranked items on every page: our pages are held against "
    "our own long page.",
    "stale vectors": "A put over an item leaves InMemoryStore its old vectors: the model deletes "
    "before it puts.",
    "same text": "InMemoryStore raises when two puts of one batch share a text, and confuses "
    "several texts of several items: the model puts one at a time, and repeats the best text.",
    "created_at": "InMemoryStore forgets when an item was first put.",
    "empty namespaces": "InMemoryStore lists namespaces that were emptied or only asked for.",
    "blank text": "We give a text without a visible character no vector.",
    "comparisons": "InMemoryStore raises when $gt meets a value that is no number; ours does not "
    "match: not compared.",
    "labels": "We take dots, NUL and integers as labels.",
    "negative pages": "We refuse a negative limit or offset.",
}

DIMS = 16


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        index: Any = {"dims": DIMS, "embed": HashEmbeddings(dims=DIMS), "fields": ["text"]}
        self.ours = ChromaStore.memory(index=index, shards=2, cache_bytes=self.cache_bytes)
        self.model = InMemoryStore(index=index)
        self.used: set[tuple[tuple[str, ...], str]] = set()

    cache_bytes = 2**20

    def teardown(self) -> None:
        self.ours.close()

    @rule(
        namespace=strategies.shared_namespace(),
        key=strategies.keys(),
        value=strategies.item_value(),
        index=strategies.indexing(),
    )
    def put(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: dict[str, Any],
        index: Literal[False] | list[str] | None,
    ) -> None:
        self.ours.put(namespace, key, value, index=index)
        self._put_model(namespace, key, value, index)

    @precondition(lambda self: bool(self.used))
    @rule(data=st.data(), value=strategies.item_value(), index=strategies.indexing())
    def replace(
        self, data: st.DataObject, value: dict[str, Any], index: Literal[False] | list[str] | None
    ) -> None:
        namespace, key = data.draw(st.sampled_from(sorted(self.used)))
        self.put(namespace, key, value, index)

    @precondition(lambda self: bool(self.used))
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        namespace, key = data.draw(st.sampled_from(sorted(self.used)))
        self.ours.delete(namespace, key)
        self.model.delete(namespace, key)

    @rule(namespace=strategies.shared_namespace(), key=strategies.keys())
    def get(self, namespace: tuple[str, ...], key: str) -> None:
        _same_item(self.ours.get(namespace, key), self.model.get(namespace, key))

    @precondition(lambda self: bool(self.used))
    @rule(data=st.data(), value=strategies.item_value(), gone=st.booleans())
    def batch(self, data: st.DataObject, value: dict[str, Any], gone: bool) -> None:
        namespace, key = data.draw(st.sampled_from(sorted(self.used)))
        final = None if gone else value
        ops: list[Op] = [
            PutOp(namespace, key, {"text": "overwritten"}),
            GetOp(namespace, key),
            PutOp(namespace, key, final),
            SearchOp(namespace, limit=100),
        ]
        results = self.ours.batch(ops)
        before = self.model.batch([GetOp(namespace, key), SearchOp(namespace, limit=100)])
        assert results[0] is None
        assert results[2] is None
        _same_item(results[1], before[0])
        assert _keys(results[3]) == _keys(before[1])
        if gone:
            self.model.delete(namespace, key)
        else:
            self._put_model(namespace, key, value, None)

    @rule(
        data=st.data(),
        query=st.one_of(st.none(), strategies.sentence()),
        filters=st.lists(strategies.item_filter(), min_size=1, max_size=4),
    )
    def search(self, data: st.DataObject, query: str | None, filters: list[Any]) -> None:
        for wanted in filters:
            self._search(data, query, wanted)

    def _search(self, data: st.DataObject, query: str | None, wanted: Any) -> None:
        prefixes = {each[:depth] for each, _ in self.used for depth in range(len(each) + 1)}
        prefix = data.draw(st.sampled_from(sorted(prefixes or {("nowhere",)})))
        found = self.ours.search(prefix, query=query, filter=wanted, limit=100)
        with contextlib.suppress(TypeError, ValueError):
            model = self.model.search(prefix, query=query, filter=wanted, limit=100)
            _same_hits(found, model)
        limit, offset = data.draw(st.tuples(st.integers(0, 5), st.integers(0, 8)))
        page = self.ours.search(prefix, query=query, filter=wanted, limit=limit, offset=offset)
        assert _keys(page, ordered=True) == _keys(found[offset : offset + limit], ordered=True)

    @rule(
        data=st.data(),
        max_depth=st.one_of(st.none(), st.integers(1, 3)),
        limit=st.integers(0, 5),
        offset=st.integers(0, 3),
    )
    def list_namespaces(
        self, data: st.DataObject, max_depth: int | None, limit: int, offset: int
    ) -> None:
        labels = sorted({label for namespace, _ in self.used for label in namespace} | {"*"})
        paths = st.one_of(st.none(), st.lists(st.sampled_from(labels), max_size=2).map(tuple))
        wanted: Any = {
            "prefix": data.draw(paths),
            "suffix": data.draw(paths),
            "max_depth": max_depth,
            "limit": limit,
            "offset": offset,
        }
        living = InMemoryStore()
        for item in self.model.search((), limit=10_000):
            living.put(item.namespace, "k", {})
        assert self.ours.list_namespaces(**wanted) == living.list_namespaces(**wanted)

    @invariant()
    def same_size(self) -> None:
        assert len(self.ours.search((), limit=1000)) == len(self.model.search((), limit=1000))

    def _put_model(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: dict[str, Any],
        index: Literal[False] | list[str] | None,
    ) -> None:
        self.used.add((namespace, key))
        self.model.delete(namespace, key)
        self.model.put(namespace, key, value, index=_for_model(value, index))


def _for_model(
    value: dict[str, Any], index: Literal[False] | list[str] | None
) -> Literal[False] | list[str] | None:
    """The paths of a put without those that InMemoryStore embeds and we do not, or confuses."""
    if index is None or index is False:
        return index
    paths = {"kind": value.get("kind"), "text": value.get("text")}
    if "tags[*]" in index:
        tags = value.get("tags", [])
        return ["tags[0]"] if len(set(tags)) == 1 else index if tags else False
    seen = {text: path for path, text in paths.items() if path in index and text}
    return sorted(seen.values()) or False


def _same_item(ours: Any, model: Any) -> None:
    assert (ours is None) == (model is None)
    if isinstance(ours, Item) and isinstance(model, Item):
        assert (ours.namespace, ours.key, ours.value) == (model.namespace, model.key, model.value)
        assert repr(ours.value) == repr(model.value)


def _same_hits(ours: Sequence[SearchItem], model: Sequence[SearchItem]) -> None:
    left = {(each.namespace, each.key): each for each in ours}
    right = {(each.namespace, each.key): each for each in model}
    assert left.keys() == right.keys()
    assert len(left) == len(ours)
    for address, each in left.items():
        _same_item(each, right[address])
        assert (each.score is None) == (right[address].score is None)
        if each.score is not None:
            expected = max(0.0, right[address].score or 0.0)
            assert math.isclose(each.score, expected, abs_tol=1e-5)
    scores = [math.inf if each.score is None else -each.score for each in ours]
    assert scores == sorted(scores)


def _keys(items: Any, *, ordered: bool = False) -> list[tuple[tuple[str, ...], str]]:
    found = [(each.namespace, each.key) for each in items]
    return found if ordered else sorted(found)


class UncachedStoreMachine(StoreMachine):
    """The same with no resident blocks: Chroma's index answers."""

    cache_bytes = 0


_QUICK = settings(
    max_examples=40,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.filter_too_much,
    ],
)
_LONG = settings(_QUICK, max_examples=100, stateful_step_count=40)

TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = _QUICK
TestUncachedStoreMachine = UncachedStoreMachine.TestCase
TestUncachedStoreMachine.settings = settings(_QUICK, max_examples=20)


@pytest.mark.slow
@pytest.mark.timeout(1500)
class TestStoreMachineLong(StoreMachine.TestCase):
    settings = _LONG


@pytest.mark.slow
@pytest.mark.timeout(1500)
class TestUncachedStoreMachineLong(UncachedStoreMachine.TestCase):
    settings = _LONG


def test_every_difference_has_a_reason() -> None:
    assert all(text.endswith(".") for text in DIFFERENCES.values())
