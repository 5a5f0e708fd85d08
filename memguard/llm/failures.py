"""What an exception from a chat model means: a wrong configuration, a retry, or a failed request.

The rules hold for all providers. They use langchain-core's `Model*Error` classes where an
integration raises them, and status codes and error codes otherwise.
"""

import asyncio
import json
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from memguard.errors import ErrorCode
from memguard.redaction import redact_error
from memguard.schema.decision import InconclusiveReason

FailureKind = Literal["configuration", "retryable", "final", "setting"]
"""The consequence of a failure.

* `configuration`: no request to this model will succeed; a configuration error.
* `retryable`: the same request may succeed.
* `final`: this request will not succeed; others may.
* `setting`: the model does not take one of the settings sent.
"""


@dataclass(frozen=True, kw_only=True)
class CallFailure:
    """One failed request, classified."""

    kind: FailureKind
    """Its consequence."""
    detail: str
    """What happened, shortened, without keys."""
    reason: InconclusiveReason = "provider_error"
    """The typed outcome, if no attempt succeeds."""
    code: ErrorCode = ErrorCode.MODEL_REQUEST
    """The code of the error to raise, for `configuration`."""
    setting: str = ""
    """The refused setting, for `setting`."""
    retry_after: float | None = None
    """Seconds to wait, as the provider requested."""
    never_reached: bool = False
    """Whether the connection was never established."""


# Settings that a model may refuse, by their names in error messages of providers.
_REFUSABLE = {
    "temperature": "temperature",
    "seed": "seed",
    "reasoning": "reasoning_effort",
    "reasoning_effort": "reasoning_effort",
    "response_format": "response_format",
    "text": "response_format",
    "n": "n",
    "logprobs": "logprobs",
    "top_logprobs": "logprobs",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
}
_UNSUPPORTED = frozenset({"unsupported_parameter", "unsupported_value", "unknown_parameter"})

# Groups of HTTP status codes; those that stand alone are compared where they are used.
_AUTH = {401, 403}
_RETRYABLE = {408, 409, 425, 429}
_REQUEST = {400, 405, 413, 415, 422}


def redact(text: str, secrets: tuple[str, ...] = ()) -> str:
    """The text without `secrets` and without anything that looks like an API key."""
    for secret in secrets:
        text = text.replace(secret, "[key]")
    return redact_error(text)


def public_address(url: str) -> str:
    """The address of a server without user name, password, query and fragment: all may be secret.

    Every message and every receipt that names a server uses it.
    """
    # Not `urlsplit`, which raises for an address that is wrong, and this text is for an error.
    return re.sub(r"//[^/?#]*@", "//", url).partition("?")[0].partition("#")[0].rstrip("/")


def shorten(text: str, limit: int = 200) -> str:
    """At most `limit` characters, on one line; receipts have no longer detail by default."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def understand(error: Exception, *, secrets: tuple[str, ...] = ()) -> CallFailure:
    """Classify any exception from a call of a chat model; the detail has none of the secrets."""
    # Before it is shortened, or part of a key could remain at the end.
    text = redact(f"{type(error).__name__}: {error}", secrets)
    detail = shorten(text)
    return (
        _of_redirect(error)
        or _of_setup(error, detail)
        or _of_request(error, text, detail)
        or _of_transport(error, detail)
        # HTML, bad JSON or an answer without choices arrives as any exception.
        or CallFailure(kind="retryable", detail=_with_hint(error, detail))
    )


def _with_hint(error: Exception, detail: str) -> str:
    """The detail, with advice if the answer was no JSON, such as a web page."""
    no_json = isinstance(error, json.JSONDecodeError) or "Unexpected response type" in detail
    return f"{detail}; the answer is no chat completion, check base_url" if no_json else detail


def _of_redirect(error: Exception) -> CallFailure | None:
    response = getattr(error, "response", None)
    status = getattr(response, "status_code", None)
    if not (isinstance(status, int) and 300 <= status <= 399):  # noqa: PLR2004
        return None
    target = redact(str(getattr(response, "headers", {}).get("location", "elsewhere")))
    detail = shorten(f"HTTP {status} redirects to {target}, which is not followed")
    return CallFailure(kind="configuration", detail=detail, code=ErrorCode.MODEL_UNREACHABLE)


def _of_setup(error: Exception, detail: str) -> CallFailure | None:
    status, codes = _status(error), _codes(error)
    if codes & {"insufficient_quota", "billing_hard_limit_reached"} or status == 402:  # noqa: PLR2004
        return CallFailure(kind="configuration", detail=detail, code=ErrorCode.MODEL_QUOTA)
    # Before the status: the content filter of some providers answers 403, for one request only.
    if _is_filtered(error, codes):
        return CallFailure(kind="final", detail=detail, reason="refusal")
    if status in _AUTH or _is_a(error, "ModelAuthenticationError", "ModelPermissionDeniedError"):
        return CallFailure(kind="configuration", detail=detail, code=ErrorCode.MODEL_AUTH)
    if status == 404 or "model_not_found" in codes or _is_a(error, "ModelNotFoundError"):  # noqa: PLR2004
        return CallFailure(kind="configuration", detail=detail, code=ErrorCode.MODEL_UNKNOWN)
    return None


def _is_filtered(error: Exception, codes: frozenset[str]) -> bool:
    return bool(
        codes & {"content_filter", "content_policy_violation", "moderation_blocked"}
    ) or _is_a(error, "ModelRefusalError", "ContentFilterFinishReasonError")


def _of_request(error: Exception, text: str, detail: str) -> CallFailure | None:
    if "context_length_exceeded" in _codes(error) or _is_a(error, "ContextOverflowError"):
        return CallFailure(kind="final", detail=detail)
    # A client that does not know a keyword raises before it sends anything.
    if isinstance(error, TypeError) and (
        keyword := re.search(r"unexpected keyword argument '(\w+)'", text)
    ):
        setting = _REFUSABLE.get(keyword[1], keyword[1])
        return CallFailure(kind="setting", detail=detail, setting=setting)
    if _status(error) not in _REQUEST and not _is_a(error, "ModelInvalidRequestError"):
        return None
    setting = _refused_setting(error, text)
    if setting:
        return CallFailure(kind="setting", detail=detail, setting=setting)
    return CallFailure(kind="final", detail=detail)


def _refused_setting(error: Exception, text: str) -> str:
    """The setting that a 400 response is about; empty if it is about something else."""
    param = _body(error).get("param") or getattr(error, "param", None)
    if isinstance(param, str) and param:
        first = re.split(r"[.\[]", param, maxsplit=1)[0]
        return _REFUSABLE.get(first, first if _codes(error) & _UNSUPPORTED else "")
    if not re.search(r"(?i)unsupported|not support|unknown|unrecognized|not allowed|extra", text):
        return ""
    quoted = re.findall(r"[`'\"]([a-z_]+)(?:\.[\w.]+)?[`'\"]", text)
    return next((_REFUSABLE[name] for name in quoted if name in _REFUSABLE), "")


def _of_transport(error: Exception, detail: str) -> CallFailure | None:
    status, wait = _status(error), _retry_after(error)
    timed_out = isinstance(error, TimeoutError | asyncio.TimeoutError) or _is_a(
        error, "ModelTimeoutError", "APITimeoutError", "TimeoutException"
    )
    if timed_out or status in {408, 504}:
        return CallFailure(kind="retryable", detail=detail, reason="timeout", retry_after=wait)
    if status in _RETRYABLE or (status is not None and status >= 500):  # noqa: PLR2004
        return CallFailure(kind="retryable", detail=detail, retry_after=wait)
    if _is_a(error, "ModelConnectionError", "APIConnectionError") or isinstance(
        error, ConnectionError
    ):
        return CallFailure(kind="retryable", detail=detail, never_reached=_never_reached(error))
    return None


def _never_reached(error: BaseException) -> bool:
    """Whether the connection was never established, as opposed to one that broke."""
    visited: list[BaseException] = []
    cause: BaseException | None = error
    # The SDKs wrap the error of the socket several times. A chain of causes may be circular.
    while cause is not None and cause not in visited:
        if isinstance(cause, ConnectionRefusedError | socket.gaierror):
            return True
        if any(base.__name__ == "ConnectError" for base in type(cause).__mro__):
            return True
        visited.append(cause)
        cause = cause.__cause__
    return False


def _is_a(error: Exception, *names: str) -> bool:
    """Whether the class or one of its bases has one of these names."""
    # By name, because importing the SDKs to compare classes would take seconds.
    return any(base.__name__ in names for base in type(error).__mro__)


def _status(error: Exception) -> int | None:
    response = getattr(error, "response", None)
    for value in (
        getattr(error, "status_code", None),
        getattr(response, "status_code", None),
        getattr(error, "http_status", None),
        getattr(error, "code", None),
    ):
        # An answer that could not be read may come with 2xx; the status is then not the problem.
        if isinstance(value, int) and 400 <= value <= 599:  # noqa: PLR2004
            return value
    return None


def _body(error: Exception) -> Mapping[str, Any]:
    body: Any = getattr(error, "body", None)
    if isinstance(body, Mapping):
        inner = body.get("error")
        return inner if isinstance(inner, Mapping) else body
    return {}


def _codes(error: Exception) -> frozenset[str]:
    body = _body(error)
    values = {body.get("code"), body.get("type"), getattr(error, "code", None)}
    codes = {value for value in values if isinstance(value, str)}
    text = str(error)
    # Gateways put the code of the provider into the message.
    words = ("insufficient_quota", "context_length_exceeded", "content_filter", "model_not_found")
    return frozenset(codes | {word for word in words if word in text})


def _retry_after(error: Exception) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None)
    if headers is None:
        return None
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers.get(name)) * unit)
        except (TypeError, ValueError):
            continue  # absent, or a date; the exponential wait is enough
    return None
