"""`python -m memguard.testing.server`: run the loopback server as a separate process."""

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
    """Serve until interrupted. The first line of the output is the base URL."""
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
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 picks a free one")
    parser.add_argument("--latency", type=float, default=0.0, help="milliseconds before each reply")
    parser.add_argument("--answer", help="function that answers a request, as module:function")
    parser.add_argument("--api-key", help="the only key that is accepted")
    parser.add_argument(
        "--refuse",
        action="append",
        default=[],
        help="a setting that is answered with 400; repeatable",
    )
    for name in ("n", "logprobs", "json-schema"):
        parser.add_argument(f"--{name}", choices=_MODES, default="yes")
    return parser
