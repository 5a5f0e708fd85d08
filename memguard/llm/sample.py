"""K independent answers to one prompt: in one request where the model can, else concurrently."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from memguard.errors import BudgetExhaustedError, ErrorCode
from memguard.llm.budget import Meter, current_meter
from memguard.llm.call import CallSettings, model_error, request
from memguard.llm.parsing import Parse, read_answer
from memguard.llm.yes_no import bare_token, yes_no_probability
from memguard.schema.decision import Inconclusive
from memguard.schema.usage import Usage

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage

    from memguard.llm.models import Model


T = TypeVar("T")

Settled = Callable[[Sequence[Any], int], bool]
"""`(answers so far, how many are still to come) -> whether the rest cannot matter`."""


@dataclass(frozen=True, kw_only=True)
class Samples(Generic[T]):
    """Answers to one prompt."""

    answers: tuple[T | Inconclusive, ...]
    """Those that were used, in the order they were asked for."""
    requested: int
    """K."""
    mode: Literal["n", "concurrent"]
    """One request for K answers, or K requests."""
    usage: Usage
    """What they cost; requests that were cancelled count as attempts."""
    notes: tuple[str, ...] = ()
    """What a receipt should say."""

    @property
    def used(self) -> int:
        """Answers used; less than K when sampling stopped early."""
        return len(self.answers)


async def sample(
    model: Model,
    messages: Sequence[BaseMessage],
    parse: Parse[T],
    *,
    k: int,
    settings: CallSettings | None = None,
    meter: Meter | None = None,
    settled: Settled | None = None,
    extra: Mapping[str, Any] | None = None,
    name: str = "memguard.sample",
) -> Samples[T]:
    """Draw K answers.

    One failing answer never cancels the others.

    Args:
        model: The model to ask.
        messages: The prompt, the same for all.
        parse: Reads a value out of an answer's text; see `memguard.llm.parsing`.
        k: How many answers, at least 1.
        settings: Sampling settings.
        meter: Counts what this spends; the run's own when left out.
        settled: Asked after each answer of concurrent sampling; when true, the requests still
            in flight are cancelled.
        extra: More settings of the request, for example `response_format`.
        name: Name of the run in callbacks and traces.

    Raises:
        ModelConfigurationError: If no request to this model can succeed as it is set up.
        BudgetExhaustedError: If the budget ran out before the answers sufficed.
    """
    scope = (meter or current_meter()).scope()
    draw = _Draw(
        model=model,
        messages=messages,
        parse=parse,
        settings=settings or CallSettings(),
        meter=scope,
        extra=dict(extra or {}),
        name=name,
    )
    mode: Literal["n", "concurrent"] = "concurrent"
    answers: list[T | Inconclusive] = []
    notes: dict[str, None] = {}
    if k > 1 and model.takes_n:
        answers, new_notes = await draw.together(k)
        notes.update(dict.fromkeys(new_notes))
        mode = "n" if len(answers) == k else "concurrent"
    elif k > 1:
        notes.update(dict.fromkeys(model.learned.notes(frozenset({"n"}))))
    if len(answers) < k:
        more, new_notes = await draw.apart(k - len(answers), answers, settled)
        answers += more
        notes.update(dict.fromkeys(new_notes))
    return Samples(
        answers=tuple(answers), requested=k, mode=mode, usage=scope.usage, notes=tuple(notes)
    )


@dataclass(frozen=True, kw_only=True)
class _Draw(Generic[T]):
    model: Model
    messages: Sequence[BaseMessage]
    parse: Parse[T]
    settings: CallSettings
    meter: Meter
    extra: dict[str, Any]
    name: str

    async def together(self, k: int) -> tuple[list[T | Inconclusive], tuple[str, ...]]:
        """One request for K answers; fewer come back from a model that ignores or refuses `n`."""
        answers, notes = await self._ask(n=k)
        if len(answers) < k:
            self.model.learned.refuse("n", note=f"{self.model.name} gives one answer per request")
            notes = (*notes, *self.model.learned.notes(frozenset({"n"})))
        return answers[:k], notes

    async def one(self) -> tuple[T | Inconclusive, tuple[str, ...]]:
        """One request for one answer."""
        answers, notes = await self._ask(n=1)
        return answers[0], notes

    async def _ask(self, *, n: int) -> tuple[list[T | Inconclusive], tuple[str, ...]]:
        extra = {**self.extra, "n": n} if n > 1 else self.extra
        reply = await request(
            self.model,
            self.messages,
            settings=self.settings,
            meter=self.meter,
            extra=extra,
            name=self.name,
        )
        if reply.failure is not None:
            return [reply.failure] * n, reply.notes
        return [read_answer(message, self.parse) for message in reply.messages], reply.notes

    async def apart(
        self, count: int, before: Sequence[T | Inconclusive], settled: Settled | None
    ) -> tuple[list[T | Inconclusive], list[str]]:
        """`count` requests at once; stops when the answers settle the matter."""
        if settled is not None and before and settled(before, count):
            return [], []
        tasks = [asyncio.create_task(self.one()) for _ in range(count)]
        try:
            return await _collect(tasks, before, settled)
        finally:
            for task in tasks:
                task.cancel()
            # Waited for, so that what they spent is on the meter when we return.
            await asyncio.gather(*tasks, return_exceptions=True)


async def _collect(
    tasks: Sequence[asyncio.Task[tuple[T | Inconclusive, tuple[str, ...]]]],
    before: Sequence[T | Inconclusive],
    settled: Settled | None,
) -> tuple[list[T | Inconclusive], list[str]]:
    pending, out_of_budget = set(tasks), None
    done: list[asyncio.Task[tuple[T | Inconclusive, tuple[str, ...]]]] = []
    while pending:
        finished, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in finished:
            error = task.exception()
            if isinstance(error, BudgetExhaustedError):
                # Those already in flight are paid for, and may suffice.
                out_of_budget = error
            elif error is not None:
                raise error
        done = [one for one in tasks if one.done() and one.exception() is None]
        if settled is not None and settled(
            [*before, *(one.result()[0] for one in done)], len(tasks) - len(done)
        ):
            break
    else:
        if out_of_budget is not None:
            raise out_of_budget
    return [one.result()[0] for one in done], [note for one in done for note in one.result()[1]]


TOP_TOKENS = 20
"""Tokens asked for at each position; the most OpenAI gives."""

_DEFAULT_SETTINGS = CallSettings(temperature=0.0)
_CLOSER = re.compile(r"</(?:think(?:ing)?|reasoning)\s*>", re.IGNORECASE)
_OPENER = re.compile(r"<(?:think(?:ing)?|reasoning)\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class LogprobAnswer:
    """A probability, with the tokens it was computed from."""

    probability: float | Inconclusive
    """The probability of yes, in [0, 1]."""
    top: tuple[tuple[str, float], ...]
    """The top tokens at the answer position with their log-probabilities."""
    usage: Usage
    """What it cost."""
    notes: tuple[str, ...] = ()
    """What a receipt should say."""


async def yes_no_logprob(
    model: Model,
    messages: Sequence[BaseMessage],
    *,
    settings: CallSettings | None = None,
    meter: Meter | None = None,
    name: str = "memguard.logprob",
) -> LogprobAnswer:
    """Ask a yes/no question and read the probability of yes.

    Args:
        model: A model whose server returns log-probabilities.
        messages: The prompt; it should ask for `yes` or `no` and nothing else.
        settings: Sampling settings; temperature 0 when left out.
        meter: Counts what this spends; the run's own when left out.
        name: Name of the run in callbacks and traces.

    Raises:
        ModelConfigurationError: If the model gives no log-probabilities, or cannot be used at all.
        BudgetExhaustedError: If the request would begin beyond a limit of the run.
    """
    scope = (meter or current_meter()).scope()
    reply = await request(
        model,
        messages,
        settings=settings or _DEFAULT_SETTINGS,
        meter=scope,
        extra={"logprobs": True, "top_logprobs": TOP_TOKENS},
        name=name,
    )
    if reply.failure is not None:
        return LogprobAnswer(
            probability=reply.failure, top=(), usage=scope.usage, notes=reply.notes
        )
    message = reply.messages[0]
    refused = read_answer(message, lambda text: text)
    tokens = _tokens(message)
    if isinstance(refused, Inconclusive) and refused.reason == "refusal":
        top_or_reason: tuple[tuple[str, float], ...] | Inconclusive = refused
    elif not tokens:
        error = model_error(
            model, code=ErrorCode.MODEL_LOGPROBS, detail="the answer came without any"
        )
        scope.fail(error)
        raise error
    else:
        top_or_reason = top_at_answer(tokens)
    top = () if isinstance(top_or_reason, Inconclusive) else top_or_reason
    return LogprobAnswer(
        probability=top_or_reason
        if isinstance(top_or_reason, Inconclusive)
        else yes_no_probability(top_or_reason),
        top=top,
        usage=scope.usage,
        notes=reply.notes,
    )


def _tokens(message: AIMessage) -> list[Mapping[str, Any]]:
    logprobs: Any = message.response_metadata.get("logprobs") or {}
    content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    return [token for token in content or () if isinstance(token, Mapping)]


def top_at_answer(
    tokens: Sequence[Mapping[str, Any]],
) -> tuple[tuple[str, float], ...] | Inconclusive:
    """The top tokens at the first token that is an answer: past reasoning, space and markup.

    Args:
        tokens: As in OpenAI's `logprobs.content`: `token`, `logprob`, `top_logprobs`.
    """
    for token in tokens[_after_reasoning(tokens) :]:
        if bare_token(str(token.get("token") or "")):
            return _with_chosen(token)
    return Inconclusive(reason="parse_failure", detail="the answer holds no token of text")


def _after_reasoning(tokens: Sequence[Mapping[str, Any]]) -> int:
    """The first position behind the last closing tag; behind everything if none closes."""
    text, ends = "", list[int]()
    for token in tokens:
        text += str(token.get("token") or "")
        ends.append(len(text))
    closers = list(_CLOSER.finditer(text))
    if closers:
        return next(i for i, end in enumerate(ends) if end >= closers[-1].end()) + 1
    return len(tokens) if _OPENER.search(text) else 0


def _with_chosen(token: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    """The top tokens, and the one that was chosen, where it is not among them."""
    pairs = [
        (str(one.get("token")), float(one.get("logprob") or 0.0))
        for one in token.get("top_logprobs") or ()
    ]
    chosen = (str(token.get("token")), float(token.get("logprob") or 0.0))
    if all(name != chosen[0] for name, _ in pairs):
        pairs.append(chosen)
    return tuple(pairs)
