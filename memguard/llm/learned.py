"""What this process has learned about a model: its limiter, and the settings it refuses."""

import threading

from memguard.llm.limits import Limiter


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
