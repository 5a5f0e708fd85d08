"""What memories were cut into, kept in the journal of the read in progress.

A method is built once, and the store, and with it the journal, is known only within a run.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from memguard.journal.caches import DecompositionLog, owned_by
from memguard.policy.pieces import pieces_key
from memguard.schema.read import RecalledMemory
from memguard.schema.units import Pieces

_LOG: ContextVar[DecompositionLog | None] = ContextVar("memguard_pieces", default=None)


class JournalPieces:
    """A `DecompositionCache` over the journal of the read; outside one it keeps nothing."""

    async def aget(self, keys: Sequence[str]) -> Sequence[Pieces | None]:
        """What is kept, one entry per key."""
        log = _LOG.get()
        return [None] * len(keys) if log is None else await log.aget(keys)

    async def aput(self, entries: Mapping[str, Pieces]) -> None:
        """Keep pieces."""
        log = _LOG.get()
        if log is not None:
            await log.aput(entries)


@contextmanager
def use_pieces(
    log: DecompositionLog, *, memories: Sequence[RecalledMemory], fingerprint: str
) -> Generator[None]:
    """Keep what is cut inside the block in a log, under the candidates it was cut from.

    Args:
        log: Where it is kept.
        memories: What may be cut.
        fingerprint: Of the decomposer.
    """
    owners = {
        pieces_key(memory.text, fingerprint=fingerprint): memory.provenance.candidate_id
        for memory in memories
        if memory.provenance is not None
    }
    token = _LOG.set(log)
    try:
        with owned_by(owners):
            yield
    finally:
        _LOG.reset(token)
