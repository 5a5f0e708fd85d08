"""A copy of an OpenAI-driven chat model for each event loop, with a connection pool of its own.

langchain-openai shares one async HTTP client between all instances. Its pooled connections belong
to the loop that opened them, so a second `asyncio.run` fails with "Event loop is closed". Here
every loop gets a fresh client, which is closed when that loop ends.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
import threading
import time
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from memguard import compat
from memguard.errors import ErrorCode, ModelConfigurationError
from memguard.llm.budget import Meter, out_of_time
from memguard.llm.failures import CallFailure, understand
from memguard.schema.decision import Inconclusive
from memguard.schema.usage import Usage

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.outputs import LLMResult
    from tenacity import RetryCallState

    from memguard.llm.models import Model


@dataclass(eq=False)
class _LoopClients:
    """The copies that live on one loop."""

    copies: dict[int, tuple[weakref.ref[Any], BaseChatModel]] = field(default_factory=dict)
    closers: list[AsyncGenerator[None, None]] = field(default_factory=list)
    building: dict[int, asyncio.Future[BaseChatModel]] = field(default_factory=dict)


_LOCK = threading.Lock()
_LOOPS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopClients] = (
    weakref.WeakKeyDictionary()
)


async def chat_on_this_loop(model: Model) -> BaseChatModel:
    """The chat model to call from the running loop.

    A model of another family is returned as it is. An HTTP client of the user's own is kept; only
    the SDK's retries are turned off, since attempts are counted here.
    """
    if compat.openai_client(model.chat) is None:
        return model.chat
    loop = asyncio.get_running_loop()
    with _LOCK:
        _forget_ended_loops()
        clients = _LOOPS.setdefault(loop, _LoopClients())
    # By `id`, since a chat model cannot be hashed; the weak reference tells whether the object is
    # still the same one, because an id is used again.
    cached = clients.copies.get(id(model.chat))
    if cached is not None and cached[0]() is model.chat:
        return cached[1]
    return await _build_once(clients, model)


async def _build_once(clients: _LoopClients, model: Model) -> BaseChatModel:
    # Everything here runs on one loop, so a plain dictionary is lock enough.
    key = id(model.chat)
    if key not in clients.building:
        clients.building[key] = asyncio.ensure_future(_build(clients, model))
        clients.building[key].add_done_callback(lambda _: clients.building.pop(key, None))
    # Shielded: a caller that is cancelled must not take the client from those who wait with it.
    return await asyncio.shield(clients.building[key])


async def _build(clients: _LoopClients, model: Model) -> BaseChatModel:
    options: dict[str, Any] = {"max_retries": 0, "timeout": model.timeout}
    closer: AsyncGenerator[None, None] | None = None
    if not _has_own_client(model.chat):
        # In a thread, because a TLS context reads the certificate store from disk.
        client = await asyncio.to_thread(_new_client, model.chat, model.timeout)
        closer = _close_with_the_loop(client)
        await anext(closer)
        clients.closers.append(closer)
        options["http_client"] = client
    openai = compat.openai_client(model.chat).with_options(**options)
    copy = compat.with_openai_client(model.chat, openai)
    # The copy must not keep the model alive, or neither would ever be garbage.
    reference = weakref.ref(model.chat, _dropper(clients, id(model.chat), closer))
    clients.copies[id(model.chat)] = (reference, copy)
    return copy


async def _close_with_the_loop(client: Any) -> AsyncGenerator[None, None]:
    """Close the client when the loop ends.

    A generator that was started on a loop is closed by the loop's `shutdown_asyncgens`, which
    `asyncio.run` and the portal call. asyncio has no other hook for the end of a loop.
    """
    try:
        yield
    finally:
        await client.aclose()


def _dropper(
    clients: _LoopClients, key: int, closer: AsyncGenerator[None, None] | None
) -> Callable[[object], None]:
    """Close the client when its model is garbage before its loop ends."""
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

    def drop(_ref: object) -> None:
        # The garbage collector calls this in any thread, so the loop is asked to do the rest.
        loop, clients = loop_ref(), clients_ref()
        if clients is not None:
            clients.copies.pop(key, None)
        if loop is not None and not loop.is_closed():
            _schedule(loop, close)

    return drop


def _schedule(
    loop: asyncio.AbstractEventLoop, close: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    def start() -> None:
        task = loop.create_task(close())
        _CLOSING.add(task)
        task.add_done_callback(_CLOSING.discard)

    try:
        loop.call_soon_threadsafe(start)
    except RuntimeError:
        return  # the loop ended in between and has closed the client itself


_CLOSING: set[asyncio.Task[None]] = set()


def _has_own_client(chat: BaseChatModel) -> bool:
    # For a proxy, langchain-openai fills the field itself, with a client of one loop.
    proxied = bool(getattr(chat, "openai_proxy", None))
    return not proxied and getattr(chat, "http_async_client", None) is not None


def _new_client(chat: BaseChatModel, timeout: float) -> Any:
    from openai import DefaultAsyncHttpxClient  # noqa: PLC0415

    proxy = getattr(chat, "openai_proxy", None)
    settings: dict[str, Any] = {"timeout": timeout, "verify": _tls_context()}
    if proxy:
        settings["proxy"] = proxy
    return DefaultAsyncHttpxClient(**settings)


@functools.cache
def _tls_context() -> ssl.SSLContext:
    """One context for all clients, as the SDK's HTTP library would make it for each.

    Reading the certificate store takes tens of milliseconds, which every new loop would pay.
    """
    from openai import DefaultAsyncHttpxClient  # noqa: PLC0415

    # httpx or httpx2, by the release of the SDK: its client is a subclass of theirs.
    library = DefaultAsyncHttpxClient.__bases__[0].__module__.partition(".")[0]
    context: ssl.SSLContext = import_module(library).create_ssl_context()
    return context


def _forget_ended_loops() -> None:
    for loop in [loop for loop in _LOOPS if loop.is_closed()]:
        del _LOOPS[loop]


DROPPABLE = frozenset(
    {"temperature", "seed", "max_tokens", "reasoning_effort", "response_format", "n"}
)
"""Settings left out for a model that refuses them; refusing any other is a configuration error."""

LONGEST_WAIT = 60.0
"""Seconds of `retry-after` that are waited for; a longer one ends the attempts."""

NO_TOKEN_COUNTS = "the provider reported no token counts"  # noqa: S105 - no password

_TAG = "memguard"
_HIDDEN = "nostream"
"""LangGraph's mark for calls whose text is not part of the host's messages."""


@dataclass(frozen=True, kw_only=True)
class CallSettings:
    """Sampling settings of a request; `None` leaves the model's own."""

    temperature: float | None = None
    """Sampling temperature."""
    seed: int | None = None
    """Seed, where the provider has one."""
    max_tokens: int | None = None
    """The most tokens written per answer."""
    reasoning_effort: str | None = None
    """`minimal`, `low`, `medium` or `high`, for models that reason."""
    timeout: float | None = None
    """Seconds one attempt may take; the model's own when `None`."""

    def given(self) -> dict[str, Any]:
        """The settings that are set, by name."""
        pairs = {
            "temperature": self.temperature,
            "seed": self.seed,
            "max_tokens": self.max_tokens,
            "reasoning_effort": self.reasoning_effort,
        }
        return {name: value for name, value in pairs.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What came of one request."""

    messages: tuple[AIMessage, ...] = ()
    """The answers, in order; empty after a failure."""
    failure: Inconclusive | None = None
    """Why there are none."""
    notes: tuple[str, ...] = ()
    """What a receipt should say: settings left out, token counts missing."""


@dataclass(frozen=True, kw_only=True)
class _Request:
    """Everything that stays the same over the attempts."""

    model: Model
    messages: Sequence[BaseMessage]
    wanted: Mapping[str, Any]
    timeout: float
    meter: Meter
    name: str
    visible: bool
    notes: list[str] = field(default_factory=list)


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
    """Send one request, and again where that may help.

    Args:
        model: The model to call.
        messages: The prompt.
        settings: Sampling settings.
        meter: Counts what this spends, cancelled attempts included.
        extra: More settings: `n`, `response_format`, `logprobs` with `top_logprobs`, `tools`.
        name: Name of the run in callbacks and traces.
        visible: Whether the answer is one of the host's messages, and is streamed as such.

    Returns:
        The answers, or a typed outcome without answers.

    Raises:
        ModelConfigurationError: If no request to this model can succeed as it is set up.
        BudgetExhaustedError: If the request would begin beyond a limit of the run.
    """
    job = _Request(
        model=model,
        messages=messages,
        wanted={**settings.given(), **(extra or {})},
        timeout=settings.timeout or model.timeout,
        meter=meter,
        name=name,
        visible=visible,
    )
    async with model.learned.limiter.slot(model.concurrency):
        answer = await _attempts(job)
        if not (isinstance(answer, CallFailure) and answer.never_reached):
            model.learned.limiter.made_contact()
    notes = (*model.learned.notes(frozenset(job.wanted)), *dict.fromkeys(job.notes))
    if isinstance(answer, CallFailure):
        outcome = Inconclusive(reason=answer.reason, detail=answer.detail)
        return Reply(failure=outcome, notes=notes)
    return Reply(messages=answer, notes=notes)


_Answer: TypeAlias = "tuple[AIMessage, ...] | CallFailure"


async def _attempts(job: _Request) -> _Answer:
    """Attempts, until one is answered, one fails for good, or another would not help."""
    answer = await _attempt(job)
    if _is_retryable(answer):
        answer = await _again(job, answer)
    if (
        isinstance(answer, CallFailure)
        and answer.never_reached
        and not job.model.learned.limiter.has_contact
    ):
        raise _unusable(replace(answer, code=ErrorCode.MODEL_UNREACHABLE), job)
    return answer


async def _again(job: _Request, first: _Answer) -> _Answer:
    """Retries after a first attempt that failed.

    Most requests need none, and building this for each cost more than all else around a request.
    """
    from tenacity import AsyncRetrying, retry_if_result  # noqa: PLC0415

    pending = [first]

    async def attempt() -> _Answer:
        return pending.pop() if pending else await _attempt(job)

    retrying = AsyncRetrying(
        retry=retry_if_result(_is_retryable),
        stop=lambda state: _gives_up(state, job),
        wait=lambda state: _wait(state, job),
        sleep=asyncio.sleep,
        retry_error_callback=_answer_of,
    )
    return await retrying(attempt)


def _is_retryable(answer: _Answer) -> bool:
    return isinstance(answer, CallFailure) and answer.kind == "retryable"


async def _attempt(job: _Request) -> _Answer:
    """One attempt; sent once more for each setting that the model turns out not to take."""
    while True:
        sent = {k: v for k, v in job.wanted.items() if k not in job.model.learned.refused}
        answer = await _send(job, sent)
        if not isinstance(answer, CallFailure) or answer.kind in {"final", "retryable"}:
            return answer
        if answer.kind == "setting" and answer.setting in DROPPABLE and answer.setting in sent:
            note = f"{job.model.name} does not take {answer.setting!r}; it was left out"
            job.model.learned.refuse(answer.setting, note=note)
            continue
        raise _unusable(answer, job)


async def _send(job: _Request, sent: Mapping[str, Any]) -> _Answer:
    chat = await chat_on_this_loop(job.model)
    job.meter.begin()
    remaining = job.meter.seconds_left
    limit = job.timeout if remaining is None else min(job.timeout, remaining)
    usage, start = Usage(attempts=1), time.perf_counter()
    try:
        async with asyncio.timeout(limit):
            result = await chat.agenerate(
                [list(job.messages)], **_run_config(job), **_on_the_wire(job, sent, limit)
            )
        messages = _messages_of(result)
        usage = _usage_of(result, job)
    except Exception as error:  # integrations raise anything; `understand` sorts it
        failure = understand(error, secrets=job.model.secrets())
    else:
        return messages
    finally:
        latency = time.perf_counter() - start
        job.meter.end(usage.model_copy(update={"latency": latency}))
    if (
        remaining is not None
        and limit == remaining
        and failure.reason == "timeout"
        and latency >= limit
    ):
        raise out_of_time(latency)
    return failure


def _on_the_wire(job: _Request, sent: Mapping[str, Any], limit: float) -> dict[str, Any]:
    """The settings as LangChain passes them to the provider."""
    wire = dict(sent)
    if job.model.is_openai_like:
        if limit > job.model.timeout:
            wire["timeout"] = limit  # the client's own, shorter one would cut in first
        if "response_format" in wire:
            # As a plain keyword it would go through the SDK's own parser, which raises on a
            # truncated answer and on a refusal, and takes the other n - 1 answers with it.
            body: Mapping[str, Any] = getattr(job.model.chat, "extra_body", None) or {}
            wire["extra_body"] = {**body, "response_format": wire.pop("response_format")}
    return wire


def _run_config(job: _Request) -> dict[str, Any]:
    """Callbacks, tags and metadata of the graph run in progress, so that calls show up there."""
    from langchain_core.runnables.config import ensure_config  # noqa: PLC0415

    config = ensure_config()
    return {
        "callbacks": config.get("callbacks"),
        "tags": [*config.get("tags", []), _TAG, *([] if job.visible else [_HIDDEN])],
        "metadata": config.get("metadata"),
        "run_name": job.name,
    }


def _messages_of(result: LLMResult) -> tuple[AIMessage, ...]:
    candidates = [getattr(generation, "message", None) for generation in result.generations[0]]
    messages = tuple(message for message in candidates if message is not None)
    if not messages:
        msg = "the model's response holds no answer"
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
    whole: Mapping[str, Any] = (result.llm_output or {}).get("token_usage") or {}
    if whole:
        return int(whole.get("prompt_tokens") or 0), int(whole.get("completion_tokens") or 0)
    message = getattr(result.generations[0][0], "message", None)
    of_message: Mapping[str, Any] = getattr(message, "usage_metadata", None) or {}
    return int(of_message.get("input_tokens", 0)), int(of_message.get("output_tokens", 0))


def _gives_up(state: RetryCallState, job: _Request) -> bool:
    remaining = job.meter.seconds_left
    longest = LONGEST_WAIT if remaining is None else min(LONGEST_WAIT, remaining)
    return state.attempt_number >= job.model.max_attempts or _asked_wait(state) > longest


def _wait(state: RetryCallState, job: _Request) -> float:
    from tenacity import wait_random_exponential  # noqa: PLC0415

    # Full jitter, so that calls that failed together do not come back together:
    # https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
    jitter = wait_random_exponential(multiplier=job.model.backoff, max=LONGEST_WAIT)(state)
    requested = _asked_wait(state)
    return requested + min(jitter, 0.1 * requested) if requested else jitter


def _asked_wait(state: RetryCallState) -> float:
    answer = _answer_of(state)
    return (answer.retry_after or 0.0) if isinstance(answer, CallFailure) else 0.0


def _answer_of(state: RetryCallState) -> _Answer:
    """What the last attempt came to; an error of ours ends the retries before this is asked."""
    outcome = state.outcome
    if outcome is None:
        msg = "an attempt that has not ended has no answer"
        raise AssertionError(msg)
    return outcome.result()


_WHAT_TO_DO = {
    ErrorCode.MODEL_AUTH: "the server refused the key; check api_key or the provider's variable",
    ErrorCode.MODEL_UNKNOWN: "the server does not know this model; check its name and base_url",
    ErrorCode.MODEL_QUOTA: "the account has no quota left; top it up or use another key",
    ErrorCode.MODEL_UNREACHABLE: "no connection came about; check base_url and that it runs",
    ErrorCode.MODEL_LOGPROBS: (
        "the model gives no log-probabilities, which variant='logprob' needs; use variant='soft' "
        "or another model"
    ),
    ErrorCode.MODEL_REQUEST: "the model does not take this setting; leave it out",
}


def _unusable(failure: CallFailure, job: _Request) -> ModelConfigurationError:
    """The error for a failure that will not heal; the meter remembers it for the whole run."""
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
    msg = f"model {model.name!r}{where}: {_WHAT_TO_DO[code]} ({detail})"
    return ModelConfigurationError(msg, code=code)
