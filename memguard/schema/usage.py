"""The cost of a run, and its limit."""

from typing import Annotated

from pydantic import Field

from memguard.schema.base import Frozen


class Usage(Frozen):
    """Model calls of one decision or run. Values add up with `+`."""

    calls: int = 0
    """Requests answered by the model, including repairs."""
    attempts: int = 0
    """Requests sent, including retries; never less than `calls`."""
    prompt_tokens: int = 0
    """Tokens read, as counted by the provider; a request for K answers reads its prompt once."""
    completion_tokens: int = 0
    """Tokens written, over all answers of a request."""
    latency: float = 0.0
    """Seconds spent waiting for answers, added over requests (not wall time)."""
    cost: float | None = None
    """Price in the currency of the price list given to the model layer; `None` when unknown."""

    def __add__(self, other: "Usage") -> "Usage":
        """Usage of two pieces of work together."""
        # Unknown prices count as nothing, but the sum of unknown prices alone stays unknown.
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            calls=self.calls + other.calls,
            attempts=self.attempts + other.attempts,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            latency=self.latency + other.latency,
            cost=sum(costs) if costs else None,
        )

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.prompt_tokens + self.completion_tokens


class Budget(Frozen):
    """The limits of one run; `None` sets no limit on that quantity.

    A run stops before the first request beyond a limit; finished work is kept.
    """

    calls: Annotated[int, Field(ge=0)] | None = None
    """Requests."""
    tokens: Annotated[int, Field(ge=0)] | None = None
    """Tokens read and written."""
    seconds: Annotated[float, Field(ge=0)] | None = None
    """Wall time since the run began."""
