"""The collections and namespaces of one store.

The items are spread over several collections, its shards. One more collection, the catalogue, lists
the namespaces that have an item, and has the settings of the store.
"""

import hashlib
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from chromadb.api.models.Collection import Collection

from memguard import compat
from memguard.chroma.connection import Connection
from memguard.chroma.rows import as_matrix, spread_vector
from memguard.chroma.values import NS, encode_namespace, is_under, namespace_of
from memguard.errors import ErrorCode, StoreConfigurationError, StoreError
from memguard.schema.base import Namespace

FORMAT = 1
"""The version of the rows; a store of another version is refused."""
METRIC: Literal["cosine"] = "cosine"
# The number of writes that a collection collects before its index is saved. At each write, Chroma
# scans the log of all unsaved writes of every collection: at 64 shards of 1,500 rows, one upsert
# took 64 ms with the default of 1,000 and 39 ms with 200.
INDEX_SETTINGS: dict[str, int] = {"sync_threshold": 50, "batch_size": 50}

_STAMP_FORMAT = "memguard_format"
_STAMP_EMBEDDER = "memguard_embedder"
_STAMP_DIMS = "memguard_dims"
_STAMP_SHARDS = "memguard_shards"

# Metadata of a row of the catalogue.
_PREFIXES = "pfx"
# Existing stores have this key.
_EXPIRING = "mortal"
# The rows are never ranked, but Chroma requires vectors.
_ROW_DIMS = 4
_ROWS_PER_CALL = 5_000

# -- collections ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Stamp:
    """The settings a store was created with, in the metadata of its catalogue."""

    embedder: str | None
    """Name of the embedder; `None` for a store without an index."""
    dims: int
    """Numbers in a vector."""
    shards: int
    """Number of collections over which the items are spread."""


class Collections:
    """The collections of one store; `name` is that of the catalogue, and begins those of shards."""

    def __init__(self, connection: Connection, *, name: str) -> None:
        self._connection = connection
        self._name = name
        self._lock = threading.Lock()
        self._opened: dict[str, Collection] = {}
        self.stamp: Stamp | None = None

    @property
    def catalogue(self) -> Collection | None:
        """The catalogue; `None` until something is written."""
        return self._find(self._name)

    def attach(self) -> None:
        """Read the existing collections and check them; writes nothing.

        Raises:
            StoreConfigurationError: If a collection has another distance, or is not memguard's.
        """
        ours = self._list()
        for collection in ours.values():
            _check_metric(collection)
        self._opened.update(ours)
        if self._name in ours:
            self.stamp = _read_stamp(ours[self._name])

    def reopen(self) -> set[int]:
        """Open the collections that are there now, and create a catalogue that is missing.

        Called when another program has deleted or replaced a collection. A shard that is missing is
        created by the next write to it.

        Returns:
            The shards whose rows may differ from what the catalogue lists.

        Raises:
            StoreConfigurationError: If a collection that has rows is not memguard's.
        """
        with self._lock:
            before, now = self._opened, self._list()
            for name in [name for name in now if name in before and self._is_misfit(now[name])]:
                # It has the name of a collection of ours, and no row that anybody could miss.
                self._connection.call(self._connection.client.delete_collection, name)
                del now[name]
            for collection in now.values():
                _check_metric(collection)
            # The stamp is replaced and never removed: writers in other threads route by it.
            if self._name in now:
                self.stamp = _read_stamp(now[self._name])
            elif self.stamp is None:
                self.stamp = _stamp_of_shards(now.values())
            self._opened = now
            if self._name not in now and self.stamp is not None:
                self._create(self._name, metadata=_stamped(self.stamp))
            shards = {self._shard_name(index): index for index in self.indexes}
            if _id_of(before.get(self._name)) != _id_of(self._opened.get(self._name)):
                return set(shards.values())
            return {
                index
                for name, index in shards.items()
                if _id_of(before.get(name)) != _id_of(now.get(name))
            }

    def establish(self, stamp: Stamp) -> Stamp:
        """Create the catalogue with a stamp, and return its stamp, which may be an older one."""
        with self._lock:
            # Checked again under the lock: two first writes may arrive together.
            if self.stamp is None:
                catalogue = self._create(self._name, metadata=_stamped(stamp))
                # Read back: another client may have created the catalogue a moment earlier.
                self.stamp = _read_stamp(catalogue)
            return self.stamp

    def shard(self, index: int, *, create: bool = False) -> Collection | None:
        """One shard; `None` if it does not exist and is not to be created."""
        name = self._shard_name(index)
        collection = self._find(name)
        if collection is None and create:
            with self._lock:
                # Each shard has the stamp, too: a catalogue that is lost is made anew from it.
                return self._create(name, metadata=_stamped(self.stamp) if self.stamp else None)
        return collection

    @property
    def has_shards(self) -> bool:
        """Whether a shard is known to exist."""
        return any(name != self._name for name in self._opened)

    @property
    def indexes(self) -> range:
        """The indexes of all shards, whether they exist or not."""
        return range(self.stamp.shards if self.stamp else 0)

    def shards(self) -> list[tuple[int, Collection]]:
        """Every shard that exists, with its index."""
        # Other clients may have created shards since the store was opened.
        if self._connection.is_shared:
            self.attach()
        names = ((index, self._shard_name(index)) for index in self.indexes)
        return [(index, self._opened[name]) for index, name in names if name in self._opened]

    def shard_of(self, namespace: Namespace) -> int:
        """The shard of a namespace; the same in every process."""
        count = self.stamp.shards if self.stamp else 1
        # Not `hash`, which differs from process to process.
        digest = hashlib.sha256(encode_namespace(namespace).encode()).digest()
        return int.from_bytes(digest[:8], "big") % count

    def _shard_name(self, index: int) -> str:
        return f"{self._name}-{index:02d}"

    def _list(self) -> dict[str, Collection]:
        existing = self._connection.call(self._connection.client.list_collections)
        return {entry.name: entry for entry in existing if self._is_ours(entry.name)}

    def _is_misfit(self, collection: Collection) -> bool:
        """Whether a collection is empty, and cannot be used because another program made it."""
        fits = compat.distance_of_collection(collection) == METRIC
        if collection.name == self._name:
            fits = fits and (collection.metadata or {}).get(_STAMP_FORMAT) == FORMAT
        return not fits and self._connection.call(collection.count) == 0

    def _find(self, name: str) -> Collection | None:
        collection = self._opened.get(name)
        if collection is not None or not self._connection.is_shared:
            return collection
        # Another client may have created it meanwhile.
        try:
            collection = self._connection.call(
                self._connection.client.get_collection, name, embedding_function=None
            )
        except StoreError as error:
            if error.code is ErrorCode.STORE_COLLECTION:
                return None
            raise
        self._add(collection)
        if name == self._name:
            self.stamp = _read_stamp(collection)
        return collection

    def _create(self, name: str, *, metadata: Mapping[str, Any] | None) -> Collection:
        client: Any = self._connection.client
        collection = self._connection.call(
            client.get_or_create_collection,
            name=name,
            metadata=metadata,
            # Vectors are always passed. Without this, Chroma would load its own embedder.
            embedding_function=None,
            configuration={"hnsw": {"space": METRIC, **INDEX_SETTINGS}},
        )
        self._add(collection)
        return collection

    def _add(self, collection: Collection) -> None:
        _check_metric(collection)
        self._opened[collection.name] = collection

    def _is_ours(self, name: str) -> bool:
        stem, _, number = name.rpartition("-")
        return name == self._name or (stem == self._name and number.isdecimal())


def _check_metric(collection: Collection) -> None:
    distance = compat.distance_of_collection(collection)
    if distance != METRIC:
        msg = (
            f"The collection {collection.name!r} measures {distance!r} and memguard ranks by "
            f"{METRIC!r}; Chroma cannot change it. Pass another `collection=` or another path"
        )
        raise StoreConfigurationError(msg, code=ErrorCode.STORE_METRIC)


def _id_of(collection: Collection | None) -> object:
    return None if collection is None else collection.id


def _stamped(stamp: Stamp) -> dict[str, Any]:
    """The metadata of a collection, which `_read_stamp` reads."""
    return {
        _STAMP_FORMAT: FORMAT,
        # Empty for a store without an index; `_read_stamp` makes it `None` again.
        _STAMP_EMBEDDER: stamp.embedder or "",
        _STAMP_DIMS: stamp.dims,
        _STAMP_SHARDS: stamp.shards,
    }


def _stamp_of_shards(collections: Iterable[Collection]) -> Stamp | None:
    """The stamp of the first shard that has one; those of earlier versions have none."""
    stamped = (c for c in collections if (c.metadata or {}).get(_STAMP_FORMAT) == FORMAT)
    return next(map(_read_stamp, stamped), None)


def _read_stamp(catalogue: Collection) -> Stamp:
    metadata = catalogue.metadata or {}
    if metadata.get(_STAMP_FORMAT) != FORMAT:
        msg = (
            f"The collection {catalogue.name!r} is not a memguard store of format {FORMAT}: its "
            f"metadata is {dict(metadata)!r}. Pass another `collection=` or another path"
        )
        raise StoreConfigurationError(msg, code=ErrorCode.STORE_EMBEDDER)
    return Stamp(
        embedder=str(metadata[_STAMP_EMBEDDER]) or None,
        dims=int(cast("int", metadata[_STAMP_DIMS])),
        shards=int(cast("int", metadata[_STAMP_SHARDS])),
    )


# -- namespaces -------------------------------------------------------------------------------


class Catalogue:
    """One row for each namespace that has an item.

    The sole writer of a path mirrors the rows in memory. On a server, every answer is read from
    there, because another client may have added a namespace a moment ago.
    """

    def __init__(self, connection: Connection, collections: Collections) -> None:
        self._connection = connection
        self._collections = collections
        self._lock = threading.Lock()
        self._expiring: dict[Namespace, bool] = {}
        """The listed namespaces, and whether an item in them may expire."""
        # Listed namespaces by all their prefixes: a scan of 10,000 costs more than a search.
        self._below: dict[Namespace, set[Namespace]] = {}

    def load(self) -> None:
        """Read the mirror of the sole writer anew."""
        with self._lock:
            self._expiring.clear()
            self._below.clear()
            # On a server it would be out of date at once.
            if not self._connection.is_shared:
                self._mirror(self._read(None))

    def under(self, prefix: Namespace) -> list[Namespace]:
        """Namespaces at or below a prefix, sorted."""
        if self._connection.is_shared:
            listed = self._read(prefix)
            with self._lock:
                self._mirror(listed)
            return sorted(listed)
        with self._lock:
            return sorted(self._below.get(prefix, ()))

    def expiring(self, namespaces: Iterable[Namespace]) -> set[Namespace]:
        """The namespaces in which an item may expire, of those that `under` has just returned."""
        with self._lock:
            # One that was removed meanwhile counts as expiring: its items are then counted.
            return {name for name in namespaces if self._expiring.get(name, True)}

    def add(self, namespaces: Mapping[Namespace, bool]) -> list[Namespace]:
        """List namespaces, with whether an item in them may expire.

        This comes before their first item is written. A listed namespace without items does no
        harm, but an item in a namespace that is not listed would never be found. Returns those that
        were not listed before; for the sole writer they are empty.
        """
        with self._lock:
            fresh = [name for name in namespaces if name not in self._expiring]
            self._write(
                {
                    name: expires
                    for name, expires in namespaces.items()
                    if name not in self._expiring or (expires and not self._expiring[name])
                }
            )
            return fresh

    def confirm(self, namespaces: Mapping[Namespace, bool]) -> None:
        """List namespaces again that another client has just removed because they were empty."""
        catalogue = self._collections.catalogue
        if not self._connection.is_shared or catalogue is None or not namespaces:
            return
        by_id = {_row_id(name): name for name in namespaces}
        page = self._connection.call(catalogue.get, ids=list(by_id), include=[])
        missing = [by_id[row_id] for row_id in sorted(set(by_id) - set(page["ids"]))]
        with self._lock:
            self._write(
                {name: namespaces[name] or self._expiring.get(name, True) for name in missing}
            )

    def remove(self, namespaces: Iterable[Namespace]) -> None:
        """Remove namespaces that have no item."""
        empty = sorted(set(namespaces))
        catalogue = self._collections.catalogue
        if catalogue is None or not empty:
            return
        with self._lock:
            # The mirror first: if Chroma fails, a row remains that does no harm, and the next put
            # writes it again.
            for name in empty:
                self._expiring.pop(name, None)
                for depth in range(len(name) + 1):
                    below = self._below.get(name[:depth], set())
                    below.discard(name)
                    if not below:
                        self._below.pop(name[:depth], None)
            self._connection.call(catalogue.delete, ids=[_row_id(name) for name in empty])

    def _mirror(self, namespaces: Mapping[Namespace, bool]) -> None:
        for name, expires in namespaces.items():
            self._expiring[name] = expires
            for depth in range(len(name) + 1):
                self._below.setdefault(name[:depth], set()).add(name)

    def _write(self, namespaces: Mapping[Namespace, bool]) -> None:
        catalogue = self._collections.catalogue
        if catalogue is None:
            return
        for names in self._connection.batches(sorted(namespaces)):
            ids = [_row_id(name) for name in names]
            vectors: Any = [spread_vector(row_id, dims=_ROW_DIMS) for row_id in ids]
            self._connection.call(
                catalogue.upsert,
                ids=ids,
                embeddings=as_matrix(vectors, dims=_ROW_DIMS),  # pyright: ignore[reportArgumentType]
                metadatas=[_metadata(name, expires=namespaces[name]) for name in names],
            )
            # After the call: a namespace in the mirror is not written again.
            self._mirror({name: namespaces[name] for name in names})

    def _read(self, prefix: Namespace | None) -> dict[Namespace, bool]:
        catalogue = self._collections.catalogue
        listed: dict[Namespace, bool] = {}
        if catalogue is None:
            return listed
        where: Any = {_PREFIXES: {"$contains": encode_namespace(prefix)}} if prefix else None
        for page in self._connection.pages(
            catalogue, where=where, include=["metadatas"], size=_ROWS_PER_CALL
        ):
            for row in page["metadatas"] or []:
                namespace = namespace_of(row)
                # `$contains` compares whole entries, but the check costs nothing.
                if is_under(namespace, prefix or ()):
                    listed[namespace] = bool(row[_EXPIRING])
        return listed


def _row_id(namespace: Namespace) -> str:
    return hashlib.sha256(encode_namespace(namespace).encode()).hexdigest()[:40]


def _metadata(namespace: Namespace, *, expires: bool) -> dict[str, Any]:
    depths = range(1, len(namespace) + 1)
    return {
        NS: encode_namespace(namespace),
        _PREFIXES: [encode_namespace(namespace[:depth]) for depth in depths],
        _EXPIRING: expires,
    }
