"""Protocols: what memguard expects of objects that it does not implement itself."""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from memguard.schema.base import Namespace
from memguard.schema.read import Adjudication, Decomposition, ReadCase
from memguard.schema.units import Pieces, Scheme, Unit


# Checked at run time: any LangGraph store is accepted, and few can count.
@runtime_checkable
class CountsRecords(Protocol):
    """A store that can count the records of a namespace."""

    async def acount(self, namespace: Namespace) -> int:
        """The number of records in exactly this namespace."""
        ...


class Fingerprinted(Protocol):
    """What reports and caches need to know of an object that processes memories."""

    @property
    def name(self) -> str:
        """The name in reports: of a model, or `local`."""
        ...

    @property
    def fingerprint(self) -> str:
        """Identifies everything that can change its results: model, prompt version, rules."""
        ...


class Adjudicator(Fingerprinted, Protocol):
    """Describes the situation of a query and the attributes of units; it decides nothing itself."""

    async def adjudicate(
        self, case: ReadCase, *, units: Sequence[Unit], scheme: Scheme, seconds: float
    ) -> Adjudication:
        """Judge the situation, and then every unit.

        Failures are part of the result, as `Inconclusive` and flags; a unit without a row counts
        as not judged.

        Args:
            case: The query with its dialogue and evidence.
            units: All units to judge, in one call, so that conflicts between them are visible.
            scheme: The attributes to judge.
            seconds: The time limit, infinite for none; units that are not judged by then are left
                out.
        """
        ...


class Decomposer(Fingerprinted, Protocol):
    """Decomposes memories into typed pieces. It knows no query, so its results can be cached."""

    async def decompose(self, texts: Sequence[str], *, seconds: float) -> Decomposition:
        """Decompose each text into pieces that cover it and add no word of content.

        Args:
            texts: The memories.
            seconds: The time limit; texts that are not decomposed by then are inconclusive.
        """
        ...


class DecompositionCache(Protocol):
    """Stores pieces by key; `memguard.local.pieces.pieces_key` computes the key.

    The key is a digest of the memory's text and of the decomposer's fingerprint, so that a new
    prompt version never finds the pieces of an old one.
    """

    async def aget(self, keys: Sequence[str]) -> Sequence[Pieces | None]:
        """The stored pieces, one entry per key in that order; `None` for an unknown key."""
        ...

    async def aput(self, entries: Mapping[str, Pieces]) -> None:
        """Store pieces; an existing entry under a key need not be replaced."""
        ...
