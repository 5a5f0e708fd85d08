"""The units of memories: kept ones where there are any, new ones for the rest."""

from collections.abc import Sequence
from dataclasses import dataclass

from memguard.policy.pieces import pieces_key
from memguard.protocols import Decomposer, DecompositionCache
from memguard.schema.ledger import Decomposition
from memguard.schema.read import RecalledMemory
from memguard.schema.units import Pieces


@dataclass(frozen=True, kw_only=True)
class Cut:
    """The pieces of memories."""

    pieces: dict[str, Pieces]
    """By memory id; a memory that could not be cut is missing."""
    decomposition: Decomposition | None = None
    """What was asked for; `None` when everything was kept."""
    cached: int = 0
    """Memories whose pieces were kept."""
    failed: int = 0
    """Memories that could not be cut."""


async def cut(
    memories: Sequence[RecalledMemory],
    *,
    decomposer: Decomposer,
    cache: DecompositionCache,
    seconds: float,
) -> Cut:
    """Find or make the pieces of each memory, and keep the new ones.

    A failure is not kept: the next read tries again.
    """
    keys = {
        memory.id: pieces_key(memory.text, fingerprint=decomposer.fingerprint)
        for memory in memories
    }
    kept = await cache.aget(list(keys.values()))
    pieces = {
        memory.id: found for memory, found in zip(memories, kept, strict=True) if found is not None
    }
    cached = len(pieces)
    missing = [memory for memory in memories if memory.id not in pieces]
    if not missing:
        return Cut(pieces=pieces, cached=cached)
    made = await decomposer.decompose([memory.text for memory in missing], seconds=seconds)
    new = {
        memory.id: found
        for memory, found in zip(missing, made.pieces, strict=True)
        if isinstance(found, Pieces)
    }
    await cache.aput({keys[memory_id]: found for memory_id, found in new.items()})
    return Cut(
        pieces={**pieces, **new},
        decomposition=made,
        cached=cached,
        failed=len(missing) - len(new),
    )
