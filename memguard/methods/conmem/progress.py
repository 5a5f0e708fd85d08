"""Custom stream events: where a case is, for progress bars and Studio.

The steps of a probe run in a graph within the graph: stream with `subgraphs=True` to see them.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from langgraph.config import get_stream_writer

from memguard.schema.conmem import ProbeRole


@contextmanager
def step(name: str, *, case: str, role: ProbeRole | None = None) -> Generator[dict[str, Any]]:
    """Say that a step begins, and that it ended, with what the block puts into the event.

    `{"memguard": "conmem", "case": ..., "step": ..., "role": ..., "state": "begun" | "done"}`
    """
    write = get_stream_writer()
    event: dict[str, Any] = {"memguard": "conmem", "case": case, "step": name}
    if role is not None:
        event["role"] = role
    write({**event, "state": "begun"})
    found: dict[str, Any] = {}
    yield found
    write({**event, "state": "done", **found})
