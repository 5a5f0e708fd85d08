"""The faults of the loopback server: what a client meets, and which requests."""

import json
from typing import Any

import httpx
import pytest
from langchain_core.messages import HumanMessage

from memguard.errors import ErrorCode, ModelConfigurationError
from memguard.llm.call import CallSettings, request
from memguard.llm.failures import understand
from memguard.llm.limits import Meter
from memguard.llm.models import resolve_model
from memguard.testing import FaultInjector, FaultName, LoopbackModelServer, ServerReply
from memguard.testing.faults import FAULTS

BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "the memory"}]}


def post(server: LoopbackModelServer, **settings: Any) -> httpx.Response:
    return httpx.post(f"{server.url}/chat/completions", json={**BODY, **settings}, timeout=5.0)


def content(response: httpx.Response) -> str:
    return response.json()["choices"][0]["message"]["content"]


def test_a_fault_hits_the_requests_that_match_as_often_as_it_should() -> None:
    injector = FaultInjector(lambda _: "fine", "server_error", when="memory$", times=2)
    other = {"messages": [{"role": "user", "content": "the memory of it"}]}
    with LoopbackModelServer(injector) as server:
        statuses = [post(server).status_code for _ in range(3)]
        assert httpx.post(f"{server.url}/chat/completions", json=other).status_code == 200
    assert statuses == [500, 500, 200]
    assert injector.injected == 2


def test_a_share_of_the_requests_is_the_same_for_the_same_seed() -> None:
    hits = [
        [injector(BODY) != "fine" for _ in range(200)]
        for seed in (1, 1, 2)
        for injector in [FaultInjector(lambda _: "fine", "dropped", share=0.1, seed=seed)]
    ]
    assert hits[0] == hits[1] != hits[2]
    assert 5 <= sum(hits[0]) <= 40


def test_a_fault_of_your_own() -> None:
    with LoopbackModelServer(FaultInjector(lambda _: "a", ServerReply(text="b"))) as server:
        assert content(post(server)) == "b"
    with LoopbackModelServer(
        FaultInjector(lambda _: "a", lambda right: ServerReply(text=f"{right.text}!"))
    ) as server:
        assert content(post(server)) == "a!"


def test_a_body_that_is_cut_is_shorter_than_its_head_says() -> None:
    with (
        LoopbackModelServer(FaultInjector(lambda _: "fine", "cut_body")) as server,
        pytest.raises(httpx.RemoteProtocolError, match="received 140 bytes, expected 281"),
    ):
        post(server)


def test_a_reply_that_drips_arrives_whole() -> None:
    slow = ServerReply(text="x", drip=0.0001)
    with LoopbackModelServer(lambda _: slow) as server:
        assert content(post(server)) == "x"


def test_a_stream_is_cut_too() -> None:
    with (
        LoopbackModelServer(FaultInjector(lambda _: "one two", "cut_body")) as server,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        post(server, stream=True)


def test_faults_that_change_the_right_answer() -> None:
    right = json.dumps({"score": 0.9})
    cases: list[tuple[FaultName, str]] = [("half_answer", "length"), ("broken_answer", "stop")]
    for name, finish in cases:
        with LoopbackModelServer(FaultInjector(lambda _: right, name)) as server:
            choice = post(server).json()["choices"][0]
        assert choice["message"]["content"] == right[: len(right) // 2]
        assert choice["finish_reason"] == finish
    with LoopbackModelServer(FaultInjector(lambda _: right, "no_logprobs")) as server:
        assert post(server, logprobs=True).json()["choices"][0]["logprobs"] == {"content": []}


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_every_fault_can_be_served(name: Any) -> None:
    with LoopbackModelServer(FaultInjector(lambda _: "fine", name)) as server:
        if name == "timeout":
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(f"{server.url}/chat/completions", json=BODY, timeout=0.2)
        elif name in {"dropped", "cut_body"}:
            with pytest.raises(httpx.RemoteProtocolError):
                post(server)
        elif name != "slow_drip":
            assert post(server).status_code in {200, 307, 400, 401, 429, 500, 502}
        assert len(server.chats) == (name != "slow_drip")


def test_a_long_run_records_the_latest_requests_only() -> None:
    with LoopbackModelServer("fine", max_requests=2) as server:
        for n in range(4):
            post(server, seed=n)
    assert [request.body["seed"] for request in server.chats] == [2, 3]


async def test_a_redirect_is_not_followed_and_says_where_it_points() -> None:
    """Neither another address nor a loop: of one request, one is sent."""
    moved = ServerReply(raw="", status=308, headers={"location": "http://user:pw-1@evil.test/v1"})
    for reply in (FAULTS["redirect"], moved):
        assert isinstance(reply, ServerReply)
        with LoopbackModelServer(lambda _, reply=reply: reply) as server:
            model = resolve_model("openai:m", base_url=server.url, api_key="test-key")
            with pytest.raises(ModelConfigurationError, match="redirects to") as caught:
                await request(
                    model, [HumanMessage("hello")], settings=CallSettings(), meter=Meter()
                )
            assert len(server.requests) == 1
        assert caught.value.code == ErrorCode.MODEL_UNREACHABLE
        assert "pw-1" not in str(caught.value)


def test_a_redirect_without_a_target_is_no_other_failure() -> None:
    error = httpx.HTTPStatusError(
        "moved",
        request=httpx.Request("POST", "http://127.0.0.1/v1"),
        response=httpx.Response(302),
    )
    failure = understand(error)
    assert (failure.kind, failure.code) == ("configuration", ErrorCode.MODEL_UNREACHABLE)
