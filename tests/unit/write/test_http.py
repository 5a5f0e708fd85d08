"""The write guard against a real HTTP server on the loopback address."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from memguard import (
    Budget,
    ConsistencyGate,
    create_memory_agent,
    create_write_guard,
    resolve_model,
)
from memguard.errors import ErrorCode, ModelConfigurationError
from memguard.journal.journal import Journal
from memguard.testing import HashEmbeddings, LoopbackModelServer, ServerReply
from memguard.testing.memory_model import memory_answer
from tests.cases import case_input

NAMESPACE = ("memories", "ana")
KEY = "sk-test-0123456789abcdef"


def guard_on(server: LoopbackModelServer, store: Any, **settings: Any) -> Any:
    model = resolve_model(f"openai:m-{id(server)}", base_url=server.url, api_key=KEY, backoff=0.01)
    given: dict[str, Any] = {"namespace": NAMESPACE, "receipts": Journal.memory(), **settings}
    return create_write_guard(model, store=store, **given)


@pytest.mark.parametrize("index", range(6))
def test_k02_what_will_not_heal_fails_fast_and_stores_nothing(
    index: int, loopback_model: LoopbackModelServer
) -> None:
    given = case_input("K-02")
    reply = given["replies"][index]
    k = given["config"]["K"]
    loopback_model.answer = lambda _: ServerReply.of_json(reply["body"], status=reply["status"])
    loopback_model.n = "refused"
    store = InMemoryStore()
    guard = guard_on(loopback_model, store, on_failure="report", gates=[ConsistencyGate(k=k)])
    candidates = [f"Fact {n}." for n in range(given["candidates"])]
    writes = guard.invoke({"messages": [("user", "x")], "candidates": candidates})["writes"]
    assert writes.counts["stored"] == 0
    assert store.search(NAMESPACE) == []
    assert KEY not in writes.model_dump_json()
    unhealable = reply["status"] != 400
    if unhealable:
        assert len(loopback_model.chats) <= (3 * k if reply["status"] == 429 else k)
        assert len(writes.unjudged) == len(candidates)
        assert len(writes.failures) == 1
        assert writes.failures[0].code in {"model-auth", "model-unknown", "model-quota"}
    else:
        # Nothing is wrong with the key or the model: each candidate is held, none retried.
        assert writes.counts["quarantined"] == len(candidates)
        prompts = [request.text for request in loopback_model.chats]
        assert len(prompts) <= len(candidates) * k
        for receipt in writes.receipts:
            assert receipt.decision.reason == "inconclusive"


def test_a_wrong_key_raises_one_typed_error(loopback_model: LoopbackModelServer) -> None:
    loopback_model.api_key = "another"
    with pytest.raises(ModelConfigurationError) as caught:
        guard_on(loopback_model, InMemoryStore()).invoke({"messages": [("user", "I row a lot.")]})
    assert caught.value.code == ErrorCode.MODEL_AUTH
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("n", ["yes", "refused"])
def test_a_whole_run_with_and_without_n(n: Any, loopback_model: LoopbackModelServer) -> None:
    loopback_model.answer = memory_answer
    loopback_model.n = n
    store = InMemoryStore()
    talk = [("user", "I moved to Porto in May. I never drink any coffee.")]
    writes = guard_on(loopback_model, store).invoke({"messages": talk})["writes"]
    # The loopback writer slips on purpose now and then.
    assert (writes.counts["stored"], writes.counts["rejected"]) == (2, 1)
    judged = [request for request in loopback_model.chats if "<memory>" in request.text]
    distinct = {request.text for request in judged}
    assert len(distinct) == 3
    if n == "yes":
        assert len(judged) == 3
        assert all(request.body["n"] == 5 for request in judged)
    mode = {receipt.reports[0].evidence["mode"] for receipt in writes.receipts}
    assert mode == ({"n"} if n == "yes" else {"concurrent"})
    assert writes.usage.prompt_tokens > 0


def test_logprobs_decide_with_one_call(loopback_model: LoopbackModelServer) -> None:
    loopback_model.answer = memory_answer
    spec = ConsistencyGate(variant="logprob")
    guard = guard_on(loopback_model, InMemoryStore(), gates=[spec])
    writes = guard.invoke(
        {"messages": [("user", "I moved to Porto.")], "candidates": ["I moved to Porto."]}
    )["writes"]
    report = writes.receipts[0].reports[0]
    assert report.evidence["mode"] == "logprob"
    assert len(loopback_model.chats) == 1
    assert loopback_model.chats[0].body["logprobs"] is True


def test_no_logprobs_is_a_configuration_error_and_nothing_is_stored(
    loopback_model: LoopbackModelServer,
) -> None:
    loopback_model.logprobs = "ignored"
    store = InMemoryStore()
    guard = guard_on(loopback_model, store, gates=[ConsistencyGate(variant="logprob")])
    with pytest.raises(ModelConfigurationError) as caught:
        guard.invoke({"messages": [("user", "I row.")], "candidates": ["I row."]})
    assert caught.value.code == ErrorCode.MODEL_LOGPROBS
    assert store.search(NAMESPACE) == []


async def test_one_global_limit_over_concurrent_runs(loopback_model: LoopbackModelServer) -> None:
    loopback_model.answer = memory_answer
    loopback_model.latency = 0.02
    model = resolve_model("openai:limited", base_url=loopback_model.url, api_key=KEY, concurrency=3)
    guards = [
        create_write_guard(
            model, store=InMemoryStore(), namespace=NAMESPACE, receipts=Journal.memory()
        )
        for _ in range(4)
    ]
    talk = {"messages": [("user", "I moved to Porto in May. I never drink any coffee.")]}
    results = await asyncio.gather(*(guard.ainvoke(talk) for guard in guards))
    assert all(result["writes"].counts["stored"] == 2 for result in results)
    assert loopback_model.high_water <= 3


def test_three_loops_one_guard(loopback_model: LoopbackModelServer) -> None:
    loopback_model.answer = memory_answer
    guard = guard_on(loopback_model, InMemoryStore())
    for text in (
        "I moved to Porto in May.",
        "I never drink any coffee.",
        "I row every single day.",
    ):
        given = {"messages": [{"role": "user", "content": text, "id": text}]}
        writes = asyncio.run(guard.ainvoke(given))["writes"]
        assert writes.counts["stored"] == 1


def test_a_budget_in_seconds_is_kept(loopback_model: LoopbackModelServer) -> None:
    loopback_model.latency = 0.2
    loopback_model.answer = memory_answer
    guard = guard_on(loopback_model, InMemoryStore(), budget=Budget(seconds=0.0))
    writes = guard.invoke({"messages": [("user", "I row every single day.")]})["writes"]
    assert loopback_model.chats == []
    assert len(writes.unread) == 1


def test_j01_one_agent_in_many_loops(loopback_model: LoopbackModelServer) -> None:
    """Reading, answering and writing over HTTP: loop after loop, in a running loop, in threads."""
    loopback_model.answer = memory_answer
    store = InMemoryStore(index={"dims": 64, "embed": HashEmbeddings()})
    with Journal.memory() as journal:
        agent: Any = create_memory_agent(
            resolve_model(f"openai:m-{id(store)}", base_url=loopback_model.url, api_key=KEY),
            store=store,
            namespace=NAMESPACE,
            receipts=journal,
        )
        told = iter(f"I moved to Porto with {n} cats." for n in range(100))

        async def turn() -> str:
            done = await agent.ainvoke({"messages": [("user", next(told))]})
            assert done["writes"].failures == ()
            return done["messages"][-1].text

        async def notebook_cell() -> str:
            return agent.invoke({"messages": [("user", next(told))]})["messages"][-1].text

        assert [asyncio.run(turn()) for _ in range(3)] == ["OK."] * 3
        assert asyncio.run(notebook_cell()) == "OK."
        with ThreadPoolExecutor(2) as pool:
            turns = [pool.submit(asyncio.run, turn()) for _ in range(8)]
            assert [each.result() for each in turns] == ["OK."] * 8
