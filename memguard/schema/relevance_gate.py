"""The settings of the relevance gate, the read-time baseline by similarity alone."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import Field, model_validator

from memguard.schema.base import Frozen, UnitInterval


class RelevanceGate(Frozen):
    """Settings of the relevance gate, which admits memories that are similar to the query.

    An adaptation of the paper's Gate arm, as far as it is described (arXiv 2610.11188, section
    4.1).
    """

    preset: Literal["default", "paper"] = "default"
    """The source of settings that are left out; see `RELEVANCE_GATE_PRESETS`."""
    theta: UnitInterval = 0.4
    """The minimum similarity; tune it to the embedder."""
    k: Annotated[int, Field(ge=1, le=200)] = 10
    """The number of memories recalled for a query."""
    withhold_instructions: bool = True
    """Whether memory text that instructs the assistant is withheld. Ours."""
    verbatim: bool = False
    """Whether the texts are rendered word for word, as in the paper, without quotes, tags and
    dates. Only for experiments: a memory could then be read as an instruction."""
    max_units: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of memories in the prompt, nearest first."""
    when_empty: Literal["empty", "line"] = "empty"
    """The section if nothing is admitted: none at all, or one fixed line."""

    @model_validator(mode="before")
    @classmethod
    def _from_preset(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        fields = cast("Mapping[str, Any]", value)
        ours = {"withhold_instructions": False, "verbatim": True}
        return {**ours, **fields} if fields.get("preset") == "paper" else fields


RELEVANCE_GATE_PRESETS: dict[str, RelevanceGate] = {
    "default": RelevanceGate(),
    "paper": RelevanceGate(preset="paper"),
}
"""`paper`: every memory that is near enough, word for word."""
