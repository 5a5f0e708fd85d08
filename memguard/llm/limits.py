"""How many requests to one model may be in flight, over all threads and event loops.

LangGraph's `max_concurrency` holds per graph level, not per process, and the primitives of
`asyncio` belong to one loop. This limiter is a lock that is never held across an await, and a
queue of futures, each woken on its own loop.
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

    The first-contact rule makes a wrong key cost one request and not as many as are waiting:
    whoever waits learns of the failure before it sends anything.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiters: deque[_Waiter] = deque()
        self._in_flight = 0
        self._high_water = 0
        self._contact = False

    @property
    def in_flight(self) -> int:
        """Slots taken now."""
        return self._in_flight

    @property
    def high_water(self) -> int:
        """The most slots ever taken at once."""
        return self._high_water

    @property
    def has_contact(self) -> bool:
        """Whether the model has answered in this process."""
        return self._contact

    def made_contact(self) -> None:
        """Note that the model can be used; opens the limiter to its full width."""
        with self._lock:
            if self._contact:
                return
            self._contact = True
            woken = self._grant()
        self._wake(woken)

    @asynccontextmanager
    async def slot(self, limit: int) -> AsyncGenerator[None]:
        """Hold one of `limit` slots.

        Args:
            limit: The most requests that may be in flight when this one begins, at least 1.
        """
        await self._acquire(limit)
        try:
            yield
        finally:
            self._release()

    async def _acquire(self, limit: int) -> None:
        with self._lock:
            if not self._waiters and self._has_room(limit):
                self._take()
                return
            loop = asyncio.get_running_loop()
            waiter = _Waiter(loop, loop.create_future(), limit)
            self._waiters.append(waiter)
        try:
            await waiter.future
        except BaseException:
            self._give_up(waiter)
            raise

    def _give_up(self, waiter: _Waiter) -> None:
        with self._lock:
            try:
                self._waiters.remove(waiter)
            except ValueError:
                granted = True  # the slot was handed over and the cancellation crossed it
            else:
                granted = False
        if granted:
            self._release()
        else:
            # The one behind may have a wider limit than the one that left the head of the queue.
            with self._lock:
                woken = self._grant()
            self._wake(woken)

    def _release(self) -> None:
        with self._lock:
            self._in_flight -= 1
            woken = self._grant()
        self._wake(woken)

    def _has_room(self, limit: int) -> bool:
        return self._in_flight < (limit if self._contact else 1)

    def _take(self) -> None:
        self._in_flight += 1
        self._high_water = max(self._high_water, self._in_flight)

    def _grant(self) -> list[_Waiter]:
        """Take slots for those at the head of the queue. Called with the lock held."""
        granted: list[_Waiter] = []
        while self._waiters and self._has_room(self._waiters[0].limit):
            waiter = self._waiters.popleft()
            if waiter.loop.is_closed():
                continue  # nobody is left there to use the slot
            self._take()
            granted.append(waiter)
        return granted

    def _wake(self, waiters: list[_Waiter]) -> None:
        for waiter in waiters:
            try:
                waiter.loop.call_soon_threadsafe(_resolve, waiter.future)
            except RuntimeError:  # the loop was closed in between
                self._release()


def _resolve(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


class Learned:
    """Facts about one model at one address; shared by everything in the process that uses it."""

    def __init__(self) -> None:
        self.limiter = Limiter()
        """The one limit on requests in flight."""
        self._lock = threading.Lock()
        self._refused: dict[str, str] = {}

    @property
    def refused(self) -> frozenset[str]:
        """Settings that are no longer sent, because the model answered that it takes none."""
        return frozenset(self._refused)

    def refuse(self, setting: str, *, note: str) -> None:
        """Remember a setting that the model does not take, with a note for receipts."""
        with self._lock:
            self._refused.setdefault(setting, note)

    def notes(self, settings: frozenset[str]) -> tuple[str, ...]:
        """The notes on those of the settings that were left out."""
        return tuple(note for name, note in sorted(self._refused.items()) if name in settings)


_LOCK = threading.Lock()
_LEARNED: dict[str, Learned] = {}


def learned_about(key: str) -> Learned:
    """What is known about the model with this key; see `Model.key`."""
    known = _LEARNED.get(key)
    if known is not None:
        return known
    with _LOCK:
        return _LEARNED.setdefault(key, Learned())
