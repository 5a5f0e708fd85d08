"""The local decomposer: memories cut into typed pieces by rules, with no language model."""

import asyncio
from collections.abc import Sequence

from memguard.local.adjudicator.patterns import NAME, PIECES_FINGERPRINT
from memguard.schema.ledger import Decomposition
from memguard.schema.units import Pieces

CUT_BY_RULES = "cut by local rules, which part sentences, reasons and joined statements only"


class LocalDecomposer:
    """Cuts by rules; no key, no network, the same pieces each time."""

    @property
    def name(self) -> str:
        """Shown on reports."""
        return NAME

    @property
    def fingerprint(self) -> str:
        """Of the rules."""
        return PIECES_FINGERPRINT

    async def decompose(self, texts: Sequence[str], *, seconds: float) -> Decomposition:
        """Cut each text, in a thread; a short one takes a fraction of a millisecond."""
        del seconds
        pieces = await asyncio.to_thread(_cut_all, tuple(texts))
        return Decomposition(pieces=pieces, notes=(CUT_BY_RULES,) if texts else ())


def _cut_all(texts: Sequence[str]) -> tuple[Pieces, ...]:
    # Late: the rules share a package with numpy.
    from memguard.local.adjudicator.decompose import cut  # noqa: PLC0415

    return tuple(cut(text) for text in texts)
