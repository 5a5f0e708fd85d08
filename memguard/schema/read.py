"""What a read is about: the query with its dialogue and evidence, and what was recalled for it."""

import hashlib
from typing import Any, Literal

from pydantic import model_validator

from memguard.schema.base import Frozen, Namespace, Text
from memguard.schema.config import UnitInterval
from memguard.schema.memory import Moment, Provenance, Turn

Target = Literal["user", "third_party", "world"]
"""Whom or what the answer is about: the user, another person, or neither."""

Mode = Literal["factual", "recommendation", "planning", "support"]
"""What kind of answer is wanted: what is so, what to choose, how to arrange something, or help with
doing something."""


class Situation(Frozen):
    """What the query asks for, judged before any unit (arXiv 2610.11188, section 3.2)."""

    target: Target
    """Whom or what the answer is about."""
    mode: Mode
    """What kind of answer is wanted."""
    asks_view: bool = False
    """Whether the query asks for the user's own view. Ours; the order of FC needs it."""


class Evidence(Frozen):
    """Text that comes with the query: a tool's output, a search result, a document."""

    text: Text
    """What it says."""
    source: Text = ""
    """Where it is from."""
    at: Moment = None
    """When it is from."""


class RecalledMemory(Frozen):
    """A stored memory that was found for a query."""

    text: Text
    """The memory."""
    id: str = ""
    """Unique within a read; made from namespace, key and text when left out."""
    key: str = ""
    """Its key within the namespace."""
    namespace: Namespace = ()
    """Where it lives."""
    said_at: Moment = None
    """When it was said."""
    score: UnitInterval | None = None
    """Nearness to the query: the cosine, and 0 where that is negative; `None` if not ranked."""
    superseded: bool = False
    """Whether a later record took its place."""
    provenance: Provenance | None = None
    """Where it came from; `None` for a memory that memguard did not write."""

    @model_validator(mode="before")
    @classmethod
    def _plain_text(cls, value: Any) -> Any:
        return {"text": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _named(self) -> "RecalledMemory":
        if not self.id:
            parts = "\x1f".join((*self.namespace, "", self.key, "" if self.key else self.text))
            object.__setattr__(self, "id", hashlib.sha256(parts.encode()).hexdigest()[:16])
        return self


class ReadCase(Frozen):
    """Everything an adjudicator may look at besides the units."""

    query: Text
    """What is asked now."""
    dialogue: tuple[Turn, ...] = ()
    """The turns before it, oldest first. Never holds the evidence."""
    evidence: tuple[Evidence, ...] = ()
    """Text that came with the query."""
    now: Moment = None
    """When it is asked; `None` when nobody said."""
