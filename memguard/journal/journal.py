"""One SQLite file that holds receipts, events, reads and cached extractions.

All work runs in the journal's own thread. A call from an event loop therefore never blocks the
loop, and calls from several loops and threads have one order. Writes that wait at the same time
share one transaction, and so one wait for the disk. A write is on disk (`synchronous=FULL`) when
its call returns.
"""

import asyncio
import itertools
import os
import sqlite3
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from memguard.errors import ErrorCode, ReceiptError, StoreConfigurationError
from memguard.journal.tables import BUSY_SECONDS, connect
from memguard.portal import running_loop
from memguard.schema.base import Clock

T = TypeVar("T")
P = ParamSpec("P")

Work = Callable[Concatenate[sqlite3.Connection, P], T]
"""A function that runs in the journal's thread; its first argument is the database."""


def utc_now() -> datetime:
    """The current time, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Job(Generic[T]):
    """Work that waits for the journal's thread."""

    work: Callable[[sqlite3.Connection], T]
    writes: bool
    future: "Future[T]" = field(default_factory=Future)


class Journal:
    """An append-only log in one SQLite file; `ReceiptLog` and others are views of it."""

    def __init__(self, path: Path | None, *, clock: Clock = utc_now) -> None:
        """Start to open a journal; use `open`, `aopen` or `memory` instead."""
        self._path = path
        self._clock = clock
        self._pid = os.getpid()
        self._closed = False
        self._lock = threading.Lock()
        self._waiting: deque[_Job[Any]] = deque()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="memguard-journal")
        # Opening may wait seconds for a lock, so it happens in the thread, too.
        self._db = self._thread.submit(lambda: connect(path, now=clock()))
        # Closes a journal that its user did not close, at garbage collection or process exit.
        weakref.finalize(self, _close_connection, self._db)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, clock: Clock = utc_now) -> Self:
        """Open the journal at a path; the file is created if it does not exist.

        Inside a running event loop this does not wait, and an unusable path raises at the first
        use. `aopen` waits without blocking the loop. The clock gives the time of events.

        Raises:
            StoreConfigurationError: If the file cannot be used.
        """
        journal = cls(Path(path), clock=clock)
        if running_loop() is None:
            error = journal._db.exception()
            if error is not None:
                journal.close()
                raise error
        return journal

    @classmethod
    async def aopen(cls, path: str | os.PathLike[str], *, clock: Clock = utc_now) -> Self:
        """Open the journal at a path and wait until it is usable; see `open`."""
        journal = cls(Path(path), clock=clock)
        try:
            # Shielded: a cancelled caller must not cancel the future that every later call reads.
            await asyncio.shield(asyncio.wrap_future(journal._db))
        except StoreConfigurationError:
            await journal.aclose()
            raise
        return journal

    @classmethod
    def memory(cls, *, clock: Clock = utc_now) -> Self:
        """A journal that lives as long as this object."""
        return cls(None, clock=clock)

    @property
    def path(self) -> Path | None:
        """The file; `None` when the journal is in memory."""
        return self._path

    def now(self) -> datetime:
        """The current time, in UTC."""
        return self._clock().astimezone(UTC)

    def read(self, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a query with these arguments and wait for its result."""
        return self._submit(lambda db: work(db, *args, **kwargs), writes=False).result()

    async def aread(self, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a query without blocking the event loop; see `read`."""
        future = self._submit(lambda db: work(db, *args, **kwargs), writes=False)
        return await asyncio.wrap_future(future)

    def write(self, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run work with these arguments in one transaction.

        When this returns, all of the work is on disk. When it raises, none of it is.

        Raises:
            ReceiptError: If the database failed.
        """
        return self._submit(lambda db: work(db, *args, **kwargs), writes=True).result()

    async def awrite(self, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run work in one transaction without blocking the event loop; see `write`.

        After a cancellation the work was either done completely or not at all, and the caller
        cannot tell which.
        """
        future = self._submit(lambda db: work(db, *args, **kwargs), writes=True)
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Finish the submitted work and close the file; a second call does nothing."""
        self._start_close()
        self._thread.shutdown(wait=True)

    async def aclose(self) -> None:
        """Close without blocking the event loop; see `close`."""
        disconnected = self._start_close()
        # A cancelled caller must not leave the file open.
        await asyncio.shield(asyncio.wrap_future(disconnected))
        # Waiting would block the loop, and the thread has nothing left to do.
        self._thread.shutdown(wait=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    def _start_close(self) -> "Future[None]":
        with self._lock:
            if not self._closed:
                self._closed = True
                self._disconnected = self._thread.submit(self._disconnect)
            return self._disconnected

    def _disconnect(self) -> None:
        self._drain()
        if self._db.exception() is None:
            self._db.result().close()

    def _submit(self, work: Callable[[sqlite3.Connection], T], *, writes: bool) -> "Future[T]":
        if self._pid != os.getpid():
            # The journal's thread did not survive the fork, and SQLite forbids sharing a
            # connection: https://www.sqlite.org/howtocorrupt.html#_carrying_an_open_database_connection_across_a_fork_
            raise _closed(self._path, "was opened before this process was forked")
        job = _Job(work=work, writes=writes)
        with self._lock:
            if self._closed:
                raise _closed(self._path, "is closed")
            self._waiting.append(job)
            # One drain per job, though the first may do the work of several: a drain that finds
            # nothing costs little, and none can be missed.
            self._thread.submit(self._drain)
        return job.future

    def _drain(self) -> None:
        """Run all waiting jobs in order; called in the journal's thread."""
        jobs: list[_Job[Any]] = []
        while self._waiting:
            job = self._waiting.popleft()
            if job.future.set_running_or_notify_cancel():
                jobs.append(job)
        open_error = self._db.exception()
        # Neighbouring writes share a transaction; a read between two writes sees the first only.
        for writes, group in itertools.groupby(jobs, key=lambda job: job.writes):
            if open_error is not None:
                _fail_all(list(group), open_error)
            elif writes:
                _run_writes(self._db.result(), list(group))
            else:
                _run_reads(self._db.result(), list(group))


# A function and not a method: a finalizer that refers to the journal would keep it alive.
def _close_connection(connection: "Future[sqlite3.Connection]") -> None:
    if connection.done() and not connection.cancelled() and connection.exception() is None:
        connection.result().close()


def _run_reads(db: sqlite3.Connection, jobs: Sequence[_Job[Any]]) -> None:
    for job in jobs:
        try:
            result = job.work(db)
        except BaseException as error:  # raised in the thread that waits
            job.future.set_exception(_typed(error))
        else:
            job.future.set_result(result)


def _run_writes(db: sqlite3.Connection, jobs: Sequence[_Job[Any]]) -> None:
    """Run all jobs in one transaction; a job that raises is rolled back alone."""
    outcomes: list[tuple[Any, BaseException | None]] = []
    try:
        # IMMEDIATE takes the write lock now: a transaction that starts with a read could fail
        # later with SQLITE_BUSY, without waiting for the other process.
        db.execute("BEGIN IMMEDIATE")
        outcomes.extend(_attempt(db, job) for job in jobs)
        db.execute("COMMIT")
    except sqlite3.Error as error:
        if db.in_transaction:
            db.execute("ROLLBACK")
        _fail_all(jobs, error)
        return
    # Only now, after COMMIT, may a caller learn that its work is on disk.
    for job, (result, failure) in zip(jobs, outcomes, strict=True):
        if failure is None:
            job.future.set_result(result)
        else:
            job.future.set_exception(_typed(failure))


def _attempt(db: sqlite3.Connection, job: _Job[Any]) -> tuple[Any, BaseException | None]:
    db.execute("SAVEPOINT job")
    try:
        result = job.work(db)
    except BaseException as error:  # raised in the thread that waits
        if not db.in_transaction:
            # A full disk ends the whole transaction, including the work of the other jobs.
            raise sqlite3.OperationalError(str(error)) from error
        db.execute("ROLLBACK TO job")
        db.execute("RELEASE job")
        return None, error
    db.execute("RELEASE job")
    return result, None


def _fail_all(jobs: Sequence[_Job[Any]], error: BaseException) -> None:
    for job in jobs:
        job.future.set_exception(_typed(error))


def _typed(error: BaseException) -> BaseException:
    """Convert a database error; one object per caller, because each adds its own traceback."""
    if isinstance(error, StoreConfigurationError):
        return StoreConfigurationError(error.message, code=error.code)
    if not isinstance(error, sqlite3.Error):
        return error
    hint = "nothing was logged; check the disk and its permissions, then run again"
    if "locked" in str(error):
        hint = f"another process locked it for {BUSY_SECONDS:.0f} s; run again when it is done"
    elif "malformed" in str(error) or "not a database" in str(error):
        hint = "the file is damaged; `memguard doctor --repair` keeps the rows that can be read"
    typed = ReceiptError(
        f"the receipt log failed: {str(error)!r}; {hint}", code=ErrorCode.RECEIPT_FAILED
    )
    typed.__cause__ = error
    return typed


def _closed(path: Path | None, reason: str) -> StoreConfigurationError:
    where = ":memory:" if path is None else str(path)
    return StoreConfigurationError(
        f"the receipt log {where!r} {reason}; open it again with Journal.open",
        code=ErrorCode.STORE_CLOSED,
    )
