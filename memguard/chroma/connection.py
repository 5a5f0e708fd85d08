"""The connection to one Chroma, whose errors are translated into memguard's.

A connection is opened and used in worker threads, because it blocks. A local path has one writer:
Chroma's index loses rows when two processes write to one path, so a lock file keeps the second out.
"""

import functools
import os
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import chromadb
import httpx
from chromadb.api.models.Collection import Collection
from chromadb.config import Settings
from chromadb.errors import ChromaError, InternalError, NotFoundError
from filelock import FileLock, Timeout

from memguard import compat
from memguard.chroma.settings import Local, Location, Server
from memguard.errors import ErrorCode, StoreConfigurationError, StoreError
from memguard.private_files import create_file, create_folder, make_private

if TYPE_CHECKING:
    from chromadb.api import ClientAPI

    Client = ClientAPI | compat.MemoryChroma

T = TypeVar("T")

LOCK_FILE = "memguard.lock"
# Contains the process id of the lock's owner. A locked file itself cannot be read on Windows.
OWNER_FILE = "memguard.owner"

DATABASE_FILE = "chroma.sqlite3"
"""The rows of a local store; each collection also has a folder with its index."""

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
        self._known_folders = _folders(location)
        self._lock = threading.Lock()
        self._gate = threading.Condition()
        self._users = 0
        self._is_reserved = False
        self.is_doubtful = False
        """Whether a local Chroma failed: its transaction may keep a lock, and the next write would
        wait for minutes. `renew` opens it again."""
        self.generation = 0
        """Number of times that the client was replaced; the collections of an older one are
        closed."""

    @property
    def is_shared(self) -> bool:
        """Whether other processes may write to the same data."""
        return isinstance(self.location, Server)

    @contextmanager
    def in_use(self) -> Generator[None]:
        """Keep the client open for the calls in the block; not to be nested."""
        with self._gate:
            self._gate.wait_for(lambda: not self._is_reserved)
            self._users += 1
        try:
            yield
        finally:
            with self._gate:
                self._users -= 1
                self._gate.notify_all()

    @contextmanager
    def reserved(self) -> Generator[None]:
        """Wait until no call is in progress, and keep all others out while the block runs."""
        with self._gate:
            self._gate.wait_for(lambda: not self._is_reserved)
            # From here on no new call starts, so that those in progress come to an end.
            self._is_reserved = True
            self._gate.wait_for(lambda: self._users == 0)
        try:
            yield
        finally:
            with self._gate:
                self._is_reserved = False
                self._gate.notify_all()

    def work_offline(self, work: Callable[[Path], T]) -> T:
        """Run work on the folder of a local Chroma while its client is closed.

        Raises:
            StoreConfigurationError: If Chroma cannot be opened again; the next call tries again.
        """
        location = cast("Local", self.location)
        with self.reserved(), self._lock:
            cast("Any", self.client).close()
            try:
                return work(location.path)
            finally:
                # If opening fails, the next call opens it by `renew`.
                self.is_doubtful = True
                self.client = _open_client(location)
                self.is_doubtful = False
                self.generation += 1

    def batches(self, rows: Sequence[T]) -> Iterator[list[T]]:
        """Rows in groups that are small enough for one call."""
        for start in range(0, len(rows), self.max_batch):
            yield list(rows[start : start + self.max_batch])

    def call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call a function of Chroma.

        Raises:
            StoreError: If the server cannot be reached, a collection does not exist, or Chroma
                fails.
        """
        try:
            try:
                return function(*args, **kwargs)
            except _STALE:
                return function(*args, **kwargs)
        except NotFoundError as error:
            raise _gone(self.location, function) from error
        except httpx.HTTPError as error:
            raise unreachable(self.location, error) from error
        except (ChromaError, OSError, RuntimeError, ValueError) as error:
            self.is_doubtful = isinstance(self.location, Local) and isinstance(error, InternalError)
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

    def renew(self) -> None:
        """Replace the client of a local Chroma that failed, which ends its transactions.

        Raises:
            StoreConfigurationError: If Chroma cannot be opened again; the next call tries again.
        """
        with self._lock:
            if self.is_doubtful and isinstance(self.location, Local):
                cast("Any", self.client).close()
                self.client = _open_client(self.location)
                self.is_doubtful = False
                self.generation += 1

    def close(self) -> None:
        """Close the client and release the lock."""
        with self._gate:
            self._gate.wait_for(lambda: not self._is_reserved)
        try:
            cast("Any", self.client).close()  # `ClientAPI` does not declare it; every client has it
        finally:
            self._release()

    def restrict_new_folders(self) -> None:
        """Keep others out of the index folders that Chroma has created since the last call.

        The folders that existed before keep their mode, because their owner may share them.
        """
        new = _folders(self.location) - self._known_folders
        self._known_folders |= new
        make_private(path for folder in new for path in (folder, *folder.iterdir()))


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


def _gone(location: Location, function: Callable[..., Any]) -> StoreError:
    """The error for a collection that another program has deleted, or replaced by another."""
    name = getattr(getattr(function, "__self__", None), "name", "")
    msg = (
        f"Chroma ({location}) no longer has the collection {name!r} that the store was using: "
        "another program deleted it or created it anew. The store has opened what is there now, so "
        "try again. `memguard doctor --repair` restores the memories that the receipts contain"
    )
    return StoreError(msg, code=ErrorCode.STORE_COLLECTION)


def _connect_local(location: Local) -> Connection:
    lock = _lock(location.path)
    try:
        # Before Chroma creates it, with a mode that lets others read it.
        create_file(location.path / DATABASE_FILE)
        client = _open_client(location)
        return Connection(location=location, client=client, release=lock.release)
    # An interrupt too: a lock that stays would keep the program from opening the path again.
    except BaseException as error:
        lock.release()
        if isinstance(error, OSError):
            raise _cannot_open(location, error) from error
        raise


def _open_client(location: Local) -> "Client":
    try:
        return chromadb.PersistentClient(path=str(location.path), settings=_settings())
    except (ChromaError, OSError, ValueError, RuntimeError) as error:
        raise _cannot_open(location, error) from error


def _cannot_open(location: Local, error: Exception) -> StoreConfigurationError:
    msg = (
        f"Chroma cannot open {str(location.path)!r}: {error!r}. Pass a directory that is empty or "
        f"holds a Chroma database that no other client has open. If the database is damaged, "
        f"`memguard doctor --repair` restores what the receipts contain"
    )
    return StoreConfigurationError(msg, code=ErrorCode.STORE_PATH)


def _lock(path: Path) -> FileLock:
    # Not thread-local, because any thread may close the store.
    lock = FileLock(path / LOCK_FILE, timeout=0, thread_local=False, mode=0o600)
    try:
        create_folder(path)
        lock.acquire()
        create_file(path / OWNER_FILE)
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


def _folders(location: Location) -> set[Path]:
    if not isinstance(location, Local):
        return set()
    return {entry for entry in location.path.iterdir() if entry.is_dir()}


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
