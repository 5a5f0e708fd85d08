"""A program whose disk is full, or whose folder is read-only; it prints what it was told.

python bad_disk.py full|read-only FOLDER
"""

import asyncio
import importlib
import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

from memguard.errors import MemguardError
from memguard.journal.audit import audit
from memguard.journal.journal import Journal
from memguard.stores import ChromaStore
from memguard.testing import ScriptedChatModel
from memguard.testing.embeddings import HashEmbeddings
from memguard.write.graph import create_write_guard

ANA = ("memories", "ana")
NOBODY = 65534


async def fill_up(folder: Path) -> dict[str, Any]:
    """Write until no file can grow, then free the disk and write again."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    async with (
        ChromaStore.local(folder, embed=HashEmbeddings()) as store,
        await Journal.aopen(folder / "memguard.sqlite3") as journal,
    ):
        guard = create_write_guard(
            ScriptedChatModel(),
            store=store,
            namespace=ANA,
            gates=[],
            reconcile=False,
            receipts=journal,
            on_failure="report",
        )

        async def write(number: int) -> Any:
            texts = [f"Fact {number} {part} holds. {'x' * 900}" for part in range(20)]
            request = {"messages": [("user", "x")], "candidates": texts}
            return (await guard.ainvoke(request))["writes"]

        await write(0)
        _limit(_largest(folder) + 16_384)
        full = [await write(number) for number in range(1, 7)]
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        # Twice, because the first run may be the one that opens Chroma again.
        after = [await write(number) for number in (7, 8)]
        found = await audit(journal, store)
        stored = await store.acount(ANA)
        claimed = await journal.aread(_count_stored)
    return {
        "codes": sorted({failure.code for writes in full for failure in writes.failures}),
        "after": [failure.code for failure in after[-1].failures],
        "agrees": found.agrees,
        "stored": stored,
        "claimed": claimed,
    }


def _limit(size: int) -> None:
    """The size beyond which no file of this process can grow."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def _largest(folder: Path) -> int:
    return max(path.stat().st_size for path in folder.glob("*.sqlite3*"))


def _count_stored(db: Any) -> int:
    return db.execute("SELECT count(*) FROM events WHERE kind = 'stored'").fetchone()[0]


def read_only(folder: Path) -> dict[str, Any]:
    """Open a store and a log in a folder in which nothing may be changed."""
    with ChromaStore.local(folder, embed=HashEmbeddings()) as store:
        store.put(ANA, "k", {"content": "x"})
    Journal.open(folder / "memguard.sqlite3").close()
    for path in (*folder.rglob("*"), folder):
        path.chmod(0o555 if path.is_dir() else 0o444)
    if os.geteuid() == 0:
        # What the superuser may do is not what a mode says. It could not import any more, either.
        for module in ("memguard.chroma.repair", "memguard.chroma.writing"):
            importlib.import_module(module)
        folder.parent.chmod(0o755)
        os.setuid(NOBODY)
    codes: list[str] = []
    for open_it in (
        lambda: ChromaStore.local(folder, embed=HashEmbeddings()),
        lambda: Journal.open(folder / "memguard.sqlite3"),
        lambda: Journal.open(folder / "new.sqlite3"),
    ):
        try:
            open_it()
        except MemguardError as error:
            codes.append(error.code)
    return {"codes": codes}


if __name__ == "__main__":
    target = Path(sys.argv[2])
    done = asyncio.run(fill_up(target)) if sys.argv[1] == "full" else read_only(target)
    sys.stdout.write(json.dumps(done))
