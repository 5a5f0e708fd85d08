"""Shared by all tests: no network but the loopback, no keys, no blocking call in an event loop."""

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

# Read when LangGraph is imported, so set before anything else is.
os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"
os.environ["LANGSMITH_TRACING"] = "false"
os.environ["LANGCHAIN_TRACING_V2"] = "false"
os.environ["ANONYMIZED_TELEMETRY"] = "false"
# Every HTTP client reads a certificate store, and no test speaks TLS: one certificate is read in
# no time, where the store of the system takes up to 0.1 s. Child processes inherit it.
os.environ["SSL_CERT_FILE"] = str(Path(__file__).parent / "data" / "no_authority.pem")
# A folder that does not exist: no test finds a model that was pulled on this machine.
os.environ["MEMGUARD_MODELS"] = str(Path(__file__).parent / "data" / "no_models")

import pytest
from blockbuster import blockbuster_ctx
from hypothesis import settings

from memguard.testing import LoopbackModelServer

# A guard made with "local" imports these, once; a test may be the first to make one in a loop.
import_module("memguard.local.adjudicator")
import_module("memguard.local.verifier")

# The same examples each time, so that a change is judged by what it changed; no example is timed.
settings.register_profile("memguard", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("memguard")

KEYS = (
    "ANTHROPIC_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "GOOGLE_API_KEY",
    "LANGSMITH_API_KEY",
    "MISTRAL_API_KEY",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_API_BASE",
    "OPENAI_ORG_ID",
    "OPENAI_PROXY",
)


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that needs a key says so; none finds one by accident."""
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _no_blocking_calls(request: pytest.FixtureRequest) -> Iterator[None]:
    """An async test fails when memguard blocks its event loop."""
    if request.node.get_closest_marker("asyncio") is None:
        yield
        return
    with blockbuster_ctx("memguard", excluded_modules=["memguard.testing"]) as watch:
        for function in watch.functions.values():
            # Setting a model up imports its SDK and reads the certificate store, once.
            function.can_block_in("memguard/llm/models.py", "resolve_model")
        yield


@pytest.fixture
def loopback_model() -> Iterator[LoopbackModelServer]:
    """A model server on the loopback address; set `answer`, `n`, ... before the first request."""
    with LoopbackModelServer() as server:
        yield server
