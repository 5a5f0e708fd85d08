"""What a guarded write costs beyond the model and the store.

```text
python -m memguard.bench.perf cpu        # memguard's own CPU per memory
python -m memguard.bench.perf writers    # writes per second of 16 writers, 200 ms per model call
python -m memguard.bench.perf memory     # resident memory after 100 and after 5,000 writes
python -m memguard.bench.perf start      # CPU of `import memguard` and of `memguard --help`
```

Each figure is measured in one run; CPU is that of the process, so a busy machine blurs it less than
it blurs the clock.
"""

import argparse
import asyncio
import contextlib
import gc
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from memguard.guard import create_write_guard
from memguard.journal.journal import Journal
from memguard.llm.models import resolve_model
from memguard.schema.config import ConsistencyGate
from memguard.stores import ChromaStore
from memguard.testing import ScriptedChatModel
from memguard.testing.embeddings import HashEmbeddings

NAMESPACE = ("memories", "bench")
_WORDS = "I moved to Porto in February and my sister Clara stayed in Lyon with her two cats. " * 2


def _script() -> ScriptedChatModel:
    verdict = '{"reason": "the user says so", "turns": [1], "score": 0.9}'
    return ScriptedChatModel(rules=[("<memory>", verdict)], supports_n=True)


def _given(tag: str, facts: int) -> dict[str, Any]:
    texts = [f"{tag}: fact {n} about Porto." for n in range(facts)]
    return {"messages": [("user", _WORDS + tag)], "candidates": texts}


async def _cpu_of(work: Callable[[int], Awaitable[Any]], *, times: int, start: int) -> float:
    """CPU milliseconds of one piece of work, the mean of several."""
    gc.collect()
    began = time.process_time()
    for n in range(start, start + times):
        await work(n)
    return (time.process_time() - began) / times * 1000


async def measure_cpu(*, rounds: int) -> None:
    """Own CPU per memory: the whole run, less the same model calls and the same store calls."""
    model, store = _script(), InMemoryStore()
    with tempfile.TemporaryDirectory() as folder:
        async with await Journal.aopen(Path(folder) / "log.sqlite3") as journal:
            guard = create_write_guard(model, store=store, namespace=NAMESPACE, receipts=journal)
            for facts in (1, 5, 20):
                await guard.ainvoke(_given(f"warm-{facts}", facts))
                costs = [
                    await _one_round(guard, model, store, facts=facts, number=number)
                    for number in range(rounds)
                ]
                own = [whole - alone - put for whole, alone, put in costs]
                whole, alone, put = (
                    statistics.median(column) for column in zip(*costs, strict=True)
                )
                print(
                    f"{facts:2} memories a run: own CPU per memory min {min(own):.2f} median "
                    f"{statistics.median(own):.2f} ms "
                    f"(whole {whole:.2f}, model {alone:.2f}, store {put:.2f})"
                )


async def _one_round(
    guard: Any, model: ScriptedChatModel, store: InMemoryStore, *, facts: int, number: int
) -> tuple[float, float, float]:
    """CPU milliseconds per memory: the whole run, its model calls alone, its puts alone."""
    prompt: list[list[BaseMessage]] = [
        [SystemMessage("x" * 2000), HumanMessage("<memory>" + _WORDS)]
    ]
    times = max(1, 20 // facts)

    async def whole(n: int) -> None:
        await guard.ainvoke(_given(f"{facts}-{n}", facts))

    async def model_alone(_: int) -> None:
        await asyncio.gather(*(model.agenerate(prompt, n=5) for _ in range(facts)))

    async def store_alone(n: int) -> None:
        ops = [PutOp(("raw",), f"{n}-{k}", {"content": _WORDS}) for k in range(facts)]
        await store.abatch(ops)

    start = number * times
    one, two, three = [
        await _cpu_of(work, times=times, start=start) / facts
        for work in (whole, model_alone, store_alone)
    ]
    return one, two, three


@contextlib.contextmanager
def _model_server(*, latency: int) -> Generator[str]:
    """The loopback model in a process of its own; yields its address."""
    command = [sys.executable, "-m", "memguard.testing.server", "--latency", str(latency)]
    answer = ["--answer", "memguard.testing.memory_model:memory_answer"]
    with subprocess.Popen([*command, *answer], stdout=subprocess.PIPE, text=True) as server:  # noqa: S603 - our own module
        if server.stdout is None:
            msg = "the server has no output"
            raise AssertionError(msg)
        yield server.stdout.readline().strip()
        server.terminate()


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
    """Writes per second, each write one gate call over HTTP and one durable put into Chroma."""
    with _model_server(latency=latency) as url, tempfile.TemporaryDirectory() as folder:
        async with ChromaStore.local(folder, embed=HashEmbeddings(dims=384)) as store:
            journal = await Journal.aopen(Path(folder) / "memguard.sqlite3")
            guard = _http_guard(url, store, journal)
            await guard.ainvoke(_true_fact(-1))
            numbers = iter(range(writes))

            async def work() -> None:
                for n in numbers:
                    done = await guard.ainvoke(_true_fact(n))
                    if done["writes"].counts["stored"] != 1:
                        msg = f"write {n} was not stored"
                        raise AssertionError(msg)

            began, cpu = time.perf_counter(), time.process_time()
            async with asyncio.TaskGroup() as group:
                for _ in range(writers):
                    group.create_task(work())
            wall, cpu = time.perf_counter() - began, time.process_time() - cpu
            bound = writers / (latency / 1000)
            print(
                f"{writers} writers, {latency} ms a call: {writes / wall:.1f} writes/s "
                f"(the calls alone bound it at {bound:.0f}), "
                f"CPU {cpu / writes * 1000:.1f} ms a write"
            )
            await journal.aclose()


async def measure_memory(*, writes: int) -> None:
    """Resident memory with Chroma and the chat client loaded."""
    import psutil

    process = psutil.Process()

    def resident() -> float:
        gc.collect()
        return process.memory_info().rss / 2**20

    print(f"at the start {resident():.0f} MiB")
    with _model_server(latency=0) as url, tempfile.TemporaryDirectory() as folder:
        async with ChromaStore.local(folder, embed=HashEmbeddings(dims=384)) as store:
            journal = await Journal.aopen(Path(folder) / "memguard.sqlite3")
            guard = _http_guard(url, store, journal)
            for n in range(writes + 1):
                if n in {1, 100, 1000, writes // 2, writes}:
                    print(f"after {n:5} guarded writes {resident():.0f} MiB")
                await guard.ainvoke(_true_fact(n))
            await journal.aclose()


def measure_start(*, rounds: int) -> None:
    """CPU seconds of a new process that does nothing, imports memguard, prints the help."""
    for name, words in (
        ("python alone", ["-c", "pass"]),
        ("import memguard", ["-c", "import memguard"]),
        ("memguard --help", ["-c", "from memguard.cli import main; main()", "--help"]),
    ):
        import resource

        costs: list[float] = []
        for _ in range(rounds):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            costs.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        print(f"{name:16} min {min(costs):.3f} median {statistics.median(costs):.3f} s CPU")


def main() -> None:
    """Run one of the benchmarks."""
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
