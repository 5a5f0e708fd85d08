"""K answers to one prompt."""

# Answers are unions and fixtures untyped here: the assertions say what each one is.
# pyright: reportArgumentType=false
# pyright: reportAttributeAccessIssue=false
# pyright: reportUnknownLambdaType=false

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from memguard.errors import ModelConfigurationError
from memguard.llm.limits import Meter
from memguard.llm.models import resolve_model
from memguard.llm.parsing import parse_score
from memguard.llm.sample import sample
from memguard.methods.consistency_gate.rules import is_settled, rule_on_support
from memguard.schema.decision import Inconclusive
from memguard.testing import LoopbackModelServer, ScriptedChatModel, ServerReply
from tests.cases import case_input

PROMPT = [HumanMessage("how well is it supported?")]


def score_or_none(answer):
    return None if isinstance(answer, Inconclusive) else answer


def scores_of(drawn):
    return [score_or_none(answer) for answer in drawn.answers]


@pytest.mark.parametrize("n", ["yes", "refused", "ignored"])
async def test_k_answers_whatever_the_server_can(n):
    with LoopbackModelServer(script=["0.1", "0.2", "0.3", "0.4", "0.5"], n=n) as server:
        model = resolve_model("openai:m", base_url=server.url)
        drawn = await sample(model, PROMPT, parse_score, k=5)
        assert sorted(drawn.answers) == [0.1, 0.2, 0.3, 0.4, 0.5]
        assert drawn.requested == drawn.used == 5
        assert drawn.mode == ("n" if n == "yes" else "concurrent")
        assert len(server.chats) == {"yes": 1, "refused": 6, "ignored": 5}[n]


async def test_a_model_without_n_is_remembered(loopback_model):
    loopback_model.answer = lambda _: "0.9"
    loopback_model.n = "refused"
    model = resolve_model("openai:m", base_url=loopback_model.url)
    for sent in (6, 11, 16):
        drawn = await sample(model, PROMPT, parse_score, k=5)
        assert len(loopback_model.chats) == sent
        assert any("'n'" in note for note in drawn.notes)


def as_step(output):
    if output == "<HTTP 500>":
        return ServerReply.error(500)
    return ServerReply(text="0.9", latency=10) if output == "<timeout>" else output


@pytest.mark.parametrize("row", range(5))
async def test_f03_failed_samples_are_dropped_and_counted(row):
    case = case_input("F-03")
    scenario = case["rows"][row]
    k = scenario.get("K", case["config"]["K"])
    script = [as_step(output) for output in scenario["outputs"]]
    with LoopbackModelServer(script=script, n="ignored") as server:
        model = resolve_model("openai:m", base_url=server.url, max_attempts=1, timeout=2)
        drawn = await sample(model, PROMPT, parse_score, k=k)
    ruling = rule_on_support(scores_of(drawn), k=k, tau=case["config"]["tau"])
    want = scenario["want"]
    expected = {"store": "supported", "reject": "low_support"}
    assert ruling.ruling == expected.get(want["decision"], "inconclusive")
    assert ruling.usable == want.get("n_valid", k)
    if "mean" in want:
        assert ruling.mean == pytest.approx(want["mean"], abs=1e-6)


async def test_k01_two_of_five_fail_and_no_sibling_is_cancelled_or_repeated():
    steps = ["0.9", "0.8", *[ServerReply.error(500)] * 6, "0.7"]
    prompts = iter(range(100))
    with LoopbackModelServer(n="ignored") as server:
        server.answer = lambda _: steps[next(prompts)] if len(steps) > 0 else "0.7"
        model = resolve_model("openai:m", base_url=server.url, concurrency=1, backoff=0.001)
        drawn = await sample(model, PROMPT, parse_score, k=5)
        assert len(server.chats) == 9
    assert sum(isinstance(one, Inconclusive) for one in drawn.answers) == 2
    assert drawn.usage.calls == 3
    assert drawn.usage.attempts == 9


async def test_one_request_for_all_that_fails_fails_all():
    with LoopbackModelServer(lambda _: ServerReply.error(500)) as server:
        model = resolve_model("openai:m", base_url=server.url, backoff=0.001)
        drawn = await sample(model, PROMPT, parse_score, k=3)
        assert len(server.chats) == 3
    assert [one.reason for one in drawn.answers] == ["provider_error"] * 3


async def test_a_permanent_failure_stops_all():
    with LoopbackModelServer("0.9", n="ignored", api_key="right") as server:
        model = resolve_model("openai:m", base_url=server.url, api_key="wrong-key")
        with pytest.raises(ModelConfigurationError):
            await sample(model, PROMPT, parse_score, k=5)
        assert len(server.chats) == 1


async def test_early_stop_cancels_what_is_in_flight():
    steps = [lambda _: "1.0", *["1.0"] * 5]
    scripted = ScriptedChatModel(steps, latency=0.01)
    model = resolve_model(scripted, concurrency=2)
    await sample(model, PROMPT, parse_score, k=1)  # first contact
    drawn = await sample(
        model,
        PROMPT,
        parse_score,
        k=5,
        stop=lambda answers, _: len(answers) >= 2,
        meter=(meter := Meter()),
    )
    assert drawn.used < drawn.requested == 5
    assert drawn.usage.attempts >= drawn.used
    assert meter.usage == drawn.usage
    assert model.state.limiter.in_flight == 0


async def test_settled_sees_answers_and_what_remains():
    calls = []

    def settled(answers, remaining):
        calls.append((len(answers), remaining))
        return False

    scripted = ScriptedChatModel(["0.5"] * 4)
    await sample(resolve_model(scripted, concurrency=1), PROMPT, parse_score, k=4, stop=settled)
    assert calls[-1] == (4, 0)
    assert all(done + remaining == 4 for done, remaining in calls)
    scripted.assert_consumed()


@settings(max_examples=40, deadline=None)
@given(
    outputs=st.lists(st.sampled_from(["0", "0.3", "0.7", "0.9", "1", "?"]), min_size=5, max_size=5),
    tau=st.sampled_from([0.3, 0.5, 0.7]),
)
def test_early_stop_never_changes_the_ruling(outputs, tau):
    async def ruling(*, early: bool):
        model = resolve_model(ScriptedChatModel(outputs), concurrency=1)
        drawn = await sample(
            model,
            PROMPT,
            parse_score,
            k=5,
            stop=(
                lambda answers, remaining: is_settled(
                    [score_or_none(one) for one in answers], remaining=remaining, k=5, tau=tau
                )
            )
            if early
            else None,
        )
        return rule_on_support(scores_of(drawn), k=5, tau=tau).ruling

    assert asyncio.run(ruling(early=True)) == asyncio.run(ruling(early=False))


async def test_cancelling_the_whole_leaves_nothing_behind():
    scripted = ScriptedChatModel(["0.5"] * 5, latency=60)
    model = resolve_model(scripted)
    model.state.limiter.record_contact()
    meter = Meter()
    task = asyncio.create_task(sample(model, PROMPT, parse_score, k=5, meter=meter))
    while len(scripted.calls) < 5:  # noqa: ASYNC110 - the script tells of calls in no other way
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert model.state.limiter.in_flight == 0
    assert meter.usage.attempts == len(scripted.calls) == 5
