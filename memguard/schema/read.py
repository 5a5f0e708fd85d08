"""What a read is about: the query with its dialogue and evidence, and what was recalled for it."""

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, cast

from pydantic import AliasChoices, Field, model_validator

from memguard.schema.base import Frozen, Namespace, Text, UnitInterval
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


Rendering = Literal["channels", "permission_notes", "neutral"]
"""How admitted units are put into the prompt.

* `channels`: sections headed by the kind of information, stating its use (CH).
* `permission_notes`: sections headed by what the section may be used for (PN).
* `neutral`: one flat list.
"""


class ReadSpec(Frozen):
    """What the read-time methods that adjudicate have in common.

    What is left out is what the preset says.
    """

    preset: Literal["default", "paper"] = "default"
    """Where settings that are left out come from; see `READ_PRESETS`."""
    rendering: Rendering = "channels"
    """How admitted units are put into the prompt."""
    k: Annotated[int, Field(ge=1, le=200)] = 10
    """Memories recalled for a query."""
    evidence_conflict: bool = True
    """Whether what the evidence contradicts is denied. Ours."""
    memory_conflict: bool = True
    """Whether of two units that cannot both hold the later wins, and both are uncertain where time
    does not decide. Ours."""
    safety: bool = True
    """Whether allergies, medication and accessibility needs fail open: never dropped for doubt,
    rank or room. Ours."""
    personalization_guard: bool = True
    """Whether a current preference of the user fails open, when something is recommended to or
    planned for the user. Ours."""
    max_units: Annotated[int, Field(ge=1)] | None = 30
    """Units shown; constraints come first and are never cut. `None` sets no limit."""
    max_tokens: Annotated[int, Field(ge=1)] | None = 1500
    """Tokens of the rendered section, estimated; constraints are never cut. `None`: no limit."""
    when_empty: Literal["empty", "line"] = "empty"
    """What is rendered when nothing is admitted: nothing at all, or one fixed line."""
    deadline: Annotated[float, Field(gt=0)] = 20.0
    """Seconds that the model calls of one read may take; then the read goes on without them."""
    repair: bool = True
    """Whether units without a usable row are asked for once more, these alone."""
    part_tokens: Annotated[int, Field(ge=200)] = 6000
    """Tokens of units in one call, estimated; more is split into several calls."""
    part_units: Annotated[int, Field(ge=1)] = 60
    """Units in one call: each takes a row of the answer."""
    dialogue_turns: Annotated[int, Field(ge=0, le=100)] = 10
    """Turns before the query that the adjudicator sees."""
    evidence_chars: Annotated[int, Field(ge=200)] = 24_000
    """Characters of evidence that the adjudicator sees; more is cut in the middle, with a flag."""

    @model_validator(mode="before")
    @classmethod
    def _from_preset(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        fields = cast("Mapping[str, Any]", given)
        return {**READ_PRESETS.get(str(fields.get("preset", "default")), {}), **fields}


READ_PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "paper": {
        "evidence_conflict": False,
        "memory_conflict": False,
        "safety": False,
        "personalization_guard": False,
        "max_units": None,
        "max_tokens": None,
    },
}
"""What each preset sets; `paper` is arXiv 2610.11188 as far as it is stated."""


class FactorCompiled(ReadSpec):
    """Settings of Factor-Compiled Admission: whole entries, judged by influence factors."""


class PermissionSemantic(ReadSpec):
    """Settings of Permission-Semantic Admission: typed units, each with a permission of its own."""


class RelevanceGate(Frozen):
    """Settings of the gate by relevance alone: what is near enough to the query is admitted.

    The paper's Gate arm as far as it is described (arXiv 2610.11188, section 4.1); an adaptation.
    """

    theta: UnitInterval = 0.4
    """Admit from this nearness on; tune it to the embedder."""
    k: Annotated[int, Field(ge=1, le=200)] = 10
    """Memories recalled for a query."""
    max_units: Annotated[int, Field(ge=1)] | None = None
    """Memories shown, nearest first."""
    when_empty: Literal["empty", "line"] = "empty"
    """What is rendered when nothing is admitted: nothing at all, or one fixed line."""


FACTOR_COMPILED_PRESETS: dict[str, FactorCompiled] = {
    "default": FactorCompiled(),
    "paper": FactorCompiled(preset="paper"),
}
"""`paper`: the paper's rules. `default`: with the switches and limits that are ours."""

PERMISSION_SEMANTIC_PRESETS: dict[str, PermissionSemantic] = {
    "default": PermissionSemantic(),
    "paper": PermissionSemantic(preset="paper"),
}
"""The same for PS."""


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
