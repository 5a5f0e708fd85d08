"""The tables of a journal file, and how a file is opened.

Triggers in the file itself make the log append-only, so no program that opens it can change a
decision by accident. Only while a forgetting is in progress may a row be deleted, or its document
be rewritten, and only if the table `erasures` names the row. `INSERT OR REPLACE` would delete
without firing a delete trigger, so every table also refuses an insert that would replace a row.
"""

import sqlite3
import time
from datetime import datetime
from pathlib import Path

from memguard.errors import ErrorCode, StoreConfigurationError
from memguard.private_files import create_file, create_folder

VERSION = 3
"""Version of the layout below; a file with a higher version is refused.

Version 2 added the receipts of reads and the units of memories. Version 3 added the receipts of
forgettings, and the rules by which a row may be erased.
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

_FORGET_TABLES = """
CREATE TABLE forgettings (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    actor TEXT NOT NULL,
    reason TEXT NOT NULL,
    at TEXT NOT NULL,
    state TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX forgettings_by_state ON forgettings (state);
CREATE TABLE erasures (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    forgetting TEXT NOT NULL,
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    row INTEGER NOT NULL
);
CREATE INDEX erasures_by_row ON erasures (row, source);
"""
"""What version 3 added. An erasure names a row of the table `source`, by its `seq`."""

_NAMED = """EXISTS (SELECT 1 FROM erasures JOIN forgettings ON forgettings.id = erasures.forgetting
    WHERE erasures.row = {row} AND erasures.source = '{source}' AND erasures.kind = '{kind}'
    AND forgettings.state <> 'done')"""
"""Whether a forgetting that is in progress names a row."""


def _named(source: str, *, kind: str = "delete", row: str = "old.seq") -> str:
    return _NAMED.format(row=row, source=source, kind=kind)


_DELETABLE = {
    "receipts": _named("receipts"),
    "events": f"old.kind <> 'forgotten' AND {_named('events')}",
    "extractions": _named("extractions"),
    "reads": _named("extractions", row="old.extraction"),
    "extracted": _named("extractions", row="old.extraction"),
    "read_receipts": _named("read_receipts"),
    "read_places": "NOT EXISTS (SELECT 1 FROM read_receipts WHERE id = old.read_id)",
    "read_memories": "NOT EXISTS (SELECT 1 FROM read_receipts WHERE id = old.read_id)",
    # A decomposition can be repeated, so it may be deleted at any time.
    "decompositions": "1",
    "forgettings": "0",
    "erasures": "0",
}
"""The condition under which a row may be deleted, for each table."""

_REWRITABLE = {
    "receipts": _named("receipts", kind="rewrite"),
    "events": _named("events", kind="rewrite"),
    "forgettings": "old.state <> 'done'",
}
"""The condition under which the document of a row may be rewritten; in other tables never."""

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
    "forgettings": "id = new.id",
    "erasures": "0",
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


_ERASURE_RULES = """
CREATE TRIGGER erasures_of_a_forgetting BEFORE INSERT ON erasures
WHEN NOT EXISTS (SELECT 1 FROM forgettings WHERE id = new.forgetting)
BEGIN SELECT RAISE(ABORT, 'the forgetting of this erasure is not in the log'); END;
"""

_FIXED = {
    "receipts": (
        *("seq", "id", "candidate_id", "policy_digest", "namespace", "record_key"),
        *("outcome", "reason", "at", "run_id"),
    ),
    "events": ("seq", "receipt_id", "candidate_id", "kind", "actor", "at"),
    "forgettings": ("seq", "id", "actor", "reason", "at"),
}
"""The columns that stay as they are when a document is rewritten."""


def _append_only(table: str) -> str:
    changed = " OR ".join(f"new.{name} IS NOT old.{name}" for name in _FIXED.get(table, ()))
    rule = f"WHEN NOT ({_REWRITABLE[table]}) OR {changed}" if table in _REWRITABLE else ""
    return f"""
CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} {rule}
BEGIN SELECT RAISE(ABORT, '{table} are append-only'); END;
CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} WHEN NOT ({_DELETABLE[table]})
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
    # `executescript` would commit first, and a crash would leave half of the layout.
    for statement in _statements(_layout_after(version)):
        db.execute(statement)
    db.execute("INSERT INTO journal VALUES (?, ?)", (VERSION, now.isoformat()))


def _layout_after(version: int) -> str:
    """The statements that bring a file of this version to the present one; 0 for a new file."""
    layouts = (_TABLES + _EVENT_RULES, _READ_TABLES, _FORGET_TABLES + _ERASURE_RULES)
    # Of version 1 the first five tables have rules, of version 2 nine.
    guarded = tuple(_DELETABLE)[: (0, 5, 9)[version]]
    rules = ("no_update", "no_delete", "no_replace")
    outdated = [f"DROP TRIGGER {table}_{rule};\n" for table in guarded for rule in rules]
    digests = _DIGESTS if version > 0 else ""
    return "".join((*layouts[version:], *outdated, digests, *map(_append_only, _DELETABLE)))


_DIGESTS = """
UPDATE events SET candidate_id = 'forgotten-' || seq WHERE kind = 'forgotten';
"""
"""Removes what earlier versions kept: the id of a candidate is a digest of its text."""


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
