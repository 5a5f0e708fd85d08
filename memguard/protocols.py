"""Ports: what memguard asks of things it does not own."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from memguard.schema.base import Namespace
from memguard.schema.memory import CandidateMemory


@runtime_checkable
class CountsRecords(Protocol):
    """A store that can say how many records one namespace holds."""

    async def acount(self, namespace: Namespace) -> int:
        """Records in exactly this namespace."""
        ...


class ReadLog(Protocol):
    """What a writer has read already, so that an interrupted run asks no model twice.

    A turn key names a turn within its conversation and namespace; a digest names the writer's
    prompt, model and settings. The same turn under another digest counts as not read.
    """

    async def aread_turns(self, turn_keys: Sequence[str], *, digest: str) -> frozenset[str]:
        """Those of the turns that were read under this digest."""
        ...

    async def arecord(
        self,
        turn_keys: Sequence[str],
        *,
        digest: str,
        candidates: Sequence[CandidateMemory],
        sources: str,
    ) -> None:
        """Keep durably that these turns were read together, and what came out."""
        ...
