"""Pieces kept in the memory of the process, for a graph that is given no other place."""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence

from memguard.schema.units import Pieces


class InMemoryPieces:
    """The most recently used pieces; safe to share between threads and event loops."""

    def __init__(self, *, most: int = 10_000) -> None:
        """Keep the pieces of at most so many memories."""
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Pieces] = OrderedDict()

    async def aget(self, keys: Sequence[str]) -> Sequence[Pieces | None]:
        """What is kept, one entry per key."""
        with self._lock:
            for key in keys:
                if key in self._kept:
                    self._kept.move_to_end(key)
            return [self._kept.get(key) for key in keys]

    async def aput(self, entries: Mapping[str, Pieces]) -> None:
        """Keep pieces; the ones unused for longest go first."""
        with self._lock:
            self._kept.update(entries)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
