"""Which collections a store has: one catalogue, and a fixed number of shards.

```text
memguard          the catalogue: one row per namespace; its metadata is the store's stamp
memguard-00 ...   the shards: a namespace's items live in the one its name hashes to
```

A shard takes many namespaces because a collection is dear: 2.9 MB and four open files while it is
in use, so that 10,000 of them, one per namespace, would need 29 GB; and every write scans the log
rows that other collections have not yet merged into their index.
"""

import contextlib
import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from chromadb.api.models.Collection import Collection
from chromadb.errors import NotFoundError

from memguard import compat
from memguard.errors import ErrorCode, StoreConfigurationError
from memguard.schema.base import Namespace
from memguard.stores.chroma.connection import Connection
from memguard.stores.chroma.namespaces import encode_namespace

FORMAT = 1
"""Of the rows; a store of another format is refused."""
METRIC: Literal["cosine"] = "cosine"

_STAMP_FORMAT = "memguard_format"
_STAMP_EMBEDDER = "memguard_embedder"
_STAMP_DIMS = "memguard_dims"
_STAMP_SHARDS = "memguard_shards"
_NO_EMBEDDER = ""


@dataclass(frozen=True, kw_only=True)
class Stamp:
    """What a store was made with; kept in the catalogue's metadata from the first write on."""

    embedder: str | None
    """Name of the embedder; `None` for a store without an index."""
    dims: int
    """Numbers in a vector."""
    shards: int
    """How many collections the items are spread over."""


class Collections:
    """The collections of one store.

    Args:
        connection: An open Chroma.
        name: The catalogue's name, and the stem of the shards' names.
    """

    def __init__(self, connection: Connection, *, name: str) -> None:
        self._connection = connection
        self._name = name
        self._lock = threading.Lock()
        self._known: dict[str, Collection] = {}
        self.stamp: Stamp | None = None

    @property
    def catalogue(self) -> Collection | None:
        """The catalogue, once something was written."""
        return self._find(self._name)

    def attach(self) -> None:
        """Read what exists and check it; writes nothing.

        Raises:
            StoreConfigurationError: If a collection measures another distance, or is not ours.
        """
        found = self._connection.call(self._connection.client.list_collections)
        ours = {each.name: each for each in found if self._is_ours(each.name)}
        for each in ours.values():
            _check_metric(each)
        self._known.update(ours)
        if self._name in ours:
            self.stamp = _read_stamp(ours[self._name])

    def establish(self, stamp: Stamp) -> Stamp:
        """Make the catalogue with a stamp; the one that is there already wins."""
        with self._lock:
            if self.stamp is None:
                made = self._make(self._name, metadata=_write_stamp(stamp))
                self.stamp = _read_stamp(made)
            return self.stamp

    def shard(self, index: int, *, create: bool = False) -> Collection | None:
        """One shard; `None` if nothing was ever written there."""
        name = f"{self._name}-{index:02d}"
        found = self._find(name)
        if found is None and create:
            with self._lock:
                return self._make(name, metadata=None)
        return found

    def shards(self) -> list[tuple[int, Collection]]:
        """Every shard that exists."""
        if self._connection.is_shared:
            self.attach()
        count = self.stamp.shards if self.stamp else 0
        numbered = ((index, self._known.get(f"{self._name}-{index:02d}")) for index in range(count))
        return [(index, shard) for index, shard in numbered if shard is not None]

    def shard_of(self, namespace: Namespace) -> int:
        """The shard of a namespace; the same in every process."""
        count = self.stamp.shards if self.stamp else 1
        digest = hashlib.sha256(encode_namespace(namespace).encode()).digest()
        return int.from_bytes(digest[:8], "big") % count

    def _find(self, name: str) -> Collection | None:
        found = self._known.get(name)
        if found is None and self._connection.is_shared:
            found = self._look(name)
        return found

    def _look(self, name: str) -> Collection | None:
        """Ask the server: another client may have made the collection since."""
        with contextlib.suppress(NotFoundError):
            found = self._connection.call(
                self._connection.client.get_collection, name, embedding_function=None
            )
            _check_metric(found)
            self._known[name] = found
            if name == self._name:
                self.stamp = _read_stamp(found)
            return found
        return None

    def _make(self, name: str, *, metadata: Mapping[str, Any] | None) -> Collection:
        made = self._connection.call(
            self._connection.client.get_or_create_collection,
            name=name,
            metadata=metadata,
            embedding_function=None,
            configuration={"hnsw": {"space": METRIC, **INDEX_SETTINGS}},
        )
        _check_metric(made)
        self._known[name] = made
        return made

    def _is_ours(self, name: str) -> bool:
        stem, _, number = name.rpartition("-")
        return name == self._name or (stem == self._name and number.isdecimal())


INDEX_SETTINGS: dict[str, int] = {"sync_threshold": 50, "batch_size": 50}
"""How many writes a collection collects before its index is saved.

Chroma scans the log of all unsaved writes, of every collection, at each write. At 64 shards of
1,500 rows one upsert took 64 ms with the default of 1,000 and 39 ms with 200.
"""


def _check_metric(collection: Collection) -> None:
    distance = compat.distance_of_collection(collection)
    if distance != METRIC:
        msg = (
            f"The collection {collection.name!r} measures {distance!r} and memguard ranks by "
            f"{METRIC!r}; Chroma cannot change it. Pass another `collection=` or another path"
        )
        raise StoreConfigurationError(msg, code=ErrorCode.STORE_METRIC)


def _write_stamp(stamp: Stamp) -> dict[str, Any]:
    return {
        _STAMP_FORMAT: FORMAT,
        _STAMP_EMBEDDER: stamp.embedder or _NO_EMBEDDER,
        _STAMP_DIMS: stamp.dims,
        _STAMP_SHARDS: stamp.shards,
    }


def _read_stamp(catalogue: Collection) -> Stamp:
    metadata = catalogue.metadata or {}
    if metadata.get(_STAMP_FORMAT) != FORMAT:
        msg = (
            f"The collection {catalogue.name!r} is no memguard store of format {FORMAT}: its "
            f"metadata is {dict(metadata)!r}. Pass another `collection=` or another path"
        )
        raise StoreConfigurationError(msg, code=ErrorCode.STORE_EMBEDDER)
    return Stamp(
        embedder=str(metadata[_STAMP_EMBEDDER]) or None,
        dims=int(cast("int", metadata[_STAMP_DIMS])),
        shards=int(cast("int", metadata[_STAMP_SHARDS])),
    )
