"""Brings the memory store in line with the log, on a person's request.

`repair` completes what was interrupted, and then stores again what the receipts say is in the store
and is not there: memories, and what became of them. What cannot be restored is marked as missing,
so that no receipt claims it. Items that were deleted past memguard come back, too: delete with
`delete_memory`, which is logged.

A database file that is damaged is set aside and never changed. `salvage_journal` copies the rows of
a damaged log that can be read.
"""

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from langgraph.store.base import BaseStore

from memguard.journal.audit import audit, missing_marks
from memguard.journal.events import EventKind, add_event, events_of, to_json
from memguard.journal.fulfilment import repeat_changes
from memguard.journal.journal import Journal
from memguard.journal.receipts import RECEIPTS, record_of
from memguard.journal.recovery import RecoveryResult, recover
from memguard.journal.storing import default_ttl, store_records
from memguard.journal.tables import connect
from memguard.schema.receipt import Receipt

ACTOR = "memguard doctor"
_BATCH = 100
_EXPIRED = "its time to live had passed"
_NO_VALUE = "the log has no copy of its value, which JSON cannot represent"
_TABLES = (
    "receipts",
    "events",
    "extractions",
    "reads",
    "extracted",
    "read_receipts",
    "read_places",
    "read_memories",
    "decompositions",
    "forgettings",
    "erasures",
)
"""In an order in which a row comes after the rows that it needs."""


_Event = tuple[Receipt, EventKind, str]
"""An event to log about a receipt, with its body."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RepairResult:
    """The result of a repair."""

    recovery: RecoveryResult
    """What had been interrupted."""
    restored: tuple[str, ...]
    """Receipts whose memory was stored again."""
    marked: tuple[str, ...]
    """Receipts whose change of another memory was made again."""
    missing: tuple[str, ...]
    """Receipts whose memory could not be restored, and which are marked as missing."""
    problems: tuple[str, ...]
    """Why the store did not take some of them, as messages for a person."""

    @property
    def line(self) -> str:
        """What was done, in one line."""
        done = (
            f"{len(self.restored)} memories restored from the receipts, {len(self.missing)} marked "
            "as missing"
        )
        marked = f"{len(self.marked)} changes of memories made again" if self.marked else ""
        return "; ".join(filter(None, (self.recovery.line, done, marked, *self.problems)))


async def repair(journal: Journal, store: BaseStore, *, actor: str = ACTOR) -> RepairResult:
    """Complete what was interrupted, and restore the memories that the store has lost.

    Raises:
        MemguardError: If the store or the log cannot be used.
    """
    recovery = await recover(journal, store, actor=actor)
    restored: list[str] = []
    missing: list[str] = []
    problems = list(recovery.problems)
    lost = (await audit(journal, store)).without_record
    for start in range(0, len(lost), _BATCH):
        ids = lost[start : start + _BATCH]
        receipts = [await journal.aread(RECEIPTS.get, receipt_id) for receipt_id in ids]
        reasons = [
            await journal.aread(_why_not, receipt, ttl=default_ttl(store), now=journal.now())
            for receipt in receipts
        ]
        gone: list[_Event] = [
            (receipt, "missing", to_json({"reason": reason}))
            for receipt, reason in zip(receipts, reasons, strict=True)
            if reason
        ]
        restorable = [
            receipt for receipt, reason in zip(receipts, reasons, strict=True) if not reason
        ]
        refused = await store_records([record_of(receipt) for receipt in restorable], store=store)
        back: list[_Event] = [
            (receipt, "restored", "{}")
            for receipt, problem in zip(restorable, refused, strict=True)
            if problem is None
        ]
        await journal.awrite(_log, [*gone, *back], actor=actor, at=journal.now())
        restored += [receipt.id for receipt, _, _ in back]
        missing += [receipt.id for receipt, _, _ in gone]
        problems += [problem for problem in refused if problem is not None]
    # Last: a memory that was restored has the state in which it was stored first.
    marks = await missing_marks(journal, store)
    if marks:
        await repeat_changes(journal, store, [mark.change for mark in marks])
    return RepairResult(
        recovery=recovery,
        restored=tuple(restored),
        marked=tuple(mark.receipt_id for mark in marks),
        missing=tuple(missing),
        problems=tuple(problems),
    )


def _why_not(db: sqlite3.Connection, receipt: Receipt, *, ttl: float | None, now: datetime) -> str:
    """Why a memory is not to be restored; empty if it is."""
    if receipt.effect == "caller" and receipt.value is None:
        return _NO_VALUE
    stored = [
        event
        for event in events_of(db, receipt.id)
        if event.kind in {"stored", "released", "restored"}
    ]
    minutes = stored[-1].body.get("ttl", ttl) if stored else ttl
    # A read may have prolonged its life, but then it would not have left the store before.
    if isinstance(minutes, int | float) and stored[-1].at + timedelta(minutes=minutes) < now:
        return _EXPIRED
    return ""


def _log(
    db: sqlite3.Connection,
    events: Sequence[_Event],
    *,
    actor: str,
    at: datetime,
) -> None:
    for receipt, kind, body in events:
        add_event(db, kind, receipt.id, receipt.candidate.id, actor=actor, at=at, body=body)


# -- damaged files ----------------------------------------------------------------------------


def find_damage(path: Path) -> str:
    """What is wrong with a SQLite file, in one line; empty if it is sound or does not exist."""
    if not path.exists():
        return ""
    try:
        with contextlib.closing(_read_only(path)) as db:
            result = str(db.execute("PRAGMA quick_check(1)").fetchone()[0])
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if result == "ok" else " ".join(result.split())


def set_aside(paths: Sequence[Path], *, at: datetime) -> Path:
    """Move files and folders into a new folder next to them, and return it."""
    folder = paths[0].parent / f"damaged-{at:%Y%m%dT%H%M%S}"
    folder.mkdir(mode=0o700, exist_ok=True)
    for path in paths:
        if path.exists():
            path.rename(folder / path.name)
    return folder


def salvage_journal(damaged: Path, path: Path, *, now: datetime) -> tuple[int, int]:
    """Copy the rows that can be read into a new log; returns how many were copied, and lost."""
    copied = lost = 0
    with (
        contextlib.closing(_read_only(damaged)) as old,
        contextlib.closing(connect(path, now=now)) as new,
    ):
        new.execute("BEGIN IMMEDIATE")
        for table in _TABLES:
            for row in _rows(old, table):
                # `None` cannot be read; a row that is refused needs another one that was lost.
                if row is not None and _insert(new, table, row):
                    copied += 1
                else:
                    lost += 1
        new.execute("COMMIT")
    return copied, lost


def _rows(db: sqlite3.Connection, table: str) -> Iterator[tuple[Any, ...] | None]:
    """The rows of a table one by one, so that a damaged page costs the rows on it alone."""
    try:
        (last,) = db.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
    except (sqlite3.DatabaseError, TypeError):
        return  # the table was empty, or nothing of it can be found
    for seq in range(1, last + 1):
        try:
            row = db.execute(f"SELECT * FROM {table} WHERE seq = ?", (seq,)).fetchone()  # noqa: S608 - constants
        except sqlite3.DatabaseError:
            yield None
        else:
            if row is not None:
                yield row


def _insert(db: sqlite3.Connection, table: str, row: tuple[Any, ...]) -> bool:
    slots = ", ".join("?" * len(row))
    try:
        db.execute(f"INSERT INTO {table} VALUES ({slots})", row)  # noqa: S608 - constants
    except sqlite3.DatabaseError:
        return False
    return True


def _read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
