"""The log-probability variant."""

# Answers are unions and fixtures untyped here: the assertions say what each one is.
# pyright: reportArgumentType=false
# pyright: reportAttributeAccessIssue=false
# pyright: reportOperatorIssue=false
# pyright: reportUnknownLambdaType=false

import random

import pytest
from langchain_core.messages import HumanMessage

from memguard.errors import ErrorCode, ModelConfigurationError
from memguard.llm.limits import Meter
from memguard.llm.models import resolve_model
from memguard.llm.sample import top_at_answer, yes_no_logprob
from memguard.llm.yes_no import yes_no_probability
from memguard.schema.decision import Inconclusive
from memguard.testing import ScriptedChatModel, ServerReply
from tests.cases import case_input

PROMPT = [HumanMessage("Is it supported? Answer yes or no.")]


def token(text, logprob=-0.1, top=()):
    return {
        "token": text,
        "logprob": logprob,
        "bytes": None,
        "top_logprobs": [{"token": t, "logprob": p, "bytes": None} for t, p in top],
    }


def test_g01_variants_add_up():
    case = case_input("G-01")
    top = [tuple(pair) for pair in case["tokens"][0]["top_logprobs"]]
    want = case["want"]["score"]
    assert yes_no_probability(top) == pytest.approx(want, abs=1e-4)
    random.Random(7).shuffle(top)
    assert yes_no_probability(top) == pytest.approx(want, abs=1e-4)
    for mark in (" ", "\u2581", "\u0120"):
        marked = [(mark + name.strip(), logp) for name, logp in top]
        assert yes_no_probability(marked) == pytest.approx(want, abs=1e-4)


def test_g02_incomplete_log_probabilities():
    rows = {row["name"]: row for row in case_input("G-02")["rows"]}
    tops = {name: [tuple(p) for p in row["top"]] for name, row in rows.items() if "top" in row}
    assert 0.97 <= yes_no_probability(tops["'no' not in top list"]) <= 1.0
    assert isinstance(yes_no_probability(tops["neither present"]), Inconclusive)
    assert isinstance(yes_no_probability(tops["sentinel"]), Inconclusive)
    assert yes_no_probability(tops["only no"]) <= 0.03
    assert isinstance(yes_no_probability([]), Inconclusive)


async def test_g01_over_http(loopback_model):
    tokens = case_input("G-01")["tokens"][0]
    loopback_model.answer = lambda _: ServerReply(
        text="Yes", tokens=[token("Yes", -0.6, tokens["top_logprobs"])]
    )
    model = resolve_model("openai:m", base_url=loopback_model.url)
    answer = await yes_no_logprob(model, PROMPT)
    assert answer.probability == pytest.approx(0.8079069, abs=1e-4)
    assert answer.usage.calls == 1
    body = loopback_model.chats[0].body
    assert body["logprobs"] is True
    assert body["top_logprobs"] == 20
    assert body["temperature"] == 0


@pytest.mark.parametrize("mode", ["refused", "ignored"])
async def test_g02_no_log_probabilities_is_a_configuration_error(loopback_model, mode):
    loopback_model.answer = lambda _: "yes"
    loopback_model.logprobs = mode
    model, meter = resolve_model("openai:m", base_url=loopback_model.url), Meter()
    for _ in range(2):
        with pytest.raises(ModelConfigurationError, match="variant='logprob'") as caught:
            await yes_no_logprob(model, PROMPT, meter=meter)
        assert caught.value.code == ErrorCode.MODEL_LOGPROBS
    assert len(loopback_model.chats) == 1


async def test_g02_empty_list_of_tokens(loopback_model):
    loopback_model.answer = lambda _: ServerReply(text="yes", tokens=[])
    model = resolve_model("openai:m", base_url=loopback_model.url)
    with pytest.raises(ModelConfigurationError):
        await yes_no_logprob(model, PROMPT)


async def test_a_model_without_log_probabilities():
    with pytest.raises(ModelConfigurationError, match="log-probabilities"):
        await yes_no_logprob(resolve_model(ScriptedChatModel(["yes"])), PROMPT)


async def test_a_refusal_is_no_missing_setting(loopback_model):
    loopback_model.answer = lambda _: ServerReply(text=None, refusal="no", tokens=[])
    model = resolve_model("openai:m", base_url=loopback_model.url)
    answer = await yes_no_logprob(model, PROMPT)
    assert answer.probability.reason == "refusal"


@pytest.mark.parametrize(
    "tokens",
    [
        ["Yes"],
        ["\n", "**", " yes"],
        ["<think>", "no", " no", "</think>", "\n\n", "yes"],
        ["<th", "ink>", "No.", "</thi", "nk>", "Yes"],
    ],
)
def test_the_answer_is_past_space_markup_and_reasoning(tokens):
    top = top_at_answer([token(text) for text in tokens])
    assert top == ((tokens[-1], -0.1),)
    assert yes_no_probability(top) > 0.9


def test_reasoning_without_end_is_no_answer():
    assert isinstance(top_at_answer([token("<think>"), token("yes")]), Inconclusive)
    assert isinstance(top_at_answer([token("\n")]), Inconclusive)
