"""Carry out a checked and embedded batch, in a worker thread."""

from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.store.base import GetOp, ListNamespacesOp, Result, SearchItem

from memguard.errors import ErrorCode, MemguardError, StoreConfigurationError
from memguard.stores.chroma.collections import Stamp
from memguard.stores.chroma.embedding import Embedder, Vector
from memguard.stores.chroma.engine import Engine
from memguard.stores.chroma.namespaces import page_namespaces, select_namespaces
from memguard.stores.chroma.plan import Plan, PlannedPut, PlannedSearch
from memguard.stores.chroma.reading import Hit, Search, live_namespaces, search
from memguard.stores.chroma.rows import Stored
from memguard.stores.chroma.settings import Settings
from memguard.stores.chroma.values import Address, to_item, to_microseconds, to_search_item
from memguard.stores.chroma.writing import Put, expiry, touch, write

_UNINDEXED_DIMS = 4
_WORTH_RENEWING = 0.01
"""Share of an item's time to live that a read must win to be written: one write per read of a
busy item would cost more than the read."""


def run_plan(
    engine: Engine,
    plan: Plan,
    *,
    settings: Settings,
    vectors: Mapping[str, Vector],
    queries: Mapping[str, Vector],
) -> list[Result]:
    """Reads first, on the state before the batch; then the writes.

    Args:
        engine: Where.
        plan: What.
        settings: The store's.
        vectors: Of every text in `plan.texts`.
        queries: Of every text in `plan.queries`.
    """
    moment = to_microseconds(settings.moment())
    now = moment / 1_000_000
    results: list[Result] = [None] * plan.size
    read: list[Stored] = _run_gets(engine, plan, results, hide=_hides(settings, now))
    for place, each in plan.reads:
        if isinstance(each, PlannedSearch):
            hits = _run_search(engine, each, queries, now=_hides(settings, now))
            results[place] = [_to_result(hit) for hit in hits]
            read += [hit.item for hit in hits] if each.op.refresh_ttl else []
        elif isinstance(each, ListNamespacesOp):
            results[place] = _run_list(engine, each, now=_hides(settings, now))
    touch(engine, _worth_renewing(read, now=now), now=now)
    if plan.puts or plan.deletions:
        _run_writes(engine, plan, settings=settings, vectors=vectors, moment=moment)
    return results


def check_stamp(stamp: Stamp | None, embedder: Embedder | None) -> None:
    """Whether a store may be used with an embedder.

    Raises:
        StoreConfigurationError: If it was made with another one.
    """
    if stamp is None or embedder is None:
        return
    dims = embedder.known_dims
    if stamp.embedder == embedder.name and (dims is None or dims == stamp.dims):
        return
    made = f"{stamp.embedder!r} ({stamp.dims} dimensions)" if stamp.embedder else "no embedder"
    msg = (
        f"The store was made with {made} and is opened with {embedder.name!r} "
        f"({_dims_or_unknown(embedder)} dimensions); their vectors cannot be compared. Pass the "
        f"first embedder, or another path or `collection=` and write the memories anew"
    )
    raise StoreConfigurationError(msg, code=ErrorCode.STORE_EMBEDDER)


def _dims_or_unknown(embedder: Embedder) -> int | str:
    try:
        return embedder.dims()
    except MemguardError:  # only to word the message; the mismatch itself is certain
        return "unknown"


def _hides(settings: Settings, now: float) -> float | None:
    """The moment by which expired items are left out, if they are."""
    keeps = settings.ttl is not None and not settings.ttl.get("omit_expired", True)
    return None if keeps else now


def _run_gets(
    engine: Engine, plan: Plan, results: list[Result], *, hide: float | None
) -> list[Stored]:
    gets = [(place, each) for place, each in plan.reads if isinstance(each, GetOp)]
    if not gets:
        return []
    found = engine.heads({Address(each.namespace, each.key): None for _, each in gets})
    read: list[Stored] = []
    for place, each in gets:
        item = found.get(Address(each.namespace, each.key))
        if item is None or (hide is not None and not item.is_live(hide)):
            continue
        results[place] = to_item(item.record, item.namespace)
        read += [item] if each.refresh_ttl else []
    return read


def _run_search(
    engine: Engine, planned: PlannedSearch, queries: Mapping[str, Vector], *, now: float | None
) -> Sequence[Hit]:
    op = planned.op
    wanted = Search(
        prefix=op.namespace_prefix,
        limit=op.limit,
        offset=op.offset,
        filter=op.filter or {},
        vector=queries[planned.query] if planned.query else None,
        now=now,
    )
    stamp = engine.collections.stamp
    if stamp is not None and wanted.vector is not None and len(wanted.vector) != stamp.dims:
        raise _wrong_dims(stamp, len(wanted.vector))
    return search(engine, wanted)


def _run_list(engine: Engine, op: ListNamespacesOp, *, now: float | None) -> list[tuple[str, ...]]:
    conditions = op.match_conditions or ()
    prefix: list[str] = []
    for condition in conditions:
        if condition.match_type == "prefix":
            for label in condition.path:
                if label == "*":
                    break
                prefix.append(label)
            break
    found = live_namespaces(engine, tuple(prefix), now=now)
    return page_namespaces(select_namespaces(found, conditions), op)


def _run_writes(
    engine: Engine,
    plan: Plan,
    *,
    settings: Settings,
    vectors: Mapping[str, Vector],
    moment: int,
) -> None:
    if plan.puts:
        _establish(engine, settings, vectors)
    puts = [_to_put(each, vectors) for each in plan.puts]
    write(engine, puts, plan.deletions, moment=moment)


def _establish(engine: Engine, settings: Settings, vectors: Mapping[str, Vector]) -> None:
    """Stamp the store before its first item; check the stamp that is there otherwise."""
    embedder = settings.embedder
    stamp = engine.collections.stamp
    if stamp is None:
        stamp = engine.collections.establish(
            Stamp(
                embedder=embedder.name if embedder else None,
                dims=embedder.dims() if embedder else _UNINDEXED_DIMS,
                shards=settings.shards,
            )
        )
        check_stamp(stamp, embedder)
    for vector in vectors.values():
        if len(vector) != stamp.dims:
            raise _wrong_dims(stamp, len(vector))


def _wrong_dims(stamp: Stamp, found: int) -> StoreConfigurationError:
    msg = (
        f"The embedder gave {found} numbers and the store was made with {stamp.embedder!r}, "
        f"{stamp.dims} dimensions. Pass the embedder the store was made with"
    )
    return StoreConfigurationError(msg, code=ErrorCode.STORE_EMBEDDER)


def _to_put(put: PlannedPut, vectors: Mapping[str, Vector]) -> Put:
    return Put(
        address=put.address,
        text=put.text,
        ttl=put.ttl,
        vectors=[vectors[text] for text in put.texts],
    )


def _to_result(hit: Hit) -> SearchItem:
    """Cosine clamped into [0, 1]: a memory that points the other way is no nearer than none."""
    score = None if hit.score is None else min(1.0, max(0.0, hit.score))
    return to_search_item(hit.item.record, hit.item.namespace, score=score)


def _worth_renewing(items: Sequence[Stored], *, now: float) -> list[Stored]:
    found: dict[Any, Stored] = {}
    for each in items:
        ttl = each.record.ttl
        if ttl is not None:
            gain = expiry(ttl, now=now) - each.expires
            if gain > _WORTH_RENEWING * ttl * 60.0:
                found[each.address] = each
    return list(found.values())
