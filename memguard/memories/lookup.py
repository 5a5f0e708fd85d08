"""Reads the memories of one namespace, whoever stored them, and finds one by its id."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from langgraph.store.base import BaseStore, GetOp, Item, SearchItem
from pydantic import ValidationError

from memguard.errors import ErrorCode, InvalidInputError, MemguardError, StoreError
from memguard.journal.current_keys import current_keys
from memguard.journal.storing import call_or_advise
from memguard.memories.values import MemoryEntry, MemoryPage
from memguard.normal_form import comparison_form
from memguard.paging import search_exactly
from memguard.read.recall import text_of
from memguard.schema.base import Namespace, clean_text
from memguard.schema.memory import Provenance, Turn, as_moment, lifecycle_of
from memguard.schema.receipt import Receipt

_ALL = 2**31
"""More memories than a store holds: no limit."""

_MAX_NAMED = 5
"""Ids that an error lists where the beginning of an id is not unique."""

_ADVICE = "nothing was changed; try again"


def origin_of(value: Mapping[str, Any]) -> Provenance | None:
    """The origin of an item; `None` if memguard did not store it, or not in its own form."""
    block = value.get("memguard")
    if not isinstance(block, Mapping):
        return None
    fields = cast("Mapping[str, Any]", block)
    try:
        return Provenance(**{k: v for k, v in fields.items() if k in Provenance.model_fields})
    except ValidationError:
        return None


def entry_of(item: Item) -> MemoryEntry:
    """An item of the store as a memory; of another program's item little but the text is known."""
    score = item.score if isinstance(item, SearchItem) else None
    life = lifecycle_of(item.value)
    origin = origin_of(item.value)
    details: dict[str, Any] = {}
    if origin is not None:
        details = {
            "said_at": origin.said_at,
            "said_by": origin.said_by,
            "speaker": origin.speaker,
            "subject": origin.subject,
            "receipt_id": origin.receipt_id,
        }
    return MemoryEntry(
        id=item.key,
        namespace=tuple(item.namespace),
        text=text_of(item.value),
        state="current" if life.is_current else life.ended_as or "superseded",
        stored_at=item.created_at,
        event_at=life.event_at,
        superseded_by=life.superseded_by,
        valid_until=life.valid_until,
        reason=life.reason,
        detail_of=life.detail_of,
        conflicts_with=life.conflicts_with,
        confirmed=len(life.confirmed_by),
        confirmed_at=life.confirmed_at,
        # Stores may compute slightly more than 1 for the same text.
        score=None if score is None else min(1.0, max(0.0, score)),
        **details,
    )


async def all_items(store: BaseStore, namespace: Namespace) -> list[SearchItem]:
    """All items of exactly this namespace.

    Raises:
        StoreError: If the store failed.
    """
    try:
        return await search_exactly(store, namespace, limit=_ALL)
    except MemguardError:
        raise
    except Exception as error:  # a third-party store may raise anything
        raise _store_failed(error) from error


async def nearest(
    store: BaseStore, namespace: Namespace, *, query: str, limit: int, with_ended: bool
) -> tuple[MemoryEntry, ...]:
    """The memories nearest to a query; the store's own order if it has no index."""
    wanted = limit
    while True:
        try:
            items = await search_exactly(store, namespace, limit=wanted, query=query)
        except MemguardError:
            raise
        except Exception as error:  # a third-party store may raise anything
            raise _store_failed(error) from error
        entries = [entry for entry in map(entry_of, items) if with_ended or entry.is_current]
        # Those that are no longer current are left out after the search, so more are searched for.
        if len(entries) >= limit or len(items) < wanted:
            return tuple(entries[:limit])
        wanted *= 4


def _store_failed(error: Exception) -> StoreError:
    msg = f"the memory store failed: {type(error).__name__}: {error}; {_ADVICE}"
    return StoreError(msg, code=ErrorCode.STORE_FAILED)


async def find_item(store: BaseStore, namespace: Namespace, memory_id: str) -> Item:
    """The item with this key, or the only one whose key begins with it.

    Raises:
        InvalidInputError: If no memory of the namespace matches, or more than one.
    """
    wanted = clean_text(memory_id).strip()
    if wanted:
        ops = [GetOp(namespace, wanted, refresh_ttl=False)]
        (item,) = await call_or_advise(store, ops, advice=_ADVICE)
        if item is not None:
            return item
    items = await all_items(store, namespace)
    key = unique_id(wanted, [item.key for item in items], namespace=namespace)
    return next(item for item in items if item.key == key)


async def find_text(store: BaseStore, namespace: Namespace, text: str) -> tuple[str, Item | None]:
    """The key of a text, with the current memory that has the text, or `None` if none has it.

    Raises:
        InvalidInputError: If another program put another text under the key of this one.
        StoreError: If the store failed.
    """
    choice = (await current_keys(store, namespace, [text]))[text]
    if choice.is_taken:
        msg = (
            f"the item {choice.key!r} in {' / '.join(namespace)} has another text under the key of "
            "this one: delete or move that item first"
        )
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    if not choice.is_stored:
        return choice.key, None
    (item,) = await call_or_advise(
        store, [GetOp(namespace, choice.key, refresh_ttl=False)], advice=_ADVICE
    )
    return choice.key, item


def unique_id(prefix: str, ids: Collection[str], *, namespace: Namespace) -> str:
    """The only one of the ids that is this one or begins with it.

    Raises:
        InvalidInputError: If none matches, or more than one.
    """
    if prefix in ids:
        return prefix
    where = " / ".join(namespace)
    # An empty beginning would match a single memory of a namespace by accident.
    matches = sorted(name for name in ids if prefix and name.startswith(prefix))
    if len(matches) == 1:
        return matches[0]
    if matches:
        names = ", ".join(matches[:_MAX_NAMED])
        more = " and more" if len(matches) > _MAX_NAMED else ""
        msg = f"{prefix!r} matches {names}{more} in {where}: pass more characters of the id"
    else:
        msg = (
            f"no memory in {where} has the id {prefix!r}: list the memories for their ids, with "
            "`include_superseded=True` or `--all` also those that are no longer current"
        )
    raise InvalidInputError(msg, code=ErrorCode.MEMORY_NOT_FOUND)


# -- pages: pure ------------------------------------------------------------------------------


def page_of(
    entries: Iterable[MemoryEntry],
    *,
    limit: int,
    include_superseded: bool = False,
    contains: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    before: str | None = None,
) -> MemoryPage:
    """One page of memories, newest first; the arguments are those of `Memories.list`.

    Raises:
        InvalidInputError: If `before` is not the end of an earlier page.
    """
    every = list(entries)
    since, until = as_moment(since), as_moment(until)
    wanted = None if contains is None else _searchable(contains)
    matches = [
        entry
        for entry in every
        if (wanted is None or wanted in _searchable(entry.text))
        and (since is None or entry.at >= since)
        and (until is None or entry.at < until)
    ]
    visible = [entry for entry in matches if include_superseded or entry.is_current]
    visible.sort(key=_position, reverse=True)
    rest = visible
    if before is not None:
        end = _read_cursor(before)
        rest = [entry for entry in visible if _position(entry) < end]
    chosen = rest[:limit]
    current = {entry.id for entry in every if entry.is_current}
    return MemoryPage(
        memories=tuple(with_open_conflicts(entry, current=current) for entry in chosen),
        before=_cursor(chosen[-1]) if len(rest) > limit else None,
        total=len(visible),
        hidden=len(matches) - len(visible),
    )


def with_open_conflicts(entry: MemoryEntry, *, current: Collection[str]) -> MemoryEntry:
    """The memory without conflicts that are over, because the other one is no longer current."""
    is_open = [key for key in entry.conflicts_with if key in current and entry.is_current]
    if len(is_open) == len(entry.conflicts_with):
        return entry
    return entry.model_copy(update={"conflicts_with": tuple(is_open)})


def _searchable(text: str) -> str:
    return " ".join(comparison_form(text).casefold().split())


def _position(entry: MemoryEntry) -> tuple[float, str]:
    # Of memories of the same moment, which one turn often has, the key gives a fixed order.
    return entry.at.timestamp(), entry.id


def _cursor(entry: MemoryEntry) -> str:
    at, key = _position(entry)
    return f"{at!r}~{key}"


def _read_cursor(text: str) -> tuple[float, str]:
    at, separator, key = text.partition("~")
    try:
        if separator:
            return float(at), key
    except ValueError:
        pass
    msg = f"`before` is {text!r}, which no page ended with: pass the `before` of the last page"
    raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)


def details_of(entries: Sequence[MemoryEntry], key: str) -> tuple[MemoryEntry, ...]:
    """The current memories that are a detail of the one with this key."""
    return tuple(entry for entry in entries if entry.detail_of == key and entry.is_current)


def source_turns(receipt: Receipt) -> tuple[Turn, ...]:
    """The turns that a candidate cites, as its receipt quotes them; all turns if it cites none."""
    turns = tuple(dict.fromkeys(turn for report in receipt.reports for turn in report.context))
    cited = tuple(turn for turn in turns if turn.id in receipt.candidate.turn_ids)
    return cited or turns
