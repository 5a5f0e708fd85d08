"""A person rules on held candidates: pause, answer, resume."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from pydantic import ValidationError

from memguard import ConsistencyGate, WriteReport, create_write_guard
from memguard.errors import ConfigurationError, ErrorCode, StoreError
from memguard.journal.journal import Journal
from memguard.journal.quarantine import Quarantine
from memguard.journal.receipts import ReceiptLog
from tests.unit.write.scripts import scripted

NAMESPACE = ("memories", "ana")
ONE = ConsistencyGate(k=1)
BOAT, TEA, PORTO = "I own a boat.", "I like tea.", "I moved to Porto."
TALK = [("user", PORTO), ("user", BOAT), ("user", TEA)]
DOUBT = {BOAT: "who knows", TEA: "hard to say"}
THREAD: Any = {"configurable": {"thread_id": "1"}}


class Host(TypedDict, total=False):
    messages: list[Any]
    writes: WriteReport


class Bench:
    """A store, a journal, and a host graph around a guard that asks."""

    def __init__(self, journal: Journal | None = None, **settings: Any) -> None:
        self.store = InMemoryStore()
        self.journal = journal or Journal.memory()
        self.model = scripted(scores=DOUBT)
        self.settings = settings

    def guard(self, **more: Any) -> Any:
        given: dict[str, Any] = {"review": "interrupt", **self.settings, **more}
        return create_write_guard(
            self.model,
            store=self.store,
            namespace=NAMESPACE,
            gates=[ONE],
            receipts=self.journal,
            **given,
        )

    def host(self, checkpointer: Any) -> Any:
        builder = StateGraph(Host)
        builder.add_node("remember", self.guard())
        builder.add_edge(START, "remember")
        return builder.compile(checkpointer=checkpointer)

    @property
    def texts(self) -> list[str]:
        return sorted(item.value["content"] for item in self.store.search(NAMESPACE, limit=99))

    @property
    def held(self) -> list[str]:
        page = Quarantine(self.journal).list()
        return sorted(receipt.candidate.text for receipt in page.receipts)

    async def aheld(self) -> list[str]:
        page = await Quarantine(self.journal).alist()
        return sorted(receipt.candidate.text for receipt in page.receipts)


def edit(text: str) -> dict[str, Any]:
    return {"type": "edit", "edited_action": {"name": "store_memory", "args": {"text": text}}}


def decisions(*each: dict[str, Any]) -> Command[Any]:
    return Command(resume={"decisions": list(each)})


APPROVE, REJECT = {"type": "approve"}, {"type": "reject", "message": "she sold it"}


def test_the_question_has_the_shape_of_langchains_middleware() -> None:
    bench = Bench()
    out = bench.host(InMemorySaver()).invoke({"messages": TALK}, THREAD)
    (asked,) = out["__interrupt__"]
    boat, tea = asked.value["action_requests"]
    assert boat["name"] == "store_memory"
    assert (boat["args"], tea["args"]) == ({"text": BOAT}, {"text": TEA})
    for said in (BOAT, "not judged: 0 of 1 sample usable", "memories / ana", f"user: {BOAT}"):
        assert said in boat["description"]
    assert asked.value["review_configs"] == 2 * [
        {
            "action_name": "store_memory",
            "allowed_decisions": ["approve", "edit", "reject", "respond"],
        }
    ]
    assert asked.response_schema["required"] == ["decisions"]
    # Before anyone is asked, what is supported is stored and what is held is held, on disk.
    assert bench.texts == [PORTO]
    assert bench.held == sorted([BOAT, TEA])


def test_langchain_itself_would_ask_like_this() -> None:
    from langchain.agents.middleware.human_in_the_loop import HITLRequest, HITLResponse
    from pydantic import TypeAdapter

    out = Bench().host(InMemorySaver()).invoke({"messages": TALK}, THREAD)
    (asked,) = out["__interrupt__"]
    assert TypeAdapter(HITLRequest).validate_python(asked.value) == asked.value
    answer = {"decisions": [APPROVE, edit("x"), REJECT, {"type": "respond", "message": "m"}]}
    assert TypeAdapter(HITLResponse).validate_python(answer) == answer


Answered = tuple[tuple[dict[str, Any], ...], list[str], list[str], dict[str, int]]
ANSWERS: dict[str, Answered] = {
    "approve": ((APPROVE, APPROVE), [TEA, PORTO, BOAT], [], {"stored": 3}),
    "edit": (
        (edit("Ana owns a canoe."), REJECT),
        ["Ana owns a canoe.", PORTO],
        [],
        {"stored": 2, "rejected": 1},
    ),
    "edit-nothing": ((edit(BOAT), REJECT), [BOAT, PORTO], [], {"stored": 2, "rejected": 1}),
    "reject": ((REJECT, REJECT), [PORTO], [], {"stored": 1, "rejected": 2}),
    "respond": (
        ({"type": "respond", "message": "ask her"}, APPROVE),
        [TEA, PORTO],
        [BOAT],
        {"stored": 2, "quarantined": 1},
    ),
}


@pytest.mark.parametrize("name", sorted(ANSWERS))
@pytest.mark.parametrize("how", ["async", "sync"])
async def test_what_a_person_rules_is_done(name: str, how: str) -> None:
    given, stored, held, counts = ANSWERS[name]
    bench = Bench()
    host = bench.host(InMemorySaver())
    if how == "sync":
        await asyncio.to_thread(host.invoke, {"messages": TALK}, THREAD)
        asked = len(bench.model.calls)
        out = await asyncio.to_thread(host.invoke, decisions(*given), THREAD)
    else:
        await host.ainvoke({"messages": TALK}, THREAD)
        asked = len(bench.model.calls)
        out = await host.ainvoke(decisions(*given), THREAD)
    assert len(bench.model.calls) == asked, "a resumed run judges and writes nothing again"
    writes = WriteReport.model_validate(out["writes"])
    assert bench.texts == sorted(stored)
    assert await bench.aheld() == held
    assert {k: v for k, v in writes.counts.items() if v} == counts
    assert [review.ruling for review in writes.reviews] == [each["type"] for each in given]
    assert writes.usage.calls == asked


def test_an_edit_is_stored_as_worded_by_a_person_and_its_receipt_says_so() -> None:
    bench = Bench()
    host = bench.host(InMemorySaver())
    host.invoke({"messages": TALK}, THREAD)
    out = host.invoke(decisions(edit("Ana owns a canoe."), REJECT), THREAD)
    review = out["writes"].reviews[0]
    receipt = ReceiptLog(bench.journal).get(review.stored_as)
    assert receipt.decision.reason == "human_approved"
    assert receipt.decision.method == "human_review"
    assert BOAT in receipt.decision.explanation
    assert receipt.reports[0].evidence == {
        "actor": "reviewer",
        "held_receipt": review.receipt_id,
        "held_text": BOAT,
    }
    assert receipt.usage.calls == 0
    held = Quarantine(bench.journal).show(review.receipt_id)
    assert held.state == "discarded"
    assert receipt.id in str(held.history[-1].body)
    assert held.candidate.turn_ids == receipt.candidate.turn_ids
    (item,) = [i for i in bench.store.search(NAMESPACE) if "canoe" in i.value["content"]]
    assert item.value["memguard"]["receipt_id"] == receipt.id


BAD: dict[str, Any] = {
    "a-word": "yes",
    "another-action": {
        "decisions": [
            {"type": "edit", "edited_action": {"name": "delete_all", "args": {"text": "x"}}},
            REJECT,
        ]
    },
    "blank-wording": {"decisions": [edit(" \n"), REJECT]},
    "off-menu": {"decisions": [{"type": "maybe"}, REJECT]},
    "old-inbox-shape": [{"type": "accept", "args": None}],
    "too-few": {"decisions": [APPROVE]},
    "too-long": {"decisions": [edit("x" * 2001), REJECT]},
    "too-many": {"decisions": [APPROVE, APPROVE, APPROVE]},
}


@pytest.mark.parametrize("name", sorted(BAD))
def test_an_answer_that_does_not_fit_does_nothing_and_can_be_given_again(name: str) -> None:
    bench = Bench()
    host = bench.host(InMemorySaver())
    host.invoke({"messages": TALK}, THREAD)
    with pytest.raises(ValidationError):
        host.invoke(Command(resume=BAD[name]), THREAD)
    assert bench.texts == [PORTO]
    assert bench.held == sorted([BOAT, TEA])
    host.invoke(decisions(APPROVE, REJECT), THREAD)
    assert bench.texts == sorted([PORTO, BOAT])


def test_without_a_checkpointer_nothing_waits_and_the_report_says_so() -> None:
    bench = Bench()
    out = bench.guard().invoke({"messages": TALK})
    assert "__interrupt__" not in out
    assert bench.held == sorted([BOAT, TEA])
    assert out["writes"].counts["quarantined"] == 2
    (note,) = [note for note in out["writes"].notes if "checkpointer" in note]
    assert "2 held candidates" in note


def test_nothing_held_asks_nobody() -> None:
    bench = Bench()
    bench.model = scripted()
    out = bench.host(InMemorySaver()).invoke({"messages": TALK}, THREAD)
    assert "__interrupt__" not in out
    assert out["writes"].counts["stored"] == 3
    assert out["writes"].reviews == ()


@pytest.mark.parametrize(
    "keys", [None, {"messages": "chat", "writes": "kept"}], ids=["own-keys", "host-keys"]
)
def test_under_other_keys_and_as_a_graph_of_its_own(keys: dict[str, str] | None) -> None:
    bench = Bench(keys=keys)
    if keys is None:
        host: Any = bench.guard()
        host.checkpointer = InMemorySaver()
    else:
        builder = StateGraph(TypedDict("Chat", {"chat": list[Any], "kept": Any}))
        builder.add_node("remember", bench.guard())
        builder.add_edge(START, "remember")
        host: Any = builder.compile(checkpointer=InMemorySaver())
    talk, kept = ("messages", "writes") if keys is None else ("chat", "kept")
    assert host.invoke({talk: TALK}, THREAD)["__interrupt__"]
    calls = len(bench.model.calls)
    out = host.invoke(decisions(APPROVE, REJECT), THREAD)
    assert len(bench.model.calls) == calls
    assert out[kept].counts["stored"] == 2
    # The next turn of the thread starts afresh: no review of the last one is left over.
    out = host.invoke({talk: [("user", PORTO)]}, THREAD)
    assert out[kept].reviews == ()


async def test_the_answer_may_come_in_another_process(tmp_path: Path) -> None:
    """Graph, guard, journal and model are new; only the disk and the store remember."""
    first = Bench(await asyncio.to_thread(Journal.open, tmp_path / "j.sqlite3"))
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "c.sqlite3")) as saver:
        await first.host(saver).ainvoke({"messages": TALK}, THREAD)
    await asyncio.to_thread(first.journal.close)
    second = Bench(await asyncio.to_thread(Journal.open, tmp_path / "j.sqlite3"))
    second.store = first.store
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "c.sqlite3")) as saver:
        host = second.host(saver)
        out = await host.ainvoke(decisions(APPROVE, edit("Ana likes green tea.")), THREAD)
    writes = WriteReport.model_validate(out["writes"])
    assert second.model.calls == []
    assert writes.usage.calls == len(first.model.calls)
    assert second.texts == sorted([PORTO, BOAT, "Ana likes green tea."])
    assert await second.aheld() == []
    await asyncio.to_thread(second.journal.close)


def released(bench: Bench, receipt_id: str) -> None:
    Quarantine(bench.journal).release(receipt_id, actor="cli", store=bench.store)


def discarded(bench: Bench, receipt_id: str) -> None:
    Quarantine(bench.journal).discard(receipt_id, actor="cli", reason="no")


@pytest.mark.parametrize(
    ("meanwhile", "said", "outcome"),
    [
        (released, REJECT, "stored"),
        (released, edit("Ana owns a canoe."), "stored"),
        (discarded, APPROVE, "discarded"),
        (discarded, edit("Ana owns a canoe."), "discarded"),
    ],
    ids=["released-reject", "released-edit", "discarded-approve", "discarded-edit"],
)
def test_what_somebody_else_ruled_meanwhile_stands(
    meanwhile: Callable[[Bench, str], None], said: dict[str, Any], outcome: str
) -> None:
    bench = Bench()
    host = bench.host(InMemorySaver())
    host.invoke({"messages": TALK}, THREAD)
    boat = next(r for r in Quarantine(bench.journal).list().receipts if r.candidate.text == BOAT)
    meanwhile(bench, boat.id)
    out = host.invoke(decisions(said, REJECT), THREAD)
    assert out["writes"].reviews[0].outcome == outcome
    assert (BOAT in bench.texts) == (outcome == "stored")
    assert "Ana owns a canoe." not in bench.texts


class Failing(InMemoryStore):
    """Fails when told to."""

    broken = False

    def batch(self, ops: Any) -> Any:
        if self.broken:
            msg = "disk full"
            raise OSError(msg)
        return super().batch(ops)

    async def abatch(self, ops: Any) -> Any:
        return self.batch(ops)


@pytest.mark.parametrize("said", [APPROVE, edit("Ana owns a canoe.")], ids=["approve", "edit"])
def test_a_store_that_fails_during_the_resume_loses_nothing(said: dict[str, Any]) -> None:
    """The run raises; the ruling is in the log, and the next run's recovery stores it."""
    bench = Bench()
    bench.store = store = Failing()
    host = bench.host(InMemorySaver())
    host.invoke({"messages": TALK}, THREAD)
    store.broken = True
    with pytest.raises(StoreError, match="disk full"):
        host.invoke(decisions(said, REJECT), THREAD)
    store.broken = False
    assert bench.texts == [PORTO]
    bench.host(InMemorySaver()).invoke({"messages": [("user", PORTO)]}, THREAD)
    wanted = BOAT if said is APPROVE else "Ana owns a canoe."
    assert bench.texts == sorted([PORTO, wanted])


async def test_a_node_that_runs_twice_stores_once() -> None:
    """Killed after the ruling was carried out and before the checkpoint: the node runs again."""
    from memguard.journal.commit import Backing
    from memguard.write.review import ReviewAnswer, carry_out

    bench = Bench(on_failure="report")
    await bench.guard().ainvoke({"messages": TALK})
    backing = Backing(store=bench.store, journal=bench.journal)
    held = (await Quarantine(bench.journal).alist()).receipts
    for said in (APPROVE, edit("Ana owns a canoe."), REJECT):
        answer = ReviewAnswer.model_validate({"decisions": [said]}).decisions[0]
        for receipt in held:
            first = await carry_out(answer, receipt=receipt, backing=backing, actor="ana")
            again = await carry_out(answer, receipt=receipt, backing=backing, actor="ana")
            assert first == again
    receipts = (await ReceiptLog(bench.journal).alist()).receipts
    assert len({r.id for r in receipts}) == len(receipts) == 3


def test_a_setting_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'ask'") as caught:
        Bench().guard(review="ask")
    assert caught.value.code == ErrorCode.SPEC_INVALID


async def test_events_tell_of_the_review() -> None:
    bench = Bench()
    host = bench.host(InMemorySaver())
    steps: list[Any] = []
    for given in ({"messages": TALK}, decisions(APPROVE, REJECT)):
        async for _, event in host.astream(given, THREAD, stream_mode="custom", subgraphs=True):
            steps.append(event)
    told = [event for event in steps if event["step"] in {"held", "reviewed", "reported"}]
    assert [event["step"] for event in told] == ["held", "reviewed", "reviewed", "reported"]
    assert told[0]["candidates"] == 2
    assert told[0]["asks"] is True
    assert [event["outcome"] for event in told[1:3]] == ["stored", "discarded"]
