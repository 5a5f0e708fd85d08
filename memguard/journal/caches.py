"""What the writer has read: no chunk is given twice to the same writer.

A run that was interrupted after a model answered finds the answer here, and a conversation that
grew is read on from where the writer stopped. The writer's digest covers model, prompt and
settings: another writer reads anew.
"""

import functools
import hashlib
import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime

from memguard.journal.events import moment, to_json
from memguard.journal.journal import Journal
from memguard.schema.base import Frozen
from memguard.schema.memory import CandidateMemory
from memguard.schema.units import Pieces

_MAX_VARIABLES = 500
"""Turns asked for in one statement; SQLite bears 999 variables at least."""


class Extraction(Frozen):
    """One chunk that the writer read, and the candidates it drew from it."""

    conversation_key: str
    """The conversation, for a reader; what is looked up is its turns."""
    writer_digest: str
    """Of the writer's model, prompt and settings."""
    turn_keys: tuple[str, ...]
    """The turns read as new, in order; see `memguard.methods.writer.rules.turn_keys`."""
    candidates: tuple[CandidateMemory, ...] = ()
    """What was drawn, in order; without those forgotten since."""
    run_id: str = ""
    """The run that read it."""


class ExtractionLog:
    """What was read, by conversation and writer."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def record(self, extraction: Extraction) -> Extraction:
        """Log that a chunk was read.

        Returns:
            The extraction in the log: the earlier one when the same writer read the same turns of
            this conversation before.
        """
        return self._journal.write(
            functools.partial(_record, extraction=extraction, at=self._journal.now())
        )

    async def arecord(self, extraction: Extraction) -> Extraction:
        """See `record`."""
        return await self._journal.awrite(
            functools.partial(_record, extraction=extraction, at=self._journal.now())
        )

    def of_turns(self, turn_keys: Sequence[str], *, writer_digest: str) -> tuple[Extraction, ...]:
        """All that this writer drew from any of these turns, in the order it was read."""
        return self._journal.read(lambda db: _of_turns(db, turn_keys, writer=writer_digest))

    async def aof_turns(
        self, turn_keys: Sequence[str], *, writer_digest: str
    ) -> tuple[Extraction, ...]:
        """See `of_turns`."""
        return await self._journal.aread(lambda db: _of_turns(db, turn_keys, writer=writer_digest))


def _record(db: sqlite3.Connection, *, extraction: Extraction, at: datetime) -> Extraction:
    chunk = _digest(*extraction.turn_keys)
    earlier = _find(db, extraction.conversation_key, extraction.writer_digest, chunk=chunk)
    if earlier is not None:
        return earlier
    seq = db.execute(
        "INSERT INTO extractions (conversation_key, writer_digest, chunk_key, at, run_id) "
        "VALUES (?, ?, ?, ?, ?)",
        (
            extraction.conversation_key,
            extraction.writer_digest,
            chunk,
            moment(at),
            extraction.run_id,
        ),
    ).lastrowid
    db.executemany(
        "INSERT INTO reads (extraction, turn_key) VALUES (?, ?)",
        [(seq, key) for key in extraction.turn_keys],
    )
    db.executemany(
        "INSERT INTO extracted (extraction, candidate_id, body) VALUES (?, ?, ?)",
        [(seq, candidate.id, candidate.model_dump_json()) for candidate in extraction.candidates],
    )
    return extraction


def _find(
    db: sqlite3.Connection, conversation: str, writer: str, *, chunk: str
) -> Extraction | None:
    row = db.execute(
        "SELECT seq FROM extractions "
        "WHERE conversation_key = ? AND writer_digest = ? AND chunk_key = ?",
        (conversation, writer, chunk),
    ).fetchone()
    return None if row is None else _load(db, row[0])


def _of_turns(
    db: sqlite3.Connection, turn_keys: Sequence[str], *, writer: str
) -> tuple[Extraction, ...]:
    sequence_numbers: set[int] = set()
    for start in range(0, len(turn_keys), _MAX_VARIABLES):
        keys = turn_keys[start : start + _MAX_VARIABLES]
        marks = ", ".join("?" * len(keys))
        rows = db.execute(
            f"""SELECT DISTINCT extractions.seq FROM reads  -- only marks are put in
            JOIN extractions ON extractions.seq = reads.extraction
            WHERE reads.turn_key IN ({marks}) AND writer_digest = ?""",  # noqa: S608
            (*keys, writer),
        )
        sequence_numbers.update(row[0] for row in rows)
    return tuple(_load(db, seq) for seq in sorted(sequence_numbers))


def _load(db: sqlite3.Connection, seq: int) -> Extraction:
    conversation, writer, run_id = db.execute(
        "SELECT conversation_key, writer_digest, run_id FROM extractions WHERE seq = ?", (seq,)
    ).fetchone()
    turns = db.execute("SELECT turn_key FROM reads WHERE extraction = ? ORDER BY seq", (seq,))
    drawn = db.execute("SELECT body FROM extracted WHERE extraction = ? ORDER BY seq", (seq,))
    return Extraction(
        conversation_key=conversation,
        writer_digest=writer,
        turn_keys=tuple(row[0] for row in turns),
        candidates=tuple(CandidateMemory.model_validate_json(row[0]) for row in drawn),
        run_id=run_id,
    )


def _digest(*parts: str) -> str:
    return hashlib.sha256(to_json(parts).encode()).hexdigest()[:32]


_OWNERS: ContextVar[Mapping[str, str] | None] = ContextVar(
    "memguard_decomposition_owners", default=None
)


@contextmanager
def owned_by(candidates: Mapping[str, str]) -> Generator[None]:
    """Note, with what is kept inside the block, whose text it was cut from.

    Args:
        candidates: Candidate id by key; a key without one stays until it is dropped by hand.
    """
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
        """What is kept, one entry per key, in that order."""
        return self._journal.read(functools.partial(_get, keys=tuple(keys)))

    async def aget(self, keys: Sequence[str]) -> tuple[Pieces | None, ...]:
        """See `get`."""
        return await self._journal.aread(functools.partial(_get, keys=tuple(keys)))

    def put(self, entries: Mapping[str, Pieces]) -> None:
        """Keep pieces; what is there already under a key stays.

        Raises:
            ReceiptError: If the log failed.
        """
        if entries:
            self._journal.write(self._putting(entries))

    async def aput(self, entries: Mapping[str, Pieces]) -> None:
        """See `put`."""
        if entries:
            await self._journal.awrite(self._putting(entries))

    def clear(self) -> int:
        """Drop everything that is kept; returns how many entries."""
        return self._journal.write(_clear)

    async def aclear(self) -> int:
        """See `clear`."""
        return await self._journal.awrite(_clear)

    def _putting(self, entries: Mapping[str, Pieces]) -> "functools.partial[None]":
        # The context is the caller's; the journal's thread has none of it.
        owners = _OWNERS.get() or {}
        return functools.partial(_put, entries=dict(entries), owners=owners, at=self._journal.now())


def _get(db: sqlite3.Connection, *, keys: tuple[str, ...]) -> tuple[Pieces | None, ...]:
    rows = db.execute(
        "SELECT key, body FROM decompositions WHERE key IN (SELECT value FROM json_each(?))",
        (to_json(keys),),
    )
    pieces_by_key = {key: Pieces.model_validate_json(body) for key, body in rows}
    return tuple(pieces_by_key.get(key) for key in keys)


def _put(
    db: sqlite3.Connection,
    *,
    entries: Mapping[str, Pieces],
    owners: Mapping[str, str],
    at: datetime,
) -> None:
    db.executemany(
        "INSERT INTO decompositions (key, candidate_id, at, body) SELECT ?, ?, ?, ? "
        "WHERE NOT EXISTS (SELECT 1 FROM decompositions WHERE key = ?)",
        [
            (key, owners.get(key, ""), moment(at), pieces.model_dump_json(), key)
            for key, pieces in entries.items()
        ],
    )


def _clear(db: sqlite3.Connection) -> int:
    return db.execute("DELETE FROM decompositions").rowcount
