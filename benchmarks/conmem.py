"""Accuracy, balanced accuracy and macro-F1 from the counts of a binary admission. Pure.

These are the metrics of the ConMem paper (arXiv 2610.33432, tables 1, 4 and 7), which can be
recomputed from its counts. The positive class is "store".
"""

import argparse
import asyncio
import gc
import os
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from langchain_openai import ChatOpenAI

from benchmarks.conmem_server import SCALE, a_case
from benchmarks.timing import model_server
from memguard.llm.models import Model, resolve_model
from memguard.methods.conmem.config import CONMEM_PRESETS, ROLES
from memguard.methods.conmem.graph import create_conmem_graph
from memguard.testing.conmem import ConMemScript, read_call
from memguard.testing.scripted import ScriptedCall


@dataclass(frozen=True, kw_only=True)
class Confusion:
    """Counts of decisions by gold label."""

    tp: int
    """True positives: to be stored, and admitted."""
    fn: int
    """False negatives: to be stored, and not admitted."""
    tn: int
    """True negatives: not to be stored, and not admitted."""
    fp: int
    """False positives: not to be stored, and admitted."""

    @property
    def count(self) -> int:
        """Number of cases."""
        return self.tp + self.fn + self.tn + self.fp

    @property
    def accuracy(self) -> float:
        """The share of correct decisions, in [0, 1]."""
        return (self.tp + self.tn) / self.count

    @property
    def recalls(self) -> tuple[float, float]:
        """Recall of both classes, "store" first, in [0, 1]; 0 for a class without cases."""
        return _share(self.tp, self.tp + self.fn), _share(self.tn, self.tn + self.fp)

    @property
    def balanced_accuracy(self) -> float:
        """The mean of both recalls, in [0, 1]."""
        # Unlike accuracy, it is one half for a constant answer, however many cases a class has.
        return sum(self.recalls) / 2

    @property
    def macro_f1(self) -> float:
        """The mean F1 of both classes, in [0, 1]."""
        store = _share(2 * self.tp, 2 * self.tp + self.fp + self.fn)
        skip = _share(2 * self.tn, 2 * self.tn + self.fp + self.fn)
        return (store + skip) / 2


# 0 for a class without cases, as scikit-learn counts it by default.
def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


PAPER, DEFAULT = CONMEM_PRESETS["paper"], CONMEM_PRESETS["default"]
CALLS = 14
"""Model calls of a case without ties and regeneration."""

TARGETS = {"wall": 1.10, "cpu": 2.2, "pipelined": 2.1, "speculating": 2.5, "limit": 1.15}
"""Limits of the ratios that each benchmark prints: maxima of cost, minima of speed-up."""


def _server(answer: str, *, latency: float = 0.0) -> AbstractContextManager[str]:
    return model_server("--answer", f"benchmarks.conmem_server:{answer}", latency=latency)


def client(url: str, name: str, *, concurrency: int = 16) -> Model:
    """A model with a name of its own, so that it has a limiter of its own."""
    return resolve_model(
        f"openai:{name}", base_url=url, api_key="not-needed", concurrency=concurrency
    )


def recorded_calls() -> list[ScriptedCall]:
    """The model calls of a plain case, in the form the model receives them."""
    model = ConMemScript({"relevant": "helpful"}).model()
    create_conmem_graph(model, spec=PAPER).invoke(a_case(0))
    return model.calls


async def alternate(
    ways: Mapping[str, Callable[[], Awaitable[Any]]],
    *,
    rounds: int,
    clock: Callable[[], float],
) -> dict[str, list[float]]:
    """Durations of each variant in ascending order, measured in alternation.

    Args:
        ways: The variants by name.
        rounds: How often to measure each.
        clock: Returns seconds.
    """
    durations: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        await way()
    for _ in range(rounds):
        for name, way in ways.items():
            # A collection that the last variant made due must not be charged to this one.
            gc.collect()
            start = clock()
            await way()
            durations[name].append(clock() - start)
    return {name: sorted(times) for name, times in durations.items()}


def bare_calls(url: str) -> Callable[[], Awaitable[Any]]:
    """The calls of a plain case by `asyncio.gather`, with LangChain's chat model alone."""
    chat = ChatOpenAI(model="bare", base_url=url, api_key=lambda: "not-needed", max_retries=0)
    calls = recorded_calls()

    async def gather() -> None:
        await asyncio.gather(
            *(chat.ainvoke(list(call.messages), **dict(call.kwargs)) for call in calls)
        )

    return gather


def four_calls(url: str) -> Callable[[], Awaitable[Any]]:
    """Four bare calls in a row, a case's critical path: probe, validation, answer, judgement."""
    chat = ChatOpenAI(model="bare", base_url=url, api_key=lambda: "not-needed", max_retries=0)
    calls = recorded_calls()
    # The calls are recorded in order: probe, validation, first answer, ..., last judgement.
    path = [calls[0], calls[1], calls[2], calls[-1]]

    async def in_a_row() -> None:
        for call in path:
            await chat.ainvoke(list(call.messages), **dict(call.kwargs))

    return in_a_row


def by_hand(url: str) -> Callable[[], Awaitable[Any]]:
    """The calls of a plain case in their order of dependence, with bare calls and asyncio alone."""
    chat = ChatOpenAI(model="bare", base_url=url, api_key=lambda: "not-needed", max_retries=0)
    by_kind: dict[tuple[str, str | None], ScriptedCall] = {}
    for call in recorded_calls():
        parsed = read_call(str(call.messages[1].content))
        by_kind[parsed.kind, parsed.role] = call

    async def ask(kind: str, role: str | None = None) -> None:
        call = by_kind[kind, role]
        await chat.ainvoke(list(call.messages), **dict(call.kwargs))

    async def probe(role: str) -> None:
        # Judge and auditor need both answers; the two are independent of each other.
        await asyncio.gather(ask("control", role), ask("treatment", role))
        await asyncio.gather(ask("quality", role), ask("audit", role))

    async def run() -> None:
        await ask("probe")
        await ask("validation")
        await asyncio.gather(*(probe(role) for role in ROLES))

    return run


async def measure_wall(*, rounds: int, latency: float) -> None:
    """Print the wall time of a case relative to its critical path."""
    with _server("plain_answer", latency=latency) as url:
        patient = create_conmem_graph(client(url, "patient"), spec=PAPER)
        eager = create_conmem_graph(client(url, "eager"), spec=DEFAULT)
        ways: dict[str, Callable[[], Awaitable[Any]]] = {
            "four calls in a row": four_calls(url),
            "bare calls by hand": by_hand(url),
            "paper": lambda: patient.ainvoke(a_case(0)),
            "default, speculating": lambda: eager.ainvoke(a_case(0)),
        }
        durations = await alternate(ways, rounds=rounds, clock=time.perf_counter)
    waits = 4 * latency / 1000
    print(f"a case at {latency:g} ms a call, {rounds} rounds; the waits alone {waits * 1e3:.0f} ms")
    for figure, pick in (("median", statistics.median), ("best", min)):
        base = pick(durations["four calls in a row"])
        for name, times in durations.items():
            seconds = pick(times)
            print(
                f"  {figure:6} {name:22} {seconds * 1e3:7.1f} ms   x {seconds / base:.3f} of four "
                f"calls, x {seconds / waits:.3f} of the waits (target {TARGETS['wall']})"
            )


async def measure_cpu(*, rounds: int) -> None:
    """Print the CPU time of a case relative to that of its bare calls."""
    with _server("plain_answer") as url:
        patient = create_conmem_graph(client(url, "patient"), spec=PAPER)
        eager = create_conmem_graph(client(url, "eager"), spec=DEFAULT)
        ways: dict[str, Callable[[], Awaitable[Any]]] = {
            "asyncio.gather": bare_calls(url),
            "paper": lambda: patient.ainvoke(a_case(0)),
            "default, speculating": lambda: eager.ainvoke(a_case(0)),
        }
        durations = await alternate(ways, rounds=rounds, clock=time.process_time)
    base = statistics.median(durations["asyncio.gather"])
    print(f"CPU of a case of {CALLS} calls, {rounds} rounds")
    for name, times in durations.items():
        seconds = statistics.median(times)
        print(
            f"  {name:22} {seconds * 1e3:7.1f} ms   x {seconds / base:.2f} "
            f"(target {TARGETS['cpu']})"
        )


CONCURRENT_CASES = 8
"""Cases measured at the same time, each with limits of its own; they mostly wait."""


async def measure_schedule(*, cases: int) -> None:
    """Print the mean wall time of a case with the paper's latencies, by schedule of its calls."""
    durations: dict[str, list[float]] = {}
    calls: dict[str, int] = {}
    # Shared, so that a worker takes the next case as soon as it is free.
    numbers = iter(range(cases))
    with _server("paper_answer") as url:

        async def work(worker: int) -> None:
            ways = _ways(url, worker)
            # With a number that no measured case has, since answers follow from the number.
            for graph in ways.values():
                await graph.ainvoke(a_case(10_000 + worker))
            for number in numbers:
                for name, graph in ways.items():
                    start = time.perf_counter()
                    done = await graph.ainvoke(a_case(number))
                    durations.setdefault(name, []).append(time.perf_counter() - start)
                    calls[name] = calls.get(name, 0) + done["receipt"].usage.calls

        await asyncio.gather(*(work(worker) for worker in range(CONCURRENT_CASES)))
    base = statistics.fmean(durations["one by one"])
    print(f"{cases} cases with the paper's latencies x {SCALE:g}")
    for name, times in durations.items():
        mean = statistics.fmean(times)
        target = f" (target {TARGETS[name]})" if name in TARGETS else ""
        print(
            f"  {name:12} mean {mean:6.3f} s   x {base / mean:.2f} faster{target}, "
            f"{calls[name] / cases:.2f} calls a case"
        )


def _ways(url: str, worker: int) -> dict[str, Any]:
    # A limit of one request makes the calls of a case run one by one.
    one = client(url, f"one-{worker}", concurrency=1)
    return {
        "one by one": create_conmem_graph(one, spec=PAPER),
        "pipelined": create_conmem_graph(client(url, f"pipelined-{worker}"), spec=PAPER),
        "speculating": create_conmem_graph(client(url, f"speculating-{worker}"), spec=DEFAULT),
    }


async def measure_limit(*, cases: int, limit: int, latency: float) -> None:
    """Print the peak of requests of many cases, and their wall time relative to its bound."""
    with _server("plain_answer", latency=latency) as url:
        model = client(url, "limited", concurrency=limit)
        graph = create_conmem_graph(model, spec=PAPER)
        await graph.ainvoke(a_case(10_000))
        start, cpu = time.perf_counter(), time.process_time()
        results = await asyncio.gather(*(graph.ainvoke(a_case(n)) for n in range(cases)))
        wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    calls = sum(result["receipt"].usage.calls for result in results)
    # The shortest time in which so many calls fit through the limit.
    bound = calls * latency / 1000 / limit
    print(
        f"{cases} cases at once, {latency:g} ms a call, at most {limit} requests in flight: "
        f"{calls} calls, most in flight {model.state.limiter.high_water}\n"
        f"  {wall:.2f} s, x {wall / bound:.3f} of the bound of {bound:.2f} s "
        f"(target {TARGETS['limit']}); CPU {cpu / cases * 1e3:.0f} ms a case"
    )


def shared_share(prompts: Sequence[str], *, block: int = 64) -> float:
    """The share of characters in prefixes that an earlier prompt had too, in steps of `block`."""
    # Blocks as providers cache them: a prefix counts only up to the last full block.
    prefixes, shared = set[str](), 0
    for prompt in prompts:
        starts = [prompt[:end] for end in range(block, len(prompt) + 1, block)]
        shared += max((len(start) for start in starts if start in prefixes), default=0)
        prefixes.update(starts)
    return shared / sum(map(len, prompts))


def measure_prefix() -> None:
    """Print the shared prefixes of one case's prompts, and of four cases of one conversation."""
    for turns in (4, 12, 60):
        for name, cases in (("one case", 1), ("four cases of one conversation", 4)):
            model = ConMemScript({"relevant": "helpful"}).model()
            graph = create_conmem_graph(model, spec=PAPER)
            for number in range(cases):
                graph.invoke(a_case(number, turns=turns))
            prompts = [call.text for call in model.calls]
            print(
                f"  history of {turns:2} turns, {name}: {shared_share(prompts):.1%} of "
                f"{sum(map(len, prompts))} characters in {len(prompts)} prompts"
            )


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark that was named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.conmem", description=__doc__)
    parser.add_argument("what", choices=("wall", "cpu", "schedule", "limit", "prefix"))
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--cases", type=int, default=64)
    parser.add_argument("--limit", type=int, default=16)
    parser.add_argument("--latency", type=float, help="milliseconds a call")
    options = parser.parse_args(argv)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    match options.what:
        case "wall":
            asyncio.run(measure_wall(rounds=options.rounds, latency=options.latency or 50.0))
        case "cpu":
            asyncio.run(measure_cpu(rounds=options.rounds))
        case "schedule":
            asyncio.run(measure_schedule(cases=options.cases))
        case "limit":
            latency = options.latency or 500.0
            asyncio.run(measure_limit(cases=64, limit=options.limit, latency=latency))
        case _:
            measure_prefix()


if __name__ == "__main__":
    main()
