"""The way to one Chroma: a local path, memory, or a server; opened in a worker thread.

A local path has one writer: Chroma's own index loses rows when two processes write one path, so a
lock file keeps the second process out. Stores on the same path in one process share one connection.
"""

import functools
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import chromadb
import httpx
from chromadb.api.models.Collection import Collection
from chromadb.config import Settings
from chromadb.errors import ChromaError, NotFoundError
from filelock import FileLock, Timeout

from memguard import compat
from memguard.errors import ErrorCode, StoreConfigurationError, StoreError
from memguard.stores.chroma.places import Local, Place, Server

T = TypeVar("T")

LOCK_FILE = "memguard.lock"
OWNER_FILE = "memguard.owner"
"""Holds the process id of the lock's holder: a locked file itself cannot be read on Windows."""

# A restarted server leaves dead connections in the pool; every call we make may be made twice.
_STALE = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError, httpx.CloseError)


class Client(Protocol):
    """What is used of a Chroma client."""

    def list_collections(
        self, limit: int | None = None, offset: int | None = None
    ) -> Sequence[Collection]:
        """Collections that exist."""
        ...

    def get_or_create_collection(self, name: str, **settings: Any) -> Collection:
        """The collection of that name."""
        ...

    def get_collection(self, name: str, **settings: Any) -> Collection:
        """The collection of that name, if there is one."""
        ...

    def get_max_batch_size(self) -> int:
        """Rows one call may carry."""
        ...

    def close(self) -> None:
        """Let go of files and sockets."""
        ...


class Connection:
    """One open Chroma and the translation of what it raises."""

    def __init__(self, *, place: Place, client: Client, release: Callable[[], None]) -> None:
        self.place = place
        self.client = client
        self.max_batch = client.get_max_batch_size()
        self._release = release

    @property
    def is_shared(self) -> bool:
        """Whether other processes may write to the same data."""
        return isinstance(self.place, Server)

    def call(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Call Chroma; its errors come out as ours.

        Raises:
            StoreError: If the server cannot be reached or Chroma failed.
        """
        try:
            try:
                return function(*args, **kwargs)
            except _STALE:
                return function(*args, **kwargs)
        except NotFoundError:
            raise
        except httpx.HTTPError as error:
            raise unreachable(self.place, error) from error
        except (ChromaError, OSError, RuntimeError, ValueError) as error:
            name = getattr(function, "__name__", repr(function))
            msg = (
                f"Chroma ({self.place}) failed in {name!r}: {error!r}. What was acknowledged "
                f"before is kept; look at the message and try again"
            )
            raise StoreError(msg, code=ErrorCode.STORE_FAILED) from error

    def close(self) -> None:
        """Close the client and give up the lock."""
        try:
            self.client.close()
        finally:
            self._release()


def connect(place: Place) -> Connection:
    """Open a place; takes the lock of a local path.

    Raises:
        StoreConfigurationError: If the path cannot be used or is held by another process.
        StoreError: If the server cannot be reached.
    """
    if isinstance(place, Local):
        return _connect_local(place)
    if isinstance(place, Server):
        return _connect_server(place)
    return Connection(place=place, client=compat.MemoryChroma(_settings()), release=_nothing)


def unreachable(place: Place, error: Exception) -> StoreError:
    """The error for a server that does not answer."""
    port = place.port if isinstance(place, Server) else 8000
    msg = (
        f"Chroma ({place}) cannot be reached: {error!r}. Start it with "
        f"`chroma run --path DIR --port {port}`, or correct host and port"
    )
    return StoreError(msg, code=ErrorCode.STORE_UNREACHABLE)


def _connect_local(place: Local) -> Connection:
    lock = _lock(place.path)
    try:
        client = chromadb.PersistentClient(path=str(place.path), settings=_settings())
        return Connection(place=place, client=cast("Client", client), release=lock.release)
    except BaseException as error:
        lock.release()
        if isinstance(error, ChromaError | OSError | ValueError | RuntimeError):
            msg = (
                f"Chroma cannot open {str(place.path)!r}: {error!r}. Pass a directory that is "
                f"empty or holds a Chroma database that no other client has open"
            )
            raise StoreConfigurationError(msg, code=ErrorCode.STORE_PATH) from error
        raise


def _lock(path: Path) -> FileLock:
    # Released from whichever thread closes the store, hence not thread-local.
    lock = FileLock(path / LOCK_FILE, timeout=0, thread_local=False)
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock.acquire()
        (path / OWNER_FILE).write_text(f"{os.getpid()}\n", encoding="ascii")
    except Timeout as error:
        msg = (
            f"{str(path)!r} is in use by {_owner(path)}, and Chroma loses rows when two processes "
            f"write one path. Run a server, `chroma run --path {path} --port 8000`, and open "
            f"ChromaStore.server('localhost', 8000) in every process"
        )
        raise StoreConfigurationError(msg, code=ErrorCode.STORE_LOCKED) from error
    except OSError as error:
        lock.release()
        msg = f"{str(path)!r} cannot be used: {error}. Pass a directory you may write to"
        raise StoreConfigurationError(msg, code=ErrorCode.STORE_PATH) from error
    return lock


def _owner(path: Path) -> str:
    try:
        return f"process {int((path / OWNER_FILE).read_text(encoding='ascii'))}"
    except (OSError, ValueError):
        return "another process"


def _connect_server(place: Server) -> Connection:
    try:
        client = chromadb.HttpClient(
            host=place.host,
            port=place.port,
            ssl=place.ssl,
            headers=dict(place.headers),
            tenant=place.tenant,
            database=place.database,
            settings=_settings(),
        )
        close = functools.partial(compat.close_chroma_sockets, client)
        return Connection(place=place, client=cast("Client", client), release=close)
    except (httpx.HTTPError, ValueError) as error:  # chromadb hides a refused connection in both
        raise unreachable(place, error) from error
    except ChromaError as error:
        msg = f"Chroma ({place}) refused the client: {error!r}. Check headers and database"
        raise StoreError(msg, code=ErrorCode.STORE_FAILED) from error


def _settings() -> Settings:
    return Settings(anonymized_telemetry=False)


def _nothing() -> None:
    return None
