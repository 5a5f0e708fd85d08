"""Reads: search, listing, counting."""

import heapq
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from chromadb.api.models.Collection import Collection

from memguard.schema.base import Namespace
from memguard.stores.chroma.engine import Engine, scope
from memguard.stores.chroma.filters import matches
from memguard.stores.chroma.resident import Block, Matrix, as_matrix, normalised
from memguard.stores.chroma.rows import Stored, head_from, head_of, is_head
from memguard.stores.chroma.values import EXPIRES, NS, RANKED, RECORD, Record, namespace_of

_RESIDENT_NAMESPACES = 16
"""Up to how many namespaces that are not yet in memory are loaded for one search; beyond that
Chroma's index answers, which costs one query per shard."""
_SLACK = 8
_MAX_ASKED = 2_000
"""Rows asked of Chroma's index before the namespaces are read as a whole instead."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """One search, checked and embedded."""

    prefix: Namespace
    limit: int
    offset: int
    filter: Mapping[str, Any] = field(default_factory=dict[str, Any])
    vector: Sequence[float] | None = None
    """The direction asked for; `None` for everything, the latest change first."""
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
    """One found item."""

    item: Stored
    score: float | None
    """Cosine; `None` for an item that was not ranked."""


def search(engine: Engine, wanted: Search) -> list[Hit]:
    """The page of items asked for: ranked ones first, then those without a vector."""
    if wanted.limit == 0:
        return []
    ahead = _ask_ahead(engine, wanted)
    namespaces = engine.catalogue.under(wanted.prefix)
    known = ahead.result() if ahead is not None and namespaces == [wanted.prefix] else None
    if known is not None and len(known) >= wanted.need:
        return _page(known, wanted)
    if wanted.vector is None:
        # A few small namespaces are worth keeping with their vectors: a ranked search may follow.
        kept = engine.blocks.budget > 0 and not _asks_chroma(engine, namespaces)
        return _page(_listed(engine.load(namespaces, vectors=kept), wanted), wanted)
    query = normalised(as_matrix([wanted.vector], dims=len(wanted.vector)))[0]
    if known is None and _asks_chroma(engine, namespaces):
        hits = _ranked_by_chroma(engine, namespaces, wanted)
        if hits is not None:
            return _page(hits, wanted)
    return _page(_ranked(engine.load(namespaces), query, wanted), wanted)


def _ask_ahead(engine: Engine, wanted: Search) -> "Future[list[Hit]] | None":
    """Ask for the namespace itself while the list of what lies below it is on its way.

    Beside other writers that list is a request of its own, and it mostly says that there is
    nothing below: two requests in turn took twice as long as one.
    """
    if engine.ahead is None or wanted.vector is None or not wanted.prefix:
        return None
    return engine.ahead.submit(_ask_namespace, engine, wanted)


def _ask_namespace(engine: Engine, wanted: Search) -> list[Hit]:
    collection = engine.collections.shard(engine.collections.shard_of(wanted.prefix))
    return _ask_shard(engine, collection, [wanted.prefix], wanted) if collection else []


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
    mortal = engine.catalogue.mortal(listed)
    return [each for each in listed if each not in mortal or count(engine, each, now=now)]


def _page(hits: Sequence[Hit], wanted: Search) -> list[Hit]:
    return list(hits[wanted.offset : wanted.need])


def _listed(blocks: Sequence[Block], wanted: Search) -> list[Hit]:
    """Items without ranking: the latest change first, as LangGraph's SQL stores list them."""
    found = (
        Stored(namespace=block.namespace, record=record, expires=expires)
        for block in blocks
        for record, expires in block.items()
        if wanted.accepts(record, expires)
    )
    best = heapq.nsmallest(
        wanted.need, found, key=lambda each: (-each.record.updated, each.namespace, each.record.key)
    )
    return [Hit(item=each, score=None) for each in best]


def _ranked(blocks: Sequence[Block], query: Matrix, wanted: Search) -> list[Hit]:
    scored: list[tuple[float, Block, Record]] = []
    seen: dict[Namespace, set[str]] = {}
    for block in blocks:
        best, ranked = block.ranked(query, need=wanted.need, accept=wanted.accepts)
        seen[block.namespace] = ranked
        scored += [(score, block, record) for score, record in best]
    scored.sort(key=lambda each: -each[0])
    hits = [
        Hit(item=_stored(block, record), score=score)
        for score, block, record in scored[: wanted.need]
    ]
    if len(hits) < wanted.need:
        rest = _listed(blocks, _without_end(wanted))
        hits += [each for each in rest if each.item.record.key not in seen[each.item.namespace]]
    return hits


def _without_end(wanted: Search) -> Search:
    """The same search without an end: which of its items are unranked shows only afterwards."""
    return Search(
        prefix=wanted.prefix, limit=1 << 60, offset=0, filter=wanted.filter, now=wanted.now
    )


def _stored(block: Block, record: Record) -> Stored:
    held = block.get(record.key)
    expires = held[1] if held is not None else 0.0
    return Stored(namespace=block.namespace, record=record, expires=expires)


def _asks_chroma(engine: Engine, namespaces: Sequence[Namespace]) -> bool:
    if engine.blocks.budget == 0:
        return True
    cold = [each for each in namespaces if engine.blocks.get(each) is None]
    return len(cold) > _RESIDENT_NAMESPACES or any(each in engine.large for each in cold)


def _ranked_by_chroma(
    engine: Engine, namespaces: Sequence[Namespace], wanted: Search
) -> list[Hit] | None:
    """The best items by Chroma's index, or `None` if it did not give enough to fill the page.

    The index is approximate; what it returns is checked here for scope, revision, expiry and
    filter. If that leaves too few, the caller reads the namespaces as a whole, which is exact.
    """
    grouped: dict[int, list[Namespace]] = {}
    for each in namespaces:
        grouped.setdefault(engine.collections.shard_of(each), []).append(each)
    hits: list[Hit] = []
    for shard, group in grouped.items():
        collection = engine.collections.shard(shard)
        if collection is not None:
            hits += _ask_shard(engine, collection, group, wanted)
    hits.sort(key=lambda each: -(each.score or 0.0))
    return hits if len(hits) >= wanted.need else None


def _ask_shard(
    engine: Engine, collection: Collection, namespaces: Sequence[Namespace], wanted: Search
) -> list[Hit]:
    asked = wanted.need * (8 if wanted.filter else 1) + _SLACK
    while True:
        page: Any = engine.connection.call(
            collection.query,
            query_embeddings=[list(wanted.vector or ())],
            n_results=asked,
            where=scope(RANKED, namespaces),
            include=["metadatas", "distances"],
        )
        ids, metadatas = page["ids"][0], page["metadatas"][0]
        hits = _pool(engine, collection, ids, metadatas, page["distances"][0])
        inside = set(namespaces)
        hits = [
            each
            for each in hits
            if each.item.namespace in inside and wanted.accepts(each.item.record, each.item.expires)
        ]
        if len(hits) >= wanted.need or len(ids) < asked or asked >= _MAX_ASKED:
            return hits
        asked *= 4


def _pool(
    engine: Engine,
    collection: Collection,
    ids: Sequence[str],
    metadatas: Sequence[Mapping[str, Any]],
    distances: Sequence[float],
) -> list[Hit]:
    """Rows to items, each by its nearest row; rows of an older revision are ignored."""
    heads = {row_id: each for row_id, each in zip(ids, metadatas, strict=True) if is_head(row_id)}
    absent = sorted({head_of(each) for each in ids} - set(heads))
    if absent:
        page = engine.connection.call(collection.get, ids=absent, include=["metadatas"])
        heads |= dict(zip(page["ids"], page["metadatas"] or [], strict=True))
    found: dict[str, Hit] = {}
    for row_id, metadata, distance in zip(ids, metadatas, distances, strict=True):
        head = heads.get(head_of(row_id))
        if head is None or head_of(row_id) in found:
            continue
        record, expires = head_from(head)
        if is_head(row_id) or metadata[RECORD] == record.revision:
            item = Stored(namespace=namespace_of(head), record=record, expires=expires)
            found[head_of(row_id)] = Hit(item=item, score=1.0 - distance)
    return list(found.values())
