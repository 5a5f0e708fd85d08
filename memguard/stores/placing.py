"""Putting records into a memory store so that each is known to be there.

Three exchanges with the store, however many records: look which keys are taken, put the others,
read those back. The steps are written once, as a generator of operations, and driven through
`batch` or `abatch`.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp

from memguard.errors import ErrorCode, MemguardError, StoreError
from memguard.policy.dedupe import same_text_form
from memguard.schema.memory import MemoryRecord
from memguard.store_calls import call_store

_Steps = Generator[list[Op], list[Any], "Placed"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Placed:
    """Which records are in the store, by place in the sequence given."""

    present: tuple[bool, ...]
    """Whether the record, or an earlier one of the same text, was read from the store."""
    problems: tuple[str, ...]
    """What is wrong with each of the others, for a person."""


def place(store: BaseStore, records: Sequence[MemoryRecord]) -> Placed:
    """Put records into the store and read them back.

    A key that is taken by the same text stays as it is: the record that came first keeps its
    provenance and its times.

    Raises:
        StoreError: If the store failed.
    """
    steps = _steps(records, ttl=_default_ttl(store))
    ops = next(steps)
    while True:
        try:
            results = store.batch(ops)
        except MemguardError:
            raise
        except Exception as error:  # a store of any make may raise anything
            raise _failed(error) from error
        try:
            ops = steps.send(results)
        except StopIteration as end:
            return end.value


async def aplace(store: BaseStore, records: Sequence[MemoryRecord]) -> Placed:
    """See `place`."""
    steps = _steps(records, ttl=_default_ttl(store))
    ops = next(steps)
    while True:
        try:
            results = await call_store(store, ops)
        except MemguardError:
            raise
        except Exception as error:  # a store of any make may raise anything
            raise _failed(error) from error
        try:
            ops = steps.send(results)
        except StopIteration as end:
            return end.value


def _steps(records: Sequence[MemoryRecord], *, ttl: float | None) -> _Steps:
    first = {(record.namespace, record.key): record for record in reversed(records)}
    items = dict(zip(first, (yield _gets(first)), strict=True))
    absent = [record for location, record in first.items() if _is_to_put(record, items[location])]
    if absent:
        yield [_put(record, ttl=ttl) for record in absent]
        locations = [(record.namespace, record.key) for record in absent]
        items |= dict(zip(locations, (yield _gets(locations)), strict=True))
    written = {id(record) for record in absent}
    problems = [
        _problem(record, items[record.namespace, record.key], written=id(record) in written)
        for record in records
    ]
    return Placed(
        present=tuple(problem is None for problem in problems),
        problems=tuple(problem for problem in problems if problem is not None),
    )


def _gets(places: Iterable[tuple[tuple[str, ...], str]]) -> list[Op]:
    return [GetOp(namespace=namespace, key=key) for namespace, key in places]


def _put(record: MemoryRecord, *, ttl: float | None) -> Op:
    return PutOp(
        namespace=record.namespace,
        key=record.key,
        value=record.to_value(),
        index=["content"] if record.value is None else None,
        ttl=ttl,
    )


def _is_to_put(record: MemoryRecord, item: Item | None) -> bool:
    """Whether it is missing; what a writer put under a key of its own replaces what is there."""
    return item is None or (record.value is not None and item.value != record.value)


def _default_ttl(store: BaseStore) -> float | None:
    """Minutes to live of what is put without saying so; `put` would fill this in, `batch` not."""
    config = store.ttl_config if store.supports_ttl else None
    return (config or {}).get("default_ttl")


def _problem(record: MemoryRecord, item: Item | None, *, written: bool) -> str | None:
    """Why the record does not count as stored; `None` when it does."""
    where = f"key {record.key!r} in namespace {record.namespace!r}"
    if item is None:
        return f"{where} is not there after it was put"
    value: Mapping[str, Any] = item.value
    if record.value is not None:
        return None if value == record.value else f"{where} came back changed"
    text = value.get("content")
    if not isinstance(text, str) or same_text_form(text) != same_text_form(record.text):
        return f"{where} holds another text, {text!r}; delete or move that item, then run again"
    if written and value != record.to_value() and owner_of(value) == record.provenance.candidate_id:
        return f"{where} came back changed"
    return None


def owner_of(value: Mapping[str, Any]) -> str | None:
    """The candidate that an item of the store says it came from."""
    provenance = value.get("memguard")
    return provenance.get("candidate_id") if isinstance(provenance, Mapping) else None


def _failed(error: Exception) -> StoreError:
    return StoreError(
        f"the memory store failed: {type(error).__name__}: {error}; what was to be stored is in "
        "the receipt log and is stored by the next `recover`",
        code=ErrorCode.STORE_FAILED,
    )
