"""Imports: an export is checked as a whole, then logged, then stored."""

import asyncio
import json
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args

from langgraph.store.base import BaseStore, GetOp, PutOp
from pydantic import ValidationError

from memguard.errors import ErrorCode, InvalidInputError, ReceiptError, StoreError
from memguard.journal.events import add_event, events_of, state_of
from memguard.journal.journal import Journal
from memguard.journal.marks import Comparison
from memguard.journal.receipts import RECEIPTS, record_decision
from memguard.journal.storing import call_or_advise, default_ttl
from memguard.memories.lines import (
    EXPORT_LINE,
    SCHEMA,
    ExportedMemory,
    ExportedReceipt,
    ExportHeader,
)
from memguard.memories.lookup import origin_of
from memguard.memories.values import ImportReport
from memguard.schema.base import Namespace
from memguard.schema.memory import MemoryRecord, lifecycle_of
from memguard.schema.receipt import Receipt

OnImportConflict = Literal["raise", "skip"]
"""What happens to a line of an export if something else is there under its id."""

_BATCH = 100
"""Memories that are put into the store at a time."""
_ADVICE = "the receipts are logged; import the file again"
_END = 2**62
"""A position in the log after all others."""
_MAX_NAMED = 3
"""Conflicts that an error lists."""


@dataclass(frozen=True, kw_only=True)
class _Export:
    """The lines of a file, checked."""

    memories: tuple[ExportedMemory, ...]
    receipts: tuple[ExportedReceipt, ...]


async def import_memories(
    source: str | Path,
    *,
    store: BaseStore,
    journal: Journal,
    namespace: Namespace,
    actor: str,
    on_conflict: OnImportConflict,
) -> ImportReport:
    """Restore an export; see `Memories.import_`."""
    if on_conflict not in get_args(OnImportConflict):
        msg = (
            f"`on_conflict` is {on_conflict!r}: use one of {', '.join(get_args(OnImportConflict))}"
        )
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    export = await asyncio.to_thread(_read_file, Path(source), namespace)
    new_receipts, log_conflicts = await journal.aread(_compare_receipts, export.receipts)
    new_memories, store_conflicts = await _compare_memories(export.memories, store, namespace)
    conflicts = {**log_conflicts, **store_conflicts}
    if conflicts and on_conflict == "raise":
        reasons = [*conflicts.values()]
        more = f" and {len(reasons) - _MAX_NAMED} more" if len(reasons) > _MAX_NAMED else ""
        msg = (
            f"nothing was imported: {'; '.join(reasons[:_MAX_NAMED])}{more}; import into another "
            "store, or with on_conflict='skip' leave out what is in the way"
        )
        raise InvalidInputError(msg, code=ErrorCode.IMPORT_CONFLICT)
    blocked = blocked_keys(export.memories, export.receipts, conflicts=conflicts)
    to_log = [line for line in new_receipts if blocked.isdisjoint(_keys_of(line.receipt))]
    to_store = [line for line in new_memories if line.id not in blocked]
    # The log first: what the store lacks after an interruption, it can give again.
    await journal.awrite(_log_receipts, to_log, actor=actor, at=journal.now())
    await _store_memories(to_store, store, namespace)
    left_out = [f"receipt {line.receipt.id}" for line in new_receipts if line not in to_log]
    left_out += [f"memory {line.id}" for line in new_memories if line not in to_store]
    skipped = (
        *conflicts.values(),
        *(f"{name} belongs to a chain with something in the way" for name in left_out),
    )
    total = len(export.memories) + len(export.receipts)
    return ImportReport(
        namespace=namespace,
        memories=len(to_store),
        receipts=len(to_log),
        unchanged=total - len(to_log) - len(to_store) - len(skipped),
        skipped=skipped,
    )


def blocked_keys(
    memories: Sequence[ExportedMemory],
    receipts: Sequence[ExportedReceipt],
    *,
    conflicts: Collection[str],
) -> frozenset[str]:
    """The keys of the memories that belong to a chain with something in the way.

    Memories that replaced one another are imported together or not at all: half a chain would say
    that a memory was replaced by one that is not there. Pure.

    Args:
        memories: All memories of the file.
        receipts: All receipts of the file.
        conflicts: Ids of memories and receipts that cannot be imported.
    """
    links = [_keys_of(line.receipt) for line in receipts]
    links += [{line.id, lifecycle_of(line.value).superseded_by} - {""} for line in memories]
    blocked = {line.id for line in memories if line.id in conflicts}
    for line in receipts:
        if line.receipt.id in conflicts:
            blocked |= _keys_of(line.receipt)
    size = -1
    # A pass adds the neighbours of the last one; chains are short.
    while len(blocked) != size:
        size = len(blocked)
        for keys in links:
            if not blocked.isdisjoint(keys):
                blocked |= keys
    return frozenset(blocked)


def _keys_of(receipt: Receipt) -> set[str]:
    """The keys of the memories that a receipt is about."""
    keys = {receipt.record_key, *(change.key for change in receipt.changes)}
    return keys - {""}


# -- the file ---------------------------------------------------------------------------------


def _read_file(path: Path, namespace: Namespace) -> _Export:
    """Read and check all lines.

    Raises:
        InvalidInputError: If the file or a line is wrong; the message has its number.
    """
    try:
        with path.open(encoding="utf-8") as file:
            lines = [(n, line) for n, line in enumerate(file, start=1) if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        _refuse_file(path, f"cannot be read: {reason}")
    if not lines:
        _refuse_file(path, "is empty: pass a file that `export` wrote")
    header, *rest = (_read_line(path, number, line) for number, line in lines)
    if not isinstance(header, ExportHeader):
        _refuse_file(path, "does not begin with a header: pass a file that `export` wrote")
    if header.namespace != namespace:
        _refuse_file(
            path,
            f"has the memories of {' / '.join(header.namespace)}, not of {' / '.join(namespace)}: "
            "open `Memories` with that namespace",
        )
    memories: dict[str, ExportedMemory] = {}
    receipts: dict[str, ExportedReceipt] = {}
    for (number, _), line in zip(lines[1:], rest, strict=True):
        if isinstance(line, ExportHeader):
            _refuse_line(path, number, "a second header")
        problem = (
            _problem_of_memory(line, memories, namespace)
            if isinstance(line, ExportedMemory)
            else _problem_of_receipt(line, receipts, namespace)
        )
        if problem:
            _refuse_line(path, number, problem)
        if isinstance(line, ExportedMemory):
            memories[line.id] = line
        else:
            receipts[line.receipt.id] = line
    if (len(memories), len(receipts)) != (header.memories, header.receipts):
        _refuse_file(
            path,
            f"has {len(memories)} memories and {len(receipts)} receipts, and its header says "
            f"{header.memories} and {header.receipts}: it was cut off or edited; export again",
        )
    return _Export(memories=tuple(memories.values()), receipts=tuple(receipts.values()))


def _read_line(
    path: Path, number: int, line: str
) -> ExportHeader | ExportedMemory | ExportedReceipt:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        _refuse_line(path, number, f"no JSON: {error}")
    version = fields.get("schema_version") if isinstance(fields, dict) else None
    if not isinstance(version, int):
        _refuse_line(path, number, "no `schema_version`: pass a file that `export` wrote")
    if version > SCHEMA:
        _refuse_line(path, number, f"schema version {version}, above {SCHEMA}: upgrade memguard")
    try:
        return EXPORT_LINE.validate_json(line)
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in detail["loc"])
        _refuse_line(path, number, f"{where}: {detail['msg']}")


def _problem_of_memory(
    line: ExportedMemory, earlier: dict[str, ExportedMemory], namespace: Namespace
) -> str:
    del namespace  # a memory has none of its own
    if line.id in earlier:
        return f"memory {line.id!r} is in the file twice"
    return ""


def _problem_of_receipt(
    line: ExportedReceipt, earlier: dict[str, ExportedReceipt], namespace: Namespace
) -> str:
    """Why a receipt cannot be logged; empty if it can. Nothing may reach another namespace."""
    receipt = line.receipt
    if receipt.id in earlier:
        return f"receipt {receipt.id!r} is in the file twice"
    namespaces = {receipt.namespace, receipt.candidate.namespace}
    namespaces |= {change.namespace for change in receipt.changes}
    try:
        namespaces |= {
            MemoryRecord.model_validate(event.body["record"]).namespace
            for event in line.events
            if "record" in event.body
        }
    except ValidationError as error:
        return (
            f"receipt {receipt.id!r} has a record that cannot be read: {error.errors()[0]['msg']}"
        )
    others = namespaces - {namespace}
    if others:
        return f"receipt {receipt.id!r} is of another namespace, {min(others)!r}"
    if not line.events or line.events[0].kind != "decided":
        return f"receipt {receipt.id!r} does not begin with the event `decided`"
    if any(event.kind == "forgotten" for event in line.events):
        return f"receipt {receipt.id!r} was forgotten, so it has no content to restore"
    return ""


def _refuse_file(path: Path, problem: str) -> NoReturn:
    msg = f"the export {str(path)!r} {problem}"
    raise InvalidInputError(msg, code=ErrorCode.FILE_UNREADABLE)


def _refuse_line(path: Path, number: int, problem: str) -> NoReturn:
    _refuse_file(path, f"has a wrong line {number}: {problem}")


# -- the log ----------------------------------------------------------------------------------


def _compare_receipts(
    db: sqlite3.Connection, lines: Sequence[ExportedReceipt]
) -> tuple[tuple[ExportedReceipt, ...], dict[str, str]]:
    """The receipts that are not in the log with all events, and why others cannot be logged."""
    to_log: list[ExportedReceipt] = []
    conflicts: dict[str, str] = {}
    for line in lines:
        receipt = line.receipt
        events = events_of(db, receipt.id)
        kinds = {(event.kind, event.candidate_id) for event in events}
        if any(kind == "forgotten" for kind, _ in kinds):
            reason = "was forgotten here and cannot come back"
            conflicts[receipt.id] = f"receipt {receipt.id} {reason}"
        elif not events:
            if _is_decided(db, receipt):
                reason = "is of a candidate that is decided on here"
                conflicts[receipt.id] = f"receipt {receipt.id} {reason}"
            else:
                to_log.append(line)
        elif not _is_logged(db, receipt):
            conflicts[receipt.id] = f"receipt {receipt.id} is in the log with other content"
        elif not {(event.kind, event.candidate_id) for event in line.events} <= kinds:
            to_log.append(line)
    return tuple(to_log), conflicts


def _is_logged(db: sqlite3.Connection, receipt: Receipt) -> bool:
    try:
        body = receipt.model_dump_json(exclude_computed_fields=True)
        return RECEIPTS.logged(db, receipt.id, body) is not None
    except ReceiptError:
        return False


def _is_decided(db: sqlite3.Connection, receipt: Receipt) -> bool:
    row = db.execute(
        "SELECT 1 FROM receipts WHERE candidate_id = ? AND policy_digest = ?",
        (receipt.candidate.id, receipt.policy_digest),
    ).fetchone()
    return row is not None


def _log_receipts(
    db: sqlite3.Connection, lines: Sequence[ExportedReceipt], *, actor: str, at: datetime
) -> None:
    """Log receipts and events as they were, in their order; all of them, or none."""
    for line in lines:
        first = line.events[0]
        # The order of the file is that of the decisions, not that of the releases from quarantine:
        # what is settled counts as read, and is not compared again.
        compared = Comparison(position=_END)
        record_decision(db, line.receipt, actor=first.actor, at=first.at, compared=compared)
        receipt = line.receipt
        for event in line.events:
            # An event that is there already, from the decision or an earlier import, is ignored.
            add_event(
                db,
                event.kind,
                receipt.id,
                event.candidate_id,
                actor=event.actor,
                at=event.at,
                body=json.dumps(event.body, separators=(",", ":")),
            )
        if state_of(db, receipt.id) in {"stored", "released"}:
            # Who imported it, and when; the other events have their own actors and times.
            body = json.dumps({"reason": "imported"}, separators=(",", ":"))
            add_event(
                db, "restored", receipt.id, receipt.candidate.id, actor=actor, at=at, body=body
            )


# -- the store --------------------------------------------------------------------------------


async def _compare_memories(
    lines: Sequence[ExportedMemory], store: BaseStore, namespace: Namespace
) -> tuple[tuple[ExportedMemory, ...], dict[str, str]]:
    """The memories that the store does not have, and why others cannot be stored."""
    to_store: list[ExportedMemory] = []
    conflicts: dict[str, str] = {}
    for start in range(0, len(lines), _BATCH):
        batch = lines[start : start + _BATCH]
        items = await _get(batch, store, namespace)
        for line, item in zip(batch, items, strict=True):
            if item is None:
                to_store.append(line)
            elif item.value != line.value:
                reason = "is stored with other content or another state"
                conflicts[line.id] = f"memory {line.id} {reason}"
    return tuple(to_store), conflicts


async def _get(
    lines: Sequence[ExportedMemory], store: BaseStore, namespace: Namespace
) -> list[Any]:
    ops = [GetOp(namespace, line.id, refresh_ttl=False) for line in lines]
    return await call_or_advise(store, ops, advice=_ADVICE)


async def _store_memories(
    lines: Sequence[ExportedMemory], store: BaseStore, namespace: Namespace
) -> None:
    """Put the memories as they were, and read them back.

    Raises:
        StoreError: If the store failed or changed one.
    """
    ttl = default_ttl(store)
    for start in range(0, len(lines), _BATCH):
        batch = lines[start : start + _BATCH]
        puts = [
            PutOp(
                namespace,
                line.id,
                {**line.value},
                # As memguard stores its own: only the text is embedded, not its origin.
                index=["content"] if origin_of(line.value) is not None else None,
                ttl=ttl,
            )
            for line in batch
        ]
        await call_or_advise(store, puts, advice=_ADVICE)
        items = await _get(batch, store, namespace)
        for line, item in zip(batch, items, strict=True):
            if item is None or item.value != line.value:
                msg = f"memory {line.id!r} came back changed after it was stored; {_ADVICE}"
                raise StoreError(msg, code=ErrorCode.STORE_FAILED)
