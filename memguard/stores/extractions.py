"""What the writer has read: no chunk is given twice to the same writer.

A run that was interrupted after a model answered finds the answer here, and a conversation that
grew is read on from where the writer stopped. The writer's digest covers model, prompt and
settings: another writer reads anew.
"""

import functools
import hashlib
import sqlite3
from collections.abc import Sequence
from datetime import datetime

from memguard.schema.base import Frozen
from memguard.schema.memory import CandidateMemory, Conversation, Turn
from memguard.stores.events import moment, to_json
from memguard.stores.journal import Journal


class Extraction(Frozen):
    """One chunk that the writer read, and the candidates it drew from it."""

    conversation_key: str
    """The conversation; see `conversation_key`."""
    writer_digest: str
    """Of the writer's model, prompt and settings."""
    turn_keys: tuple[str, ...]
    """The turns read as new, in order; see `turn_key`."""
    candidates: tuple[CandidateMemory, ...] = ()
    """What was drawn, in order; without those forgotten since."""
    run_id: str = ""
    """The run that read it."""


def turn_key(turn: Turn) -> str:
    """Names a turn by its id and its words: a turn that was edited is read again."""
    return _digest(turn.id, turn.role, turn.speaker, turn.content)


def conversation_key(conversation: Conversation) -> str:
    """Names a conversation: by its id, else by all its words.

    Without an id a conversation that grew is another one. That reads some turns twice, where a
    weaker name would take the "Hello" of one conversation for that of another and skip it.
    """
    if conversation.id:
        return f"id:{conversation.id}"
    return f"words:{_digest(*(turn_key(turn) for turn in conversation.turns))}"


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

    def find(
        self, conversation: str, *, writer_digest: str, turn_keys: Sequence[str]
    ) -> Extraction | None:
        """What this writer drew from exactly these turns, if it read them as one chunk.

        Args:
            conversation: The conversation's key.
            writer_digest: The writer.
            turn_keys: The turns, in order.
        """
        return self._journal.read(
            lambda db: _find(db, conversation, writer_digest, chunk=_digest(*turn_keys))
        )

    async def afind(
        self, conversation: str, *, writer_digest: str, turn_keys: Sequence[str]
    ) -> Extraction | None:
        """See `find`."""
        return await self._journal.aread(
            lambda db: _find(db, conversation, writer_digest, chunk=_digest(*turn_keys))
        )

    def list(self, conversation: str, *, writer_digest: str) -> tuple[Extraction, ...]:
        """All that this writer drew from the conversation, in the order it was read."""
        return self._journal.read(lambda db: _list(db, conversation, writer_digest))

    async def alist(self, conversation: str, *, writer_digest: str) -> tuple[Extraction, ...]:
        """See `list`."""
        return await self._journal.aread(lambda db: _list(db, conversation, writer_digest))

    def read_turns(self, conversation: str, *, writer_digest: str) -> frozenset[str]:
        """The keys of the turns that this writer has read."""
        return self._journal.read(lambda db: _read_turns(db, conversation, writer_digest))

    async def aread_turns(self, conversation: str, *, writer_digest: str) -> frozenset[str]:
        """See `read_turns`."""
        return await self._journal.aread(lambda db: _read_turns(db, conversation, writer_digest))


def _record(db: sqlite3.Connection, *, extraction: Extraction, at: datetime) -> Extraction:
    chunk = _digest(*extraction.turn_keys)
    known = _find(db, extraction.conversation_key, extraction.writer_digest, chunk=chunk)
    if known is not None:
        return known
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
        [(seq, each.id, each.model_dump_json()) for each in extraction.candidates],
    )
    return extraction


def _find(
    db: sqlite3.Connection, conversation: str, writer: str, *, chunk: str
) -> Extraction | None:
    row = db.execute(
        "SELECT seq, run_id FROM extractions "
        "WHERE conversation_key = ? AND writer_digest = ? AND chunk_key = ?",
        (conversation, writer, chunk),
    ).fetchone()
    return None if row is None else _load(db, conversation, writer, seq=row[0], run_id=row[1])


def _list(db: sqlite3.Connection, conversation: str, writer: str) -> tuple[Extraction, ...]:
    rows = db.execute(
        "SELECT seq, run_id FROM extractions "
        "WHERE conversation_key = ? AND writer_digest = ? ORDER BY seq",
        (conversation, writer),
    ).fetchall()
    return tuple(_load(db, conversation, writer, seq=seq, run_id=run_id) for seq, run_id in rows)


def _load(
    db: sqlite3.Connection, conversation: str, writer: str, *, seq: int, run_id: str
) -> Extraction:
    turns = db.execute("SELECT turn_key FROM reads WHERE extraction = ? ORDER BY seq", (seq,))
    drawn = db.execute("SELECT body FROM extracted WHERE extraction = ? ORDER BY seq", (seq,))
    return Extraction(
        conversation_key=conversation,
        writer_digest=writer,
        turn_keys=tuple(row[0] for row in turns),
        candidates=tuple(CandidateMemory.model_validate_json(row[0]) for row in drawn),
        run_id=run_id,
    )


def _read_turns(db: sqlite3.Connection, conversation: str, writer: str) -> frozenset[str]:
    rows = db.execute(
        "SELECT reads.turn_key FROM extractions JOIN reads ON reads.extraction = extractions.seq "
        "WHERE conversation_key = ? AND writer_digest = ?",
        (conversation, writer),
    )
    return frozenset(row[0] for row in rows)


def _digest(*parts: str) -> str:
    return hashlib.sha256(to_json(parts).encode()).hexdigest()[:32]
