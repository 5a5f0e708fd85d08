"""Time to live: the settings, and the thread that removes what has expired."""

import logging
import threading
from collections.abc import Callable, Mapping

from langgraph.store.base import TTLConfig

from memguard.errors import ErrorCode, InvalidInputError, MemguardError
from memguard.stores.chroma.plan import check_ttl

logger = logging.getLogger(__name__)

DEFAULT_SWEEP_MINUTES = 5.0
_KEYS = ("refresh_on_read", "omit_expired", "default_ttl", "sweep_interval_minutes")
_SECONDS_PER_MINUTE = 60.0


def check_ttl_config(config: Mapping[str, object] | TTLConfig | None) -> TTLConfig | None:
    """TTL settings with their defaults; `omit_expired` is on unless switched off.

    Raises:
        InvalidInputError: If a setting is unknown or cannot be used.
    """
    if config is None:
        return None
    unknown = sorted(set(config) - set(_KEYS))
    if unknown:
        msg = f"{unknown!r} are no TTL settings. Use {', '.join(_KEYS)}"
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    interval = check_ttl(config.get("sweep_interval_minutes"))
    checked = TTLConfig(
        refresh_on_read=bool(config.get("refresh_on_read", True)),
        omit_expired=bool(config.get("omit_expired", True)),
        default_ttl=check_ttl(config.get("default_ttl")),
        sweep_interval_minutes=None,
    )
    # LangGraph types it as a whole number of minutes; a fraction is useful in tests and harmless.
    checked["sweep_interval_minutes"] = interval  # pyright: ignore[reportGeneralTypeIssues]
    return checked


class Sweeper:
    """A daemon thread that sweeps at an interval until stopped.

    Args:
        sweep: Removes what has expired and says how many.
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
        """Whether the thread is alive and has not been told to stop."""
        return self._thread.is_alive() and not self._stopped.is_set()

    def stop(self, *, timeout: float | None = None) -> bool:
        """Tell the thread to end and wait for it; `False` if it did not end in time."""
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
