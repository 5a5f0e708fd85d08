"""One request over real HTTP: attempts, failures, settings, what is counted."""

# Answers are unions and fixtures untyped here: the assertions say what each one is.
# pyright: reportArgumentType=false
# pyright: reportAttributeAccessIssue=false
# pyright: reportOptionalMemberAccess=false
# pyright: reportUnknownLambdaType=false

import asyncio
import logging
import time

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableLambda

from memguard.errors import ErrorCode, ModelConfigurationError
from memguard.llm.call import NO_TOKEN_COUNTS, CallSettings, request
from memguard.llm.limits import Meter
from memguard.llm.models import Price, resolve_model
from memguard.llm.parsing import parse_score
from memguard.llm.sample import sample
from memguard.testing import (
    LoopbackModelServer,
    ScriptedChatModel,
    ServerReply,
    UnexpectedModelCallError,
)
from memguard.testing.scripted import ScriptError
from tests.cases import case_input

PROMPT = [HumanMessage("how well is it supported?")]
KEY = "sk-wrong-abcdef123456"


def model_at(server, **settings):
    return resolve_model("openai:m", base_url=server.url, backoff=0.001, **settings)


async def call(model, meter=None, **settings):
    return await request(model, PROMPT, settings=CallSettings(**settings), meter=meter or Meter())


@pytest.mark.parametrize("row", range(6))
@pytest.mark.parametrize("n", ["yes", "refused"])
async def test_k02_what_will_not_heal_costs_one_wave(row, n, caplog):
    reply = case_input("K-02")["replies"][row]
    body = reply["body"]["error"]
    caplog.set_level(logging.DEBUG)
    with LoopbackModelServer(
        lambda _: ServerReply.error(
            reply["status"],
            f"{body['message']} {KEY}",
            code=body.get("code"),
            kind=body.get("type"),
        ),
        n=n,
    ) as server:
        model = resolve_model("openai:m", base_url=server.url, api_key=KEY)
        meter = Meter()
        results = await asyncio.gather(
            *(sample(model, PROMPT, parse_score, k=5, meter=meter) for _ in range(10)),
            return_exceptions=True,
        )
        sent = len(server.chats)
    assert KEY not in repr(results)
    assert not any(
        KEY in record.getMessage() for record in caplog.records if "memguard" in record.name
    )
    if reply["status"] == 400:
        # Each prompt is asked at most as often as the method asks for, and never again.
        assert sent <= (10 if n == "yes" else 60)
        for one in results:
            assert {answer.reason for answer in one.answers} <= {"provider_error", "refusal"}
    else:
        assert sent <= (1 if n == "yes" else 2)
        codes = {one.code for one in results}
        assert len(codes) == 1
        assert codes <= {ErrorCode.MODEL_AUTH, ErrorCode.MODEL_UNKNOWN, ErrorCode.MODEL_QUOTA}


async def test_retries_are_bounded_and_counted(loopback_model):
    loopback_model.answer = lambda _: ServerReply.error(500, "oops")
    meter = Meter()
    reply = await call(model_at(loopback_model), meter)
    assert reply.failure.reason == "provider_error"
    assert len(loopback_model.chats) == 3 == meter.usage.attempts
    assert meter.usage.calls == 0


async def test_a_retry_may_succeed_and_waits_as_asked():
    script = [ServerReply.error(429, headers={"retry-after": "0.2"}), "0.9"]
    with LoopbackModelServer(script=script) as server:
        start, meter = time.perf_counter(), Meter()
        reply = await call(model_at(server), meter)
        assert time.perf_counter() - start >= 0.2
    assert reply.messages[0].text == "0.9"
    assert (meter.usage.calls, meter.usage.attempts) == (1, 2)


async def test_a_wait_of_an_hour_is_not_waited_for():
    reply_429 = ServerReply.error(429, headers={"retry-after": "3600"})
    with LoopbackModelServer(lambda _: reply_429) as server:
        reply = await call(model_at(server))
        assert len(server.chats) == 1
    assert reply.failure.reason == "provider_error"


@pytest.mark.parametrize(
    "broken",
    [
        ServerReply(raw="<html>bad gateway</html>", content_type="text/html"),
        ServerReply(raw='{"choices": [{"mess'),
        ServerReply(raw='{"choices": []}'),
        ServerReply(raw='{"choices": null}'),
        ServerReply(raw=""),
        ServerReply(drops=True),
    ],
    ids=["html", "half", "none", "null", "empty", "dropped"],
)
async def test_a_body_that_is_no_answer_is_a_provider_error(broken):
    with LoopbackModelServer("0.9", script=[broken]) as server:
        assert (await call(model_at(server))).messages[0].text == "0.9"
        server.answer = lambda _: broken
        reply = await call(model_at(server))
        assert reply.failure.reason == "provider_error"
        web_page = broken.content_type == "text/html"
        assert not web_page or "check base_url" in reply.failure.detail
        assert len(server.chats) == 2 + 3


async def test_timeouts_are_an_outcome_of_their_own(loopback_model):
    loopback_model.latency = 5
    reply = await call(model_at(loopback_model, max_attempts=2), timeout=0.5)
    assert reply.failure.reason == "timeout"
    assert len(loopback_model.chats) == 2


async def test_a_server_that_is_not_there():
    model = resolve_model("openai:m", base_url="http://127.0.0.1:9/v1", backoff=0.001)
    with pytest.raises(ModelConfigurationError, match=r"http://127\.0\.0\.1:9/v1") as caught:
        await call(model)
    assert caught.value.code == ErrorCode.MODEL_UNREACHABLE


async def test_a_server_that_went_away():
    with LoopbackModelServer("0.9") as server:
        model = model_at(server)
        await call(model)
    reply = await call(model)
    assert reply.failure.reason == "provider_error"


async def test_settings_that_a_model_refuses_are_dropped_once():
    refused = ["temperature", "seed", "max_completion_tokens"]
    with LoopbackModelServer("0.9", refuses=refused) as server:
        model = model_at(server)
        for _ in range(2):
            reply = await call(model, temperature=0.7, seed=1, max_tokens=5)
            dropped = {note.split("'")[1] for note in reply.notes}
            assert dropped == {"temperature", "seed", "max_tokens"}
        assert len(server.chats) == 5
        assert not server.chats[-1].body.keys() & refused
        assert (await call(model)).notes == ()


async def test_settings_that_may_not_be_dropped():
    extra = {"no_such_setting": 5}
    with LoopbackModelServer("0.9") as server, pytest.raises(ModelConfigurationError) as caught:
        await request(model_at(server), PROMPT, settings=CallSettings(), meter=Meter(), extra=extra)
    assert caught.value.code == ErrorCode.MODEL_REQUEST


async def test_usage_of_several_answers_is_counted_once(loopback_model):
    loopback_model.answer = lambda _: "zero point nine"
    price = Price(prompt=1e6, completion=1e6)
    model = model_at(loopback_model, prices={"openai:m": price})
    drawn = await sample(model, PROMPT, parse_score, k=5)
    assert drawn.usage.prompt_tokens == 5
    assert drawn.usage.completion_tokens == 15
    assert drawn.usage.cost == 20
    assert drawn.usage.latency > 0


async def test_missing_token_counts_are_noted():
    model = resolve_model(ScriptedChatModel(["0.9"], reports_usage=False))
    meter = Meter()
    reply = await call(model, meter)
    assert reply.notes == (NO_TOKEN_COUNTS,)
    assert meter.usage.tokens == 0


class Seen(AsyncCallbackHandler):
    def __init__(self):
        self.starts = []

    async def on_chat_model_start(self, serialized, messages, **kwargs):
        self.starts.append((kwargs["name"], kwargs["tags"], kwargs["metadata"]))


async def test_calls_show_in_the_callbacks_of_the_run():
    model = resolve_model(ScriptedChatModel(["0.9"]))

    async def node(_):
        await request(model, PROMPT, settings=CallSettings(), meter=Meter(), name="gate.support")

    callback = Seen()
    config = {"callbacks": [callback], "tags": ["host"], "metadata": {"thread": "1"}}
    await RunnableLambda(node).ainvoke(None, config)
    [(name, tags, metadata)] = callback.starts
    assert name == "gate.support"
    assert {"host", "nostream", "memguard"} <= set(tags)
    assert metadata["thread"] == "1"


async def test_a_cancelled_request_counts_as_an_attempt():
    meter = Meter()
    scripted = ScriptedChatModel(["0.9"], latency=60)
    model = resolve_model(scripted)
    task = asyncio.create_task(call(model, meter))
    while not scripted.calls:  # noqa: ASYNC110 - the script tells of a call in no other way
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (meter.usage.calls, meter.usage.attempts) == (0, 1)
    assert model.state.limiter.in_flight == 0


async def test_a_test_double_called_wrongly_is_not_swallowed():
    with pytest.raises(UnexpectedModelCallError, match="not in the script"):
        await call(resolve_model(ScriptedChatModel()))


def a_failing_assertion(messages: object) -> str:
    assert not messages, "the prompt is wrong"
    return ""


async def test_an_assertion_in_a_script_is_not_swallowed():
    with pytest.raises(ScriptError, match="the prompt is wrong"):
        await call(resolve_model(ScriptedChatModel(rules=[("", a_failing_assertion)])))


async def test_the_concurrency_limit_holds_over_loops(loopback_model):
    loopback_model.answer = lambda _: "0.9"
    loopback_model.n = "refused"
    loopback_model.latency = 0.01
    model = model_at(loopback_model, concurrency=3)

    def in_a_loop_of_its_own():
        asyncio.run(_many(model))

    await asyncio.gather(*(asyncio.to_thread(in_a_loop_of_its_own) for _ in range(3)))
    assert loopback_model.high_water <= 3


async def _many(model):
    await asyncio.gather(*(sample(model, PROMPT, parse_score, k=4) for _ in range(3)))


async def test_tool_calls_are_text(loopback_model):
    call_of_tool = {
        "id": "t",
        "type": "function",
        "function": {"name": "score", "arguments": '{"score": 0.85}'},
    }
    loopback_model.answer = lambda _: ServerReply(text=None, tool_calls=[call_of_tool])
    drawn = await sample(model_at(loopback_model), PROMPT, parse_score, k=1)
    assert drawn.answers == (0.85,)
