"""Messages in all common shapes: read, or skipped with a note; never an empty turn."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    message_to_dict,
)
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.store.memory import InMemoryStore

from memguard import create_read_guard, create_write_guard, read_conversation
from memguard.errors import InvalidInputError
from memguard.journal.journal import Journal
from memguard.testing.embeddings import HashEmbeddings

SAID = "I live in Porto."
PICTURE = {"type": "image_url", "image_url": {"url": "http://localhost/a.png"}}
CALL = {"name": "look", "args": {}, "id": "1", "type": "tool_call"}

READ: dict[str, Any] = {
    "HumanMessage": (HumanMessage(SAID), "user"),
    "HumanMessageChunk": (HumanMessageChunk(content=SAID), "user"),
    "AIMessageChunk": (AIMessageChunk(content=SAID), "assistant"),
    "ChatMessage": (ChatMessage(content=SAID, role="user"), "user"),
    "ChatMessage of a model": (ChatMessage(content=SAID, role="Model"), "assistant"),
    "FunctionMessage": (FunctionMessage(content=SAID, name="f"), "tool"),
    "ToolMessage": (ToolMessage(SAID, tool_call_id="1"), "tool"),
    "SystemMessage": (SystemMessage(SAID), "system"),
    "blocks": (HumanMessage([PICTURE, {"type": "text", "text": SAID}]), "user"),
    "strings as blocks": ({"role": "user", "content": ["I live ", "in Porto."]}, "user"),
    "thoughts": (
        {"role": "model", "parts": [{"text": "Hm.", "thought": True}, {"text": SAID}]},
        "assistant",
    ),
    "parts": ({"role": "user", "parts": [{"text": SAID}]}, "user"),
    "typed parts": ({"role": "user", "parts": [{"type": "text", "text": SAID}]}, "user"),
    "parts as texts": ({"role": "model", "parts": [SAID]}, "assistant"),
    "nested parts": ({"role": "user", "content": {"parts": [SAID]}}, "user"),
    "one block": ({"role": "user", "content": {"type": "text", "text": SAID}}, "user"),
    "responses": (
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": SAID}]},
        "user",
    ),
    "tool output": ({"type": "function_call_output", "call_id": "1", "output": SAID}, "tool"),
    "pair": (("human", SAID), "user"),
}
SKIPPED: dict[str, Any] = {
    "ChatMessage of a critic": (
        ChatMessage(content=SAID, role="critic"),
        "its role 'critic' is not one",
    ),
    "picture": (HumanMessage([PICTURE]), "it has no text, only image_url"),
    "inline data": ({"role": "user", "parts": [{"inlineData": {}}]}, "only inlineData"),
    "tool results": (
        {"role": "user", "content": [{"type": "tool_result", "content": SAID}]},
        "only tool_result",
    ),
    "empty": (HumanMessage(""), "it is empty"),
    "invisible": (HumanMessage("\u200b \n"), "it is empty"),
    "no content": ({"role": "user", "content": None}, "it is empty"),
    "RemoveMessage": (RemoveMessage("m9"), "removes 'm9', which is no turn"),
}
SILENT: dict[str, Any] = {
    "tool calls": AIMessage("", tool_calls=[CALL]),
    "tool calls in chunks": AIMessageChunk(
        content="",
        tool_call_chunks=[
            {"name": "look", "args": "{}", "id": "1", "index": 0, "type": "tool_call_chunk"}
        ],
    ),
    "tool use": AIMessage([{"type": "tool_use", "id": "1", "name": "look", "input": {}}]),
    "function call": AIMessage("", additional_kwargs={"function_call": {"name": "look"}}),
    "Gemini": {"role": "model", "parts": [{"functionCall": {"name": "look"}}]},
    "responses": {"type": "function_call", "name": "look", "arguments": "{}"},
    "reasoning": {"type": "reasoning", "summary": []},
}


@pytest.mark.parametrize("shape", READ)
def test_a_message_with_text_is_a_turn(shape: str) -> None:
    message, role = READ[shape]
    (turn,) = read_conversation([message]).turns
    assert (turn.role, turn.content, turn.id) == (role, SAID, "1")


@pytest.mark.parametrize("shape", SKIPPED)
def test_a_message_without_a_turn_has_a_note(shape: str) -> None:
    message, note = SKIPPED[shape]
    read = read_conversation([("user", "Hi there."), message])
    assert [turn.content for turn in read.turns] == ["Hi there."]
    (found,) = read.notes
    assert found.startswith("message 2")
    assert note in found


@pytest.mark.parametrize("shape", SILENT)
def test_a_message_that_only_calls_a_tool_is_no_turn(shape: str) -> None:
    read = read_conversation([SILENT[shape], ("user", SAID)])
    assert [(turn.id, turn.content) for turn in read.turns] == [("2", SAID)]
    assert read.notes == ()


@pytest.mark.parametrize("write", [message_to_dict, dumpd, BaseMessage.model_dump])
@pytest.mark.parametrize("shape", [*READ, *SKIPPED, *SILENT])
def test_what_langchain_writes_as_json_is_read_as_the_message(shape: str, write: Any) -> None:
    message = SILENT.get(shape) or {**READ, **SKIPPED}[shape][0]
    if not isinstance(message, BaseMessage):
        pytest.skip("not a message of LangChain")
    plain = json.loads(json.dumps(write(message)))
    assert read_conversation([plain]) == read_conversation([message])


def test_chunks_of_one_message_are_one_turn() -> None:
    chunks = [AIMessageChunk(content=text, id="a1") for text in ("Wel", "come ", "", "home.")]
    read = read_conversation([("user", SAID), *chunks, AIMessageChunk(content="Next.", id="a2")])
    assert [turn.content for turn in read.turns] == [SAID, "Welcome home.", "Next."]
    assert [turn.id for turn in read.turns] == ["1", "a1", "a2"]


def test_a_removed_message_is_not_remembered() -> None:
    first, second = HumanMessage(SAID, id="m1"), HumanMessage("I row.", id="m2")
    read = read_conversation([first, second, RemoveMessage("m1")])
    assert [turn.id for turn in read.turns] == ["m2"]
    read = read_conversation([first, RemoveMessage(REMOVE_ALL_MESSAGES), second])
    assert [turn.id for turn in read.turns] == ["m2"]
    # A message that is written again after its removal is not a repetition.
    assert len(read_conversation([first, RemoveMessage("m1"), first]).turns) == 1


@pytest.mark.parametrize("message", [{"role": "usr", "content": SAID}, ("bot", SAID), 5, {"a": 1}])
def test_a_mistake_of_the_caller_is_an_error(message: Any) -> None:
    with pytest.raises(InvalidInputError, match="message 1 cannot be read"):
        read_conversation([message])


blocks = st.recursive(
    st.one_of(st.none(), st.text(), st.just(PICTURE), st.fixed_dictionaries({"text": st.text()})),
    lambda inner: st.one_of(
        st.lists(inner), st.fixed_dictionaries({"type": st.just("text"), "text": inner})
    ),
    max_leaves=6,
)


@given(st.sampled_from(["user", "ai", "tool"]), st.sampled_from(["content", "parts"]), blocks)
def test_no_content_makes_an_empty_turn_or_is_lost(role: str, field: str, content: Any) -> None:
    read = read_conversation([{"role": role, field: content}])
    assert len(read.turns) + len(read.notes) == 1
    assert all(turn.is_evidence or turn.rendered for turn in read.turns)


def test_the_reports_of_both_guards_have_the_notes() -> None:
    index: Any = {"dims": 64, "embed": HashEmbeddings(dims=64)}
    store, journal = InMemoryStore(index=index), Journal.memory()
    settings: Any = {"store": store, "receipts": journal, "namespace": ("memories", "ana")}
    talk = {
        "messages": [
            HumanMessage([PICTURE]),
            ChatMessage(content=SAID, role="critic"),
            ("user", SAID),
        ]
    }
    with journal:
        write = create_write_guard("local", **settings).invoke(talk)
        read = create_read_guard("local", **settings).invoke(talk)
    assert write["writes"].counts["stored"] == 1
    for notes in (write["writes"].notes, read["read"].notes):
        assert sum("was not read" in note for note in notes) == 2
