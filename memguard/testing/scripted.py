"""A chat model that answers from a script, and fails on a call that is not in the script."""

import asyncio
import contextlib
import functools
import itertools
import json
import re
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult, LLMResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from memguard.llm.texts import text_of

ScriptStep: TypeAlias = (
    "str | AIMessage | BaseModel | Mapping[str, Any] | Exception | Callable[..., Any]"
)
"""One answer: text, a message, an object (sent as JSON), an error to raise, or a function of the
messages that returns one of these."""

ScriptRule: TypeAlias = "tuple[str | re.Pattern[str] | Callable[[str], bool], ScriptStep]"
"""A prompt and its answer: a regular expression or a predicate on the text of all messages."""

_COUNTER = itertools.count(1)


class ScriptError(BaseException):
    """A script is wrong, so the test must fail.

    Not an `Exception`: code under test catches whatever a provider may raise, and would take the
    mistake in the test for a failure of the model.
    """


class UnexpectedModelCallError(ScriptError):
    """The scripted model was called once more than the script foresees."""


@dataclass(frozen=True)
class ScriptedCall:
    """One call, as the model received it."""

    messages: tuple[BaseMessage, ...]
    """The prompt."""
    kwargs: Mapping[str, Any]
    """The settings of the call."""

    @functools.cached_property
    def text(self) -> str:
        """The text of all messages."""
        return "\n".join(text_of(message) for message in self.messages)


@dataclass(eq=False)
class _Script:
    """The state that changes with each call; copies of the model share it."""

    steps: list[ScriptStep]
    calls: list[ScriptedCall] = field(default_factory=list)
    used_rules: set[int] = field(default_factory=set)
    unexpected: int = 0
    error: ScriptError | None = None
    in_flight: int = 0
    high_water: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    address: str = ""


class ScriptedChatModel(BaseChatModel):
    """Answers from a script.

    ```python
    model = ScriptedChatModel(["0.9", {"score": 0.1}, TimeoutError()])
    ...
    model.assert_consumed()
    ```

    Rules come first: a call whose prompt matches a rule gets its answer, every time. Use them for
    parallel calls, whose order is not fixed. Any other call takes the next step.
    """

    # Steps may be exceptions and functions.
    model_config = ConfigDict(arbitrary_types_allowed=True)

    steps: list[Any] = Field(default_factory=list[Any])
    """Answers in order, one per call; see `ScriptStep`."""
    rules: list[Any] = Field(default_factory=list[Any])
    """Answers by prompt; see `ScriptRule`."""
    model_name: str = "scripted"
    """The name on receipts, as `scripted:<name>`."""
    supports_n: bool = False
    """Whether one call may request several answers; each of them takes a step."""
    latency: float = 0.0
    """Seconds that each call takes."""
    reports_usage: bool = True
    """Whether answers have token counts; a word counts as a token."""

    _script: _Script = PrivateAttr()

    def __init__(self, steps: Sequence[ScriptStep] = (), **settings: Any) -> None:
        """Create a model from a script.

        Args:
            steps: Answers in order.
            settings: Values of the other fields.
        """
        super().__init__(steps=list(steps), **settings)  # pyright: ignore[reportCallIssue] - a field
        self._script = _Script(steps=list(steps), address=f"scripted://{next(_COUNTER)}")

    @property
    def base_url(self) -> str:
        """A unique address, so that two scripted models do not share a limiter."""
        return self._script.address

    @property
    def calls(self) -> list[ScriptedCall]:
        """The calls so far, in order."""
        return self._script.calls

    @property
    def high_water(self) -> int:
        """The largest number of calls that were in flight at once."""
        return self._script.high_water

    def assert_consumed(self) -> None:
        """Fail if a step or a rule was never used, or a call was not in the script."""
        script = self._script
        unused = [rule[0] for i, rule in enumerate(self.rules) if i not in script.used_rules]
        assert not script.unexpected, f"{script.unexpected} calls were not in the script"
        assert not script.steps, f"{len(script.steps)} steps were not used: {script.steps!r}"
        assert not unused, f"rules that were not used: {unused!r}"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        """The model with tools; to call one, put an `AIMessage` with tool calls in the script."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _combine_llm_outputs(self, llm_outputs: list[dict[str, Any] | None]) -> dict[str, Any]:
        # The base class returns nothing, which would lose the token counts.
        return next((output for output in llm_outputs if output), {})

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del stop, run_manager
        with self._in_flight(messages, kwargs) as steps:
            time.sleep(self.latency)
            return self._result(messages, steps)

    async def agenerate(self, *args: Any, **kwargs: Any) -> LLMResult:
        """As LangChain's, which loses an error that is not an `Exception` on its way."""
        try:
            return await super().agenerate(*args, **kwargs)
        except Exception as error:
            if self._script.error is not None:
                raise self._script.error from error
            raise

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        del stop, run_manager
        with self._in_flight(messages, kwargs) as steps:
            await asyncio.sleep(self.latency)
            return self._result(messages, steps)

    @contextlib.contextmanager
    def _in_flight(
        self, messages: list[BaseMessage], kwargs: Mapping[str, Any]
    ) -> Generator[list[ScriptStep]]:
        """Record a call while it lasts, and remove its answers from the script."""
        script = self._script
        call = ScriptedCall(tuple(messages), dict(kwargs))
        count = int(kwargs.get("n") or 1) if self.supports_n else 1
        # Parallel nodes of a graph call the model from several threads. The steps are taken in the
        # order in which calls begin, not in that of their latency.
        with script.lock:
            script.calls.append(call)
            steps = [self._take(call) for _ in range(count)]
            script.in_flight += 1
            script.high_water = max(script.high_water, script.in_flight)
        try:
            yield steps
        finally:
            with script.lock:
                script.in_flight -= 1

    def _take(self, call: ScriptedCall) -> ScriptStep:
        script = self._script
        for i, (prompt, step) in enumerate(self.rules):
            matches = prompt(call.text) if callable(prompt) else re.search(prompt, call.text)
            if matches:
                script.used_rules.add(i)
                return step
        if script.steps:
            return script.steps.pop(0)
        # Counted as well as raised, because the code under test may catch any error.
        script.unexpected += 1
        msg = f"call {len(script.calls)} is not in the script; its prompt: {call.text[-500:]!r}"
        script.error = UnexpectedModelCallError(msg)
        raise script.error

    def _result(self, messages: list[BaseMessage], steps: Sequence[ScriptStep]) -> ChatResult:
        try:
            answers = [_message(step, messages) for step in steps]
        # A function of the script may assert; code under test would catch it as a provider's error.
        except AssertionError as error:
            self._script.error = ScriptError(f"an assertion in the script failed: {error}")
            raise self._script.error from error
        generations = [ChatGeneration(message=answer) for answer in answers]
        if not self.reports_usage:
            return ChatResult(generations=generations)
        read = sum(_words(message) for message in messages)
        written = sum(_words(answer) for answer in answers)
        for answer in answers:
            answer.usage_metadata = {
                "input_tokens": read,
                "output_tokens": written,
                "total_tokens": read + written,
            }
        usage = {"prompt_tokens": read, "completion_tokens": written}
        return ChatResult(generations=generations, llm_output={"token_usage": usage})


def _message(step: ScriptStep, messages: list[BaseMessage]) -> AIMessage:
    if isinstance(step, Exception):
        raise step
    if isinstance(step, AIMessage):
        # A copy, because LangChain writes metadata into the message.
        return step.model_copy(deep=True)
    if isinstance(step, str):
        return AIMessage(step)
    if isinstance(step, BaseModel):
        return AIMessage(step.model_dump_json())
    if isinstance(step, Mapping):
        return AIMessage(json.dumps(step))
    return _message(cast("ScriptStep", step(messages)), messages)


def _words(message: BaseMessage) -> int:
    return len(text_of(message).split())
