"""The data of one store in one Chroma: collections, catalogue, locks and blocks in memory.

Reading and writing share an engine. Everything here blocks and runs in worker threads. Stores that
one process opens on the same location share one connection, and those of the same collection share
one engine, with its locks and its blocks.
"""

import logging
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, TypeVar

from chromadb.api.models.Collection import Collection

from memguard.chroma.catalogue import Catalogue, Collections
from memguard.chroma.connection import Connection, connect
from memguard.chroma.rows import (
    Block,
    Blocks,
    RawRow,
    Stored,
    as_matrix,
    from_rows,
    head_from,
    head_id,
    spread_vector,
)
from memguard.chroma.settings import Local, Location
from memguard.chroma.values import NS, Address, encode_namespace, namespace_of
from memguard.schema.base import Namespace

logger = logging.getLogger(__name__)
T = TypeVar("T")

# Rows fetched by one call when a namespace is read as a whole. Bounds the memory of a call.
_PAGE = 2_000
_NAMESPACES_PER_CALL = 64
_AHEAD_THREADS = 4


class Engine:
    """The data of one store and the locks that guard it.

    Args:
        connection: An open Chroma.
        name: Name of the catalogue and stem of the shards.
        budget: Bytes of blocks in memory; ignored where other processes may write.
    """

    def __init__(self, connection: Connection, *, name: str, budget: int) -> None:
        self.connection = connection
        self.generation = connection.generation
        """The generation of the connection that the collections were opened on."""
        self.collections = Collections(connection, name=name)
        self.catalogue = Catalogue(connection, self.collections)
        self.blocks = Blocks(budget=0 if connection.is_shared else budget)
        self.large: set[Namespace] = set()
        """Namespaces that did not fit into the budget; Chroma's index ranks them instead."""
        self.ahead = (
            ThreadPoolExecutor(_AHEAD_THREADS, thread_name_prefix="memguard-ahead")
            if connection.is_shared
            else None
        )
        """Threads for requests to a server that do not depend on one another."""
        # One lock per shard and not per namespace: 10,000 namespaces would need as many locks, and
        # Chroma runs one write at a time anyway. Only `every_lock` takes two, and in order.
        self._locks: dict[int, threading.RLock] = {}
        self._locks_lock = threading.Lock()
        self.collections.attach()
        self.catalogue.load()

    @property
    def dims(self) -> int:
        """Numbers in a vector; 1 while nothing was written."""
        return self.collections.stamp.dims if self.collections.stamp else 1

    def close(self) -> None:
        """End the threads; other engines may still use the connection."""
        if self.ahead is not None:
            self.ahead.shutdown()

    def lock(self, shard: int) -> threading.RLock:
        """The lock that serialises writes to the namespaces of a shard."""
        with self._locks_lock:
            return self._locks.setdefault(shard, threading.RLock())

    @contextmanager
    def every_lock(self) -> Generator[None]:
        """Keep out all writes, and every reader that is about to keep a block."""
        with ExitStack() as stack:
            shards = self.collections.stamp.shards if self.collections.stamp else 1
            for shard in range(shards):
                stack.enter_context(self.lock(shard))
            yield

    def by_shard(
        self, items: Iterable[T], namespace_of_item: Callable[[T], Namespace]
    ) -> dict[int, list[T]]:
        """Group items by the shard of their namespace."""
        groups: dict[int, list[T]] = {}
        for item in items:
            shard = self.collections.shard_of(namespace_of_item(item))
            groups.setdefault(shard, []).append(item)
        return groups

    def existing_shards(
        self, items: Iterable[T], namespace_of_item: Callable[[T], Namespace]
    ) -> Iterator[tuple[int, Collection, list[T]]]:
        """As `by_shard`, with the collection of each shard, for the shards that exist."""
        for shard, group in self.by_shard(items, namespace_of_item).items():
            if (collection := self.collections.shard(shard)) is not None:
                yield shard, collection, group

    def heads(self, addresses: Iterable[Address]) -> dict[Address, Stored]:
        """Items by address, expired ones too; one call per shard at most."""
        items: dict[Address, Stored] = {}
        missing: list[Address] = []
        for address in addresses:
            block = self.blocks.get(address.namespace)
            if block is None:
                missing.append(address)
            # A block has all items of its namespace: a key that it lacks is not read from Chroma.
            elif (item := block.get(address.key)) is not None:
                items[address] = item
        for _, collection, group in self.existing_shards(missing, attrgetter("namespace")):
            items |= self._fetch_heads(collection, group)
        return items

    def start_block(self, namespace: Namespace) -> None:
        """Keep an empty block for a namespace that did not exist, without reading anything.

        The caller holds the lock of the shard.
        """
        # A budget of 0 means that there may be other writers, whose items the block would hide.
        if self.blocks.budget > 0:
            self.blocks.keep(Block(namespace, dims=self.dims))

    def load(self, namespaces: Sequence[Namespace], *, vectors: bool = True) -> list[Block]:
        """Blocks of namespaces, in the same order; kept for the next use by the sole writer.

        Without `vectors`, the blocks have none and are not kept.
        """
        blocks = {name: self.blocks.get(name) for name in namespaces}
        missing = [name for name, block in blocks.items() if block is None]
        for shard, collection, group in self.existing_shards(missing, tuple):
            for start in range(0, len(group), _NAMESPACES_PER_CALL):
                part = group[start : start + _NAMESPACES_PER_CALL]
                # A write that lands between reading and keeping the block would be lost.
                with self.lock(shard):
                    blocks |= self._load_part(collection, part, vectors=vectors)
        return [blocks[name] or Block(name, dims=self.dims) for name in namespaces]

    def _load_part(
        self, collection: Collection, namespaces: Sequence[Namespace], *, vectors: bool
    ) -> dict[Namespace, Block]:
        blocks: dict[Namespace, Block] = {}
        for name, rows in self._read(collection, namespaces, vectors=vectors).items():
            block = blocks[name] = Block(name, dims=self.dims)
            items, strays = from_rows(rows)
            for item in items:
                block.put(item)
            # On a server they may belong to a put of another client that is not finished yet.
            if strays and not self.connection.is_shared:
                logger.info("removing %d stray rows of %r", len(strays), name)
                self.delete_rows(collection, strays)
            if not vectors or self.blocks.budget == 0:
                continue
            # One namespace may take a quarter of the budget, or it would push out all the others.
            if block.bytes <= self.blocks.budget // 4:
                self.large.discard(name)
                self.blocks.keep(block)
            else:
                self.large.add(name)
        return blocks

    def delete_rows(self, collection: Collection, ids: Sequence[str]) -> None:
        """Delete rows by their ids, in groups that Chroma accepts."""
        for batch in self.connection.batches(ids):
            self.blank_vectors(collection, batch)
            self.connection.call(collection.delete, ids=batch)

    def blank_vectors(self, collection: Collection, ids: Sequence[str]) -> None:
        """Overwrite the vectors of rows that are about to be deleted.

        Chroma's index only marks a deleted row, and keeps its vector for good. A text can be
        guessed from its vector.
        """
        vectors: Any = [spread_vector(row_id, dims=self.dims) for row_id in ids]
        self.connection.call(
            collection.update,
            ids=list(ids),
            embeddings=as_matrix(vectors, dims=self.dims),  # pyright: ignore[reportArgumentType]
        )

    def _read(
        self, collection: Collection, namespaces: Sequence[Namespace], *, vectors: bool
    ) -> dict[Namespace, list[RawRow]]:
        include: list[Any] = ["metadatas", "embeddings"] if vectors else ["metadatas"]
        rows: dict[Namespace, list[RawRow]] = {name: [] for name in namespaces}
        where = scope(NS, namespaces)
        for page in self.connection.pages(collection, where=where, include=include, size=_PAGE):
            ids, metadatas = page["ids"], page["metadatas"] or []
            embeddings = page["embeddings"] if vectors and ids else [None] * len(ids)
            for row in zip(ids, metadatas, embeddings, strict=True):
                # Checked here too, whatever Chroma's filter let through.
                if (namespace := namespace_of(row[1])) in rows:
                    rows[namespace].append(row)
        return rows

    def _fetch_heads(
        self, collection: Collection, addresses: Sequence[Address]
    ) -> dict[Address, Stored]:
        by_id = {head_id(address): address for address in addresses}
        items: dict[Address, Stored] = {}
        for row_id, metadata in self.connection.rows(collection, ids=list(by_id)).items():
            address = by_id[row_id]
            item = head_from(metadata)
            # An id is a digest, so the row itself has to confirm whose it is.
            if item.address == address:
                items[address] = item
        return items


def scope(key: str, namespaces: Sequence[Namespace]) -> Any:
    """A Chroma filter for rows whose metadata has one of these namespaces under a key."""
    texts = [encode_namespace(name) for name in namespaces]
    return {key: texts[0]} if len(texts) == 1 else {key: {"$in": texts}}


@dataclass
class _SharedConnection:
    """An open location, its engines by collection, and how many stores use them."""

    connection: Connection
    engines: dict[str, Engine] = field(default_factory=dict[str, Engine])
    users: int = 0


# Chroma's index breaks when two clients of one process write one path, and a second lock on the
# path would be refused. So all stores of a process on one location share one connection.
_open_lock = threading.Lock()
_open: dict[Location, _SharedConnection] = {}


def acquire(location: Location, *, collection: str, budget: int) -> Engine:
    """The engine of a location's collection, opened if no store of this process has it open.

    Raises:
        StoreConfigurationError: If the location cannot be used.
        StoreError: If it cannot be reached.
    """
    if isinstance(location, Local):
        # Two paths to one directory are one location. They are resolved here and not when the store
        # is created, because that reads the disk, which must not block an event loop.
        location = Local(path=location.path.expanduser().resolve())
    with _open_lock:
        # Connecting inside the lock: of two threads with the same new location, one connects.
        shared = _open.get(location) or _SharedConnection(connect(location))
        try:
            if collection not in shared.engines:
                with shared.connection.in_use():
                    shared.engines[collection] = Engine(
                        shared.connection, name=collection, budget=budget
                    )
        except BaseException:
            # It was opened for this engine, which failed: nobody else would release its lock.
            if shared.users == 0:
                shared.connection.close()
            raise
        _open[location] = shared
        shared.users += 1
        return shared.engines[collection]


def release(engine: Engine) -> None:
    """Stop using an engine; the last user of its location closes the connection."""
    location = engine.connection.location
    with _open_lock:
        shared = _open[location]
        shared.users -= 1
        if shared.users == 0:
            del _open[location]
            for engine_of_location in shared.engines.values():
                engine_of_location.close()
            shared.connection.close()
