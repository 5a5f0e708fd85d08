"""A process that writes until it is killed, and `check`, which looks at what it left.

python journal_child.py FOLDER SEED     commits batches for ever, prints what is acknowledged
python journal_child.py FOLDER SEED N   corrects a memory, and kills itself before exchange N
"""

import asyncio
import json
import os
import random
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp, SearchOp

from memguard.journal.audit import audit
from memguard.journal.commit import commit
from memguard.journal.journal import Journal
from memguard.journal.quarantine import Quarantine
from memguard.journal.receipts import ReceiptFilter, ReceiptLog, record_of
from memguard.journal.recovery import recover
from memguard.schema.memory import MemoryRecord, lifecycle_of
from memguard.schema.receipt import Receipt
from memguard.schema.relations import RecordChange
from tests.unit.journal.journal_append import receipt


class SqliteStore(BaseStore):
    """A durable store, slow enough to be killed at any point."""

    def __init__(self, path: Path, chance: random.Random) -> None:
        self._db = sqlite3.connect(path, isolation_level=None, timeout=30)
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS items (space TEXT, key TEXT, value TEXT, "
            "PRIMARY KEY (space, key))"
        )
        self._chance = chance

    def close(self) -> None:
        self._db.close()

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        results: list[Any] = []
        for op in ops:
            time.sleep(self._chance.random() * 0.001)
            results.append(self._do(op))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Any]:
        return self.batch(ops)

    def _do(self, op: Op) -> Any:
        if isinstance(op, PutOp):
            self._db.execute(
                "INSERT OR REPLACE INTO items VALUES (?, ?, ?)",
                (json.dumps(op.namespace), op.key, json.dumps(op.value)),
            )
            return None
        if isinstance(op, GetOp):
            found = self._select("space = ? AND key = ?", json.dumps(op.namespace), op.key)
            return found[0] if found else None
        assert isinstance(op, SearchOp)
        return self._select("1 ORDER BY space, key")[op.offset : op.offset + op.limit]

    def _select(self, condition: str, *values: str) -> list[Item]:
        at = datetime.now(UTC)
        rows = self._db.execute(f"SELECT space, key, value FROM items WHERE {condition}", values)
        return [
            Item(
                namespace=tuple(json.loads(space)),
                key=key,
                value=json.loads(value),
                created_at=at,
                updated_at=at,
            )
            for space, key, value in rows
        ]


class FatalStore(SqliteStore):
    """Kills its process before the exchange with a number, counted from 0."""

    def __init__(self, path: Path, chance: random.Random, last: int) -> None:
        super().__init__(path, chance)
        self._left = last

    def batch(self, ops: Iterable[Op]) -> list[Any]:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1
        return super().batch(ops)


async def correct(folder: Path, last: int) -> None:
    """Store a memory, then die while it is corrected."""
    journal = await Journal.aopen(folder / "log.db")
    chance = random.Random(0)
    old = receipt("x-link-old")
    await commit(journal, SqliteStore(folder / "store.db", chance), [old])
    store = FatalStore(folder / "store.db", chance, last)
    await commit(journal, store, [correction("x-link-new", record_of(old))])


async def write(folder: Path, seed: str) -> None:
    chance = random.Random(seed)
    journal = await Journal.aopen(folder / "log.db")
    store = SqliteStore(folder / "store.db", chance)
    chain: MemoryRecord | None = None
    for batch in range(10_000):
        names = [f"{seed}-{batch}-{n}" for n in range(chance.randint(1, 5))]
        await commit(journal, store, [receipt(name) for name in names])
        held = receipt(f"{names[0]}-held", held=True)
        await commit(journal, store, [held])
        if chance.random() < 0.5:
            await Quarantine(journal).arelease(held.id, actor="me", store=store)
            names.append(held.id)
        link = correction(f"{seed}-link-{batch}", chain)
        await commit(journal, store, [link])
        names.append(link.id)
        chain = record_of(link)
        if chance.random() < 0.3:
            repeat = confirmation(f"{seed}-repeat-{batch}", chain)
            await commit(journal, store, [repeat])
            chain = chain.model_copy(update={"lifecycle": repeat.changes[0].after})
            names.append(repeat.id)
        sys.stdout.write(json.dumps(names) + "\n")
        sys.stdout.flush()


def correction(name: str, old: MemoryRecord | None) -> Receipt:
    """The receipt of a memory that supersedes the last one of its chain."""
    made = receipt(name)
    if old is None:
        return made
    after = old.lifecycle.model_copy(
        update={"superseded_by": record_of(made).key, "ended_as": "superseded"}
    )
    change = RecordChange(namespace=old.namespace, key=old.key, before=old.lifecycle, after=after)
    return made.model_copy(update={"changes": (change,)})


def confirmation(name: str, old: MemoryRecord) -> Receipt:
    """The receipt of a duplicate that confirms a memory."""
    made = receipt(name)
    decision = made.decision.model_copy(update={"outcome": "reject", "reason": "duplicate"})
    after = old.lifecycle.model_copy(update={"confirmed_by": (f"c:{name}",)})
    change = RecordChange(namespace=old.namespace, key=old.key, before=old.lifecycle, after=after)
    return made.model_copy(
        update={"decision": decision, "record_key": old.key, "changes": (change,)}
    )


def broken_chains(store: SqliteStore) -> list[str]:
    """Chains without a current memory, or with several."""
    current: Counter[str] = Counter()
    for item in store.batch([SearchOp((), limit=1_000_000)])[0]:
        name, link, _ = item.value["content"].partition("-link-")
        if link:
            current[name] += lifecycle_of(item.value).is_current
    return [name for name, count in current.items() if count != 1]


async def check(folder: Path) -> dict[str, Any]:
    """What is where, before and after recovery."""
    journal = await Journal.aopen(folder / "log.db")
    store = SqliteStore(folder / "store.db", random.Random(0))
    log = ReceiptLog(journal)
    before = await audit(journal, store)
    # A kill between storing and marking leaves two, never none.
    retired = [name for name in broken_chains(store) if not before.pending]
    states = [(r.id, await log.astate(r.id)) for r in await everything(log)]
    recovered = await recover(journal, store)
    after = await audit(journal, store)
    again = await recover(journal, store)
    final = [await log.astate(r.id) for r in await everything(log)]
    report = {
        "strangers": len(before.without_receipt),
        "lost": [*before.without_record, *before.altered, *before.unmarked, *retired],
        "broken": broken_chains(store),
        "done": [rid for rid, state in states if state in {"stored", "released"}],
        "pending": len(before.pending),
        "recovered": len(recovered.records) + len(recovered.changed),
        "problems": list(recovered.problems),
        "agrees": after.agrees,
        "again": len(again.records) + len(again.changed),
        "records": after.checked_records,
        "receipts": after.checked_receipts,
        "confirmed": (await log.acount()).get("duplicate", 0),
        "admitted": (await log.acount()).get("stored", 0),
        "released": final.count("released"),
        "held": len((await Quarantine(journal).alist(limit=10_000)).receipts),
        "quarantined": (await log.acount()).get("quarantined", 0),
    }
    store.close()
    await journal.aclose()
    return report


async def everything(log: ReceiptLog) -> tuple[Receipt, ...]:
    return (await log.alist(ReceiptFilter(), limit=100_000)).receipts


if __name__ == "__main__":
    where, seed, *exchange = sys.argv[1:]
    if exchange:
        asyncio.run(correct(Path(where), int(exchange[0])))
    else:
        asyncio.run(write(Path(where), seed))
