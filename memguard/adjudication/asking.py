"""One question with a deadline: an answer, or the typed reason why there is none."""

import asyncio
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from langchain_core.messages import BaseMessage
from pydantic import BaseModel

from memguard.errors import BudgetExhaustedError
from memguard.llm.ask import Answer, ask
from memguard.llm.call import CallSettings
from memguard.llm.models import Model
from memguard.schema.ledger import Flag
from memguard.schema.usage import Usage
from memguard.schema.verdict import Inconclusive

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

SETTINGS = CallSettings(temperature=0.0, max_tokens=8192)
"""Temperature 0; room for a reasoning model's thoughts and about sixty rows."""


@dataclass(frozen=True, kw_only=True)
class Deadline:
    """When the model calls of a read have to be over, on the monotonic clock."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        """A deadline that many seconds from now."""
        return cls(at=time.monotonic() + seconds)

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline; 0 once it has passed."""
        return max(0.0, self.at - time.monotonic())


@dataclass(frozen=True, kw_only=True)
class AskResult(Generic[M]):
    """The outcome of one question."""

    answer: Answer[M]
    """The answer, or why there is none."""
    flag: Flag | None = None
    """What ended the question before there was an answer."""

    @property
    def may_improve(self) -> bool:
        """Whether a second answer may be better: not after a repair, and not after a failure."""
        value = self.answer.value
        failed = isinstance(value, Inconclusive) and value.reason != "truncated"
        return not (failed or self.answer.repaired)


async def ask_until(
    model: Model,
    messages: Sequence[BaseMessage],
    schema: type[M],
    *,
    deadline: Deadline,
    name: str,
    repair: bool,
) -> AskResult[M]:
    """Ask, and give up at the deadline or when the budget is spent.

    Raises:
        ModelConfigurationError: If no request to this model can succeed as it is set up.
    """
    try:
        async with asyncio.timeout(deadline.seconds_left):
            answer = await ask(model, messages, schema, settings=SETTINGS, name=name, repair=repair)
    # Both are outcomes, not errors: policy decides what a read without a verdict permits.
    except TimeoutError:
        why = Inconclusive(reason="timeout", detail="the deadline of the read had passed")
        return AskResult(answer=Answer(value=why, usage=Usage()), flag="adjudication_late")
    except BudgetExhaustedError as error:
        why = Inconclusive(reason="provider_error", detail=error.message)
        return AskResult(answer=Answer(value=why, usage=Usage()), flag="budget_spent")
    return AskResult(answer=answer)


async def gather_all(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All results in order, once all have ended; raises the first error, if there was one."""
    # Unlike a task group, nothing is cancelled: an answer that is being paid for is counted.
    results = await asyncio.gather(*work, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]
