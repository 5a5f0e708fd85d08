"""Counts what a run spends, and stops it before the request that would begin beyond a limit."""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

from memguard.errors import BudgetExhaustedError, ErrorCode, ModelConfigurationError
from memguard.schema.usage import Budget, Usage

# Values never change, so one of each serves all meters.
_NO_LIMITS = Budget()
_NOTHING = Usage()


class Meter:
    """The spending of one run; safe to share between threads and event loops.

    Every request sent counts against `Budget.calls`, retries and repairs included, and a request
    in flight counts from its beginning: concurrency cannot overrun the limit. Tokens are known
    only afterwards, so requests already in flight may overrun a token limit.
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
        """Begin counting.

        Args:
            budget: The most the run may spend; no limit when left out.
            clock: Seconds that never run backwards.
            spent: What an earlier part of the same run spent.
            elapsed: Seconds the earlier part took.
            parent: A meter that counts everything too, and whose limits hold as well.
        """
        self._budget = budget or _NO_LIMITS
        self._clock = clock
        self._began = clock() - elapsed
        self._parent = parent
        self._lock = threading.Lock()
        self._usage = spent or _NOTHING
        self._in_flight = 0
        self._failure: ModelConfigurationError | None = None

    @property
    def usage(self) -> Usage:
        """What was spent so far; requests in flight are not yet in it."""
        return self._usage

    @property
    def remaining(self) -> Budget:
        """What may still be spent, requests in flight taken off; `None` where no limit is set."""
        with self._lock:
            calls, tokens, seconds = self._budget.calls, self._budget.tokens, self._budget.seconds
            used = self._usage.attempts + self._in_flight
            return Budget(
                calls=None if calls is None else max(0, calls - used),
                tokens=None if tokens is None else max(0, tokens - self._usage.tokens),
                seconds=None if seconds is None else max(0.0, seconds - self._elapsed),
            )

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the nearest time limit, or `None` without one."""
        seconds = self._budget.seconds
        own_seconds = None if seconds is None else max(0.0, seconds - self._elapsed)
        parent_seconds = None if self._parent is None else self._parent.seconds_left
        limits = [limit for limit in (own_seconds, parent_seconds) if limit is not None]
        return min(limits, default=None)

    def scope(self) -> "Meter":
        """A meter for one piece of the run: counts for itself and for this meter."""
        return Meter(clock=self._clock, parent=self)

    def begin(self) -> None:
        """Reserve one request. Every `begin` is followed by one `end`.

        Raises:
            ModelConfigurationError: If the run met a failure that will not heal.
            BudgetExhaustedError: If the request would begin beyond a limit.
        """
        if self._parent is not None:
            self._parent.begin()
        try:
            self._reserve()
        except BaseException:
            if self._parent is not None:
                self._parent.end(Usage())
            raise

    def _reserve(self) -> None:
        with self._lock:
            if self._failure is not None:
                # A fresh error each time: one instance raised in many tasks mixes tracebacks.
                raise ModelConfigurationError(self._failure.message, code=self._failure.code)
            self._check_limits()
            self._in_flight += 1

    def end(self, usage: Usage) -> None:
        """Give the reservation back and count what the request spent."""
        with self._lock:
            self._in_flight -= 1
            self._usage = self._usage + usage
        if self._parent is not None:
            self._parent.end(usage)

    def fail(self, error: ModelConfigurationError) -> None:
        """Remember a failure that will not heal: later requests of the run raise it at once."""
        with self._lock:
            self._failure = self._failure or error
        if self._parent is not None:
            self._parent.fail(error)

    @property
    def _elapsed(self) -> float:
        return self._clock() - self._began

    def _check_limits(self) -> None:
        calls, tokens, seconds = self._budget.calls, self._budget.tokens, self._budget.seconds
        used = self._usage.attempts + self._in_flight
        if calls is not None and used >= calls:
            raise _exhausted(quantity="calls", limit=calls, spent=used)
        if tokens is not None and self._usage.tokens >= tokens:
            raise _exhausted(quantity="tokens", limit=tokens, spent=self._usage.tokens)
        if seconds is not None and self._elapsed >= seconds:
            raise out_of_time(seconds)


def out_of_time(seconds: float) -> BudgetExhaustedError:
    """The error for a run whose time is up."""
    return _exhausted(quantity="seconds", limit=seconds, spent=seconds)


def _exhausted(*, quantity: str, limit: float, spent: float) -> BudgetExhaustedError:
    msg = (
        f"the run's budget of {limit:g} {quantity} is spent ({spent:g} used or in flight); "
        f"what is done is kept, and a run with a larger Budget({quantity}=...) goes on from there"
    )
    return BudgetExhaustedError(msg, code=ErrorCode.BUDGET_EXHAUSTED)


_METER: ContextVar[Meter | None] = ContextVar("memguard_meter", default=None)


def current_meter() -> Meter:
    """The meter of the run in progress, or a new one without limits."""
    return _METER.get() or Meter()


@contextmanager
def use_meter(meter: Meter) -> Generator[Meter]:
    """Count every model call made inside the block, and in tasks begun there, on `meter`."""
    token = _METER.set(meter)
    try:
        yield meter
    finally:
        _METER.reset(token)
