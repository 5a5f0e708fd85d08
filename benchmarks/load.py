"""Many conversations at once, on a model with faults: is anything lost, and does anything grow?

```text
python -m benchmarks.load --minutes 10 --conversations 64
```

Each conversation is a user of one agent with memory, over a local Chroma store. One request of a
hundred fails, and one turn of a hundred is cancelled. The run has three parts, each in an event
loop of its own, which is closed after it. The parts are compared: memory, file descriptors, threads
and the time of a turn. In the end every acknowledged memory must be in the store.
"""

import argparse
import asyncio
import gc
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks.faults import reading_answer
from benchmarks.timing import model_server
from memguard import create_memory_agent, resolve_model
from memguard.errors import GuardError
from memguard.journal.audit import audit
from memguard.journal.commit import recover
from memguard.journal.journal import Journal
from memguard.stores import ChromaStore
from memguard.testing import FaultInjector, FaultName, HashEmbeddings, ServerReply
from memguard.testing.memory_model import memory_answer

FAULT_SHARE = 0.01
"""The share of requests that fail, over all kinds of faults."""
CANCEL_SHARE = 0.01
"""The share of turns that are cancelled."""
GROWTH = 1.2
"""The most that memory, and the time of a turn, may be of what they were after the first part."""
PARTS = 3
_HANDLES = 8
"""File descriptors and threads that may be more: SQLite and the pools open some when needed."""
_FAULTS: tuple[FaultName, ...] = ("server_error", "rate_limit", "cut_body", "dropped")
_WORDS = ("tea", "jazz", "chess", "sailing", "pottery", "cycling", "poetry", "gardening")


def _right_answer(request: dict[str, Any]) -> str | ServerReply:
    prompt = str(request["messages"][-1]["content"])
    if "<units>" in prompt or "<memories>" in prompt:
        return reading_answer(request)
    return memory_answer(request)


def _faulty() -> Any:
    answers: Any = _right_answer
    for seed, fault in enumerate(_FAULTS):
        answers = FaultInjector(answers, fault, share=FAULT_SHARE / len(_FAULTS), seed=seed)
    return answers


answer = _faulty()
"""The answers of the model server, which runs as a process of its own."""


@dataclass(kw_only=True)
class Part:
    """One third of a run."""

    turns: int = 0
    failed: int = 0
    """Turns that ended in a typed error."""
    cancelled: int = 0
    seconds: list[float] = field(default_factory=list[float])
    """The time of each complete turn."""
    memory: int = 0
    """Resident memory in MiB, after the part."""
    handles: int = 0
    """Open file descriptors and threads, after the part."""
    tasks: int = 0
    """Tasks that were still running when the conversations had ended."""

    @property
    def p95(self) -> float:
        """The time of a turn in milliseconds, 95th percentile."""
        return 1_000 * statistics.quantiles(self.seconds, n=20)[-1] if self.seconds[1:] else 0.0


@dataclass(frozen=True, kw_only=True)
class Load:
    """The result of a run."""

    parts: tuple[Part, ...]
    acknowledged: int
    """Memories that a report called stored."""
    lost: int
    """Acknowledged memories that are not in the store."""
    disagreements: int
    """Differences between store and receipts after recovery."""
    redone: int
    """Writes of cancelled turns that recovery finished."""
    children: int
    """Processes that were left behind."""

    def problems(self, *, timed: bool = True) -> Iterator[str]:
        """What is wrong; without `timed`, whatever the time of a turn is."""
        first, last = self.parts[0], self.parts[-1]
        if self.lost or self.disagreements:
            yield f"{self.lost} writes lost, {self.disagreements} disagreements"
        if not self.acknowledged:
            yield "nothing was stored"
        if last.memory > GROWTH * first.memory:
            yield f"memory grew from {first.memory} to {last.memory} MiB"
        if last.handles > first.handles + _HANDLES:
            yield f"file descriptors and threads grew from {first.handles} to {last.handles}"
        if left := sum(part.tasks for part in self.parts):
            yield f"{left} tasks were left behind"
        if self.children:
            yield f"{self.children} processes were left behind"
        if timed and last.p95 > GROWTH * first.p95:
            yield f"p95 of a turn grew from {first.p95:.0f} to {last.p95:.0f} ms"


@dataclass(kw_only=True)
class _Run:
    agent: Any
    rng: random.Random
    cancel_share: float
    written: set[tuple[tuple[str, ...], str]] = field(default_factory=set[Any])
    """Namespace and key of each acknowledged memory."""
    number: int = 0

    async def part(self, *, seconds: float, conversations: int) -> Part:
        """Let all conversations talk for some time."""
        result = Part()
        end = time.monotonic() + seconds
        await asyncio.gather(
            *(self._talk(f"user{n}", until=end, result=result) for n in range(conversations))
        )
        await asyncio.sleep(0.1)  # what was cancelled last has ended
        result.tasks = len(asyncio.all_tasks()) - 1
        return result

    async def _talk(self, user: str, *, until: float, result: Part) -> None:
        while time.monotonic() < until:
            self.number += 1
            hobby = _WORDS[self.number % len(_WORDS)]
            text = f"I have liked {hobby} since day {self.number}. What do I like about {hobby}?"
            start = time.perf_counter()
            turn = asyncio.create_task(
                self.agent.ainvoke({"messages": [("user", text)]}, context={"user_id": user})
            )
            if self.rng.random() < self.cancel_share:
                await asyncio.sleep(self.rng.uniform(0.0, 0.3))
                turn.cancel()
            try:
                out = await turn
            except asyncio.CancelledError:
                result.cancelled += 1
                continue
            except GuardError:
                result.failed += 1
                continue
            result.turns += 1
            result.seconds.append(time.perf_counter() - start)
            self.written |= {
                (receipt.namespace, receipt.record_key)
                for receipt in out["writes"].receipts
                if receipt.outcome == "stored"
            }


def run_load(
    folder: Path,
    *,
    seconds: float,
    conversations: int,
    cancel_share: float = CANCEL_SHARE,
    seed: int = 0,
) -> Load:
    """Run all parts over a store in an empty folder, and compare them.

    Args:
        folder: An empty folder.
        seconds: The time of the conversations, over all parts.
        conversations: How many there are at once.
        cancel_share: The share of turns that are cancelled.
        seed: Decides which turns are cancelled.
    """
    options = ("--answer", "benchmarks.load:answer", "--max-requests", "1")
    with model_server(*options) as url:
        model = resolve_model(
            "openai:load", base_url=url, api_key="test-key", concurrency=64, backoff=0.01
        )
        store = ChromaStore.local(folder / "store", embed=HashEmbeddings())
        journal = Journal.open(folder / "journal.sqlite3")
        agent = create_memory_agent(model, store=store, receipts=journal)
        run = _Run(agent=agent, rng=random.Random(seed), cancel_share=cancel_share)
        parts: list[Part] = []
        for _ in range(PARTS):
            # A loop for each part: connections must close with the loop, and open again after it.
            part = asyncio.run(run.part(seconds=seconds / PARTS, conversations=conversations))
            gc.collect()
            process = psutil.Process()
            part.memory = process.memory_info().rss // 2**20
            part.handles = process.num_fds() + threading.active_count()
            parts.append(part)
        result = asyncio.run(_check(store, journal, run.written))
        store.close()
        journal.close()
    children = psutil.Process().children()
    return Load(parts=tuple(parts), children=len(children), **result)


async def _check(
    store: ChromaStore, journal: Journal, written: set[tuple[tuple[str, ...], str]]
) -> dict[str, int]:
    redone = await recover(journal, store)
    report = await audit(journal, store)
    lost = [place for place in sorted(written) if await store.aget(*place) is None]
    differences = (
        *report.without_receipt,
        *report.without_record,
        *report.altered,
        *report.unmarked,
        *report.pending,
    )
    return {
        "acknowledged": len(written),
        "lost": len(lost),
        "disagreements": len(differences),
        "redone": len(redone.records),
    }


def render(load: Load) -> str:
    """The result in Markdown."""
    lines = [
        "| part | turns | failed | cancelled | p95 of a turn | memory | descriptors and threads |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {number} | {part.turns} | {part.failed} | {part.cancelled} | {part.p95:.0f} ms | "
        f"{part.memory} MiB | {part.handles} |"
        for number, part in enumerate(load.parts, start=1)
    ]
    lines.append(
        f"\n{load.acknowledged} memories acknowledged, {load.lost} lost, {load.redone} finished by "
        f"recovery, {load.disagreements} disagreements."
    )
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the load, print the result, and exit with 1 if there is a problem."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--conversations", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        load = run_load(
            Path(folder),
            seconds=60 * options.minutes,
            conversations=options.conversations,
            seed=options.seed,
        )
    print(render(load))
    problems = list(load.problems())
    for problem in problems:
        print(f"problem: {problem}", file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
