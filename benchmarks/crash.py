"""Kills programs at random moments and checks what they left behind.

```text
python -m benchmarks.crash                      40 kills of each kind of work
python -m benchmarks.crash --trials 4 --work delete --seed 7
```

A child process works on a local Chroma store and its receipts, and says what was acknowledged. The
parent kills it with SIGKILL at a random moment, several times on the same folder, so that the next
child starts from what was left. After each kill another process recovers and checks:

* no acknowledged change is lost (`lost`);
* store, receipts and quarantine agree: no record without a receipt, no receipt that says what is
  not so, nothing pending (`apart`);
* a second recovery has nothing to do (`again`).

The kinds of work are: `write` (the write guard), `release` (from quarantine), `delete` (of
memories, half of them with their text in the log), `store` (puts, updates and deletions of a
guarded store), `correct` (a chain of corrections, some of which are undone) and `cache` (the units
of memories, and extractions).
"""

import argparse
import asyncio
import importlib
import itertools
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from memguard.journal.audit import audit
from memguard.journal.caches import DecompositionLog, ExtractionLog, LoggedExtraction
from memguard.journal.commit import commit
from memguard.journal.journal import Journal
from memguard.journal.quarantine import Quarantine
from memguard.journal.receipts import ReceiptFilter, ReceiptLog
from memguard.journal.recovery import recover
from memguard.journal.removal import delete_memory, forget_memory
from memguard.journal.undo import undo
from memguard.methods.consistency_gate.config import ConsistencyGate
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import CandidateMemory, Lifecycle, lifecycle_of, record_key
from memguard.schema.receipt import Receipt, ReceiptFactory
from memguard.schema.relations import RecordChange
from memguard.schema.units import Pieces
from memguard.store_guard.store import guard_store
from memguard.stores import ChromaStore
from memguard.testing import ScriptedChatModel
from memguard.testing.embeddings import HashEmbeddings
from memguard.write.graph import create_write_guard

NAMESPACE = ("memories", "crash")
_BATCH = 10
_KEYS = 7
_LATE_MODULES = ("memguard.chroma.repair", "memguard.chroma.writing")
_PAGE = 500
_LIVES = 4
"""Kills on one folder, one after the other."""

Say = Callable[..., None]
"""Tells the parent what was begun or acknowledged."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What a process that was killed has left behind."""

    lost: int = 0
    """Acknowledged changes that are not there after recovery."""
    recovered: str = ""
    """What recovery did, in its own words."""
    apart: int = 0
    """Differences between store, receipts and quarantine after recovery."""
    again: int = 0
    """Whether a second recovery found work."""


# -- work -------------------------------------------------------------------------------------


async def _write(store: ChromaStore, journal: Journal, say: Say, chance: random.Random) -> None:
    """Write facts; some are rejected, and some go into quarantine."""
    async for _ in _facts(store, journal, say, chance):
        pass


def _silent(**_: Any) -> None:
    pass


async def _release(store: ChromaStore, journal: Journal, say: Say, chance: random.Random) -> None:
    """Release or discard what is in quarantine."""
    quarantine = Quarantine(journal)
    async for _ in _facts(store, journal, _silent, chance):
        for receipt in (await quarantine.alist(limit=5)).receipts:
            if chance.random() < 0.2:
                await quarantine.adiscard(receipt.id, actor="crash", reason="test")
                continue
            await quarantine.arelease(receipt.id, actor="crash", store=store)
            say(here=receipt.candidate.text)


async def _delete(store: ChromaStore, journal: Journal, say: Say, chance: random.Random) -> None:
    """Delete memories, half of them with their text in the log."""
    log = ReceiptLog(journal)
    async for _ in _facts(store, journal, _silent, chance):
        for receipt in (await log.alist(ReceiptFilter(outcome="stored"), limit=6)).receipts:
            if await log.astate(receipt.id) != "stored":
                continue
            forgets = chance.random() < 0.5
            remove = forget_memory if forgets else delete_memory
            await remove(journal, store, receipt.id, actor="crash", reason="test")
            say(gone=receipt.candidate.text, forgotten=forgets)


async def _facts(
    store: ChromaStore, journal: Journal, say: Say, chance: random.Random
) -> AsyncIterator[None]:
    """Write batches of facts through the guard for ever."""
    model = ScriptedChatModel(rules=[("<memory>", _verdict)])
    guard = create_write_guard(
        model,
        store=store,
        namespace=NAMESPACE,
        gates=[ConsistencyGate(k=1)],
        # `correct` has corrections; here, each call would be another answer to script.
        reconcile=False,
        receipts=journal,
    )
    while True:
        life = chance.getrandbits(60)
        facts = [f"Fact {life} number {number} holds." for number in range(_BATCH)]
        request: dict[str, Any] = {"messages": [("user", " ".join(facts))], "candidates": facts}
        async for event in guard.astream(request, stream_mode="custom"):
            if event["step"] == "gated" and event["outcome"] == "stored":
                say(here=event["text"])
        yield


def _verdict(messages: Any) -> str:
    """Quarantine some facts and reject others, so that all three outcomes are tested."""
    text = str(messages[-1].content).split("<memory>")[1]
    if "5 holds" in text:
        return "I cannot say."
    return "0.1" if "3 holds" in text else "0.9"


async def _store(store: ChromaStore, journal: Journal, say: Say, chance: random.Random) -> None:
    """Put, update and delete items of a guarded store, under a few keys."""
    guarded = guard_store(store, gates=[], receipts=journal, source="Facts hold.")
    for number in itertools.count():
        key = f"k{chance.randrange(_KEYS)}"
        if chance.random() < 0.3:
            say(begun=key, value=None)
            await guarded.adelete(NAMESPACE, key)
        else:
            # Few texts, so that keys are often given what they had before.
            value = {"content": f"Item {number % 3} holds.", "rank": chance.randrange(3)}
            say(begun=key, value=value)
            await guarded.aput(NAMESPACE, key, value)
        say(done=key)


async def _correct(store: ChromaStore, journal: Journal, say: Say, chance: random.Random) -> None:
    """Correct a memory again and again, and undo some corrections."""
    life = chance.getrandbits(60)
    old: Receipt | None = None
    for number in itertools.count():
        receipt = _correction(f"Fact {life} step {number} holds.", old)
        # Not acknowledged: a correction that was interrupted leaves both current until recovery.
        say(chain=f"Fact {life} step")
        receipt = (await commit(journal, store, [receipt])).receipts[0]
        say(here=receipt.candidate.text)
        if old is not None and chance.random() < 0.3:
            await undo(journal, store, receipt.id, actor="crash")
            say(here=old.candidate.text)
        else:
            old = receipt


def _correction(text: str, old: Receipt | None) -> Receipt:
    candidate = CandidateMemory(text=text, namespace=NAMESPACE)
    decision = AdmissionDecision(outcome="admit", reason="no_gate", explanation="a test")
    changes: tuple[RecordChange, ...] = ()
    if old is not None:
        after = Lifecycle(superseded_by=record_key(text), ended_as="superseded")
        change = RecordChange(
            namespace=NAMESPACE, key=old.record_key, before=Lifecycle(), after=after
        )
        changes = (change,)
    return ReceiptFactory().create(
        candidate, decision, record_key=record_key(text), changes=changes
    )


async def _count_broken_chains(store: ChromaStore, said: list[dict[str, Any]]) -> int:
    """Chains of corrections without a current memory, or with more than one."""
    chains = {line["chain"] for line in said if "chain" in line}
    if not chains:
        return 0
    current: Counter[str] = Counter()
    for offset in itertools.count(step=_PAGE):
        items = await store.asearch(NAMESPACE, limit=_PAGE, offset=offset)
        for item in items:
            chain = " ".join(str(item.value["content"]).split()[:3])
            current[chain] += lifecycle_of(item.value).is_current
        if len(items) < _PAGE:
            break
    return sum(count != 1 for chain, count in current.items() if chain in chains)


async def _cache(store: ChromaStore, journal: Journal, say: Say, chance: random.Random) -> None:
    """Cache the units of memories, and extractions."""
    del store
    pieces, extractions = DecompositionLog(journal), ExtractionLog(journal)
    while True:
        key = f"{chance.getrandbits(60)}"
        await pieces.aput({key: Pieces(pieces=())})
        say(pieces=key)
        candidate = CandidateMemory(text=f"Fact {key} holds.", namespace=NAMESPACE)
        await extractions.arecord(
            LoggedExtraction(
                conversation_key="c", writer_digest="w", turn_keys=(key,), candidates=(candidate,)
            )
        )
        say(turn=key)


WORK: dict[str, Callable[[ChromaStore, Journal, Say, random.Random], Awaitable[None]]] = {
    "write": _write,
    "release": _release,
    "delete": _delete,
    "store": _store,
    "correct": _correct,
    "cache": _cache,
}


# -- checks -----------------------------------------------------------------------------------


async def _check(folder: Path, said: list[dict[str, Any]]) -> Checked:
    store = ChromaStore.local(folder, embed=HashEmbeddings())
    journal = await Journal.aopen(folder / "memguard.sqlite3")
    async with store, journal:
        first = await recover(journal, store)
        found = await audit(journal, store, namespace=NAMESPACE)
        second = await recover(journal, store)
        return Checked(
            lost=await _count_lost(store, journal, said),
            recovered=first.line,
            apart=len(found.without_receipt)
            + len(found.without_record)
            + len(found.altered)
            + len(found.unmarked)
            + await _count_broken_chains(store, said)
            + len(found.pending)
            + len(first.problems),
            again=int(bool(second.line)),
        )


async def _count_lost(store: ChromaStore, journal: Journal, said: list[dict[str, Any]]) -> int:
    lost = 0
    gone = {line["gone"] for line in said if "gone" in line}
    for line in said:
        if "here" in line and line["here"] not in gone:
            lost += await store.aget(NAMESPACE, record_key(line["here"])) is None
        elif "gone" in line:
            lost += await store.aget(NAMESPACE, record_key(line["gone"])) is not None
    keys = [line["pieces"] for line in said if "pieces" in line]
    if keys:
        lost += sum(entry is None for entry in await DecompositionLog(journal).aget(keys))
    turns = [line["turn"] for line in said if "turn" in line]
    if turns:
        found = await ExtractionLog(journal).aof_turns(turns, writer_digest="w")
        lost += len(turns) - len(found)
    return lost + await _count_wrong_items(store, said)


async def _count_wrong_items(store: ChromaStore, said: list[dict[str, Any]]) -> int:
    """Keys of the guarded store with a value that nobody put there last."""
    possible: dict[str, list[Any]] = {}
    pending: dict[str, Any] = {}
    for line in said:
        if "begun" in line:
            # A change that was not acknowledged may have been made or not.
            possible.setdefault(line["begun"], [None]).append(line["value"])
            pending[line["begun"]] = line["value"]
        elif "done" in line:
            possible[line["done"]] = [pending[line["done"]]]
    wrong = 0
    for key, values in possible.items():
        item = await store.aget(NAMESPACE, key)
        wrong += (None if item is None else item.value) not in values
    return wrong


# -- processes --------------------------------------------------------------------------------


def run_life(folder: Path, *, work: str, seconds: float, seed: int) -> list[dict[str, Any]]:
    """Run a worker, kill it, and return what it said.

    Args:
        folder: The folder of the store; it may have that of an earlier life.
        work: The kind of work.
        seconds: Seconds from the first acknowledgement to the kill.
        seed: For the choices of the worker.
    """
    reader, writer = os.pipe()
    # A fork, and not a new program: the imports would take longer than the work.
    child = os.fork()
    if child == 0:
        os.close(reader)
        _end_with(_work(folder, work=work, seed=seed, pipe=writer))
    os.close(writer)
    with os.fdopen(reader) as lines:
        said: list[str] = []
        # From the first acknowledgement: opening a store takes longer than the work.
        while not said or (said[-1] and "begun" in said[-1]):
            said.append(lines.readline())
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        said += lines.readlines()
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
        msg = f"the worker for {work!r} ended by itself, with status {status}"
        raise AssertionError(msg)
    # A line without an end was cut off by the kill, so that nobody has read it.
    return [json.loads(line) for line in said if line.endswith("\n")]


def check(folder: Path, said: list[dict[str, Any]]) -> Checked:
    """Recover and check in a process of its own, because this one is forked."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _end_with(_report(folder, said, pipe=writer))
    os.close(writer)
    with os.fdopen(reader) as lines:
        body = lines.read()
    _, status = os.waitpid(child, 0)
    if status != 0:
        msg = f"the check of {str(folder)!r} failed with status {status}"
        raise AssertionError(msg)
    return Checked(**json.loads(body))


async def _work(folder: Path, *, work: str, seed: int, pipe: int) -> None:
    def say(**line: Any) -> None:
        # Unbuffered: what is still in a buffer at the kill was never acknowledged.
        os.write(pipe, f"{json.dumps(line)}\n".encode())

    store = ChromaStore.local(folder, embed=HashEmbeddings())
    await store.aopen()
    journal = await Journal.aopen(folder / "memguard.sqlite3")
    await recover(journal, store)
    await WORK[work](store, journal, say, random.Random(seed))


async def _report(folder: Path, said: list[dict[str, Any]], *, pipe: int) -> None:
    checked = await _check(folder, said)
    os.write(pipe, json.dumps(asdict(checked)).encode())


def _end_with(run: Any) -> None:
    """Run a coroutine, and end this process without the exit handlers of its parent."""
    status = 1
    try:
        asyncio.run(run)
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(status)


def run_trials(work: str, *, trials: int, seconds: float, seed: int) -> Counter[str]:
    """Kill workers of one kind, print a line for each, and add up what was found."""
    chance = random.Random(f"{seed}-{work}")
    totals: Counter[str] = Counter()
    said: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(trials):
            if number % _LIVES == 0:
                folder, said = Path(name) / str(number), []
            moment = chance.uniform(0.0, seconds)
            life = run_life(folder, work=work, seconds=moment, seed=chance.getrandbits(60))
            said += life
            found = check(folder, said)
            totals.update(
                kills=1,
                acknowledged=sum("begun" not in line for line in life),
                lost=found.lost,
                apart=found.apart,
                again=found.again,
                recovered=int(bool(found.recovered)),
            )
            print(f"{work:8}{number + 1:4} killed after {moment:.2f} s: {found}", flush=True)
    return totals


def main() -> None:
    """Run the trials and print the totals of each kind of work, as a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=40, help="kills of each kind of work")
    parser.add_argument("--seconds", type=float, default=2.0, help="the latest moment of a kill")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", choices=sorted(WORK), action="append")
    options = parser.parse_args()
    # Imported at their first use otherwise, in each of the processes.
    for module in _LATE_MODULES:
        importlib.import_module(module)
    columns = ("kills", "acknowledged", "recovered", "lost", "apart", "again")
    rows = {
        work: run_trials(work, trials=options.trials, seconds=options.seconds, seed=options.seed)
        for work in options.work or WORK
    }
    print(f"\n| work | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for work, totals in rows.items():
        print(f"| {work} | {' | '.join(str(totals[column]) for column in columns)} |")
    unsound = sum(totals[name] for totals in rows.values() for name in ("lost", "apart", "again"))
    sys.exit(1 if unsound else 0)


if __name__ == "__main__":
    main()
