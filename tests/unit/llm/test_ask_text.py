"""A text from a model: what is an answer, and what is none."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from pydantic import BaseModel

from memguard.llm.ask import ask, ask_text
from memguard.llm.call import CallSettings
from memguard.llm.limits import Meter
from memguard.llm.models import resolve_model
from memguard.schema.decision import Inconclusive
from memguard.testing import LoopbackModelServer, ScriptedChatModel


class Verdict(BaseModel):
    ok: bool


PROMPT = [HumanMessage("Hello?")]
CUT = {"finish_reason": "length"}


async def text_of(step: Any, **settings: Any) -> Any:
    model = resolve_model(ScriptedChatModel([step]), max_attempts=1)
    return await ask_text(model, PROMPT, settings=CallSettings(**settings))


@pytest.mark.parametrize(
    ("step", "text"),
    [
        ("Hi.", "Hi."),
        ("<think>Greet.</think>\n\nHi.", "Hi."),
        (
            AIMessage([{"type": "reasoning", "reasoning": "x"}, {"type": "text", "text": "Hi"}]),
            "Hi",
        ),
        (AIMessage("In 20", response_metadata=CUT), "In 20"),
    ],
    ids=["plain", "after reasoning", "blocks", "cut off at a number"],
)
async def test_an_answer_is_its_text(step: Any, text: str) -> None:
    answer = await text_of(step)
    assert answer.text == text
    assert answer.usage.calls == 1
    assert answer.cut_off == (text == "In 20")


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ("", "parse_failure"),
        (" \u200b\n", "parse_failure"),
        ("<think>never ends", "parse_failure"),
        (AIMessage("<think>never ends", response_metadata=CUT), "truncated"),
        (AIMessage("", additional_kwargs={"refusal": "No."}), "refusal"),
        (
            AIMessage("", tool_calls=[{"name": "search", "args": {"q": "x"}, "id": "1"}]),
            "parse_failure",
        ),
        (TimeoutError(), "timeout"),
        (RuntimeError("HTTP 500"), "provider_error"),
    ],
    ids=str,
)
async def test_no_answer_says_why(step: Any, reason: str) -> None:
    answer = await text_of(step)
    assert isinstance(answer.text, Inconclusive)
    assert answer.text.reason == reason


async def test_the_runs_meter_counts_it() -> None:
    meter = Meter()
    model = resolve_model(ScriptedChatModel(["Hi."]))
    await ask_text(model, PROMPT, settings=CallSettings(max_tokens=5), meter=meter)
    assert meter.usage.calls == 1


@pytest.mark.parametrize("constrain", [True, False])
async def test_a_schema_is_sent_only_where_it_is_wanted(constrain: bool) -> None:
    with LoopbackModelServer('{"ok": true}') as server:
        model = resolve_model("openai:m", base_url=server.url, api_key="test-key")
        answer = await ask(model, PROMPT, Verdict, constrain=constrain)
    assert answer.value == Verdict(ok=True)
    assert ("response_format" in server.chats[0].body) is constrain


async def test_an_answer_is_read_as_the_caller_wants() -> None:
    def read(text: str) -> Verdict | Inconclusive:
        return Verdict(ok=True) if text == "fine" else Inconclusive(reason="parse_failure")

    model = resolve_model(ScriptedChatModel(["what?", "fine"]))
    answer = await ask(model, PROMPT, Verdict, parse=read)
    assert (answer.value, answer.repaired) == (Verdict(ok=True), True)
