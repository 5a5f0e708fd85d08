"""The two forms of an item: rows in Chroma, and a part of a block in memory.

A namespace is usually one user's memories, some hundreds of them. Chroma's index ranks all the
namespaces of a collection before it applies a filter (361 ms at 100,000 records and a filter of
1 %), and one collection per namespace would cost 2.9 MB and four open files each. So a block holds
the records and vectors of one namespace in use, the vectors as one matrix. A search is a product
and a sort, which is exact, also with a filter. Chroma stays the only source: a block is loaded from
it, and is changed after Chroma has acknowledged a write. Only the sole writer of a location keeps
blocks.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from memguard.chroma.values import (
    EXPIRES,
    NS,
    RANKED,
    RECORD,
    Address,
    Record,
    encode_namespace,
    loads_record,
    namespace_of,
)
from memguard.local.encoder import Matrix
from memguard.schema.base import Namespace

# Bytes of Python objects per record, measured roughly; for the budget only.
_ROW_OVERHEAD = 600
# Rows sorted for each item that is needed: some rows are a second vector of an item, or free.
_ROWS_PER_ITEM = 2
# The factor by which more rows are sorted when those were too few.
_WIDER = 8
# Adding up 10,000 blocks takes a millisecond; the budget may be exceeded by a few in between.
_CALLS_PER_TRIM = 32
_ORDINAL = "."


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """One item as Chroma stores it."""

    namespace: Namespace
    record: Record
    expires: float
    """Seconds since 1970."""
    vectors: Sequence[Sequence[float]] = ()
    """The vectors of its texts; empty if it has none, or if they were not read."""

    @property
    def address(self) -> Address:
        """The namespace and key."""
        return Address(self.namespace, self.record.key)

    def is_live(self, now: float) -> bool:
        """Whether it has not expired at a time, in seconds since 1970."""
        return self.expires > now


class UpsertRows(NamedTuple):
    """The arguments of one upsert."""

    ids: list[str]
    embeddings: list[Sequence[float]]
    metadatas: list[dict[str, Any]]


RawRow = tuple[str, Mapping[str, Any], Sequence[float] | None]
"""Id, metadata and vector as Chroma returns them; the vector is `None` if it was not requested."""


def row_ids(address: Address, count: int, *, start: int = 0) -> list[str]:
    """Ids of an item's rows, from ordinal `start` up to `count`."""
    # Ordinals are appended to a digest, so the head of any row can be named without reading it.
    stem = address.row_id
    return [f"{stem}{_ORDINAL}{ordinal}" for ordinal in range(start, count)]


def head_id(address: Address) -> str:
    """Id of the row that has the item."""
    return f"{address.row_id}{_ORDINAL}0"


def is_head(row_id: str) -> bool:
    """Whether a row has the item; an item's other rows exist for their vector."""
    return row_id.endswith(f"{_ORDINAL}0")


def head_of(row_id: str) -> str:
    """Id of the head of a row's item."""
    return f"{row_id.partition(_ORDINAL)[0]}{_ORDINAL}0"


def to_rows(item: Stored, *, dims: int) -> UpsertRows:
    """All rows of one item, for one call."""
    ids = row_ids(item.address, item.record.rows)
    namespace = encode_namespace(item.namespace)
    # Every row has every key: an upsert merges metadata, and would keep a key of the old row.
    shared = {NS: namespace, RANKED: namespace if item.vectors else "", EXPIRES: item.expires}
    texts = [item.record.dumps(), *[item.record.revision] * (len(ids) - 1)]
    return UpsertRows(
        ids=ids,
        embeddings=list(item.vectors) or [spread_vector(ids[0], dims=dims)],
        metadatas=[{**shared, RECORD: text} for text in texts],
    )


def head_from(metadata: Mapping[str, Any]) -> Stored:
    """The item of a head row, without its vectors."""
    return Stored(
        namespace=namespace_of(metadata),
        record=loads_record(str(metadata[RECORD])),
        expires=float(metadata[EXPIRES]),
    )


def from_rows(rows: Iterable[RawRow]) -> tuple[list[Stored], list[str]]:
    """Items of one namespace from its rows, and the ids of rows that belong to no item.

    A process that dies between a put with fewer vectors and the deletion of the old rows leaves
    rows of an older revision. On a server, another client may be about to delete them. They count
    as absent.
    """
    by_item: dict[str, dict[int, RawRow]] = {}
    for row in rows:
        stem, _, ordinal = row[0].partition(_ORDINAL)
        by_item.setdefault(stem, {})[int(ordinal)] = row
    items: list[Stored] = []
    strays: list[str] = []
    for item_rows in by_item.values():
        current: list[RawRow] = []
        if (head_row := item_rows.get(0)) is not None:
            head = head_from(head_row[1])
            record = head.record
            # By ordinal: the order of the vectors is the order of the item's texts.
            current = [
                row
                for ordinal, row in sorted(item_rows.items())
                if ordinal == 0 or (ordinal < record.rows and row[1][RECORD] == record.revision)
            ]
            vectors = [row[2] for row in current if row[2] is not None] if record.vectors else []
            items.append(replace(head, vectors=vectors))
        valid = {row[0] for row in current}
        strays += [row[0] for row in item_rows.values() if row[0] not in valid]
    return items, strays


class Block:
    """The items of one namespace, with their vectors as the rows of one matrix.

    A row of the matrix is called a slot. It belongs to the item whose key is in `_owners`, or is
    free. Slots are reused and never removed, because removing one would copy the whole matrix.
    """

    def __init__(self, namespace: Namespace, *, dims: int) -> None:
        self.namespace = namespace
        self.bytes = 0
        self._lock = threading.Lock()
        self._items: dict[str, tuple[Stored, list[int]]] = {}
        self._matrix: Matrix = np.empty((0, dims), dtype=np.float32)
        self._owners: list[str | None] = []
        self._free: list[int] = []

    def put(self, item: Stored) -> None:
        """Set one item, with a slot for each of its vectors."""
        # Outside the lock: it is the costly part, and searches wait for the lock.
        rows = normalised(as_matrix(item.vectors, dims=self._matrix.shape[1]))
        key = item.record.key
        with self._lock:
            self._forget(key)
            slots = [self._claim(key, row) for row in rows]
            # Without the vectors, which the matrix has: lists of floats would take eight times it.
            self._items[key] = (replace(item, vectors=()), slots)
            self.bytes += self._cost(item.record, len(slots))

    def drop(self, key: str) -> None:
        """Remove one item, if it is there."""
        with self._lock:
            self._forget(key)

    def touch(self, key: str, *, expires: float) -> None:
        """Change when one item expires."""
        with self._lock:
            if (entry := self._items.get(key)) is not None:
                self._items[key] = (replace(entry[0], expires=expires), entry[1])

    def get(self, key: str) -> Stored | None:
        """One item, without its vectors."""
        # Without the lock: one look into a dict is atomic.
        entry = self._items.get(key)
        return None if entry is None else entry[0]

    def items(self) -> list[Stored]:
        """Every item, without its vectors."""
        # A copy under the lock: a put would change the dict while a reader iterates over it.
        with self._lock:
            return [item for item, _ in self._items.values()]

    def ranked(
        self, query: Matrix, *, need: int, accept: Callable[[Stored], bool]
    ) -> tuple[list[tuple[float, Stored]], set[str]]:
        """The best accepted items, `need` at most, by the cosine of their best vector and a query.

        The query has length 1.

        Returns:
            Items with their cosine, the best first, and the keys of the items looked at. These are
            all that have a vector, if fewer than `need` are returned.
        """
        # Under the lock: a put may reuse a slot, and its score would go to another item.
        with self._lock:
            scores = cosines(self._matrix[: len(self._owners)], query)
            best: list[tuple[float, Stored]] = []
            ranked: set[str] = set()
            for slot in best_first(scores, ahead=_ROWS_PER_ITEM * need):
                key = self._owners[slot]
                if key is None or key in ranked:
                    continue
                ranked.add(key)
                item, _ = self._items[key]
                # In the order of rank, so that a filter parses no more values than it has to.
                if accept(item):
                    best.append((float(scores[slot]), item))
                    if len(best) >= need:
                        break
            return best, ranked

    def _forget(self, key: str) -> None:
        entry = self._items.pop(key, None)
        if entry is None:
            return
        item, slots = entry
        for slot in slots:
            # The old vector stays in the matrix; a slot without an owner is passed over.
            self._owners[slot] = None
            self._free.append(slot)
        self.bytes -= self._cost(item.record, len(slots))

    def _claim(self, key: str, row: Matrix) -> int:
        if self._free:
            slot = self._free.pop()
            self._owners[slot] = key
        else:
            slot = len(self._owners)
            self._owners.append(key)
            if slot >= len(self._matrix):
                # Twice the size each time, so that N puts copy about 2 N rows in all.
                room = np.zeros((max(8, slot), self._matrix.shape[1]), dtype=np.float32)
                self._matrix = np.vstack([self._matrix, room])
        self._matrix[slot] = row
        return slot

    def _cost(self, record: Record, vectors: int) -> int:
        return _ROW_OVERHEAD + len(record.text) + 4 * vectors * self._matrix.shape[1]


class Blocks:
    """The blocks that were used last, within a budget in bytes."""

    def __init__(self, *, budget: int) -> None:
        self.budget = budget
        self._calls = 0
        self._lock = threading.Lock()
        self._blocks: OrderedDict[Namespace, Block] = OrderedDict()

    def get(self, namespace: Namespace) -> Block | None:
        """The block of a namespace, if it is in memory."""
        with self._lock:
            block = self._blocks.get(namespace)
            if block is not None:
                self._blocks.move_to_end(namespace)
            return block

    def keep(self, block: Block) -> None:
        """Add a block; the ones used longest ago are dropped to make room for it."""
        with self._lock:
            self._blocks[block.namespace] = block
        self.trim()

    def trim(self) -> None:
        """Drop blocks if they have grown beyond the budget; checked at some calls only."""
        with self._lock:
            self._calls += 1
            if self._calls % _CALLS_PER_TRIM:
                return
            # Blocks grow without this class, so their sizes are added up each time.
            total = sum(block.bytes for block in self._blocks.values())
            while total > self.budget and self._blocks:
                _, oldest = self._blocks.popitem(last=False)
                total -= oldest.bytes

    def drop(self, namespace: Namespace) -> None:
        """Remove a block; the next use loads it again."""
        with self._lock:
            self._blocks.pop(namespace, None)

    def clear(self) -> None:
        """Remove every block."""
        with self._lock:
            self._blocks.clear()


def as_matrix(rows: Sequence[Sequence[float]], *, dims: int) -> Matrix:
    """Vectors as the rows of an array, which may be empty."""
    return np.asarray(rows, dtype=np.float32).reshape(len(rows), dims)


def normalised(vectors: Matrix) -> Matrix:
    """Rows scaled to length 1, so that a product is a cosine."""
    # In double precision: the squares of small numbers vanish in single precision.
    wide = vectors.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=-1, keepdims=True)
    # A vector of zeros stays one, and its cosine with everything is 0.
    return (wide / np.where(lengths == 0, 1.0, lengths)).astype(np.float32)


def cosines(rows: Matrix, query: Matrix) -> Matrix:
    """The cosine of each row with the query, all of length 1; equal rows have equal cosines."""
    # Not by `@`: BLAS starts a thread per core for a product of this size and the threads then
    # spin, which took 6.7 ms of CPU where this takes 1.6 (10,000 rows of 384 numbers, 2 cores).
    return np.einsum("ij,j->i", rows, query)


def best_first(scores: Matrix, *, ahead: int) -> Iterator[int]:
    """Indices of the scores, the highest first and equal ones by index, as in a stable sort.

    Only a part is sorted at a time, because a search needs 20 of 10,000; `ahead` is how many the
    caller will likely use, from 1 up. NaN comes last.
    """
    falling = -scores
    yielded = 0
    while yielded < len(falling):
        if ahead < len(falling):
            # Including all that equal the last one, or the order among equals would be lost.
            last = np.partition(falling, ahead - 1)[ahead - 1]
            chosen = np.flatnonzero(falling <= last)
        else:
            chosen = np.arange(len(falling))
        order = chosen[np.argsort(falling[chosen], kind="stable")]
        yield from order[yielded:].tolist()
        yielded = max(yielded, len(order))
        ahead *= _WIDER


def spread_vector(row_id: str, *, dims: int) -> list[float]:
    """A vector derived from an id, for a row of an item that has no vector.

    Chroma requires a vector for every row, and its index fails with many equal ones: of 3,000 rows
    with 11 distinct vectors, a query for all returned 2,458. These differ like random vectors.
    """
    # Not random: the same row has the same vector when a put is repeated.
    return np.random.default_rng(int(row_id[:16], 16)).standard_normal(dims).tolist()
