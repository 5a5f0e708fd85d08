"""What an exception from a chat model means: fix the setup, try again, or give this request up.

Provider-neutral: the flags of langchain-core's `Model*Error` where an integration raises them,
status codes and error codes otherwise.
"""

import asyncio
import json
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from memguard.errors import ErrorCode
from memguard.schema.decision import InconclusiveReason

FailureKind = Literal["unhealable", "retryable", "final", "setting"]
"""What follows from a failure.

* `unhealable`: no request to this model will succeed; a configuration error.
* `retryable`: the same request may succeed.
* `final`: this request will not succeed; others may.
* `setting`: the model does not take one of the settings sent.
"""

DETAIL_CHARS = 200
"""The most of an answer or an error that goes on a receipt."""


@dataclass(frozen=True, kw_only=True)
class CallFailure:
    """One failed request, understood."""

    kind: FailureKind
    """What follows from it."""
    detail: str
    """What happened, shortened, without keys."""
    reason: InconclusiveReason = "provider_error"
    """The typed outcome, if no attempt succeeds."""
    code: ErrorCode = ErrorCode.MODEL_REQUEST
    """The error to raise, for `unhealable`."""
    setting: str = ""
    """The setting refused, for `setting`."""
    retry_after: float | None = None
    """Seconds the provider asked to wait."""
    never_reached: bool = False
    """Whether no connection came about."""


_KEY_SHAPES = re.compile(
    r"(?:sk|pk|rk|gsk|xai|lsv2|hf|key)[-_][\w*.\-]{6,}"  # the prefixes providers use
    r"|AIza[\w\-]{10,}"
    r"|(?i:bearer|basic)\s+[\w.\-+/=]{8,}"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
    r"|(?i:(?<=api_key=)|(?<=apikey=)|(?<=key=)|(?<=token=))[\w.\-]{6,}"
)

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
"""Settings that a model may refuse, by the name in its answer."""

_AUTH = {401, 403}
_AGAIN = {408, 409, 425, 429}
_REQUEST = {400, 405, 413, 415, 422}


def redact(text: str, secrets: tuple[str, ...] = ()) -> str:
    """The text without API keys: the given ones, and whatever looks like one."""
    for secret in secrets:
        text = text.replace(secret, "[key]")
    return _KEY_SHAPES.sub("[key]", text)


def shorten(text: str, limit: int = DETAIL_CHARS) -> str:
    """At most `limit` characters, on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def understand(error: Exception, *, secrets: tuple[str, ...] = ()) -> CallFailure:
    """Classify what a chat model raised.

    Args:
        error: Any exception from a call of a chat model.
        secrets: Keys to keep out of the detail.
    """
    text = redact(f"{type(error).__name__}: {error}", secrets)
    detail = shorten(text)
    return (
        _of_setup(error, detail)
        or _of_request(error, text, detail)
        or _of_transport(error, detail)
        # An answer that is no answer (HTML, bad JSON, no choices) reaches us as any exception.
        or CallFailure(kind="retryable", detail=_with_hint(error, detail))
    )


def _with_hint(error: Exception, detail: str) -> str:
    """What to look at where something answered that is no model server, as a web page would."""
    no_json = isinstance(error, json.JSONDecodeError) or "Unexpected response type" in detail
    return f"{detail}; the answer is no chat completion, check base_url" if no_json else detail


def _of_setup(error: Exception, detail: str) -> CallFailure | None:
    status, codes = _status(error), _codes(error)
    if codes & {"insufficient_quota", "billing_hard_limit_reached"} or status == 402:  # noqa: PLR2004
        return CallFailure(kind="unhealable", detail=detail, code=ErrorCode.MODEL_QUOTA)
    # A content filter answers 403 at some providers; that concerns the one request.
    if _is_filtered(error, codes):
        return CallFailure(kind="final", detail=detail, reason="refusal")
    if status in _AUTH or _is_a(error, "ModelAuthenticationError", "ModelPermissionDeniedError"):
        return CallFailure(kind="unhealable", detail=detail, code=ErrorCode.MODEL_AUTH)
    if status == 404 or "model_not_found" in codes or _is_a(error, "ModelNotFoundError"):  # noqa: PLR2004
        return CallFailure(kind="unhealable", detail=detail, code=ErrorCode.MODEL_UNKNOWN)
    return None


def _is_filtered(error: Exception, codes: frozenset[str]) -> bool:
    return bool(
        codes & {"content_filter", "content_policy_violation", "moderation_blocked"}
    ) or _is_a(error, "ModelRefusalError", "ContentFilterFinishReasonError")


def _of_request(error: Exception, text: str, detail: str) -> CallFailure | None:
    if "context_length_exceeded" in _codes(error) or _is_a(error, "ContextOverflowError"):
        return CallFailure(kind="final", detail=detail)
    if isinstance(error, TypeError) and (
        named := re.search(r"unexpected keyword argument '(\w+)'", text)
    ):
        setting = _REFUSABLE.get(named[1], named[1])
        return CallFailure(kind="setting", detail=detail, setting=setting)
    if _status(error) not in _REQUEST and not _is_a(error, "ModelInvalidRequestError"):
        return None
    setting = _setting_named(error, text)
    if setting:
        return CallFailure(kind="setting", detail=detail, setting=setting)
    return CallFailure(kind="final", detail=detail)


def _setting_named(error: Exception, text: str) -> str:
    """The setting that a 400 is about, or nothing."""
    param = _body(error).get("param") or getattr(error, "param", None)
    if isinstance(param, str) and param:
        first = re.split(r"[.\[]", param, maxsplit=1)[0]
        return _REFUSABLE.get(first, first if _codes(error) & _UNSUPPORTED else "")
    if not re.search(r"(?i)unsupported|not support|unknown|unrecognized|not allowed|extra", text):
        return ""
    named = re.findall(r"[`'\"]([a-z_]+)(?:\.[\w.]+)?[`'\"]", text)
    return next((_REFUSABLE[name] for name in named if name in _REFUSABLE), "")


_UNSUPPORTED = frozenset({"unsupported_parameter", "unsupported_value", "unknown_parameter"})


def _of_transport(error: Exception, detail: str) -> CallFailure | None:
    status, wait = _status(error), _retry_after(error)
    timed_out = isinstance(error, TimeoutError | asyncio.TimeoutError) or _is_a(
        error, "ModelTimeoutError", "APITimeoutError", "TimeoutException"
    )
    if timed_out or status in {408, 504}:
        return CallFailure(kind="retryable", detail=detail, reason="timeout", retry_after=wait)
    if status in _AGAIN or (status is not None and status >= 500):  # noqa: PLR2004
        return CallFailure(kind="retryable", detail=detail, retry_after=wait)
    if _is_a(error, "ModelConnectionError", "APIConnectionError") or isinstance(
        error, ConnectionError
    ):
        return CallFailure(kind="retryable", detail=detail, never_reached=_never_reached(error))
    return None


def _never_reached(error: BaseException) -> bool:
    """Whether no connection came about, as opposed to one that broke."""
    visited: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in visited:
        if isinstance(cause, ConnectionRefusedError | socket.gaierror):
            return True
        if any(base.__name__ == "ConnectError" for base in type(cause).__mro__):
            return True
        visited.append(cause)
        cause = cause.__cause__
    return False


def _is_a(error: Exception, *names: str) -> bool:
    """Whether a class of one of these names is among the bases: no SDK is imported for this."""
    return any(base.__name__ in names for base in type(error).__mro__)


def _status(error: Exception) -> int | None:
    response = getattr(error, "response", None)
    for value in (
        getattr(error, "status_code", None),
        getattr(response, "status_code", None),
        getattr(error, "http_status", None),
        getattr(error, "code", None),
    ):
        # 2xx comes with answers that could not be read, which is not about the status.
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
    named = {body.get("code"), body.get("type"), getattr(error, "code", None)}
    codes = {value for value in named if isinstance(value, str)}
    text = str(error)
    # Gateways put the provider's code into the message.
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
            continue  # absent, or a date; the exponential wait does
    return None
