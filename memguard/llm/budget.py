"""Counts what a run spends, and refuses the request that would start beyond a limit."""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

from memguard.errors import BudgetExhaustedError, ErrorCode, ModelConfigurationError
from memguard.schema.usage import Budget, Usage


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

        Args:
            budget: The limits of the run; none by default.
            clock: A monotonic clock in seconds.
            spent: The usage of an earlier part of the same run.
            elapsed: The duration of the earlier part, in seconds.
            parent: A meter that counts the same requests, and whose limits apply as well.
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
