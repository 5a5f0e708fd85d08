"""A cache of the items that were used last, and keys for texts."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class RecentItems(Generic[K, V]):
    """The items that were used last; safe in any thread and any event loop.

    Nothing waits here: two callers who miss the same key at once both compute its value.

    Args:
        size: The largest number of items; 0 caches nothing.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._items: OrderedDict[K, V] = OrderedDict()

    def get(self, keys: Iterable[K]) -> dict[K, V]:
        """The cached items of these keys."""
        with self._lock:
            items = {key: self._items[key] for key in keys if key in self._items}
            for key in items:
                self._items.move_to_end(key)
            return items

    def put(self, items: Mapping[K, V]) -> None:
        """Cache items; the ones that were used longest ago are dropped."""
        with self._lock:
            for key, value in items.items():
                self._items[key] = value
                self._items.move_to_end(key)
            while len(self._items) > self._size:
                self._items.popitem(last=False)


def text_key(text: str) -> bytes:
    """A digest of a text, so that a long text costs no more memory than a short one."""
    # `surrogatepass`: a text from a model may have an unpaired surrogate.
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
