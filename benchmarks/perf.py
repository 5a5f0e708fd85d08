"""Overhead of a guarded write beyond the model and the store.

```text
python -m benchmarks.perf cpu        # CPU of memguard itself per memory
python -m benchmarks.perf writers    # writes per second of 16 writers, 200 ms per model call
python -m benchmarks.perf memory     # resident memory after 100 and more writes
python -m benchmarks.perf start      # CPU of `import memguard` and of `memguard --help`
```

Each figure is measured in one run. CPU time is that of the process, which a busy machine distorts
less than wall time.
"""

import argparse
import asyncio
import gc
import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from benchmarks.timing import cpu_milliseconds, model_server
from memguard.journal.journal import Journal
from memguard.llm.models import resolve_model
from memguard.methods.consistency_gate.config import ConsistencyGate
from memguard.stores import ChromaStore
from memguard.testing import ScriptedChatModel
from memguard.testing.embeddings import HashEmbeddings
from memguard.write.graph import create_write_guard

NAMESPACE = ("memories", "bench")
_WORDS = "I moved to Porto in February and my sister Clara stayed in Lyon with her two cats. " * 2


# The server answers as a gate that admits what the conversation states.
_ANSWER = ("--answer", "memguard.testing.memory_model:memory_answer")


def _script() -> ScriptedChatModel:
    verdict = '{"reason": "the user says so", "turns": [1], "score": 0.9}'
    return ScriptedChatModel(rules=[("<memory>", verdict)], supports_n=True)


def _request(tag: str, facts: int) -> dict[str, Any]:
    texts = [f"{tag}: fact {n} about Porto." for n in range(facts)]
    return {"messages": [("user", _WORDS + tag)], "candidates": texts}


async def measure_cpu(*, rounds: int) -> None:
    """Print the overhead per memory: the whole run less the same model calls and store calls."""
    model, store = _script(), InMemoryStore()
    with tempfile.TemporaryDirectory() as folder:
        async with await Journal.aopen(Path(folder) / "log.sqlite3") as journal:
            guard = create_write_guard(model, store=store, namespace=NAMESPACE, receipts=journal)
            # Costs per run and per memory: with more memories, the former are shared.
            for facts in (1, 5, 20):
                await guard.ainvoke(_request(f"warm-{facts}", facts))
                costs = [
                    await _one_round(guard, model, store, facts=facts, number=number)
                    for number in range(rounds)
                ]
                overhead = [whole - alone - store_cost for whole, alone, store_cost in costs]
                whole, alone, store_cost = (
                    statistics.median(column) for column in zip(*costs, strict=True)
                )
                print(
                    f"{facts:2} memories a run: overhead per memory min {min(overhead):.2f} median "
                    f"{statistics.median(overhead):.2f} ms "
                    f"(whole {whole:.2f}, model {alone:.2f}, store {store_cost:.2f})"
                )


async def _one_round(
    guard: Any, model: ScriptedChatModel, store: InMemoryStore, *, facts: int, number: int
) -> tuple[float, float, float]:
    """CPU milliseconds per memory: the whole run, its model calls alone, its puts alone."""
    prompt: list[list[BaseMessage]] = [
        [SystemMessage("x" * 2000), HumanMessage("<memory>" + _WORDS)]
    ]
    times = max(1, 20 // facts)
    # A text that was written before would be a repeat, and cheaper.
    numbers = itertools.count(number * times)

    async def whole() -> None:
        await guard.ainvoke(_request(f"{facts}-{next(numbers)}", facts))

    async def model_alone() -> None:
        await asyncio.gather(*(model.agenerate(prompt, n=5) for _ in range(facts)))

    async def store_alone() -> None:
        n = next(numbers)
        ops = [PutOp(("raw",), f"{n}-{k}", {"content": _WORDS}) for k in range(facts)]
        await store.abatch(ops)

    run, model_calls, puts = [
        await cpu_milliseconds(work, times=times) / facts
        for work in (whole, model_alone, store_alone)
    ]
    return run, model_calls, puts


def _http_guard(url: str, store: Any, journal: Journal) -> Any:
    model = resolve_model("openai:bench", base_url=url, api_key="not-needed", concurrency=32)
    gates = [ConsistencyGate(k=1)]
    return create_write_guard(
        model, store=store, namespace=NAMESPACE, gates=gates, receipts=journal
    )


def _true_fact(n: int) -> dict[str, Any]:
    text = f"The user said: I moved to Porto in year {n}."
    return {"messages": [("user", text)], "candidates": [text]}


async def measure_writers(*, writers: int, writes: int, latency: int) -> None:
    """Print writes per second; each is one gate call over HTTP and one durable put into Chroma."""
    with model_server(*_ANSWER, latency=latency) as url, tempfile.TemporaryDirectory() as folder:
        async with ChromaStore.local(folder, embed=HashEmbeddings(dims=384)) as store:
            journal = await Journal.aopen(Path(folder) / "memguard.sqlite3")
            guard = _http_guard(url, store, journal)
            # Opens the connection and the store's files before the clock starts.
            await guard.ainvoke(_true_fact(-1))
            # Shared, so that a writer takes the next write as soon as it is free.
            numbers = iter(range(writes))

            async def work() -> None:
                for n in numbers:
                    done = await guard.ainvoke(_true_fact(n))
                    if done["writes"].counts["stored"] != 1:
                        msg = f"write {n} was not stored"
                        raise AssertionError(msg)

            start, cpu = time.perf_counter(), time.process_time()
            async with asyncio.TaskGroup() as group:
                for _ in range(writers):
                    group.create_task(work())
            wall, cpu = time.perf_counter() - start, time.process_time() - cpu
            bound = writers / (latency / 1000)
            print(
                f"{writers} writers, {latency} ms a call: {writes / wall:.1f} writes/s "
                f"(the calls alone bound it at {bound:.0f}), "
                f"CPU {cpu / writes * 1000:.1f} ms a write"
            )
            await journal.aclose()


async def measure_memory(*, writes: int) -> None:
    """Print the resident memory as writes go on, with Chroma and the chat client loaded."""
    import psutil

    process = psutil.Process()

    def resident() -> float:
        gc.collect()
        return process.memory_info().rss / 2**20

    print(f"at the start {resident():.0f} MiB")
    with model_server(*_ANSWER) as url, tempfile.TemporaryDirectory() as folder:
        async with ChromaStore.local(folder, embed=HashEmbeddings(dims=384)) as store:
            journal = await Journal.aopen(Path(folder) / "memguard.sqlite3")
            guard = _http_guard(url, store, journal)
            for n in range(writes + 1):
                if n in {1, 100, 1000, writes // 2, writes}:
                    print(f"after {n:5} guarded writes {resident():.0f} MiB")
                await guard.ainvoke(_true_fact(n))
            await journal.aclose()


def measure_start(*, rounds: int) -> None:
    """Print the CPU seconds of new processes: plain Python, an import of memguard, and its help."""
    for name, words in (
        ("python alone", ["-c", "pass"]),
        ("import memguard", ["-c", "import memguard"]),
        ("memguard --help", ["-c", "from memguard.cli import main; main()", "--help"]),
    ):
        import resource

        costs: list[float] = []
        for _ in range(rounds):
            # The kernel adds up the CPU time of finished children; the difference is this one's.
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            costs.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        print(f"{name:16} min {min(costs):.3f} median {statistics.median(costs):.3f} s CPU")


def main() -> None:
    """Run the benchmark that was named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("cpu", "writers", "memory", "start"))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--writes", type=int, default=200)
    parser.add_argument("--latency", type=int, default=200, help="milliseconds a model call")
    options = parser.parse_args()
    match options.what:
        case "cpu":
            asyncio.run(measure_cpu(rounds=options.rounds))
        case "writers":
            asyncio.run(
                measure_writers(
                    writers=options.writers, writes=options.writes, latency=options.latency
                )
            )
        case "memory":
            asyncio.run(measure_memory(writes=max(options.writes, 1000)))
        case _:
            measure_start(rounds=options.rounds)


if __name__ == "__main__":
    main()
