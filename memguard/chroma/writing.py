"""Batches carried out in a worker thread: reads on the state before them, then the writes.

Writes to one namespace never overlap in this process, because each shard has a lock. On a server,
other clients may write between any two requests; comments say where that matters.
"""

import secrets
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any

from chromadb.api.models.Collection import Collection
from langgraph.store.base import GetOp, ListNamespacesOp, Result, SearchItem

from memguard.chroma.catalogue import Stamp
from memguard.chroma.engine import Engine, scope
from memguard.chroma.operations import Plan, PlannedPut, PlannedSearch
from memguard.chroma.reading import Hit, Search, live_namespaces, search
from memguard.chroma.repair import relist
from memguard.chroma.rows import (
    Stored,
    UpsertRows,
    as_matrix,
    head_from,
    is_head,
    row_ids,
    to_rows,
)
from memguard.chroma.settings import SECONDS_PER_MINUTE, Embedder, Settings, Vector
from memguard.chroma.values import (
    EXPIRES,
    NEVER,
    NS,
    Address,
    Record,
    namespace_of,
    page_namespaces,
    select_namespaces,
    to_item,
    to_microseconds,
    to_search_item,
)
from memguard.errors import ErrorCode, MemguardError, StoreConfigurationError, StoreError
from memguard.schema.base import Namespace

_MICROSECONDS = 1_000_000
# Chroma requires a vector for every row, also in a store that embeds nothing.
_UNINDEXED_DIMS = 4
# A read extends an item's life only if it gains at least this share of its time to live. A write
# for each read of a busy item would cost more than the read.
_MIN_REFRESH = 0.01


# -- batches ----------------------------------------------------------------------------------


def run_plan(
    engine: Engine,
    plan: Plan,
    *,
    settings: Settings,
    vectors: Mapping[str, Vector],
    queries: Mapping[str, Vector],
) -> list[Result]:
    """Carry out a checked batch, and return a result for each operation, in their order.

    `vectors` and `queries` have a vector of every text in `plan.texts` and `plan.queries`.
    """
    # Here too, not only when the store is opened: another program may have replaced the store.
    check_stamp(engine.collections.stamp, settings.embedder)
    moment = to_microseconds(settings.moment())
    now = moment / _MICROSECONDS
    cutoff = now if settings.omits_expired else None
    results: list[Any] = [None] * plan.size
    items = _run_gets(engine, plan, results, now=cutoff)
    for index, read in plan.reads:
        if isinstance(read, PlannedSearch):
            hits = _run_search(engine, read, queries, now=cutoff)
            results[index] = [_to_result(hit) for hit in hits]
            items += [hit.item for hit in hits] if read.op.refresh_ttl else []
        elif isinstance(read, ListNamespacesOp):
            results[index] = _run_list(engine, read, now=cutoff)
    # After all reads, so that none of them sees the effect of another.
    refresh(engine, items, now=now)
    # A batch without a put creates nothing: a store that was only read from leaves no stamp.
    if plan.puts:
        _establish(engine, settings, vectors)
    if plan.puts or plan.deletions:
        write(engine, plan, vectors=vectors, moment=moment)
    return results


def check_stamp(stamp: Stamp | None, embedder: Embedder | None) -> None:
    """Check that a store may be used with an embedder.

    Raises:
        StoreConfigurationError: If the store was created with another one.
    """
    # Without an embedder nothing is embedded or ranked, which suits every store.
    if stamp is None or embedder is None:
        return
    dims = embedder.known_dims
    if stamp.embedder == embedder.name and (dims is None or dims == stamp.dims):
        return
    original = f"{stamp.embedder!r} ({stamp.dims} dimensions)" if stamp.embedder else "no embedder"
    msg = (
        f"The store was made with {original} and is opened with {embedder.name!r} "
        f"({_dims_or_unknown(embedder)} dimensions); their vectors cannot be compared. Pass the "
        f"first embedder, or another path or `collection=` and write the memories again"
    )
    raise StoreConfigurationError(msg, code=ErrorCode.STORE_EMBEDDER)


def _dims_or_unknown(embedder: Embedder) -> int | str:
    try:
        return embedder.dims()
    # Only the text of the message needs them; that the embedders differ is certain.
    except MemguardError:
        return "unknown"


def _run_gets(engine: Engine, plan: Plan, results: list[Any], *, now: float | None) -> list[Stored]:
    """Fill in the results of all gets, and return the items whose time is to be refreshed."""
    # Together, because one request can read any number of items of a shard.
    gets = [
        (index, Address(read.namespace, read.key), read.refresh_ttl)
        for index, read in plan.reads
        if isinstance(read, GetOp)
    ]
    heads = engine.heads(dict.fromkeys(address for _, address, _ in gets)) if gets else {}
    refreshed: list[Stored] = []
    for index, address, refreshes in gets:
        item = heads.get(address)
        if item is not None and (now is None or item.is_live(now)):
            results[index] = to_item(item.record, item.namespace)
            refreshed += [item] if refreshes else []
    return refreshed


def _run_search(
    engine: Engine, planned: PlannedSearch, queries: Mapping[str, Vector], *, now: float | None
) -> Sequence[Hit]:
    vector = queries[planned.query] if planned.query else None
    if vector is not None:
        _check_dims(engine.collections.stamp, vector)
    return search(engine, Search(op=planned.op, vector=vector, now=now))


def _run_list(engine: Engine, op: ListNamespacesOp, *, now: float | None) -> list[Namespace]:
    conditions = op.match_conditions or ()
    # The catalogue can look up a prefix; labels after a wildcard are compared afterwards.
    paths = (condition.path for condition in conditions if condition.match_type == "prefix")
    path = next(paths, ())
    prefix = path[: path.index("*")] if "*" in path else path
    namespaces = live_namespaces(engine, tuple(prefix), now=now)
    return page_namespaces(select_namespaces(namespaces, conditions), op)


def _to_result(hit: Hit) -> SearchItem:
    # Clamped into [0, 1]: a memory that points the other way is not a worse match than a memory
    # that has nothing to do with the query.
    score = None if hit.score is None else min(1.0, max(0.0, hit.score))
    return to_search_item(hit.item.record, hit.item.namespace, score=score)


def _establish(engine: Engine, settings: Settings, vectors: Mapping[str, Vector]) -> None:
    """Stamp the store before its first item, and check vectors against the stamp."""
    embedder, stamp = settings.embedder, engine.collections.stamp
    if stamp is None:
        stamp = engine.collections.establish(
            Stamp(
                embedder=embedder.name if embedder else None,
                dims=embedder.dims() if embedder else _UNINDEXED_DIMS,
                shards=settings.shards,
            )
        )
        # Another client may have been first, with another embedder.
        check_stamp(stamp, embedder)
        if engine.collections.has_shards:  # their catalogue was deleted
            relist(engine)
    for vector in vectors.values():
        _check_dims(stamp, vector)


def _check_dims(stamp: Stamp | None, vector: Sequence[float]) -> None:
    if stamp is not None and len(vector) != stamp.dims:
        msg = (
            f"The embedder gave {len(vector)} numbers and the store was made with "
            f"{stamp.embedder!r}, {stamp.dims} dimensions. Pass the embedder it was made with"
        )
        raise StoreConfigurationError(msg, code=ErrorCode.STORE_EMBEDDER)


# -- puts and deletions -----------------------------------------------------------------------


def write(engine: Engine, plan: Plan, *, vectors: Mapping[str, Vector], moment: int) -> None:
    """Store and delete the items of a batch.

    The rows of an item are replaced by one call, which Chroma carries out as one transaction: a
    reader, or a process that dies, sees the old item or the new one. `moment` is the time of the
    write, in microseconds since 1970.
    """
    puts = {planned.address: planned for planned in plan.puts}
    groups = engine.by_shard([*puts, *plan.deletions], attrgetter("namespace"))
    for shard, group in sorted(groups.items()):
        group_puts = [puts[address] for address in group if address in puts]
        deletions = [address for address in group if address not in puts]
        # A deletion creates no shard: where there is none, there is nothing to delete.
        collection = engine.collections.shard(shard, create=bool(group_puts))
        if collection is not None:
            with engine.lock(shard), _rereading_on_failure(engine, group):
                _write_shard(
                    engine, collection, group_puts, deletions, vectors=vectors, moment=moment
                )
    # Chroma creates the folder of an index with its first row.
    engine.connection.restrict_new_folders()
    # Another client may have found a namespace empty, and unlisted it, before its item arrived.
    engine.catalogue.confirm(_listing(plan.puts))


def refresh(engine: Engine, items: Iterable[Stored], *, now: float) -> None:
    """Restart the time to live of items that were read, unless they have changed since."""
    gaining = {item.address: item for item in items if _gains(item, now=now)}
    for shard, collection, group in engine.existing_shards(gaining, attrgetter("namespace")):
        with engine.lock(shard), _rereading_on_failure(engine, group):
            unchanged = [
                item
                for address, item in engine.heads(group).items()
                if item.record.revision == gaining[address].record.revision
            ]
            _refresh_shard(engine, collection, unchanged, now=now)


def delete_namespace(engine: Engine, namespace: Namespace, *, now: float) -> int:
    """Delete every item of exactly one namespace; returns how many had not expired."""
    shard = engine.collections.shard_of(namespace)
    collection = engine.collections.shard(shard)
    if collection is None:
        return 0
    with engine.lock(shard):
        # First: if a request below fails, the next read loads what is left.
        engine.blocks.drop(namespace)
        rows = {
            row_id: metadata
            for row_id, metadata in engine.connection.rows(
                collection, where=scope(NS, [namespace])
            ).items()
            if namespace_of(metadata) == namespace
        }
        engine.delete_rows(collection, list(rows))
        _unlist_empty(engine, collection, [namespace])
    heads = [head_from(metadata) for row_id, metadata in rows.items() if is_head(row_id)]
    return sum(head.is_live(now) for head in heads)


def sweep(engine: Engine, *, now: float) -> int:
    """Delete the items that have expired; returns their number."""
    return sum(
        _sweep_shard(engine, shard, collection, now=now)
        for shard, collection in engine.collections.shards()
    )


@contextmanager
def _rereading_on_failure(engine: Engine, addresses: Iterable[Address]) -> Generator[None]:
    """Drop the blocks of a write that fails: Chroma may have carried it out or not."""
    try:
        yield
    # An interrupt too: it may arrive between Chroma's answer and the change of the blocks.
    except BaseException:
        for address in addresses:
            engine.blocks.drop(address.namespace)
        raise


def _write_shard(
    engine: Engine,
    collection: Collection,
    puts: Sequence[PlannedPut],
    deletions: Sequence[Address],
    *,
    vectors: Mapping[str, Vector],
    moment: int,
) -> None:
    # Inside the lock: the deletion of a namespace's last item takes it off the list.
    for namespace in engine.catalogue.add(_listing(puts)):
        engine.start_block(namespace)
    before = engine.heads([*(planned.address for planned in puts), *deletions])
    items = [
        _to_stored(planned, before.get(planned.address), vectors=vectors, moment=moment)
        for planned in puts
    ]
    # Upsert, then delete, then the blocks: a process that dies in between leaves whole items, and
    # rows of an older revision, which count as absent.
    _upsert(engine, collection, items)
    # An item with fewer vectors than before leaves rows of the old one behind.
    outdated = [
        row_id
        for item in items
        if (old := before.get(item.address)) is not None
        for row_id in row_ids(item.address, old.record.rows, start=item.record.rows)
    ]
    existing = [address for address in deletions if address in before]
    deleted = [
        row_id for address in existing for row_id in row_ids(address, before[address].record.rows)
    ]
    engine.delete_rows(collection, outdated + deleted)
    _update_blocks(engine, items, existing)
    if existing:
        _unlist_empty(engine, collection, {address.namespace for address in existing})


def _listing(puts: Iterable[PlannedPut]) -> dict[Namespace, bool]:
    """Namespaces that are written to, and whether one of the new items may expire."""
    listing: dict[Namespace, bool] = {}
    for planned in puts:
        namespace = planned.address.namespace
        listing[namespace] = listing.get(namespace, False) or planned.ttl is not None
    return listing


def _to_stored(
    planned: PlannedPut, before: Stored | None, *, vectors: Mapping[str, Vector], moment: int
) -> Stored:
    now = moment / _MICROSECONDS
    record = Record(
        key=planned.address.key,
        text=planned.text,
        # Readers could not see an item that has expired, so its successor is a new one.
        created=before.record.created if before is not None and before.is_live(now) else moment,
        updated=moment,
        ttl=planned.ttl,
        vectors=len(planned.texts),
        revision=secrets.token_hex(8),
    )
    return Stored(
        namespace=planned.address.namespace,
        record=record,
        expires=_expiry(planned.ttl, now=now),
        vectors=[vectors[text] for text in planned.texts],
    )


def _upsert(engine: Engine, collection: Collection, items: Iterable[Stored]) -> None:
    """Write items in as few calls as Chroma allows."""
    # An item is never split over two calls, or a reader could see half of it.
    limit = engine.connection.max_batch
    batch = UpsertRows([], [], [])
    for item in items:
        rows = to_rows(item, dims=engine.dims)
        if len(rows.ids) > limit:
            msg = (
                f"An item with {len(rows.ids)} indexed texts is more than Chroma takes at once "
                f"({limit}). Index fewer fields of it"
            )
            raise StoreError(msg, code=ErrorCode.STORE_VALUE)
        if len(batch.ids) + len(rows.ids) > limit:
            _send(engine, collection, batch)
            batch = UpsertRows([], [], [])
        batch.ids.extend(rows.ids)
        batch.embeddings.extend(rows.embeddings)
        batch.metadatas.extend(rows.metadatas)
    _send(engine, collection, batch)


def _send(engine: Engine, collection: Collection, rows: UpsertRows) -> None:
    if rows.ids:
        engine.connection.call(
            collection.upsert,
            ids=rows.ids,
            embeddings=as_matrix(rows.embeddings, dims=engine.dims),  # pyright: ignore[reportArgumentType]
            metadatas=rows.metadatas,  # pyright: ignore[reportArgumentType]
        )


def _update_blocks(engine: Engine, items: Iterable[Stored], deletions: Iterable[Address]) -> None:
    for item in items:
        if (block := engine.blocks.get(item.namespace)) is not None:
            block.put(item)
    for address in deletions:
        if (block := engine.blocks.get(address.namespace)) is not None:
            block.drop(address.key)
    engine.blocks.trim()


def _unlist_empty(engine: Engine, collection: Collection, namespaces: Iterable[Namespace]) -> None:
    """Remove namespaces without items from the catalogue."""
    empty = [name for name in namespaces if _is_empty(engine, collection, name)]
    engine.catalogue.remove(empty)
    if engine.connection.is_shared:
        # Another client may have written between the check and the removal, so check again.
        refilled = [name for name in empty if not _is_empty(engine, collection, name)]
        engine.catalogue.add(dict.fromkeys(refilled, True))


def _is_empty(engine: Engine, collection: Collection, namespace: Namespace) -> bool:
    if (block := engine.blocks.get(namespace)) is not None:
        return not block.items()
    page = engine.connection.call(collection.get, where=scope(NS, [namespace]), include=[], limit=1)
    return not page["ids"]


# -- time to live -----------------------------------------------------------------------------


def _expiry(ttl: float | None, *, now: float) -> float:
    """Seconds since 1970 at which an item that is used now expires."""
    return NEVER if ttl is None else now + ttl * SECONDS_PER_MINUTE


def _gains(item: Stored, *, now: float) -> bool:
    """Whether an item would live noticeably longer if its time to live restarted."""
    ttl = item.record.ttl
    if ttl is None:
        return False
    return _expiry(ttl, now=now) - item.expires > _MIN_REFRESH * ttl * SECONDS_PER_MINUTE


def _refresh_shard(
    engine: Engine, collection: Collection, items: Sequence[Stored], *, now: float
) -> None:
    expiries = {
        row_id: _expiry(item.record.ttl, now=now)
        for item in items
        for row_id in row_ids(item.address, item.record.rows)
    }
    for ids in engine.connection.batches(list(expiries)):
        # `update` and not `upsert`: it ignores rows that another client has deleted meanwhile.
        metadatas: list[Any] = [{EXPIRES: expiries[row_id]} for row_id in ids]
        engine.connection.call(collection.update, ids=ids, metadatas=metadatas)
    for item in items:
        if (block := engine.blocks.get(item.namespace)) is not None:
            block.touch(item.record.key, expires=_expiry(item.record.ttl, now=now))


def _delete_expired(
    engine: Engine, collection: Collection, ids: Sequence[str], *, expired: Any
) -> None:
    """Delete rows that have expired, unless another client has refreshed them meanwhile."""
    include: list[Any] = ["embeddings"]
    before = engine.connection.call(collection.get, ids=list(ids), include=include)
    engine.blank_vectors(collection, ids)
    engine.connection.call(collection.delete, ids=list(ids), where=expired)
    if not engine.connection.is_shared:
        return
    refreshed = set(engine.connection.call(collection.get, ids=list(ids), include=[])["ids"])
    vectors = dict(zip(before["ids"], before["embeddings"] or [], strict=True))
    alive = [row_id for row_id in vectors if row_id in refreshed]
    if alive:
        rows: list[Any] = [vectors[row_id] for row_id in alive]
        restored = as_matrix(rows, dims=engine.dims)
        engine.connection.call(collection.update, ids=alive, embeddings=restored)  # pyright: ignore[reportArgumentType]


def _sweep_shard(engine: Engine, shard: int, collection: Collection, *, now: float) -> int:
    expired: Any = {EXPIRES: {"$lte": now}}
    with engine.lock(shard):
        rows = engine.connection.rows(collection, where=expired)
        namespaces = {namespace_of(metadata) for metadata in rows.values()}
        for ids in engine.connection.batches(list(rows)):
            _delete_expired(engine, collection, ids, expired=expired)
        for namespace in namespaces:
            engine.blocks.drop(namespace)
        _unlist_empty(engine, collection, namespaces)
    return sum(map(is_head, rows))
