"""One store's data in one Chroma: what reading, ranking and writing share.

Everything here blocks and runs in worker threads. Stores that are opened on the same path and
collection in one process share one engine, and with it the locks and the resident blocks.
"""

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from chromadb.api.models.Collection import Collection

from memguard.schema.base import Namespace
from memguard.stores.chroma.catalogue import Catalogue
from memguard.stores.chroma.collections import Collections
from memguard.stores.chroma.connection import Connection
from memguard.stores.chroma.namespaces import encode_namespace
from memguard.stores.chroma.resident import Block, Blocks, as_matrix
from memguard.stores.chroma.rows import Stored, from_rows, head_from, head_id
from memguard.stores.chroma.values import NS, Address, namespace_of

logger = logging.getLogger(__name__)

_PAGE = 2_000
"""Rows fetched by one call when a namespace is read as a whole; bounds what is in flight."""
_NAMESPACES_PER_CALL = 64
_AHEAD = 4


class Engine:
    """The data of one store and the locks that guard it.

    Args:
        connection: An open Chroma.
        name: Name of the catalogue and stem of the shards.
        budget: Bytes of resident blocks; none are kept beside other writers.
    """

    def __init__(self, connection: Connection, *, name: str, budget: int) -> None:
        self.connection = connection
        self.collections = Collections(connection, name=name)
        self.catalogue = Catalogue(connection, self.collections)
        self.blocks = Blocks(budget=0 if connection.is_shared else budget)
        self.large: set[Namespace] = set()
        """Namespaces that did not fit into the budget; ranked by Chroma's index instead."""
        self.ahead = (
            ThreadPoolExecutor(_AHEAD, thread_name_prefix="memguard-ahead")
            if connection.is_shared
            else None
        )
        """Threads for requests to a server that need not wait for one another."""
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

    def heads(self, addresses: Iterable[Address]) -> dict[Address, Stored]:
        """Items by address, expired ones too; one call per shard at most."""
        found: dict[Address, Stored] = {}
        missing: list[Address] = []
        for address in addresses:
            block = self.blocks.get(address.namespace)
            if block is None:
                missing.append(address)
            elif (held := block.get(address.key)) is not None:
                found[address] = Stored(
                    namespace=address.namespace, record=held[0], expires=held[1]
                )
        for shard, group in self.by_shard(missing).items():
            collection = self.collections.shard(shard)
            if collection is not None:
                found |= self._fetch_heads(collection, group)
        return found

    def block(self, namespace: Namespace) -> Block:
        """One namespace in memory, loaded if need be."""
        return self.load([namespace])[0]

    def start_block(self, namespace: Namespace) -> None:
        """Keep a block of a namespace that did not exist: nothing need be read for it.

        Inside the shard's lock, and only for the sole writer.
        """
        if self.blocks.budget > 0:
            self.blocks.keep(Block(namespace, dims=self.dims))

    def load(self, namespaces: Sequence[Namespace], *, vectors: bool = True) -> list[Block]:
        """Blocks of namespaces, in their order; kept for the next use where that is safe.

        Args:
            namespaces: Which.
            vectors: Whether their vectors are needed; without, blocks not held are not kept.
        """
        held = {each: self.blocks.get(each) for each in namespaces}
        missing = [each for each, block in held.items() if block is None]
        if not missing:
            return [block for block in held.values() if block is not None]
        grouped: dict[int, list[Namespace]] = {}
        for each in missing:
            grouped.setdefault(self.collections.shard_of(each), []).append(each)
        for shard, group in grouped.items():
            for start in range(0, len(group), _NAMESPACES_PER_CALL):
                part = group[start : start + _NAMESPACES_PER_CALL]
                held |= self._load_part(shard, part, vectors=vectors)
        empty = (Block(each, dims=self.dims) for each in namespaces)
        return [held[each] or spare for each, spare in zip(namespaces, empty, strict=True)]

    def _load_part(
        self, shard: int, namespaces: Sequence[Namespace], *, vectors: bool
    ) -> dict[Namespace, Block | None]:
        keeps = vectors and self.blocks.budget > 0
        collection = self.collections.shard(shard)
        if collection is None:
            return {}
        # Under the shard's lock: a write that lands between reading and keeping would be lost.
        with self.lock(shard):
            made: dict[Namespace, Block | None] = {}
            for each, rows in self._read(collection, namespaces, vectors=vectors).items():
                block, strays = _to_block(each, rows, dims=self.dims)
                made[each] = block
                if not self.connection.is_shared and strays:
                    self._sweep_strays(collection, each, strays)
                if keeps and block.bytes <= self.blocks.budget // 4:
                    self.large.discard(each)
                    self.blocks.keep(block)
                elif keeps:
                    self.large.add(each)
            return made

    def _read(
        self, collection: Collection, namespaces: Sequence[Namespace], *, vectors: bool
    ) -> "dict[Namespace, _RawRows]":
        include: list[Any] = ["metadatas", "embeddings"] if vectors else ["metadatas"]
        found = {each: _RawRows() for each in namespaces}
        offset = 0
        while True:
            page = self.connection.call(
                collection.get,
                where=scope(NS, namespaces),
                include=include,
                limit=_PAGE,
                offset=offset,
            )
            metadatas = page["metadatas"] or []
            embeddings: Any = page["embeddings"] if vectors else None
            for place, (row_id, metadata) in enumerate(zip(page["ids"], metadatas, strict=True)):
                own = found.get(namespace_of(metadata))
                if own is not None:
                    own.add(row_id, metadata, None if embeddings is None else embeddings[place])
            offset += len(metadatas)
            if len(metadatas) < _PAGE:
                return found

    def _fetch_heads(
        self, collection: Collection, addresses: Sequence[Address]
    ) -> dict[Address, Stored]:
        wanted = {head_id(each): each for each in addresses}
        page = self.connection.call(collection.get, ids=list(wanted), include=["metadatas"])
        found: dict[Address, Stored] = {}
        # In whatever order Chroma likes: it ignores the order of the ids asked for.
        for row_id, metadata in zip(page["ids"], page["metadatas"] or [], strict=True):
            address = wanted[row_id]
            record, expires = head_from(metadata)
            if namespace_of(metadata) == address.namespace and record.key == address.key:
                found[address] = Stored(namespace=address.namespace, record=record, expires=expires)
        return found

    def _sweep_strays(
        self, collection: Collection, namespace: Namespace, strays: list[str]
    ) -> None:
        logger.info("removing %d left-over rows of %r", len(strays), namespace)
        for start in range(0, len(strays), self.connection.max_batch):
            part = strays[start : start + self.connection.max_batch]
            self.connection.call(collection.delete, ids=part)


class _RawRows:
    """Rows of one namespace as they came."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.metadatas: list[Mapping[str, Any]] = []
        self.embeddings: list[Sequence[float]] | None = None

    def add(self, row_id: str, metadata: Mapping[str, Any], vector: Any) -> None:
        self.ids.append(row_id)
        self.metadatas.append(metadata)
        if vector is not None:
            if self.embeddings is None:
                self.embeddings = []
            self.embeddings.append(vector)


def scope(key: str, namespaces: Sequence[Namespace]) -> Any:
    """A Chroma filter for exactly these namespaces."""
    texts = [encode_namespace(each) for each in namespaces]
    return {key: texts[0]} if len(texts) == 1 else {key: {"$in": texts}}


def _to_block(namespace: Namespace, rows: _RawRows, *, dims: int) -> tuple[Block, list[str]]:
    block = Block(namespace, dims=dims)
    items, strays = from_rows(
        namespace, ids=rows.ids, metadatas=rows.metadatas, embeddings=rows.embeddings
    )
    for item in items:
        block.put(item.record, expires=item.expires, vectors=as_matrix(item.vectors, dims=dims))
    return block, strays
