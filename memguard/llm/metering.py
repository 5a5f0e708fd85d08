"""Which meter counts the calls made here: the run sets it, the methods find it."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from memguard.llm.budget import Meter

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
