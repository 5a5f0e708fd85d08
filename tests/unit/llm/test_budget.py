"""Budgets: exact under concurrency, and what is done is kept."""

import asyncio
import threading

import pytest
from langchain_core.messages import HumanMessage

from memguard.errors import BudgetExhaustedError, ErrorCode, ModelConfigurationError
from memguard.llm.limits import Meter
from memguard.llm.models import resolve_model
from memguard.llm.parsing import parse_score
from memguard.llm.sample import sample
from memguard.schema.receipt import Budget, Usage
from memguard.testing import LoopbackModelServer, ScriptedChatModel

PROMPT = [HumanMessage("how well is it supported?")]


def test_a_request_in_flight_counts():
    meter = Meter(Budget(calls=2))
    meter.begin()
    meter.begin()
    with pytest.raises(BudgetExhaustedError, match="budget of 2 calls"):
        meter.begin()
    meter.end(Usage(calls=1, attempts=1))
    with pytest.raises(BudgetExhaustedError, match="budget of 2 calls"):
        meter.begin()
    assert meter.usage == Usage(calls=1, attempts=1)


def test_exact_under_threads():
    meter, sent = Meter(Budget(calls=50)), []

    def spend():
        for _ in range(40):
            try:
                meter.begin()
            except BudgetExhaustedError:
                continue
            sent.append(1)
            meter.end(Usage(calls=1, attempts=1))

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sent) == meter.usage.calls == 50


def test_tokens_and_seconds():
    now = [100.0]
    meter = Meter(Budget(tokens=10, seconds=5), clock=lambda: now[0])
    meter.begin()
    meter.end(Usage(calls=1, attempts=1, prompt_tokens=9))
    now[0] = 103.0
    assert meter.seconds_left == 2
    meter.begin()
    meter.end(Usage(prompt_tokens=1))
    with pytest.raises(BudgetExhaustedError, match="tokens"):
        meter.begin()
    late = Meter(Budget(seconds=5), clock=lambda: now[0], elapsed=5)
    with pytest.raises(BudgetExhaustedError, match="seconds"):
        late.begin()


def test_goes_on_from_what_was_spent():
    meter = Meter(Budget(calls=3), spent=Usage(calls=2, attempts=2, prompt_tokens=7))
    meter.begin()
    meter.end(Usage(calls=1, attempts=1))
    with pytest.raises(BudgetExhaustedError):
        meter.begin()


def test_a_scope_counts_for_itself_and_for_the_run():
    run = Meter(Budget(calls=2))
    first, second = run.scope(), run.scope()
    for scope in (first, second):
        scope.begin()
        scope.end(Usage(calls=1, attempts=1))
    assert first.usage.calls == second.usage.calls == 1
    assert run.usage.calls == 2
    with pytest.raises(BudgetExhaustedError):
        first.begin()
    assert run.usage.attempts == 2


def test_a_permanent_failure_is_raised_to_every_later_request():
    run = Meter()
    error = ModelConfigurationError("bad key", code=ErrorCode.MODEL_AUTH)
    run.scope().fail(error)
    with pytest.raises(ModelConfigurationError, match="bad key") as caught:
        run.scope().begin()
    assert caught.value is not error


async def test_a_call_budget_is_exact_under_concurrency():
    with LoopbackModelServer("0.9", n="refused", latency=0.01) as server:
        model = resolve_model("openai:m", base_url=server.url)
        meter = Meter(Budget(calls=12))
        results = await asyncio.gather(
            *(sample(model, PROMPT, parse_score, k=5, meter=meter) for _ in range(5)),
            return_exceptions=True,
        )
        assert len(server.chats) == 12 == meter.usage.attempts
    assert any(isinstance(one, BudgetExhaustedError) for one in results)


async def test_a_seconds_budget_cuts_a_call_in_flight():
    slow = ScriptedChatModel(["0.9"], latency=60)
    meter = Meter(Budget(seconds=1.0))
    with pytest.raises(BudgetExhaustedError, match="seconds"):
        await sample(resolve_model(slow), PROMPT, parse_score, k=1, meter=meter)
    assert meter.usage.attempts == 1
    assert meter.usage.calls == 0
