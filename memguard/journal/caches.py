"""Results of models that the journal keeps, so that the same text is not sent to a model twice.

`ExtractionLog` holds the candidates that a writer extracted from a chunk of a conversation. A run
that was interrupted continues from it, and of a conversation that has grown only the new turns are
read. `DecompositionLog` holds the units of memories. Both are looked up by a digest that covers
model, prompt and settings, so a changed model or prompt starts anew.
"""

import hashlib
import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime

from memguard.journal.events import to_json, utc_text
from memguard.journal.journal import Journal
from memguard.schema.base import Frozen
from memguard.schema.memory import CandidateMemory
from memguard.schema.units import Pieces


class LoggedExtraction(Frozen):
    """The candidates that a writer extracted from one chunk of a conversation."""

    conversation_key: str
    """The conversation, for a reader of the log; look-ups use the turns."""
    writer_digest: str
    """Digest of the writer's model, prompt and settings."""
    turn_keys: tuple[str, ...]
    """The turns read as new, in order; see `memguard.methods.writer.rules.turn_keys`."""
    candidates: tuple[CandidateMemory, ...] = ()
    """The candidates, in order, without those that were forgotten since."""
    run_id: str = ""
    """The run that read it."""


class ExtractionLog:
    """The log of extractions."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def record(self, extraction: LoggedExtraction) -> LoggedExtraction:
        """Log that a chunk was read.

        Returns:
            The extraction in the log: the earlier one if the same writer has read the same turns
            of this conversation before.
        """
        return self._journal.write(_record, extraction, at=self._journal.now())

    async def arecord(self, extraction: LoggedExtraction) -> LoggedExtraction:
        """See `record`."""
        return await self._journal.awrite(_record, extraction, at=self._journal.now())

    def of_turns(
        self, turn_keys: Sequence[str], *, writer_digest: str
    ) -> tuple[LoggedExtraction, ...]:
        """The extractions of this writer from any of these turns, in the order they were logged."""
        return self._journal.read(_of_turns, turn_keys, writer_digest)

    async def aof_turns(
        self, turn_keys: Sequence[str], *, writer_digest: str
    ) -> tuple[LoggedExtraction, ...]:
        """See `of_turns`."""
        return await self._journal.aread(_of_turns, turn_keys, writer_digest)


def _record(
    db: sqlite3.Connection, extraction: LoggedExtraction, *, at: datetime
) -> LoggedExtraction:
    # A digest, because a chunk may have hundreds of turns and the column is part of an index.
    chunk = hashlib.sha256(to_json(extraction.turn_keys).encode()).hexdigest()[:32]
    key = (extraction.conversation_key, extraction.writer_digest, chunk)
    row = db.execute(
        "SELECT seq FROM extractions "
        "WHERE conversation_key = ? AND writer_digest = ? AND chunk_key = ?",
        key,
    ).fetchone()
    if row is not None:
        return _load(db, row[0])
    seq = db.execute(
        "INSERT INTO extractions (conversation_key, writer_digest, chunk_key, at, run_id) "
        "VALUES (?, ?, ?, ?, ?)",
        (*key, utc_text(at), extraction.run_id),
    ).lastrowid
    db.executemany(
        "INSERT INTO reads (extraction, turn_key) VALUES (?, ?)",
        [(seq, turn_key) for turn_key in extraction.turn_keys],
    )
    db.executemany(
        "INSERT INTO extracted (extraction, candidate_id, body) VALUES (?, ?, ?)",
        [(seq, candidate.id, candidate.model_dump_json()) for candidate in extraction.candidates],
    )
    return extraction


def _of_turns(
    db: sqlite3.Connection, turn_keys: Sequence[str], writer_digest: str
) -> tuple[LoggedExtraction, ...]:
    rows = db.execute(
        """SELECT DISTINCT extractions.seq FROM reads
        JOIN extractions ON extractions.seq = reads.extraction
        WHERE reads.turn_key IN (SELECT value FROM json_each(?)) AND writer_digest = ?
        ORDER BY extractions.seq""",
        (to_json(list(turn_keys)), writer_digest),
    )
    return tuple(_load(db, seq) for (seq,) in rows.fetchall())


def _load(db: sqlite3.Connection, seq: int) -> LoggedExtraction:
    conversation, writer, run_id = db.execute(
        "SELECT conversation_key, writer_digest, run_id FROM extractions WHERE seq = ?", (seq,)
    ).fetchone()
    turns = db.execute("SELECT turn_key FROM reads WHERE extraction = ? ORDER BY seq", (seq,))
    # Forgotten candidates are missing here. Their turns stay, so that they are not read again.
    candidates = db.execute("SELECT body FROM extracted WHERE extraction = ? ORDER BY seq", (seq,))
    return LoggedExtraction(
        conversation_key=conversation,
        writer_digest=writer,
        turn_keys=tuple(row[0] for row in turns),
        candidates=tuple(CandidateMemory.model_validate_json(row[0]) for row in candidates),
        run_id=run_id,
    )


_OWNERS: ContextVar[Mapping[str, str] | None] = ContextVar(
    "memguard_decomposition_owners", default=None
)


@contextmanager
def owned_by(candidates: Mapping[str, str]) -> Generator[None]:
    """Note the candidates whose decompositions are put within the block.

    Forgetting a candidate then erases its decomposition, too.

    Args:
        candidates: Candidate id by key. The entry of another key stays until `clear`.
    """
    # A context variable, since the caller of the cache, a decomposer, knows texts only.
    token = _OWNERS.set(candidates)
    try:
        yield
    finally:
        _OWNERS.reset(token)


class DecompositionLog:
    """A `DecompositionCache` in the journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def get(self, keys: Sequence[str]) -> tuple[Pieces | None, ...]:
        """The units of each key, in the order of the keys; `None` for a key without an entry."""
        return self._journal.read(_get, tuple(keys))

    async def aget(self, keys: Sequence[str]) -> tuple[Pieces | None, ...]:
        """See `get`."""
        return await self._journal.aread(_get, tuple(keys))

    def put(self, entries: Mapping[str, Pieces]) -> None:
        """Add entries; a key that has an entry keeps it.

        Raises:
            ReceiptError: If the log failed.
        """
        if entries:
            # `_OWNERS` is read here: the journal's thread does not have the caller's context.
            owners = _OWNERS.get() or {}
            self._journal.write(_put, dict(entries), owners, at=self._journal.now())

    async def aput(self, entries: Mapping[str, Pieces]) -> None:
        """See `put`."""
        if entries:
            owners = _OWNERS.get() or {}
            await self._journal.awrite(_put, dict(entries), owners, at=self._journal.now())

    def clear(self) -> int:
        """Delete all entries; returns their number."""
        return self._journal.write(lambda db: db.execute("DELETE FROM decompositions").rowcount)


def _get(db: sqlite3.Connection, keys: tuple[str, ...]) -> tuple[Pieces | None, ...]:
    rows = db.execute(
        "SELECT key, body FROM decompositions WHERE key IN (SELECT value FROM json_each(?))",
        (to_json(keys),),
    )
    pieces_by_key = {key: Pieces.model_validate_json(body) for key, body in rows}
    # SQLite returns the rows in any order, and none for a missing key.
    return tuple(pieces_by_key.get(key) for key in keys)


def _put(
    db: sqlite3.Connection,
    entries: Mapping[str, Pieces],
    owners: Mapping[str, str],
    *,
    at: datetime,
) -> None:
    # Not INSERT OR IGNORE: the trigger against replacement would abort instead.
    db.executemany(
        "INSERT INTO decompositions (key, candidate_id, at, body) SELECT ?, ?, ?, ? "
        "WHERE NOT EXISTS (SELECT 1 FROM decompositions WHERE key = ?)",
        [
            (key, owners.get(key, ""), utc_text(at), pieces.model_dump_json(), key)
            for key, pieces in entries.items()
        ],
    )
