"""The connection to one Chroma, whose errors are translated into memguard's.

A connection is opened and used in worker threads, because it blocks. A local path has one writer:
Chroma's index loses rows when two processes write to one path, so a lock file keeps the second out.
"""

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import chromadb
import httpx
from chromadb.api.models.Collection import Collection
from chromadb.config import Settings
from chromadb.errors import ChromaError, NotFoundError
from filelock import FileLock, Timeout

from memguard import compat
from memguard.chroma.settings import Local, Location, Server
from memguard.errors import ErrorCode, StoreConfigurationError, StoreError

if TYPE_CHECKING:
    from chromadb.api import ClientAPI

    Client = ClientAPI | compat.MemoryChroma

T = TypeVar("T")

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
