"""Whole namespaces held in memory: exact ranking, exact filters, no trip to Chroma.

A namespace is usually one user's memories: some hundreds. Chroma's index answers over all the
namespaces of a collection and takes its filter as an afterthought (361 ms at 100,000 records and a
filter of 1 %), and one collection per namespace costs 2.9 MB and four open files each. So the
vectors and records of the namespaces in use are kept here, as one matrix each, and a search is a
product and a sort. Chroma stays the only source: a block is loaded from it, and changed after it
has acknowledged a write. Only a store that is the sole writer may keep blocks.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from memguard.schema.base import Namespace
from memguard.stores.chroma.values import Record

Matrix = NDArray[np.float32]

_ROW_OVERHEAD = 600
"""Bytes of Python objects per record, measured roughly; for the budget only."""

_AHEAD = 2
"""Rows put in order for each item that is wanted: some rows are an item's second, or of none."""

_WIDER = 8
"""How many times as many are put in order when those did not do."""

_CALLS_PER_TRIM = 32
"""Adding up 10,000 blocks takes a millisecond; the budget may be passed by a few in between."""


class Block:
    """The items of one namespace.

    Args:
        namespace: Whose items.
        dims: Numbers in a vector.
    """

    def __init__(self, namespace: Namespace, *, dims: int) -> None:
        self.namespace = namespace
        self.bytes = 0
        self._lock = threading.Lock()
        self._items: dict[str, tuple[Record, float, list[int]]] = {}
        self._matrix: Matrix = np.empty((0, dims), dtype=np.float32)
        self._owners: list[str | None] = []
        self._free: list[int] = []

    def put(self, record: Record, *, expires: float, vectors: Matrix) -> None:
        """Set one item; `vectors` has a row per vector that has a meaning, perhaps none."""
        unit = normalised(vectors)
        with self._lock:
            self._forget(record.key)
            slots = [self._claim(record.key, row) for row in unit]
            self._items[record.key] = (record, expires, slots)
            self.bytes += self._cost(record, len(slots))

    def drop(self, key: str) -> None:
        """Remove one item, if it is there."""
        with self._lock:
            self._forget(key)

    def touch(self, key: str, *, expires: float) -> None:
        """Move the end of one item."""
        with self._lock:
            if (held := self._items.get(key)) is not None:
                self._items[key] = (held[0], expires, held[2])

    def get(self, key: str) -> tuple[Record, float] | None:
        """One item and when it expires."""
        held = self._items.get(key)
        return None if held is None else (held[0], held[1])

    def items(self) -> list[tuple[Record, float]]:
        """Every item and when it expires."""
        with self._lock:
            return [(record, expires) for record, expires, _ in self._items.values()]

    def ranked(
        self, query: Matrix, *, need: int, accept: Callable[[Record, float], bool]
    ) -> tuple[list[tuple[float, Record]], set[str]]:
        """The best items by cosine, at most `need`, and the keys of all that have a vector.

        An item with several vectors counts by its best one.
        """
        with self._lock:
            scores = cosines(self._matrix[: len(self._owners)], query)
            best: list[tuple[float, Record]] = []
            seen: set[str] = set()
            for slot in best_first(scores, ahead=_AHEAD * need):
                key = self._owners[slot]
                if key is None or key in seen:
                    continue
                seen.add(key)
                record, expires, _ = self._items[key]
                if accept(record, expires):
                    best.append((float(scores[slot]), record))
                    if len(best) >= need:
                        break
            return best, seen

    def _forget(self, key: str) -> None:
        held = self._items.pop(key, None)
        if held is None:
            return
        for slot in held[2]:
            self._owners[slot] = None
            self._free.append(slot)
        self.bytes -= self._cost(held[0], len(held[2]))

    def _claim(self, key: str, row: Matrix) -> int:
        if self._free:
            slot = self._free.pop()
            self._owners[slot] = key
        else:
            slot = len(self._owners)
            self._owners.append(key)
            if slot >= len(self._matrix):
                room = np.zeros((max(8, slot), self._matrix.shape[1]), dtype=np.float32)
                self._matrix = np.vstack([self._matrix, room])
        self._matrix[slot] = row
        return slot

    def _cost(self, record: Record, vectors: int) -> int:
        return _ROW_OVERHEAD + len(record.text) + 4 * vectors * self._matrix.shape[1]


class Blocks:
    """The blocks used last, within a budget of bytes."""

    def __init__(self, *, budget: int) -> None:
        self.budget = budget
        self._calls = 0
        self._lock = threading.Lock()
        self._held: OrderedDict[Namespace, Block] = OrderedDict()

    def get(self, namespace: Namespace) -> Block | None:
        """The block of a namespace, if it is held."""
        with self._lock:
            block = self._held.get(namespace)
            if block is not None:
                self._held.move_to_end(namespace)
            return block

    def keep(self, block: Block) -> None:
        """Hold a block; the ones used longest ago make room for it."""
        with self._lock:
            self._held[block.namespace] = block
        self.trim()

    def trim(self) -> None:
        """Make room, if blocks have grown beyond the budget; looks at every few calls only."""
        with self._lock:
            self._calls += 1
            if self._calls % _CALLS_PER_TRIM:
                return
            total = sum(each.bytes for each in self._held.values())
            while total > self.budget and self._held:
                _, gone = self._held.popitem(last=False)
                total -= gone.bytes

    def drop(self, namespace: Namespace) -> None:
        """Let go of a block; the next use loads it anew."""
        with self._lock:
            self._held.pop(namespace, None)

    def __iter__(self) -> Iterator[Block]:
        with self._lock:
            return iter(list(self._held.values()))


def as_matrix(rows: Sequence[Sequence[float]], *, dims: int) -> Matrix:
    """Vectors as one array, also when there are none."""
    return np.asarray(rows, dtype=np.float32).reshape(len(rows), dims)


def normalised(vectors: Matrix) -> Matrix:
    """Rows scaled to length 1, so that a product is a cosine."""
    wide = vectors.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=-1, keepdims=True)
    return (wide / np.where(lengths == 0, 1.0, lengths)).astype(np.float32)


def cosines(rows: Matrix, query: Matrix) -> Matrix:
    """The cosine of each row with the query, all of length 1; equal rows have equal cosines.

    Not by `@`: BLAS starts a thread per core for a product of this size and the threads then spin,
    which took 6.7 ms of CPU where this takes 1.6 (10,000 rows of 384 numbers, 2 cores).
    """
    return np.einsum("ij,j->i", rows, query)


def best_first(scores: Matrix, *, ahead: int) -> Iterator[int]:
    """Places of the scores, the highest first and equal ones by place, as a stable sort has them.

    Only as many are put in order as are taken: a search wants 20 of 10,000.

    Args:
        scores: One dimension; what is no number comes last.
        ahead: How many will likely be taken, from 1 up.
    """
    falling = -scores
    given = 0
    while given < len(falling):
        if ahead < len(falling):
            # All that equal the last one come along, or the order among equals would be lost.
            last = np.partition(falling, ahead - 1)[ahead - 1]
            chosen = np.flatnonzero(falling <= last)
        else:
            chosen = np.arange(len(falling))
        order = chosen[np.argsort(falling[chosen], kind="stable")]
        yield from order[given:].tolist()
        given = max(given, len(order))
        ahead *= _WIDER


def spread_vector(row_id: str, *, dims: int) -> list[float]:
    """A direction derived from an id, for a row that has no vector of its own.

    Chroma wants a vector for every row, and many equal ones ruin its index: of 3,000 rows with 11
    distinct vectors a query for all returned 2,458. These are as far apart as random ones are.
    """
    return np.random.default_rng(int(row_id[:16], 16)).standard_normal(dims).tolist()
