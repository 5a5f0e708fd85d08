"""The log is append-only, replays to its live state, and agrees with the store after any crash."""

import asyncio
import contextlib
import json
import sqlite3
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import Op
from langgraph.store.memory import InMemoryStore

from memguard.errors import InvalidInputError, MemguardError, ReceiptError
from memguard.journal.audit import audit
from memguard.journal.commit import commit
from memguard.journal.events import live_states
from memguard.journal.journal import Journal, Work
from memguard.journal.quarantine import Quarantine
from memguard.journal.receipts import ReceiptFilter, ReceiptLog
from memguard.journal.recovery import recover
from memguard.journal.removal import delete_memory, forget_memory
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import CandidateMemory, Turn, record_key, same_text_form
from memguard.schema.receipt import MethodReport, PromptStamp, Receipt, Usage

T = TypeVar("T")
P = ParamSpec("P")
ANA = ("memories", "ana")

texts = st.text(max_size=40)
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
moments = st.datetimes(
    min_value=datetime(1990, 1, 1),  # noqa: DTZ001 - the strategy adds the zone
    max_value=datetime(2090, 1, 1),  # noqa: DTZ001
    timezones=st.integers(-840, 840).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
decisions = st.builds(
    AdmissionDecision,
    outcome=st.sampled_from(["admit", "quarantine", "reject"]),
    reason=st.sampled_from(
        ["supported", "low_support", "inconclusive", "duplicate", "blank_text", "no_source"]
    ),
    explanation=texts,
    method=words,
)
namespaces = st.lists(words, max_size=3).map(tuple)
turns = st.builds(
    Turn,
    id=words,
    role=st.sampled_from(["user", "assistant", "tool"]),
    content=texts,
    speaker=words,
    at=st.none() | moments,
    rendered=st.booleans(),
)
candidates = st.builds(
    CandidateMemory,
    text=texts,
    namespace=namespaces,
    turn_ids=st.lists(words, max_size=2).map(tuple),
    subject=words,
    said_by=st.sampled_from(["user", "assistant", "tool", "document", "mixed", "unknown"]),
    said_at=st.none() | moments,
    conversation_id=words,
)
reports = st.builds(
    MethodReport,
    method=words,
    spec=st.dictionaries(words, json_values, max_size=3),
    decision=decisions,
    evidence=st.dictionaries(words, json_values, max_size=3),
    context=st.lists(turns, max_size=2).map(tuple),
    usage=st.builds(
        Usage,
        calls=st.integers(0, 99),
        latency=st.floats(0, 1e6),
        cost=st.none() | st.floats(0, 1e6),
    ),
    prompts=st.lists(
        st.builds(PromptStamp, name=words, version=words, digest=words), max_size=1
    ).map(tuple),
    models=st.dictionaries(words, words, max_size=2),
    notes=st.lists(words, max_size=2).map(tuple),
)
receipts = st.builds(
    Receipt,
    id=st.uuids().map(str),
    at=moments,
    run_id=words,
    candidate=candidates,
    namespace=namespaces,
    decision=decisions,
    reports=st.lists(reports, max_size=2).map(tuple),
    record_key=st.just("") | words,
    policy_digest=words,
)


@given(receipts)
def test_receipts_round_trip_through_json(receipt: Receipt):
    assert Receipt.model_validate_json(receipt.model_dump_json()) == receipt
    assert Receipt.model_validate(json.loads(json.dumps(receipt.model_dump(mode="json")))) == (
        receipt
    )


@given(st.lists(receipts, max_size=5))
@settings(max_examples=50, deadline=None)
def test_the_log_gives_back_what_it_was_given(given_receipts: list[Receipt]):
    with Journal.memory() as journal:
        log = ReceiptLog(journal)
        logged = [log.append(receipt) for receipt in given_receipts]
        for receipt, kept in zip(given_receipts, logged, strict=True):
            assert log.get(kept.id) == kept
            # Of two decisions on one candidate the first stands, with what it says of whom.
            assert kept.candidate == receipt.candidate or kept.id != receipt.id
            found = log.find(receipt.candidate.id, policy_digest=receipt.policy_digest)
            assert found == kept
            page = log.list(ReceiptFilter(namespace=receipt.namespace, since=kept.at))
            assert kept in page.receipts or kept.id != receipt.id
        assert sum(log.count().values()) == len({receipt.id for receipt in logged})


@given(namespaces, namespaces)
@settings(max_examples=200, deadline=None)
def test_a_namespace_filter_is_the_prefix(one: tuple[str, ...], other: tuple[str, ...]):
    where, values = ReceiptFilter(namespace=one).where()
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE receipts (seq INTEGER PRIMARY KEY, namespace TEXT)")
    db.execute(
        "INSERT INTO receipts (namespace) VALUES (?)", (json.dumps(other, separators=(",", ":")),)
    )
    matched = db.execute(f"SELECT count(*) FROM receipts WHERE {where}", values).fetchone()[0]
    db.close()
    assert bool(matched) == (other[: len(one)] == one)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from([" ", "\n", "\t  "]))
def test_white_space_never_changes_the_key(text: str, space: str):
    assert record_key(text) == record_key(f"{space}{text.replace(' ', space)}{space}")
    assert record_key(text) == record_key(same_text_form(text))


def receipt_of(number: int, outcome: str, text: str) -> Receipt:
    return Receipt.model_validate(
        {
            "id": f"r{number}",
            "at": datetime(2026, 3, 1, tzinfo=UTC),
            "run_id": "run",
            "candidate": {"text": text, "namespace": ANA, "turn_ids": (f"t{number}",)},
            "namespace": ANA,
            "decision": {
                "outcome": outcome,
                "reason": "supported" if outcome == "admit" else "low_support",
                "explanation": "Because.",
            },
        }
    )


numbers = st.integers(0, 7)
acts = st.tuples(
    st.sampled_from(["commit", "commit", "append", "release", "discard", "delete", "forget"]),
    numbers,
    st.sampled_from(["admit", "quarantine", "reject"]),
)


async def act(journal: Journal, store: InMemoryStore, what: str, number: int, outcome: str) -> None:
    receipt = receipt_of(number, outcome, f"Text {number % 5}.")
    quarantine = Quarantine(journal)
    if what == "commit":
        await commit(journal, store, [receipt])
    elif what == "append":
        await ReceiptLog(journal).aappend(receipt)
    elif what == "release":
        await quarantine.arelease(receipt.id, actor="me", store=store)
    elif what == "discard":
        await quarantine.adiscard(receipt.id, actor="me", reason="no")
    elif what == "delete":
        await delete_memory(journal, store, receipt.id, actor="me", reason="no")
    else:
        await forget_memory(journal, store, receipt.id, actor="me", reason="no")


async def live_and_replayed_agree(journal: Journal) -> None:
    log = ReceiptLog(journal)
    states = live_states([event async for event in log.areplay()])
    assert {rid: await log.astate(rid) for rid in states} == states
    known = {r.id for r in (await log.alist(limit=1000)).receipts}
    assert known == {rid for rid, state in states.items() if state != "forgotten"}
    held = {r.id for r in (await Quarantine(journal).alist(limit=1000)).receipts}
    assert held == {rid for rid, state in states.items() if state == "held"}
    pending = (await audit(journal, InMemoryStore())).pending
    assert set(pending) == {rid for rid, s in states.items() if s in {"pending", "releasing"}}
    assert sum((await log.acount()).values()) == len(known)


@given(st.lists(acts, max_size=25))
@settings(max_examples=60, deadline=None)
def test_replay_is_the_live_state(plan: list[tuple[str, int, str]]):
    async def run() -> None:
        async with Journal.memory() as journal:
            store = InMemoryStore()
            before: list[Any] = []
            for what, number, outcome in plan:
                # What the state of a decision forbids is refused, and must change nothing.
                with contextlib.suppress(InvalidInputError, ReceiptError):
                    await act(journal, store, what, number, outcome)
                after = [event async for event in ReceiptLog(journal).areplay()]
                if what != "forget":
                    assert after[: len(before)] == before
                before = after
            await live_and_replayed_agree(journal)
            await recover(journal, store)
            found = await audit(journal, store)
            assert found.agrees, found

    asyncio.run(run())


class CrashError(Exception):
    """The process dies here."""


class Fuse:
    """Burns at the n-th boundary it is told of."""

    def __init__(self, boundary: int) -> None:
        self.left = boundary

    def pass_by(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise CrashError


class CrashingStore(InMemoryStore):
    """Dies before or after an exchange, or between two operations of one."""

    def __init__(self, items: InMemoryStore, fuse: Fuse) -> None:
        super().__init__()
        self._data = items._data
        self._fuse = fuse

    async def abatch(self, ops: Iterable[Op]) -> list[Any]:
        results: list[Any] = []
        for op in ops:
            self._fuse.pass_by()
            results.extend(await super().abatch([op]))
        self._fuse.pass_by()
        return results


class CrashingJournal(Journal):
    """Dies before a transaction begins, within it, or when it is done."""

    fuse: Fuse

    async def awrite(self, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        def crashing(db: sqlite3.Connection) -> T:
            result = work(db, *args, **kwargs)
            self.fuse.pass_by()
            return result

        self.fuse.pass_by()
        result = await super().awrite(crashing)
        self.fuse.pass_by()
        return result


def batches() -> st.SearchStrategy[list[list[Receipt]]]:
    """A few batches; texts repeat, so that some records are there already."""
    receipt = st.builds(
        receipt_of,
        numbers,
        st.sampled_from(["admit", "admit", "quarantine", "reject"]),
        st.integers(0, 5).map(lambda n: f"Text {n}."),
    )
    unique = st.lists(receipt, min_size=1, max_size=8, unique_by=lambda each: each.id)
    return unique.map(lambda all_: [all_[:3], all_[3:]])


@given(batches(), st.integers(1, 40), st.booleans())
@settings(max_examples=150, deadline=None)
def test_after_a_crash_at_any_step_log_and_store_agree(
    plan: list[list[Receipt]], boundary: int, release: bool
):
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(crash_and_look(Path(folder) / "log.db", plan, boundary, release=release))


async def crash_and_look(
    path: Path, plan: list[list[Receipt]], boundary: int, *, release: bool
) -> None:
    items = InMemoryStore()
    acknowledged: list[str] = []
    fuse = Fuse(boundary)
    journal = await CrashingJournal.aopen(path)
    journal.fuse = fuse
    store = CrashingStore(items, fuse)
    try:
        for batch in plan:
            done = await commit(journal, store, batch)
            acknowledged += [r.id for r in done.receipts if r.outcome == "stored"]
        held = (await Quarantine(journal).alist()).receipts
        for receipt in held if release else ():
            await Quarantine(journal).arelease(receipt.id, actor="me", store=store)
            acknowledged.append(receipt.id)
    except (CrashError, MemguardError) as error:
        # The store's edge turns the crash into its own error; a dead process would not.
        if CrashError not in {type(error), type(error.__cause__)}:
            raise
    await journal.aclose()
    async with await Journal.aopen(path) as reopened:
        log = ReceiptLog(reopened)
        before = await audit(reopened, items)
        assert before.without_receipt == ()
        assert before.without_record == ()
        assert before.altered == ()
        for receipt_id in acknowledged:
            assert await log.astate(receipt_id) in {"stored", "released"}
        recovered = await recover(reopened, items)
        assert len(recovered.records) == len(before.pending)
        assert (await recover(reopened, items)).records == ()
        assert (await audit(reopened, items)).agrees
        await live_and_replayed_agree(reopened)
        # The run is begun again: nothing changes but what was never logged.
        for batch in plan:
            await commit(reopened, items, batch)
        assert (await audit(reopened, items)).agrees
        stored = (await log.alist(ReceiptFilter(outcome="stored"), limit=100)).receipts
        admitted = {r.id for batch in plan for r in batch if r.outcome == "stored"}
        assert {r.id for r in stored} == admitted


@pytest.mark.parametrize("boundary", range(1, 30))
def test_every_boundary_of_one_plain_plan(boundary: int, tmp_path: Path):
    plan = [
        [receipt_of(0, "admit", "A."), receipt_of(1, "quarantine", "B.")],
        [receipt_of(2, "admit", "A."), receipt_of(3, "admit", "C.")],
    ]
    asyncio.run(crash_and_look(tmp_path / "log.db", plan, boundary, release=True))
