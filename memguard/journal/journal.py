"""One SQLite file that holds receipts, the life of each candidate, and what was read.

Everything runs in the journal's own thread: a call from an event loop never blocks it, calls from
several loops and threads are in one order, and writes that wait together share one transaction
and so one wait for the disk. A write is on disk (`synchronous=FULL`) when its call returns.
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
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from memguard.errors import ErrorCode, ReceiptError, StoreConfigurationError
from memguard.journal.tables import BUSY_SECONDS, connect

T = TypeVar("T")

Clock = Callable[[], datetime]
"""Tells the time, with its offset."""


def utc_now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Job(Generic[T]):
    """A piece of work waiting for the journal's thread."""

    work: Callable[[sqlite3.Connection], T]
    writes: bool
    future: "Future[T]" = field(default_factory=Future)


class Journal:
    """An append-only log in one SQLite file; `ReceiptLog` and others are views of it."""

    def __init__(self, path: Path | None, *, clock: Clock = utc_now) -> None:
        """Begin to open a journal; use `open`, `aopen` or `memory` instead.

        Args:
            path: The file; `None` keeps the journal in memory.
            clock: Tells the time of events.
        """
        self._path = path
        self._clock = clock
        self._pid = os.getpid()
        self._closed = False
        self._lock = threading.Lock()
        self._waiting: deque[_Job[Any]] = deque()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="memguard-journal")
        self._db = self._thread.submit(lambda: connect(path, now=clock()))
        # A journal that nobody closed is closed when it is dropped, or when the process ends.
        weakref.finalize(self, _close_left_open, self._db)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, clock: Clock = utc_now) -> Self:
        """Open the journal at a path, making the file when there is none.

        Called inside a running event loop it does not wait: an unusable path then shows at the
        first use. `aopen` waits without blocking the loop.

        Args:
            path: The file.
            clock: Tells the time of events.

        Raises:
            StoreConfigurationError: If the file cannot be used.
        """
        journal = cls(Path(path), clock=clock)
        if not _in_event_loop():
            journal._check(journal._db.exception())
        return journal

    @classmethod
    async def aopen(cls, path: str | os.PathLike[str], *, clock: Clock = utc_now) -> Self:
        """Open the journal at a path and wait until it is usable; see `open`."""
        journal = cls(Path(path), clock=clock)
        try:
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
        """The time, in UTC."""
        return self._clock().astimezone(UTC)

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a query and wait for its result."""
        return self._submit(work, writes=False).result()

    async def aread(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a query without blocking the event loop."""
        return await asyncio.wrap_future(self._submit(work, writes=False))

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run work in one transaction: when this returns all of it is on disk, else none is.

        Raises:
            ReceiptError: If the database failed.
        """
        return self._submit(work, writes=True).result()

    async def awrite(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run work in one transaction without blocking the event loop; see `write`.

        A cancelled caller does not know whether the work was done; either all of it is or none.
        """
        return await asyncio.wrap_future(self._submit(work, writes=True))

    def close(self) -> None:
        """Finish what was begun and close the file; may be called again."""
        self._begin_close()
        self._thread.shutdown(wait=True)

    async def aclose(self) -> None:
        """Close without blocking the event loop; see `close`."""
        ended = self._begin_close()
        await asyncio.shield(asyncio.wrap_future(ended))
        self._thread.shutdown(wait=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _check(self, error: BaseException | None) -> None:
        if error is not None:
            self.close()
            raise error

    def _begin_close(self) -> "Future[None]":
        with self._lock:
            if not self._closed:
                self._closed = True
                self._ended = self._thread.submit(self._disconnect)
            return self._ended

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
            self._thread.submit(self._drain)
        return job.future

    def _drain(self) -> None:
        """Do all that waits, in order; runs in the journal's thread."""
        jobs: list[_Job[Any]] = []
        while self._waiting:
            job = self._waiting.popleft()
            if job.future.set_running_or_notify_cancel():
                jobs.append(job)
        failed = self._db.exception()
        for writes, group in itertools.groupby(jobs, key=lambda job: job.writes):
            if failed is not None:
                _fail_all(list(group), failed)
            elif writes:
                _write_together(self._db.result(), list(group))
            else:
                _read_each(self._db.result(), list(group))


def _close_left_open(opened: "Future[sqlite3.Connection]") -> None:
    if opened.done() and not opened.cancelled() and opened.exception() is None:
        opened.result().close()


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _read_each(db: sqlite3.Connection, jobs: Sequence[_Job[Any]]) -> None:
    for job in jobs:
        try:
            result = job.work(db)
        except BaseException as error:  # raised in the thread that waits
            job.future.set_exception(_typed(error))
        else:
            job.future.set_result(result)


def _write_together(db: sqlite3.Connection, jobs: Sequence[_Job[Any]]) -> None:
    """One transaction for all; work that raises is undone alone."""
    outcomes: list[tuple[Any, BaseException | None]] = []
    try:
        db.execute("BEGIN IMMEDIATE")
        outcomes.extend(_attempt(db, job) for job in jobs)
        db.execute("COMMIT")
    except sqlite3.Error as error:
        if db.in_transaction:
            db.execute("ROLLBACK")
        _fail_all(jobs, error)
        return
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
            # A full disk ends the whole transaction, the work of the others included.
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
    """A database error as ours; one object per caller, as each adds its own traceback."""
    if isinstance(error, StoreConfigurationError):
        return StoreConfigurationError(error.message, code=error.code)
    if not isinstance(error, sqlite3.Error):
        return error
    hint = "nothing of it was logged; look at the disk and its permissions, then run again"
    if "locked" in str(error):
        hint = f"another process kept it locked for {BUSY_SECONDS:.0f} s; run again when it is done"
    typed = ReceiptError(
        f"the receipt log failed: {str(error)!r}; {hint}", code=ErrorCode.RECEIPT_FAILED
    )
    typed.__cause__ = error
    return typed


def _closed(path: Path | None, what: str) -> StoreConfigurationError:
    where = ":memory:" if path is None else str(path)
    return StoreConfigurationError(
        f"the receipt log {where!r} {what}; open it again with Journal.open",
        code=ErrorCode.STORE_CLOSED,
    )
