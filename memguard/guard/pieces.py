"""The units that memories were split into, cached in the journal of the read in progress.

A method is built once, but the store, and with it the journal, is known only within a run. A
context variable carries it from the guard to the cache that the method was built with.
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
    """A `DecompositionCache` over the journal of the read; outside a read it caches nothing."""

    async def aget(self, keys: Sequence[str]) -> Sequence[Pieces | None]:
        """The cached pieces, one entry per key."""
        log = _LOG.get()
        return [None] * len(keys) if log is None else await log.aget(keys)

    async def aput(self, entries: Mapping[str, Pieces]) -> None:
        """Cache pieces."""
        log = _LOG.get()
        if log is not None:
            await log.aput(entries)


@contextmanager
def use_pieces(
    log: DecompositionLog, *, memories: Sequence[RecalledMemory], fingerprint: str
) -> Generator[None]:
    """Cache pieces in a log inside the block, under the candidates that they come from.

    Forgetting a candidate then deletes its pieces as well.

    Args:
        log: The log.
        memories: The memories that may be split.
        fingerprint: The decomposer's.
    """
    owners = {
        pieces_key(memory.text, fingerprint=fingerprint): memory.provenance.candidate_id
        for memory in memories
        if memory.provenance is not None
    }
    # A context variable rather than an argument: concurrent reads share one graph.
    token = _LOG.set(log)
    try:
        with owned_by(owners):
            yield
    finally:
        _LOG.reset(token)
