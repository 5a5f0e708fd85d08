"""Asking a model within the deadline and the budget of a read; every outcome is typed."""

import asyncio
import math
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, ValidationError

from memguard.errors import BudgetExhaustedError
from memguard.llm.ask import ParsedAnswer, ask
from memguard.llm.call import CallSettings
from memguard.llm.models import Model
from memguard.llm.parsing import Parse, parse_json
from memguard.methods.adjudication.truncated import entries_before_end
from memguard.schema.decision import Inconclusive
from memguard.schema.read_flags import Flag
from memguard.schema.receipt import Usage

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

SETTINGS = CallSettings(temperature=0.0, max_tokens=8192)
"""Temperature 0; room for a reasoning model's thoughts and about sixty rows."""


@dataclass(frozen=True, kw_only=True)
class AskResult(Generic[M]):
    """The outcome of one question."""

    answer: ParsedAnswer[M]
    """The answer, or why there is none."""
    flag: Flag | None = None
    """What ended the question before there was an answer."""

    @property
    def may_improve(self) -> bool:
        """Whether a second answer may be better: not after a repair, and not after a failure."""
        value = self.answer.value
        failed = isinstance(value, Inconclusive) and value.reason != "truncated"
        return not (failed or self.answer.repaired)


@dataclass
class PartialParser(Generic[M]):
    """Reads an answer of a schema, and keeps what one that ends too early says before its end."""

    schema: type[M]
    name: str
    """The list of the schema that may be incomplete."""
    before_end: M | None = None
    """The answer with the complete entries of that list; `None` where there are none."""

    def __call__(self, text: str) -> M | Inconclusive:
        """The whole answer."""
        value = parse_json(text, self.schema)
        self.before_end = None
        if isinstance(value, Inconclusive):
            entries = entries_before_end(text, name=self.name)
            try:
                self.before_end = self.schema.model_validate(entries) if entries else None
            except ValidationError:
                # The members before the list do not fit, so the rest is not to be trusted either.
                self.before_end = None
        return value


async def ask_until(
    model: Model,
    messages: Sequence[BaseMessage],
    schema: type[M],
    *,
    deadline: float,
    name: str,
    repair: bool,
    parse: Parse[M] | None = None,
) -> AskResult[M]:
    """Ask, and give up at the deadline or when the budget is spent.

    Args:
        model: The model.
        messages: The rendered prompt.
        schema: The form of the answer.
        deadline: When to give up, on the clock of the event loop; infinite for never.
        name: Names the call in traces.
        repair: Whether a malformed answer is requested once more.
        parse: Reads the answer, where it is more than one JSON object of the schema.

    Raises:
        ModelConfigurationError: If no request to this model can succeed as it is set up.
    """
    try:
        async with asyncio.timeout_at(None if math.isinf(deadline) else deadline):
            answer = await ask(
                model,
                messages,
                schema,
                settings=SETTINGS,
                name=name,
                repair=repair,
                parse=parse,
            )
    # Both are outcomes, not errors: policy decides what a read without a verdict permits.
    except TimeoutError:
        why = Inconclusive(reason="timeout", detail="the deadline of the read had passed")
        return AskResult(answer=ParsedAnswer(value=why, usage=Usage()), flag="adjudication_late")
    except BudgetExhaustedError as error:
        why = Inconclusive(reason="provider_error", detail=error.message)
        return AskResult(answer=ParsedAnswer(value=why, usage=Usage()), flag="budget_spent")
    return AskResult(answer=answer)


async def gather_all(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All results in order, once all have ended; raises the first error, if there was one."""
    # Unlike a task group, nothing is cancelled: an answer that is being paid for is counted.
    results = await asyncio.gather(*work, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]
