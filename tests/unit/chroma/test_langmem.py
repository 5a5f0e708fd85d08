"""langmem's tools and store manager on `ChromaStore`."""

from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from memguard.stores import ChromaStore
from memguard.testing.embeddings import HashEmbeddings

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings(
        "ignore:.*:langchain_core._api.deprecation.LangChainDeprecationWarning"
    ),
]

SPACE = ("memories", "jo.doe@example.org")


class Memorising(BaseChatModel):
    """Calls the memory tool once, then stops."""

    memory: str

    @property
    def _llm_type(self) -> str:
        return "memorising"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        call = {"name": "Memory", "args": {"content": self.memory}, "id": "1", "type": "tool_call"}
        done = any(isinstance(each, AIMessage) for each in messages)
        message = AIMessage("") if done else AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


async def test_tools() -> None:
    langmem = pytest.importorskip("langmem")
    async with ChromaStore.memory(embed=HashEmbeddings(), shards=2) as store:
        manage = langmem.create_manage_memory_tool(namespace=SPACE, store=store)
        search = langmem.create_search_memory_tool(namespace=SPACE, store=store)
        await manage.ainvoke({"action": "create", "content": "likes green tea"})
        found = await store.asearch(SPACE)
        assert [each.value["content"] for each in found] == ["likes green tea"]
        key = found[0].key
        await manage.ainvoke({"action": "update", "content": "likes black tea", "id": key})
        assert "black tea" in str(await search.ainvoke({"query": "tea"}))
        await manage.ainvoke({"action": "delete", "id": key})
        assert await store.asearch(SPACE) == []


async def test_store_manager() -> None:
    langmem = pytest.importorskip("langmem")
    async with ChromaStore.memory(embed=HashEmbeddings(), shards=2) as store:
        manager = langmem.create_memory_store_manager(
            Memorising(memory="Ana keeps bees"), namespace=SPACE, store=store
        )
        await manager.ainvoke({"messages": [{"role": "user", "content": "I keep bees. Ana"}]})
        found = await store.asearch(SPACE, query="bees")
        assert len(found) == 1
        assert "Ana keeps bees" in str(found[0].value)
