"""Reads: search, listing, counting."""

import heapq
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from chromadb.api.models.Collection import Collection

from memguard.chroma.engine import Engine, scope
from memguard.chroma.rows import (
    Block,
    Matrix,
    Stored,
    as_matrix,
    head_from,
    head_of,
    is_head,
    normalised,
)
from memguard.chroma.values import EXPIRES, NS, RANKED, RECORD, Record, matches, namespace_of
from memguard.schema.base import Namespace

_RESIDENT_NAMESPACES = 16
"""Up to how many namespaces that are not yet in memory are loaded for one search; beyond that
Chroma's index answers, which costs one query per shard."""
_SLACK = 8
_MAX_ROWS = 2_000
"""Rows that are asked of Chroma's index before the namespaces are read as a whole instead."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """One search, checked and embedded."""

    prefix: Namespace
    limit: int
    offset: int
    filter: Mapping[str, Any] = field(default_factory=dict[str, Any])
    vector: Sequence[float] | None = None
    """The query's vector; `None` for everything, the latest change first."""
    now: float | None = None
    """Items that have expired by then are left out; `None` leaves none out."""

    @property
    def need(self) -> int:
        """How many items in front of the page's end."""
        return self.offset + self.limit

    def accepts(self, record: Record, expires: float) -> bool:
        """Whether an item is alive and passes the filter."""
        if self.now is not None and expires <= self.now:
            return False
        return not self.filter or matches(record.value(), self.filter)


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """One item of a result."""

    item: Stored
    score: float | None
    """Cosine; `None` for an item that was not ranked."""


def search(engine: Engine, request: Search) -> list[Hit]:
    """The requested page of items: ranked ones first, then those without a vector."""
    if request.limit == 0:
        return []
    ahead = _ask_ahead(engine, request)
    namespaces = engine.catalogue.under(request.prefix)
    early = ahead.result() if ahead is not None and namespaces == [request.prefix] else None
    if early is not None and len(early) >= request.need:
        return _page(early, request)
    if request.vector is None:
        # A few small namespaces are worth keeping with their vectors: a ranked search may follow.
        vectors = engine.blocks.budget > 0 and not _asks_chroma(engine, namespaces)
        return _page(_listed(engine.load(namespaces, vectors=vectors), request), request)
    query = normalised(as_matrix([request.vector], dims=len(request.vector)))[0]
    if early is None and _asks_chroma(engine, namespaces):
        hits = _ranked_by_chroma(engine, namespaces, request)
        if hits is not None:
            return _page(hits, request)
    return _page(_ranked(engine.load(namespaces), query, request), request)


def _ask_ahead(engine: Engine, request: Search) -> "Future[list[Hit]] | None":
    """Ask for the namespace itself while the list of what lies below it is on its way.

    With other writers that list is a request of its own, and mostly there is nothing below. Two
    requests in turn took twice as long as one.
    """
    if engine.ahead is None or request.vector is None or not request.prefix:
        return None
    return engine.ahead.submit(_ask_namespace, engine, request)


def _ask_namespace(engine: Engine, request: Search) -> list[Hit]:
    collection = engine.collections.shard(engine.collections.shard_of(request.prefix))
    return _ask_shard(engine, collection, [request.prefix], request) if collection else []


def count(engine: Engine, namespace: Namespace, *, now: float | None) -> int:
    """Items of exactly one namespace that readers can see."""
    block = engine.blocks.get(namespace)
    if block is not None:
        return sum(now is None or expires > now for _, expires in block.items())
    collection = engine.collections.shard(engine.collections.shard_of(namespace))
    if collection is None:
        return 0
    where = scope(NS, [namespace])
    if now is not None:
        where = {"$and": [where, {EXPIRES: {"$gt": now}}]}
    return sum(map(is_head, engine.connection.call(collection.get, where=where, include=[])["ids"]))


def live_namespaces(engine: Engine, prefix: Namespace, *, now: float | None) -> list[Namespace]:
    """Namespaces at or below a prefix that hold an item readers can see."""
    listed = engine.catalogue.under(prefix)
    if now is None:
        return listed
    expiring = engine.catalogue.expiring(listed)
    return [name for name in listed if name not in expiring or count(engine, name, now=now)]


def _page(hits: Sequence[Hit], request: Search) -> list[Hit]:
    return list(hits[request.offset : request.need])


def _listed(blocks: Sequence[Block], request: Search) -> list[Hit]:
    """Items without ranking: the latest change first, as LangGraph's SQL stores list them."""
    items = (
        Stored(namespace=block.namespace, record=record, expires=expires)
        for block in blocks
        for record, expires in block.items()
        if request.accepts(record, expires)
    )
    latest = heapq.nsmallest(
        request.need,
        items,
        key=lambda item: (-item.record.updated, item.namespace, item.record.key),
    )
    return [Hit(item=item, score=None) for item in latest]


def _ranked(blocks: Sequence[Block], query: Matrix, request: Search) -> list[Hit]:
    scored: list[tuple[float, Block, Record]] = []
    ranked: dict[Namespace, set[str]] = {}
    for block in blocks:
        best, keys = block.ranked(query, need=request.need, accept=request.accepts)
        ranked[block.namespace] = keys
        scored += [(score, block, record) for score, record in best]
    # A stable sort by score alone: items with the same score stay in the order of their blocks.
    scored.sort(key=lambda entry: -entry[0])
    hits = [
        Hit(item=_stored(block, record), score=score)
        for score, block, record in scored[: request.need]
    ]
    if len(hits) < request.need:
        # Without a limit: which of the items are not ranked shows only afterwards.
        rest = _listed(blocks, replace(request, limit=1 << 60, offset=0, vector=None))
        hits += [hit for hit in rest if hit.item.record.key not in ranked[hit.item.namespace]]
    return hits


def _stored(block: Block, record: Record) -> Stored:
    entry = block.get(record.key)
    expires = entry[1] if entry is not None else 0.0
    return Stored(namespace=block.namespace, record=record, expires=expires)


def _asks_chroma(engine: Engine, namespaces: Sequence[Namespace]) -> bool:
    if engine.blocks.budget == 0:
        return True
    cold = {name for name in namespaces if engine.blocks.get(name) is None}
    return len(cold) > _RESIDENT_NAMESPACES or not cold.isdisjoint(engine.large)


def _ranked_by_chroma(
    engine: Engine, namespaces: Sequence[Namespace], request: Search
) -> list[Hit] | None:
    """The best items by Chroma's index, or `None` if there are too few to fill the page.

    The index is approximate. What it returns is checked here for scope, revision, expiry and
    filter. If that leaves too few, the caller reads the namespaces as a whole, which is exact.
    """
    hits: list[Hit] = []
    for shard, group in engine.namespaces_by_shard(namespaces).items():
        collection = engine.collections.shard(shard)
        if collection is not None:
            hits += _ask_shard(engine, collection, group, request)
    # Each shard answered in its own order.
    hits.sort(key=lambda hit: -(hit.score or 0.0))
    return hits if len(hits) >= request.need else None


def _ask_shard(
    engine: Engine, collection: Collection, namespaces: Sequence[Namespace], request: Search
) -> list[Hit]:
    # Items that a filter drops have to be asked for too; eight is a guess that is corrected below.
    count = request.need * (8 if request.filter else 1) + _SLACK
    while True:
        page: Any = engine.connection.call(
            collection.query,
            query_embeddings=[list(request.vector or ())],
            n_results=count,
            where=scope(RANKED, namespaces),
            include=["metadatas", "distances"],
        )
        ids, metadatas = page["ids"][0], page["metadatas"][0]
        inside = set(namespaces)
        hits = [
            hit
            for hit in _pool(engine, collection, ids, metadatas, page["distances"][0])
            if hit.item.namespace in inside and request.accepts(hit.item.record, hit.item.expires)
        ]
        if len(hits) >= request.need or len(ids) < count or count >= _MAX_ROWS:
            return hits
        count *= 4


def _pool(
    engine: Engine,
    collection: Collection,
    ids: Sequence[str],
    metadatas: Sequence[Mapping[str, Any]],
    distances: Sequence[float],
) -> list[Hit]:
    """Rows to items, each by its nearest row; rows of an older revision are ignored."""
    heads = {row_id: row for row_id, row in zip(ids, metadatas, strict=True) if is_head(row_id)}
    # The nearest row of an item with several vectors need not be its head.
    absent = sorted({head_of(row_id) for row_id in ids} - set(heads))
    if absent:
        page = engine.connection.call(collection.get, ids=absent, include=["metadatas"])
        heads |= dict(zip(page["ids"], page["metadatas"] or [], strict=True))
    hits: dict[str, Hit] = {}
    for row_id, metadata, distance in zip(ids, metadatas, distances, strict=True):
        head = heads.get(head_of(row_id))
        if head is None or head_of(row_id) in hits:
            continue
        record, expires = head_from(head)
        if is_head(row_id) or metadata[RECORD] == record.revision:
            item = Stored(namespace=namespace_of(head), record=record, expires=expires)
            hits[head_of(row_id)] = Hit(item=item, score=1.0 - distance)
    return list(hits.values())
