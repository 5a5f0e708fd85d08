"""The host's own answer: shown, streamed, with tools, and failing loudly."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph

from memguard.errors import AnswerError, ErrorCode, ModelConfigurationError
from memguard.llm.ask import answer, tool_settings
from memguard.llm.call import CallSettings, request
from memguard.llm.limits import Meter
from memguard.llm.models import resolve_model
from memguard.testing import LoopbackModelServer, ScriptedChatModel, ServerReply

ASKED = [HumanMessage("Where is the bakery?")]


@tool
def find_place(name: str) -> str:
    """Find a place."""
    return f"{name}: Rua do Almada 3"


async def _tokens(model: Any, *, hidden: bool) -> list[str]:
    """What `stream_mode="messages"` shows of one call in a node."""

    async def node(state: MessagesState) -> dict[str, Any]:
        if hidden:
            await request(model, state["messages"], settings=CallSettings(), meter=Meter())
            return {}
        return {"messages": [await answer(model, state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    graph: Any = builder.compile()
    texts: list[str] = []
    async for chunk, _ in graph.astream({"messages": ASKED}, stream_mode="messages"):
        assert isinstance(chunk, AIMessage)
        texts.append(chunk.text)
    return [text for text in texts if text]


async def test_tokens_of_an_answer_are_streamed_and_those_of_a_judge_are_not():
    with LoopbackModelServer("At the corner of the square.") as server:
        chat = ChatOpenAI(model="m", base_url=server.url, api_key="k", stream_usage=True)  # pyright: ignore[reportArgumentType]
        streaming = resolve_model(chat, streams=True)
        assert await _tokens(streaming, hidden=False) == [
            "At", " the", " corner", " of", " the", " square.",
        ]  # fmt: skip
        assert [one.body.get("stream") for one in server.chats] == [True]
        assert await _tokens(resolve_model(chat), hidden=True) == []
        assert not server.chats[-1].body.get("stream")


async def test_tool_calls_come_through_with_and_without_streaming():
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "find_place", "arguments": '{"name": "bakery"}'},
    }
    reply = ServerReply(text=None, tool_calls=[call], finish_reason="tool_calls")
    with LoopbackModelServer(script=[reply, reply]) as server:
        for streaming in (False, True):
            chat = ChatOpenAI(model="m", base_url=server.url, api_key="k", streaming=streaming)  # pyright: ignore[reportArgumentType]
            model = resolve_model(chat, streams=True)
            message = await answer(model, ASKED, tools=tool_settings(model, [find_place]))
            assert [(c["name"], c["args"]) for c in message.tool_calls] == [
                ("find_place", {"name": "bakery"})
            ]
            assert server.chats[-1].body["tools"][0]["function"]["name"] == "find_place"


async def test_no_answer_is_an_error_that_says_why():
    model = resolve_model(ScriptedChatModel([TimeoutError("slow")]), max_attempts=1)
    model.state.limiter.record_contact()
    with pytest.raises(AnswerError, match=r"timeout.*can be sent again") as error:
        await answer(model, ASKED)
    assert error.value.code == ErrorCode.ANSWER_FAILED


def test_a_model_that_takes_no_tools_is_refused_at_once():
    class Toolless(ScriptedChatModel):
        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

    model = resolve_model(Toolless())
    assert tool_settings(model, []) == {}
    with pytest.raises(ModelConfigurationError, match="takes no tools"):
        tool_settings(model, [find_place])


CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "find_place", "arguments": '{"name": "bakery"}'},
}


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (ServerReply(text=""), "parse_failure: empty answer"),
        (ServerReply(text=" \u200b\n"), "parse_failure: empty answer"),
        (ServerReply(text="", finish_reason="content_filter"), "refusal: content_filter"),
        (ServerReply(text=None, refusal="I can't do that."), "refusal: I can't do that"),
        (ServerReply(text="", finish_reason="length"), "truncated"),
        (ServerReply(text=None, tool_calls=[CALL]), "the tool 'find_place', not offered"),
    ],
    ids=["empty", "invisible", "filtered", "refused", "cut off", "tool"],
)
async def test_an_answer_that_shows_nothing_is_no_answer(reply: ServerReply, why: str) -> None:
    with LoopbackModelServer(lambda _: reply) as server:
        model = resolve_model("openai:m", base_url=server.url, api_key="k")
        with pytest.raises(AnswerError, match=why) as error:
            await answer(model, ASKED)
    assert error.value.code == ErrorCode.ANSWER_FAILED


async def test_an_answer_that_was_cut_off_or_is_a_picture_is_shown() -> None:
    picture = AIMessage([{"type": "image_url", "image_url": {"url": "data:,"}}])
    cut = AIMessage("At the", response_metadata={"finish_reason": "length"})
    for message in (picture, cut):
        model = resolve_model(ScriptedChatModel([message]))
        assert (await answer(model, ASKED)).content == message.content
