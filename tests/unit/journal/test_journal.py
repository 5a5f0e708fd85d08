import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memguard import errors
from memguard.errors import ErrorCode, ReceiptError, StoreConfigurationError
from memguard.journal.journal import Journal
from memguard.journal.receipts import ReceiptLog
from memguard.schema.receipt import Receipt

CHILD = Path(__file__).with_name("journal_append.py")
ROOT = Path(errors.__file__).parents[1]
MakeReceipt = Callable[..., Receipt]


def rows(journal: Journal, sql: str) -> list[Any]:
    return journal.read(lambda db: db.execute(sql).fetchall())


class TestOpening:
    def test_makes_the_file_and_its_folder(self, tmp_path: Path):
        with Journal.open(tmp_path / "deep" / "log.db") as journal:
            assert journal.path == tmp_path / "deep" / "log.db"
            assert rows(journal, "SELECT count(*) FROM receipts") == [(0,)]
            assert rows(journal, "PRAGMA journal_mode") == [("wal",)]
            assert rows(journal, "PRAGMA synchronous") == [(2,)]
            assert rows(journal, "PRAGMA foreign_keys") == [(1,)]

    def test_keeps_what_was_logged(self, tmp_path: Path, make_receipt: MakeReceipt):
        with Journal.open(tmp_path / "log.db") as journal:
            logged = ReceiptLog(journal).append(make_receipt("r1"))
        with Journal.open(tmp_path / "log.db") as journal:
            assert ReceiptLog(journal).get("r1") == logged

    def test_refuses_a_newer_layout(self, tmp_path: Path):
        Journal.open(tmp_path / "log.db").close()
        with sqlite3.connect(tmp_path / "log.db") as db:
            db.execute("UPDATE journal SET version = 99")
        db.close()
        with pytest.raises(StoreConfigurationError, match="version 99") as caught:
            Journal.open(tmp_path / "log.db")
        assert caught.value.code == ErrorCode.STORE_PATH

    def test_refuses_another_database(self, tmp_path: Path):
        with sqlite3.connect(tmp_path / "other.db") as db:
            db.execute("CREATE TABLE embeddings (id)")
        db.close()
        with pytest.raises(StoreConfigurationError, match="another program"):
            Journal.open(tmp_path / "other.db")

    def test_refuses_a_file_that_is_no_database(self, tmp_path: Path):
        (tmp_path / "notes.txt").write_text("Dear diary, " * 100)
        with pytest.raises(StoreConfigurationError, match="not a database"):
            Journal.open(tmp_path / "notes.txt")
        assert (tmp_path / "notes.txt").read_text().startswith("Dear diary")

    def test_refuses_a_path_that_cannot_be_made(self, tmp_path: Path):
        (tmp_path / "file").write_text("")
        with pytest.raises(StoreConfigurationError, match="cannot use the receipt log"):
            Journal.open(tmp_path / "file" / "log.db")
        with pytest.raises(StoreConfigurationError, match="cannot use the receipt log"):
            Journal.open(tmp_path)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
    def test_refuses_a_folder_it_may_not_write(self, tmp_path: Path):
        tmp_path.chmod(0o500)
        with pytest.raises(StoreConfigurationError, match="cannot use the receipt log"):
            Journal.open(tmp_path / "log.db")

    async def test_in_a_loop_the_first_use_raises(self, tmp_path: Path):
        (tmp_path / "file").write_text("")
        journal = Journal.open(tmp_path / "file" / "log.db")
        with pytest.raises(StoreConfigurationError, match="cannot use"):
            await ReceiptLog(journal).acount()
        with pytest.raises(StoreConfigurationError, match="cannot use"):
            await Journal.aopen(tmp_path / "file" / "log.db")
        await journal.aclose()


class TestClosing:
    def test_twice_and_then_use(self, journal: Journal):
        journal.close()
        journal.close()
        with pytest.raises(StoreConfigurationError, match="is closed") as caught:
            ReceiptLog(journal).count()
        assert caught.value.code == ErrorCode.STORE_CLOSED

    async def test_finishes_what_was_begun(self, tmp_path: Path, make_receipt: MakeReceipt):
        async with await Journal.aopen(tmp_path / "log.db") as journal:
            log = ReceiptLog(journal)
            writes = [asyncio.ensure_future(log.aappend(make_receipt(f"r{n}"))) for n in range(20)]
            await asyncio.sleep(0)
            await journal.aclose()
            await journal.aclose()
            assert len(await asyncio.gather(*writes)) == 20
        async with await Journal.aopen(tmp_path / "log.db") as journal:
            assert await ReceiptLog(journal).acount() == {"stored": 20}

    def test_a_forked_child_is_told(self, journal: Journal):
        journal._pid += 1
        with pytest.raises(StoreConfigurationError, match="forked"):
            journal.read(lambda db: db)
        journal._pid -= 1


class TestWriting:
    def test_a_failed_write_leaves_nothing_and_spoils_no_other(self, journal: Journal):
        hold = threading.Event()
        insert = "INSERT INTO events VALUES (NULL, '', 'c', 'forgotten', 'me', '', '{}')"

        def fail(db: sqlite3.Connection) -> None:
            db.execute(insert.replace("'c'", "'bad'"))
            msg = "mine"
            raise ZeroDivisionError(msg)

        blocker = journal._submit(lambda _: hold.wait(5), writes=False)
        good = journal._submit(lambda db: db.execute(insert).rowcount, writes=True)
        bad = journal._submit(fail, writes=True)
        broken = journal._submit(lambda db: db.execute("DELETE FROM nowhere"), writes=True)
        cancelled = journal._submit(lambda db: db.execute("DROP TABLE events"), writes=True)
        assert cancelled.cancel()
        hold.set()
        assert blocker.result() is True
        assert good.result() == 1
        with pytest.raises(ZeroDivisionError, match="mine"):
            bad.result()
        with pytest.raises(ReceiptError, match="nowhere") as caught:
            broken.result()
        assert caught.value.code == ErrorCode.RECEIPT_FAILED
        assert rows(journal, "SELECT candidate_id FROM events") == [("c",)]

    def test_work_that_ends_the_transaction_fails_the_group(self, journal: Journal):
        with pytest.raises(ReceiptError):
            journal.write(lambda db: (db.execute("ROLLBACK"), db.execute("nonsense")))
        with pytest.raises(ReceiptError):
            journal.write(lambda db: db.execute("COMMIT"))
        assert journal.write(lambda _: 1) == 1

    def test_from_many_threads(self, tmp_path: Path, make_receipt: MakeReceipt):
        with Journal.open(tmp_path / "log.db") as journal:
            log = ReceiptLog(journal)

            def work(name: int) -> None:
                for n in range(20):
                    log.append(make_receipt(f"{name}-{n}"))

            threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert log.count() == {"stored": 160}
            assert [event.seq for event in log.replay()] == list(range(1, 321))

    def test_from_several_event_loops(self, journal: Journal, make_receipt: MakeReceipt):
        log = ReceiptLog(journal)
        for n in range(3):
            asyncio.run(log.aappend(make_receipt(f"r{n}")))
        assert log.count() == {"stored": 3}

    def test_from_two_processes_at_once(self, tmp_path: Path):
        path = tmp_path / "log.db"
        children = [
            subprocess.Popen([sys.executable, str(CHILD), str(path), name], cwd=ROOT, env=_env())
            for name in ("a", "b", "c")
        ]
        seen = 0
        while any(child.poll() is None for child in children):
            with Journal.open(path) as journal:
                now = sum(ReceiptLog(journal).count().values())
            assert now >= seen
            seen = now
            time.sleep(0.01)  # the children need the processor more
        assert [child.returncode for child in children] == [0, 0, 0]
        with Journal.open(path) as journal:
            assert ReceiptLog(journal).count() == {"stored": 150}


def _env() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}
