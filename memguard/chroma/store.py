"""`ChromaStore`: a LangGraph store whose data lives in Chroma."""

import asyncio
import contextlib
import functools
import itertools
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar, Unpack

from langgraph.store.base import Op, Result, TTLConfig

from memguard.chroma.embedding import Vector
from memguard.chroma.operations import AnyLabelStore, Plan, make_plan
from memguard.chroma.settings import (
    Local,
    Location,
    Memory,
    Server,
    Settings,
    StoreOptions,
    check_options,
    check_ttl,
)
from memguard.chroma.values import check_namespace
from memguard.errors import ErrorCode, MemguardError, StoreConfigurationError
from memguard.schema.base import Namespace

if TYPE_CHECKING:
    from memguard.chroma.engine import Engine

logger = logging.getLogger(__name__)

_SECONDS_PER_MINUTE = 60.0
T = TypeVar("T")

JOURNAL_FILE = "memguard.sqlite3"
"""Receipts and quarantine of what is written into a local store, in the same directory."""
DEFAULT_SWEEP_MINUTES = 5.0

_WORKERS = 4
"""Threads of one store for its async methods; Chroma itself runs one write at a time."""
_serials = itertools.count()


class Sweeper:
    """A daemon thread that sweeps at an interval until stopped.

    Args:
        sweep: Removes what has expired and returns how many items.
        interval: Minutes between two sweeps.
    """

    def __init__(self, sweep: Callable[[], int], *, interval: float) -> None:
        self._sweep = sweep
        self._seconds = interval * _SECONDS_PER_MINUTE
        self._stopped = threading.Event()
        self.failures = 0
        """Sweeps that failed since the start; each one is logged with its error."""
        self._thread = threading.Thread(target=self._run, name="memguard-ttl", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether the thread is alive and was not asked to stop."""
        return self._thread.is_alive() and not self._stopped.is_set()

    def stop(self, *, timeout: float | None = None) -> bool:
        """Ask the thread to end and wait for it; `False` if it did not end in time."""
        self._stopped.set()
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
                logger.exception("a sweep of expired items failed; the next one is due as planned")
            else:
                logger.debug("swept %d expired items", removed)


class ChromaStore(AnyLabelStore):
    """A LangGraph store on Chroma: a local path, memory, or a server.

    Made by `ChromaStore.local`, `.memory` or `.server`. Sync and async methods do the same; async
    ones never block the event loop, and one store serves any number of threads and loops.

    Namespaces may hold any text (dots, spaces, `/`, any script) and integers, which are stored as
    their `str`. A put replaces the whole item, in one transaction; `created_at` is kept. Values are
    what JSON can hold, and come back equal; anything else is refused before it is embedded.

    A search finds items at or below its namespace. With a query, items come by
    `score = min(1, max(0, cosine(query, item)))`, an item with several indexed texts counting by
    its best one, and items without a vector come last with the score `None`. Without a query they
    come by their latest change. Pages run over that one order.

    Args:
        location: Where the data is.
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
        self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="memguard-chroma")
        # Opening reads files, which must not block a running loop.
        if not _in_loop():
            self.open()

    @classmethod
    def local(cls, path: str | os.PathLike[str], **options: Unpack[StoreOptions]) -> Self:
        """A store in a directory, which one process may have open at a time.

        Opened at once, so that a mistake is reported here. Inside a running event loop it is opened
        on first use or by `aopen`, in a worker thread.

        Args:
            path: The directory; created if it does not exist.
            **options: See `StoreOptions`.

        Raises:
            StoreConfigurationError: If the path, the metric or the embedder does not fit.
        """
        return cls(Local(path=Path(path)), **options)

    @classmethod
    def memory(cls, **options: Unpack[StoreOptions]) -> Self:
        """A store of its own in this process's memory, gone when it is closed."""
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
        **options: Unpack[StoreOptions],
    ) -> Self:
        """A store on a Chroma server (`chroma run --path DIR --port N`), for several processes.

        Args:
            host: Its host.
            port: Its port.
            ssl: Whether to speak TLS.
            headers: Sent with every request, such as a token.
            tenant: Chroma's tenant.
            database: Chroma's database.
            **options: See `StoreOptions`.

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
        return cls(location, **options)

    @property
    def journal_path(self) -> Path | None:
        """Where the journal of guarded writes is kept: with the data of a local store."""
        return self._location.path / JOURNAL_FILE if isinstance(self._location, Local) else None

    # -- lifetime -----------------------------------------------------------------------------

    def open(self) -> Self:
        """Open now instead of on first use; does nothing if it is open."""
        self._blocking(self._open)
        return self

    async def aopen(self) -> Self:
        """As `open`, in a worker thread."""
        await self._awaiting(self._open)
        return self

    def close(self) -> None:
        """Close; a second call does nothing. What was acknowledged is on disk already."""
        if self._mark_closed():
            self._blocking(self._release)
            # Without waiting: a task of the pool may be what closes the store.
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
        return self._blocking(functools.partial(self._run, plan)) if plan.size else []

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`; an async embedder runs on the caller's loop, Chroma in worker threads."""
        plan = self._plan(ops)
        if not plan.size:
            return []
        # Opened before anything is embedded: a store that cannot be used must not cost a request.
        if self._engine is None:
            await self.aopen()
        vectors, queries = await self._aembed(plan)
        return await self._awaiting(
            functools.partial(self._run, plan, vectors=vectors, queries=queries)
        )

    # -- in addition to LangGraph's methods ---------------------------------------------------

    def count(self, namespace: Namespace) -> int:
        """Items in exactly this namespace; expired ones and those below it do not count."""
        return self._blocking(functools.partial(self._count, check_namespace(namespace)))

    async def acount(self, namespace: Namespace) -> int:
        """As `count`."""
        return await self._awaiting(functools.partial(self._count, check_namespace(namespace)))

    def delete_namespace(self, namespace: Namespace) -> int:
        """Delete every item of exactly this namespace; those below it stay. Returns how many."""
        checked = check_namespace(namespace)
        return self._blocking(functools.partial(self._delete_namespace, checked))

    async def adelete_namespace(self, namespace: Namespace) -> int:
        """As `delete_namespace`."""
        checked = check_namespace(namespace)
        return await self._awaiting(functools.partial(self._delete_namespace, checked))

    def sweep_ttl(self) -> int:
        """Delete what has expired, now; returns how many items."""
        return self._blocking(self._sweep)

    async def asweep_ttl(self) -> int:
        """As `sweep_ttl`."""
        return await self._awaiting(self._sweep)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Sweeper:
        """Sweep at an interval in a daemon thread until stopped or closed.

        Args:
            sweep_interval_minutes: Instead of the setting of that name; 5 minutes without either.
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
        """Stop sweeping; `False` if a sweep under way did not end in `timeout` seconds."""
        with self._lock:
            sweeper, self._sweeper = self._sweeper, None
        if sweeper is None:
            return True
        # Outside the lock, which a sweep that has to open the store needs itself.
        self._sweep_failures += sweeper.failures
        return sweeper.stop(timeout=timeout)

    @property
    def sweep_failures(self) -> int:
        """Sweeps in the background that failed; each one was logged."""
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
                # Late: chromadb costs a second to import, and opening it reads files.
                from memguard.chroma.engine import acquire, release  # noqa: PLC0415
                from memguard.chroma.writing import check_stamp  # noqa: PLC0415

                settings = self._settings
                engine = acquire(
                    self._location, collection=settings.collection, budget=settings.cache_bytes
                )
                try:
                    check_stamp(engine.collections.stamp, settings.embedder)
                except BaseException:
                    release(engine)
                    raise
                self._engine = engine
            return self._engine

    def _mark_closed(self) -> bool:
        self.stop_ttl_sweeper()
        with self._lock:
            was_open, self._closed = not self._closed, True
            return was_open

    def _release(self) -> None:
        with self._lock:
            engine, self._engine = self._engine, None
        if engine is not None:
            from memguard.chroma.engine import release  # noqa: PLC0415  # late, as in `_open`

            release(engine)

    def _run(
        self,
        plan: Plan,
        *,
        vectors: Mapping[str, Vector] | None = None,
        queries: Mapping[str, Vector] | None = None,
    ) -> list[Result]:
        from memguard.chroma.writing import run_plan  # noqa: PLC0415  # late, as in `_open`

        engine = self._open()
        if vectors is None or queries is None:
            vectors, queries = self._embed(plan)
        return run_plan(engine, plan, settings=self._settings, vectors=vectors, queries=queries)

    def _embed(self, plan: Plan) -> tuple[dict[str, Vector], dict[str, Vector]]:
        embedder = self._settings.embedder
        if embedder is None:
            return {}, {}
        texts = plan.texts
        vectors = embedder.documents(texts) if texts else []
        queries = {query: embedder.query(query) for query in plan.queries}
        return dict(zip(texts, vectors, strict=True)), queries

    async def _aembed(self, plan: Plan) -> tuple[dict[str, Vector], dict[str, Vector]]:
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

        omits = (self.ttl_config or {}).get("omit_expired", True)
        return count(self._open(), namespace, now=self._now() if omits else None)

    def _delete_namespace(self, namespace: Namespace) -> int:
        from memguard.chroma.writing import delete_namespace  # noqa: PLC0415

        return delete_namespace(self._open(), namespace, now=self._now())

    def _sweep(self) -> int:
        from memguard.chroma.writing import sweep  # noqa: PLC0415  # late, as in `_open`

        return sweep(self._open(), now=self._now())

    def _now(self) -> float:
        return self._settings.moment().timestamp()

    def _blocking(self, work: Callable[[], T]) -> T:
        """Run here, or in a worker thread if an event loop runs here."""
        return self._pool.submit(work).result() if _in_loop() else work()

    async def _awaiting(self, work: Callable[[], T]) -> T:
        self._check_open()
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)


def _in_loop() -> bool:
    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop()
        return True
    return False
