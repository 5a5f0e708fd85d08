"""Speed of our store with many namespaces, against plain Chroma with one namespace alone.

`python -m benchmarks.namespaces --records 100000 --namespaces 1000`

The comparison is Chroma in a directory of its own, with one collection that contains the records of
one namespace and nothing else. Queries of both alternate in one run, so that a slow minute of the
machine affects both. Vectors are random, in clusters, with 384 dimensions; no embedder is measured.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
import psutil
from chromadb.config import Settings
from langgraph.store.base import PutOp
from numpy.typing import NDArray

from memguard.chroma.settings import DEFAULT_CACHE_BYTES
from memguard.stores import ChromaStore

DIMS = 384
_CLUSTERS = 50
_BATCH = 100
_TEXT = "the user said something of the usual length, which is about a hundred characters of text "


class Vectors:
    """An embedder that returns clustered random vectors, the same for the same text."""

    name = "bench"
    dims = DIMS

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._centres: NDArray[np.float64] = rng.standard_normal((_CLUSTERS, DIMS))

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector per text; the last word of a text must be a number, the seed of its vector."""
        rows: list[list[float]] = []
        for text in texts:
            number = int(text.rsplit(" ", 1)[-1])
            rng = np.random.default_rng(number)
            # In clusters, as topics are; between uniformly random vectors nothing is near.
            row = self._centres[number % _CLUSTERS] + 0.7 * rng.standard_normal(DIMS)
            rows.append(row.tolist())
        return rows


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The size of the benchmark."""

    records: int
    """Records in all namespaces."""
    namespaces: int
    """Number of namespaces."""
    queries: int
    """Queries per measurement."""
    seed: int
    """Seed of vectors and queries."""

    @property
    def records_per_namespace(self) -> int:
        """Records per namespace."""
        return self.records // self.namespaces

    def number(self, space: int, row: int) -> int:
        """The number of a record, the seed of its vector."""
        return space * self.records_per_namespace + row


def main() -> None:
    """Measure and print the tables."""
    shape = _arguments()
    vectors = Vectors(shape.seed)
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        start = time.perf_counter()
        with _open(ours, vectors, DEFAULT_CACHE_BYTES) as store:
            _fill(store, shape)
            seconds = time.perf_counter() - start
            print(f"records {shape.records}, namespaces {shape.namespaces}, seed {shape.seed}")
            print(f"insert, in batches of {_BATCH}: {shape.records / seconds:,.0f} /s")
            _print_costs(Path(ours))
        # One from the middle, since the last namespaces written may still be in caches.
        space = shape.namespaces // 2
        raw = _raw(theirs, shape, space, vectors)
        for title, budget in (("resident", DEFAULT_CACHE_BYTES), ("Chroma's index", 0)):
            with _open(ours, vectors, budget) as store:
                _compare(store, raw, shape, space=space, vectors=vectors, title=title)
        _print_costs(Path(ours))


def _open(path: str, vectors: Vectors, budget: int) -> ChromaStore:
    index = {"dims": DIMS, "embed": vectors, "fields": ["text"]}
    return ChromaStore.local(path, index=index, embed_name="bench", cache_bytes=budget)


def _compare(
    store: ChromaStore, raw: Any, shape: Shape, *, space: int, vectors: Vectors, title: str
) -> None:
    # Another seed than that of the vectors, or the queries would repeat the records.
    rng = np.random.default_rng(shape.seed + 1)
    print(f"\n{title}")
    spaces = [int(index) for index in rng.integers(0, shape.namespaces, shape.queries)]
    _row(
        "first search of a namespace", [_search(store, index, rng) for index in spaces[:100]], None
    )
    ours: list[float] = []
    theirs: list[float] = []
    for number in range(shape.queries):
        query = f"query {number}"
        vector = vectors([query])[0]
        theirs.append(_timed(lambda vector=vector: _ask(raw, vector)))
        ours.append(_search(store, space, rng))
    _row("search, one namespace", ours, theirs)
    _row("search, any namespace", [_search(store, index, rng) for index in spaces], theirs)
    _row("the same once more", [_search(store, index, rng) for index in spaces], theirs)
    _row("list_namespaces(limit=100)", _repeat(lambda: store.list_namespaces(limit=100)), None)
    _row("get", _repeat(lambda: store.get(_name(space), "0")), _repeat(lambda: raw.get(ids=["0"])))
    value = {"text": f"{_TEXT}{shape.number(space, 0)}"}
    vector = vectors([value["text"]])[0]
    _row(
        "put (replace)",
        _repeat(lambda: store.put(_name(space), "0", value)),
        _repeat(
            lambda: raw.upsert(ids=["0"], embeddings=[vector], metadatas=[{"v": value["text"]}])
        ),
    )


def _search(store: ChromaStore, space: int, rng: np.random.Generator) -> float:
    # A new query each time, so that no cache of queries helps.
    query = f"query {int(rng.integers(1 << 30))}"
    return _timed(lambda: store.search(_name(space), query=query, limit=10))


def _ask(raw: Any, vector: list[float]) -> Any:
    return raw.query(query_embeddings=[vector], n_results=10, include=["metadatas", "distances"])


def _fill(store: ChromaStore, shape: Shape) -> None:
    # Several small namespaces in one batch, as a busy server would write them.
    together = max(1, _BATCH // shape.records_per_namespace)
    for first in range(0, shape.namespaces, together):
        store.batch(
            [
                PutOp(_name(space), str(row), {"text": f"{_TEXT}{shape.number(space, row)}"})
                for space in range(first, min(first + together, shape.namespaces))
                for row in range(shape.records_per_namespace)
            ]
        )


def _raw(path: str, shape: Shape, space: int, vectors: Vectors) -> Any:
    # The same distance as our store's; without an embedder, since vectors are passed in.
    client = chromadb.PersistentClient(path, settings=Settings(anonymized_telemetry=False))
    collection = client.create_collection(
        "alone", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
    )
    texts = [f"{_TEXT}{shape.number(space, row)}" for row in range(shape.records_per_namespace)]
    collection.add(
        ids=[str(row) for row in range(shape.records_per_namespace)],
        embeddings=np.asarray(vectors(texts), dtype=np.float32),
        metadatas=[{"v": text} for text in texts],
    )
    return collection


def _name(space: int) -> tuple[str, str]:
    return ("memories", f"user{space}@example.org")


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def _repeat(work: Callable[[], object]) -> list[float]:
    # Enough for a median; a put into Chroma is slow.
    return [_timed(work) for _ in range(50)]


def _row(name: str, ours: list[float], theirs: list[float] | None) -> None:
    line = f"  {name:32s} p50 {statistics.median(ours):8.2f} ms  p95 {_p95(ours):8.2f} ms"
    if theirs is not None:
        ratio = statistics.median(ours) / statistics.median(theirs)
        line += f"  raw p50 {statistics.median(theirs):6.2f} ms  ratio {ratio:5.2f}"
    print(line, flush=True)


def _p95(numbers: list[float]) -> float:
    return float(np.percentile(numbers, 95))


def _print_costs(path: Path) -> None:
    process = psutil.Process()
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    memory = process.memory_info().rss
    print(
        f"memory of the process {memory / 1e6:,.0f} MB, open files {process.num_fds()}, "
        f"disk {size / 1e6:,.0f} MB",
        flush=True,
    )


def _arguments() -> Shape:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--namespaces", type=int, default=1_000)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    return Shape(
        records=options.records,
        namespaces=options.namespaces,
        queries=options.queries,
        seed=options.seed,
    )


if __name__ == "__main__":
    main()
