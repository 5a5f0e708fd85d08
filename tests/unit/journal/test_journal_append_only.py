import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from memguard.errors import InvalidInputError, ReceiptError
from memguard.journal.caches import ExtractionLog, LoggedExtraction
from memguard.journal.journal import Journal
from memguard.journal.receipts import ReceiptLog
from memguard.schema.memory import CandidateMemory
from memguard.schema.receipt import Receipt

MakeReceipt = Callable[..., Receipt]
TABLES = ("receipts", "events", "extractions", "reads", "extracted")


@pytest.fixture
def full(journal: Journal, make_receipt: MakeReceipt) -> Journal:
    ReceiptLog(journal).append(make_receipt("r1"))
    ExtractionLog(journal).record(
        LoggedExtraction(
            conversation_key="c",
            writer_digest="w",
            turn_keys=("t1",),
            candidates=(CandidateMemory(text="Ana likes tea."),),
        )
    )
    return journal


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM {table}",
        "UPDATE {table} SET seq = seq + 100",
        "INSERT OR REPLACE INTO {table} SELECT * FROM {table}",
        "REPLACE INTO {table} SELECT * FROM {table} LIMIT 1",
    ],
)
def test_no_row_can_be_changed(full: Journal, table: str, sql: str):
    with pytest.raises(ReceiptError, match="append-only"):
        full.write(lambda db: db.execute(sql.format(table=table)))


def test_no_program_can_change_it(tmp_path: Path, make_receipt: MakeReceipt):
    with Journal.open(tmp_path / "log.db") as journal:
        ReceiptLog(journal).append(make_receipt("r1"))
    db = sqlite3.connect(tmp_path / "log.db")
    for sql in ("DELETE FROM receipts", "DELETE FROM events", "UPDATE receipts SET body = ''"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            db.execute(sql)
    db.close()


def test_an_event_needs_its_receipt(journal: Journal):
    with pytest.raises(ReceiptError, match="not in the log"):
        journal.write(
            lambda db: db.execute("INSERT INTO events VALUES (9, 'x', 'c', 'stored', '', '', '{}')")
        )


class TestForget:
    def test_erases_the_text_everywhere(self, tmp_path: Path, make_receipt: MakeReceipt):
        secret = "Ana's secret is a zebra"
        receipt = make_receipt("r1", text=secret)
        with Journal.open(tmp_path / "log.db") as journal:
            log = ReceiptLog(journal)
            log.append(receipt)
            log.append(make_receipt("r2", text=secret, policy="p2", outcome="reject"))
            log.append(make_receipt("r3"))
            extractions = ExtractionLog(journal)
            extractions.record(
                LoggedExtraction(
                    conversation_key="c",
                    writer_digest="w",
                    turn_keys=("t1",),
                    candidates=(receipt.candidate, CandidateMemory(text="Other.")),
                )
            )
            done = log.forget("r1", actor="ana", reason="asked")
            assert done.receipt_ids == ("r1", "r2")
            assert receipt.candidate.id in done.candidate_ids
            files = [path.read_bytes() for path in tmp_path.iterdir()]
            assert not any(b"zebra" in content for content in files)
            # The turns have digests of their text, so the chunk is read again.
            assert extractions.of_turns(["t1"], writer_digest="w") == ()
            assert [event.kind for event in log.history("r1")] == ["forgotten"]
            assert log.history("r2")[0].body["reason"] == "asked"
            assert log.state("r1") == "forgotten"
            assert log.count() == {"stored": 1}

    def test_stays_forgotten(self, journal: Journal, make_receipt: MakeReceipt):
        log = ReceiptLog(journal)
        receipt = log.append(make_receipt("r1"))
        log.forget(receipt.candidate.id, actor="ana", reason="asked")
        # The id of a candidate is a digest of its text, and is not kept either.
        with pytest.raises(InvalidInputError, match="no receipt"):
            log.forget(receipt.candidate.id, actor="ana", reason="asked")
        assert log.forget("r1", actor="ana", reason="asked").receipt_ids == ()
        with pytest.raises(InvalidInputError, match=r"was forgotten at 2026-03-01.* by 'ana'"):
            log.get("r1")
        with pytest.raises(ReceiptError, match="cannot come back"):
            log.append(receipt)
        with pytest.raises(ReceiptError, match="append-only"):
            journal.write(lambda db: db.execute("DELETE FROM events"))
        assert log.append(receipt.model_copy(update={"id": "r2"})).id == "r2"

    def test_a_candidate_that_was_never_judged(self, full: Journal):
        candidate = CandidateMemory(text="Ana likes tea.")
        done = ReceiptLog(full).forget(candidate.id, actor="ana", reason="asked")
        assert done.receipt_ids == ()
        assert ExtractionLog(full).of_turns(["t1"], writer_digest="w") == ()

    async def test_what_nobody_knows(self, journal: Journal):
        with pytest.raises(InvalidInputError, match="no receipt"):
            await ReceiptLog(journal).aforget("zz", actor="ana", reason="asked")
