"""The input of a read: the query and its context, recalled memories, and the methods' settings."""

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, cast

from pydantic import AliasChoices, Field, model_validator

from memguard.schema.base import Frozen, Namespace, Text, UnitInterval
from memguard.schema.memory import Moment, Provenance, Turn

Target = Literal["user", "third_party", "world"]
"""The subject of the answer: the user, another person, or neither."""

Mode = Literal["factual", "recommendation", "planning", "support"]
"""The kind of answer: a fact, a recommendation, a plan, or help with a task."""


class Situation(Frozen):
    """What the query asks for, judged before any unit (arXiv 2610.11188, section 3.2)."""

    target: Target
    """The subject of the answer."""
    mode: Mode
    """The kind of answer."""
    # Not in the paper, but FC's order of rules needs it.
    asks_view: bool = False
    """Whether the query asks for the user's own view. Ours."""


class Evidence(Frozen):
    """Text that comes with the query: a tool's output, a search result, a document."""

    text: Text
    """The text."""
    source: Text = ""
    """Its source."""
    at: Moment = None
    """Its time."""


class RecalledMemory(Frozen):
    """A stored memory that was found for a query."""

    text: Text
    """The memory."""
    id: str = ""
    """Unique within a read; computed from namespace, key and text if left out."""
    key: str = ""
    """Its key within the namespace."""
    namespace: Namespace = ()
    """Its namespace."""
    said_at: Moment = None
    """The time of its source."""
    score: UnitInterval | None = None
    """Similarity to the query: the cosine, or 0 if that is negative; `None` if not ranked."""
    superseded: bool = False
    """Whether a later record supersedes it."""
    provenance: Provenance | None = None
    """Its origin; `None` for a memory that memguard did not write."""

    @model_validator(mode="before")
    @classmethod
    def _plain_text(cls, value: Any) -> Any:
        return {"text": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _named(self) -> "RecalledMemory":
        if not self.id:
            # A memory without a key, such as one that the caller passed, is identified by its text.
            parts = "\x1f".join((*self.namespace, "", self.key, "" if self.key else self.text))
            # Pydantic refuses an assignment to a frozen model, even in its own validator.
            object.__setattr__(self, "id", hashlib.sha256(parts.encode()).hexdigest()[:16])
        return self


class ReadCase(Frozen):
    """The input of an adjudicator, apart from the units."""

    query: Text
    """The query."""
    dialogue: tuple[Turn, ...] = ()
    """The turns before it, oldest first, without the evidence."""
    evidence: tuple[Evidence, ...] = ()
    """Text that came with the query."""
    now: Moment = None
    """The time of the query; `None` if unknown."""


Rendering = Literal["channels", "permission_notes", "neutral"]
"""The form of admitted units in the prompt.

* `channels`: sections whose headings name the kind of information and its use (CH).
* `permission_notes`: sections whose headings state what the section may be used for (PN).
* `neutral`: one flat list.
"""


class ReadSpec(Frozen):
    """The common settings of the read-time methods that adjudicate.

    The preset gives the settings that are left out.
    """

    preset: Literal["default", "paper"] = "default"
    """The source of settings that are left out; see `READ_PRESETS`."""
    rendering: Rendering = "channels"
    """The form of admitted units in the prompt."""
    k: Annotated[int, Field(ge=1, le=200)] = 10
    """The number of memories recalled for a query."""
    evidence_conflict: bool = True
    """Whether a unit that the evidence contradicts is denied. Ours."""
    memory_conflict: bool = True
    """Whether of two contradictory units the later one wins; without times, both become uncertain.
    Ours."""
    safety: bool = True
    """Whether allergies, medication and accessibility needs fail open: they are never dropped
    because of doubt, rank or limits. Ours."""
    personalization_guard: bool = True
    """Whether current preferences of the user fail open in recommendations and plans for the user.
    Ours."""
    max_units: Annotated[int, Field(ge=1)] | None = 30
    """Maximum number of units in the prompt; constraints come first and are never dropped. `None`
    sets no limit."""
    max_tokens: Annotated[int, Field(ge=1)] | None = 1500
    """Maximum of estimated tokens in the rendered section; constraints are never dropped. `None`
    sets no limit."""
    when_empty: Literal["empty", "line"] = "empty"
    """The section if nothing is admitted: none at all, or one fixed line."""
    deadline: Annotated[float, Field(gt=0)] = 20.0
    """Seconds that the model calls of one read may take; the read then continues without them."""
    repair: bool = True
    """Whether units without a usable row are sent to the model once more."""
    part_tokens: Annotated[int, Field(ge=200)] = 6000
    """Estimated tokens of units in one call; more units are split into several calls."""
    part_units: Annotated[int, Field(ge=1)] = 60
    """Maximum number of units in one call; each takes a row of the answer."""
    dialogue_turns: Annotated[int, Field(ge=0, le=100)] = 10
    """Turns before the query in the adjudicator's prompt."""
    evidence_chars: Annotated[int, Field(ge=200)] = 24_000
    """Characters of evidence in the adjudicator's prompt. Longer evidence loses its middle, and the
    report gets a flag."""

    @model_validator(mode="before")
    @classmethod
    def _from_preset(cls, value: Any) -> Any:
        # Before validation, so that the fields that the caller set can be told from the defaults.
        if not isinstance(value, Mapping):
            return value
        fields = cast("Mapping[str, Any]", value)
        return {**READ_PRESETS.get(str(fields.get("preset", "default")), {}), **fields}


READ_PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    # What is ours is off, and the paper states no limits.
    "paper": {
        "evidence_conflict": False,
        "memory_conflict": False,
        "safety": False,
        "personalization_guard": False,
        "max_units": None,
        "max_tokens": None,
    },
}
"""The settings of each preset; `paper` follows arXiv 2610.11188 as far as it is specified."""


class FactorCompiled(ReadSpec):
    """Settings of Factor-Compiled Admission: whole entries, judged by influence factors."""


class PermissionSemantic(ReadSpec):
    """Settings of Permission-Semantic Admission: typed units, each with a permission of its own."""


class RelevanceGate(Frozen):
    """Settings of the relevance gate, which admits memories that are similar to the query.

    An adaptation of the paper's Gate arm, as far as it is described (arXiv 2610.11188, section
    4.1).
    """

    theta: UnitInterval = 0.4
    """The minimum similarity; tune it to the embedder."""
    k: Annotated[int, Field(ge=1, le=200)] = 10
    """The number of memories recalled for a query."""
    max_units: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of memories in the prompt, nearest first."""
    when_empty: Literal["empty", "line"] = "empty"
    """The section if nothing is admitted: none at all, or one fixed line."""


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
    """Settings of recall, which selects the memories of a read. Ours; the paper states none."""

    k: Annotated[int, Field(ge=1, le=200)] | None = None
    """Number of memories from all namespaces together, in addition to which safety constraints are
    recalled; `None` for the `k` of the admission, which is 10 by default."""
    order: Literal["similarity", "latest"] = "similarity"
    """`similarity`: nearest to the query first, which needs a store with an index. `latest`: newest
    first, which works with every store."""
    since: Moment = None
    """The earliest time of a memory's source, inclusive; `None` for no limit."""
    until: Moment = None
    """The latest time of a memory's source, exclusive; `None` for no limit."""
    current_only: bool = True
    """Leave out records marked as superseded."""
    min_score: UnitInterval = 0.0
    """Leave out memories with a lower score; 0 leaves none out."""
    safety_k: Annotated[int, Field(ge=0, le=100)] = 5
    """Number of safety constraints (allergy, medication, accessibility) recalled in addition to the
    `k` memories; constraints among the `k` do not count. 0 turns this search off."""

    @model_validator(mode="after")
    def _window_in_order(self) -> Self:
        if self.since is not None and self.until is not None and self.since >= self.until:
            msg = f"since {self.since} is not before until {self.until}"
            raise ValueError(msg)
        return self


class Recalled(Frozen):
    """The result of recall."""

    memories: tuple[RecalledMemory, ...] = ()
    """The nearest, then additional safety constraints, then copies of the same text. An additional
    constraint has a score only if its similarity to the query is known."""
    namespaces: tuple[Namespace, ...] = ()
    """The namespaces that were searched."""
    superseded: int = 0
    """Records left out because they are marked as superseded."""
    outside: int = 0
    """Records left out because their source is outside the time window."""
    below: int = 0
    """Records left out because they scored less than `min_score`."""
    textless: int = 0
    """Items left out because they have no text."""
    additional: int = Field(default=0, validation_alias=AliasChoices("additional", "beside"))
    """Safety constraints that were not among the nearest."""
    notes: tuple[str, ...] = ()
    """Notes for a reader."""
