"""Exchanges with the memory store: records are put, read back, and compared.

Storing needs three exchanges, however many records there are: look up which keys are taken, put the
others, read those back.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp
from pydantic import ValidationError

from memguard.errors import ErrorCode, MemguardError, StoreError
from memguard.portal import call_store
from memguard.schema.base import Namespace
from memguard.schema.memory import (
    Lifecycle,
    MemoryRecord,
    Provenance,
    lifecycle_of,
    same_text_form,
    without_lifecycle,
)

NamespacedKey = tuple[Namespace, str]
"""A namespace and a key in it."""

_TEXT_FIELDS = ("content", "text", "memory")
"""Fields that memory stores use for the text of a memory; memguard and langmem use the first."""

_RECOVERABLE = "the memory is in the receipt log, and the next `recover` stores it"


@runtime_checkable
class ErasingStore(Protocol):
    """A store that can remove what it keeps of deleted items."""

    async def aerase(self) -> tuple[str, ...]:
        """Remove it, and return what remains to be done, in one line each."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredRecords:
    """The result of an attempt to store the records of some intents."""

    records: tuple[MemoryRecord, ...]
    """The records that are in the store now."""
    problems: tuple[str, ...]
    """Why the others are still pending, as messages for a person."""
    changed: tuple[str, ...] = ()
    """The receipts without a record of their own whose changes are in the store now."""


async def store_records(records: Sequence[MemoryRecord], *, store: BaseStore) -> list[str | None]:
    """Put records into the store and read them back.

    A key that is taken by the same text stays as it is: the record that came first keeps its
    provenance and its times.

    Returns:
        For each record why it does not count as stored; `None` if it does.
    """
    ttl = default_ttl(store)
    # Reversed, so that of records with the same location the first is stored.
    by_location = {(record.namespace, record.key): record for record in reversed(records)}
    items = await get_items(by_location, store=store)
    missing = [record for at, record in by_location.items() if _is_missing(record, items[at])]
    if missing:
        ops = [_put_op(record, ttl=ttl) for record in missing]
        await call_or_advise(store, ops, advice=_RECOVERABLE)
        # Read back, since a store may lose or change an item without an error.
        locations = [(record.namespace, record.key) for record in missing]
        items |= await get_items(locations, store=store)
    # By identity: a repeat of the same record in the batch was not put itself.
    written = {id(record) for record in missing}
    return [
        _problem(record, items[record.namespace, record.key], written=id(record) in written)
        for record in records
    ]


async def get_items(
    locations: Iterable[NamespacedKey], *, store: BaseStore
) -> dict[NamespacedKey, Item | None]:
    """The items at these locations.

    Raises:
        StoreError: If the store failed.
    """
    keys = list(locations)
    items = await call_or_advise(store, [GetOp(*key) for key in keys], advice=_RECOVERABLE)
    return dict(zip(keys, items, strict=True))


async def call_or_advise(store: BaseStore, ops: Sequence[Op], *, advice: str) -> list[Any]:
    """As `call_store`; any failure is a `MemguardError` that ends with what to do."""
    try:
        return await call_store(store, ops)
    except MemguardError:
        raise
    except Exception as error:  # a third-party store may raise anything
        msg = f"the memory store failed: {type(error).__name__}: {error}; {advice}"
        raise StoreError(msg, code=ErrorCode.STORE_FAILED) from error


def _put_op(record: MemoryRecord, *, ttl: float | None) -> Op:
    return PutOp(
        namespace=record.namespace,
        key=record.key,
        value=record.to_value(),
        # Only the text is embedded, not its provenance. A writer's own item has other fields,
        # which the store's configuration selects.
        index=["content"] if record.value is None else None,
        ttl=ttl,
    )


def _is_missing(record: MemoryRecord, item: Item | None) -> bool:
    # An item that a writer put under a key of its own replaces the item there.
    if item is None or record.value is None:
        return item is None
    return without_lifecycle(item.value) != without_lifecycle(record.value)


def default_ttl(store: BaseStore) -> float | None:
    """The store's default time to live in minutes, which `put` fills in but `batch` does not."""
    config = store.ttl_config if store.supports_ttl else None
    return (config or {}).get("default_ttl")


def _problem(record: MemoryRecord, item: Item | None, *, written: bool) -> str | None:
    where = f"key {record.key!r} in namespace {record.namespace!r}"
    if item is None:
        return f"{where} is not there after it was put"
    value: Mapping[str, Any] = item.value
    # Another decision may have marked the item by now.
    is_equal = without_lifecycle(value) == without_lifecycle(record.to_value())
    if record.value is not None:
        return None if is_equal else f"{where} came back changed"
    text = value.get("content")
    if not isinstance(text, str) or same_text_form(text) != same_text_form(record.text):
        return f"{where} holds another text, {text!r}; delete or move that item, then run again"
    # Another writer may have stored the same text in the meantime; then its provenance differs.
    is_own = written and owner_of(value) == record.provenance.candidate_id
    is_bare = record.lifecycle != Lifecycle() and lifecycle_of(value) == Lifecycle()
    return f"{where} came back changed" if is_own and (is_bare or not is_equal) else None


def owner_of(value: Mapping[str, Any]) -> str | None:
    """The candidate that an item of the store came from, according to its provenance."""
    provenance = value.get("memguard")
    return provenance.get("candidate_id") if isinstance(provenance, Mapping) else None


def record_of_item(item: Item) -> MemoryRecord | None:
    """The memory in an item of a store; `None` if it has no text.

    Provenance that this version cannot read, or that is not there, is empty.
    """
    value: dict[str, Any] = item.value
    text = next((value[name] for name in _TEXT_FIELDS if isinstance(value.get(name), str)), None)
    if text is None:
        return None
    fields = value.get("memguard")
    origin = cast("Mapping[str, Any]", fields) if isinstance(fields, Mapping) else {}
    readable = {name: origin[name] for name in Provenance.model_fields if name in origin}
    try:
        provenance = Provenance.model_validate({"candidate_id": "", "receipt_id": "", **readable})
    except ValidationError:
        provenance = Provenance(candidate_id="", receipt_id="")
    return MemoryRecord(
        namespace=tuple(item.namespace),
        key=item.key,
        text=text,
        provenance=provenance,
        value=None if "candidate_id" in origin else without_lifecycle(value),
        lifecycle=lifecycle_of(value),
    )


def is_item_of(item: Item, *, value: Mapping[str, Any] | None, text: str | None) -> bool:
    """Whether an item is what a receipt says was stored.

    Args:
        item: The item of the store.
        value: The value on the receipt; `None` if it has none.
        text: The text of the candidate; `None` if any value is right, because JSON could not
            represent the one that the caller of a guarded store passed.
    """
    if value is not None:
        return without_lifecycle(item.value) == without_lifecycle(value)
    # As commits compare: of two texts with the same form, only the first is stored.
    content = item.value.get("content")
    return text is None or (
        isinstance(content, str) and same_text_form(content) == same_text_form(text)
    )
