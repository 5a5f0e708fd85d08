"""Reads of one engine: search, counting and the list of namespaces.

A search ranks the blocks in memory, which is exact. Chroma's index answers where blocks would cost
more than they save: for many namespaces that are not in memory, for a namespace beyond the budget,
and on a server, where a block could be out of date. If the index returns too few items, the
namespaces are read as a whole.
"""

import heapq
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from chromadb.api.models.Collection import Collection
from langgraph.store.base import SearchOp

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
from memguard.chroma.values import EXPIRES, NS, RANKED, RECORD, matches
from memguard.schema.base import Namespace

# The largest number of namespaces that are loaded into memory for one search. Beyond it, Chroma's
# index answers, which costs one query per shard.
_MAX_LOADED_NAMESPACES = 16
# Rows requested in addition, for second vectors of an item and rows of an older revision.
_SLACK = 8
# A filter drops rows after the index has returned them. The factor is a guess, corrected as needed.
_ROWS_PER_FILTERED_ITEM = 8
_WIDER = 4
# Rows requested of Chroma's index at most; then the namespaces are read as a whole instead.
_MAX_ROWS = 2_000


@dataclass(frozen=True, kw_only=True)
class Search:
    """One search, checked and embedded."""

    op: SearchOp
    vector: Sequence[float] | None = None
    """The query's vector; `None` for a search without ranking, the latest change first."""
    now: float | None = None
    """Items that have expired by this time are left out; `None` leaves none out."""

    @property
    def need(self) -> int:
        """Number of items up to the end of the page."""
        return self.op.offset + self.op.limit

    def accepts(self, item: Stored) -> bool:
        """Whether an item has not expired and passes the filter."""
        # The cheap test first: the filter has to parse the value.
        if self.now is not None and not item.is_live(self.now):
            return False
        return not self.op.filter or matches(item.record.value(), self.op.filter)


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """One item of a result."""

    item: Stored
    score: float | None
    """Cosine of the query and the item's nearest vector; `None` for an item without ranking."""


def search(engine: Engine, request: Search) -> list[Hit]:
    """The requested page of items: ranked ones first, then those without a vector."""
    if request.op.limit == 0:
        return []
    pending = _query_ahead(engine, request)
    prefix = request.op.namespace_prefix
    namespaces = engine.catalogue.under(prefix)
    hits = pending.result() if pending is not None and namespaces == [prefix] else None
    if hits is not None and len(hits) >= request.need:
        return _page(hits, request)
    if request.vector is None:
        # A few small namespaces are worth keeping with their vectors: a ranked search may follow.
        vectors = engine.blocks.budget > 0 and not _uses_index(engine, namespaces)
        blocks = engine.load(namespaces, vectors=vectors)
        return _page(_listed(blocks, request, need=request.need), request)
    query = normalised(as_matrix([request.vector], dims=len(request.vector)))[0]
    # A query ahead has used the index already, and found too few.
    if hits is None and _uses_index(engine, namespaces):
        hits = _query_index(engine, namespaces, request)
        # Too few may mean that the index missed some, so the exact way is tried.
        if len(hits) >= request.need:
            return _page(hits, request)
    return _page(_ranked(engine.load(namespaces), query, request), request)


def count(engine: Engine, namespace: Namespace, *, now: float | None) -> int:
    """Number of items in exactly one namespace; with `now`, of those that have not expired."""
    block = engine.blocks.get(namespace)
    if block is not None:
        return sum(now is None or item.is_live(now) for item in block.items())
    collection = engine.collections.shard(engine.collections.shard_of(namespace))
    if collection is None:
        return 0
    where = scope(NS, [namespace])
    if now is not None:
        where = {"$and": [where, {EXPIRES: {"$gt": now}}]}
    return sum(map(is_head, engine.connection.call(collection.get, where=where, include=[])["ids"]))


def live_namespaces(engine: Engine, prefix: Namespace, *, now: float | None) -> list[Namespace]:
    """Namespaces at or below a prefix; with `now`, those with an item that has not expired."""
    listed = engine.catalogue.under(prefix)
    if now is None:
        return listed
    # A count may cost a request, so only those are counted in which an item can expire.
    expiring = engine.catalogue.expiring(listed)
    return [name for name in listed if name not in expiring or count(engine, name, now=now)]


def _page(hits: Sequence[Hit], request: Search) -> list[Hit]:
    return list(hits[request.op.offset : request.need])


def _listed(blocks: Sequence[Block], request: Search, *, need: int) -> list[Hit]:
    """Items without ranking: the latest change first, as LangGraph's SQL stores list them."""
    # Namespace and key decide between equal times, or pages could overlap.
    latest = heapq.nsmallest(
        need,
        (item for block in blocks for item in block.items() if request.accepts(item)),
        key=lambda item: (-item.record.updated, item.namespace, item.record.key),
    )
    return [Hit(item=item, score=None) for item in latest]


def _ranked(blocks: Sequence[Block], query: Matrix, request: Search) -> list[Hit]:
    scored: list[tuple[float, Stored]] = []
    ranked: dict[Namespace, set[str]] = {}
    for block in blocks:
        best, keys = block.ranked(query, need=request.need, accept=request.accepts)
        ranked[block.namespace] = keys
        scored += best
    # A stable sort by score alone: items with the same score stay in the order of their blocks.
    scored.sort(key=lambda entry: -entry[0])
    hits = [Hit(item=item, score=score) for score, item in scored[: request.need]]
    if len(hits) < request.need:
        # Without a limit: which of them were ranked is known only after they are listed. The sets
        # in `ranked` are complete here, because no block had as many items as were needed.
        rest = _listed(blocks, request, need=sys.maxsize)
        hits += [hit for hit in rest if hit.item.record.key not in ranked[hit.item.namespace]]
    return hits


# -- Chroma's index ---------------------------------------------------------------------------


def _uses_index(engine: Engine, namespaces: Sequence[Namespace]) -> bool:
    if engine.blocks.budget == 0:
        return True
    missing = {name for name in namespaces if engine.blocks.get(name) is None}
    return len(missing) > _MAX_LOADED_NAMESPACES or not missing.isdisjoint(engine.large)


def _query_ahead(engine: Engine, request: Search) -> "Future[list[Hit]] | None":
    """Query the namespace itself while the list of namespaces below it is on its way.

    Where others write, that list is a request of its own, and usually there is nothing below. Two
    requests in turn took twice as long as one.
    """
    prefix = request.op.namespace_prefix
    if engine.ahead is None or request.vector is None or not prefix:
        return None
    return engine.ahead.submit(_query_index, engine, [prefix], request)


def _query_index(engine: Engine, namespaces: Sequence[Namespace], request: Search) -> list[Hit]:
    """The best items by Chroma's index, which is approximate; perhaps too few for the page."""
    hits: list[Hit] = []
    for _, collection, group in engine.existing_shards(namespaces, tuple):
        hits += _query_shard(engine, collection, group, request)
    # Each shard answered in its own order.
    hits.sort(key=lambda hit: -(hit.score or 0.0))
    return hits


def _query_shard(
    engine: Engine, collection: Collection, namespaces: Sequence[Namespace], request: Search
) -> list[Hit]:
    count = request.need * (_ROWS_PER_FILTERED_ITEM if request.op.filter else 1) + _SLACK
    inside = set(namespaces)
    while True:
        page: Any = engine.connection.call(
            collection.query,
            query_embeddings=[list(request.vector or ())],
            n_results=count,
            where=scope(RANKED, namespaces),
            include=["metadatas", "distances"],
        )
        ids, metadatas = page["ids"][0], page["metadatas"][0]
        # Checked again here: Chroma's filter knows neither the expiry nor the caller's filter.
        hits = [
            hit
            for hit in _merge_rows(engine, collection, ids, metadatas, page["distances"][0])
            if hit.item.namespace in inside and request.accepts(hit.item)
        ]
        if len(hits) >= request.need or len(ids) < count or count >= _MAX_ROWS:
            return hits
        count *= _WIDER


def _merge_rows(
    engine: Engine,
    collection: Collection,
    ids: Sequence[str],
    metadatas: Sequence[Mapping[str, Any]],
    distances: Sequence[float],
) -> list[Hit]:
    """Items from rows, each with its nearest row; rows of an older revision are ignored."""
    heads: dict[str, Mapping[str, Any]] = {
        row_id: row for row_id, row in zip(ids, metadatas, strict=True) if is_head(row_id)
    }
    # The nearest row of an item with several vectors need not be its head.
    missing = sorted({head_of(row_id) for row_id in ids} - set(heads))
    if missing:
        heads |= engine.connection.rows(collection, ids=missing)
    hits: dict[str, Hit] = {}
    for row_id, metadata, distance in zip(ids, metadatas, distances, strict=True):
        # Rows come nearest first, so the first one of an item gives its score.
        head = heads.get(head_of(row_id))
        if head is None or head_of(row_id) in hits:
            continue
        item = head_from(head)
        if is_head(row_id) or metadata[RECORD] == item.record.revision:
            hits[head_of(row_id)] = Hit(item=item, score=1.0 - distance)
    return list(hits.values())
