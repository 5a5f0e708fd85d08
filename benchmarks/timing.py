"""What the speed benchmarks share: a model server in a process of its own, and CPU timing."""

import gc
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any


@contextmanager
def model_server(*options: str, latency: float = 0.0) -> Generator[str]:
    """Run the loopback model, and yield its URL.

    Args:
        options: Further options of `python -m memguard.testing.server`.
        latency: Milliseconds until each answer.
    """
    command = [sys.executable, "-m", "memguard.testing.server", "--latency", f"{latency}", *options]
    # Another process, so that the server's CPU time is not measured with the client's.
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own module
        if process.stdout is None:
            msg = "the model server has no output"
            raise AssertionError(msg)
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


async def cpu_milliseconds(work: Callable[[], Awaitable[Any]], *, times: int) -> float:
    """Mean CPU time of one call of `work`, in milliseconds.

    Args:
        work: What to measure.
        times: How often to call it.
    """
    # A collection that earlier work made due would be charged to this one.
    gc.collect()
    start = time.process_time()
    for _ in range(times):
        await work()
    return (time.process_time() - start) / times * 1000
