"""`ChromaStore`: a LangGraph store whose data is in Chroma.

This file has the lifetime of a store and the way to its worker threads. Chroma is imported in them,
when a store is opened: the import takes a second and reads files.
"""

import asyncio
import itertools
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Self, TypeVar, TypeVarTuple, Unpack

from langgraph.store.base import Op, Result, TTLConfig

from memguard.chroma.operations import AnyLabelStore, Plan, make_plan
from memguard.chroma.settings import (
    SECONDS_PER_MINUTE,
    Local,
    Location,
    Memory,
    Server,
    Settings,
    StoreOptions,
    Vector,
    check_options,
    check_ttl,
)
from memguard.chroma.values import check_namespace
from memguard.errors import ErrorCode, MemguardError, StoreConfigurationError, StoreError
from memguard.portal import running_loop
from memguard.schema.base import Namespace

if TYPE_CHECKING:
    from memguard.chroma.engine import Engine

logger = logging.getLogger(__name__)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
P = ParamSpec("P")
# The vectors of the texts and of the queries of a plan.
Embedded = tuple[dict[str, Vector], dict[str, Vector]]

JOURNAL_FILE = "memguard.sqlite3"
"""Receipts and quarantine of the memories in a local store, in the same directory."""
DEFAULT_SWEEP_MINUTES = 5.0

# Threads of one store for its async methods. More would wait: Chroma runs one write at a time.
_WORKERS = 4
_serials = itertools.count()


class Sweeper:
    """A daemon thread that deletes expired items at an interval in minutes, until it is stopped."""

    def __init__(self, sweep: Callable[[], int], *, interval: float) -> None:
        self._sweep = sweep
        self._seconds = interval * SECONDS_PER_MINUTE
        self._stopped = threading.Event()
        self.failures = 0
        """Number of sweeps that failed; each failure is logged."""
        # A daemon: a program that forgets to close its store must still end.
        self._thread = threading.Thread(target=self._run, name="memguard-ttl", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether the thread is alive and was not asked to stop."""
        return self._thread.is_alive() and not self._stopped.is_set()

    def stop(self, *, timeout: float | None = None) -> bool:
        """End the thread and wait for it; `False` if it did not end in `timeout` seconds."""
        self._stopped.set()
        # A sweep may stop its own sweeper, and a thread cannot wait for itself.
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopped.wait(self._seconds):
            try:
                removed = self._sweep()
            except MemguardError:
                # The next sweep may succeed; a dead thread would let expired items pile up.
                self.failures += 1
                logger.exception("a sweep of expired items failed; the next one runs as planned")
            else:
                logger.debug("swept %d expired items", removed)


class ChromaStore(AnyLabelStore):
    """A LangGraph store on Chroma: a local path, memory, or a server.

    Create it with `ChromaStore.local`, `.memory` or `.server`. Sync and async methods do the same.
    The async ones never block the event loop, and one store serves any number of threads and loops.

    Namespaces may hold any text (dots, spaces, `/`, any script) and integers, which are stored as
    their `str`. A put replaces the whole item in one transaction and keeps its `created_at`. Values
    that JSON can represent come back equal; any other value is refused before it is embedded.

    A search finds items at or below its namespace. With a query, items are ordered by
    `score = min(1, max(0, cosine(query, item)))`, where the best of several indexed texts counts.
    Items without a vector come last, with the score `None`. Without a query, the latest change
    comes first. Consecutive pages follow this order.

    Args:
        location: The location of the data.
        **options: See `StoreOptions`.
    """

    supports_ttl: bool = True

    def __init__(self, location: Location, **options: Unpack[StoreOptions]) -> None:
        self._location = location
        self._settings: Settings = check_options(options)
        self.ttl_config: TTLConfig | None = self._settings.ttl
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._closed = False
        self._sweeper: Sweeper | None = None
        self._sweep_failures = 0
        self._data_path: Path | None = None
        self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="memguard-chroma")
        # Opening reads files, which must not block a running loop.
        if running_loop() is None:
            self.open()

    @classmethod
    def local(cls, path: str | os.PathLike[str], **options: Unpack[StoreOptions]) -> Self:
        """A store in a directory, which only one process may have open at a time.

        It is opened immediately, so that a mistake is reported here. Inside a running event loop it
        is opened on first use or by `aopen`, in a worker thread.

        Args:
            path: The directory; created if it does not exist.
            **options: See `StoreOptions`.

        Raises:
            StoreConfigurationError: If the path, the metric or the embedder does not fit.
        """
        return cls(Local(path=Path(path)), **options)

    @classmethod
    def memory(cls, **options: Unpack[StoreOptions]) -> Self:
        """A store in the memory of this process, whose data is lost when it is closed."""
        return cls(Memory(serial=next(_serials)), **options)

    @classmethod
    def server(
        cls,
        host: str = "localhost",
        port: int = 8000,
        *,
        ssl: bool = False,
        headers: Mapping[str, str] | None = None,
        tenant: str = "default_tenant",
        database: str = "default_database",
        data_path: str | os.PathLike[str] | None = None,
        **options: Unpack[StoreOptions],
    ) -> Self:
        """A store on a Chroma server (`chroma run --path DIR --port N`), for several processes.

        `headers` are sent with every request, for example a token. `data_path` is the folder `DIR`
        if the server runs on this machine: `erase` then completes its work there. For the options
        see `StoreOptions`.

        Raises:
            StoreError: If the server cannot be reached.
        """
        location = Server(
            host=host,
            port=port,
            ssl=ssl,
            headers=tuple(sorted((headers or {}).items())),
            tenant=tenant,
            database=database,
        )
        store = cls(location, **options)
        store._data_path = None if data_path is None else Path(data_path)
        return store

    @property
    def journal_path(self) -> Path | None:
        """The journal of guarded writes: in the directory of a local store, else `None`."""
        return self._location.path / JOURNAL_FILE if isinstance(self._location, Local) else None

    @property
    def is_shared(self) -> bool:
        """Whether other processes may write to the same data: on a server."""
        return isinstance(self._location, Server)

    # -- lifetime -----------------------------------------------------------------------------

    def open(self) -> Self:
        """Open the store now instead of on first use; does nothing if it is open."""
        self._blocking(self._open)
        return self

    async def aopen(self) -> Self:
        """As `open`, in a worker thread."""
        await self._awaiting(self._open)
        return self

    def close(self) -> None:
        """Close the store; a second call does nothing. Acknowledged writes are on disk already."""
        if self._mark_closed():
            self._blocking(self._release)
            # Without waiting: a task of the pool may be closing the store.
            self._pool.shutdown(wait=False)

    async def aclose(self) -> None:
        """As `close`, in a worker thread."""
        if self._mark_closed():
            await asyncio.get_running_loop().run_in_executor(self._pool, self._release)
            self._pool.shutdown(wait=False)

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await self.aopen()

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # -- batches ------------------------------------------------------------------------------

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations: reads on the state before the batch, then the writes.

        The last put of a key counts. If any operation is wrong, none is carried out.
        """
        plan = self._plan(ops)
        return self._blocking(self._run, plan) if plan.size else []

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`; an async embedder runs on the caller's loop, Chroma in worker threads."""
        plan = self._plan(ops)
        if not plan.size:
            return []
        # Opened before anything is embedded: a store that cannot be used must not cost a request
        # to an embedder.
        if self._engine is None:
            await self.aopen()
        return await self._awaiting(self._run, plan, await self._aembed(plan))

    # -- in addition to LangGraph's methods ---------------------------------------------------

    def count(self, namespace: Namespace) -> int:
        """Number of items in exactly this namespace, without expired ones and those below it."""
        return self._blocking(self._count, check_namespace(namespace))

    async def acount(self, namespace: Namespace) -> int:
        """As `count`."""
        return await self._awaiting(self._count, check_namespace(namespace))

    def delete_namespace(self, namespace: Namespace) -> int:
        """Delete every item of exactly this namespace, and return how many; those below stay."""
        return self._blocking(self._delete_namespace, check_namespace(namespace))

    async def adelete_namespace(self, namespace: Namespace) -> int:
        """As `delete_namespace`."""
        return await self._awaiting(self._delete_namespace, check_namespace(namespace))

    def sweep_ttl(self) -> int:
        """Delete the items that have expired, and return how many."""
        return self._blocking(self._sweep)

    async def asweep_ttl(self) -> int:
        """As `sweep_ttl`."""
        return await self._awaiting(self._sweep)

    def repair(self) -> str:
        """Bring the list of namespaces in line with the stored items.

        Only needed if another program changed the collections; `memguard doctor --repair` calls it.

        Returns:
            One line that says what was done.
        """
        return self._blocking(self._repair)

    async def arepair(self) -> str:
        """As `repair`."""
        return await self._awaiting(self._repair)

    def erase(self) -> tuple[str, ...]:
        """Remove the bytes that Chroma keeps of deleted items; nothing else changes.

        Chroma keeps text and vector of a deleted item in its queue of writes, in its index and in
        free pages of its database. A local store waits until no other call is in progress, and
        keeps new ones waiting: seconds for 100,000 items. `forget` calls this.

        Returns:
            What remains to be done on the machine of a server, in one line each; empty if nothing
            does.

        Raises:
            StoreError: If Chroma failed, or its database could not be rewritten; call again.
        """
        return self._blocking(self._erase)

    async def aerase(self) -> tuple[str, ...]:
        """As `erase`."""
        return await self._awaiting(self._erase)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Sweeper:
        """Delete expired items at an interval, in a daemon thread, until stopped or closed.

        Args:
            sweep_interval_minutes: Replaces the setting of that name. The default of both is 5.
        """
        self._check_open()
        override = check_ttl(sweep_interval_minutes)
        configured = (self.ttl_config or {}).get("sweep_interval_minutes")
        with self._lock:
            if self._sweeper is None or not self._sweeper.is_running:
                interval = override or configured or DEFAULT_SWEEP_MINUTES
                self._sweeper = Sweeper(self._sweep, interval=interval)
            return self._sweeper

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop the sweeper; `False` if a running sweep did not end in `timeout` seconds."""
        with self._lock:
            sweeper, self._sweeper = self._sweeper, None
        if sweeper is None:
            return True
        # Outside the lock, because a sweep that has to open the store needs it.
        self._sweep_failures += sweeper.failures
        return sweeper.stop(timeout=timeout)

    @property
    def sweep_failures(self) -> int:
        """Number of background sweeps that failed; each failure was logged."""
        running = self._sweeper.failures if self._sweeper else 0
        return self._sweep_failures + running

    # -- inside -------------------------------------------------------------------------------

    def _plan(self, ops: Iterable[Op]) -> Plan:
        self._check_open()
        return make_plan(ops, settings=self._settings)

    def _check_open(self) -> None:
        if self._closed:
            msg = f"This store ({self._location}) was closed. Create a new one"
            raise StoreConfigurationError(msg, code=ErrorCode.STORE_CLOSED)

    def _open(self) -> "Engine":
        """The engine, opened on first use; blocks."""
        self._check_open()
        with self._lock:
            if self._engine is None:
                # Late: chromadb takes a second to import.
                from memguard.chroma.engine import acquire, release  # noqa: PLC0415
                from memguard.chroma.repair import mend_catalogue  # noqa: PLC0415
                from memguard.chroma.writing import check_stamp  # noqa: PLC0415

                settings = self._settings
                engine = acquire(
                    self._location, collection=settings.collection, budget=settings.cache_bytes
                )
                try:
                    with engine.connection.in_use():
                        mend_catalogue(engine)
                    check_stamp(engine.collections.stamp, settings.embedder)
                except BaseException:
                    release(engine)
                    raise
                self._engine = engine
            return self._engine

    def _mark_closed(self) -> bool:
        self.stop_ttl_sweeper()
        # One caller alone goes on: the pool takes no work after the first one has shut it down.
        with self._lock:
            was_open, self._closed = not self._closed, True
            return was_open

    def _release(self) -> None:
        with self._lock:
            engine, self._engine = self._engine, None
        if engine is not None:
            from memguard.chroma.engine import release  # noqa: PLC0415  # late, as in `_open`

            release(engine)

    def _use(
        self, work: "Callable[Concatenate[Engine, P], T]", *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a function of the engine; after a collection was missing, open what is there now."""
        engine = self._open()
        from memguard.chroma.repair import renew, reopen  # noqa: PLC0415  # late, as in `_open`

        with engine.connection.in_use():
            renew(engine)
            try:
                return work(engine, *args, **kwargs)
            except StoreError as error:
                if error.code is ErrorCode.STORE_COLLECTION:
                    reopen(engine)
                # Not tried again: the caller has to learn that stored items are gone.
                raise

    def _run(self, plan: Plan, embedded: Embedded | None = None) -> list[Result]:
        from memguard.chroma.writing import run_plan  # noqa: PLC0415  # late, as in `_open`

        self._open()
        vectors, queries = embedded or self._embed(plan)
        return self._use(run_plan, plan, settings=self._settings, vectors=vectors, queries=queries)

    def _embed(self, plan: Plan) -> Embedded:
        embedder = self._settings.embedder
        if embedder is None:
            return {}, {}
        texts = plan.texts
        vectors = embedder.documents(texts) if texts else []
        queries = {query: embedder.query(query) for query in plan.queries}
        return dict(zip(texts, vectors, strict=True)), queries

    async def _aembed(self, plan: Plan) -> Embedded:
        embedder = self._settings.embedder
        if embedder is None:
            return {}, {}
        texts, queries = plan.texts, plan.queries
        vectors = await embedder.adocuments(texts, pool=self._pool) if texts else []
        query_vectors = await asyncio.gather(
            *(embedder.aquery(query, pool=self._pool) for query in queries)
        )
        return (
            dict(zip(texts, vectors, strict=True)),
            dict(zip(queries, query_vectors, strict=True)),
        )

    def _count(self, namespace: Namespace) -> int:
        from memguard.chroma.reading import count  # noqa: PLC0415  # late, as in `_open`

        now = self._now() if self._settings.omits_expired else None
        return self._use(count, namespace, now=now)

    def _delete_namespace(self, namespace: Namespace) -> int:
        from memguard.chroma.writing import delete_namespace  # noqa: PLC0415

        return self._use(delete_namespace, namespace, now=self._now())

    def _sweep(self) -> int:
        from memguard.chroma.writing import sweep  # noqa: PLC0415  # late, as in `_open`

        return self._use(sweep, now=self._now())

    def _erase(self) -> tuple[str, ...]:
        from memguard.chroma.erasure import erase_files, save_indexes  # noqa: PLC0415

        # Expired items are to be erased as well.
        self._sweep()
        self._use(save_indexes)
        return erase_files(self._open(), data_path=self._data_path)

    def _repair(self) -> str:
        from memguard.chroma.repair import relist  # noqa: PLC0415  # late, as in `_open`

        return self._use(relist)

    def _now(self) -> float:
        return self._settings.moment().timestamp()

    def _blocking(self, work: Callable[[*Ts], T], *args: *Ts) -> T:
        # In a worker thread if an event loop runs in this one: embedders are called in threads
        # without a loop.
        return work(*args) if running_loop() is None else self._pool.submit(work, *args).result()

    async def _awaiting(self, work: Callable[[*Ts], T], *args: *Ts) -> T:
        self._check_open()
        # If the caller is cancelled, work that has started is still carried out to its end. So a
        # cancelled write is complete or was never begun.
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, *args)
