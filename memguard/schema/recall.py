"""What is fetched from a store before anything is admitted: settings, and what came back."""

from typing import Annotated, Literal, Self

from pydantic import AliasChoices, Field, model_validator

from memguard.schema.base import Frozen, Namespace
from memguard.schema.config import UnitInterval
from memguard.schema.memory import Moment
from memguard.schema.read import RecalledMemory


class Recall(Frozen):
    """Settings of recall: which memories a read looks at. Ours; the paper states none."""

    k: Annotated[int, Field(ge=1, le=200)] | None = None
    """Memories of all namespaces together, not counting the additional safety constraints;
    `None`: as the admission says, which is 10 by default."""
    order: Literal["similarity", "latest"] = "similarity"
    """`similarity`: nearest to the query first, which needs a store with an index. `latest`: what
    was said last comes first, and every store will do."""
    since: Moment = None
    """Only what was said at this time or later; `None` for no beginning."""
    until: Moment = None
    """Only what was said before this time; `None` for no end."""
    current_only: bool = True
    """Leave out records marked as superseded."""
    min_score: UnitInterval = 0.0
    """Leave out what scores less; 0 leaves nothing out."""
    safety_k: Annotated[int, Field(ge=0, le=100)] = 5
    """Safety constraints (allergy, medication, accessibility) searched for in addition to the `k`
    nearest or latest, which would push them out; those among the `k` do not count. 0 turns the
    search off."""

    @model_validator(mode="after")
    def _window_in_order(self) -> Self:
        if self.since is not None and self.until is not None and self.since >= self.until:
            msg = f"since {self.since} is not before until {self.until}"
            raise ValueError(msg)
        return self


class Recalled(Frozen):
    """What a read looks at."""

    memories: tuple[RecalledMemory, ...] = ()
    """The nearest, then additional safety constraints, then copies of the same text. An additional
    one has a score only where its nearness to the query is known."""
    namespaces: tuple[Namespace, ...] = ()
    """The namespaces that were searched."""
    superseded: int = 0
    """Records left out because they are marked as superseded."""
    outside: int = 0
    """Records left out because they were said outside the time window."""
    below: int = 0
    """Records left out because they scored less than `min_score`."""
    textless: int = 0
    """Items left out because they hold no text."""
    additional: int = Field(default=0, validation_alias=AliasChoices("additional", "beside"))
    """Safety constraints that were not among the nearest."""
    notes: tuple[str, ...] = ()
    """What a reader should know."""
