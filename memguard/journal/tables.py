"""The tables of a journal file, and how a file is opened.

Triggers in the file itself make the log append-only, so no program that opens it can change a
decision by accident. A row may be deleted only after a `forgotten` event names it; that event has
no text of the memory. `INSERT OR REPLACE` would delete without firing a delete trigger, so every
table also refuses an insert that would replace a row.
"""

import sqlite3
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from memguard.errors import ErrorCode, StoreConfigurationError
from memguard.private_files import create_file, create_folder

VERSION = 2
"""Version of the layout below; a file with a higher version is refused.

Version 2 added the receipts of reads and the units of memories.
"""

BUSY_SECONDS = 30.0
"""How long a write waits for a write of another process, in seconds."""

_TABLES = """
CREATE TABLE journal (version INTEGER NOT NULL, created_at TEXT NOT NULL);
CREATE TABLE receipts (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    candidate_id TEXT NOT NULL,
    policy_digest TEXT NOT NULL,
    namespace TEXT NOT NULL,
    record_key TEXT NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT NOT NULL,
    at TEXT NOT NULL,
    run_id TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (candidate_id, policy_digest)
);
CREATE INDEX receipts_by_record ON receipts (namespace, record_key);
CREATE INDEX receipts_by_run ON receipts (run_id);
CREATE INDEX receipts_by_outcome ON receipts (outcome);
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    receipt_id TEXT NOT NULL,
    candidate_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    actor TEXT NOT NULL,
    at TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (receipt_id, candidate_id, kind)
);
CREATE INDEX events_by_kind ON events (kind, receipt_id);
CREATE TABLE extractions (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation_key TEXT NOT NULL,
    writer_digest TEXT NOT NULL,
    chunk_key TEXT NOT NULL,
    at TEXT NOT NULL,
    run_id TEXT NOT NULL,
    UNIQUE (conversation_key, writer_digest, chunk_key)
);
CREATE TABLE reads (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    extraction INTEGER NOT NULL REFERENCES extractions (seq),
    turn_key TEXT NOT NULL
);
CREATE INDEX reads_by_turn ON reads (turn_key, extraction);
CREATE INDEX reads_by_extraction ON reads (extraction, turn_key);
CREATE TABLE extracted (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    extraction INTEGER NOT NULL REFERENCES extractions (seq),
    candidate_id TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX extracted_by_extraction ON extracted (extraction);
CREATE INDEX extracted_by_candidate ON extracted (candidate_id);
"""

_READ_TABLES = """
CREATE TABLE read_receipts (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    at TEXT NOT NULL,
    run_id TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX read_receipts_by_run ON read_receipts (run_id);
CREATE TABLE read_places (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    read_id TEXT NOT NULL,
    namespace TEXT NOT NULL
);
CREATE INDEX read_places_by_namespace ON read_places (namespace, read_id);
CREATE TABLE read_memories (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    read_id TEXT NOT NULL,
    candidate_id TEXT NOT NULL
);
CREATE INDEX read_memories_by_candidate ON read_memories (candidate_id, read_id);
CREATE INDEX read_memories_by_read ON read_memories (read_id);
CREATE TABLE decompositions (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    candidate_id TEXT NOT NULL,
    at TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX decompositions_by_candidate ON decompositions (candidate_id);
"""
"""What version 2 added."""

_MARKS = """
CREATE INDEX IF NOT EXISTS events_by_marked_location ON events (candidate_id, seq)
WHERE kind = 'marking'
"""
"""Created in files of every version: it finds the decisions that changed a memory."""

_ERASED = "EXISTS (SELECT 1 FROM events AS erasure WHERE erasure.kind = 'forgotten' AND"

_DELETABLE = {
    "receipts": f"{_ERASED} erasure.receipt_id = old.id)",
    "events": f"old.kind <> 'forgotten' AND {_ERASED} erasure.receipt_id = old.receipt_id)",
    "extractions": "0",
    "reads": "0",
    "extracted": f"{_ERASED} erasure.candidate_id = old.candidate_id)",
}
"""The condition under which a row may be deleted, for each table of version 1."""

_READ_DELETABLE = {
    "read_receipts": f"""{_ERASED} erasure.candidate_id IN
        (SELECT candidate_id FROM read_memories WHERE read_id = old.id))""",  # noqa: S608 - constants
    "read_places": "NOT EXISTS (SELECT 1 FROM read_receipts WHERE id = old.read_id)",
    "read_memories": "NOT EXISTS (SELECT 1 FROM read_receipts WHERE id = old.read_id)",
    "decompositions": "1",
}
"""The same for version 2. A decomposition can be repeated, so it may be deleted at any time."""

_REPLACES = {
    "receipts": """id = new.id
        OR (candidate_id = new.candidate_id AND policy_digest = new.policy_digest)""",
    "events": "0",
    "extractions": """conversation_key = new.conversation_key
        AND writer_digest = new.writer_digest AND chunk_key = new.chunk_key""",
    "reads": "0",
    "extracted": "0",
    "read_receipts": "id = new.id",
    "read_places": "0",
    "read_memories": "0",
    "decompositions": "key = new.key",
}
"""The existing row that an insert would replace, for each table."""

_EVENT_RULES = """
CREATE TRIGGER events_once BEFORE INSERT ON events
WHEN EXISTS (SELECT 1 FROM events WHERE receipt_id = new.receipt_id
    AND candidate_id = new.candidate_id AND kind = new.kind)
BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER events_of_a_receipt BEFORE INSERT ON events
WHEN new.kind <> 'forgotten' AND NOT EXISTS (SELECT 1 FROM receipts WHERE id = new.receipt_id)
BEGIN SELECT RAISE(ABORT, 'the receipt of this event is not in the log'); END;
"""
"""An event that is in the log already is ignored, so that interrupted work can be repeated."""


def _append_only(table: str, *, deletable: str) -> str:
    return f"""
CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table}
BEGIN SELECT RAISE(ABORT, '{table} are append-only'); END;
CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} WHEN NOT ({deletable})
BEGIN SELECT RAISE(ABORT, '{table} are append-only; use forget'); END;
CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table}
WHEN EXISTS (SELECT 1 FROM {table} WHERE seq = new.seq)
    OR EXISTS (SELECT 1 FROM {table} WHERE {_REPLACES[table]})
BEGIN SELECT RAISE(ABORT, '{table} are append-only; this row is in the log'); END;
"""  # noqa: S608 - every word of the statement is from the tables above


def connect(path: Path | None, *, now: datetime) -> sqlite3.Connection:
    """Open a journal file, which is created if it does not exist; `None` opens one in memory.

    Raises:
        StoreConfigurationError: If the file cannot be written, is not a journal, or was written
            by a newer version.
    """
    try:
        if path is not None:
            create_folder(path.parent)
            # Before SQLite creates it; the files of its write-ahead log get the same mode.
            create_file(path)
        db = sqlite3.connect(
            ":memory:" if path is None else path,
            timeout=BUSY_SECONDS,
            # Transactions are explicit: `sqlite3` would begin them too late, at the first INSERT.
            isolation_level=None,
            # The journal's thread uses it, but the finalizer closes it from any thread.
            check_same_thread=False,
        )
    except (OSError, sqlite3.Error) as error:
        raise _unusable(path, str(error)) from error
    try:
        _prepare(db, path, now=now)
    except sqlite3.Error as error:
        db.close()
        raise _unusable(path, str(error)) from error
    except StoreConfigurationError:
        db.close()
        raise
    return db


def _prepare(db: sqlite3.Connection, path: Path | None, *, now: datetime) -> None:
    db.execute("PRAGMA foreign_keys = ON")
    # With WAL the default, NORMAL, may lose the last commits when the power fails.
    db.execute("PRAGMA synchronous = FULL")
    # Erased text is overwritten in the file, not only unlinked.
    db.execute("PRAGMA secure_delete = ON")
    _use_wal(db)
    db.execute("BEGIN IMMEDIATE")
    try:
        _create_or_check(db, path, now=now)
        db.execute(_MARKS)
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _use_wal(db: sqlite3.Connection) -> None:
    """Switch to write-ahead logging, with which readers never wait for a writer.

    A file system without shared memory keeps the slower mode, which is as durable.
    """
    # SQLite does not call its busy handler for this switch when several processes open a new file
    # at once, so waiting is done here:
    # https://www.sqlite.org/wal.html#sometimes_queries_return_sqlite_busy_in_wal_mode
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


def _create_or_check(db: sqlite3.Connection, path: Path | None, *, now: datetime) -> None:
    tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if tables and not {"journal", "receipts", "events"} <= tables:
        raise _unusable(path, "it is a database of another program")
    version = db.execute("SELECT max(version) FROM journal").fetchone()[0] if tables else 0
    if version is None or version > VERSION:
        raise _unusable(
            path, f"its layout is version {version!r}, this memguard reads up to {VERSION}; upgrade"
        )
    if version == VERSION:
        return
    layouts = (
        _TABLES + _EVENT_RULES + _guarded(_DELETABLE),
        _READ_TABLES + _guarded(_READ_DELETABLE),
    )
    # `executescript` would commit first, and a crash would leave half of the layout.
    for statement in _statements("".join(layouts[version:VERSION])):
        db.execute(statement)
    db.execute("INSERT INTO journal VALUES (?, ?)", (VERSION, now.isoformat()))


def _guarded(tables: Mapping[str, str]) -> str:
    return "".join(_append_only(table, deletable=rule) for table, rule in tables.items())


def _statements(script: str) -> list[str]:
    # Not `split(";")`: a trigger contains semicolons.
    statements: list[str] = []
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            statements.append(pending)
            pending = ""
    return statements


def _unusable(path: Path | None, reason: str) -> StoreConfigurationError:
    where = ":memory:" if path is None else str(path)
    return StoreConfigurationError(
        f"cannot use the receipt log {where!r}: {reason}; give the path of a journal that this "
        "process may write, or of a file that does not exist yet",
        code=ErrorCode.STORE_PATH,
    )
