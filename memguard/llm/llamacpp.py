"""A chat model in this process: a GGUF file, run by llama.cpp through `xllamacpp` (extra `llama`).

The engine is loaded at the first call and shared by all chat models of the process with the same
file and settings. Calls run in worker threads. They stop within a token, or a batch of the prompt,
after the caller is cancelled or its time limit is reached.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from memguard.errors import ErrorCode, ModelConfigurationError

_INSTALL = "pip install 'langgraph-memguard[llama]'"
_MAGIC = b"GGUF"
_BATCH = 512
"""Prompt tokens that are read between two checks whether the caller still waits."""

# Keywords of a request. Others raise `TypeError`, which the call layer reads as a refused setting.
_KEYWORDS = frozenset(
    {"n", "temperature", "seed", "max_tokens", "top_p", "response_format", "logprobs",
     "top_logprobs", "grammar"}
)  # fmt: skip


class LlamaCppError(Exception):
    """The engine refused a request or could not load."""

    # With the attributes of an HTTP provider's errors, so that it is classified like those.
    def __init__(self, message: str, *, status_code: int, kind: str = "") -> None:
        super().__init__(message)
        self.status_code = status_code
        self.body = {"error": {"message": message, "type": kind}}


class LlamaCppChat(BaseChatModel):
    """A GGUF chat model in this process.

    Takes the request keywords of OpenAI's chat completions: `n`, `temperature`, `seed`,
    `max_tokens`, `response_format`, `logprobs`, `top_logprobs`.
    """

    path: Path
    """The GGUF file; it must contain a chat template."""
    n_parallel: Annotated[int, Field(ge=1, le=64)] = 5
    """Answers generated at once; more are generated in several rounds."""
    n_ctx: Annotated[int, Field(ge=256)] = 8192
    """Tokens of context. Answers to one prompt share its tokens, so one prompt and `n_parallel`
    answers have to fit."""
    n_threads: Annotated[int, Field(ge=1)] | None = None
    """Threads; by default llama.cpp uses all cores. Use fewer on a busy machine: threads that wait
    for one another are many times slower."""
    temperature: float | None = None
    """Sampling temperature if a call has none; `None` is llama.cpp's default."""
    seed: int | None = None
    """Seed if a call has none."""
    max_tokens: Annotated[int, Field(ge=1)] = 2048
    """The maximum number of tokens per answer, for every call; small models often do not stop."""
    max_concurrency: Annotated[int, Field(ge=1)] = 1
    """Concurrent requests to the engine; it is one engine, so more would slow one another down."""
    min_timeout: float = 600.0
    """The shortest time limit of an attempt in seconds, loading included: processors are slow."""
    openai_keywords: bool = True
    """Tells the call layer that `n` and `response_format` are taken as OpenAI takes them."""

    @property
    def model_name(self) -> str:
        """The file, for receipts: `llamacpp:<path>`."""
        return str(self.path)

    @property
    def _llm_type(self) -> str:
        return "llamacpp"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"path": str(self.path), "n_ctx": self.n_ctx, "n_parallel": self.n_parallel}

    def _combine_llm_outputs(self, llm_outputs: list[dict[str, Any] | None]) -> dict[str, Any]:
        return next((output for output in llm_outputs if output), {})

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del run_manager
        return self._answer(self._body(messages, stop, kwargs), threading.Event())

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del run_manager
        abandoned = threading.Event()
        body = self._body(messages, stop, kwargs)
        try:
            return await asyncio.to_thread(self._answer, body, abandoned)
        finally:
            # A thread cannot be cancelled, so it checks this event between two tokens.
            abandoned.set()

    def _body(
        self, messages: list[BaseMessage], stop: list[str] | None, keywords: Mapping[str, Any]
    ) -> dict[str, Any]:
        settings = {**keywords, **(keywords.get("extra_body") or {})}
        for name in ("extra_body", "timeout"):  # keywords of ChatOpenAI without a meaning here
            settings.pop(name, None)
        for name in settings.keys() - _KEYWORDS:
            msg = f"LlamaCppChat got an unexpected keyword argument '{name}'"
            raise TypeError(msg)
        defaults = {"temperature": self.temperature, "seed": self.seed, "stop": stop}
        return {
            "messages": convert_to_openai_messages(messages),
            **{name: value for name, value in defaults.items() if value is not None},
            **settings,
            "max_tokens": min(self.max_tokens, settings.get("max_tokens") or self.max_tokens),
        }

    def _answer(self, body: dict[str, Any], abandoned: threading.Event) -> ChatResult:
        """All answers, in rounds of `n_parallel`."""
        engine = _engine_of(self)
        count, choices = int(body.pop("n", None) or 1), list[_Choice]()
        prompt_tokens = completion_tokens = 0
        for start in range(0, count, self.n_parallel):
            if abandoned.is_set():
                break
            request = {**body, "n": min(count - start, self.n_parallel)}
            if "seed" in body:
                # A new seed in each round, or every round would repeat the first one.
                request["seed"] = int(body["seed"]) + len(choices)
            response = engine.complete(request, abandoned)
            choices += response.choices
            prompt_tokens += response.prompt_tokens
            completion_tokens += response.completion_tokens
        total = prompt_tokens + completion_tokens
        usage = UsageMetadata(
            input_tokens=prompt_tokens, output_tokens=completion_tokens, total_tokens=total
        )
        token_usage = {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": total,
        }
        return ChatResult(
            generations=[
                ChatGeneration(message=self._message(choice, usage)) for choice in choices
            ],
            llm_output={"token_usage": token_usage, "model_name": self.model_name},
        )

    def _message(self, choice: _Choice, usage: UsageMetadata) -> AIMessage:
        metadata: dict[str, Any] = {
            "finish_reason": choice.finish_reason,
            "model_name": self.model_name,
        }
        if choice.logprobs:
            metadata["logprobs"] = {"content": choice.logprobs}
        extra = {"reasoning_content": choice.reasoning} if choice.reasoning else {}
        return AIMessage(
            choice.text,
            additional_kwargs=extra,
            response_metadata=metadata,
            usage_metadata=usage,
        )


def open_gguf(path: str) -> LlamaCppChat:
    """The chat model of a `llamacpp:` string. Checks the beginning of the file, without loading it.

    Raises:
        ModelConfigurationError: If `xllamacpp` is missing, or the path is not a GGUF file.
    """
    problem = _problem_of(Path(path))
    if problem:
        missing = find_spec("xllamacpp") is None
        code = ErrorCode.MODEL_EXTRA if missing else ErrorCode.MODEL_UNKNOWN
        msg = f"model 'llamacpp:{path}': {problem}"
        raise ModelConfigurationError(msg, code=code)
    return LlamaCppChat(path=Path(path))


def _problem_of(file: Path) -> str:
    """Why a file cannot be loaded, and what to do; empty if it may be possible."""
    if find_spec("xllamacpp") is None:
        return f"llama.cpp is missing: {_INSTALL}"
    try:
        with file.expanduser().open("rb") as opened:
            magic = opened.read(len(_MAGIC))
    except FileNotFoundError:
        return f"there is no file {str(file)!r}; check the path (this is {str(Path.cwd())!r})"
    except OSError as error:
        return f"{str(file)!r} cannot be read ({error.strerror}); name a GGUF file"
    if magic != _MAGIC:
        return f"{str(file)!r} is not a GGUF file; convert or download the model as GGUF"
    return ""


@dataclass(kw_only=True)
class _Choice:
    """One answer, while it is generated."""

    text: str = ""
    reasoning: str = ""
    finish_reason: str = ""
    logprobs: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


@dataclass(frozen=True, kw_only=True)
class _Response:
    choices: list[_Choice]
    prompt_tokens: int
    completion_tokens: int


class _Engine:
    """One loaded model. Thread-safe, because llama.cpp's server queues requests."""

    def __init__(self, settings: LlamaCppChat) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._server: Any = None

    def complete(self, body: Mapping[str, Any], abandoned: threading.Event) -> _Response:
        """Answer one request. Blocks until it is answered or abandoned."""
        server = self._loaded()
        if abandoned.is_set():
            return _assemble([])
        chunks: list[dict[str, Any]] = []

        def collect(chunk: dict[str, Any]) -> bool:
            chunks.append(chunk)
            return abandoned.is_set()  # true ends the request and frees its slots

        # Streamed for two reasons. Only a stream can be ended early, and only a stream counts the
        # tokens of all answers; a plain response counts those of the first answer alone.
        request = {
            **body,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,
        }
        try:
            server.handle_chat_completions(request, collect)
        except ValueError as error:  # it cannot read the request: messages, schema, grammar
            raise LlamaCppError(str(error), status_code=400) from error
        for chunk in chunks:
            if "error" in chunk:
                problem: Mapping[str, Any] = chunk["error"]
                raise LlamaCppError(
                    str(problem.get("message", problem)),
                    status_code=int(problem.get("code") or 500),
                    kind=str(problem.get("type") or ""),
                )
        return _assemble(chunks)

    def close(self) -> None:
        """Unload; a later call loads again."""
        with self._lock:
            self._server = None

    def _loaded(self) -> Any:
        with self._lock:
            if self._server is None:
                self._server = _load(self._settings)
            return self._server


def _load(settings: LlamaCppChat) -> Any:
    """Load the model, which takes seconds.

    Raises:
        LlamaCppError: With status 404 if the model cannot be loaded, for whatever reason.
    """
    problem = _problem_of(settings.path)
    if problem:
        raise LlamaCppError(problem, status_code=404)
    # By name, since the package is an extra and has no types.
    library = import_module("xllamacpp")
    try:
        return library.Server(_params(library, settings))
    except RuntimeError as error:
        size = settings.path.expanduser().stat().st_size
        msg = (
            f"{str(settings.path)!r} ({size:,} bytes) does not load: it is cut off, damaged or of "
            f"an unknown kind, or memory is short; compare its size, and download it again"
        )
        raise LlamaCppError(msg, status_code=404) from error


def _params(library: Any, settings: LlamaCppChat) -> Any:
    params = library.CommonParams()
    params.model.path = str(settings.path.expanduser())
    params.n_ctx = settings.n_ctx
    params.n_parallel = settings.n_parallel
    # One pool of context for all answers: they share the cells of their prompt, where separate
    # contexts would each need room for all of it.
    params.kv_unified = True
    params.n_batch = params.n_ubatch = _BATCH
    params.verbosity = -1
    params.warmup = False
    params.fit_params = False
    params.cache_ram_mib = 0  # the default is up to 8 GB of old prompts
    if settings.n_threads is not None:
        params.cpuparams.n_threads = settings.n_threads
        params.cpuparams_batch.n_threads = settings.n_threads
    return params


def _assemble(chunks: Sequence[Mapping[str, Any]]) -> _Response:
    """The answers, from the chunks of their stream."""
    choices: dict[int, _Choice] = {}
    prompt_tokens = completion_tokens = 0
    for chunk in chunks:
        usage: Mapping[str, Any] = chunk.get("usage") or {}
        prompt_tokens = max(prompt_tokens, int(usage.get("prompt_tokens") or 0))
        completion_tokens += int(usage.get("completion_tokens") or 0)
        for piece in chunk.get("choices") or ():
            choice = choices.setdefault(int(piece["index"]), _Choice())
            delta: Mapping[str, Any] = piece.get("delta") or {}
            choice.text += delta.get("content") or ""
            choice.reasoning += delta.get("reasoning_content") or ""
            choice.logprobs += (piece.get("logprobs") or {}).get("content") or ()
            choice.finish_reason = piece.get("finish_reason") or choice.finish_reason
    return _Response(
        choices=[choices[index] for index in sorted(choices)],
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
    )


_LOCK = threading.Lock()
_ENGINES: dict[tuple[str, int, int, int | None], _Engine] = {}


def _engine_of(settings: LlamaCppChat) -> _Engine:
    """The one engine of this process for a file and its settings; not loaded yet."""
    key = (
        str(settings.path.expanduser().resolve()),
        settings.n_ctx,
        settings.n_parallel,
        settings.n_threads,
    )
    with _LOCK:
        return _ENGINES.setdefault(key, _Engine(settings))


@atexit.register
def close_engines() -> None:
    """Unload every engine of the process, which frees its memory; a later call loads again."""
    with _LOCK:
        engines = list(_ENGINES.values())
        _ENGINES.clear()
    for engine in engines:
        engine.close()
