"""Receipts of reads and what memories were cut into, in the journal."""

import contextlib
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memguard.errors import InvalidInputError, ReceiptError
from memguard.journal.caches import DecompositionLog, owned_by
from memguard.journal.journal import Journal
from memguard.journal.reads import ReadFilter, ReadLog
from memguard.journal.receipts import ReceiptLog
from memguard.schema.base import Namespace
from memguard.schema.memory import Provenance
from memguard.schema.read import Ledger, ReadReport, RecalledMemory, Situation, UnitVerdict
from memguard.schema.receipt import Receipt
from memguard.schema.units import Piece, Pieces, Unit, UnitAttributes

DATA = Path(__file__).parents[2] / "data"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ANA: Namespace = ("memories", "ana")
TEA = "Ana likes tea."
MakeReceipt = Callable[..., Receipt]


def build_read(
    read_id: str,
    *,
    text: str = TEA,
    candidate: str = "c1",
    at: datetime = NOON,
    run: str = "run-1",
    namespaces: tuple[Namespace, ...] = (ANA,),
) -> ReadReport:
    memory = RecalledMemory(
        text=text,
        key="k1",
        namespace=ANA,
        said_at=NOON,
        provenance=Provenance(candidate_id=candidate, receipt_id="r1") if candidate else None,
    )
    unit = Unit(id="m1.u1", memory_id=memory.id, text=text, kind="preference")
    found = UnitAttributes(
        kind="preference",
        subject="user",
        epistemic="stated",
        temporality="current",
        relevance="direct",
    )
    verdict = UnitVerdict(
        unit=unit, attributes=found, permission="PERSONALIZE", row="preference-1", position=1
    )
    return ReadReport(
        id=read_id,
        at=at,
        run_id=run,
        method="permission_semantic",
        spec={"k": 10},
        query="What does Ana drink?",
        memories=(memory,),
        namespaces=namespaces,
        ledger=Ledger(
            scheme="units",
            situation=Situation(target="user", mode="factual"),
            verdicts=(verdict,),
        ),
        memory_context="...",
    )


class TestReadLog:
    def test_a_read_comes_back_as_it_was(self, journal: Journal):
        log = ReadLog(journal)
        read = log.append(build_read("abc"))
        assert log.get("abc") == read
        assert log.get("ab") == read
        assert log.list().reads == (read,)
        assert log.count() == 1

    async def test_the_async_twins_do_the_same(self, journal: Journal):
        log = ReadLog(journal)
        read = await log.aappend(build_read("abc"))
        assert await log.aget("abc") == read
        assert (await log.alist()).reads == (read,)
        assert await log.acount() == 1

    def test_the_same_read_again_changes_nothing_another_one_is_refused(self, journal: Journal):
        log = ReadLog(journal)
        log.append(build_read("abc"))
        log.append(build_read("abc"))
        assert log.count() == 1
        with pytest.raises(ReceiptError, match="other content"):
            log.append(build_read("abc", text="Ana likes coffee."))

    def test_finds_by_run_time_and_namespace_and_no_longer_label(self, journal: Journal):
        log = ReadLog(journal)
        first = log.append(build_read("a", namespaces=(ANA, ("team", "x"))))
        later = NOON + timedelta(hours=1)
        second = log.append(
            build_read("b", at=later, run="run-2", namespaces=(("memories", "an"),))
        )

        def found(**which: object) -> tuple[ReadReport, ...]:
            return log.list(ReadFilter(**which)).reads  # pyright: ignore[reportArgumentType]

        assert found() == (second, first)
        assert found(run_id="run-2") == (second,)
        assert found(until=later) == (first,)
        assert found(since=later) == (second,)
        assert found(namespace=("memories",)) == (second, first)
        assert found(namespace=("memories", "an")) == (second,)
        assert found(namespace=("team",)) == (first,)
        assert found(namespace=("tea",)) == ()

    def test_pages(self, journal: Journal):
        log = ReadLog(journal)
        for number in range(5):
            log.append(build_read(f"r{number}"))
        page = log.list(limit=2)
        ids: list[str] = []
        while True:
            ids += [read.id for read in page.reads]
            if page.before is None:
                break
            page = log.list(limit=2, before=page.before)
        assert ids == ["r4", "r3", "r2", "r1", "r0"]

    def test_an_unclear_or_unknown_id_says_so(self, journal: Journal):
        log = ReadLog(journal)
        for read_id in ("ab1", "ab2"):
            log.append(build_read(read_id))
        with pytest.raises(InvalidInputError, match="give more of the id"):
            log.get("ab")
        with pytest.raises(InvalidInputError, match="no receipt has the id 'zz'"):
            log.get("zz")

    def test_no_row_can_be_changed(self, journal: Journal):
        ReadLog(journal).append(build_read("abc"))
        for table in ("read_receipts", "read_places", "read_memories"):
            for sql in (f"DELETE FROM {table}", f"UPDATE {table} SET seq = seq + 9"):
                with pytest.raises(ReceiptError, match="append-only"):
                    journal.write(sqlite3.Connection.execute, sql)


class TestForgetting:
    def test_a_forgotten_memory_takes_the_reads_that_recalled_it_along(
        self, journal: Journal, make_receipt: MakeReceipt
    ):
        receipt = ReceiptLog(journal).append(make_receipt("r1", text=TEA))
        candidate = receipt.candidate.id
        log, kept = ReadLog(journal), DecompositionLog(journal)
        log.append(build_read("abc", candidate=candidate))
        other = log.append(build_read("xyz", text="Ana has a cat.", candidate="c2"))
        with owned_by({"key": candidate}):
            kept.put({"key": Pieces(pieces=(Piece(text=TEA),)), "foreign": Pieces(pieces=())})

        done = ReceiptLog(journal).forget("r1", actor="ana", reason="asked")

        assert done.read_ids == ("abc",)
        assert log.list().reads == (other,)
        assert kept.get(["key"]) == (None,)
        assert kept.get(["foreign"]) == (Pieces(pieces=()),)
        with pytest.raises(InvalidInputError, match="was erased at"):
            log.get("abc")

    def test_the_text_is_gone_from_the_file(self, tmp_path: Path, make_receipt: MakeReceipt):
        path = tmp_path / "log.sqlite3"
        with Journal.open(path) as journal:
            receipt = ReceiptLog(journal).append(make_receipt("r1", text="Ana likes oolong."))
            read = build_read("abc", text="Ana likes oolong.", candidate=receipt.candidate.id)
            ReadLog(journal).append(read)
            with owned_by({"k": receipt.candidate.id}):
                pieces = Pieces(pieces=(Piece(text="Ana likes oolong."),))
                DecompositionLog(journal).put({"k": pieces})
            ReceiptLog(journal).forget("r1", actor="ana", reason="asked")
            for each in tmp_path.iterdir():
                assert b"oolong" not in each.read_bytes()


class TestDecompositionLog:
    async def test_what_is_there_stays(self, journal: Journal):
        log = DecompositionLog(journal)
        first, second = Pieces(pieces=(Piece(text="a"),)), Pieces(pieces=(Piece(text="b"),))
        await log.aput({"k": first})
        await log.aput({"k": second, "l": second})
        assert await log.aget(["l", "x", "k"]) == (second, None, first)
        assert await log.aget([]) == ()
        await log.aput({})

    def test_it_can_be_dropped(self, journal: Journal):
        log = DecompositionLog(journal)
        log.put({"k": Pieces(pieces=())})
        assert log.clear() == 1
        assert log.get(["k"]) == (None,)


@pytest.mark.parametrize("version", [1, 2])
def test_a_journal_of_an_earlier_version_is_brought_up_to_date(
    tmp_path: Path, make_receipt: MakeReceipt, version: int
):
    path = tmp_path / "log.sqlite3"
    layout = (DATA / f"journal_layout_{version}.sql").read_text(encoding="utf-8")
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(layout)
        body = make_receipt("r1").model_dump_json(exclude_computed_fields=True)
        columns = ("r1", "c1", "p1", '["memories","ana"]', "k", "stored", "x", "t", "run", body)
        db.execute(f"INSERT INTO receipts VALUES (1, {', '.join('?' * len(columns))})", columns)
        db.executemany(
            "INSERT INTO events VALUES (?, ?, ?, 'forgotten', 'ana', '2026-01-01', '{}')",
            [(1, "r0", "digest-1"), (2, "", "digest-2"), (3, "", "digest-3")],
        )
        db.commit()
    versions: list[int] = []
    for _ in range(2):
        with Journal.open(path) as journal:
            assert ReceiptLog(journal).get("r1").id == "r1"
            ReadLog(journal).append(build_read("abc"))
            versions = journal.read(
                lambda db: [row[0] for row in db.execute("SELECT version FROM journal")]
            )
    assert versions == [version, 3]
    content = path.read_bytes()
    assert not any(name in content for name in (b"digest-1", b"digest-2", b"digest-3"))
    with Journal.open(path) as journal:
        rules = journal.read(_triggers)
    with Journal.memory() as fresh:
        assert rules == fresh.read(_triggers)


def _triggers(db: sqlite3.Connection) -> list[tuple[str, str]]:
    return db.execute(
        "SELECT name, sql FROM sqlite_master WHERE type IN ('trigger', 'index') ORDER BY name"
    ).fetchall()
