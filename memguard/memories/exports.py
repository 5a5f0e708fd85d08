"""Exports: everything of one namespace as JSON lines."""

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TypeAlias

from langgraph.store.base import BaseStore, SearchItem
from pydantic import BaseModel

from memguard.errors import ErrorCode, InvalidInputError
from memguard.journal.events import events_of
from memguard.journal.journal import Journal
from memguard.journal.receipts import RECEIPTS, ReceiptFilter
from memguard.memories.lines import (
    LOCAL_EVENTS,
    ExportedEvent,
    ExportedMemory,
    ExportedReceipt,
    ExportHeader,
)
from memguard.memories.lookup import all_items
from memguard.memories.values import ExportReport
from memguard.private_files import create_folder
from memguard.schema.base import Namespace
from memguard.schema.receipt import HIDDEN_REASONS
from memguard.version import read_version

ExportTarget: TypeAlias = str | os.PathLike[str] | IO[str]
"""A path, or a file that is open for text."""

_PAGE = 500
"""Receipts that are read from the log at a time, so that other work gets its turn."""


async def export_memories(
    target: ExportTarget, *, store: BaseStore, journal: Journal, namespace: Namespace
) -> ExportReport:
    """Write everything of a namespace; see `Memories.export`."""
    # The log first: a memory that is stored meanwhile is then without a receipt, and no receipt
    # says that a memory is stored which the file does not have.
    receipts, left_out = await _receipts(journal, namespace)
    items = await all_items(store, namespace)
    # Oldest first, as the receipts are: a person reads a file from the top.
    items.sort(key=lambda item: (item.created_at, item.key))
    header = ExportHeader(
        namespace=namespace,
        exported_at=journal.now(),
        # Reads files of the installation.
        memguard=await asyncio.to_thread(read_version),
        memories=len(items),
        receipts=len(receipts),
        left_out=left_out,
    )
    if isinstance(target, str | os.PathLike):
        path = Path(target)
        await asyncio.to_thread(_replace_file, path, header, items, receipts)
    else:
        target.writelines(_lines(header, items, receipts))
    return ExportReport(
        path=str(target) if isinstance(target, str | os.PathLike) else "",
        namespace=namespace,
        memories=len(items),
        receipts=len(receipts),
        left_out=left_out,
    )


async def _receipts(journal: Journal, namespace: Namespace) -> tuple[list[ExportedReceipt], int]:
    """The receipts of exactly this namespace, oldest first, and how many are left out."""
    receipts: list[ExportedReceipt] = []
    left_out = 0
    before: int | None = None
    while True:
        page, hidden, before = await journal.aread(_page, namespace, before=before)
        receipts += page
        left_out += hidden
        if before is None:
            return receipts[::-1], left_out


def _page(
    db: sqlite3.Connection, namespace: Namespace, *, before: int | None
) -> tuple[list[ExportedReceipt], int, int | None]:
    condition, values = ReceiptFilter(namespace=namespace).where()
    documents, following = RECEIPTS.page(db, condition, values, limit=_PAGE, before=before)
    # The condition also matches the namespaces below this one, which are other users'.
    matches = [receipt for receipt in documents if receipt.namespace == namespace]
    # Not redacted: an export has to restore what is stored. A secret in quarantine never was.
    visible = [
        receipt
        for receipt in matches
        if receipt.outcome != "quarantined" or receipt.decision.reason not in HIDDEN_REASONS
    ]
    page = [
        ExportedReceipt(
            receipt=receipt,
            events=tuple(
                ExportedEvent(
                    kind=event.kind,
                    candidate_id=event.candidate_id,
                    actor=event.actor,
                    at=event.at,
                    body=event.body,
                )
                for event in events_of(db, receipt.id)
                if event.kind not in LOCAL_EVENTS
            ),
        )
        for receipt in visible
    ]
    return page, len(matches) - len(visible), following


def _lines(
    header: ExportHeader, items: Sequence[SearchItem], receipts: Sequence[ExportedReceipt]
) -> Iterator[str]:
    yield _line(header)
    for item in items:
        # Through JSON, since a store may return tuples or dates that an import would not compare.
        yield _line(ExportedMemory(id=item.key, value=item.value, stored_at=item.created_at))
    for receipt in receipts:
        yield _line(receipt)


def _line(line: BaseModel) -> str:
    return f"{line.model_dump_json(exclude_computed_fields=True)}\n"


def _replace_file(
    path: Path,
    header: ExportHeader,
    items: Sequence[SearchItem],
    receipts: Sequence[ExportedReceipt],
) -> None:
    """Write the file aside and move it into place, so that a failure leaves no half of it."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        create_folder(path.parent)
        # With the mode from the start: a file that is made private later was readable before.
        descriptor = os.open(partial, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(_lines(header, items, receipts))
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        msg = f"cannot write the export to {str(path)!r}: {error.strerror or error}"
        raise InvalidInputError(msg, code=ErrorCode.FILE_UNREADABLE) from error
