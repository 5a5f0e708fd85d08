"""Forgets memories: erases them from the memory store and from the log, for good.

The order makes an interruption harmless: first the forgetting is logged, then marks on other
records are changed and the records are deleted, then the log loses its text, and last the bytes go
that store and log keep of deleted rows. `recover` completes what was interrupted.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from langgraph.store.base import BaseStore, Item, PutOp, SearchOp

from memguard.errors import ErrorCode, StoreError
from memguard.journal.erasing import (
    UnfinishedForgetting,
    compact,
    counts_of,
    end_forgetting,
    erase_traces,
    forgetting_receipts,
    start_forgetting,
    unfinished_forgettings,
)
from memguard.journal.erasure import FORGOTTEN, erase_text
from memguard.journal.fulfilment import repeat_changes
from memguard.journal.journal import Journal
from memguard.journal.receipts import ACTOR
from memguard.journal.storing import (
    ErasingStore,
    NamespacedKey,
    call_or_advise,
    get_items,
    owner_of,
)
from memguard.journal.traces import ItemText, Traces, find_traces, namespaces_of
from memguard.schema.base import Namespace
from memguard.schema.forgetting import ForgetReport as ForgetReport  # noqa: PLC0414 - the public place
from memguard.schema.forgetting import ForgetSelection as ForgetSelection  # noqa: PLC0414
from memguard.schema.forgetting import ForgettingReceipt
from memguard.schema.memory import Lifecycle, lifecycle_of
from memguard.schema.relations import RecordChange

_BATCH = 500
_ADVICE = "the forgetting is in the receipt log, and the next `recover` completes it"
_LOG_BUSY = (
    "another process reads the receipt log: the erased text stays in its write-ahead log until "
    "that process is done; forget once more, or open and close the log"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _StoreView:
    """The items of the store that a selection may concern."""

    items: Sequence[Item]
    texts: Sequence[ItemText]


async def forget(
    journal: Journal,
    store: BaseStore,
    *,
    selection: ForgetSelection,
    actor: str,
    reason: str = "",
    preview: bool = False,
) -> ForgetReport:
    """Erase memories from the store and the log, with all that repeats their text.

    It covers records that are current, superseded, undone or edited; candidates in quarantine, or
    rejected; receipts and events; reads that showed or withheld them; cached extractions and
    decompositions; quotes in other receipts, and in marks on other records. Of a Chroma store, the
    bytes of deleted rows are removed as well. Forgetting again changes nothing.

    Args:
        journal: The log.
        store: The memory store, not a guard around it.
        selection: What is to be forgotten.
        actor: Who requests it, for the receipt.
        reason: Why, for the receipt; quotes of what is forgotten are erased from it.
        preview: Whether to count only.

    Returns:
        How much was erased, and in `notes` what is beyond memguard's reach.

    Raises:
        InvalidInputError: If there is no such memory, or more than one.
        StoreError: If the store failed; the next `recover` completes the forgetting.
        ReceiptError: If the log failed.
    """
    store = getattr(store, "unguarded", store)
    if not preview:
        await finish_forgettings(journal, store)
    view = await _view(journal, store, selection)
    if preview:
        traces = await journal.aread(find_traces, selection, view.texts)
        return _report(traces, view, preview=True)
    forgetting_id, traces = await journal.awrite(
        start_forgetting, selection, view.texts, actor=actor, reason=reason, at=journal.now()
    )
    await _erase_from_store(journal, store, traces, view)
    counts = _store_counts(traces, view)
    erased = await journal.awrite(erase_traces, forgetting_id, selection, view.texts, counts=counts)
    notes = await _erase_bytes(journal, store, forgetting_id, erased)
    return _report(erased, view, receipt_id=forgetting_id, notes=notes)


async def forget_memory(
    journal: Journal, store: BaseStore, which: str, *, actor: str, reason: str
) -> ForgetReport:
    """Forget one memory: `forget` with `ForgetSelection(memory=which)`."""
    selection = ForgetSelection(memory=which)
    return await forget(journal, store, selection=selection, actor=actor, reason=reason)


async def finish_forgettings(
    journal: Journal, store: BaseStore, *, actor: str = ACTOR
) -> tuple[str, ...]:
    """Complete the forgettings that were interrupted; returns their ids.

    Memories that were stored since are not concerned.

    Raises:
        StoreError: If the store failed; they stay pending.
    """
    del actor  # the receipt has the actor who requested it
    unfinished = await journal.aread(unfinished_forgettings)
    for forgetting in unfinished:
        traces: Traces | None = None
        if forgetting.selection is not None:
            traces = await _redo(journal, store, forgetting, forgetting.selection)
        await _erase_bytes(journal, store, forgetting.id, traces)
    return tuple(forgetting.id for forgetting in unfinished)


async def list_forgettings(journal: Journal) -> tuple[ForgettingReceipt, ...]:
    """The receipts of all forgettings, newest first."""
    return await journal.aread(forgetting_receipts)


async def _redo(
    journal: Journal,
    store: BaseStore,
    forgetting: UnfinishedForgetting,
    selection: ForgetSelection,
) -> Traces:
    view = await _view(journal, store, selection, until=forgetting.at)
    traces = await journal.aread(
        find_traces, selection, view.texts, last_receipt=forgetting.last_receipt
    )
    await _erase_from_store(journal, store, traces, view)
    return await journal.awrite(
        erase_traces,
        forgetting.id,
        selection,
        view.texts,
        counts=_store_counts(traces, view),
        last_receipt=forgetting.last_receipt,
    )


# -- the store --------------------------------------------------------------------------------


async def _view(
    journal: Journal,
    store: BaseStore,
    selection: ForgetSelection,
    *,
    until: datetime | None = None,
) -> _StoreView:
    """Read the items that a selection may concern, and those that may have marks of them."""
    namespaces: tuple[Namespace, ...] = (selection.namespace,)
    if selection.memory:
        # The log tells where it is; without it, every item has to be looked at.
        logged = await journal.aread(namespaces_of, selection.memory)
        namespaces = tuple(name for name in logged if selection.covers(name))
        namespaces = namespaces or (selection.namespace,)
    items: list[Item] = []
    for namespace in namespaces:
        items += [
            item
            async for item in _items(store, namespace)
            if selection.covers(tuple(item.namespace))
            and (until is None or item.created_at <= until)
        ]
    return _StoreView(items=items, texts=[_text_of(item) for item in items])


async def _items(store: BaseStore, namespace: Namespace) -> AsyncIterator[Item]:
    offset = 0
    while True:
        op = SearchOp(namespace, limit=_BATCH, offset=offset, refresh_ttl=False)
        (page,) = await call_or_advise(store, [op], advice="nothing was erased; forget again")
        for item in page:
            yield item
        offset += len(page)
        if len(page) < _BATCH:
            return


def _text_of(item: Item) -> ItemText:
    value: dict[str, Any] = dict(item.value)
    owner = owner_of(value)
    content = value.get("content")
    is_own = owner is not None and isinstance(content, str)
    return ItemText(
        namespace=tuple(item.namespace),
        key=item.key,
        text=cast("str", content) if is_own else _texts_in(value),
        candidate_id=owner or "",
        is_current=lifecycle_of(value).is_current,
    )


def _texts_in(value: Mapping[str, Any]) -> str:
    # The text of an item that memguard did not write, if it has nothing else; else all of it.
    content = value.get("content")
    if isinstance(content, str) and set(value) <= {"content", "memguard"}:
        return content
    return json.dumps(value, ensure_ascii=False)


async def _erase_from_store(
    journal: Journal, store: BaseStore, traces: Traces, view: _StoreView
) -> None:
    """Change the marks of other records, then delete the records."""
    # The marks first: once the records are gone, nothing would tell which marks name them.
    marks = list(_without_marks(traces, view.items))
    for start in range(0, len(marks), _BATCH):
        await repeat_changes(journal, store, marks[start : start + _BATCH])
    deletions = [PutOp(namespace, key, None) for namespace, key in sorted(traces.locations)]
    for start in range(0, len(deletions), _BATCH):
        await call_or_advise(store, deletions[start : start + _BATCH], advice=_ADVICE)
    await _check_gone(store, traces.locations)


async def _check_gone(store: BaseStore, locations: Iterable[NamespacedKey]) -> None:
    """Read the locations back.

    Raises:
        StoreError: If a record is still there.
    """
    ordered = sorted(locations)
    for start in range(0, len(ordered), _BATCH):
        items = await get_items(ordered[start : start + _BATCH], store=store)
        remaining = [location for location, item in items.items() if item is not None]
        if remaining:
            msg = (
                f"{len(remaining)} records are still in the store after they were deleted, the "
                f"first with the key {remaining[0][1]!r}; {_ADVICE}"
            )
            raise StoreError(msg, code=ErrorCode.STORE_FAILED)


def _without_marks(traces: Traces, items: Sequence[Item]) -> Iterator[RecordChange]:
    """The changes of other items whose lifecycle names or quotes a memory."""
    keys: dict[Namespace, set[str]] = {}
    for namespace, key in traces.locations:
        keys.setdefault(namespace, set()).add(key)
    for item in items:
        namespace = tuple(item.namespace)
        if (namespace, item.key) in traces.locations:
            continue
        before = lifecycle_of(item.value)
        after = _without_keys(before, keys.get(namespace, set()), traces)
        if after != before:
            yield RecordChange(namespace=namespace, key=item.key, before=before, after=after)


def _without_keys(lifecycle: Lifecycle, keys: set[str], traces: Traces) -> Lifecycle:
    by = lifecycle.superseded_by
    reason = erase_text(lifecycle.reason, traces.quotes, originals=traces.originals)
    return lifecycle.model_copy(
        update={
            "superseded_by": FORGOTTEN if by in keys else by,
            "detail_of": "" if lifecycle.detail_of in keys else lifecycle.detail_of,
            "conflicts_with": tuple(key for key in lifecycle.conflicts_with if key not in keys),
            "reason": reason,
        }
    )


# -- bytes and report -------------------------------------------------------------------------


async def _erase_bytes(
    journal: Journal, store: BaseStore, forgetting_id: str, traces: Traces | None
) -> tuple[str, ...]:
    """Remove what store and log keep of deleted rows; returns what remains to be done."""
    if traces is not None:
        # A write that was under way when the forgetting began may have reached the store since.
        late = await _late_writes(store, traces)
        if late:
            ops = [PutOp(namespace, key, None) for namespace, key in late]
            await call_or_advise(store, ops, advice=_ADVICE)
    notes: list[str] = []
    if isinstance(store, ErasingStore):
        notes += await store.aerase()
    else:
        notes.append(
            f"what {type(store).__name__} keeps of deleted items, such as a write-ahead log, free "
            "pages, replicas and backups, is beyond memguard's reach"
        )
    if journal.path is not None:
        folders = await asyncio.to_thread(_damaged_copies, journal.path.parent)
        notes += [
            f"{folder} has files as they were before a repair; delete it" for folder in folders
        ]
    await journal.awrite(end_forgetting, forgetting_id)
    # Last, and as a read: SQLite can do this only outside of a transaction.
    if not await journal.aread(compact):
        notes.append(_LOG_BUSY)
    return tuple(notes)


def _damaged_copies(folder: Path) -> list[str]:
    """The folders into which `memguard doctor --repair` moved damaged files."""
    return [str(path) for path in sorted(folder.glob("damaged-*")) if path.is_dir()]


async def _late_writes(store: BaseStore, traces: Traces) -> list[NamespacedKey]:
    ordered = sorted(traces.locations)
    late: list[NamespacedKey] = []
    for start in range(0, len(ordered), _BATCH):
        items = await get_items(ordered[start : start + _BATCH], store=store)
        late += [
            location
            for location, item in items.items()
            if item is not None and owner_of(item.value) in traces.candidate_ids
        ]
    return late


def _store_counts(traces: Traces, view: _StoreView) -> dict[str, int]:
    current = {item.location for item in view.texts if item.is_current}
    return {
        "records": len(traces.items & current),
        "superseded": len(traces.items - current),
        "marks": sum(1 for _ in _without_marks(traces, view.items)),
    }


def _report(
    traces: Traces,
    view: _StoreView,
    *,
    preview: bool = False,
    receipt_id: str = "",
    notes: tuple[str, ...] = (),
) -> ForgetReport:
    return ForgetReport(
        preview=preview,
        receipt_id=receipt_id,
        receipt_ids=tuple(traces.receipts.values()),
        keys=tuple(key for _, key in sorted(traces.items)),
        notes=notes,
        **counts_of(traces),
        **_store_counts(traces, view),
    )
