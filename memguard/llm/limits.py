"""Limits on model calls: concurrent requests to a model, and the budget of a run.

A limiter is shared by all threads and event loops of the process. LangGraph's `max_concurrency`
applies per graph level, not per process, and the primitives of `asyncio` belong to one loop. So the
limiter is a lock that is never held across an await, and a queue of futures, each resolved on its
own loop. A meter counts what one run spends, and refuses the request that would exceed its budget.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from memguard.errors import BudgetExhaustedError, ErrorCode, ModelConfigurationError
from memguard.schema.receipt import Budget, Usage


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
        with self._changing():
            self.has_contact = True

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
        # The next waiter may have a wider limit than the one that was at the head of the queue.
        with self._changing():
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            else:
                self.in_flight -= 1

    def _release(self) -> None:
        with self._changing():
            self.in_flight -= 1

    @contextmanager
    def _changing(self) -> Generator[None]:
        """Hold the lock for a change, then wake those who have a slot after it."""
        with self._lock:
            yield
            granted = self._grant()
        for waiter in granted:
            try:
                waiter.loop.call_soon_threadsafe(_resolve, waiter.future)
            except RuntimeError:  # the loop was closed since the slot was granted
                self._release()

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
        return _STATES.setdefault(key, ModelState())


# -- the budget of a run ----------------------------------------------------------------------


class Meter:
    """The spending of one run; safe to share between threads and event loops.

    Every request counts against `Budget.calls` when it starts, retries and repairs included, so
    concurrent requests cannot exceed the limit. Tokens are known only afterwards: requests in
    flight may exceed a token limit.
    """

    def __init__(
        self,
        budget: Budget | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        spent: Usage | None = None,
        elapsed: float = 0.0,
        parent: "Meter | None" = None,
    ) -> None:
        """Start counting.

        `spent` and `elapsed` are the usage and the seconds of an earlier part of the same run.
        `parent` counts the same requests, and its limits apply as well.
        """
        self._budget = budget or Budget()
        self._clock = clock
        self._start = clock() - elapsed
        self._parent = parent
        self._lock = threading.Lock()
        self._usage = spent or Usage()
        self._in_flight = 0
        self._failure: ModelConfigurationError | None = None

    @property
    def usage(self) -> Usage:
        """The usage so far, without requests in flight."""
        return self._usage

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the nearest time limit of this meter and its parents, or `None`."""
        seconds = self._budget.seconds
        run_limit = None if seconds is None else max(0.0, seconds - self._elapsed)
        parent_limit = None if self._parent is None else self._parent.seconds_left
        return min((s for s in (run_limit, parent_limit) if s is not None), default=None)

    def scope(self) -> "Meter":
        """A meter for one part of the run, which also counts on this meter."""
        return Meter(clock=self._clock, parent=self)

    def begin(self) -> None:
        """Reserve one request. Every `begin` is followed by one `end`.

        Raises:
            ModelConfigurationError: If a request of the run has failed permanently.
            BudgetExhaustedError: If the request would start beyond a limit.
        """
        if self._parent is not None:
            self._parent.begin()
        try:
            # Check and reserve under one lock, or two threads could both take the last request.
            with self._lock:
                self._check_limits()
                self._in_flight += 1
        except BaseException:
            if self._parent is not None:
                self._parent.end(Usage())
            raise

    def end(self, usage: Usage) -> None:
        """Return the reservation and count the usage of the request."""
        with self._lock:
            self._in_flight -= 1
            self._usage = self._usage + usage
        if self._parent is not None:
            self._parent.end(usage)

    def fail(self, error: ModelConfigurationError) -> None:
        """Record a permanent failure: later requests of the run raise it without being sent."""
        with self._lock:
            self._failure = self._failure or error
        if self._parent is not None:
            self._parent.fail(error)

    @property
    def _elapsed(self) -> float:
        return self._clock() - self._start

    def _check_limits(self) -> None:
        if self._failure is not None:
            # A new error each time: one instance raised in many tasks mixes tracebacks.
            raise ModelConfigurationError(self._failure.message, code=self._failure.code)
        calls, tokens, seconds = self._budget.calls, self._budget.tokens, self._budget.seconds
        # Attempts and not answers: a request that failed was sent as well.
        used = self._usage.attempts + self._in_flight
        if calls is not None and used >= calls:
            raise _exhausted(quantity="calls", limit=calls, used=used)
        if tokens is not None and self._usage.tokens >= tokens:
            raise _exhausted(quantity="tokens", limit=tokens, used=self._usage.tokens)
        if seconds is not None and self._elapsed >= seconds:
            raise out_of_time(seconds)


def out_of_time(seconds: float) -> BudgetExhaustedError:
    """The error for a run that has reached its time limit."""
    return _exhausted(quantity="seconds", limit=seconds, used=seconds)


def _exhausted(*, quantity: str, limit: float, used: float) -> BudgetExhaustedError:
    msg = (
        f"the run's budget of {limit:g} {quantity} is spent ({used:g} used or in flight); "
        f"finished work is kept, and a run with a larger Budget({quantity}=...) continues from it"
    )
    return BudgetExhaustedError(msg, code=ErrorCode.BUDGET_EXHAUSTED)


# Nodes and judges count on the meter of their run without a parameter through every call. LangGraph
# copies context variables into the tasks that it starts.
_METER: ContextVar[Meter | None] = ContextVar("memguard_meter", default=None)


def current_meter() -> Meter:
    """The meter of the run in progress, or a new one without limits."""
    return _METER.get() or Meter()


@contextmanager
def use_meter(meter: Meter) -> Generator[Meter]:
    """Count every model call inside the block, and in tasks started there, on `meter`."""
    token = _METER.set(meter)
    try:
        yield meter
    finally:
        _METER.reset(token)
