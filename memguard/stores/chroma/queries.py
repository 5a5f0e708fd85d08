"""The vectors of the queries asked last, so that a repeated one is not embedded again.

A read searches twice: for its own query, and for safety constraints by one text that never changes.
With an embedder behind a network that second search cost a request per read.
"""

import hashlib
import threading
from collections import OrderedDict

MOST_QUERIES = 64
"""How many are kept; 1,536 numbers each make about 3 MB."""


class QueryVectors:
    """Vectors by the text they are of, those used last; safe in any thread and any event loop.

    Only what an embedder gave is kept, never that it failed, and nothing waits here: two who miss
    at once both ask.

    Args:
        size: How many to keep.
    """

    def __init__(self, *, size: int = MOST_QUERIES) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._vectors: OrderedDict[bytes, list[float]] = OrderedDict()

    def get(self, text: str) -> list[float] | None:
        """The vector of a text, if it is kept; not to be changed."""
        key = _key(text)
        with self._lock:
            found = self._vectors.get(key)
            if found is not None:
                self._vectors.move_to_end(key)
            return found

    def keep(self, text: str, vector: list[float]) -> list[float]:
        """Keep the vector of a text, and give it back; the one used longest ago makes room."""
        key = _key(text)
        with self._lock:
            self._vectors[key] = vector
            self._vectors.move_to_end(key)
            while len(self._vectors) > self._size:
                self._vectors.popitem(last=False)
        return vector


def _key(text: str) -> bytes:
    """By digest: a long text costs no more to keep than a short one."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
