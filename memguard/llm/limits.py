"""State of a model that a process shares over threads and event loops.

`Limiter` bounds the requests to one model that are in flight. LangGraph's `max_concurrency` applies
per graph level, not per process, and the primitives of `asyncio` belong to one loop. The limiter is
a lock that is never held across an await, and a queue of futures, each resolved on its own loop.
`ModelState` adds the settings that the model has refused.
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass


@dataclass(eq=False, slots=True)
class _Waiter:
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[None]"
    limit: int


class Limiter:
    """First come, first served; one request at a time until the model has answered once.

    Because of the rule for the first contact, a wrong key costs one request. The requests that wait
    meanwhile learn of the failure before they send anything.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiters: deque[_Waiter] = deque()
        self.in_flight = 0
        """The number of slots in use."""
        self.high_water = 0
        """The highest number of slots that were in use at once."""
        self.has_contact = False
        """Whether the model has answered in this process."""

    def record_contact(self) -> None:
        """Note that the model answers, and admit requests up to their limits from now on."""
        with self._lock:
            if self.has_contact:
                return
            self.has_contact = True
            granted = self._grant()
        self._wake(granted)

    @asynccontextmanager
    async def slot(self, limit: int) -> AsyncGenerator[None]:
        """Use one of `limit` slots.

        Args:
            limit: The maximum number of requests in flight when this one starts, at least 1.
        """
        await self._acquire(limit)
        try:
            yield
        finally:
            self._release()

    async def _acquire(self, limit: int) -> None:
        with self._lock:
            # Not past those who wait, even if their limits are narrower.
            if not self._waiters and self._has_room(limit):
                self._take()
                return
            loop = asyncio.get_running_loop()
            waiter = _Waiter(loop, loop.create_future(), limit)
            self._waiters.append(waiter)
        try:
            await waiter.future
        except BaseException:
            self._abandon(waiter)
            raise

    def _abandon(self, waiter: _Waiter) -> None:
        """Remove a cancelled waiter, or return the slot that it was granted meanwhile."""
        with self._lock:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            else:
                self.in_flight -= 1
            # The next waiter may have a wider limit than the one that was at the head of the queue.
            granted = self._grant()
        self._wake(granted)

    def _release(self) -> None:
        with self._lock:
            self.in_flight -= 1
            granted = self._grant()
        self._wake(granted)

    def _has_room(self, limit: int) -> bool:
        return self.in_flight < (limit if self.has_contact else 1)

    def _take(self) -> None:
        self.in_flight += 1
        self.high_water = max(self.high_water, self.in_flight)

    def _grant(self) -> list[_Waiter]:
        """Take slots for the head of the queue. The caller has the lock."""
        granted: list[_Waiter] = []
        while self._waiters and self._has_room(self._waiters[0].limit):
            waiter = self._waiters.popleft()
            if waiter.loop.is_closed():
                continue  # its caller ended with the loop
            self._take()
            granted.append(waiter)
        return granted

    def _wake(self, waiters: list[_Waiter]) -> None:
        for waiter in waiters:
            try:
                waiter.loop.call_soon_threadsafe(_resolve, waiter.future)
            except RuntimeError:  # the loop was closed since the slot was granted
                self._release()


def _resolve(future: "asyncio.Future[None]") -> None:
    # A cancelled waiter is done already; it returns its slot itself.
    if not future.done():
        future.set_result(None)


class ModelState:
    """What a process knows of one model at one address; shared by all users of the model."""

    def __init__(self) -> None:
        self.limiter = Limiter()
        """Limits the requests in flight."""
        self._lock = threading.Lock()
        self._refused: dict[str, str] = {}

    @property
    def refused(self) -> frozenset[str]:
        """Settings that are no longer sent, because the model refused them."""
        return frozenset(self._refused)

    def refuse(self, setting: str, *, note: str) -> None:
        """Record a setting that the model does not take, with a note for receipts."""
        with self._lock:
            self._refused.setdefault(setting, note)

    def notes(self, settings: frozenset[str]) -> tuple[str, ...]:
        """The notes on refused settings among `settings`."""
        return tuple(note for name, note in sorted(self._refused.items()) if name in settings)


_LOCK = threading.Lock()
_STATES: dict[str, ModelState] = {}


def state_of_model(key: str) -> ModelState:
    """The state of the model with this key; see `Model.key`."""
    with _LOCK:
        if key not in _STATES:
            _STATES[key] = ModelState()
        return _STATES[key]
