"""The ranking of a namespace in memory, held against a plain one that sorts everything."""

import math
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import numpy as np
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memguard.chroma.rows import Block, Stored, as_matrix, best_first, cosines, normalised
from memguard.chroma.values import Record
from memguard.stores import ChromaStore

DIMS = 3
# Whole numbers of few values: many vectors are equal, opposite or at right angles.
VECTORS = st.tuples(*[st.integers(-2, 2)] * DIMS).filter(any)
SCORES = st.lists(
    st.one_of(st.sampled_from([0.0, -0.0, 0.5, 1.0]), st.floats(-1, 1, width=32)), max_size=300
)
NOW = 100.0


@example(scores=[1.0] * 20 + [0.5] * 280, ahead=4, lost=set(range(20, 300)))
@given(scores=SCORES, ahead=st.integers(1, 40), lost=st.sets(st.integers(0, 299)))
def test_best_first_is_a_stable_sort(scores: list[float], ahead: int, lost: set[int]) -> None:
    array = np.array(scores, dtype=np.float32)
    array[[place for place in lost if place < len(array)]] = np.nan
    sorted_whole = np.argsort(-array, kind="stable").tolist()
    assert list(best_first(array, ahead=ahead)) == sorted_whole
    assert list(islice(best_first(array, ahead=ahead), 7)) == sorted_whole[:7]


@given(rows=st.lists(VECTORS, min_size=1, max_size=40), query=VECTORS, copies=st.integers(2, 9))
def test_equal_rows_have_equal_cosines(
    rows: list[tuple[int, ...]], query: tuple[int, ...], copies: int
) -> None:
    matrix = normalised(as_matrix(rows * copies, dims=DIMS))
    found = cosines(matrix, normalised(as_matrix([query], dims=DIMS))[0])
    assert np.array_equal(found, np.tile(found[: len(rows)], copies))
    exact = [_cosine(row, query) for row in rows * copies]
    np.testing.assert_allclose(found, exact, atol=1e-6)


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("put"),
            st.integers(0, 60),
            st.lists(VECTORS, max_size=3),
            st.sampled_from([50.0, 500.0]),
        ),
        st.tuples(st.just("drop"), st.integers(0, 60)),
        st.tuples(st.just("touch"), st.integers(0, 60), st.sampled_from([50.0, 500.0])),
    ),
    max_size=120,
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS, query=VECTORS, need=st.integers(1, 30), kinds=st.sampled_from([1, 2, 7]))
def test_a_block_ranks_as_a_plain_one(steps: Any, query: Any, need: int, kinds: int) -> None:
    block, plain = Block(("a",), dims=DIMS), _Plain()
    for name, *arguments in steps:
        getattr(plain, name)(*arguments)
        _do(block, name, *arguments)

    def accept(item: Stored) -> bool:
        return item.is_live(NOW) and int(item.record.key) % kinds == 0

    unit = normalised(as_matrix([query], dims=DIMS))[0]
    best, seen = block.ranked(unit, need=need, accept=accept)
    expected = plain.ranked(unit, kinds=kinds)
    assert [(score, item.record.key) for score, item in best] == expected[:need]
    if len(best) < need:
        assert seen == {key for key in plain.owners if key is not None}


@settings(max_examples=25, deadline=None)
@given(
    items=st.lists(
        st.tuples(st.lists(VECTORS, min_size=1, max_size=3), st.booleans(), st.booleans()),
        min_size=1,
        max_size=80,
    ),
    query=VECTORS,
    page=st.integers(1, 30),
    only=st.booleans(),
)
def test_a_search_is_one_order_cut_into_pages(
    items: list[Any], query: Any, page: int, only: bool
) -> None:
    def embed(texts: Any) -> list[list[float]]:
        return [[float(number) for number in text.split()] for text in texts]

    def text(vector: tuple[int, ...]) -> str:
        return " ".join(map(str, vector))

    moment = [datetime(2026, 3, 1, tzinfo=UTC)]
    with ChromaStore.memory(embed=embed, clock=lambda: moment[0], shards=1) as store:
        for number, (vectors, kind, dies) in enumerate(items):
            value = {"parts": [text(vector) for vector in vectors], "kind": kind}
            store.put(("a",), str(number), value, index=["parts[*]"], ttl=1 if dies else None)
        moment[0] += timedelta(hours=1)
        wanted: Any = {"query": text(query), "filter": {"kind": True} if only else None}
        whole = store.search(("a",), limit=1000, **wanted)
        pages = [
            hit
            for offset in range(0, len(items) + page, page)
            for hit in store.search(("a",), limit=page, offset=offset, **wanted)
        ]
    exact = {
        str(number): max(0.0, *(_cosine(vector, query) for vector in vectors))
        for number, (vectors, kind, dies) in enumerate(items)
        if not dies and (kind or not only)
    }
    scores = [hit.score or 0.0 for hit in whole]
    assert [(hit.key, hit.score) for hit in pages] == [(hit.key, hit.score) for hit in whole]
    assert {hit.key for hit in whole} == set(exact)
    assert scores == sorted(scores, reverse=True)
    np.testing.assert_allclose(scores, [exact[hit.key] for hit in whole], atol=1e-6)


class _Plain:
    """The slots of a block as it hands them out, ranked by sorting all of them."""

    def __init__(self) -> None:
        self.owners: list[str | None] = []
        self.rows: list[tuple[int, ...]] = []
        self.free: list[int] = []
        self.slots: dict[str, list[int]] = {}
        self.ends: dict[str, float] = {}

    def put(self, key: int, vectors: list[tuple[int, ...]], expires: float) -> None:
        self.drop(key)
        self.ends[str(key)] = expires
        self.slots[str(key)] = [self._claim(str(key), vector) for vector in vectors]

    def drop(self, key: int) -> None:
        for slot in self.slots.pop(str(key), ()):
            self.owners[slot] = None
            self.free.append(slot)

    def touch(self, key: int, expires: float) -> None:
        self.ends[str(key)] = expires

    def ranked(self, query: Any, *, kinds: int) -> list[tuple[float, str]]:
        """Every item that is alive and passes, by its best row; equal ones by their slots."""
        scores = cosines(normalised(as_matrix(self.rows, dims=DIMS)), query)
        found: dict[str, float] = {}
        for slot in np.argsort(-scores, kind="stable").tolist():
            key = self.owners[slot]
            if key is not None and self.ends[key] > NOW and int(key) % kinds == 0:
                found.setdefault(key, float(scores[slot]))
        return [(score, key) for key, score in found.items()]

    def _claim(self, key: str, vector: tuple[int, ...]) -> int:
        if not self.free:
            self.owners.append(None)
            self.rows.append(vector)
        slot = self.free.pop() if self.free else len(self.owners) - 1
        self.owners[slot], self.rows[slot] = key, vector
        return slot


def _do(block: Block, name: str, key: int, *arguments: Any) -> None:
    match name:
        case "put":
            vectors, expires = arguments
            record = Record(
                key=str(key), text="{}", created=0, updated=0, ttl=None, vectors=0, revision=""
            )
            block.put(Stored(namespace=("a",), record=record, expires=expires, vectors=vectors))
        case "drop":
            block.drop(str(key))
        case _:
            block.touch(str(key), expires=arguments[0])


def _cosine(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    product = sum(a * b for a, b in zip(one, other, strict=True))
    return product / (math.hypot(*one) * math.hypot(*other))
