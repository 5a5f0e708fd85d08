"""Writes: puts, deletions, expiry. One namespace's writes never overlap."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chromadb.api.models.Collection import Collection

from memguard.errors import ErrorCode, StoreError
from memguard.schema.base import Namespace
from memguard.stores.chroma.engine import Engine, scope
from memguard.stores.chroma.resident import as_matrix
from memguard.stores.chroma.rows import Rows, Stored, head_from, is_head, row_ids, to_rows
from memguard.stores.chroma.values import EXPIRES, NEVER, NS, Address, Record, namespace_of

_SECONDS_PER_MINUTE = 60.0
_MICROSECONDS = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Put:
    """One item to store, checked and embedded."""

    address: Address
    text: str
    """The value as JSON."""
    ttl: float | None
    """Minutes."""
    vectors: Sequence[Sequence[float]] = ()


def expiry(ttl: float | None, *, now: float) -> float:
    """When an item that is used now expires."""
    return NEVER if ttl is None else now + ttl * _SECONDS_PER_MINUTE


def write(
    engine: Engine, puts: Sequence[Put], deletions: Sequence[Address], *, moment: int
) -> None:
    """Store and delete items, each address named once.

    The rows of an item are replaced by one call, which Chroma carries out as one transaction: a
    reader, or a process that dies, sees the old item or the new one.

    Args:
        engine: Where.
        puts: What to store.
        deletions: What to delete.
        moment: Microseconds since 1970.
    """
    stored = {each.address: each for each in puts}
    for shard, group in sorted(engine.by_shard([*stored, *deletions]).items()):
        mine = [stored[each] for each in group if each in stored]
        gone = [each for each in group if each not in stored]
        collection = engine.collections.shard(shard, create=bool(mine))
        if collection is not None:
            with engine.lock(shard), _Forgetting(engine, group):
                _write_shard(engine, collection, mine, gone, moment=moment)
    engine.catalogue.confirm(_listing(puts))


def touch(engine: Engine, items: Iterable[Stored], *, now: float) -> None:
    """Move the end of items that were read, unless they have changed since."""
    wanted = {each.address: each for each in items}
    for shard, group in engine.by_shard(wanted).items():
        collection = engine.collections.shard(shard)
        if collection is None:
            continue
        with engine.lock(shard), _Forgetting(engine, group):
            current = engine.heads(group)
            _touch_shard(
                engine,
                collection,
                [
                    each
                    for address, each in current.items()
                    if each.record.revision == wanted[address].record.revision
                ],
                now=now,
            )


def delete_namespace(engine: Engine, namespace: Namespace, *, now: float) -> int:
    """Delete every item of exactly this namespace; returns how many readers could still see."""
    shard = engine.collections.shard_of(namespace)
    collection = engine.collections.shard(shard)
    if collection is None:
        return 0
    with engine.lock(shard):
        engine.blocks.drop(namespace)
        page = engine.connection.call(
            collection.get, where=scope(NS, [namespace]), include=["metadatas"]
        )
        rows = [
            (row_id, metadata)
            for row_id, metadata in zip(page["ids"], page["metadatas"] or [], strict=True)
            if namespace_of(metadata) == namespace
        ]
        _delete_rows(engine, collection, [row_id for row_id, _ in rows])
        _unlist_empty(engine, collection, [namespace])
    return sum(is_head(row_id) and head_from(each)[1] > now for row_id, each in rows)


def sweep(engine: Engine, *, now: float) -> int:
    """Delete what has expired; returns how many items."""
    return sum(
        _sweep_shard(engine, shard, collection, now=now)
        for shard, collection in engine.collections.shards()
    )


class _Forgetting:
    """If a write fails, Chroma may or may not have done it: the blocks concerned must be reread."""

    def __init__(self, engine: Engine, addresses: Iterable[Address]) -> None:
        self._engine = engine
        self._addresses = addresses

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            for each in self._addresses:
                self._engine.blocks.drop(each.namespace)


def _write_shard(
    engine: Engine,
    collection: Collection,
    puts: Sequence[Put],
    deletions: Sequence[Address],
    *,
    moment: int,
) -> None:
    # Inside the lock: the deletion of a namespace's last item takes it off the list.
    for each in engine.catalogue.add(_listing(puts)):
        engine.start_block(each)
    before = engine.heads([*(each.address for each in puts), *deletions])
    items = [_to_stored(each, before.get(each.address), moment=moment) for each in puts]
    _upsert(engine, collection, [to_rows(each, dims=engine.dims) for each in items])
    left_over = [
        row_id
        for each in items
        if (old := before.get(each.address)) is not None
        for row_id in row_ids(each.address, old.record.rows, start=each.record.rows)
    ]
    doomed = [each for each in deletions if each in before]
    gone = [row_id for each in doomed for row_id in row_ids(each, before[each].record.rows)]
    _delete_rows(engine, collection, left_over + gone)
    _apply(engine, items, doomed)
    if doomed:
        _unlist_empty(engine, collection, {each.namespace for each in doomed})


def _listing(puts: Iterable[Put]) -> dict[Namespace, bool]:
    """Namespaces written to, and whether an item there may expire."""
    listing: dict[Namespace, bool] = {}
    for each in puts:
        space = each.address.namespace
        listing[space] = listing.get(space, False) or each.ttl is not None
    return listing


def _to_stored(put: Put, before: Stored | None, *, moment: int) -> Stored:
    now = moment / _MICROSECONDS
    created = before.record.created if before is not None and before.is_live(now) else moment
    record = Record(
        key=put.address.key,
        text=put.text,
        created=created,
        updated=moment,
        ttl=put.ttl,
        vectors=len(put.vectors),
        revision=secrets.token_hex(8),
    )
    return Stored(
        namespace=put.address.namespace,
        record=record,
        expires=expiry(put.ttl, now=now),
        vectors=put.vectors,
    )


def _upsert(engine: Engine, collection: Collection, rows: Sequence[Rows]) -> None:
    """Write items in as few calls as Chroma takes; an item is never split over two."""
    part = Rows([], [], [])
    for each in rows:
        if len(each.ids) > engine.connection.max_batch:
            msg = (
                f"An item with {len(each.ids)} indexed texts is more than Chroma takes at once "
                f"({engine.connection.max_batch}). Index fewer fields of it"
            )
            raise StoreError(msg, code=ErrorCode.STORE_VALUE)
        if len(part.ids) + len(each.ids) > engine.connection.max_batch:
            _send(engine, collection, part)
            part = Rows([], [], [])
        for whole, more in zip(part, each, strict=True):
            whole.extend(more)  # pyright: ignore[reportArgumentType]
    _send(engine, collection, part)


def _send(engine: Engine, collection: Collection, rows: Rows) -> None:
    if rows.ids:
        engine.connection.call(
            collection.upsert,
            ids=rows.ids,
            embeddings=as_matrix(rows.embeddings, dims=engine.dims),  # pyright: ignore[reportArgumentType]
            metadatas=rows.metadatas,  # pyright: ignore[reportArgumentType]
        )


def _delete_rows(engine: Engine, collection: Collection, ids: Sequence[str]) -> None:
    for start in range(0, len(ids), engine.connection.max_batch):
        part = list(ids[start : start + engine.connection.max_batch])
        engine.connection.call(collection.delete, ids=part)


def _apply(engine: Engine, items: Iterable[Stored], deletions: Iterable[Address]) -> None:
    for item in items:
        if (block := engine.blocks.get(item.namespace)) is not None:
            vectors = as_matrix(item.vectors, dims=engine.dims)
            block.put(item.record, expires=item.expires, vectors=vectors)
    for address in deletions:
        if (block := engine.blocks.get(address.namespace)) is not None:
            block.drop(address.key)
    engine.blocks.trim()


def _unlist_empty(engine: Engine, collection: Collection, namespaces: Iterable[Namespace]) -> None:
    """Take namespaces without items off the catalogue; beside other writers, look twice."""
    empty = [each for each in namespaces if _is_empty(engine, collection, each)]
    engine.catalogue.remove(empty)
    if engine.connection.is_shared:
        again = [each for each in empty if not _is_empty(engine, collection, each)]
        engine.catalogue.add(dict.fromkeys(again, True))


def _is_empty(engine: Engine, collection: Collection, namespace: Namespace) -> bool:
    if (block := engine.blocks.get(namespace)) is not None:
        return not block.items()
    page = engine.connection.call(collection.get, where=scope(NS, [namespace]), include=[], limit=1)
    return not page["ids"]


def _touch_shard(
    engine: Engine, collection: Collection, items: Sequence[Stored], *, now: float
) -> None:
    ids: list[str] = []
    metadatas: list[Mapping[str, Any]] = []
    for each in items:
        own = row_ids(each.address, each.record.rows)
        ids += own
        metadatas += [{EXPIRES: expiry(each.record.ttl, now=now)}] * len(own)
    for start in range(0, len(ids), engine.connection.max_batch):
        end = start + engine.connection.max_batch
        engine.connection.call(
            collection.update,
            ids=ids[start:end],
            metadatas=metadatas[start:end],  # pyright: ignore[reportArgumentType]
        )
    for each in items:
        if (block := engine.blocks.get(each.namespace)) is not None:
            block.touch(each.record.key, expires=expiry(each.record.ttl, now=now))


def _sweep_shard(engine: Engine, shard: int, collection: Collection, *, now: float) -> int:
    expired: Any = {EXPIRES: {"$lte": now}}
    with engine.lock(shard):
        page = engine.connection.call(collection.get, where=expired, include=["metadatas"])
        spaces = {namespace_of(metadata) for metadata in page["metadatas"] or []}
        for start in range(0, len(page["ids"]), engine.connection.max_batch):
            # The condition once more: another client may have renewed an item meanwhile.
            engine.connection.call(
                collection.delete,
                ids=page["ids"][start : start + engine.connection.max_batch],
                where=expired,
            )
        for each in spaces:
            engine.blocks.drop(each)
        _unlist_empty(engine, collection, spaces)
    return sum(map(is_head, page["ids"]))
