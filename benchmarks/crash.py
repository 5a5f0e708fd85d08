"""Kills a guarded writer at random moments and checks what it left behind.

```text
python -m benchmarks.crash --trials 30 --writes 500
```

A child process writes facts through the write guard into a local Chroma store and prints each fact
when it is acknowledged. The parent kills it with SIGKILL at a random moment. Then every
acknowledged fact must be in the store, and store, receipts and quarantine must agree after
recovery.
"""

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memguard.journal.audit import audit
from memguard.journal.journal import Journal
from memguard.journal.recovery import recover
from memguard.methods.consistency_gate.config import ConsistencyGate
from memguard.stores import ChromaStore
from memguard.testing import ScriptedChatModel
from memguard.testing.embeddings import HashEmbeddings
from memguard.write.graph import create_write_guard

NAMESPACE = ("memories", "crash")
_BATCH = 10


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The result of one kill."""

    acknowledged: int
    """Facts that the child printed before it died."""
    lost: int
    """Acknowledged facts that are not in the store."""
    redone: int
    """Writes that recovery finished."""
    disagreements: int
    """Differences between store, receipts and quarantine after recovery."""
    finished: bool
    """Whether the child finished before the kill."""


def run_trial(folder: Path, *, writes: int, kill_after: float) -> Trial:
    """Run a writer, kill it, and check what it left behind.

    Args:
        folder: An empty folder for the store.
        writes: How many facts the child writes.
        kill_after: Seconds from the opening of the store to the kill.
    """
    command = [sys.executable, "-m", "benchmarks.crash", "--child", str(folder)]
    child = subprocess.Popen(  # noqa: S603 - our own module
        [*command, "--writes", str(writes)], stdout=subprocess.PIPE, text=True
    )
    if child.stdout is None:
        msg = "the child has no output"
        raise AssertionError(msg)
    # The child prints a line when the store is open. Import time must not count.
    first = child.stdout.readline()
    finished = False
    deadline = time.monotonic() + kill_after
    try:
        child.wait(timeout=max(0.0, deadline - time.monotonic()))
        finished = True
    except subprocess.TimeoutExpired:
        child.kill()
    # A line without an end was cut off by the kill, so that nobody has read it.
    acknowledged = [
        json.loads(line[4:])
        for line in (first, *child.stdout)
        if line.endswith("\n") and line.startswith("ack ")
    ]
    child.wait()
    child.stdout.close()
    return asyncio.run(_check(folder, acknowledged=acknowledged, finished=finished))


async def _check(folder: Path, *, acknowledged: list[str], finished: bool) -> Trial:
    store = ChromaStore.local(folder, embed=HashEmbeddings())
    async with store:
        journal = await Journal.aopen(folder / "memguard.sqlite3")
        async with journal:
            redone = await recover(journal, store)
            report = await audit(journal, store, namespace=NAMESPACE)
        stored: set[str] = set()
        # Page by page, as a search returns a limited number of items.
        while page := await store.asearch(NAMESPACE, limit=500, offset=len(stored)):
            stored |= {str(item.value["content"]) for item in page}
    return Trial(
        acknowledged=len(acknowledged),
        lost=len(set(acknowledged) - stored),
        redone=len(redone.records),
        disagreements=len(report.without_receipt)
        + len(report.without_record)
        + len(report.altered)
        + len(report.pending),
        finished=finished,
    )


async def _write(folder: Path, *, writes: int) -> None:
    """Run the child: write facts and print each one that is acknowledged."""
    model = ScriptedChatModel(rules=[("<memory>", _verdict)])
    store = ChromaStore.local(folder, embed=HashEmbeddings())
    await store.aopen()
    guard = create_write_guard(
        model, store=store, namespace=NAMESPACE, gates=[ConsistencyGate(k=1)]
    )
    sys.stdout.write("open\n")
    sys.stdout.flush()
    for start in range(0, writes, _BATCH):
        facts = [f"Fact number {n} holds." for n in range(start, min(start + _BATCH, writes))]
        request: dict[str, Any] = {"messages": [("user", " ".join(facts))], "candidates": facts}
        async for event in guard.astream(request, stream_mode="custom"):
            if event["step"] == "gated" and event["outcome"] == "stored":
                sys.stdout.write(f"ack {json.dumps(event['text'])}\n")
                # At once: what is still in the buffer at the kill was never acknowledged.
                sys.stdout.flush()


def _verdict(messages: Any) -> str:
    """Quarantine some facts and reject others, so that all three outcomes are tested."""
    text = str(messages[-1].content).split("<memory>")[1]
    if "5 holds" in text:
        return "I cannot say."
    return "0.1" if "3 holds" in text else "0.9"


def main() -> None:
    """Run the trials and print a line for each, then the totals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--writes", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=6.0, help="the latest moment of the kill")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", type=Path)
    options = parser.parse_args()
    if options.child is not None:
        asyncio.run(_write(options.child, writes=options.writes))
        return
    rng = random.Random(options.seed)
    trials: list[Trial] = []
    for number in range(options.trials):
        with tempfile.TemporaryDirectory() as folder:
            moment = rng.uniform(0.0, options.seconds)
            trial = run_trial(Path(folder), writes=options.writes, kill_after=moment)
        trials.append(trial)
        print(f"{number + 1:3} killed after {moment:5.2f} s: {trial}")
    lost = sum(trial.lost for trial in trials)
    apart = sum(trial.disagreements for trial in trials)
    acknowledged = sum(trial.acknowledged for trial in trials)
    print(
        f"{len(trials)} kills, {acknowledged} acknowledged writes, {lost} lost, "
        f"{apart} disagreements"
    )
    sys.exit(1 if lost or apart else 0)


if __name__ == "__main__":
    main()
