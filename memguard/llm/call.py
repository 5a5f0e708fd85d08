"""One request to a chat model: sampling settings, attempts, time limits, usage and typed failures.

`request` is the only function of memguard that calls a model. It waits for a slot of the model's
limiter, leaves out settings that the model has refused, and repeats an attempt where that may help.

The second half gives an OpenAI-driven chat model a copy for each event loop, with its own
connection pool. langchain-openai shares one async HTTP client between all instances, and its pooled
connections belong to the loop that opened them. A second `asyncio.run` would fail with "Event loop
is closed".
"""

from __future__ import annotations

import asyncio
import functools
import ssl
import threading
import time
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from memguard import compat
from memguard.errors import ErrorCode, ModelConfigurationError
from memguard.llm.failures import CallFailure, understand
from memguard.llm.limits import Meter, out_of_time
from memguard.schema.decision import Inconclusive
from memguard.schema.receipt import Usage

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.outputs import LLMResult
    from tenacity import RetryCallState

    from memguard.llm.models import Model

NO_TOKEN_COUNTS = "the provider reported no token counts"  # noqa: S105 - no password

# Without one of these a request still gives a usable answer. Without any other setting, such as
# `logprobs` or `tools`, it would not, so a refusal of those is a configuration error.
_OPTIONAL_SETTINGS = frozenset(
    {"temperature", "seed", "max_tokens", "reasoning_effort", "response_format", "n"}
)

_MAX_WAIT = 60.0
"""The longest `retry-after`, in seconds, that is waited for; a longer one ends the attempts."""

_TAG = "memguard"
_HIDDEN_TAG = "nostream"
"""LangGraph leaves calls with this tag out of the messages that it streams to the host."""


@dataclass(frozen=True, kw_only=True)
class CallSettings:
    """Sampling settings of a request; `None` leaves the model's default."""

    temperature: float | None = None
    """Sampling temperature."""
    seed: int | None = None
    """Seed, for providers that support one."""
    max_tokens: int | None = None
    """The maximum number of tokens per answer."""
    reasoning_effort: str | None = None
    """`minimal`, `low`, `medium` or `high`, for models that reason."""
    timeout: float | None = None
    """The time limit of one attempt in seconds; the model's `timeout` if `None`."""

    def keywords(self) -> dict[str, Any]:
        """The settings that are not `None`, as keywords of a request."""
        names = ("temperature", "seed", "max_tokens", "reasoning_effort")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


TEMPERATURE_ZERO = CallSettings(temperature=0.0)
"""The settings of a question that is asked once."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """The outcome of one request."""

    messages: tuple[AIMessage, ...] = ()
    """The answers, in order; empty after a failure."""
    failure: Inconclusive | None = None
    """Why there are no answers."""
    notes: tuple[str, ...] = ()
    """Notes for the receipt: settings that were left out, missing token counts."""


@dataclass(frozen=True, kw_only=True)
class Metered:
    """What every kind of answer has in addition to its value."""

    usage: Usage
    """The usage, with retries, repairs and cancelled attempts."""
    enlarged: bool = False
    """Whether it reached the token limit and was asked for once more, with more room."""
    notes: tuple[str, ...] = ()
    """Notes for the receipt."""


@dataclass(frozen=True, kw_only=True)
class _Request:
    """Everything that stays the same over the attempts."""

    model: Model
    messages: Sequence[BaseMessage]
    settings: Mapping[str, Any]
    timeout: float
    meter: Meter
    name: str
    visible: bool
    notes: list[str] = field(default_factory=list)


_METADATA: ContextVar[Mapping[str, str]] = ContextVar(
    "memguard_call_metadata", default=MappingProxyType({})
)


@contextmanager
def call_metadata(**values: str) -> Generator[None]:
    """Add metadata to the model calls inside, so that a trace and a receipt find each other.

    Args:
        values: `method`, `run_id` or `receipt_id`, as they are on the receipt. In a trace each has
            the prefix `memguard_`.
    """
    named = {f"memguard_{name}": value for name, value in values.items()}
    token = _METADATA.set({**_METADATA.get(), **named})
    try:
        yield
    finally:
        _METADATA.reset(token)


async def request(
    model: Model,
    messages: Sequence[BaseMessage],
    *,
    settings: CallSettings,
    meter: Meter,
    extra: Mapping[str, Any] | None = None,
    name: str = "memguard",
    visible: bool = False,
) -> Reply:
    """Send one request, and repeat it where that may help.

    `extra` are more settings: `n`, `response_format`, `logprobs` with `top_logprobs`, `tools`. The
    run has `name` in callbacks and traces. A `visible` answer is one of the host's messages, and is
    streamed as such. The meter counts cancelled attempts, too.

    Raises:
        ModelConfigurationError: If no request to this model can succeed with its configuration.
        BudgetExhaustedError: If the request would start beyond a limit of the run.
    """
    job = _Request(
        model=model,
        messages=messages,
        settings={**settings.keywords(), **(extra or {})},
        timeout=settings.timeout or model.timeout,
        meter=meter,
        name=name,
        visible=visible,
    )
    async with model.state.limiter.slot(model.concurrency):
        outcome = await _attempts(job)
        # Any answer, even a refusal, shows that the address is right.
        if not (isinstance(outcome, CallFailure) and outcome.never_reached):
            model.state.limiter.record_contact()
    notes = (*model.state.notes(frozenset(job.settings)), *dict.fromkeys(job.notes))
    if isinstance(outcome, CallFailure):
        failure = Inconclusive(reason=outcome.reason, detail=outcome.detail)
        return Reply(failure=failure, notes=notes)
    return Reply(messages=outcome, notes=notes)


_Outcome: TypeAlias = "tuple[AIMessage, ...] | CallFailure"


async def _attempts(job: _Request) -> _Outcome:
    """Attempts, until one is answered, one fails for good, or another would not help."""
    outcome = await _attempt(job)
    if _is_retryable(outcome):
        outcome = await _retry(job, outcome)
    # A server that has answered before may be restarting, which is no configuration error.
    if (
        isinstance(outcome, CallFailure)
        and outcome.never_reached
        and not job.model.state.limiter.has_contact
    ):
        raise _configuration_error(replace(outcome, code=ErrorCode.MODEL_UNREACHABLE), job)
    return outcome


async def _retry(job: _Request, first: _Outcome) -> _Outcome:
    """Retries after a first attempt that failed."""
    # Most requests need no retry, and building this for each took longer than everything else
    # that happens around a request.
    from tenacity import AsyncRetrying, retry_if_result  # noqa: PLC0415

    pending = [first]

    async def attempt() -> _Outcome:
        return pending.pop() if pending else await _attempt(job)

    retrying = AsyncRetrying(
        retry=retry_if_result(_is_retryable),
        stop=lambda state: _should_stop(state, job),
        wait=lambda state: _wait(state, job),
        sleep=asyncio.sleep,
        retry_error_callback=_last_outcome,
    )
    return await retrying(attempt)


def _is_retryable(outcome: _Outcome) -> bool:
    return isinstance(outcome, CallFailure) and outcome.kind == "retryable"


async def _attempt(job: _Request) -> _Outcome:
    """One attempt, and another one for each setting that the model turns out not to take."""
    state = job.model.state
    while True:
        settings = {k: v for k, v in job.settings.items() if k not in state.refused}
        outcome = await _send(job, settings)
        if not isinstance(outcome, CallFailure) or outcome.kind in {"final", "retryable"}:
            return outcome
        setting = outcome.setting
        # Only a setting that was sent can be dropped, or the loop would not end.
        if outcome.kind == "setting" and setting in _OPTIONAL_SETTINGS and setting in settings:
            state.refuse(
                setting, note=f"{job.model.name} does not take {setting!r}; it was left out"
            )
            continue
        raise _configuration_error(outcome, job)


async def _send(job: _Request, settings: Mapping[str, Any]) -> _Outcome:
    chat = await chat_on_this_loop(job.model)
    job.meter.begin()
    remaining = job.meter.seconds_left
    limit = job.timeout if remaining is None else min(job.timeout, remaining)
    usage, start = Usage(attempts=1), time.perf_counter()
    try:
        async with asyncio.timeout(limit):
            result = await chat.agenerate(
                [list(job.messages)], **_run_config(job), **_wire_settings(job, settings, limit)
            )
        messages = _messages_of(result)
        usage = _usage_of(result, job)
    except Exception as error:  # integrations raise anything; `understand` classifies it
        failure = understand(error, secrets=job.model.secrets())
    else:
        return messages
    finally:
        # Also on cancellation, or the reservation would never be returned.
        latency = time.perf_counter() - start
        job.meter.end(usage.model_copy(update={"latency": latency}))
    # The limit was what the run had left, not what the model may take: the budget is spent.
    if (
        remaining is not None
        and limit == remaining
        and failure.reason == "timeout"
        and latency >= limit
    ):
        raise out_of_time(latency)
    return failure


def _wire_settings(job: _Request, settings: Mapping[str, Any], limit: float) -> dict[str, Any]:
    """The settings as LangChain passes them to the provider."""
    wire = dict(settings)
    if job.model.is_openai_like:
        if limit > job.model.timeout:
            wire["timeout"] = limit  # the client's shorter limit would apply first
        if "response_format" in wire:
            # As a plain keyword it would go through the SDK's parser, which raises on a truncated
            # answer and on a refusal. The other n - 1 answers would be lost with it.
            body: Mapping[str, Any] = getattr(job.model.chat, "extra_body", None) or {}
            wire["extra_body"] = {**body, "response_format": wire.pop("response_format")}
    return wire


def _run_config(job: _Request) -> dict[str, Any]:
    """Callbacks, tags and metadata of the graph run in progress, so that calls show up there."""
    from langchain_core.runnables.config import ensure_config  # noqa: PLC0415

    config = ensure_config()
    return {
        "callbacks": config.get("callbacks"),
        "tags": [*config.get("tags", []), _TAG, *([] if job.visible else [_HIDDEN_TAG])],
        "metadata": {**(config.get("metadata") or {}), **_metadata_of(job)},
        "run_name": job.name,
    }


def _metadata_of(job: _Request) -> dict[str, str]:
    method, _, stage = job.name.rpartition(".")
    # Calls that several methods share are named after memguard; their method is in the context.
    named = {"memguard_method": method} if method not in {"", "memguard"} else {}
    return {"memguard_stage": stage, **named, **_METADATA.get()}


def _messages_of(result: LLMResult) -> tuple[AIMessage, ...]:
    candidates = [getattr(generation, "message", None) for generation in result.generations[0]]
    messages = tuple(message for message in candidates if message is not None)
    if not messages:
        msg = "the model's response has no answer"
        raise ValueError(msg)
    return messages


def _usage_of(result: LLMResult, job: _Request) -> Usage:
    prompt, completion = _tokens_of(result)
    if prompt == completion == 0:
        job.notes.append(NO_TOKEN_COUNTS)
    usage = Usage(calls=1, attempts=1, prompt_tokens=prompt, completion_tokens=completion)
    price = job.model.price
    return usage if price is None else usage.model_copy(update={"cost": price.of(usage)})


def _tokens_of(result: LLMResult) -> tuple[int, int]:
    # For n > 1 each message carries the usage of the whole request; the output has it once.
    total: Mapping[str, Any] = (result.llm_output or {}).get("token_usage") or {}
    if total:
        return int(total.get("prompt_tokens") or 0), int(total.get("completion_tokens") or 0)
    message = getattr(result.generations[0][0], "message", None)
    of_message: Mapping[str, Any] = getattr(message, "usage_metadata", None) or {}
    return int(of_message.get("input_tokens", 0)), int(of_message.get("output_tokens", 0))


def _should_stop(state: RetryCallState, job: _Request) -> bool:
    remaining = job.meter.seconds_left
    max_wait = _MAX_WAIT if remaining is None else min(_MAX_WAIT, remaining)
    return state.attempt_number >= job.model.max_attempts or _requested_wait(state) > max_wait


def _wait(state: RetryCallState, job: _Request) -> float:
    from tenacity import wait_random_exponential  # noqa: PLC0415

    # Full jitter, so that calls that failed together do not come back together:
    # https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
    jitter = wait_random_exponential(multiplier=job.model.backoff, max=_MAX_WAIT)(state)
    requested = _requested_wait(state)
    return requested + min(jitter, 0.1 * requested) if requested else jitter


def _requested_wait(state: RetryCallState) -> float:
    outcome = _last_outcome(state)
    return (outcome.retry_after or 0.0) if isinstance(outcome, CallFailure) else 0.0


def _last_outcome(state: RetryCallState) -> _Outcome:
    """The outcome of the last attempt; an error that memguard raises ends the retries earlier."""
    assert state.outcome is not None  # noqa: S101 - tenacity asks after an attempt only
    return state.outcome.result()


_ADVICE = {
    ErrorCode.MODEL_AUTH: "the server refused the key; check api_key or the provider's variable",
    ErrorCode.MODEL_UNKNOWN: "the server does not know this model; check its name and base_url",
    ErrorCode.MODEL_QUOTA: "the account has no quota left; top it up or use another key",
    ErrorCode.MODEL_UNREACHABLE: "the connection failed; check base_url and that the server runs",
    ErrorCode.MODEL_LOGPROBS: (
        "the model gives no log-probabilities, which variant='logprob' needs; use variant='soft' "
        "or another model"
    ),
    ErrorCode.MODEL_REQUEST: "the model does not take this setting; leave it out",
}


def _configuration_error(failure: CallFailure, job: _Request) -> ModelConfigurationError:
    """The error for a permanent failure; the meter remembers it for the whole run."""
    code = failure.code
    if failure.kind == "setting":
        logprobs = failure.setting == "logprobs"
        code = ErrorCode.MODEL_LOGPROBS if logprobs else ErrorCode.MODEL_REQUEST
    error = model_error(job.model, code=code, detail=failure.detail)
    job.meter.fail(error)
    return error


def model_error(model: Model, *, code: ErrorCode, detail: str) -> ModelConfigurationError:
    """The error that says what is wrong with a model, and what to do."""
    where = f" at {model.base_url}" if model.base_url else ""
    msg = f"model {model.name!r}{where}: {_ADVICE[code]} ({detail})"
    return ModelConfigurationError(msg, code=code)


# -- clients by event loop --------------------------------------------------------------------


@dataclass(eq=False)
class _LoopClients:
    """The copies that live on one loop, by the `id` of the chat model."""

    copies: dict[int, tuple[weakref.ref[Any], BaseChatModel]] = field(default_factory=dict)
    closers: list[AsyncGenerator[None, None]] = field(default_factory=list)
    building: dict[int, asyncio.Future[BaseChatModel]] = field(default_factory=dict)


_LOCK = threading.Lock()
_LOOPS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopClients] = (
    weakref.WeakKeyDictionary()
)

# The event loop has weak references to its tasks only; without this set a task that closes a client
# could be garbage before it ends.
_CLOSING: set[asyncio.Task[None]] = set()


async def chat_on_this_loop(model: Model) -> BaseChatModel:
    """The chat model to call from the running loop.

    A model that has no OpenAI client is returned as it is. If the user passed an HTTP client, the
    copy uses it too; only the SDK's retries are turned off, since attempts are counted here.
    """
    if compat.openai_client(model.chat) is None:
        return model.chat
    loop = asyncio.get_running_loop()
    with _LOCK:
        # A closed loop that something still refers to is not removed by the weak dictionary.
        for closed in [other for other in _LOOPS if other.is_closed()]:
            del _LOOPS[closed]
        clients = _LOOPS.setdefault(loop, _LoopClients())
    # By `id`, since a chat model cannot be hashed. An id is reused, so the weak reference tells
    # whether the object is still the same one.
    cached = clients.copies.get(id(model.chat))
    if cached is not None and cached[0]() is model.chat:
        return cached[1]
    return await _build_once(clients, model)


async def _build_once(clients: _LoopClients, model: Model) -> BaseChatModel:
    # Everything here runs on one loop, so the dictionary needs no lock.
    key = id(model.chat)
    if key not in clients.building:
        clients.building[key] = asyncio.ensure_future(_build(clients, model))
        clients.building[key].add_done_callback(lambda _: clients.building.pop(key, None))
    # Shielded: the cancellation of one caller must not cancel the client that others wait for.
    return await asyncio.shield(clients.building[key])


async def _build(clients: _LoopClients, model: Model) -> BaseChatModel:
    options: dict[str, Any] = {"max_retries": 0, "timeout": model.timeout}
    closer: AsyncGenerator[None, None] | None = None
    if not _has_own_client(model.chat):
        # In a thread, because a TLS context reads the certificate store from disk.
        client = await asyncio.to_thread(_new_client, model.chat, model.timeout)
        closer = _close_with_the_loop(client)
        await anext(closer)  # started here, so that the running loop registers it
        clients.closers.append(closer)
        options["http_client"] = client
    openai = compat.openai_client(model.chat).with_options(**options)
    copy = compat.with_openai_client(model.chat, openai)
    # The copy must not keep the model alive, or neither would ever be garbage.
    reference = weakref.ref(model.chat, _dropper(clients, id(model.chat), closer))
    clients.copies[id(model.chat)] = (reference, copy)
    return copy


async def _close_with_the_loop(client: Any) -> AsyncGenerator[None, None]:
    """Close the client when the loop ends."""
    # `asyncio.run` and the portal call the loop's `shutdown_asyncgens`, which closes generators
    # that were started on the loop. asyncio has no other hook for the end of a loop.
    try:
        yield
    finally:
        await client.aclose()


def _dropper(
    clients: _LoopClients, key: int, closer: AsyncGenerator[None, None] | None
) -> Callable[[object], None]:
    """A callback that closes the client if its model is garbage before its loop ends."""
    # Weak references only: this function lives as long as the model, which may outlive the loop.
    loop_ref, clients_ref = weakref.ref(asyncio.get_running_loop()), weakref.ref(clients)
    closer_ref = None if closer is None else weakref.ref(closer)

    async def close() -> None:
        clients = clients_ref()
        closer = None if closer_ref is None else closer_ref()
        if closer is not None:
            if clients is not None and closer in clients.closers:
                clients.closers.remove(closer)
            await closer.aclose()

    def start() -> None:
        task = asyncio.get_running_loop().create_task(close())
        _CLOSING.add(task)
        task.add_done_callback(_CLOSING.discard)

    def drop(_ref: object) -> None:
        # The garbage collector calls this in any thread, so the client is closed by its loop.
        loop, clients = loop_ref(), clients_ref()
        if clients is not None:
            clients.copies.pop(key, None)
        # If the loop has ended, or ends in the meantime, its end closes the client.
        if loop is not None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(start)

    return drop


def _has_own_client(chat: BaseChatModel) -> bool:
    # For a proxy, langchain-openai fills the field itself, with a client of one loop.
    proxied = bool(getattr(chat, "openai_proxy", None))
    return not proxied and getattr(chat, "http_async_client", None) is not None


def _new_client(chat: BaseChatModel, timeout: float) -> Any:
    from openai import DefaultAsyncHttpxClient  # noqa: PLC0415

    proxy = getattr(chat, "openai_proxy", None) or None
    # A redirect would send the conversation to an address that nobody configured, and a loop of
    # redirects would cost twenty requests for each attempt.
    return DefaultAsyncHttpxClient(
        timeout=timeout, verify=_tls_context(), proxy=proxy, follow_redirects=False
    )


@functools.cache
def _tls_context() -> ssl.SSLContext:
    """One context for all clients, as the SDK's HTTP library would create it for each."""
    # Reading the certificate store takes tens of milliseconds, for every new loop.
    from openai import DefaultAsyncHttpxClient  # noqa: PLC0415

    # httpx or httpx2, by the release of the SDK: its client is a subclass of theirs.
    library = DefaultAsyncHttpxClient.__bases__[0].__module__.partition(".")[0]
    context: ssl.SSLContext = import_module(library).create_ssl_context()
    return context
