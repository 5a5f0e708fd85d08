"""The meters of the runs in progress, found by run id.

The branches of a run are separate tasks, perhaps in separate threads, that share only its id.
"""

import threading
from collections import OrderedDict

from memguard.llm.budget import Meter
from memguard.schema.usage import Budget

_MAX_OPEN = 10_000
"""Limit of open meters; those of runs in which a node raised are never closed."""


class Meters:
    """One meter per run, each with the same budget."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._lock = threading.Lock()
        self._open: OrderedDict[str, Meter] = OrderedDict()

    def open(self, run_id: str) -> Meter:
        """Start the meter of a run."""
        return self.of(run_id)

    def of(self, run_id: str) -> Meter:
        """The meter of a run; a new one for a run that started in another process."""
        with self._lock:
            meter = self._open.get(run_id)
            if meter is None:
                meter = self._open[run_id] = Meter(self._budget)
                if len(self._open) > _MAX_OPEN:
                    self._open.popitem(last=False)
            return meter

    def close(self, run_id: str) -> Meter:
        """End a run and hand over its meter."""
        meter = self.of(run_id)
        with self._lock:
            self._open.pop(run_id, None)
        return meter
