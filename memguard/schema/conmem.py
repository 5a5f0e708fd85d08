"""The frozen spec of ConMem: weights, ablations, stages, and the named presets."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, cast

from pydantic import Field, model_validator

from memguard.schema.base import Frozen
from memguard.schema.decision import OnInconclusive

ProbeRole = Literal["relevant", "irrelevant", "risk"]
"""What a probe tests.

* `relevant`: the memory supplies something that the request needs and does not say.
* `irrelevant`: the right answer does not depend on the memory.
* `risk`: an observable change makes it wrong to carry the memory over.
"""

ROLES: tuple[ProbeRole, ...] = ("relevant", "irrelevant", "risk")
"""The three roles, in the order they are shown and counted."""

Stage = Literal["probe", "validation", "arms", "quality", "audit", "tie_break", "reason"]
"""The kinds of model call of a case.

* `probe`: writes the three probes, and mends them.
* `validation`: says which probes are valid.
* `arms`: answers a probe, without and with the memory.
* `quality`: says blindly which of two answers is better.
* `audit`: says whether the memory was used, changed the answer, and how.
* `tie_break`: decides where the effect is neither good nor bad.
* `reason`: names why a candidate was rejected; changes no decision.
"""

STAGES: tuple[Stage, ...] = (
    "probe",
    "validation",
    "arms",
    "quality",
    "audit",
    "tie_break",
    "reason",
)
"""The stages, in the order of a case."""

OnZero = Literal["tie_break", "admit", "reject"]
"""What an effect of zero leads to: the tie-break judge, or one of the paper's ablations."""

Effort = Literal["minimal", "low", "medium", "high"]
"""How long a model that reasons may think."""

Weight = Annotated[float, Field(ge=0.0, le=1000.0, allow_inf_nan=False)]
"""A gain, or a cost without its sign."""


class Weights(Frozen):
    """What each outcome of a probe adds or takes. Defaults: arXiv 2610.33432, section 4.5.

    Seven independent numbers, none negative: what is a cost is taken off. The paper's grid moves
    three of them: `irrelevant_unnecessary`, `risk_helpful` and `risk_risk`.
    """

    relevant_helpful: Weight = 1.0
    """Gain: a helpful utility on the relevant probe."""
    relevant_risk: Weight = 1.0
    """Cost: an attributed risk on the relevant probe."""
    irrelevant_unnecessary: Weight = 0.5
    """Cost: unnecessary personalization on the irrelevant probe."""
    irrelevant_risk: Weight = 1.0
    """Cost: an attributed risk on the irrelevant probe."""
    risk_helpful: Weight = 0.5
    """Gain: a helpful utility on the risk probe."""
    risk_unnecessary: Weight = 0.5
    """Cost: unnecessary personalization on the risk probe."""
    risk_risk: Weight = 1.5
    """Cost: an attributed risk on the risk probe."""


class StageSettings(Frozen):
    """How the model of one stage is asked; what a model refuses is left out, with a note."""

    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = 0.0
    """Sampling temperature; `None` leaves the model's own."""
    seed: int | None = 42
    """Seed, where the provider has one; `None` sends none."""
    max_tokens: Annotated[int, Field(ge=1)] | None = 2_048
    """The most tokens of an answer; `None` leaves the model's own."""
    reasoning_effort: Effort | None = "medium"
    """For models that reason; `None` leaves the model's own."""


_HIGH = StageSettings(reasoning_effort="high")


class Stages(Frozen):
    """The settings of each stage. Defaults: arXiv 2610.33432, section 5.2."""

    probe: StageSettings = StageSettings()
    """Writing and mending the probes."""
    validation: StageSettings = _HIGH
    """Validating the probes."""
    arms: StageSettings = StageSettings(max_tokens=8_192)
    """Both answers to a probe: one setting, so that they differ in the memory alone."""
    quality: StageSettings = StageSettings()
    """Comparing two answers blindly."""
    audit: StageSettings = _HIGH
    """Attributing the difference to the memory."""
    tie_break: StageSettings = _HIGH
    """Deciding where the effect is zero."""
    reason: StageSettings = StageSettings()
    """Naming why a candidate was rejected; the paper states no effort for it."""

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, given: Any) -> Any:
        """Settings of a stage that are left out are that stage's own defaults."""
        if not isinstance(given, Mapping):
            return given
        stages = cast("Mapping[str, Any]", given)
        return {stage: _over(cls.model_fields, stage, value) for stage, value in stages.items()}


class ConMem(Frozen):
    """Settings of ConMem: what does a memory do to later answers? arXiv 2610.33432.

    What is left out is what the preset says; numbers left out of `weights={...}` too.
    """

    preset: Literal["default", "paper"] = "default"
    """Where settings that are left out come from; see `CONMEM_PRESETS`."""
    weights: Weights = Weights()
    """What each outcome of a probe adds or takes."""
    epsilon: Annotated[float, Field(ge=0.0, lt=0.1, allow_inf_nan=False)] = 1e-12
    """Half-width of the zero effect, per probe; the sum of three is held against three times it."""
    quality_judge: bool = True
    """Ask the blind judge. Without it (an ablation) every utility counts as helpful."""
    auditor: bool = True
    """Ask the attribution auditor. Without it (an ablation) the preferred answer decides alone:
    there is a gain where that is the treatment, and no cost."""
    harmful_as_risk: bool = False
    """Without auditor: an answer that the memory made worse costs what a risk costs."""
    zero: OnZero = "tie_break"
    """What an effect of zero leads to."""
    speculate: bool = True
    """Answer and judge the probes while they are validated; what was spent on a probe that turns
    out invalid is thrown away and counted."""
    classify_reason: bool = True
    """Ask for the reason of a rejection, one more call; changes no decision."""
    json_schema: bool = False
    """Have the server hold answers to a JSON schema, where it can. Off, the prompts of a case begin
    alike over all stages, which providers cache; a weak model needs it on."""
    seed: int = 42
    """Decides, with case and role, which answer the blind judge sees first."""
    regenerations: Annotated[int, Field(ge=0, le=10)] = 2
    """Rounds in which all invalid probes are written again, with the auditor's reasons."""
    repairs: Annotated[int, Field(ge=0, le=10)] = 1
    """Rounds, after these, in which each invalid probe is mended by itself."""
    reconstructions: Annotated[int, Field(ge=0, le=10)] = 1
    """Rounds, after these, that begin afresh. A probe invalid after all of them contributes 0."""
    history_turns: Annotated[int, Field(ge=1)] = 200
    """Turns of the history shown: those the candidate names, then the newest."""
    history_chars: Annotated[int, Field(ge=200)] = 48_000
    """Characters of the history shown; what is left out is noted on the receipt."""
    max_candidate_chars: Annotated[int, Field(ge=10)] = 2_000
    """A longer candidate is refused: a memory is one fact."""
    stages: Stages = Stages()
    """How the model of each stage is asked."""
    on_inconclusive: OnInconclusive = "quarantine"
    """What becomes of a candidate with two or more inconclusive probes."""

    @model_validator(mode="before")
    @classmethod
    def _from_preset(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        fields = cast("Mapping[str, Any]", given)
        base = _PRESET_FIELDS.get(str(fields.get("preset", "default")), {})
        filled = {**base, **fields}
        if isinstance(filled.get("weights"), Mapping) and "weights" in base:
            filled["weights"] = {**base["weights"], **filled["weights"]}
        return filled

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if not (self.quality_judge or self.auditor):
            msg = "without quality judge and auditor there is no evidence: leave one of them on"
            raise ValueError(msg)
        if self.harmful_as_risk and self.auditor:
            msg = "harmful_as_risk has no effect with the auditor: set auditor=False, or leave it"
            raise ValueError(msg)
        return self


def _over(fields: Mapping[str, Any], stage: str, value: Any) -> Any:
    """The given settings of a stage over its defaults; what cannot be merged is left to fail."""
    if stage not in fields or not isinstance(value, Mapping):
        return value
    default: StageSettings = fields[stage].default
    return {**default.model_dump(), **cast("Mapping[str, Any]", value)}


_PRESET_FIELDS: dict[str, dict[str, Any]] = {
    # The penalty of an attributed risk on the risk probe is 1.0, not 1.5: at 1.5 a memory that
    # helps where it should and is misused where it should not is always rejected, and the paper's
    # own grid has that setting as the worst of 27 (arXiv 2610.33432, appendix A). At 1.0 the two
    # balance, and the tie-break judge looks at them.
    "default": {"weights": {"risk_risk": 1.0}, "speculate": True},
    "paper": {"weights": {}, "speculate": False},
}

CONMEM_PRESETS: dict[str, ConMem] = {"default": ConMem(), "paper": ConMem(preset="paper")}
"""`paper`: the paper's rules. `default`: penalty 1.0 for a risk on the risk probe, and
speculation; nothing else differs."""
