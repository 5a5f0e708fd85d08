"""A process that corrects memories at the same moment as another one.

python two_writers.py FOLDER PORT JOURNAL NAME ROUNDS

It prints for each round whether its correction holds, was refused, or was lost to the other.
"""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from memguard.errors import RecordChangedError
from memguard.journal.commit import commit
from memguard.journal.journal import Journal
from memguard.journal.receipts import ReceiptLog, record_of
from memguard.schema.memory import Lifecycle, MemoryRecord, record_key
from memguard.schema.receipt import Receipt
from memguard.schema.relations import RecordChange
from memguard.stores import ChromaStore
from memguard.testing.embeddings import HashEmbeddings
from tests.unit.journal.journal_append import ANA, receipt

_PATIENCE = 60.0


def open_store(port: int) -> ChromaStore:
    return ChromaStore.server("127.0.0.1", port, embed=HashEmbeddings())


def old_record(number: int) -> MemoryRecord:
    return record_of(receipt(f"old-{number}"))


def correction(name: str, number: int) -> Receipt:
    made = receipt(f"{name}-{number}")
    after = Lifecycle(superseded_by=record_key(made.candidate.text), ended_as="superseded")
    change = RecordChange(
        namespace=ANA, key=old_record(number).key, before=Lifecycle(), after=after
    )
    return made.model_copy(update={"changes": (change,)})


def meet(folder: Path, name: str, number: int) -> None:
    """Wait until the other process is at the same round."""
    (folder / f"{name}.{number}").touch()
    deadline = time.monotonic() + _PATIENCE
    while len(list(folder.glob(f"*.{number}"))) < 2:
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.001)


async def write(folder: Path, port: int, path: Path, name: str, rounds: int) -> dict[str, Any]:
    ends: dict[str, Any] = {}
    async with open_store(port) as store, await Journal.aopen(path) as journal:
        log = ReceiptLog(journal)
        # The first exchange opens the collection, which takes longer than the others.
        await store.aget(ANA, "none")
        for number in range(rounds):
            made = correction(name, number)
            meet(folder, name, number)
            try:
                await commit(journal, store, [made])
            except RecordChangedError:
                ends[made.id] = "refused"
            else:
                kinds = {event.kind for event in await log.ahistory(made.id)}
                ends[made.id] = "lost" if "change_lost" in kinds else "holds"
    return ends


if __name__ == "__main__":
    folder, port, path, name, rounds = sys.argv[1:]
    result = asyncio.run(write(Path(folder), int(port), Path(path), name, int(rounds)))
    sys.stdout.write(json.dumps(result))
