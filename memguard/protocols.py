"""Ports: what memguard asks of things it does not own."""

from typing import Protocol, runtime_checkable

from memguard.schema.base import Namespace


@runtime_checkable
class CountsRecords(Protocol):
    """A store that can say how many records one namespace holds."""

    async def acount(self, namespace: Namespace) -> int:
        """Records in exactly this namespace."""
        ...
