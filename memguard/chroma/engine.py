"""One store's data in one Chroma: what reading, ranking and writing share.

Everything here blocks and runs in worker threads. Stores that are opened on the same location and
collection in one process share one engine, and with it the locks and the blocks in memory.
"""

import itertools
import logging
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

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
)
from memguard.chroma.settings import Local, Location
from memguard.chroma.values import NS, Address, encode_namespace, namespace_of
from memguard.schema.base import Namespace

logger = logging.getLogger(__name__)

_PAGE = 2_000
"""Rows fetched by one call when a namespace is read as a whole; bounds the memory of a call."""
_NAMESPACES_PER_CALL = 64
_AHEAD = 4


class Engine:
    """The data of one store and the locks that guard it.

    Args:
        connection: An open Chroma.
        name: Name of the catalogue and stem of the shards.
        budget: Bytes of blocks in memory; with other writers there are none.
    """

    def __init__(self, connection: Connection, *, name: str, budget: int) -> None:
        self.connection = connection
        self.collections = Collections(connection, name=name)
        self.catalogue = Catalogue(connection, self.collections)
        self.blocks = Blocks(budget=0 if connection.is_shared else budget)
        self.large: set[Namespace] = set()
        """Namespaces that did not fit into the budget; Chroma's index ranks them instead."""
        self.ahead = (
            ThreadPoolExecutor(_AHEAD, thread_name_prefix="memguard-ahead")
            if connection.is_shared
            else None
        )
        """Threads for requests to a server that need not wait for one another."""
        # One lock per shard and not per namespace: 10,000 namespaces would need as many locks, and
        # Chroma runs one write at a time anyway.
        self._locks: dict[int, threading.RLock] = {}
        self._locks_lock = threading.Lock()
        self.collections.attach()
        self.catalogue.load()

    @property
    def dims(self) -> int:
        """Numbers in a vector; 1 while nothing was written."""
        return self.collections.stamp.dims if self.collections.stamp else 1

    def close(self) -> None:
        """End the threads; the connection is closed by who opened it."""
        if self.ahead is not None:
            self.ahead.shutdown()

    def lock(self, shard: int) -> threading.RLock:
        """The lock that serialises writes to the namespaces of a shard."""
        with self._locks_lock:
            return self._locks.setdefault(shard, threading.RLock())

    def by_shard(self, addresses: Iterable[Address]) -> dict[int, list[Address]]:
        """Addresses by the shard they live in."""
        grouped: dict[int, list[Address]] = {}
        for address in addresses:
            shard = self.collections.shard_of(address.namespace)
            grouped.setdefault(shard, []).append(address)
        return grouped

    def namespaces_by_shard(self, namespaces: Iterable[Namespace]) -> dict[int, list[Namespace]]:
        """Namespaces by the shard they live in."""
        grouped: dict[int, list[Namespace]] = {}
        for namespace in namespaces:
            grouped.setdefault(self.collections.shard_of(namespace), []).append(namespace)
        return grouped

    def heads(self, addresses: Iterable[Address]) -> dict[Address, Stored]:
        """Items by address, expired ones too; one call per shard at most."""
        items: dict[Address, Stored] = {}
        missing: list[Address] = []
        for address in addresses:
            block = self.blocks.get(address.namespace)
            if block is None:
                missing.append(address)
            elif (entry := block.get(address.key)) is not None:
                items[address] = Stored(
                    namespace=address.namespace, record=entry[0], expires=entry[1]
                )
        for shard, group in self.by_shard(missing).items():
            collection = self.collections.shard(shard)
            if collection is not None:
                items |= self._fetch_heads(collection, group)
        return items

    def start_block(self, namespace: Namespace) -> None:
        """Keep a block of a namespace that did not exist: nothing need be read for it.

        Inside the shard's lock, and only for the sole writer.
        """
        # A budget of 0 means that there may be other writers, whose items the block would hide.
        if self.blocks.budget > 0:
            self.blocks.keep(Block(namespace, dims=self.dims))

    def load(self, namespaces: Sequence[Namespace], *, vectors: bool = True) -> list[Block]:
        """Blocks of namespaces, in their order; kept for the next use where that is safe.

        Args:
            namespaces: Which.
            vectors: Whether their vectors are needed. Blocks that are loaded without their vectors
                are not kept.
        """
        blocks = {name: self.blocks.get(name) for name in namespaces}
        missing = [name for name, block in blocks.items() if block is None]
        for shard, group in self.namespaces_by_shard(missing).items():
            for start in range(0, len(group), _NAMESPACES_PER_CALL):
                part = group[start : start + _NAMESPACES_PER_CALL]
                blocks |= self._load_part(shard, part, vectors=vectors)
        return [blocks[name] or Block(name, dims=self.dims) for name in namespaces]

    def _load_part(
        self, shard: int, namespaces: Sequence[Namespace], *, vectors: bool
    ) -> dict[Namespace, Block]:
        collection = self.collections.shard(shard)
        if collection is None:
            return {}
        # Under the shard's lock: a write that lands between reading and keeping would be lost.
        with self.lock(shard):
            blocks: dict[Namespace, Block] = {}
            for name, rows in self._read(collection, namespaces, vectors=vectors).items():
                block, strays = _to_block(name, rows, dims=self.dims)
                blocks[name] = block
                if strays and not self.connection.is_shared:
                    logger.info("removing %d stray rows of %r", len(strays), name)
                    self.delete_rows(collection, strays)
                if vectors and self.blocks.budget > 0:
                    self._keep(block)
            return blocks

    def _keep(self, block: Block) -> None:
        # One namespace may take a quarter of the budget, or it would push out all the others.
        if block.bytes <= self.blocks.budget // 4:
            self.large.discard(block.namespace)
            self.blocks.keep(block)
        else:
            self.large.add(block.namespace)

    def delete_rows(self, collection: Collection, ids: Sequence[str]) -> None:
        """Delete rows by their ids, in as many calls as Chroma needs."""
        for batch in self.connection.batches(ids):
            self.connection.call(collection.delete, ids=batch)

    def _read(
        self, collection: Collection, namespaces: Sequence[Namespace], *, vectors: bool
    ) -> dict[Namespace, list[RawRow]]:
        include: list[Any] = ["metadatas", "embeddings"] if vectors else ["metadatas"]
        rows: dict[Namespace, list[RawRow]] = {name: [] for name in namespaces}
        offset = 0
        while True:
            page = self.connection.call(
                collection.get,
                where=scope(NS, namespaces),
                include=include,
                limit=_PAGE,
                offset=offset,
            )
            ids, metadatas = page["ids"], page["metadatas"] or []
            embeddings: Any = (
                page["embeddings"] if vectors and ids else itertools.repeat(None, len(ids))
            )
            for row in zip(ids, metadatas, embeddings, strict=True):
                # Checked here too, whatever Chroma's filter let through.
                if (namespace := namespace_of(row[1])) in rows:
                    rows[namespace].append(row)
            offset += len(ids)
            if len(ids) < _PAGE:
                return rows

    def _fetch_heads(
        self, collection: Collection, addresses: Sequence[Address]
    ) -> dict[Address, Stored]:
        by_id = {head_id(address): address for address in addresses}
        page = self.connection.call(collection.get, ids=list(by_id), include=["metadatas"])
        items: dict[Address, Stored] = {}
        # In any order: Chroma ignores the order of the ids that it is asked for.
        for row_id, metadata in zip(page["ids"], page["metadatas"] or [], strict=True):
            address = by_id[row_id]
            record, expires = head_from(metadata)
            if namespace_of(metadata) == address.namespace and record.key == address.key:
                items[address] = Stored(namespace=address.namespace, record=record, expires=expires)
        return items


def scope(key: str, namespaces: Sequence[Namespace]) -> Any:
    """A Chroma filter for exactly these namespaces."""
    texts = [encode_namespace(name) for name in namespaces]
    return {key: texts[0]} if len(texts) == 1 else {key: {"$in": texts}}


def _to_block(
    namespace: Namespace, rows: Iterable[RawRow], *, dims: int
) -> tuple[Block, list[str]]:
    block = Block(namespace, dims=dims)
    items, strays = from_rows(namespace, rows)
    for item in items:
        block.put(item.record, expires=item.expires, vectors=as_matrix(item.vectors, dims=dims))
    return block, strays


class _Open:
    """An open location and its users."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.engines: dict[str, Engine] = {}
        self.users = 0


_open_lock = threading.Lock()
_open: dict[Location, _Open] = {}
"""Chroma's own index breaks when two clients of one process write one path, and a second lock on
the path would be refused. So all stores of a process on one location share one connection."""


def acquire(location: Location, *, collection: str, budget: int) -> Engine:
    """The engine of a location's collection, opened if no store of this process has it open.

    Raises:
        StoreConfigurationError: If the location cannot be used.
        StoreError: If it cannot be reached.
    """
    if isinstance(location, Local):
        # Two names of one directory are one location. Here and not at construction: resolving a
        # path asks the disk, which must not block an event loop.
        location = Local(path=location.path.expanduser().resolve())
    with _open_lock:
        shared = _open.get(location) or _Open(connect(location))
        try:
            if collection not in shared.engines:
                shared.engines[collection] = Engine(
                    shared.connection, name=collection, budget=budget
                )
        except BaseException:
            # Just opened for this engine, which failed: the lock on the path must not stay.
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
