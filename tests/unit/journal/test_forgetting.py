"""Forgetting: what is erased, what stays, and what an interruption leaves."""

import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from memguard import Memories, create_write_guard
from memguard.errors import (
    ErrorCode,
    InvalidInputError,
    ReceiptError,
    RecordChangedError,
    StoreError,
)
from memguard.journal import forgetting as forgetting_module
from memguard.journal.audit import audit
from memguard.journal.caches import DecompositionLog, ExtractionLog, LoggedExtraction, owned_by
from memguard.journal.commit import commit
from memguard.journal.erasing import unfinished_forgettings
from memguard.journal.forgetting import (
    ForgetReport,
    ForgetSelection,
    finish_forgettings,
    forget,
    list_forgettings,
)
from memguard.journal.journal import Journal
from memguard.journal.lineage import lineage
from memguard.journal.quarantine import Quarantine
from memguard.journal.reads import ReadLog
from memguard.journal.receipts import ReceiptFilter, ReceiptLog, record_decision
from memguard.journal.recovery import recover
from memguard.journal.repair import repair
from memguard.journal.scrub import scrub
from memguard.journal.undo import undo
from memguard.local.event_times import event_time
from memguard.schema.base import Namespace
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import (
    CandidateMemory,
    Lifecycle,
    Provenance,
    Turn,
    lifecycle_of,
    record_key,
    with_lifecycle,
)
from memguard.schema.read import Evidence, Ledger, ReadReport, RecalledMemory, Situation
from memguard.schema.receipt import MethodReport, Receipt
from memguard.schema.relations import RecordChange
from memguard.schema.units import Piece, Pieces
from memguard.testing.embeddings import HashEmbeddings
from tests.raw_files import files_with

ANA: Namespace = ("memories", "ana")
BEN: Namespace = ("memories", "ben")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PORTO = "I live in Portovenere with Zerberus."
LISBON = "I live in Lissabonita now."
PORTO_WORDS = ("Portovenere", "Zerberus", PORTO)
KEY = record_key(PORTO)


def build(
    receipt_id: str,
    text: str,
    *,
    namespace: Namespace = ANA,
    outcome: Any = "admit",
    conversation: str = "c1",
    turn: str = "t1",
    context: tuple[Turn, ...] = (),
    explanation: str = "The user said so.",
    changes: tuple[RecordChange, ...] = (),
    evidence: dict[str, Any] | None = None,
    policy: str = "p1",
) -> Receipt:
    candidate = CandidateMemory(
        text=text, namespace=namespace, turn_ids=(turn,), conversation_id=conversation
    )
    decision = AdmissionDecision(
        outcome=outcome,
        reason="supported" if outcome == "admit" else "low_support",
        explanation=explanation,
        method="consistency_gate",
    )
    report = MethodReport(
        method="consistency_gate",
        spec={},
        decision=decision,
        evidence=evidence or {"score": 0.9},
        context=context,
    )
    return Receipt(
        id=receipt_id,
        at=NOON,
        run_id="run-1",
        candidate=candidate,
        namespace=namespace,
        decision=decision,
        reports=(report,),
        policy_digest=policy,
        changes=changes,
    )


def build_read(read_id: str, *, query: str, text: str, candidate: str, evidence: str) -> ReadReport:
    memory = RecalledMemory(
        text=text,
        key="k1",
        namespace=ANA,
        provenance=Provenance(candidate_id=candidate, receipt_id="r1"),
    )
    return ReadReport(
        id=read_id,
        at=NOON,
        run_id="run-1",
        method="permission_semantic",
        spec={},
        query=query,
        namespaces=(ANA,),
        evidence=(Evidence(text=evidence),),
        memories=(memory,),
        ledger=Ledger(
            scheme="units", situation=Situation(target="user", mode="factual"), verdicts=()
        ),
        memory_context=f"You know: {text}",
    )


TURN = Turn(id="t1", role="user", content="Since May I live in Portovenere, with Zerberus my dog.")
LATER = Turn(id="t9", role="user", content="I moved from Portovenere to Lissabonita.")


async def fill(journal: Journal, store: Any) -> None:
    """A correction, a repeat, what is held and rejected, reads and caches, and another user."""
    old = build("old", PORTO, context=(TURN,))
    await commit(journal, store, [old])
    await commit(journal, store, [build("ben", "I like tea.", namespace=BEN, conversation="c8")])
    change = RecordChange(
        namespace=ANA,
        key=KEY,
        before=Lifecycle(),
        after=Lifecycle(
            superseded_by=record_key(LISBON), ended_as="superseded", reason="left Portovenere"
        ),
        candidate_id=old.candidate.id,
    )
    new = build(
        "new",
        LISBON,
        turn="t9",
        context=(TURN, LATER),
        explanation=f'superseded "{PORTO}" (said 2026-03-01): the user moved',
        changes=(change,),
        evidence={"neighbours": [{"key": KEY, "text": PORTO}], "score": 0.8},
    )
    await commit(journal, store, [new])
    await mark(store, PORTO, change.after)
    await commit(journal, store, [build("held", PORTO, outcome="quarantine", turn="t2")])
    await commit(journal, store, [build("no", PORTO.upper(), outcome="reject", turn="t3")])
    await ReadLog(journal).aappend(
        build_read(
            "read-1",
            query="Where do I live? Portovenere?",
            text=PORTO,
            candidate=old.candidate.id,
            evidence="Zerberus barks.",
        )
    )
    await ReadLog(journal).aappend(
        build_read("read-2", query="What tea?", text="Tea.", candidate="x", evidence="None.")
    )
    await ExtractionLog(journal).arecord(
        LoggedExtraction(
            conversation_key="memories/ana/c1",
            writer_digest="w",
            turn_keys=("digest-of-a-turn",),
            candidates=(old.candidate,),
        )
    )
    pieces = Pieces(pieces=(Piece(text="I live in Portovenere"),))
    with owned_by({"key": old.candidate.id}):
        await DecompositionLog(journal).aput({"key": pieces, "foreign": pieces})


async def mark(store: Any, text: str, lifecycle: Lifecycle, namespace: Namespace = ANA) -> None:
    item = await store.aget(namespace, record_key(text))
    await store.aput(namespace, item.key, with_lifecycle(item.value, lifecycle), index=False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.sqlite3"


@pytest.fixture
def journal(path: Path) -> Iterator[Journal]:
    with Journal.open(path, clock=lambda: NOON) as opened:
        yield opened


@pytest.fixture
def store() -> InMemoryStore:
    return InMemoryStore()


def by_id(memory: str) -> ForgetSelection:
    return ForgetSelection(namespace=ANA, memory=memory)


class TestOneMemory:
    @pytest.mark.parametrize("which", [KEY, "old", KEY[:9], "held"])
    async def test_no_file_has_its_text(
        self, journal: Journal, store: InMemoryStore, tmp_path: Path, which: str
    ):
        await fill(journal, store)
        assert files_with(tmp_path, PORTO_WORDS)
        report = await forget(journal, store, selection=by_id(which), actor="ana", reason="asked")
        assert files_with(tmp_path, (*PORTO_WORDS, KEY, "digest-of-a-turn")) == set()
        assert set(report.receipt_ids) == {"old", "held"} | set(report.receipt_ids)
        assert (report.records, report.superseded, report.quarantined) == (0, 1, 1)
        assert (report.reads, report.extractions, report.decompositions) == (1, 1, 2)
        assert report.count == 2

    async def test_the_rest_stays_and_can_be_read(self, journal: Journal, store: InMemoryStore):
        await fill(journal, store)
        await forget(journal, store, selection=by_id(KEY), actor="ana")
        log = ReceiptLog(journal)
        new = await log.aget("new")
        assert new.candidate.text == LISBON
        assert new.decision.reason == "supported"
        assert (
            new.decision.explanation == 'superseded "[forgotten]" (said 2026-03-01): the user moved'
        )
        contents = [turn.content for turn in new.reports[0].context]
        assert contents == ["[forgotten]", "[forgotten]"]
        assert new.changes[0].after.reason == "[forgotten]"
        assert new.changes[0].after.superseded_by == record_key(LISBON)
        assert (await store.aget(ANA, record_key(LISBON))) is not None
        assert (await store.aget(BEN, record_key("I like tea."))) is not None
        assert (await log.aget("ben")).candidate.text == "I like tea."
        assert [read.id for read in (await ReadLog(journal).alist()).reads] == ["read-2"]
        assert [event.kind for event in await log.ahistory("old")] == ["forgotten"]
        assert (await recover(journal, store)).line == ""

    async def test_marks_on_what_it_replaced_are_erased(
        self, journal: Journal, store: InMemoryStore, tmp_path: Path
    ):
        await fill(journal, store)
        await commit(journal, store, [build("d", "My dog sleeps.", turn="t5")])
        detail = Lifecycle(detail_of=record_key(LISBON), conflicts_with=(record_key(LISBON), "k"))
        await mark(store, "My dog sleeps.", detail)
        await mark(
            store,
            PORTO,
            Lifecycle(
                superseded_by=record_key(LISBON),
                ended_as="superseded",
                reason="the user moved to Lissabonita",
            ),
        )
        report = await forget(journal, store, selection=by_id(record_key(LISBON)), actor="ana")
        assert report.marks == 2
        item = await store.aget(ANA, KEY)
        assert item is not None
        lifecycle = lifecycle_of(item.value)
        assert not lifecycle.is_current
        assert (lifecycle.superseded_by, lifecycle.reason) == ("[forgotten]", "[forgotten]")
        dog = await store.aget(ANA, record_key("My dog sleeps."))
        assert dog is not None
        assert lifecycle_of(dog.value) == Lifecycle(conflicts_with=("k",))
        assert files_with(tmp_path, ("Lissabonita", record_key(LISBON))) == set()

    async def test_every_generation_of_a_text(
        self, journal: Journal, store: InMemoryStore, tmp_path: Path
    ):
        await fill(journal, store)
        again = build("again", PORTO, turn="t12", policy="p2")
        key = record_key(PORTO, generation=1)
        await commit(journal, store, [again.model_copy(update={"record_key": key})])
        assert len(await store.asearch(ANA)) == 3
        await forget(journal, store, selection=by_id("again"), actor="ana")
        assert [item.key for item in await store.asearch(ANA)] == [record_key(LISBON)]
        assert files_with(tmp_path, PORTO_WORDS) == set()

    async def test_the_same_text_of_another_user_stays(
        self, journal: Journal, store: InMemoryStore
    ):
        await fill(journal, store)
        await commit(journal, store, [build("b", PORTO, namespace=BEN, conversation="c7")])
        await forget(journal, store, selection=by_id(KEY), actor="ana")
        assert (await store.aget(BEN, KEY)) is not None
        assert (await ReceiptLog(journal).aget("b")).candidate.text == PORTO

    async def test_unknown_and_ambiguous_ids(self, journal: Journal, store: InMemoryStore):
        await fill(journal, store)
        with pytest.raises(InvalidInputError, match="no receipt has the id 'zz'"):
            await forget(journal, store, selection=by_id("zz"), actor="ana")
        await commit(journal, store, [build("older", "Something else.", turn="t7")])
        with pytest.raises(InvalidInputError, match="give more of the id"):
            await forget(journal, store, selection=by_id("ol"), actor="ana")
        assert (await list_forgettings(journal)) == ()

    async def test_an_item_without_a_receipt(self, journal: Journal, store: InMemoryStore):
        await store.aput(ANA, "own-key", {"content": "Planted."})
        report = await forget(journal, store, selection=by_id("own-key"), actor="ana")
        assert (report.records, report.receipts, report.keys) == (1, 0, ("own-key",))
        assert await store.aget(ANA, "own-key") is None


class TestChains:
    """With corrections as the write guard makes them."""

    async def say(self, journal: Journal, store: InMemoryStore, text: str, at: int) -> Any:
        guard = create_write_guard("local", store=store, receipts=journal, namespace=ANA)
        turn = {"role": "user", "content": text, "id": f"t{at}", "at": f"2026-0{at}-01T12:00:00Z"}
        return (await guard.ainvoke({"messages": [turn]}))["writes"].receipts

    @pytest.fixture(autouse=True)
    def tables(self) -> None:
        # They are read from a file once, here in no event loop.
        event_time("I was born in 1990.", said_at=NOON)

    @pytest.fixture
    def ranked(self) -> InMemoryStore:
        return InMemoryStore(index={"dims": 64, "embed": HashEmbeddings(dims=64)})

    @pytest.mark.parametrize("forgotten", ["Oportonia", "Lissabonita", "Valenciana"])
    async def test_each_memory_of_a_chain(
        self, journal: Journal, ranked: InMemoryStore, tmp_path: Path, forgotten: str
    ):
        towns = ("Oportonia", "Lissabonita", "Valenciana")
        for month, town in enumerate(towns, start=1):
            await self.say(journal, ranked, f"I live in {town} now.", month)
        texts = [item.value["content"] for item in await ranked.asearch(ANA)]
        assert len(texts) == 3
        selection = ForgetSelection(namespace=ANA, contains=forgotten)
        await forget(journal, ranked, selection=selection, actor="ana")
        assert files_with(tmp_path, (forgotten,)) == set()
        remaining = [town for town in towns if town != forgotten]
        assert files_with(tmp_path, remaining) == {("log.sqlite3", town) for town in remaining}
        items = await ranked.asearch(ANA)
        assert not any(forgotten in str(item.value) for item in items)
        assert len(items) == 2
        assert (await audit(journal, ranked)).agrees
        assert (await repair(journal, ranked)).marked == ()
        chain = await lineage(journal, ranked, ANA, items[0].key)
        assert forgotten not in str(chain)
        # What was not replaced by a forgotten one can be taken back, and later ones can follow.
        page = await ReceiptLog(journal).alist()
        for receipt in page.receipts:
            item = await ranked.aget(ANA, receipt.record_key)
            assert item is not None
            lifecycle = lifecycle_of(item.value)
            if lifecycle.is_current:
                await undo(journal, ranked, receipt.id, actor="ana")
            elif lifecycle.superseded_by == "[forgotten]":
                with pytest.raises(RecordChangedError, match="replaced by one that was forgotten"):
                    await undo(journal, ranked, receipt.id, actor="ana")
        await self.say(journal, ranked, "I live in Zaragozana now.", 5)
        current = [
            item for item in await ranked.asearch(ANA) if lifecycle_of(item.value).is_current
        ]
        assert any("Zaragozana" in item.value["content"] for item in current)

    async def test_changes_by_a_person(
        self, journal: Journal, ranked: InMemoryStore, tmp_path: Path
    ):
        memories = Memories(ranked, namespace=ANA, receipts=journal)
        added = await memories.aadd("I live in Oportonia.", actor="ana")
        edited = await memories.aedit(
            added.record_key, "I live in Lissabonita.", actor="ana", reason="left Oportonia"
        )
        await memories.aundo(edited.id, actor="ana", reason="not Lissabonita yet")
        report = await memories.aforget(contains="lissabonita", actor="ana")
        assert files_with(tmp_path, ("Lissabonita", edited.record_key)) == set()
        assert report.superseded == 1
        (memory,) = (await memories.alist()).memories
        assert memory.text == "I live in Oportonia."
        await memories.aforget_user(actor="ana")
        assert files_with(tmp_path, ("Oportonia", added.record_key)) == set()
        assert await ranked.asearch(()) == []


class TestContains:
    async def test_all_with_a_text(self, journal: Journal, store: InMemoryStore, tmp_path: Path):
        await fill(journal, store)
        await commit(journal, store, [build("b", PORTO, namespace=BEN, conversation="c7")])
        selection = ForgetSelection(contains="PORTO\u200bVENERE")
        report = await forget(journal, store, selection=selection, actor="ana")
        assert report.count == 3
        assert files_with(tmp_path, ("Portovenere", "PORTO\u200bVENERE", "Zerberus")) == set()
        assert {item.key for item in await store.asearch(("memories",))} == {
            record_key(LISBON),
            record_key("I like tea."),
        }

    async def test_nothing_to_forget(self, journal: Journal, store: InMemoryStore):
        await fill(journal, store)
        selection = ForgetSelection(contains="Atlantis")
        report = await forget(journal, store, selection=selection, actor="ana")
        assert report.is_empty
        assert len(await store.asearch(("memories",))) == 3

    @pytest.mark.parametrize(
        "fields", [{}, {"memory": "a", "contains": "b"}, {"everything": True}, {"contains": " "}]
    )
    def test_what_a_selection_refuses(self, fields: dict[str, Any]):
        with pytest.raises(ValueError, match=r"one of|namespace|shows nothing"):
            ForgetSelection(**fields)


class TestEverything:
    async def test_of_one_user(self, journal: Journal, store: InMemoryStore, tmp_path: Path):
        await fill(journal, store)
        deep = (*ANA, "notes")
        await store.aput(deep, "n1", {"note": "Zerberus barks"})
        selection = ForgetSelection(namespace=ANA, everything=True)
        preview = await forget(journal, store, selection=selection, actor="ana", preview=True)
        report = await forget(journal, store, selection=selection, actor="dpo", reason="art. 17")
        words = (*PORTO_WORDS, LISBON, "Lissabonita", KEY, record_key(LISBON), "digest-of-a-turn")
        assert files_with(tmp_path, words) == set()
        assert (report.records, report.superseded, report.receipts) == (2, 1, 4)
        assert report.reads == 2
        changed = {"preview": True, "receipt_id": "", "notes": ()}
        assert preview == report.model_copy(update=changed)
        assert [item.key for item in await store.asearch(())] == [record_key("I like tea.")]
        log = ReceiptLog(journal)
        assert [receipt.id for receipt in (await log.alist()).receipts] == ["ben"]
        assert (await forget(journal, store, selection=selection, actor="dpo")).is_empty

    async def test_quotes_in_receipts_of_others(
        self, journal: Journal, store: InMemoryStore, tmp_path: Path
    ):
        """In a conversation of two, the receipts of one quote the turns of the other."""
        await fill(journal, store)
        shared = build("ben-2", "I have a cat.", namespace=BEN, turn="t8", context=(TURN, LATER))
        await commit(journal, store, [shared])
        selection = ForgetSelection(namespace=ANA, everything=True)
        report = await forget(journal, store, selection=selection, actor="ana")
        assert report.quotes == 1
        assert files_with(tmp_path, ("Portovenere", "Zerberus", "Lissabonita")) == set()
        assert (await ReceiptLog(journal).aget("ben-2")).candidate.text == "I have a cat."

    async def test_the_receipt_has_no_text(self, journal: Journal, store: InMemoryStore):
        await fill(journal, store)
        selection = ForgetSelection(contains="Portovenere")
        reason = "she left Portovenere"
        report = await forget(journal, store, selection=selection, actor="ana", reason=reason)
        (receipt,) = await list_forgettings(journal)
        assert (receipt.id, receipt.actor, receipt.is_done) == (report.receipt_id, "ana", True)
        assert receipt.reason == "[forgotten]"
        assert receipt.counts["receipts"] == report.receipts
        assert receipt.at == NOON


class TestOtherPlaces:
    async def test_a_scrubbed_record_and_its_original(
        self, journal: Journal, store: InMemoryStore, tmp_path: Path
    ):
        await store.aput(ANA, "k1", {"content": "My password is hunter2-Xylophon, dear."})
        await scrub(journal, store, actor="me", apply=True)
        (item,) = await store.asearch(ANA)
        assert "hunter2" not in str(item.value)
        report = await forget(journal, store, selection=by_id(item.key), actor="ana")
        assert report.receipts == 2
        assert files_with(tmp_path, ("Xylophon", "dear")) == set()

    async def test_a_candidate_in_quarantine(
        self, journal: Journal, store: InMemoryStore, tmp_path: Path
    ):
        await commit(journal, store, [build("h", "My code is Xylophon.", outcome="quarantine")])
        report = await forget(journal, store, selection=by_id("h"), actor="ana")
        assert (report.quarantined, report.records, report.count) == (1, 0, 1)
        assert (await Quarantine(journal).alist()).receipts == ()
        assert files_with(tmp_path, ("Xylophon",)) == set()

    async def test_a_pending_write_does_not_come_back(self, journal: Journal, store: InMemoryStore):
        receipt = build("p", PORTO)
        await journal.awrite(record_decision, receipt, actor="me", at=NOON)
        await forget(journal, store, selection=by_id("p"), actor="ana")
        assert (await recover(journal, store)).records == ()
        assert await store.asearch(()) == []

    async def test_it_may_be_stored_again(self, journal: Journal, store: InMemoryStore):
        """Forgetting is not a ban: the same conversation may be read again."""
        receipt = build("old", PORTO)
        await commit(journal, store, [receipt])
        await forget(journal, store, selection=by_id("old"), actor="ana")
        with pytest.raises(ReceiptError, match="cannot come back"):
            await commit(journal, store, [receipt])
        await commit(journal, store, [receipt.model_copy(update={"id": "new"})])
        assert await store.aget(ANA, KEY) is not None

    async def test_copies_of_damaged_files_are_named(
        self, journal: Journal, store: InMemoryStore, tmp_path: Path
    ):
        (tmp_path / "damaged-20260301T120000").mkdir()
        await fill(journal, store)
        report = await forget(journal, store, selection=by_id(KEY), actor="ana")
        assert "damaged-20260301T120000" in report.notes[-1]

    async def test_a_log_in_memory(self, store: InMemoryStore):
        async with Journal.memory() as journal:
            await fill(journal, store)
            report = await forget(journal, store, selection=by_id(KEY), actor="ana")
            dump = "\n".join(await journal.aread(lambda db: list(db.iterdump())))
            assert report.receipts == 3
            assert "Portovenere" not in dump
            assert KEY not in dump


def fail(*_: object, **__: object) -> Any:
    msg = "stopped"
    raise StoreError(msg, code=ErrorCode.STORE_FAILED)


class Slow(InMemoryStore):
    """A store in which something happens just before a text is put."""

    def __init__(self, before_put: Callable[[], Awaitable[object]]) -> None:
        super().__init__()
        self.before_put: Callable[[], Awaitable[object]] | None = before_put

    async def abatch(self, ops: Any) -> Any:
        steps = list(ops)
        if self.before_put and any(PORTO in str(getattr(op, "value", "")) for op in steps):
            before_put, self.before_put = self.before_put, None
            await before_put()
        return await super().abatch(steps)


async def test_a_write_under_way_is_not_left_behind(journal: Journal, tmp_path: Path):
    store = Slow(lambda: forget(journal, store, selection=by_id("p"), actor="ana"))
    await commit(journal, store, [build("p", PORTO), build("q", "I like tea.", turn="t2")])
    assert [item.value["content"] for item in await store.asearch(())] == ["I like tea."]
    assert files_with(tmp_path, PORTO_WORDS) == set()
    assert await ReceiptLog(journal).astate("p") == "forgotten"
    assert await ReceiptLog(journal).astate("q") == "stored"


class TestInterruption:
    @pytest.mark.parametrize("step", ["_erase_from_store", "erase_traces", "_erase_bytes"])
    async def test_recover_completes_it(
        self,
        journal: Journal,
        store: InMemoryStore,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        step: str,
    ):
        await fill(journal, store)

        with monkeypatch.context() as broken:
            broken.setattr(forgetting_module, step, fail)
            with pytest.raises(StoreError):
                await forget(journal, store, selection=by_id(KEY), actor="ana", reason="asked")
        # What is written meanwhile is another memory.
        await commit(journal, store, [build("later", "I like Xylophon.", turn="t20")])
        result = await recover(journal, store)
        assert "interrupted forgettings completed: 1" in result.line
        assert files_with(tmp_path, (*PORTO_WORDS, KEY)) == set()
        (receipt,) = await list_forgettings(journal)
        assert (receipt.actor, receipt.is_done) == ("ana", True)
        assert await journal.aread(unfinished_forgettings) == ()
        assert await store.aget(ANA, record_key("I like Xylophon.")) is not None
        assert await finish_forgettings(journal, store) == ()

    async def test_new_memories_of_the_user_are_not_concerned(
        self, store: InMemoryStore, path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        async with Journal.open(path) as journal:
            await fill(journal, store)

            selection = ForgetSelection(namespace=ANA, everything=True)
            with monkeypatch.context() as broken:
                broken.setattr(forgetting_module, "_erase_from_store", fail)
                with pytest.raises(StoreError):
                    await forget(journal, store, selection=selection, actor="ana")
            await commit(journal, store, [build("later", "I like Xylophon.", turn="t20")])
            await recover(journal, store)
            items = await store.asearch(ANA)
            assert [item.value["content"] for item in items] == ["I like Xylophon."]
            receipts = await ReceiptLog(journal).alist(ReceiptFilter(namespace=ANA))
            assert [receipt.id for receipt in receipts.receipts] == ["later"]

    async def test_a_store_that_keeps_a_record_is_reported(self, journal: Journal):
        class Keeping(InMemoryStore):
            async def abatch(self, ops: Any) -> Any:
                return await super().abatch(
                    [replace_deletion(op) if getattr(op, "value", 0) is None else op for op in ops]
                )

        def replace_deletion(op: Any) -> Any:
            return op._replace(value={"content": "still here"})

        store = Keeping()
        await commit(journal, store, [build("old", PORTO)])
        with pytest.raises(StoreError, match="still in the store"):
            await forget(journal, store, selection=by_id("old"), actor="ana")


def _execute(db: sqlite3.Connection, sql: str) -> None:
    db.execute(sql)


class TestAppendOnly:
    SQL = (
        "UPDATE receipts SET body = '{}'",
        "UPDATE events SET body = '{}'",
        "DELETE FROM receipts",
        "DELETE FROM erasures",
        "DELETE FROM forgettings",
        "UPDATE forgettings SET body = '{}'",
        "UPDATE erasures SET row = 1",
        "UPDATE read_receipts SET body = '{}'",
    )

    @pytest.mark.parametrize("sql", SQL)
    async def test_a_finished_forgetting_permits_nothing(
        self, journal: Journal, store: InMemoryStore, sql: str
    ):
        await fill(journal, store)
        await forget(journal, store, selection=by_id(KEY), actor="ana")
        with pytest.raises(ReceiptError, match="append-only"):
            await journal.awrite(_execute, sql)

    async def test_only_the_document_of_a_named_row(self, journal: Journal, store: InMemoryStore):
        await fill(journal, store)

        def name(db: sqlite3.Connection) -> None:
            db.execute("INSERT INTO forgettings VALUES (1, 'f', 'a', '', '', 'started', '{}')")
            db.execute("INSERT INTO erasures VALUES (1, 'f', 'rewrite', 'receipts', 1)")

        await journal.awrite(name)
        await journal.awrite(lambda db: db.execute("UPDATE receipts SET body = body WHERE seq = 1"))
        for sql in (
            "UPDATE receipts SET outcome = 'rejected' WHERE seq = 1",
            "UPDATE receipts SET body = '' WHERE seq = 2",
            "DELETE FROM receipts WHERE seq = 1",
            "UPDATE forgettings SET actor = 'b'",
        ):
            with pytest.raises(ReceiptError, match="append-only"):
                await journal.awrite(_execute, sql)

    def test_an_erasure_needs_a_forgetting(self, journal: Journal):
        with pytest.raises(ReceiptError, match="not in the log"):
            journal.write(
                lambda db: db.execute("INSERT INTO erasures VALUES (1, 'x', 'delete', 'a', 1)")
            )


def test_a_report_counts_memories():
    report = ForgetReport(preview=True, records=1, superseded=2, quarantined=3, receipts=9)
    assert report.count == 6
    assert not report.is_empty
    assert ForgetReport(preview=True).is_empty
