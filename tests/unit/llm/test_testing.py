"""The test doubles that are shipped: the scripted model and the loopback server."""

# Answers are unions and fixtures untyped here: the assertions say what each one is.
# pyright: reportArgumentType=false
# pyright: reportUnknownLambdaType=false

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel

from memguard.testing import (
    LoopbackModelServer,
    ScriptedChatModel,
    ServerReply,
    UnexpectedModelCallError,
)

ROOT = Path(__file__).parents[3]


class Thing(BaseModel):
    name: str


def test_steps_of_every_kind():
    model = ScriptedChatModel(
        ["text", Thing(name="a"), {"k": 1}, ValueError("no"), lambda messages: messages[-1].text]
    )
    assert model.invoke("q").text == "text"
    assert json.loads(model.invoke("q").text) == {"name": "a"}
    assert json.loads(model.invoke("q").text) == {"k": 1}
    with pytest.raises(ValueError, match="no"):
        model.invoke("q")
    assert model.invoke("echo").text == "echo"
    assert model.calls[-1].text == "echo"
    model.assert_consumed()


def test_an_extra_call_fails_there_and_later():
    model = ScriptedChatModel()
    with pytest.raises(UnexpectedModelCallError, match="not in the script"):
        model.invoke("q")
    with pytest.raises(AssertionError, match="1 calls"):
        model.assert_consumed()


def test_leftovers_fail():
    with pytest.raises(AssertionError, match="were not used"):
        ScriptedChatModel(["a"]).assert_consumed()
    with pytest.raises(AssertionError, match="rules that were not used"):
        ScriptedChatModel(rules=[("x", "a")]).assert_consumed()


async def test_rules_by_prompt():
    model = ScriptedChatModel(
        ["else"], rules=[("cat", "miaow"), (lambda text: text.isupper(), "loud")]
    )
    assert (await model.ainvoke("a cat")).text == "miaow"
    assert (await model.ainvoke("DOG")).text == "loud"
    assert (await model.ainvoke("a cat again")).text == "miaow"
    assert (await model.ainvoke("dog")).text == "else"
    model.assert_consumed()


async def test_several_answers_at_once():
    model = ScriptedChatModel(["a", "b", "c d"], supports_n=True)
    result = await model.agenerate([[HumanMessage("two words")]], n=3)
    assert [one.text for one in result.generations[0]] == ["a", "b", "c d"]
    assert result.llm_output == {"token_usage": {"prompt_tokens": 2, "completion_tokens": 4}}


def test_the_server_for_a_sync_client(loopback_model):
    loopback_model.answer = lambda request: request["messages"][-1]["content"].upper()
    with_key = ChatOpenAI(model="m", base_url=loopback_model.url, api_key="test-key")
    assert with_key.invoke("hello").text == "HELLO"
    assert loopback_model.keys == {"test-key"}
    assert loopback_model.requests[0].text == "hello"


def test_a_script_comes_before_the_answer():
    script = ["one", ServerReply(text="two", finish_reason="length")]
    with LoopbackModelServer("else", script=script) as server:
        chat = ChatOpenAI(model="m", base_url=server.url, api_key="test-key")
        assert [chat.invoke("q").text for _ in range(3)] == ["one", "two", "else"]


def test_embeddings_are_the_same_for_the_same_text(loopback_model):
    embedder = OpenAIEmbeddings(
        model="e",
        base_url=loopback_model.url,
        api_key="test-key",
        check_embedding_ctx_length=False,
    )
    first, second = embedder.embed_documents(["the red fox", "the red fox"])
    assert first == pytest.approx(second)
    assert sum(x * x for x in first) == pytest.approx(1.0)


def test_stopping_twice_is_harmless():
    server = LoopbackModelServer().start()
    server.stop()
    server.stop()


def test_as_a_process_of_its_own():
    process = subprocess.Popen(
        [sys.executable, "-m", "memguard.testing.server", "--latency", "1", "--n", "refused"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        assert ChatOpenAI(model="m", base_url=url, api_key="test-key").invoke("q").text == "ok"
    finally:
        process.terminate()
        process.stdout.close()
        process.wait(10)
