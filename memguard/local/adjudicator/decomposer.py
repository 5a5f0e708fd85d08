"""The local decomposer: splits memories into typed pieces by rules, without a language model."""

import asyncio
from collections.abc import Sequence

from memguard.local.adjudicator.patterns import NAME, PIECES_FINGERPRINT
from memguard.schema.ledger import Decomposition
from memguard.schema.units import Pieces

SPLIT_BY_RULES = (
    "split by local rules, which separate only sentences, reasons and joined statements"
)


class LocalDecomposer:
    """Splits by rules; no key, no network, deterministic."""

    name: str = NAME
    """Shown on reports."""
    fingerprint: str = PIECES_FINGERPRINT
    """Version of the rules."""

    async def decompose(self, texts: Sequence[str], *, seconds: float) -> Decomposition:
        """Split each text, in a thread; a short one takes a fraction of a millisecond."""
        del seconds
        pieces = await asyncio.to_thread(_split_all, tuple(texts))
        return Decomposition(pieces=pieces, notes=(SPLIT_BY_RULES,) if texts else ())


def _split_all(texts: Sequence[str]) -> tuple[Pieces, ...]:
    # Imported here, because the rules share a package with numpy, which is slow to import.
    from memguard.local.adjudicator.decompose import split_memory  # noqa: PLC0415

    return tuple(split_memory(text) for text in texts)
