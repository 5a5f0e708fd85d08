"""The write guard from end to end, with a scripted model and LangGraph's own store."""

import asyncio
import operator
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from memguard import Budget, ConsistencyGate, WriteReport, create_write_guard
from memguard.errors import (
    ConfigurationError,
    ErrorCode,
    InvalidInputError,
    JudgeError,
    StoreError,
)
from memguard.journal.journal import Journal
from memguard.journal.quarantine import Quarantine
from memguard.journal.receipts import ReceiptLog
from memguard.methods.adjudication.rendering import frame
from memguard.prompts import load_prompt
from memguard.quoting import quote
from memguard.write import graph
from memguard.write.state import WriteState
from tests.cases import case_input
from tests.unit.write.scripts import JUDGES, WRITES, calls_of, scripted

NAMESPACE = ("memories", "ana")
ONE = ConsistencyGate(k=1)


def texts(store: Any, namespace: tuple[str, ...] = NAMESPACE) -> list[str]:
    found = store.search(namespace, limit=1000)
    return sorted(item.value["content"] for item in found if item.namespace == namespace)


def guard_of(model: Any, store: Any, **settings: Any) -> Any:
    given: dict[str, Any] = {"namespace": NAMESPACE, "gates": [ONE], **settings}
    return create_write_guard(model, store=store, **given)


def test_supported_is_stored_unsupported_is_not_doubt_is_held() -> None:
    talk = [("user", "I moved to Porto."), ("user", "I like tea."), ("user", "I own a boat.")]
    model = scripted(scores={"I like tea.": "0.2", "I own a boat.": "who knows"})
    store, journal = InMemoryStore(), Journal.memory()
    writes: WriteReport = guard_of(model, store, receipts=journal).invoke({"messages": talk})[
        "writes"
    ]
    assert [receipt.outcome for receipt in writes.receipts] == [
        "stored",
        "rejected",
        "quarantined",
    ]
    assert writes.counts == {
        "stored": 1,
        "duplicate": 0,
        "quarantined": 1,
        "rejected": 1,
        "refused": 0,
    }
    assert texts(store) == ["I moved to Porto."]
    assert writes.usage.calls == 4
    held = Quarantine(journal).list().receipts
    assert [receipt.candidate.text for receipt in held] == ["I own a boat."]
    # What was rejected stays on its receipt.
    assert ReceiptLog(journal).get(writes.receipts[1].id).candidate.text == "I like tea."


async def test_what_two_sessions_say_at_once_is_stored_once_and_counted_so() -> None:
    """Both are judged before either is stored."""
    store, journal = InMemoryStore(), Journal.memory()
    guard = guard_of(scripted(), store, receipts=journal)
    outs = await asyncio.gather(
        *(
            guard.ainvoke({"conversation": {"id": name, "turns": [turn]}})
            for name in ("monday", "tuesday")
            for turn in [{"id": "1", "role": "user", "content": "Thanks, that helps me a lot."}]
        )
    )
    outcomes = sorted(each.outcome for out in outs for each in out["writes"].receipts)
    assert outcomes == ["duplicate", "stored"]
    assert len(texts(store)) == 1
    await journal.aclose()


def test_a_record_carries_its_provenance() -> None:
    talk = [
        {"role": "user", "content": "I moved.", "id": "a", "at": "2026-01-02T03:04:00+01:00"},
    ]
    store = InMemoryStore()
    writes = guard_of(scripted(), store).invoke({"messages": talk})["writes"]
    (item,) = store.search(NAMESPACE)
    provenance = item.value["memguard"]
    assert provenance["turn_ids"] == ["a"]
    assert provenance["said_by"] == "user"
    assert provenance["said_at"] == "2026-01-02T03:04:00+01:00"
    assert provenance["receipt_id"] == writes.receipts[0].id
    assert item.key == writes.receipts[0].record_key


async def test_sync_and_async_agree() -> None:
    talk = [("user", "I moved to Porto."), ("assistant", "Nice.")]
    sync_guard = guard_of(scripted(), InMemoryStore())
    first = (await asyncio.to_thread(sync_guard.invoke, {"messages": talk}))["writes"]
    second = (await guard_of(scripted(), InMemoryStore()).ainvoke({"messages": talk}))["writes"]
    strip = {"id", "at", "run_id"}
    assert [r.model_dump(exclude={*strip, "reports"}) for r in first.receipts] == [
        r.model_dump(exclude={*strip, "reports"}) for r in second.receipts
    ]


def test_repeats_do_not_grow_the_store_and_cost_nothing() -> None:
    store, journal = InMemoryStore(), Journal.memory()
    for n in range(10):
        model = scripted()
        talk = [{"role": "user", "content": "I row.", "id": f"turn-{n}"}]
        writes = guard_of(model, store, receipts=journal).invoke({"messages": talk})["writes"]
        assert writes.receipts[0].outcome == ("duplicate" if n else "stored")
        assert calls_of(model, JUDGES) == (0 if n else 1)
    (item,) = store.search(NAMESPACE)
    assert item.value["memguard"]["turn_ids"] == ["turn-0"]


def test_a_repeat_within_a_run_is_judged_once() -> None:
    model = scripted()
    talk = [("user", "I row."), ("user", "I row.")]
    writes = guard_of(model, InMemoryStore()).invoke({"messages": talk})["writes"]
    assert writes.counts["stored"] == 1
    assert calls_of(model, JUDGES) == 1


def test_a02_what_memguard_rendered_is_no_evidence() -> None:
    given = case_input("A-02")
    stored = given["stored_before"][0]["text"]
    store, journal = InMemoryStore(), Journal.memory()
    guard_of(scripted(), store, receipts=journal).invoke(
        {"messages": [("user", "x")], "candidates": [stored]}
    )
    before = store.search(NAMESPACE)
    section = frame([f"- {quote(stored)}"])
    talk = [{**turn, "content": turn["content"]} for turn in given["conversation"]]
    talk[0]["content"] = section
    for where in ("system", "user"):
        talk[0]["role"] = where
        for _ in range(10):
            model = scripted(scores={given["candidates"][1]["text"]: "0.1"})
            writes = guard_of(model, store, receipts=journal).invoke(
                {"messages": talk, "candidates": [c["text"] for c in given["candidates"]]}
            )["writes"]
            assert writes.counts["stored"] == 0
            for receipt in writes.receipts:
                if receipt.candidate.text == stored:
                    assert receipt.decision.reason == "duplicate"
            for call in model.calls:
                assert "memguard-memory" not in str(call.messages[-1].content)
    assert store.search(NAMESPACE) == before


def test_c01_a_negation_is_no_duplicate() -> None:
    given = case_input("C-01")
    store, journal = InMemoryStore(), Journal.memory()
    guard_of(scripted(), store, receipts=journal).invoke(
        {"messages": [("user", "x")], "candidates": [given["stored"][0]["text"]]}
    )
    model = scripted()
    new = given["candidates"][0]["text"]
    writes = guard_of(model, store, receipts=journal).invoke(
        {"messages": given["conversation"], "candidates": [new]}
    )["writes"]
    assert writes.receipts[0].outcome == "stored"
    assert calls_of(model, JUDGES) == 1
    assert new in texts(store)


@pytest.mark.parametrize("index", range(4))
def test_c02_another_day_or_dose_is_no_duplicate(index: int) -> None:
    pair = case_input("C-02")["pairs"][index]
    store, journal = InMemoryStore(), Journal.memory()
    for text in pair:
        writes = guard_of(scripted(), store, receipts=journal).invoke(
            {"messages": [("user", text)], "candidates": [text]}
        )["writes"]
        assert writes.receipts[0].outcome == "stored"
    assert texts(store) == sorted(pair)


def test_e01_blank_candidates_cost_nothing_and_spoil_no_batch() -> None:
    given = case_input("E-01")
    good = given["good_pair"]
    for blank in given["candidate_rows"]:
        model, store = scripted(), InMemoryStore()
        writes = guard_of(model, store).invoke(
            {
                "messages": good["conversation"],
                "candidates": [blank, good["candidate"], blank],
            }
        )["writes"]
        assert texts(store) == [good["candidate"]]
        assert writes.counts["refused"] == 2
        assert {r.decision.reason for r in writes.receipts} == {"blank_text", "supported"}
        assert len(model.calls) == 1


def test_e01_a_conversation_without_user_words_costs_nothing() -> None:
    given = case_input("E-01")
    for talk in given["conversation_rows"]:
        model, store = scripted(), InMemoryStore()
        guard = guard_of(model, store)
        guard.invoke({"messages": talk})
        guard.invoke({"messages": talk, "candidates": [given["good_pair"]["candidate"]]})
        assert texts(store) == []
        assert model.calls == []


def test_e02_odd_characters_crash_no_batch_and_are_judged_as_stored() -> None:
    given = case_input("E-02")
    batch = [entry["text"] for entry in given["batch"]]
    model, store = scripted(), InMemoryStore()
    talk = [("user", text) for text in batch]
    guard_of(model, store).invoke({"messages": talk, "candidates": batch})
    stored = texts(store)
    assert len(stored) == len(batch)
    assert {batch[0], batch[4]} <= set(stored)
    prompts = "".join(str(call.messages[-1].content) for call in model.calls)
    for text in stored:
        assert f'"{text}"' in prompts
        text.encode("utf-8")
        assert "\x00" not in text
        assert "\x1b" not in text


def test_what_was_read_and_decided_is_not_asked_again(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": f"Fact {n}.", "id": f"t{n}"} for n in range(5)]
    store, path = InMemoryStore(), tmp_path / "log.sqlite3"
    guard_of(scripted(), store, receipts=path).invoke({"messages": talk})
    model = scripted()
    writes = guard_of(model, store, receipts=path).invoke({"messages": talk})["writes"]
    assert model.calls == []
    assert (writes.resumed, writes.receipts) == (5, ())
    longer = [*talk, {"role": "user", "content": "Fact 5.", "id": "t5"}]
    writes = guard_of(model, store, receipts=path).invoke({"messages": longer})["writes"]
    assert [receipt.candidate.text for receipt in writes.receipts] == ["Fact 5."]
    assert len(model.calls) == 2
    shown = str(model.calls[0].messages[-1].content)
    assert "Fact 4." in shown.partition("<new_turns>")[0]


def test_another_setting_judges_anew_but_does_not_read_anew() -> None:
    talk = [("user", "I moved to Porto.")]
    store, journal = InMemoryStore(), Journal.memory()
    model = scripted(scores={"I moved to Porto.": "0.75"})
    strict = ConsistencyGate(k=1, tau=0.8)
    guard_of(model, store, receipts=journal, gates=[strict]).invoke({"messages": talk})
    assert texts(store) == []
    guard_of(model, store, receipts=journal, gates=[ONE]).invoke({"messages": talk})
    assert texts(store) == ["I moved to Porto."]
    assert (calls_of(model, WRITES), calls_of(model, JUDGES)) == (1, 2)


def test_a_budget_stops_cleanly_and_a_later_run_goes_on() -> None:
    talk = [{"role": "user", "content": f"Fact {n}.", "id": f"t{n}"} for n in range(6)]
    store, journal = InMemoryStore(), Journal.memory()
    model = scripted()
    limited = guard_of(model, store, receipts=journal, budget=Budget(calls=4))
    writes = limited.invoke({"messages": talk})["writes"]
    assert len(model.calls) == 4
    assert writes.counts["stored"] == 3
    assert len(writes.unjudged) == 3
    assert writes.usage.calls == 4
    writes = guard_of(model, store, receipts=journal).invoke({"messages": talk})["writes"]
    assert len(texts(store)) == 6
    assert writes.resumed == 3
    assert len(model.calls) == 7


def test_an_unreadable_answer_is_not_nothing_to_remember() -> None:
    from memguard.testing import ScriptedChatModel

    store, journal = InMemoryStore(), Journal.memory()
    talk = [{"role": "user", "content": "I moved.", "id": "t"}]
    bad = ScriptedChatModel(["no JSON here", "still none"])
    writes = guard_of(bad, store, receipts=journal).invoke({"messages": talk})["writes"]
    assert writes.unread == ("t",)
    assert [failure.code for failure in writes.failures] == ["parse_failure"]
    writes = guard_of(scripted(), store, receipts=journal).invoke({"messages": talk})["writes"]
    assert texts(store) == ["I moved."]


def test_one_failed_candidate_stops_no_other_and_is_raised_at_the_end() -> None:
    talk = [("user", "one"), ("user", "two"), ("user", "three")]
    raising = ConsistencyGate(k=1, on_inconclusive="raise")
    store = InMemoryStore()
    model = scripted(scores={"two": "???"})
    with pytest.raises(JudgeError):
        guard_of(model, store, gates=[raising]).invoke({"messages": talk})
    assert texts(store) == ["one", "three"]
    reporting = guard_of(model, InMemoryStore(), gates=[raising], on_failure="report")
    writes = reporting.invoke({"messages": talk})["writes"]
    assert [c.text for c in writes.unjudged] == ["two"]
    assert writes.failures[0].code == ErrorCode.JUDGE_INCONCLUSIVE


class FailingStore(InMemoryStore):
    """Fails on puts of one text."""

    def __init__(self) -> None:
        super().__init__()
        self.fails = True

    async def abatch(self, ops: Any) -> list[Any]:
        listed = list(ops)
        for op in listed:
            value = getattr(op, "value", None)
            if self.fails and isinstance(value, dict) and value.get("content") == "two":
                msg = "disk full"
                raise OSError(msg)
        return await super().abatch(listed)


def test_a_store_that_fails_on_one_record_loses_no_other() -> None:
    talk = [{"role": "user", "content": text, "id": text} for text in ("one", "two", "three")]
    store, journal = FailingStore(), Journal.memory()
    with pytest.raises(StoreError, match="disk full"):
        guard_of(scripted(), store, receipts=journal).invoke({"messages": talk})
    assert texts(store) == ["one", "three"]
    store.fails = False
    model = scripted()
    guard_of(model, store, receipts=journal).invoke({"messages": talk})
    assert texts(store) == ["one", "three", "two"]
    assert model.calls == []


def test_no_gate_stores_everything() -> None:
    model, store = scripted(), InMemoryStore()
    writes = guard_of(model, store, gates=[]).invoke({"messages": [("user", "I row.")]})["writes"]
    assert writes.receipts[0].decision.reason == "no_gate"
    assert texts(store) == ["I row."]


def test_namespaces_are_filled_from_the_run_and_fail_closed() -> None:
    store = InMemoryStore()
    template = ("memories", "{user_id}")
    guard = guard_of(scripted(), store, namespace=template)
    talk = {"messages": [("user", "I row.")]}
    guard.invoke(talk, context={"user_id": "ana@example.org"})
    guard.invoke(talk, {"configurable": {"user_id": 42}})
    assert texts(store, ("memories", "ana@example%2Eorg")) == ["I row."]
    assert texts(store, ("memories", "42")) == ["I row."]
    for missing in ({}, {"user_id": ""}, {"user_id": None}):
        with pytest.raises(ConfigurationError) as caught:
            guard.invoke(talk, context=missing)
        assert caught.value.code == ErrorCode.NAMESPACE_UNRESOLVED
    with pytest.raises(InvalidInputError):
        guard.invoke(talk, context={"user_id": "  "})
    for no_name in ({"id": "ana"}, ["ana"], b"ana"):
        with pytest.raises(InvalidInputError, match="which is not a name") as refused:
            guard.invoke(talk, context={"user_id": no_name})
        assert refused.value.code == ErrorCode.NAMESPACE_INVALID

    def place(runtime: Runtime[Any]) -> tuple[str, ...]:
        return ("m", runtime.context["who"])

    called = guard_of(scripted(), store, namespace=place)
    called.invoke(talk, context={"who": "{user_id}"})
    assert texts(store, ("m", "{user_id}")) == ["I row."]


def test_no_model_is_an_error_that_says_how_to_pass_one() -> None:
    with pytest.raises(ConfigurationError) as caught:
        create_write_guard(store=InMemoryStore())
    assert caught.value.code == ErrorCode.MODEL_MISSING


@pytest.mark.parametrize(
    "wrong",
    [
        {"models": {"jugde": scripted()}},
        {"prompts": {"consistency_gate/suport": None}},
        {"prompts": {"writer/extract": load_prompt("consistency_gate", "support")}},
        {"gates": ["consistancy"]},
    ],
)
def test_a_name_or_prompt_that_would_have_no_effect_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        guard_of(scripted(), InMemoryStore(), **wrong)


class ExpiringStore(InMemoryStore):
    """Remembers how long puts were to live."""

    supports_ttl = True

    def __init__(self) -> None:
        super().__init__()
        self.ttl_config = {"default_ttl": 30.0}
        self.ttls: list[float | None] = []

    async def abatch(self, ops: Any) -> list[Any]:
        listed = list(ops)
        self.ttls += [op.ttl for op in listed if isinstance(op, PutOp)]
        return await super().abatch(listed)


def test_records_live_as_long_as_the_store_says() -> None:
    store = ExpiringStore()
    guard_of(scripted(), store).invoke({"messages": [("user", "I row.")]})
    assert store.ttls == [30.0]


def test_no_store_is_an_error() -> None:
    guard = guard_of(scripted(), None)
    with pytest.raises(ConfigurationError) as caught:
        guard.invoke({"messages": [("user", "I row.")]})
    assert caught.value.code == ErrorCode.STORE_MISSING


def test_a_wrong_role_is_refused_before_any_work() -> None:
    model = scripted()
    with pytest.raises(InvalidInputError, match=r"message 2.*'robot'"):
        guard_of(model, InMemoryStore()).invoke({"messages": [("user", "a"), ("robot", "b")]})
    assert model.calls == []


def test_own_candidates_are_judged_on_the_turns_they_name() -> None:
    talk = [{"role": "user", "content": f"Fact {n}.", "id": f"t{n}"} for n in range(30)]
    model = scripted()
    guard_of(model, InMemoryStore()).invoke(
        {"messages": talk, "candidates": [{"text": "Fact 20.", "turn_ids": ["t20"]}]}
    )
    shown = str(model.calls[0].messages[-1].content)
    assert "Fact 20." in shown
    assert "Fact 16." in shown
    assert "Fact 15." not in shown


class HostState(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    log: Annotated[list[str], operator.add]
    writes: Any


async def test_as_a_node_of_a_host_graph_with_a_checkpointer() -> None:
    store, model = InMemoryStore(), scripted()

    def answer(state: HostState) -> dict[str, Any]:
        return {"messages": [AIMessage("Nice.")], "log": [f"{len(state['messages'])}"]}

    builder = StateGraph(HostState)
    builder.add_node("answer", answer)
    builder.add_node("remember", guard_of(model, None, namespace=("memories", "{user_id}")))
    builder.add_edge(START, "answer")
    builder.add_edge("answer", "remember")
    builder.add_edge("remember", END)
    host: Any = builder.compile(checkpointer=InMemorySaver(), store=store)
    config: Any = {"configurable": {"thread_id": "1", "user_id": "ana"}}
    await host.ainvoke({"messages": [HumanMessage("I row.")]}, config)
    out = await host.ainvoke({"messages": [HumanMessage("I ski.")]}, config)
    assert texts(store) == ["I row.", "I ski."]
    assert len(out["messages"]) == 4
    assert out["log"] == ["1", "3"]
    assert out["writes"].counts["stored"] == 1
    # The second turn read the second turn only.
    assert calls_of(model, WRITES) == 2
    assert len((await host.aget_state(config)).values["messages"]) == 4


class OtherState(TypedDict):
    chat: Annotated[list[AnyMessage], add_messages]
    candidates: list[str]
    remembered: Any


def test_a_host_with_other_keys_keeps_its_own() -> None:
    store = InMemoryStore()
    keys = {"messages": "chat", "writes": "remembered"}
    builder = StateGraph(OtherState)
    builder.add_node("remember", guard_of(scripted(), store, keys=keys))
    builder.add_edge(START, "remember")
    host: Any = builder.compile()
    out = host.invoke({"chat": [HumanMessage("I row.")], "candidates": ["not for the guard"]})
    assert texts(store) == ["I row."]
    assert out["remembered"].counts["stored"] == 1
    assert out["candidates"] == ["not for the guard"]
    with pytest.raises(ConfigurationError):
        guard_of(scripted(), store, keys={"mesages": "chat"})


def test_progress_is_streamed() -> None:
    talk = [("user", "one"), ("user", "two")]
    guard = guard_of(scripted(scores={"two": "0.1"}), InMemoryStore())
    events = list(guard.stream({"messages": talk}, stream_mode="custom"))
    assert [event["step"] for event in events] == [
        "planned",
        "extracted",
        "screened",
        "gated",
        "gated",
        "reported",
    ]
    assert {event.get("outcome") for event in events} >= {"stored", "rejected"}


def test_two_event_loops_one_guard() -> None:
    store = InMemoryStore()
    guard = guard_of(scripted(), store)

    async def run(text: str) -> None:
        await guard.ainvoke({"messages": [{"role": "user", "content": text, "id": text}]})

    asyncio.run(run("one"))
    asyncio.run(run("two"))
    guard.invoke({"messages": [{"role": "user", "content": "three", "id": "three"}]})
    assert texts(store) == ["one", "three", "two"]


def test_a_million_characters_are_split_not_cut() -> None:
    words = " ".join(f"word{n}" for n in range(140_000))
    seen: list[str] = []

    def facts(shown: str) -> list[dict[str, Any]]:
        seen.append(shown.split("<new_turns>")[1])
        return []

    guard_of(scripted(facts=facts), InMemoryStore()).invoke({"messages": [("user", words)]})
    assert len(words) > 1_000_000
    assert sum(part.count("word") for part in seen) >= 140_000
    assert "word139999" in seen[-1] or any("word139999" in part for part in seen)


def test_candidates_are_judged_in_batches_and_reported_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(graph, "_MAX_BRANCHES", 4)
    candidates = [f"Fact {n}." for n in range(10)]
    together: Counter[int] = Counter()
    writes: WriteReport | None = None
    for mode, event in guard_of(scripted(), InMemoryStore()).stream(
        {"messages": [("user", "x")], "candidates": candidates}, stream_mode=["debug", "values"]
    ):
        if mode == "values":
            writes = event.get("writes")
        elif event["type"] == "task" and event["payload"]["name"] == "gates":
            together[event["step"]] += 1
    assert list(together.values()) == [4, 4, 2]
    assert writes is not None
    assert [receipt.candidate.text for receipt in writes.receipts] == candidates
    assert writes.counts["stored"] == 10


def test_a_person_is_asked_once_about_the_candidates_of_all_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(graph, "_MAX_BRANCHES", 2)
    candidates = [f"Fact {n}." for n in range(5)]
    model = scripted(scores=dict.fromkeys(candidates, "who knows"))
    guard = guard_of(model, InMemoryStore(), review="interrupt")
    messages: Any = {"messages": [("user", "x")], "candidates": candidates}
    host = StateGraph(WriteState).add_node("write", guard).add_edge(START, "write")
    out = host.compile(checkpointer=InMemorySaver()).invoke(
        messages,
        {"configurable": {"thread_id": "1"}},
    )
    (question,) = out["__interrupt__"]
    assert len(question.value["action_requests"]) == 5


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ten_thousand_candidates_are_stored_in_25_steps() -> None:
    # Without a gate: what a gate does takes the same time for a candidate of any batch.
    store = InMemoryStore()
    writes = guard_of(scripted(), store, gates=[]).invoke(
        {"messages": [("user", "x")], "candidates": [f"Fact {n}." for n in range(10_000)]},
        {"recursion_limit": 25},
    )["writes"]
    assert writes.counts["stored"] == 10_000


@pytest.mark.slow
def test_the_local_writer_reads_a_turn_of_a_million_characters() -> None:
    questions = "Where is the station of that town at 5 p.m. today? " * 20_000
    store = InMemoryStore()
    writes = guard_of("local", store, gates=[]).invoke(
        {"messages": [("user", f"{questions}I like green tea.")]}
    )["writes"]
    assert not writes.unread
    assert texts(store) == ["The user: I like green tea."]
