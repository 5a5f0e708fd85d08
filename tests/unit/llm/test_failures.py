"""What an exception means, and that no key is in what is said about it."""

import pytest
from langchain_core.exceptions import (
    ContextOverflowError,
    ModelAuthenticationError,
    ModelRateLimitError,
    ModelRefusalError,
)

from memguard.errors import ErrorCode
from memguard.llm.failures import redact, understand


class ProviderError(Exception):
    def __init__(self, message="", *, status=None, body=None):
        super().__init__(message)
        self.status_code = status
        self.body = body


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ProviderError(status=401), ErrorCode.MODEL_AUTH),
        (ProviderError(status=403), ErrorCode.MODEL_AUTH),
        (ModelAuthenticationError("no"), ErrorCode.MODEL_AUTH),
        (ProviderError(status=404), ErrorCode.MODEL_UNKNOWN),
        (ProviderError(status=400, body={"code": "model_not_found"}), ErrorCode.MODEL_UNKNOWN),
        (ProviderError(status=429, body={"type": "insufficient_quota"}), ErrorCode.MODEL_QUOTA),
        (ProviderError(status=402), ErrorCode.MODEL_QUOTA),
    ],
)
def test_failures_of_the_configuration(error, code):
    failure = understand(error)
    assert (failure.kind, failure.code) == ("configuration", code)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ProviderError(status=429), "provider_error"),
        (ProviderError(status=503), "provider_error"),
        (ModelRateLimitError("slow down"), "provider_error"),
        (TimeoutError(), "timeout"),
        (ProviderError(status=504), "timeout"),
        (ConnectionResetError(), "provider_error"),
        (RuntimeError("Event loop is closed"), "provider_error"),
        (IndexError("list index out of range"), "provider_error"),
        (ValueError("Expecting value"), "provider_error"),
    ],
)
def test_retryable(error, reason):
    failure = understand(error)
    assert (failure.kind, failure.reason) == ("retryable", reason)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ProviderError(status=400, body={"code": "context_length_exceeded"}), "provider_error"),
        (ContextOverflowError("too long"), "provider_error"),
        (ProviderError(status=400, body={"code": "content_filter"}), "refusal"),
        (ModelRefusalError("no"), "refusal"),
        (ProviderError("odd request", status=400), "provider_error"),
    ],
)
def test_final(error, reason):
    failure = understand(error)
    assert (failure.kind, failure.reason) == ("final", reason)


@pytest.mark.parametrize(
    ("error", "setting"),
    [
        (ProviderError(status=400, body={"error": {"param": "temperature"}}), "temperature"),
        (
            ProviderError(status=400, body={"param": "response_format.json_schema"}),
            "response_format",
        ),
        (ProviderError(status=400, body={"param": "top_logprobs"}), "logprobs"),
        (ProviderError("'seed' is not supported here", status=400), "seed"),
        (ProviderError("Unknown field `n`", status=422), "n"),
        (TypeError("create() got an unexpected keyword argument 'seed'"), "seed"),
    ],
)
def test_a_setting_that_is_refused(error, setting):
    failure = understand(error)
    assert (failure.kind, failure.setting) == ("setting", setting)


def test_a_400_about_messages_is_about_this_request():
    assert understand(ProviderError(status=400, body={"param": "messages"})).kind == "final"


def test_connections_that_never_came_about():
    assert understand(ConnectionRefusedError()).never_reached
    assert not understand(ConnectionResetError()).never_reached


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-abcdEFGH1234_567. See",
        "key sk-abc***************xyz1 is wrong",
        "Authorization: Bearer abc.DEF-123456 was sent",
        "https://user:secret-pass@host/v1 refused",
        "GET /v1?api_key=abcdef123456 failed",
        "AIzaSyA1234567890abcdefg is not valid",
    ],
)
def test_what_looks_like_a_key_is_taken_out(text):
    assert "[key]" in redact(text)
    for secret in ("abcdEFGH1234", "xyz1 ", "DEF-123456", "secret-pass", "abcdef123456", "A12345"):
        assert secret not in redact(text)


def test_the_models_own_key_is_taken_out():
    failure = understand(ValueError("bad key: hunter22"), secrets=("hunter22",))
    assert "hunter22" not in failure.detail
    assert "[key]" in failure.detail


def test_details_are_short():
    assert len(understand(ValueError("x" * 5_000)).detail) <= 200
