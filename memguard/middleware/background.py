"""Writes that go on after the answer is out: in order within a thread, and never lost at exit."""

import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from memguard import compat
from memguard.portal import run_sync
from memguard.schema.write import WriteReport

_LOG = logging.getLogger("memguard")
_WORKERS = 4
"""Threads' writes under way at once; each waits for models and the disk most of the time."""

Work = Callable[[], Coroutine[Any, Any, WriteReport]]


class Background:
    """Runs writes on memguard's own loop, which outlives the event loops of callers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._under_way: set[Future[WriteReport]] = set()
        self._last: dict[str, Future[WriteReport]] = {}
        self._done: list[Future[WriteReport]] = []

    def submit(self, work: Work, *, thread: str) -> None:
        """Begin a write, after those of the same thread: a turn is then read once."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="memguard-background")
                compat.run_before_threads_end(self._finish)
            # Pools start jobs in order, so what is waited for has always been started.
            earlier = self._last.get(thread) if thread else None
            future = self._pool.submit(_run, work, earlier=earlier)
            self._under_way.add(future)
            if thread:
                self._last[thread] = future
        future.add_done_callback(lambda done: self._note(done, thread=thread))

    def drain(self, timeout: float | None = None) -> tuple[WriteReport, ...]:
        """Wait until nothing is under way.

        Args:
            timeout: Seconds to wait at most; what is under way then goes on.

        Returns:
            The reports since the last call, oldest first.

        Raises:
            MemguardError: The first failure that no report could tell of.
            TimeoutError: If something is still under way.
        """
        with self._lock:
            pending = set(self._under_way)
        if wait(pending, timeout=timeout).not_done:
            msg = f"background writes are still under way after {timeout} s; drain again"
            raise TimeoutError(msg)
        with self._lock:
            done, self._done = self._done, []
        errors = [error for future in done if (error := future.exception()) is not None]
        if errors:
            raise errors[0]
        return tuple(future.result() for future in done)

    def _note(self, done: "Future[WriteReport]", *, thread: str) -> None:
        with self._lock:
            self._under_way.discard(done)
            self._done.append(done)
            if thread and self._last.get(thread) is done:
                del self._last[thread]
        error = done.exception()
        if error is not None:
            _LOG.error("a background write failed: %s", error)

    def _finish(self) -> None:
        with self._lock:
            pending = set(self._under_way)
        wait(pending)


def _run(work: Work, *, earlier: "Future[WriteReport] | None") -> WriteReport:
    if earlier is not None:
        earlier.exception()  # waits; its failure is its own
    return run_sync(work())
