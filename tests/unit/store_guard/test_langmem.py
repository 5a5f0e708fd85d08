"""langmem's tools on a guarded store."""

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.store.memory import InMemoryStore

from memguard import ConsistencyGate, guard_store, use_source
from memguard.testing import ScriptedChatModel
from memguard.testing.embeddings import HashEmbeddings
from tests.unit.chroma.test_langmem import Memorising
from tests.unit.write.scripts import scripted

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings(
        "ignore:.*:langchain_core._api.deprecation.LangChainDeprecationWarning"
    ),
]

ANA = ("memories", "ana")
TEA, MEAT = "The user likes green tea.", "The user does not eat meat."
TALK = [("user", "I like green tea. My colleague does not eat meat.")]


def guarded(**more: Any) -> Any:
    index: Any = {"dims": 32, "embed": HashEmbeddings(dims=32), "fields": ["content"]}
    return guard_store(
        InMemoryStore(index=index),
        model=scripted(scores={MEAT: "0.1"}),
        gates=[ConsistencyGate(k=1)],
        **more,
    )


async def test_tools_write_update_search_and_delete() -> None:
    langmem = pytest.importorskip("langmem")
    store = guarded()
    manage = langmem.create_manage_memory_tool(namespace=ANA, store=store)
    search = langmem.create_search_memory_tool(namespace=ANA, store=store)
    with use_source(TALK):
        await manage.ainvoke({"action": "create", "content": TEA})
        await manage.ainvoke({"action": "create", "content": MEAT})
    (item,) = await store.asearch(ANA)
    assert item.value == {"content": TEA}
    with use_source([("user", "I like black tea now.")]):
        await manage.ainvoke({"action": "update", "content": "Likes black tea.", "id": item.key})
        await manage.ainvoke({"action": "update", "content": MEAT, "id": item.key})
    assert "black tea" in str(await search.ainvoke({"query": "tea"}))
    await manage.ainvoke({"action": "delete", "id": item.key})
    assert await store.asearch(ANA) == []


@pytest.mark.parametrize("how", ["sync", "async"])
async def test_in_an_agent_the_conversation_supports(how: str) -> None:
    langmem = pytest.importorskip("langmem")
    store = guarded()
    calls = [
        {"name": "manage_memory", "args": {"content": text}, "id": text, "type": "tool_call"}
        for text in (TEA, MEAT)
    ]
    agent: Any = create_agent(
        ScriptedChatModel([AIMessage("", tool_calls=calls), "Noted."]),
        tools=[langmem.create_manage_memory_tool(namespace=ANA)],
        store=store,
    )
    given: Any = {"messages": TALK}
    if how == "sync":
        await asyncio.to_thread(agent.invoke, given)
    else:
        await agent.ainvoke(given)
    assert [item.value["content"] for item in await store.asearch(ANA)] == [TEA]
    receipts = (await store.receipts.alist()).receipts
    assert sorted(receipt.outcome for receipt in receipts) == ["rejected", "stored"]


@pytest.mark.parametrize("how", ["awaited", "in the background"])
async def test_the_manager_writes_what_the_conversation_it_was_given_supports(how: str) -> None:
    langmem = pytest.importorskip("langmem")
    # Its executor works in a thread of its own, which sees no `use_source`.
    store = guarded() if how == "awaited" else guarded(source=TALK)

    async def remember(text: str) -> None:
        manager = langmem.create_memory_store_manager(
            Memorising(memory=text), namespace=ANA, store=store
        )
        given = {"messages": [{"role": "user", "content": TALK[0][1]}]}
        config: Any = {"configurable": {"thread_id": "1"}}
        if how == "awaited":
            await manager.ainvoke(given)
        else:
            with langmem.ReflectionExecutor(manager, store=store) as executor:
                await asyncio.to_thread(
                    executor.submit(given, config=config, after_seconds=0).result, 60
                )

    # The manager's run has its own state: the conversation is named around it.
    with use_source(TALK):
        await remember(TEA)
        await remember(MEAT)
    (item,) = await store.asearch(ANA)
    assert item.value["content"] == {"content": TEA}
    receipts = (await store.receipts.alist()).receipts
    assert sorted(receipt.outcome for receipt in receipts) == ["rejected", "stored"]
