"""One model object, many event loops, and no warning at the end of the process."""

# Answers are unions and fixtures untyped here: the assertions say what each one is.
# pyright: reportArgumentType=false
# pyright: reportUnknownLambdaType=false

import asyncio
import gc
import os
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI

from memguard.llm.call import _tls_context
from memguard.llm.models import resolve_model
from memguard.llm.parsing import parse_score
from memguard.llm.sample import sample
from memguard.portal import run_sync

PROMPT = [HumanMessage("how well is it supported?")]
ROOT = Path(__file__).parents[3]


async def draw(model, k=8):
    drawn = await sample(model, PROMPT, parse_score, k=k)
    assert drawn.answers == (0.9,) * k, drawn
    return drawn


@pytest.fixture(params=["string", "instance"])
def model(request, loopback_model):
    loopback_model.answer = lambda _: "0.9"
    loopback_model.n = "ignored"
    if request.param == "string":
        return resolve_model("openai:m", base_url=loopback_model.url)
    return resolve_model(ChatOpenAI(model="m", base_url=loopback_model.url, api_key="test-key"))


def test_j01_asyncio_run_again_and_again(model):
    for _ in range(4):
        asyncio.run(draw(model))


def test_the_certificate_store_is_read_once(model, monkeypatch):
    reads = []
    create = ssl.create_default_context
    monkeypatch.setattr(
        ssl, "create_default_context", lambda **names: reads.append(names) or create(**names)
    )
    _tls_context.cache_clear()
    for _ in range(3):
        asyncio.run(draw(model))
    assert len(reads) == 1


def test_j01_sync_then_async_in_a_worker_thread(model):
    run_sync(draw(model))
    errors = []

    def worker():
        try:
            asyncio.run(draw(model))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=worker)
    thread.start()
    thread.join()
    assert not errors
    run_sync(draw(model))


def test_j01_two_threads_with_a_loop_each(model):
    errors = []

    async def many():
        await asyncio.gather(*(draw(model, 1) for _ in range(20)))

    def worker():
        try:
            asyncio.run(many())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=worker) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_j01_inside_a_running_loop(model):
    async def notebook_cell():
        return run_sync(draw(model))

    assert asyncio.run(notebook_cell()).used == 8


def test_the_users_own_instance_is_not_touched(loopback_model):
    loopback_model.answer = lambda _: "0.9"
    chat = ChatOpenAI(model="m", base_url=loopback_model.url, api_key="test-key")
    before = chat.root_async_client
    asyncio.run(draw(resolve_model(chat)))
    assert chat.root_async_client is before
    assert chat.streaming is False


async def test_a_client_of_the_users_own_is_kept(loopback_model):
    import openai

    loopback_model.answer = lambda _: "0.9"
    async with openai.DefaultAsyncHttpxClient(headers={"x-mine": "1"}) as client:
        chat = ChatOpenAI(
            model="m", base_url=loopback_model.url, api_key="k-123456", http_async_client=client
        )
        await draw(resolve_model(chat))
        assert not client.is_closed


async def test_connections_are_reused_within_a_loop(model, loopback_model):
    for _ in range(5):
        await draw(model, 1)
    assert loopback_model.connections == 1


async def test_a_client_is_closed_when_its_model_is_gone(loopback_model):
    loopback_model.answer = lambda _: "0.9"
    model = resolve_model("openai:m", base_url=loopback_model.url)
    await draw(model, 1)
    del model
    gc.collect()
    await asyncio.sleep(0.05)
    gc.collect()  # a connection left open would be reported as a ResourceWarning


SCRIPT = """
import asyncio, gc, threading
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from memguard.llm.call import _tls_context
from memguard.llm.models import resolve_model
from memguard.llm.parsing import parse_score
from memguard.llm.sample import sample
from memguard.portal import run_sync
from memguard.testing import LoopbackModelServer

async def draw(model):
    drawn = await sample(model, [HumanMessage("q")], parse_score, k=8)
    assert drawn.answers == (0.9,) * 8, drawn

def worker(model):
    asyncio.run(draw(model))

with LoopbackModelServer("0.9", n="ignored") as server:
    chat = ChatOpenAI(model="m", base_url=server.url, api_key="test-key")
    for model in (resolve_model(chat), resolve_model("openai:m", base_url=server.url)):
        for _ in range(3):
            asyncio.run(draw(model))
        run_sync(draw(model))
        thread = threading.Thread(target=worker, args=(model,))
        thread.start()
        thread.join()

        async def notebook():
            run_sync(draw(model))
            await draw(model)

        asyncio.run(notebook())
        run_sync(draw(model))
    gc.collect()
print("done")
"""


def test_j01_no_warning_in_the_whole_life_of_a_process():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "error::ResourceWarning", "-c", SCRIPT],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "done"
    assert done.stderr == ""
