"""What our call layer adds: K answers over one call, and a node's sync half over a plain one.

Run with `python -m memguard.bench.calls`. Everything is interleaved in one run, because the speed
of a shared machine drifts; figures are medians and ratios of medians.
"""

import argparse
import asyncio
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypedDict

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from langgraph.graph import START, StateGraph

from memguard.llm.models import Model, resolve_model
from memguard.llm.parsing import parse_score
from memguard.llm.sample import sample
from memguard.portal import dual, run_sync

PROMPT = [HumanMessage("How well does the conversation support the memory?")]
K = 5
TARGETS = {"K in one request": 1.15, "K concurrent requests": 1.3}
"""Wall time over that of one call, at 50 ms server latency, on a machine with idle cores.

`K bare ainvoke` shows the floor: what LangChain and the SDK cost for K calls without us.
"""


async def measure_calls(rounds: int, able: str, unable: str) -> dict[str, float]:
    """Median seconds of each way to call, by servers with and without `n`."""
    one = resolve_model("openai:one", base_url=able)
    together = resolve_model("openai:n", base_url=able)
    apart = resolve_model("openai:m", base_url=unable)
    bare, bare_apart = _bare(able), _bare(unable)
    ways: dict[str, Callable[[], Awaitable[Any]]] = {
        "bare ainvoke": lambda: bare.ainvoke(PROMPT),
        "one call": lambda: _draw(one, 1),
        "K in one request": lambda: _draw(together, K),
        "K concurrent requests": lambda: _draw(apart, K),
        "K bare ainvoke": lambda: asyncio.gather(*(bare_apart.ainvoke(PROMPT) for _ in range(K))),
    }
    for warm_up in ways.values():
        await warm_up()
        await warm_up()
    return await _interleaved(ways, rounds)


def _bare(url: str) -> ChatOpenAI:
    return ChatOpenAI(model="bare", base_url=url, api_key=lambda: "test-key")


@contextmanager
def _server(latency: float, *more: str) -> Generator[str]:
    """A loopback server in a process of its own, so that it takes no time from the client."""
    command = [sys.executable, "-m", "memguard.testing.server", "--latency", f"{latency}", *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            yield process.stdout.readline().strip() if process.stdout else ""
        finally:
            process.terminate()


async def _draw(model: Model, k: int) -> None:
    await sample(model, PROMPT, parse_score, k=k)


async def _interleaved(
    ways: Mapping[str, Callable[[], Awaitable[Any]]], rounds: int
) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in ways}
    names, order = list(ways), random.Random(7)
    for _ in range(rounds):
        # Shuffled, so that no way always runs in the wake of the same other one.
        order.shuffle(names)
        for name in names:
            began = time.perf_counter()
            await ways[name]()
            times[name].append(time.perf_counter() - began)
    return {name: statistics.median(taken) for name, taken in times.items()}


class _State(TypedDict, total=False):
    x: int


async def _node(state: _State) -> dict[str, Any]:
    return {"x": state.get("x", 0) + 1}


def _plain(state: _State) -> dict[str, Any]:
    return {"x": state.get("x", 0) + 1}


def _hop(state: _State) -> dict[str, Any]:
    return run_sync(_node(state))


NODES = 6
"""Nodes in a row."""


def measure_nodes(rounds: int) -> dict[str, float]:
    """Median seconds of one run of a graph of six nodes, by the kind of node."""
    kinds: dict[str, Any] = {
        "plain": (_plain, _node),
        "dual": (dual(_node), dual(_node)),
        "RunnableLambda": (RunnableLambda(_hop, _node), RunnableLambda(_hop, _node)),
    }
    graphs = {name: (_chain(sync), _chain(both)) for name, (sync, both) in kinds.items()}
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, (sync, _) in graphs.items():
            began = time.perf_counter()
            sync.invoke({"x": 0})
            times.setdefault(f"{name}, invoke", []).append(time.perf_counter() - began)
        asyncio.run(_once({name: both for name, (_, both) in graphs.items()}, times))
    return {name: statistics.median(taken) for name, taken in times.items()}


async def _once(graphs: Mapping[str, Any], times: dict[str, list[float]]) -> None:
    for name, graph in graphs.items():
        await graph.ainvoke({"x": 0})
        began = time.perf_counter()
        await graph.ainvoke({"x": 0})
        times.setdefault(f"{name}, ainvoke", []).append(time.perf_counter() - began)


def _chain(node: Any) -> Any:
    builder = StateGraph(_State)
    for i in range(NODES):
        builder.add_node(f"n{i}", node)
        builder.add_edge(START if i == 0 else f"n{i - 1}", f"n{i}")
    return builder.compile()


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m memguard.bench.calls", description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--latency", type=float, default=50.0, help="milliseconds per request")
    options = parser.parse_args(argv)
    latency = options.latency
    with _server(latency) as able, _server(latency, "--n", "ignored") as unable:
        calls = asyncio.run(measure_calls(options.rounds, able, unable))
    base = calls["one call"]
    print(f"one call at {options.latency:g} ms server latency, K = {K}, {options.rounds} rounds")
    for name, taken in calls.items():
        target = f"  (target <= {TARGETS[name]:g})" if name in TARGETS else ""
        print(f"  {name:24} {taken * 1e3:8.2f} ms   x {taken / base:.3f}{target}")
    nodes = measure_nodes(options.rounds)
    print(f"a graph of {NODES} nodes that do nothing")
    for name, taken in sorted(nodes.items()):
        plain = nodes["plain, ainvoke" if name.endswith("ainvoke") else "plain, invoke"]
        print(f"  {name:24} {taken * 1e3:8.2f} ms   + {(taken - plain) * 1e3 / NODES:.3f} ms/node")


if __name__ == "__main__":
    main()
