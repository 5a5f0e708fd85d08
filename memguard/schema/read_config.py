"""Frozen specs of the read-time methods, and their presets."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import Field, model_validator

from memguard.schema.base import Frozen
from memguard.schema.config import UnitInterval

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
