"""The host agent: recall, answer with tools, remember; and what happens when memory has trouble."""

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from memguard import create_memory_agent
from memguard.errors import (
    AnswerError,
    ConfigurationError,
    ErrorCode,
    InvalidInputError,
    ReceiptError,
)
from memguard.journal.journal import Journal
from memguard.llm.models import resolve_model
from memguard.stores import ChromaStore
from memguard.testing import HashEmbeddings, ScriptedChatModel

ANA: dict[str, Any] = {"user_id": "ana"}
THREAD: dict[str, Any] = {"configurable": {"thread_id": "t1"}}


@pytest.fixture
def store() -> Iterator[ChromaStore]:
    with ChromaStore.memory(embed=HashEmbeddings()) as opened:
        yield opened


@pytest.fixture
def journal() -> Iterator[Journal]:
    with Journal.memory() as opened:
        yield opened


def make(model: Any, store: Any, journal: Journal, **more: Any) -> Any:
    settings: dict[str, Any] = {"checkpointer": InMemorySaver(), "judge": "local", **more}
    return create_memory_agent(model, store=store, receipts=journal, **settings)


async def test_what_one_turn_tells_the_next_conversation_knows(
    store: ChromaStore, journal: Journal
) -> None:
    model = ScriptedChatModel(["Noted.", "Rice cakes, then."])
    agent = make(model, store, journal, system="You are kind.")
    told = await agent.ainvoke(
        {"messages": [("user", "I am allergic to peanuts.")]}, THREAD, context=ANA
    )
    assert told["writes"].counts["stored"] == 1
    assert told["memory_context"] == ""
    asked = "Which snack suits me, given that I am allergic to peanuts?"
    other = {"configurable": {"thread_id": "t2"}}
    done = await agent.ainvoke({"messages": [("user", asked)]}, other, context=ANA)
    assert "allergic to peanuts" in done["memory_context"]
    assert [unit.permission for unit in done["read"].admitted] == ["APPLY_CONSTRAINT"]
    system = model.calls[1].messages[0]
    assert isinstance(system, SystemMessage)
    # Last in the system message, so that all before it stays the same from turn to turn.
    assert system.text == f"You are kind.\n\n{done['memory_context']}"
    # Never in the thread: nobody said it there.
    assert [message.text for message in done["messages"]] == [asked, "Rice cakes, then."]
    model.assert_consumed()


def test_sync_is_the_same(store: ChromaStore, journal: Journal) -> None:
    model = ScriptedChatModel(["Noted."])
    agent = make(model, store, journal)
    done = agent.invoke({"messages": [("user", "I moved to Porto in May.")]}, THREAD, context=ANA)
    assert done["writes"].counts["stored"] == 1
    assert [item.value["content"] for item in store.search(("memories", "ana"))]


async def test_a_thread_is_not_read_twice(store: ChromaStore, journal: Journal) -> None:
    model = ScriptedChatModel(["Noted.", "You too."])
    agent = make(model, store, journal)
    await agent.ainvoke({"messages": [("user", "I moved to Porto in May.")]}, THREAD, context=ANA)
    done = await agent.ainvoke(
        {"messages": [("user", "What time is it there?")]}, THREAD, context=ANA
    )
    assert done["writes"].receipts == ()
    assert len(model.calls[1].messages) >= 3


async def test_what_a_tool_returns_is_evidence_for_the_answer_it_leads_to(
    store: ChromaStore, journal: Journal
) -> None:
    def opening_hours(place: str) -> str:
        """When a place is open."""
        return f"{place}: closed on Mondays since May"

    call = {"name": "opening_hours", "args": {"place": "Padaria"}, "id": "c1"}
    model = ScriptedChatModel([AIMessage("", tool_calls=[call]), "It is closed on Mondays."])
    agent = make(model, store, journal, tools=[opening_hours])
    done = await agent.ainvoke(
        {"messages": [("user", "Is Padaria open on Monday?")]}, THREAD, context=ANA
    )
    assert [type(message) for message in done["messages"]] == [
        HumanMessage, AIMessage, ToolMessage, AIMessage,
    ]  # fmt: skip
    (evidence,) = done["read"].evidence
    assert evidence.text == "Padaria: closed on Mondays since May"
    assert evidence.source == "opening_hours"
    assert model.calls[0].kwargs["tools"][0]["function"]["name"] == "opening_hours"


async def test_users_do_not_see_one_another(store: ChromaStore, journal: Journal) -> None:
    model = ScriptedChatModel(["Noted.", "Hm."])
    agent = make(model, store, journal)
    said = "I am allergic to peanuts."
    await agent.ainvoke({"messages": [("user", said)]}, THREAD, context=ANA)
    done = await agent.ainvoke(
        {"messages": [("user", said)]},
        {"configurable": {"thread_id": "b"}},
        context={"user_id": "bob"},
    )
    assert done["read"].memories == ()


@pytest.mark.parametrize("context", [None, {}, {"user_id": ""}, {"user_id": None}])
async def test_an_unknown_user_is_an_error_before_anything_is_asked(
    store: ChromaStore, journal: Journal, context: Any
) -> None:
    model = ScriptedChatModel()
    agent = make(model, store, journal)
    with pytest.raises(ConfigurationError, match="user_id") as error:
        await agent.ainvoke({"messages": [("user", "Hello there")]}, THREAD, context=context)
    assert error.value.code == ErrorCode.NAMESPACE_UNRESOLVED
    assert model.calls == []


def test_there_is_no_local_model_that_answers(store: ChromaStore) -> None:
    with pytest.raises(ConfigurationError, match="judge='local'") as error:
        create_memory_agent("local", store=store)
    assert error.value.code == ErrorCode.MODEL_MISSING


async def test_no_messages_is_an_error(store: ChromaStore, journal: Journal) -> None:
    agent = make(ScriptedChatModel(), store, journal)
    with pytest.raises(InvalidInputError, match="no messages"):
        await agent.ainvoke({"messages": []}, THREAD, context=ANA)


async def test_an_answer_that_fails_leaves_the_thread_as_it_was(
    store: ChromaStore, journal: Journal
) -> None:
    model = ScriptedChatModel([ValueError("broken"), "Noted."])
    agent = make(resolve_model(model, max_attempts=1, streams=True), store, journal)
    given = {"messages": [HumanMessage("I moved to Porto in May.", id="m1")]}
    with pytest.raises(AnswerError, match="broken"):
        await agent.ainvoke(given, THREAD, context=ANA)
    done = await agent.ainvoke(given, THREAD, context=ANA)
    assert [message.text for message in done["messages"]] == [
        "I moved to Porto in May.", "Noted.",
    ]  # fmt: skip
    assert done["writes"].counts["stored"] == 1


async def test_a_store_that_fails_costs_memory_not_the_answer(journal: Journal) -> None:
    class Down(InMemoryStore):
        async def abatch(self, ops: Any) -> Any:
            msg = "the disk is gone"
            raise OSError(msg)

    store = Down(index={"dims": 64, "embed": HashEmbeddings()})
    agent = make(ScriptedChatModel(["Hello!"]), store, journal)
    done = await agent.ainvoke(
        {"messages": [("user", "I moved to Porto in May.")]}, THREAD, context=ANA
    )
    assert done["messages"][-1].text == "Hello!"
    assert done["read"].flags == ("recall_failed",)
    (failure,) = done["writes"].failures
    assert (failure.step, failure.code) == ("screen", ErrorCode.STORE_FAILED)
    assert [candidate.text for candidate in done["writes"].unjudged]


async def test_a_log_that_fails_costs_memory_not_the_answer(
    store: ChromaStore, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: Any, **__: Any) -> Any:
        msg = "the disk is full"
        raise ReceiptError(msg, code=ErrorCode.RECEIPT_FAILED)

    monkeypatch.setattr(journal, "awrite", full)
    agent = make(ScriptedChatModel(["Hello!"]), store, journal)
    done = await agent.ainvoke(
        {"messages": [("user", "I moved to Porto in May.")]}, THREAD, context=ANA
    )
    assert done["messages"][-1].text == "Hello!"
    assert [failure.code for failure in done["read"].failures] == [ErrorCode.RECEIPT_FAILED]
    assert done["writes"].failures[0].code == ErrorCode.RECEIPT_FAILED


@pytest.mark.parametrize("durability", ["sync", "async", "exit", None])
async def test_no_memory_lives_on_in_a_thread(
    store: ChromaStore, journal: Journal, durability: Any
) -> None:
    """A memory that is forgotten later is not found in checkpoints either."""
    saver = InMemorySaver()
    await store.aput(("memories", "ana"), "k", {"content": "Ana is allergic to peanuts."})
    agent = make(ScriptedChatModel(["Rice cakes."]), store, journal, checkpointer=saver)
    asked = {"messages": [("user", "Am I allergic to peanuts?")]}
    done = await agent.ainvoke(asked, THREAD, context=ANA, durability=durability)
    assert [memory.text for memory in done["read"].memories] == ["Ana is allergic to peanuts."]
    kept = [entry async for entry in saver.alist(None)]
    assert kept
    assert {entry.config.get("configurable", {})["checkpoint_ns"] for entry in kept} == {""}
    assert "Ana is allergic" not in repr(kept)


async def test_either_side_can_be_left_out(store: ChromaStore, journal: Journal) -> None:
    said = {"messages": [("user", "I moved to Porto in May.")]}
    forgetful = make(ScriptedChatModel(["Hi."]), store, journal, write=False)
    done = await forgetful.ainvoke(said, THREAD, context=ANA)
    assert done.get("writes") is None
    blind = make(ScriptedChatModel(["Hi."]), store, journal, read=False)
    done = await blind.ainvoke(said, THREAD, context=ANA)
    assert done.get("read") is None
    assert done["writes"].counts["stored"] == 1
    plain = make(ScriptedChatModel(["Hi."]), store, journal, read=False, write=False)
    assert (await plain.ainvoke(said, THREAD))["messages"][-1].text == "Hi."


async def test_the_insides_show(store: ChromaStore, journal: Journal) -> None:
    agent = make(ScriptedChatModel(["Hi."]), store, journal, tools=[len_of])
    drawn = agent.get_graph(xray=2)
    names = {node.partition(":")[0] for node in drawn.nodes}
    assert {"recall", "answer", "tools", "remember"} <= names
    events: list[tuple[str, str]] = []
    stream = agent.astream(
        {"messages": [("user", "I moved to Porto in May.")]},
        THREAD,
        context=ANA,
        stream_mode="custom",
        subgraphs=True,
    )
    async for _, event in stream:
        events.append((event["memguard"], event["step"]))
    assert ("read", "recalled") in events
    assert ("write", "reported") in events


def len_of(text: str) -> int:
    """Length of a text."""
    return len(text)
