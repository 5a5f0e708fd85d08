"""One object, read or not, with at most one repair."""

# Answers are unions and fixtures untyped here: the assertions say what each one is.
# pyright: reportArgumentType=false
# pyright: reportCallIssue=false
# pyright: reportUnknownLambdaType=false

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from pydantic import BaseModel, Field

from memguard.llm.ask import ask
from memguard.llm.limits import Meter, use_meter
from memguard.llm.models import resolve_model
from memguard.testing import LoopbackModelServer, ScriptedChatModel, ServerReply

PROMPT = [HumanMessage("who wins?")]


class Part(BaseModel):
    text: str = ""


class Verdict(BaseModel):
    reason: str
    score: float = Field(0.5, ge=0, le=1)
    parts: list[Part] = []


GOOD = {"reason": "said so", "score": 0.9}


async def test_an_object():
    scripted = ScriptedChatModel([GOOD])
    answer = await ask(resolve_model(scripted), PROMPT, Verdict)
    assert answer.value == Verdict(**GOOD)
    assert not answer.repaired
    assert answer.usage.calls == 1
    scripted.assert_consumed()


async def test_one_repair_that_shows_the_answer_and_the_error():
    scripted = ScriptedChatModel([{"reason": "said so", "score": 7}, GOOD])
    answer = await ask(resolve_model(scripted), PROMPT, Verdict)
    assert answer.value == Verdict(**GOOD)
    assert answer.repaired
    assert answer.usage.calls == 2
    second = scripted.calls[1]
    assert isinstance(second.messages[1], AIMessage)
    assert '"score": 7' in second.text
    assert "less than or equal to 1" in second.text
    scripted.assert_consumed()


async def test_no_second_repair():
    scripted = ScriptedChatModel(["no", "still no"])
    answer = await ask(resolve_model(scripted), PROMPT, Verdict)
    assert answer.value.reason == "parse_failure"
    assert answer.repaired
    scripted.assert_consumed()


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (ServerReply(text=None, refusal="I will not"), "refusal"),
        (ServerReply(text='{"reason": "sa', finish_reason="length"), "truncated"),
        (ServerReply(text="{}", finish_reason="content_filter"), "refusal"),
        (ServerReply.error(400, "no", code="content_filter"), "refusal"),
    ],
)
async def test_what_is_not_repaired(loopback_model, reply, reason):
    loopback_model.answer = lambda _: reply
    model = resolve_model("openai:m", base_url=loopback_model.url)
    answer = await ask(model, PROMPT, Verdict)
    assert answer.value.reason == reason
    assert not answer.repaired
    assert len(loopback_model.chats) == 1


async def test_the_schema_is_sent_in_strict_form(loopback_model):
    model = resolve_model("openai:m", base_url=loopback_model.url)
    answer = await ask(model, PROMPT, Verdict)
    assert isinstance(answer.value, Verdict)
    sent = loopback_model.chats[0].body["response_format"]["json_schema"]
    assert sent["strict"] is True
    assert sent["schema"]["required"] == ["reason", "score", "parts"]
    assert sent["schema"]["additionalProperties"] is False
    assert sent["schema"]["$defs"]["Part"]["additionalProperties"] is False
    assert "default" not in sent["schema"]["properties"]["score"]


async def test_a_server_without_schemas_is_asked_without():
    with LoopbackModelServer('Sure: {"reason": "r"}', json_schema="refused") as server:
        model = resolve_model("openai:m", base_url=server.url)
        for _ in range(2):
            answer = await ask(model, PROMPT, Verdict)
            assert answer.value == Verdict(reason="r")
            assert "response_format" in answer.notes[0]
        assert len(server.chats) == 3


async def test_counts_on_the_meter_of_the_run():
    meter = Meter()
    with use_meter(meter):
        await ask(resolve_model(ScriptedChatModel([GOOD])), PROMPT, Verdict)
    assert meter.usage.calls == 1
