"""Overhead of our call layer: K answers against one call, and dual nodes against plain ones.

Run with `python -m benchmarks.calls`. All variants are interleaved in one run, because the
speed of a shared machine drifts. Figures are medians and ratios of medians.
"""

import argparse
import asyncio
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypedDict

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from langgraph.graph import START, StateGraph

from benchmarks.timing import model_server
from memguard.llm.models import Model, resolve_model
from memguard.llm.parsing import parse_score
from memguard.llm.sample import sample
from memguard.portal import dual, run_sync

PROMPT = [HumanMessage("How well does the conversation support the memory?")]
K = 5
TARGETS = {"K in one request": 1.15, "K concurrent requests": 1.3}
"""Maximum wall time relative to one call, at 50 ms server latency, on a machine with idle cores.

Without us, LangChain and the SDK take as long as `K bare ainvoke` for K calls.
"""


async def measure_calls(rounds: int, able: str, unable: str) -> dict[str, float]:
    """Median seconds of each way to call a model.

    Args:
        rounds: How often to measure each.
        able: URL of a server that supports `n`, several answers to one request.
        unable: URL of a server that ignores `n`.
    """
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
    # Twice: the first call opens the connection and learns whether the server supports `n`.
    for call in ways.values():
        await call()
        await call()
    return await _interleaved(ways, rounds)


# LangChain's client alone, the reference for what our layer adds.
def _bare(url: str) -> ChatOpenAI:
    return ChatOpenAI(model="bare", base_url=url, api_key=lambda: "test-key")


async def _draw(model: Model, k: int) -> None:
    await sample(model, PROMPT, parse_score, k=k)


async def _interleaved(
    ways: Mapping[str, Callable[[], Awaitable[Any]]], rounds: int
) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in ways}
    names, order = list(ways), random.Random(7)
    for _ in range(rounds):
        # Shuffled, so that no variant always runs after the same other one.
        order.shuffle(names)
        for name in names:
            start = time.perf_counter()
            await ways[name]()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


class _CounterState(TypedDict, total=False):
    x: int


async def _node(state: _CounterState) -> dict[str, Any]:
    return {"x": state.get("x", 0) + 1}


def _plain(state: _CounterState) -> dict[str, Any]:
    return {"x": state.get("x", 0) + 1}


# What a user would write: a synchronous node that runs the asynchronous one.
def _hop(state: _CounterState) -> dict[str, Any]:
    return run_sync(_node(state))


NODES = 6
"""Number of nodes in the measured graph."""


def measure_nodes(rounds: int) -> dict[str, float]:
    """Median seconds of one run of a graph of `NODES` nodes, by kind of node and way to run it."""
    kinds: dict[str, Any] = {
        "plain": (_plain, _node),
        "dual": (dual(_node), dual(_node)),
        "RunnableLambda": (RunnableLambda(_hop, _node), RunnableLambda(_hop, _node)),
    }
    graphs = {name: (_chain(sync), _chain(both)) for name, (sync, both) in kinds.items()}
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, (sync, _) in graphs.items():
            start = time.perf_counter()
            sync.invoke({"x": 0})
            times.setdefault(f"{name}, invoke", []).append(time.perf_counter() - start)
        # A new event loop for each round, as in a program that calls `asyncio.run` per request.
        asyncio.run(_once({name: both for name, (_, both) in graphs.items()}, times))
    return {name: statistics.median(seconds) for name, seconds in times.items()}


async def _once(graphs: Mapping[str, Any], times: dict[str, list[float]]) -> None:
    for name, graph in graphs.items():
        # Once before, because every event loop is new to the graph.
        await graph.ainvoke({"x": 0})
        start = time.perf_counter()
        await graph.ainvoke({"x": 0})
        times.setdefault(f"{name}, ainvoke", []).append(time.perf_counter() - start)


def _chain(node: Any) -> Any:
    builder = StateGraph(_CounterState)
    for i in range(NODES):
        builder.add_node(f"n{i}", node)
        builder.add_edge(START if i == 0 else f"n{i - 1}", f"n{i}")
    return builder.compile()


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calls", description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--latency", type=float, default=50.0, help="milliseconds per request")
    options = parser.parse_args(argv)
    latency = options.latency
    with (
        model_server(latency=latency) as able,
        model_server("--n", "ignored", latency=latency) as unable,
    ):
        calls = asyncio.run(measure_calls(options.rounds, able, unable))
    base = calls["one call"]
    print(f"one call at {options.latency:g} ms server latency, K = {K}, {options.rounds} rounds")
    for name, seconds in calls.items():
        target = f"  (target <= {TARGETS[name]:g})" if name in TARGETS else ""
        print(f"  {name:24} {seconds * 1e3:8.2f} ms   x {seconds / base:.3f}{target}")
    nodes = measure_nodes(options.rounds)
    print(f"a graph of {NODES} nodes that do nothing")
    for name, seconds in sorted(nodes.items()):
        plain = nodes["plain, ainvoke" if name.endswith("ainvoke") else "plain, invoke"]
        print(
            f"  {name:24} {seconds * 1e3:8.2f} ms   + {(seconds - plain) * 1e3 / NODES:.3f} ms/node"
        )


if __name__ == "__main__":
    main()
