"""Ports: what memguard asks of things it does not own."""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from memguard.schema.base import Namespace
from memguard.schema.ledger import Adjudication, Decomposition
from memguard.schema.read import ReadCase
from memguard.schema.units import Pieces, Scheme, Unit


@runtime_checkable
class CountsRecords(Protocol):
    """A store that can say how many records one namespace holds."""

    async def acount(self, namespace: Namespace) -> int:
        """Records in exactly this namespace."""
        ...


class Adjudicator(Protocol):
    """Gives the situation of a query, and attributes to units. Never says what to do with them."""

    @property
    def name(self) -> str:
        """Shown on reports: a model's name, or `local`."""
        ...

    @property
    def fingerprint(self) -> str:
        """Of all that can change what it finds."""
        ...

    async def adjudicate(
        self, case: ReadCase, *, units: Sequence[Unit], scheme: Scheme, seconds: float
    ) -> Adjudication:
        """Judge the situation, and then every unit.

        What fails on the way is said in the result, as `Inconclusive` and flags; a unit without a
        row counts as not judged.

        Args:
            case: The query with its dialogue and evidence.
            units: What is judged, all of it together, so that conflicts can be seen.
            scheme: Which attributes are wanted.
            seconds: How long it may take; what is not there by then is left out.
        """
        ...


class Decomposer(Protocol):
    """Cuts memories into typed pieces. Knows no query, so that its work can be kept."""

    @property
    def name(self) -> str:
        """Shown on reports: a model's name, or `local`."""
        ...

    @property
    def fingerprint(self) -> str:
        """Of all that can change its pieces: model, prompt version, rules."""
        ...

    async def decompose(self, texts: Sequence[str], *, seconds: float) -> Decomposition:
        """Cut each text into pieces that cover it and add no word of content.

        Args:
            texts: The memories.
            seconds: How long it may take; what is not there by then is inconclusive.
        """
        ...


class DecompositionCache(Protocol):
    """Keeps pieces by key; `memguard.local.pieces.pieces_key` makes the key.

    The key is a digest of the memory's text and of the decomposer's fingerprint, so that a new
    prompt version never finds what an old one cut.
    """

    async def aget(self, keys: Sequence[str]) -> Sequence[Pieces | None]:
        """What is kept, one entry per key, in that order."""
        ...

    async def aput(self, entries: Mapping[str, Pieces]) -> None:
        """Keep pieces; what is there already under a key may stay."""
        ...
