import asyncio
import inspect
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from memguard.errors import ErrorCode, InvalidInputError, ReceiptError
from memguard.journal.caches import ExtractionLog
from memguard.journal.events import live_states
from memguard.journal.journal import Journal
from memguard.journal.quarantine import Quarantine
from memguard.journal.receipts import ReceiptFilter, ReceiptLog, record_key, record_of
from memguard.schema.memory import CandidateMemory
from memguard.schema.receipt import MethodReport, Receipt

GOLDEN = Path(__file__).parents[2] / "golden" / "receipts" / "v1.jsonl"
MakeReceipt = Callable[..., Receipt]


@pytest.fixture
def log(journal: Journal) -> ReceiptLog:
    return ReceiptLog(journal)


class TestAppend:
    def test_gives_the_receipt_back(self, log: ReceiptLog, make_receipt: MakeReceipt):
        receipt = make_receipt("r1", outcome="reject")
        assert log.append(receipt) == receipt
        assert log.get("r1") == receipt
        assert log.state("r1") == "logged"
        assert log.state("r2") is None

    def test_names_the_record_of_what_is_admitted(self, log: ReceiptLog, make_receipt: MakeReceipt):
        receipt = make_receipt("r1", text="Ana likes tea.")
        assert log.append(receipt).record_key == record_key("Ana likes tea.")
        assert log.state("r1") == "pending"
        assert log.append(receipt) == log.get("r1")
        assert [event.kind for event in log.history("r1")] == ["decided", "intended"]

    def test_the_first_decision_stands(self, log: ReceiptLog, make_receipt: MakeReceipt):
        first = log.append(make_receipt("r1", text="Tea.", outcome="reject"))
        assert log.append(make_receipt("r2", text="Tea.")) == first
        other = log.append(make_receipt("r3", text="Tea.", policy="p2"))
        assert other.id == "r3"
        assert log.find(first.candidate.id, policy_digest="p1") == first
        assert log.find(first.candidate.id, policy_digest="p2") == other
        assert log.find(first.candidate.id, policy_digest="p3") is None

    def test_a_nan_is_logged_as_null(self, log: ReceiptLog, make_receipt: MakeReceipt):
        receipt = make_receipt("r1", outcome="reject")
        report = MethodReport(
            method="m", spec={}, decision=receipt.decision, evidence={"score": float("nan")}
        )
        receipt = receipt.model_copy(update={"reports": (report,)})
        log.append(receipt)
        assert log.append(receipt).reports[0].evidence == {"score": None}

    def test_an_id_is_not_used_twice(self, log: ReceiptLog, make_receipt: MakeReceipt):
        log.append(make_receipt("r1"))
        with pytest.raises(ReceiptError, match="'r1' is in the log with other content"):
            log.append(make_receipt("r1", text="Other."))

    async def test_find_all(self, log: ReceiptLog, make_receipt: MakeReceipt):
        a = await log.aappend(make_receipt("a", outcome="reject"))
        b = await log.aappend(make_receipt("b", outcome="reject"))
        found = await log.afind_all([a.candidate.id, b.candidate.id, "zz"], policy_digest="p1")
        assert found == {a.candidate.id: a, b.candidate.id: b}
        assert await log.afind(a.candidate.id, policy_digest="p1") == a


class TestGet:
    def test_by_prefix(self, log: ReceiptLog, make_receipt: MakeReceipt):
        for name in ("abc1", "abd2", "abd"):
            log.append(make_receipt(name))
        assert log.get("abc").id == "abc1"
        assert log.get("abd").id == "abd"
        with pytest.raises(InvalidInputError, match="'ab' fits 'abc1', 'abd', 'abd2'") as caught:
            log.get("ab")
        assert caught.value.code == ErrorCode.RECEIPT_NOT_FOUND

    def test_names_five_matches(self, log: ReceiptLog, make_receipt: MakeReceipt):
        for n in range(7):
            log.append(make_receipt(f"x{n}"))
        with pytest.raises(InvalidInputError, match="'x4' and more"):
            log.get("x")

    async def test_unknown(self, log: ReceiptLog):
        with pytest.raises(InvalidInputError, match="no receipt has the id 'nope'"):
            await log.aget("nope")


class TestList:
    def test_pages_from_the_newest(self, log: ReceiptLog, make_receipt: MakeReceipt):
        for n in range(5):
            log.append(make_receipt(f"r{n}"))
        page = log.list(limit=2)
        assert [r.id for r in page.receipts] == ["r4", "r3"]
        page = log.list(limit=2, before=page.before)
        assert [r.id for r in page.receipts] == ["r2", "r1"]
        page = log.list(limit=2, before=page.before)
        assert [r.id for r in page.receipts] == ["r0"]
        assert page.before is None

    def test_filters(self, log: ReceiptLog, make_receipt: MakeReceipt):
        noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
        # 12:30 in UTC, though it reads later than 13:00.
        half_past = datetime(2026, 3, 1, 14, 30, tzinfo=timezone(timedelta(hours=2)))
        log.append(make_receipt("a", at=noon, run="one"))
        log.append(make_receipt("b", at=half_past, outcome="reject"))
        log.append(make_receipt("c", at=noon + timedelta(hours=1), namespace=("memories", "an")))
        log.append(make_receipt("d", at=noon, namespace=("memories", "ana", "work"), run="one"))
        log.append(make_receipt("e", at=noon, namespace=('m"e', "%")))

        def ids(which: ReceiptFilter) -> str:
            return "".join(r.id for r in log.list(which).receipts)

        assert ids(ReceiptFilter(namespace=("memories",))) == "dcba"
        assert ids(ReceiptFilter(namespace=("memories", "ana"))) == "dba"
        assert ids(ReceiptFilter(namespace=("memories", "an"))) == "c"
        assert ids(ReceiptFilter(namespace=('m"e',))) == "e"
        assert ids(ReceiptFilter(namespace=("m%",))) == ""
        assert ids(ReceiptFilter(outcome="rejected")) == "b"
        assert ids(ReceiptFilter(run_id="one", outcome="stored")) == "da"
        assert ids(ReceiptFilter(since=half_past)) == "cb"
        assert ids(ReceiptFilter(until=half_past)) == "eda"
        assert ids(ReceiptFilter(until=datetime(2026, 3, 1, 12, 30))) == "eda"  # noqa: DTZ001
        assert ids(ReceiptFilter(candidate_id=log.get("a").candidate.id)) == "a"
        assert log.count(ReceiptFilter(namespace=("memories",))) == {"stored": 3, "rejected": 1}

    async def test_counts_by_outcome(self, log: ReceiptLog, make_receipt: MakeReceipt):
        await log.aappend(make_receipt("a"))
        await log.aappend(make_receipt("b", outcome="reject", reason="no_source"))
        await log.aappend(make_receipt("c", outcome="quarantine"))
        await log.aappend(make_receipt("d", outcome="reject", reason="duplicate"))
        assert await log.acount() == {"stored": 1, "refused": 1, "quarantined": 1, "duplicate": 1}
        assert [r.id for r in (await log.alist(ReceiptFilter(outcome="duplicate"))).receipts] == [
            "d"
        ]


class TestReplay:
    async def test_is_the_whole_log_in_order(self, log: ReceiptLog, make_receipt: MakeReceipt):
        for n in range(400):
            await log.aappend(make_receipt(f"r{n}", outcome="quarantine"))
        events = await asyncio.to_thread(lambda: list(log.replay()))
        assert len(events) == 800
        assert events == [event async for event in log.areplay()]
        assert [event.seq for event in events] == sorted({event.seq for event in events})
        assert set(live_states(events).values()) == {"held"}
        assert await log.astate("r7") == "held"
        assert len(await log.ahistory("r7")) == 2


class TestRecordKey:
    def test_white_space_makes_no_difference_and_case_does(self):
        assert record_key("Ana  likes\ntea. ") == record_key("Ana likes tea.")
        assert record_key("ana likes tea.") != record_key("Ana likes tea.")

    def test_never_changes(self):
        assert record_key("Ana likes tea.") == "545e45e8-2a16-9b2f-faf3-b82b047467ba"

    def test_is_on_the_record(self, make_receipt: MakeReceipt):
        receipt = make_receipt("r1", text="Ana likes tea.")
        record = record_of(receipt)
        assert record.key == record_key("Ana likes tea.")
        assert record.provenance.receipt_id == "r1"
        assert record.provenance.candidate_id == receipt.candidate.id
        assert record_of(receipt.model_copy(update={"record_key": "k"})).key == "k"


class TestGolden:
    """Receipts as version 1 wrote them; they must load for ever."""

    LINES = tuple(GOLDEN.read_text(encoding="utf-8").splitlines())

    @pytest.mark.parametrize("line", LINES)
    def test_loads_and_writes_the_same(self, line: str, log: ReceiptLog):
        receipt = Receipt.model_validate_json(line)
        written = receipt.model_dump_json(exclude_computed_fields=True)
        assert json.loads(written) == json.loads(line)
        # What a user sees has the outcome, too; read again, it is the same receipt.
        shown = receipt.model_dump_json()
        assert json.loads(shown)["outcome"] == receipt.outcome
        assert Receipt.model_validate_json(shown) == receipt
        log.append(receipt)
        assert log.get(receipt.id) == receipt

    def test_covers_every_outcome(self):
        outcomes = {Receipt.model_validate_json(line).outcome for line in self.LINES}
        assert outcomes == {"stored", "duplicate", "quarantined", "rejected", "refused"}


def test_a_receipt_of_a_newer_version_is_named(
    journal: Journal, log: ReceiptLog, make_receipt: MakeReceipt
):
    body = {**make_receipt("r1").model_dump(mode="json"), "schema_version": 7, "mood": "new"}
    journal.write(
        lambda db: db.execute(
            "INSERT INTO receipts VALUES (1, 'r1', 'c', 'p', '[]', '', '', '', '', '', ?)",
            (json.dumps(body),),
        )
    )
    with pytest.raises(ReceiptError, match="schema version 7"):
        log.get("r1")


@pytest.mark.parametrize("kind", [ReceiptLog, Quarantine, ExtractionLog])
def test_every_method_has_its_twin(kind: type):
    methods = {name for name in vars(kind) if not name.startswith("_")}
    plain = {name for name in methods if f"a{name}" in methods}
    assert methods == plain | {f"a{name}" for name in plain}
    for name in plain:
        one, other = (inspect.signature(vars(kind)[each]) for each in (name, f"a{name}"))
        assert one.parameters == other.parameters


def test_odd_text_survives(log: ReceiptLog, make_receipt: MakeReceipt):
    receipt = make_receipt(
        "r1", text='Ana said "\u00e9\u4e2d\U0001f600 \x00 \u2028 {x} %s \'; DROP"'
    )
    logged = log.append(receipt)
    assert log.get("r1").candidate == receipt.candidate == logged.candidate
    assert CandidateMemory.model_validate_json(receipt.candidate.model_dump_json()) == (
        receipt.candidate
    )
