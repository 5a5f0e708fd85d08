"""A store must not grow from the agent's own words, however gullible its models are."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from memguard import (
    ConMem,
    ConsistencyGate,
    MemguardMiddleware,
    Writer,
    create_conmem_graph,
    create_consistency_gate_graph,
    create_memory_agent,
    create_write_guard,
    guard_store,
)
from memguard.errors import InvalidInputError
from memguard.journal.journal import Journal
from memguard.journal.quarantine import Quarantine
from memguard.testing import ScriptedChatModel
from memguard.testing.conmem import ConMemScript
from tests.unit.write.scripts import scripted

NAMESPACE = ("memories", "ana")
ONE = ConsistencyGate(k=1)
TURNS = 50
HOME = "I live in Porto."
_LINE = re.compile(r'^\[(\d+)\] (\w+)[^"]*: (".*")$', re.MULTILINE)


def claim(number: int) -> str:
    return f"You love hobby{number} and hate chore{number}."


def asked(number: int) -> str:
    return ["Go on.", "Yes, continue.", "What else do you know?", "ok thanks"][number % 4]


Cite = Callable[[int], list[int]]
CITES: dict[str, Cite] = {
    "the assistant": lambda number: [number],
    "nothing": lambda _: [],
    "a turn of the user": lambda number: [number - 1],
    "both": lambda number: [number - 1, number],
    "the answer that follows": lambda number: [number, number + 1],
}


def gullible(cite: Cite) -> ScriptedChatModel:
    """Writes down all that the assistant says, and believes everything."""

    def facts(prompt: str) -> list[dict[str, Any]]:
        new = prompt.partition("<new_turns>")[2].partition("</new_turns>")[0]
        return [
            {"text": json.loads(quoted).replace("You", "The user"), "turns": cite(int(number))}
            for number, role, quoted in _LINE.findall(new)
            if role == "assistant"
        ]

    return scripted(facts=facts, scores=lambda _: "1.0")


def texts(store: Any) -> list[str]:
    return sorted(item.value["content"] for item in store.search(NAMESPACE, limit=1000))


@pytest.mark.parametrize("cite", CITES.values(), ids=list(CITES))
def test_a_loop_of_fifty_turns_in_the_write_guard(cite: Cite) -> None:
    store, journal = InMemoryStore(), Journal.memory()
    guard = create_write_guard(
        gullible(cite), store=store, namespace=NAMESPACE, gates=[ONE], receipts=journal
    )
    thread: list[Any] = [HumanMessage(HOME, id="home")]
    for number in range(TURNS):
        thread += [AIMessage(claim(number), id=f"a{number}")]
        thread += [HumanMessage(asked(number), id=f"u{number}")]
        guard.invoke({"messages": thread})
    assert texts(store) == []
    held = Quarantine(journal).list(limit=1000).receipts
    # A writer that cites what an earlier pass has read is left out with a note. Of the rest nothing
    # is lost: a person can release it.
    assert len(held) == (1 if cite is CITES["a turn of the user"] else TURNS)
    assert {receipt.decision.reason for receipt in held} <= {"no_user_words", "bare_answer"}
    Quarantine(journal).release(held[0].id, actor="ana", store=store)
    assert len(texts(store)) == 1


@pytest.mark.parametrize("host", ["agent", "middleware"])
async def test_a_loop_of_fifty_turns_in_a_host(host: str) -> None:
    store, judge = InMemoryStore(), gullible(CITES["the assistant"])
    answers = ScriptedChatModel([claim(number) for number in range(TURNS)])
    settings: dict[str, Any] = {"gates": [ONE], "read": False, "receipts": Journal.memory()}
    if host == "agent":
        agent: Any = create_memory_agent(
            answers, store=store, judge=judge, checkpointer=InMemorySaver(), **settings
        )
    else:
        agent = create_agent(
            answers,
            store=store,
            middleware=[MemguardMiddleware(judge, **settings)],
            checkpointer=InMemorySaver(),
            context_schema=dict,
        )
    thread: Any = {"configurable": {"thread_id": "t"}}
    for number in range(TURNS):
        messages = [("user", asked(number) if number else HOME)]
        await agent.ainvoke({"messages": messages}, thread, context={"user_id": "ana"})
    assert texts(store) == []


def test_a_loop_of_fifty_turns_in_a_guarded_store() -> None:
    store, thread = InMemoryStore(), [("user", HOME)]
    guarded = guard_store(
        store, model=gullible(CITES["nothing"]), gates=[ONE], source=lambda _: thread
    )
    for number in range(TURNS):
        thread += [("assistant", claim(number)), ("user", asked(number))]
        text = claim(number).replace("You", "The user")
        guarded.put(NAMESPACE, f"k{number}", {"content": text})
    assert texts(store) == []
    assert {r.decision.reason for r in guarded.quarantine.list(limit=99).receipts} == {
        "no_user_words"
    }


TALK = [
    {"role": "user", "content": HOME, "id": "u1", "at": "2026-03-02T09:00:00+00:00"},
    {"role": "assistant", "content": claim(1), "id": "a1"},
]


def test_own_candidates_that_name_the_assistant_are_held() -> None:
    store, model = InMemoryStore(), scripted(scores=lambda _: "1.0")
    guard = create_write_guard(model, store=store, namespace=NAMESPACE, gates=[ONE])
    own = [{"text": "The user loves hobby1.", "turn_ids": ["a1"]}]
    writes = guard.invoke({"messages": TALK, "candidates": own})["writes"]
    assert writes.counts["quarantined"] == 1
    assert (texts(store), model.calls) == ([], [])


def test_own_candidates_get_the_time_and_the_speaker_of_their_turns() -> None:
    store = InMemoryStore()
    guard = create_write_guard(scripted(), store=store, namespace=NAMESPACE, gates=[ONE])
    own = [{"text": "The user lives in Porto.", "turn_ids": ["u1"]}]
    guard.invoke({"messages": TALK, "candidates": own})
    (item,) = store.search(NAMESPACE)
    assert item.value["memguard"]["said_by"] == "user"
    assert item.value["memguard"]["said_at"] == "2026-03-02T09:00:00Z"


def test_own_candidates_that_contradict_their_turns_are_an_error_before_any_work() -> None:
    store, model, journal = InMemoryStore(), scripted(), Journal.memory()
    guard = create_write_guard(model, store=store, namespace=NAMESPACE, receipts=journal)
    good = {"text": "The user lives in Porto.", "turn_ids": ["u1"]}
    with pytest.raises(InvalidInputError, match="`said_by` 'user'"):
        guard.invoke(
            {
                "messages": TALK,
                "candidates": [good, {"text": "x", "turn_ids": ["a1"], "said_by": "user"}],
            }
        )
    assert (texts(store), model.calls) == ([], [])


@pytest.mark.parametrize("method", ["consistency", "conmem"])
def test_a_method_alone_holds_it_too(method: str) -> None:
    script = ConMemScript()
    judge = ScriptedChatModel(["1.0"])
    graph = (
        create_conmem_graph(script.model(), spec=ConMem())
        if method == "conmem"
        else create_consistency_gate_graph(judge, spec=ONE)
    )
    candidate = {"text": "The user loves hobby1.", "turn_ids": ["a1"]}
    decision = graph.invoke({"candidate": candidate, "context": TALK})["decision"]
    assert (decision.outcome, decision.reason) == ("quarantine", "no_user_words")
    assert (judge.calls, script.calls) == ([], [])


@pytest.mark.parametrize("role", ["tool", "document"])
@pytest.mark.parametrize("gate", ["consistency", "conmem", "none"])
def test_tools_and_documents_are_stored_as_such_if_the_writer_may_read_them(
    role: Any, gate: str
) -> None:
    talk = [("user", "When does it leave?"), (role, "Flight TP 443 leaves at 9:40.")]
    text = f"According to the {role}, flight TP 443 leaves at 9:40."

    def facts(prompt: str) -> list[dict[str, Any]]:
        # Not read at all unless the writer is told to.
        return [{"text": text, "turns": [2]}] if "TP 443" in prompt else []

    def stored(writer: Writer) -> list[Any]:
        store = InMemoryStore()
        model = scripted(facts=facts, scores=lambda _: "1.0")
        gates: dict[str, Any] = {"consistency": [ONE], "conmem": [ConMem()], "none": []}
        judge = ConMemScript().model() if gate == "conmem" else model
        models = {"writer": model, "default": judge}
        create_write_guard(
            models=models, store=store, namespace=NAMESPACE, gates=gates[gate], writer=writer
        ).invoke({"messages": talk})
        return store.search(NAMESPACE)

    assert stored(Writer()) == []
    (item,) = stored(Writer(sources=("user", role)))
    assert item.value["memguard"]["said_by"] == role


def test_the_local_writer_and_judge_read_a_document_by_choice() -> None:
    talk = [("document", "The meeting room on the third floor has a projector.")]
    store = InMemoryStore()
    create_write_guard(
        "local", store=store, namespace=NAMESPACE, writer=Writer(sources=("document",))
    ).invoke({"messages": talk})
    (item,) = store.search(NAMESPACE)
    assert item.value["memguard"]["said_by"] == "document"
    assert item.value["content"].startswith("The document: ")
