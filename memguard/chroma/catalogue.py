"""The connection to one Chroma, and the collections and namespaces in it.

A connection is opened and used in worker threads, because it blocks. A local path has one writer:
Chroma's index loses rows when two processes write to one path, so a lock file keeps the second out.
The items of a store are spread over several collections, its shards. One more collection, the
catalogue, lists the namespaces that have an item, and has the settings of the store.
"""

import contextlib
import functools
import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import chromadb
import httpx
from chromadb.api.models.Collection import Collection
from chromadb.config import Settings
from chromadb.errors import ChromaError, NotFoundError
from filelock import FileLock, Timeout

from memguard import compat
from memguard.chroma.rows import as_matrix, spread_vector
from memguard.chroma.settings import Local, Location, Server
from memguard.chroma.values import NS, encode_namespace, is_under, namespace_of
from memguard.errors import ErrorCode, StoreConfigurationError, StoreError
from memguard.schema.base import Namespace

if TYPE_CHECKING:
    from chromadb.api import ClientAPI

    Client = ClientAPI | compat.MemoryChroma

T = TypeVar("T")

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

LOCK_FILE = "memguard.lock"
# Contains the process id of the lock's owner. A locked file itself cannot be read on Windows.
OWNER_FILE = "memguard.owner"

# A restarted server leaves dead connections in the pool. A call that meets one is repeated, which
# is safe because every call we make has the same effect when it is made twice.
_STALE = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError, httpx.CloseError)


class Connection:
    """One open Chroma, whose errors are translated into memguard's."""

    def __init__(
        self, *, location: Location, client: "Client", release: Callable[[], None]
    ) -> None:
        self.location = location
        self.client = client
        self.max_batch = client.get_max_batch_size()
        """The largest number of rows in one call."""
        self._release = release

    @property
    def is_shared(self) -> bool:
        """Whether other processes may write to the same data."""
        return isinstance(self.location, Server)

    def batches(self, rows: Sequence[T]) -> Iterator[list[T]]:
        """Rows in groups that are small enough for one call."""
        for start in range(0, len(rows), self.max_batch):
            yield list(rows[start : start + self.max_batch])

    def call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call a function of Chroma.

        Raises:
            StoreError: If the server cannot be reached or Chroma fails.
            NotFoundError: If a collection does not exist; callers expect it where one may not.
        """
        try:
            try:
                return function(*args, **kwargs)
            except _STALE:
                return function(*args, **kwargs)
        except NotFoundError:
            raise
        except httpx.HTTPError as error:
            raise unreachable(self.location, error) from error
        except (ChromaError, OSError, RuntimeError, ValueError) as error:
            name = getattr(function, "__name__", repr(function))
            msg = (
                f"Chroma ({self.location}) failed in {name!r}: {error!r}. Earlier writes that "
                f"returned are stored; read the message and try again"
            )
            raise StoreError(msg, code=ErrorCode.STORE_FAILED) from error

    def rows(self, collection: Collection, **query: Any) -> dict[str, Mapping[str, Any]]:
        """The metadata of the rows that a query selects, by id."""
        page = self.call(collection.get, **query, include=["metadatas"])
        return dict(zip(page["ids"], page["metadatas"] or [], strict=True))

    def pages(
        self, collection: Collection, *, where: Any, include: list[Any], size: int
    ) -> Iterator[Any]:
        """The rows that meet a condition, in pages of at most `size` rows."""
        offset = 0
        while True:
            page = self.call(
                collection.get, where=where, include=include, limit=size, offset=offset
            )
            yield page
            offset += len(page["ids"])
            if len(page["ids"]) < size:
                return

    def close(self) -> None:
        """Close the client and release the lock."""
        try:
            cast("Any", self.client).close()  # `ClientAPI` does not declare it; every client has it
        finally:
            self._release()


def connect(location: Location) -> Connection:
    """Open a location; a local path is locked.

    Raises:
        StoreConfigurationError: If the path cannot be used or another process has it open.
        StoreError: If the server cannot be reached.
    """
    if isinstance(location, Local):
        return _connect_local(location)
    if isinstance(location, Server):
        return _connect_server(location)
    client = compat.MemoryChroma(_settings())
    return Connection(location=location, client=client, release=lambda: None)


def unreachable(location: Location, error: Exception) -> StoreError:
    """The error for a server that does not answer."""
    port = location.port if isinstance(location, Server) else 8000
    msg = (
        f"Chroma ({location}) cannot be reached: {error!r}. Start it with "
        f"`chroma run --path DIR --port {port}`, or correct host and port"
    )
    return StoreError(msg, code=ErrorCode.STORE_UNREACHABLE)


def _connect_local(location: Local) -> Connection:
    lock = _lock(location.path)
    try:
        client = chromadb.PersistentClient(path=str(location.path), settings=_settings())
        return Connection(location=location, client=client, release=lock.release)
    # An interrupt too: a lock that stays would keep the program from opening the path again.
    except BaseException as error:
        lock.release()
        if isinstance(error, ChromaError | OSError | ValueError | RuntimeError):
            msg = (
                f"Chroma cannot open {str(location.path)!r}: {error!r}. Pass a directory that is "
                f"empty or holds a Chroma database that no other client has open"
            )
            raise StoreConfigurationError(msg, code=ErrorCode.STORE_PATH) from error
        raise


def _lock(path: Path) -> FileLock:
    # Not thread-local, because any thread may close the store.
    lock = FileLock(path / LOCK_FILE, timeout=0, thread_local=False)
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock.acquire()
        (path / OWNER_FILE).write_text(f"{os.getpid()}\n", encoding="ascii")
    except Timeout as error:
        msg = (
            f"{str(path)!r} is in use by {_owner(path)}, and Chroma loses rows when two processes "
            f"write to one path. Run a server, `chroma run --path {path} --port 8000`, and open "
            f"ChromaStore.server('localhost', 8000) in every process"
        )
        raise StoreConfigurationError(msg, code=ErrorCode.STORE_LOCKED) from error
    except OSError as error:
        # It may be locked already, if only the owner file could not be written.
        lock.release()
        msg = f"{str(path)!r} cannot be used: {error}. Pass a directory you may write to"
        raise StoreConfigurationError(msg, code=ErrorCode.STORE_PATH) from error
    return lock


def _owner(path: Path) -> str:
    try:
        return f"process {int((path / OWNER_FILE).read_text(encoding='ascii'))}"
    except (OSError, ValueError):
        return "another process"


def _connect_server(location: Server) -> Connection:
    try:
        client = chromadb.HttpClient(
            host=location.host,
            port=location.port,
            ssl=location.ssl,
            headers=dict(location.headers),
            tenant=location.tenant,
            database=location.database,
            settings=_settings(),
        )
        close = functools.partial(compat.close_chroma_sockets, client)
        return Connection(location=location, client=client, release=close)
    # chromadb reports a refused connection as one or the other.
    except (httpx.HTTPError, ValueError) as error:
        raise unreachable(location, error) from error
    except ChromaError as error:
        msg = f"Chroma ({location}) refused the client: {error!r}. Check headers and database"
        raise StoreError(msg, code=ErrorCode.STORE_FAILED) from error


def _settings() -> Settings:
    # By default, Chroma reports its use to its makers.
    return Settings(anonymized_telemetry=False)


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
        existing = self._connection.call(self._connection.client.list_collections)
        ours = {entry.name: entry for entry in existing if self._is_ours(entry.name)}
        for collection in ours.values():
            _check_metric(collection)
        self._opened.update(ours)
        if self._name in ours:
            self.stamp = _read_stamp(ours[self._name])

    def establish(self, stamp: Stamp) -> Stamp:
        """Create the catalogue with a stamp, and return its stamp, which may be an older one."""
        with self._lock:
            # Checked again under the lock: two first writes may arrive together.
            if self.stamp is None:
                metadata = {
                    _STAMP_FORMAT: FORMAT,
                    # Empty for a store without an index; `_read_stamp` makes it `None` again.
                    _STAMP_EMBEDDER: stamp.embedder or "",
                    _STAMP_DIMS: stamp.dims,
                    _STAMP_SHARDS: stamp.shards,
                }
                catalogue = self._create(self._name, metadata=metadata)
                # Read back: another client may have created the catalogue a moment earlier.
                self.stamp = _read_stamp(catalogue)
            return self.stamp

    def shard(self, index: int, *, create: bool = False) -> Collection | None:
        """One shard; `None` if it does not exist and is not to be created."""
        name = f"{self._name}-{index:02d}"
        collection = self._find(name)
        if collection is None and create:
            with self._lock:
                return self._create(name, metadata=None)
        return collection

    def shards(self) -> list[tuple[int, Collection]]:
        """Every shard that exists, with its index."""
        # Other clients may have created shards since the store was opened.
        if self._connection.is_shared:
            self.attach()
        count = self.stamp.shards if self.stamp else 0
        names = ((index, f"{self._name}-{index:02d}") for index in range(count))
        return [(index, self._opened[name]) for index, name in names if name in self._opened]

    def shard_of(self, namespace: Namespace) -> int:
        """The shard of a namespace; the same in every process."""
        count = self.stamp.shards if self.stamp else 1
        # Not `hash`, which differs from process to process.
        digest = hashlib.sha256(encode_namespace(namespace).encode()).digest()
        return int.from_bytes(digest[:8], "big") % count

    def _find(self, name: str) -> Collection | None:
        collection = self._opened.get(name)
        if collection is None and self._connection.is_shared:
            # Another client may have created it meanwhile.
            with contextlib.suppress(NotFoundError):
                collection = self._connection.call(
                    self._connection.client.get_collection, name, embedding_function=None
                )
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
        """Read the mirror of the sole writer."""
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
