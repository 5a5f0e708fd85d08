"""`python -m memguard.testing.server`: the loopback server as a process of its own."""

import argparse
import importlib
import sys
import threading
from collections.abc import Sequence
from typing import Any

from memguard.testing.replies import default_answer
from memguard.testing.server import LoopbackModelServer

_MODES = ("yes", "refused", "ignored")


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until interrupted; prints the base URL on the first line."""
    options = _parser().parse_args(argv)
    server = LoopbackModelServer(
        _named(options.answer) if options.answer else default_answer,
        port=options.port,
        latency=options.latency / 1_000,
        n=options.n,
        logprobs=options.logprobs,
        json_schema=options.json_schema,
        refuses=options.refuse,
        api_key=options.api_key,
    )
    with server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


def _named(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m memguard.testing.server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one")
    parser.add_argument("--latency", type=float, default=0.0, help="milliseconds per reply")
    parser.add_argument("--answer", help="module:function that answers a request")
    parser.add_argument("--api-key", help="the only key that is let in")
    parser.add_argument("--refuse", action="append", default=[], help="a setting answered with 400")
    for name in ("n", "logprobs", "json-schema"):
        parser.add_argument(f"--{name}", choices=_MODES, default="yes")
    return parser
