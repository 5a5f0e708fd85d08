"""Sampling: K independent answers to one prompt, or the probability of one yes/no answer.

`sample` draws K answers in one request where the model supports it, else in concurrent requests
that stop early once the result is decided. `yes_no_logprob` reads the probability of "yes" from
the log-probabilities of one answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from memguard.errors import BudgetExhaustedError, ErrorCode
from memguard.llm.call import TEMPERATURE_ZERO, CallSettings, Metered, model_error, request
from memguard.llm.limits import Meter, current_meter
from memguard.llm.parsing import Parse, read_answer
from memguard.llm.texts import end_of_reasoning
from memguard.llm.yes_no import bare_token, yes_no_probability
from memguard.schema.decision import Inconclusive

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage

    from memguard.llm.models import Model


T = TypeVar("T")

StopRule = Callable[[Sequence[Any], int], bool]
"""`(answers so far, number of answers to come) -> whether those cannot change the result`."""

_Drawn: TypeAlias = tuple[list[T | Inconclusive], tuple[str, ...]]
"""Answers, and notes for the receipt."""

TOP_TOKENS = 20
"""Alternatives requested at each position; the maximum of OpenAI's API."""


@dataclass(frozen=True, kw_only=True)
class Samples(Metered, Generic[T]):
    """Answers to one prompt."""

    answers: tuple[T | Inconclusive, ...]
    """The answers that were used, in the order of their requests."""
    requested: int
    """K."""
    mode: Literal["n", "concurrent"]
    """One request for K answers, or K requests."""

    @property
    def used(self) -> int:
        """The number of answers; less than K if sampling stopped early."""
        return len(self.answers)


async def sample(
    model: Model,
    messages: Sequence[BaseMessage],
    parse: Parse[T],
    *,
    k: int,
    settings: CallSettings | None = None,
    meter: Meter | None = None,
    stop: StopRule | None = None,
) -> Samples[T]:
    """Draw K answers.

    One failing answer never cancels the others.

    Args:
        model: The model to ask.
        messages: The prompt, the same for all answers.
        parse: Reads a value from the text of an answer; see `memguard.llm.parsing`.
        k: The number of answers, at least 1.
        settings: Sampling settings.
        meter: Counts the usage; the meter of the run by default.
        stop: Called after each answer of concurrent sampling; if true, the requests in flight are
            cancelled.

    Raises:
        ModelConfigurationError: If no request to this model can succeed with its configuration.
        BudgetExhaustedError: If the budget is spent before `stop` is true.
    """
    scope = (meter or current_meter()).scope()

    async def draw(n: int) -> _Drawn[T]:
        reply = await request(
            model,
            messages,
            settings=settings or CallSettings(),
            meter=scope,
            extra={"n": n} if n > 1 else None,
            name="memguard.sample",
        )
        if reply.failure is not None:
            return [reply.failure] * n, reply.notes
        return [read_answer(message, parse) for message in reply.messages], reply.notes

    mode: Literal["n", "concurrent"] = "concurrent"
    answers: list[T | Inconclusive] = []
    notes: tuple[str, ...] = ()
    if k > 1 and model.takes_n:
        answers, notes = await draw(k)
        if len(answers) >= k:
            answers, mode = answers[:k], "n"
        else:
            # The server ignored `n`, or has just refused it. The answers that came are used.
            model.state.refuse("n", note=f"{model.name} gives one answer per request")
    if mode == "concurrent" and k > 1:
        notes = (*notes, *model.state.notes(frozenset({"n"})))
    if len(answers) < k:
        more, new_notes = await _concurrently(draw, k - len(answers), answers, stop)
        answers, notes = [*answers, *more], (*notes, *new_notes)
    return Samples(
        answers=tuple(answers),
        requested=k,
        mode=mode,
        usage=scope.usage,
        notes=tuple(dict.fromkeys(notes)),
    )


async def _concurrently(
    draw: Callable[[int], Coroutine[Any, Any, _Drawn[T]]],
    count: int,
    before: Sequence[T | Inconclusive],
    stop: StopRule | None,
) -> _Drawn[T]:
    """`count` requests at once, in addition to the answers `before`, until `stop` is true."""
    if stop is not None and before and stop(before, count):
        return [], ()
    tasks = [asyncio.create_task(draw(1)) for _ in range(count)]
    try:
        return await _collect(tasks, before, stop)
    finally:
        for task in tasks:
            task.cancel()
        # Awaited, so that their usage is on the meter when this returns.
        await asyncio.gather(*tasks, return_exceptions=True)


async def _collect(
    tasks: Sequence[asyncio.Task[_Drawn[T]]],
    before: Sequence[T | Inconclusive],
    stop: StopRule | None,
) -> _Drawn[T]:
    pending, out_of_budget = set(tasks), None
    answers: list[T | Inconclusive] = []
    notes: list[str] = []
    while pending:
        finished, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in finished:
            error = task.exception()
            if isinstance(error, BudgetExhaustedError):
                # The requests in flight are paid for, and their answers may suffice.
                out_of_budget = error
            elif error is not None:
                raise error
        # By request, not by arrival, so that equal answers give equal reports.
        results = [task.result() for task in tasks if task.done() and task.exception() is None]
        answers = [answer for drawn, _ in results for answer in drawn]
        notes = [note for _, new_notes in results for note in new_notes]
        if stop is not None and stop([*before, *answers], len(tasks) - len(results)):
            break
    else:
        if out_of_budget is not None:
            raise out_of_budget
    return answers, tuple(notes)


@dataclass(frozen=True, kw_only=True)
class LogprobAnswer(Metered):
    """A probability, with the tokens it was computed from."""

    probability: float | Inconclusive
    """The probability of yes, in [0, 1]."""
    top: tuple[tuple[str, float], ...]
    """The top tokens at the answer position with their log-probabilities."""


async def yes_no_logprob(
    model: Model,
    messages: Sequence[BaseMessage],
    *,
    settings: CallSettings | None = None,
    meter: Meter | None = None,
) -> LogprobAnswer:
    """Ask a yes/no question and read the probability of yes.

    The server has to return log-probabilities, and the prompt should ask for `yes` or `no` and
    nothing else. The temperature is 0 by default; the other arguments are as in `sample`.

    Raises:
        ModelConfigurationError: If the model gives no log-probabilities, or cannot be used at all.
        BudgetExhaustedError: If the request would start beyond a limit of the run.
    """
    scope = (meter or current_meter()).scope()
    reply = await request(
        model,
        messages,
        settings=settings or TEMPERATURE_ZERO,
        meter=scope,
        extra={"logprobs": True, "top_logprobs": TOP_TOKENS},
        name="memguard.logprob",
    )
    if reply.failure is not None:
        return LogprobAnswer(
            probability=reply.failure, top=(), usage=scope.usage, notes=reply.notes
        )
    message = reply.messages[0]
    top: tuple[tuple[str, float], ...] = ()
    # Only a refusal matters here: one token has no form that could fail to parse.
    probability = read_answer(message, lambda _: 0.0)
    if not (isinstance(probability, Inconclusive) and probability.reason == "refusal"):
        tokens = _tokens(message)
        if not tokens:
            error = model_error(
                model, code=ErrorCode.MODEL_LOGPROBS, detail="the answer came without any"
            )
            scope.fail(error)
            raise error
        at_answer = top_at_answer(tokens)
        if isinstance(at_answer, Inconclusive):
            probability = at_answer
        else:
            top, probability = at_answer, yes_no_probability(at_answer)
    return LogprobAnswer(probability=probability, top=top, usage=scope.usage, notes=reply.notes)


def _tokens(message: AIMessage) -> list[Mapping[str, Any]]:
    logprobs: Any = message.response_metadata.get("logprobs") or {}
    content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    return [token for token in content or () if isinstance(token, Mapping)]


def top_at_answer(
    tokens: Sequence[Mapping[str, Any]],
) -> tuple[tuple[str, float], ...] | Inconclusive:
    """The top tokens at the first token that is an answer: past reasoning, space and markup.

    The tokens are as in OpenAI's `logprobs.content`: `token`, `logprob`, `top_logprobs`.
    """
    for token in tokens[_after_reasoning(tokens) :]:
        if bare_token(str(token.get("token") or "")):
            return _with_chosen(token)
    return Inconclusive(reason="parse_failure", detail="the answer has no token of text")


def _after_reasoning(tokens: Sequence[Mapping[str, Any]]) -> int:
    """The index of the first token after the reasoning; past the end if it is never closed."""
    texts = [str(token.get("token") or "") for token in tokens]
    reasoning_end = end_of_reasoning("".join(texts))
    # A tag may be spread over several tokens, so positions are compared and not tokens.
    ends = accumulate(map(len, texts), initial=0)
    return next(i for i, end in enumerate(ends) if end >= reasoning_end)


def _with_chosen(token: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    """The top tokens, and the sampled one if it is not among them."""
    *pairs, sampled = (
        (str(entry.get("token")), float(entry.get("logprob") or 0.0))
        for entry in (*(token.get("top_logprobs") or ()), token)
    )
    # Sampling may pick a token of low probability, which the provider does not list.
    if all(name != sampled[0] for name, _ in pairs):
        pairs.append(sampled)
    return tuple(pairs)
