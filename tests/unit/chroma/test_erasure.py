"""What Chroma's files have after a deletion, and after `erase`."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
import pytest

from memguard import compat
from memguard.errors import StoreError
from memguard.journal.commit import commit
from memguard.journal.forgetting import ForgetReport, ForgetSelection, forget
from memguard.journal.journal import Journal
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import CandidateMemory
from memguard.schema.receipt import Receipt
from memguard.stores import ChromaStore
from memguard.testing.embeddings import HashEmbeddings
from tests.chroma_server import ChromaServer
from tests.raw_files import files_with

ANA, BEN = ("memories", "ana-of-the-hills"), ("memories", "ben")
EMBED = HashEmbeddings()
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
Open = Callable[..., ChromaStore]


@contextmanager
def opened_local(folder: Path) -> Generator[Open]:
    def open_store(**options: Any) -> ChromaStore:
        settings: dict[str, Any] = {"embed": EMBED, **options}
        return ChromaStore.local(folder, **settings)

    yield open_store


@contextmanager
def opened_server(folder: Path) -> Generator[Open]:
    with ChromaServer(folder) as server:

        def open_store(**options: Any) -> ChromaStore:
            settings: dict[str, Any] = {"embed": EMBED, "data_path": folder, **options}
            return ChromaStore.server(server.host, server.port, **settings)

        yield open_store


KINDS = [
    pytest.param(opened_local, id="local"),
    pytest.param(opened_server, id="server", marks=pytest.mark.slow),
]


def vector_bytes(text: str) -> set[bytes]:
    """A part of a text's vector as Chroma may store it: as it is, and of length 1."""
    vector = np.asarray(EMBED.embed_documents([text])[0], dtype=np.float32)
    unit = (vector / np.linalg.norm(vector)).astype(np.float32)
    parts: set[bytes] = set()
    for row in (vector, unit):
        # Where it is not zero, or any file would have it.
        start = int(np.flatnonzero(row)[0])
        parts.add(row[max(0, start - 2) : start + 6].tobytes())
    return parts


def files_with_vector(folder: Path, text: str) -> set[str]:
    parts = vector_bytes(text)
    return {
        path.name
        for path in folder.rglob("*")
        if path.is_file() and any(part in path.read_bytes() for part in parts)
    }


def text_of(number: int) -> str:
    return f"Ana's Zwergkaninchen number {number} lives in Ouagadougou {'and eats ' * 20}."


def fill(store: ChromaStore) -> None:
    """Enough that Chroma has saved indexes, and rows that it has not."""
    for number in range(70):
        store.put(BEN, f"b{number}", {"content": f"Ben has {number} cups."}, index=["content"])
        if number < 12:
            item = {"content": text_of(number)}
            store.put(ANA, f"a{number}", item, index=["content"])


@pytest.mark.parametrize("opened", KINDS)
def test_no_file_has_a_deleted_item(tmp_path: Path, opened: Any) -> None:
    with opened(tmp_path) as open_store, open_store(shards=2) as store:
        fill(store)
        # Replaced, deleted and expired: each leaves other traces.
        store.put(ANA, "a0", {"content": "short"}, index=["content"])
        for number in range(12):
            store.delete(ANA, f"a{number}")
        words = ("Zwergkaninchen", "Ouagadougou", "ana-of-the-hills")
        assert {word for _, word in files_with(tmp_path, words)} == set(words)
        assert files_with_vector(tmp_path, text_of(11))
        assert store.erase() == ()
        assert files_with(tmp_path, words) == set()
        for number in range(12):
            assert files_with_vector(tmp_path, text_of(number)) == set()
        assert len(store.search(BEN, limit=100)) == 70
        (best,) = store.search(BEN, query="Ben has 17 cups.", limit=1)
        assert best.key == "b17"
        # It goes on working, and erasing again changes nothing.
        store.put(ANA, "new", {"content": "Hello."})
        assert store.erase() == ()
        assert store.get(ANA, "new") is not None
    if opened is opened_local:
        with ChromaStore.local(tmp_path, embed=EMBED) as store:
            assert store.count(BEN) == 70


def test_a_server_elsewhere_needs_a_command(tmp_path: Path) -> None:
    with opened_server(tmp_path) as open_store, open_store(data_path=None, shards=2) as store:
        fill(store)
        for number in range(12):
            store.delete(ANA, f"a{number}")
        (note,) = store.erase()
        assert "chroma vacuum --path DIR --force" in note
        # What a client can do is done: vectors, and the queue of writes.
        for number in range(12):
            assert files_with_vector(tmp_path, text_of(number)) <= {"chroma.sqlite3"}
        command = [str(Path(sys.executable).parent / "chroma"), "vacuum", "--path", str(tmp_path)]
        subprocess.run([*command, "--force"], check=True, capture_output=True, timeout=60)
        assert files_with(tmp_path, ("Zwergkaninchen", "Ouagadougou", "ana-of-the-hills")) == set()
        for number in range(12):
            assert files_with_vector(tmp_path, text_of(number)) == set()
        assert store.count(BEN) == 70


def test_expired_items_are_erased_too(tmp_path: Path) -> None:
    now = [NOON]
    ttl: Any = {"default_ttl": 1.0, "refresh_on_read": False}
    with ChromaStore.local(tmp_path, embed=EMBED, ttl=ttl, clock=lambda: now[0]) as store:
        store.put(ANA, "k", {"content": text_of(1)}, index=["content"])
        now[0] += timedelta(minutes=5)
        store.erase()
    assert files_with(tmp_path, ("Zwergkaninchen",)) == set()
    assert files_with_vector(tmp_path, text_of(1)) == set()


def test_indexes_of_deleted_collections_are_removed(tmp_path: Path) -> None:
    with ChromaStore.local(tmp_path, embed=EMBED, shards=1) as store:
        fill(store)
    client: Any = chromadb.PersistentClient(path=str(tmp_path))
    client.delete_collection("memguard-00")
    client.close()
    stray = tmp_path / str(uuid.uuid4())
    stray.mkdir()
    (stray / "data_level0.bin").write_bytes(b"vectors")
    with ChromaStore.local(tmp_path, embed=EMBED, shards=1) as store:
        store.put(BEN, "k", {"content": "Hello."})
        store.erase()
        assert store.get(BEN, "k") is not None
    assert files_with(tmp_path, ("Zwergkaninchen",)) == set()
    assert files_with_vector(tmp_path, text_of(1)) == set()
    assert not stray.exists()


async def test_others_wait_while_a_local_store_is_erased(tmp_path: Path) -> None:
    """Reads and writes of other threads and stores go on around it, and lose nothing."""
    async with ChromaStore.local(tmp_path, embed=EMBED, shards=2) as store:
        other = await ChromaStore.local(tmp_path, embed=EMBED).aopen()

        async def write(which: ChromaStore, number: int) -> None:
            for part in range(5):
                await which.aput(BEN, f"{number}-{part}", {"content": f"{number} {part}"})
                assert await which.aget(BEN, f"{number}-{part}") is not None

        await asyncio.gather(
            *(write(which, number) for number, which in enumerate([store, other] * 3)),
            *(store.aerase() for _ in range(3)),
        )
        assert await store.acount(BEN) == 30
        await other.aclose()


def test_a_failure_is_reported_and_the_store_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> bool:
        msg = "no space left"
        raise OSError(msg)

    with ChromaStore.local(tmp_path, embed=EMBED, shards=2) as store:
        fill(store)
        with monkeypatch.context() as broken:
            broken.setattr("memguard.chroma.erasure._vacuum", fail)
            with pytest.raises(StoreError, match="could not be rewritten"):
                store.erase()
        assert store.count(BEN) == 70
        assert store.erase() == ()


_CHILD = """
import sys, threading
from pathlib import Path
from memguard.stores import ChromaStore
from memguard.testing.embeddings import HashEmbeddings

with ChromaStore.local(Path(sys.argv[1]), embed=HashEmbeddings(), shards=2) as store:
    for number in range(40):
        store.put(("memories", "ben"), f"b{number}", {"content": "x " * 4000})
    print("ready", flush=True)
    while True:
        store.put(("memories", "ana"), "k", {"content": "y " * 4000})
        store.delete(("memories", "ana"), "k")
        store.erase()
"""


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.01, 0.05, 0.1, 0.2, 0.4])
def test_a_process_killed_while_it_erases_loses_nothing(tmp_path: Path, delay: float) -> None:
    command = [sys.executable, "-c", _CHILD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        time.sleep(delay)
        os.kill(child.pid, signal.SIGKILL)
    with ChromaStore.local(tmp_path, embed=EMBED, shards=2) as store:
        assert store.count(BEN) == 40
        assert len(store.search(BEN, query="x", limit=50)) == 40
        assert store.erase() == ()


def test_vacuum_waits_for_a_writer(tmp_path: Path) -> None:
    """As it meets one in the folder of a running server."""
    with ChromaStore.local(tmp_path, embed=EMBED, shards=1) as store:
        fill(store)
    db = sqlite3.connect(tmp_path / "chroma.sqlite3", isolation_level=None, check_same_thread=False)
    db.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.3, lambda: db.execute("COMMIT"))
    timer.start()
    assert compat.vacuum_chroma(tmp_path, seconds=20.0)
    timer.join()
    db.close()


# -- a whole forgetting -----------------------------------------------------------------------


def receipt_of(receipt_id: str, text: str, namespace: tuple[str, ...], turn: str) -> Receipt:
    candidate = CandidateMemory(text=text, namespace=namespace, turn_ids=(turn,))
    decision = AdmissionDecision(outcome="admit", reason="supported", explanation="Said so.")
    return Receipt(
        id=receipt_id,
        at=NOON,
        run_id="run",
        candidate=candidate,
        namespace=namespace,
        decision=decision,
        policy_digest="p",
    )


@pytest.mark.parametrize("opened", KINDS)
@pytest.mark.parametrize(
    "selection",
    [
        ForgetSelection(namespace=ANA, everything=True),
        ForgetSelection(contains="zwergkaninchen"),
    ],
    ids=["everything", "contains"],
)
async def test_forgetting_leaves_no_byte(
    tmp_path: Path, opened: Any, selection: ForgetSelection
) -> None:
    def run(open_store: Open) -> ForgetReport:
        return asyncio.run(write_and_forget(open_store))

    async def write_and_forget(open_store: Open) -> ForgetReport:
        async with (
            open_store(shards=2) as store,
            await Journal.aopen(tmp_path / "memguard.sqlite3") as journal,
        ):
            for number in range(8):
                texts = (text_of(number), f"Ben has {number} cups.")
                receipts = [
                    receipt_of(f"r{number}{index}", text, name, f"t{number}")
                    for index, (text, name) in enumerate(zip(texts, (ANA, BEN), strict=True))
                ]
                await commit(journal, store, receipts)
            report = await forget(journal, store, selection=selection, actor="dpo")
            assert await store.acount(BEN) == 8
            return report

    def open_and_run() -> ForgetReport:
        with opened(tmp_path) as open_store:
            return run(open_store)

    report = await asyncio.to_thread(open_and_run)
    assert (report.records, report.receipts, report.notes) == (8, 8, ())
    words = ["Zwergkaninchen", "Ouagadougou"]
    words += ["ana-of-the-hills"] if selection.everything else []
    assert files_with(tmp_path, words) == set()
    for number in range(8):
        assert files_with_vector(tmp_path, text_of(number)) == set()


def test_the_unused_part_of_an_index_is_blank(tmp_path: Path) -> None:
    """Chroma writes it as it was allocated, which may be text that the process had there."""
    with ChromaStore.local(tmp_path, embed=EMBED, shards=1) as store:
        fill(store)
    (data, *_) = sorted(tmp_path.rglob("data_level0.bin"), key=lambda path: -path.stat().st_size)
    content = data.read_bytes()
    data.write_bytes(content[:-20] + b"Zwergkaninchen-heap!")
    with ChromaStore.local(tmp_path, embed=EMBED, shards=1) as store:
        store.erase()
        assert b"Zwergkaninchen-heap" not in data.read_bytes()
        assert [item.key for item in store.search(BEN, query="Ben has 17 cups.", limit=1)] == [
            "b17"
        ]
        store.put(BEN, "more", {"content": "More cups."}, index=["content"])
    with ChromaStore.local(tmp_path, embed=EMBED, shards=1) as store:
        assert store.count(BEN) == 71
