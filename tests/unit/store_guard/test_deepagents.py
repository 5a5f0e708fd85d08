"""Deep agents whose files lie in a guarded store."""

import asyncio
from typing import Any

import pytest
from langchain.agents.middleware import ToolRetryMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.store.memory import InMemoryStore

from memguard import ConsistencyGate, GuardError, guard_store, use_source
from memguard.testing import ScriptedChatModel
from tests.unit.write.scripts import scripted

deepagents: Any = pytest.importorskip("deepagents", reason="deepagents is not installed")
backends: Any = pytest.importorskip("deepagents.backends")

ANA = ("memories", "ana")
USER = "/memories/user.md"
PORTO = "# The user\n- lives in Porto"
MEAT = "- does not eat meat"
ASK: Any = {"messages": [("user", "I live in Porto. My colleague does not eat meat.")]}


def of_ana(_: Any) -> tuple[str, ...]:
    return ANA


def guarded(**more: Any) -> tuple[Any, list[str]]:
    seen: list[str] = []

    def score(memory: str) -> str:
        seen.append(memory)
        return "0.1" if MEAT in memory else "0.9"

    gates: Any = [ConsistencyGate(k=1)]
    return guard_store(InMemoryStore(), model=scripted(scores=score), gates=gates, **more), seen


def agent_on(store: Any, *calls: tuple[str, dict[str, str]], middleware: Any = ()) -> Any:
    said = [
        AIMessage("", tool_calls=[{"name": name, "args": args, "id": str(n), "type": "tool_call"}])
        for n, (name, args) in enumerate(calls)
    ]
    files = backends.StoreBackend(namespace=of_ana)
    return deepagents.create_deep_agent(
        ScriptedChatModel([*said, "Done."]),
        store=store,
        backend=backends.CompositeBackend(
            default=backends.StateBackend(), routes={"/memories/": files}
        ),
        middleware=middleware,
    )


async def run(agent: Any, *, how: str) -> Any:
    if how == "sync":
        return await asyncio.to_thread(agent.invoke, ASK)
    return await agent.ainvoke(ASK)


WRITE = ("write_file", {"file_path": USER, "content": PORTO})
EDIT = (
    "edit_file",
    {"file_path": USER, "old_string": "Porto", "new_string": f"Porto\n{MEAT}"},
)


@pytest.mark.parametrize("how", ["sync", "async"])
async def test_an_edit_is_gated_and_files_of_the_state_are_not(how: str) -> None:
    store, seen = guarded()
    plan = ("write_file", {"file_path": "/plan.md", "content": f"Ask about {MEAT}"})
    done = await run(agent_on(store, plan, WRITE, EDIT), how=how)
    (item,) = await store.asearch(ANA)
    assert (item.key, item.value["content"]) == ("/user.md", PORTO)
    assert seen == [PORTO, f"# The user\n{MEAT}"]
    assert list(done["files"]) == ["/plan.md"]
    rejected, stored = (await store.receipts.alist()).receipts
    assert (stored.outcome, rejected.outcome) == ("stored", "rejected")


@pytest.mark.parametrize("how", ["sync", "async"])
async def test_the_model_is_told_of_a_refusal(how: str) -> None:
    store, _ = guarded(on_refused="raise")
    told = ToolRetryMiddleware(max_retries=0, retry_on=(GuardError,), on_failure="continue")
    done = await run(agent_on(store, WRITE, EDIT, middleware=[told]), how=how)
    first, second = [each for each in done["messages"] if isinstance(each, ToolMessage)]
    assert first.status == "success"
    assert "support 0.10 < 0.70" in second.text
    assert done["messages"][-1].text == "Done."


async def test_a_picture_is_held_and_a_text_of_ones_own_is_judged() -> None:
    store, seen = guarded()
    files = backends.StoreBackend(store=store, namespace=of_ana)
    with use_source("I live in Porto."):
        sent = [("/user.md", PORTO.encode()), ("/cat.png", b"\x89PNG\x00\xff")]
        await asyncio.to_thread(files.upload_files, sent)
    assert [item.key for item in await store.asearch(ANA)] == ["/user.md"]
    assert seen == [PORTO]
    (held,) = (await store.quarantine.alist()).receipts
    assert held.record_key == "/cat.png"
    await store.quarantine.arelease(held.id, actor="ana", store=store.unguarded)
    (back,) = await asyncio.to_thread(files.download_files, ["/cat.png"])
    assert back.content == b"\x89PNG\x00\xff"
    await files.adelete("/cat.png")
    assert [item.key for item in await store.asearch(ANA)] == ["/user.md"]
