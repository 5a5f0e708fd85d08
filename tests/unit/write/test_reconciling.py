"""Corrections through the write guard: what is stored, marked and reported."""

import asyncio
import itertools
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from memguard import ConsistencyGate, Reconcile, WriteReport, create_write_guard
from memguard.errors import ErrorCode, RecordChangedError
from memguard.journal.commit import Committer
from memguard.journal.journal import Journal
from memguard.methods.reconcile.rules import row_for
from memguard.schema.memory import Conversation, Lifecycle, Turn, lifecycle_of, record_key
from memguard.schema.receipt import Receipt
from memguard.testing import ScriptedChatModel
from memguard.testing.replies import relations
from tests.unit.methods.reconciling import ANA, JULY, JUNE, MAY, indexed_store
from tests.unit.write.scripts import JUDGES, RELATES, WRITES, scripted

HOMES = ("Porto", "Lisbon", "Rome", "Berlin")
ONE = ConsistencyGate(k=1)


def home(city: str) -> str:
    return f"I live in {city}."


def relate(text: str, memory: str) -> str | None:
    """What an exact reader says of homes: another city has replaced the one before."""
    if not (text.startswith("I live in") and memory.startswith("I live in")):
        return None
    return "duplicate" if text.rstrip("!.") == memory.rstrip("!.") else "supersedes"


def reading(relating: Any = None, **settings: Any) -> ScriptedChatModel:
    writer = scripted()
    answer = relating or relations(relate)

    def step(messages: Any) -> Any:
        return writer.invoke(messages).content

    rules = [(RELATES, answer), (WRITES, step), (JUDGES, step)]
    return ScriptedChatModel(rules=rules, **settings)


def turn(text: str, *, number: int = 1, at: datetime | None = None, **details: Any) -> Turn:
    return Turn(id=f"t{number}", role="user", content=text, at=at, **details)


GOLDEN = Path(__file__).parents[2] / "golden" / "receipts" / "reconcile-v1.jsonl"


class HostState(MessagesState):
    writes: WriteReport


class Memory:
    """A store with its journal, to which conversations are written."""

    def __init__(self, model: Any = None, **settings: Any) -> None:
        self.store, self.journal = indexed_store(), Journal.memory()
        self.model = model or reading()
        self.guard = create_write_guard(
            self.model,
            store=self.store,
            receipts=self.journal,
            namespace=ANA,
            gates=[ONE],
            **settings,
        )

    def write(self, *turns: Turn, talk: str = "talk") -> Any:
        conversation = Conversation(turns=turns, id=talk)
        return self.guard.invoke({"conversation": conversation})["writes"]

    @property
    def items(self) -> dict[str, Lifecycle]:
        found = self.store.search(ANA, limit=100)
        return {item.key: lifecycle_of(item.value) for item in found}

    @property
    def current(self) -> list[str]:
        found = self.store.search(ANA, limit=100)
        return sorted(i.value["content"] for i in found if lifecycle_of(i.value).is_current)


def test_a_correction_marks_the_old_memory_and_says_so() -> None:
    memory = Memory()
    memory.write(turn(home("Porto"), at=MAY), talk="one")
    writes = memory.write(turn(home("Lisbon"), at=JUNE), talk="two")
    (receipt,) = writes.receipts
    assert receipt.outcome == "stored"
    assert receipt.decision.reason == "supported"
    assert receipt.decision.explanation.endswith(
        'superseded "I live in Porto." (said 2026-05-01): scripted'
    )
    assert [report.method for report in receipt.reports] == ["consistency_gate", "reconcile"]
    assert receipt.score == 0.9
    assert writes.corrections == {"superseded": 1, "confirmed": 0, "conflicting": 0}
    assert "of the stored memories: 1 superseded" in writes.to_table().lines
    assert memory.current == [home("Lisbon")]
    old = memory.items[record_key(home("Porto"))]
    assert (old.superseded_by, old.valid_until) == (record_key(home("Lisbon")), JUNE)


def test_a_chain_of_corrections_and_back_again() -> None:
    memory = Memory()
    for number, city in enumerate(["Porto", "Lisbon", "Rome", "Porto"]):
        at = MAY.replace(month=5 + number)
        memory.write(turn(home(city), at=at), talk=f"talk {number}")
    assert memory.current == [home("Porto")]
    items = memory.items
    assert len(items) == 4
    again = record_key(home("Porto"), generation=1)
    assert items[again].is_current
    chain = [record_key(home(city)) for city in ("Porto", "Lisbon", "Rome")]
    assert [items[key].superseded_by for key in chain] == [*chain[1:], again]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
async def test_the_order_of_the_gates_does_not_matter(order: tuple[int, ...]) -> None:
    """Three homes in one conversation, without times; the gates end in any order."""
    memory = Memory()
    inner = memory.model

    class Slow(ScriptedChatModel):
        async def _agenerate(self, messages: Any, *args: Any, **settings: Any) -> Any:
            text = str(messages[-1].content)
            if "<memory>" in text:
                city = next(c for c in HOMES if f"in {c}" in text.partition("<memory>")[2])
                await asyncio.sleep(0.05 * order[HOMES.index(city)])
            return await super()._agenerate(messages, *args, **settings)

    slow = Slow(rules=inner.rules)
    guard = create_write_guard(
        slow, store=memory.store, receipts=memory.journal, namespace=ANA, gates=[ONE]
    )
    turns = [("user", home(city)) for city in HOMES[:3]]
    await guard.ainvoke({"messages": turns})
    assert memory.current == [home("Rome")]
    items = memory.items
    keys = [record_key(home(city)) for city in HOMES[:3]]
    assert [items[key].superseded_by for key in keys] == [*keys[1:], ""]


def test_a_late_import_does_not_become_current() -> None:
    memory = Memory()
    memory.write(turn(home("Rome"), at=JULY), talk="new")
    memory.write(turn(home("Porto"), at=MAY), talk="old")
    memory.write(turn(home("Lisbon"), at=JUNE), talk="middle")
    assert memory.current == [home("Rome")]
    items = memory.items
    keys = [record_key(home(city)) for city in HOMES[:3]]
    assert [items[key].superseded_by for key in keys] == [*keys[1:], ""]
    assert [items[key].valid_until for key in keys] == [JUNE, JULY, None]


def test_a_repeat_in_other_words_confirms() -> None:
    memory = Memory(reading(relations(lambda _, __: "duplicate")))
    memory.write(turn(home("Porto"), at=MAY), talk="one")
    writes = memory.write(turn("I live in Porto, as you know.", at=JUNE), talk="two")
    assert (writes.counts["duplicate"], writes.corrections["confirmed"]) == (1, 1)
    assert memory.current == [home("Porto")]
    lifecycle = memory.items[record_key(home("Porto"))]
    assert (lifecycle.confirmed_at, lifecycle.confirmed_by) == (JUNE, ("two:t1",))
    assert writes.receipts[0].record_key == record_key(home("Porto"))


def test_the_same_words_confirm_without_a_call() -> None:
    memory = Memory()
    memory.write(turn(home("Porto"), at=MAY), talk="one")
    calls = len(memory.model.calls)
    writes = memory.write(turn(home("Porto"), at=JUNE), talk="two")
    assert writes.counts["duplicate"] == 1
    assert memory.items[record_key(home("Porto"))].confirmed_at == JUNE
    assert len(memory.model.calls) == calls + 1  # the writer alone


def test_a_conversation_that_is_read_again_changes_nothing() -> None:
    """A client without message ids sends the whole thread each time."""
    memory = Memory()
    for size in (1, 2, 2, 2):
        turns = [("user", home(city)) for city in HOMES[:size]]
        config: Any = {"configurable": {"thread_id": "one"}}
        messages = [{"role": r, "content": c, "id": f"{size}{i}"} for i, (r, c) in enumerate(turns)]
        memory.guard.invoke({"messages": messages}, config)
        assert memory.current == [home(HOMES[size - 1])]
    assert len(memory.items) == 2


def test_an_old_file_that_is_imported_again_changes_nothing() -> None:
    memory = Memory()
    old = turn(home("Porto"), at=MAY)
    memory.write(old, talk="one")
    memory.write(turn(home("Lisbon"), at=JUNE), talk="two")
    writes = memory.write(old, talk="a copy")
    assert writes.counts["duplicate"] == 1
    assert "nothing says that it holds again" in writes.receipts[0].decision.explanation
    assert memory.current == [home("Lisbon")]


def test_a_document_changes_no_memory_of_the_user() -> None:
    memory = Memory()
    memory.write(turn(home("Porto"), at=MAY), talk="one")
    candidate = {"text": home("Lisbon"), "said_by": "document", "said_at": JUNE}
    result = memory.guard.invoke(
        {"candidates": [candidate], "messages": [("user", home("Lisbon"))]}
    )
    assert result["writes"].counts["stored"] == 1
    assert memory.current == [home("Lisbon"), home("Porto")]
    assert memory.items[record_key(home("Porto"))] == Lifecycle()


def test_another_speaker_changes_no_memory() -> None:
    memory = Memory()
    memory.write(turn(home("Porto"), at=MAY, speaker="Ana"), talk="one")
    memory.write(turn(home("Lisbon"), at=JUNE, speaker="Ben"), talk="two")
    assert memory.current == [home("Lisbon"), home("Porto")]


def test_without_reconciliation_both_stay() -> None:
    memory = Memory(reconcile=False)
    memory.write(turn(home("Porto"), at=MAY), talk="one")
    writes = memory.write(turn(home("Lisbon"), at=JUNE), talk="two")
    assert memory.current == [home("Lisbon"), home("Porto")]
    assert [report.method for report in writes.receipts[0].reports] == ["consistency_gate"]


def test_a_model_of_its_own_relates() -> None:
    relating = ScriptedChatModel(rules=[(RELATES, relations(relate))])
    memory = Memory(scripted(), models={"reconciler": relating})
    memory.write(turn(home("Porto"), at=MAY), talk="one")
    memory.write(turn(home("Lisbon"), at=JUNE), talk="two")
    assert len(relating.calls) == 1
    assert memory.current == [home("Lisbon")]


def test_another_writer_in_between_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit refuses changes of what somebody else changed; the candidate is compared again."""
    memory = Memory()
    memory.write(turn(home("Porto"), at=MAY), talk="one")
    refusals = _refuse_changes(monkeypatch, times=1)
    memory.write(turn(home("Lisbon"), at=JUNE), talk="two")
    assert refusals == [1]
    assert memory.current == [home("Lisbon")]


def test_after_three_refusals_it_is_stored_in_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory()
    memory.write(turn(home("Porto"), at=MAY), talk="one")
    refusals = _refuse_changes(monkeypatch, times=100)
    writes = memory.write(turn(home("Lisbon"), at=JUNE), talk="two")
    assert refusals == [1, 2, 3]
    (receipt,) = writes.receipts
    assert (receipt.outcome, receipt.changes) == ("stored", ())
    assert receipt.lifecycle.conflicts_with == (record_key(home("Porto")),)
    assert any("another writer" in note for note in receipt.reports[-1].notes)


def _refuse_changes(monkeypatch: pytest.MonkeyPatch, *, times: int) -> list[int]:
    refusals: list[int] = []
    commit = Committer.commit

    async def refusing(self: Committer, receipt: Any) -> Any:
        if receipt.changes and len(refusals) < times:
            refusals.append(len(refusals) + 1)
            msg = "somebody else changed it"
            raise RecordChangedError(msg, code=ErrorCode.RECORD_CHANGED)
        return await commit(self, receipt)

    monkeypatch.setattr(Committer, "commit", refusing)
    return refusals


async def test_two_runs_at_once_see_each_other() -> None:
    memory = Memory()

    async def write(city: str, at: datetime) -> None:
        talk = Conversation(turns=(turn(home(city), at=at),), id=city)
        await memory.guard.ainvoke({"conversation": talk})

    await asyncio.gather(
        *(write(city, MAY.replace(month=m)) for m, city in enumerate(HOMES, start=5))
    )
    assert memory.current == [home("Berlin")]


def test_a_conflict_waits_for_a_person_in_a_review() -> None:
    def contradict(_: str, memory: str) -> str | None:
        return "contradicts" if memory.startswith("I live in") else None

    store, journal = indexed_store(), Journal.memory()
    guard = create_write_guard(
        reading(relations(contradict)),
        store=store,
        receipts=journal,
        namespace=ANA,
        gates=[ONE],
        review="interrupt",
    )
    builder: Any = StateGraph(HostState)
    builder.add_node("remember", guard)
    builder.add_edge(START, "remember")
    host: Any = builder.compile(checkpointer=InMemorySaver())
    host.invoke({"messages": [("user", home("Porto"))]}, {"configurable": {"thread_id": "1"}})
    config: Any = {"configurable": {"thread_id": "2"}}
    out: Any = host.invoke({"messages": [("user", home("Lisbon"))]}, config)
    (question,) = out["__interrupt__"]
    assert "in conflict with" in question.value["action_requests"][0]["description"]
    resumed = host.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
    assert resumed["writes"].counts["stored"] == 1


def test_settings_reach_the_method() -> None:
    contradicting = reading(relations(lambda _, __: "contradicts"))
    memory = Memory(contradicting, reconcile=Reconcile(on_conflict="hold"))
    memory.write(turn(home("Porto"), at=MAY), talk="one")
    writes = memory.write(turn(home("Lisbon"), at=JUNE), talk="two")
    assert writes.counts["quarantined"] == 1
    assert memory.current == [home("Porto")]


def test_golden_receipts_of_corrections_load_for_ever() -> None:
    """They were written by the first version that reconciled, and give the same decisions."""
    receipts = [Receipt.model_validate_json(line) for line in GOLDEN.read_text().splitlines()]
    correction, repeat, late = receipts
    assert [receipt.outcome for receipt in receipts] == ["stored", "duplicate", "stored"]
    assert correction.changes[0].after.superseded_by == correction.record_key
    assert repeat.changes[0].after.confirmed_at is not None
    assert not late.lifecycle.is_current
    for receipt in receipts:
        for row in cast("Any", receipt.reports[-1].evidence["neighbours"]):
            key = (row["relation"], row["authors"], row["later"], row["sureness"])
            assert (row_for(key).id, row_for(key).action) == (row["row"], row["action"])
