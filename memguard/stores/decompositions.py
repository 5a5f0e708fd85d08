"""What memories were cut into: kept in the journal, so that a read need not ask again.

The key covers the memory's text and the decomposer's fingerprint (`memguard.policy.pieces`), so a
new prompt version finds nothing of an old one. Forgetting a candidate drops what was cut from it.
"""

import functools
import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime

from memguard.schema.units import Pieces
from memguard.stores.events import moment, to_json
from memguard.stores.journal import Journal

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
