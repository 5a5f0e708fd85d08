"""From what a user passes to a model."""

# Answers are unions and fixtures untyped here: the assertions say what each one is.
# pyright: reportArgumentType=false
# pyright: reportAttributeAccessIssue=false

import subprocess
import sys

import pytest
from langchain_openai import ChatOpenAI

from memguard.errors import ErrorCode, ModelConfigurationError
from memguard.llm.failures import redact
from memguard.llm.models import Price, list_models, resolve_model
from memguard.schema.receipt import Usage
from memguard.testing import ScriptedChatModel

KEY = "sk-test-abcdef123456"


@pytest.mark.parametrize(
    ("model", "code", "says"),
    [
        (None, ErrorCode.MODEL_MISSING, "pass model='openai:<name>'"),
        ("", ErrorCode.MODEL_MISSING, "no default"),
        ("gpt-5-mini", ErrorCode.MODEL_STRING, "'gpt-5-mini'"),
        ("openai:", ErrorCode.MODEL_STRING, "provider:name"),
        ("openai:gpt-5-mini", ErrorCode.MODEL_AUTH, "OPENAI_API_KEY"),
        ("mistralai:small", ErrorCode.MODEL_EXTRA, "pip install langchain langchain-mistralai"),
        (42, ErrorCode.MODEL_STRING, "int"),
    ],
)
def test_what_is_no_model(model, code, says):
    with pytest.raises(ModelConfigurationError) as caught:
        resolve_model(model)
    assert caught.value.code == code
    assert says in str(caught.value)


def test_a_bound_model_is_refused():
    with pytest.raises(ModelConfigurationError, match="without bind"):
        resolve_model(ScriptedChatModel().bind(stop=["x"]))


def test_a_local_server_needs_no_key():
    model = resolve_model("openai:qwen", base_url="http://127.0.0.1:1/v1")
    assert model.name == "openai:qwen"
    assert model.base_url == "http://127.0.0.1:1/v1"
    assert model.is_openai_like
    assert model.takes_n


def test_a_key_is_never_shown():
    model = resolve_model("openai:gpt-5-mini", api_key=KEY, base_url="http://me:pw@127.0.0.1:1/v1")
    assert KEY in model.secrets()
    assert KEY not in repr(model)
    assert "pw" not in repr(model)
    assert KEY not in model.key


def test_a_chat_model_keeps_its_name_and_never_streams():
    chat = ChatOpenAI(model="gpt-5-mini", api_key=KEY, streaming=True)
    model = resolve_model(chat)
    assert model.name == "openai:gpt-5-mini"
    assert model.chat.disable_streaming is True
    assert model.chat.streaming is False
    assert chat.streaming is True  # the user's own is as it was


def test_a_model_is_returned_as_it_is():
    model = resolve_model(ScriptedChatModel())
    assert resolve_model(model) is model


def test_scripted_models_share_nothing():
    assert resolve_model(ScriptedChatModel()).key != resolve_model(ScriptedChatModel()).key


def test_the_responses_api_is_not_asked_for_n():
    chat = ChatOpenAI(model="gpt-5-mini", api_key=KEY, use_responses_api=True)
    assert not resolve_model(chat).takes_n


@pytest.mark.parametrize("bad", [{"timeout": 0}, {"max_attempts": 0}, {"concurrency": 0}])
def test_settings_are_checked(bad):
    with pytest.raises(ModelConfigurationError, match="at least 1"):
        resolve_model(ScriptedChatModel(), **bad)


@pytest.mark.parametrize(
    "url",
    [
        "http://me:secret-pw@127.0.0.1:1/v1",
        "http://127.0.0.1:1/v1?key=secret-key&x=1",
        "http://me:p@w-secret@127.0.0.1:1/v1?token=secret-token#secret-part",
    ],
)
async def test_no_secret_of_an_address_is_shown(url: str):
    model = resolve_model("openai:m", base_url=url, max_attempts=1)
    assert model.base_url == "http://127.0.0.1:1/v1"
    assert "secret" not in repr(model) + model.key
    assert "secret" not in redact(f"no answer from {url}", model.secrets())
    with pytest.raises(ModelConfigurationError) as caught:
        await list_models(model)
    assert "secret" not in str(caught.value)


def test_prices():
    price = Price(prompt=2.0, completion=8.0)
    assert price.of(Usage(prompt_tokens=500_000, completion_tokens=250_000)) == 3.0
    model = resolve_model(ScriptedChatModel(), prices={"scripted:scripted": price})
    assert model.price == price
    for key in ("openai:m", "m"):
        named = resolve_model("openai:m", api_key=KEY, prices={key: price})
        assert named.price == price
    both = {"openai:m": price, "m": Price(prompt=1.0, completion=1.0)}
    assert resolve_model("openai:m", api_key=KEY, prices=both).price == price


def test_importing_the_layer_imports_no_model_package():
    code = (
        "import sys, memguard.llm, memguard.llm.models, memguard.llm.ask, memguard.llm.sample;"
        "bad = {'openai', 'langchain_openai', 'langchain', 'langchain_core'} & set(sys.modules);"
        "sys.exit(repr(bad) if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
