"""K independent answers to one prompt: in one request where the model can, else concurrently."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from memguard.errors import BudgetExhaustedError
from memguard.llm.budget import Meter
from memguard.llm.call import CallSettings, request
from memguard.llm.metering import current_meter
from memguard.llm.parsing import Parse, read_answer
from memguard.schema.usage import Usage
from memguard.schema.verdict import Inconclusive

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

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
