"""Settings of ConMem: weights, ablations, the models' settings by stage, and the named presets."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, cast, get_args

from pydantic import Field, model_validator

from memguard.schema.base import Frozen, UnitInterval
from memguard.schema.decision import OnInconclusive

ProbeRole = Literal["relevant", "irrelevant", "risk"]
"""What a probe tests.

* `relevant`: the memory supplies something that the request needs and does not say.
* `irrelevant`: the right answer does not depend on the memory.
* `risk`: an observable change makes it wrong to carry the memory over.
"""

ROLES: tuple[ProbeRole, ...] = get_args(ProbeRole)
"""The three roles, in the order in which they are printed and counted."""

Stage = Literal["probe", "validation", "arms", "quality", "audit", "tie_break", "reason"]
"""The kinds of model call of a case; `Stages` says what each is for."""

STAGES: tuple[Stage, ...] = get_args(Stage)
"""The stages, in the order of a case."""

Frequency = Literal["common", "occasional", "rare", "unknown"]
"""How often the user will make a request of the relevant probe's kind, as the validator estimates.

* `common`: about once a week or more.
* `occasional`: a few times a year.
* `rare`: once a year or less.
* `unknown`: the validator was asked and did not say.
"""

OnZero = Literal["tie_break", "admit", "reject"]
"""What an effect of zero leads to: the tie-break judge, or one of the paper's ablations."""

Effort = Literal["minimal", "low", "medium", "high"]
"""How much a reasoning model may think before it answers."""

Weight = Annotated[float, Field(ge=0.0, le=1000.0, allow_inf_nan=False)]
"""A gain, or a cost without its sign."""


class Weights(Frozen):
    """What each outcome of a probe adds or subtracts. Defaults: arXiv 2610.33432, section 4.5.

    Seven independent numbers, none negative; a cost is subtracted. The paper's grid varies three of
    them: `irrelevant_unnecessary`, `risk_helpful` and `risk_risk`.
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
    """Settings of one stage's model. A setting that a model refuses is dropped, with a note."""

    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = 0.0
    """Sampling temperature; `None` uses the model's default."""
    seed: int | None = 42
    """Sampling seed, for providers that take one; `None` sends none."""
    max_tokens: Annotated[int, Field(ge=1)] | None = 2_048
    """Maximum tokens of an answer; `None` uses the model's default."""
    reasoning_effort: Effort | None = "medium"
    """For reasoning models; `None` uses the model's default."""


_HIGH = StageSettings(reasoning_effort="high")


class Stages(Frozen):
    """The settings of each stage. Defaults: arXiv 2610.33432, section 5.2."""

    probe: StageSettings = StageSettings()
    """Generating and repairing the probes."""
    validation: StageSettings = _HIGH
    """Validating the probes."""
    arms: StageSettings = StageSettings(max_tokens=8_192)
    """Both answers to a probe. They share one setting, so that they differ in the memory alone."""
    quality: StageSettings = StageSettings()
    """The judge: which of two answers is better, without knowing which had the memory."""
    audit: StageSettings = _HIGH
    """The auditor: whether the memory was used, whether it changed the answer, and how."""
    tie_break: StageSettings = _HIGH
    """Deciding where the effect is zero."""
    reason: StageSettings = StageSettings()
    """Classifying a rejection, which changes no decision; the paper states no effort for it."""

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, data: Any) -> Any:
        """Fill missing settings of a stage from that stage's defaults."""
        if not isinstance(data, Mapping):
            return data
        stages = cast("Mapping[str, Any]", data)
        # Without this, `{"arms": {"seed": 1}}` would reset the arms' cap to the class default.
        return {stage: _merge(cls.model_fields, stage, value) for stage, value in stages.items()}


class ConMem(Frozen):
    """Settings of ConMem: what does a memory do to later answers? arXiv 2610.33432.

    Missing settings, and missing numbers in `weights={...}`, come from the preset.
    """

    preset: Literal["default", "paper"] = "default"
    """Where missing settings come from; see `CONMEM_PRESETS`."""
    weights: Weights = Weights()
    """What each outcome of a probe adds or subtracts."""
    epsilon: Annotated[float, Field(ge=0.0, lt=0.1, allow_inf_nan=False)] = 1e-12
    """Half-width of a zero effect, per probe; the sum is compared with three times this value."""
    quality_judge: bool = True
    """Ask the judge. Without it (an ablation) every utility counts as helpful."""
    auditor: bool = True
    """Ask the auditor. Without it (an ablation) the judge's preference decides alone: there is a
    gain where it prefers the treatment, and no cost."""
    harmful_as_risk: bool = False
    """Without the auditor: an answer that the memory made worse costs what a risk costs."""
    zero: OnZero = "tie_break"
    """What an effect of zero leads to."""
    rare_gain: UnitInterval = 0.0
    """Factor of the gain on the relevant probe if such a request is rare; our own rule. A probe is
    written to need the memory, so even a trivial detail gains. At 0 such a gain does not admit: if
    nothing else counts, the tie-break judge decides. At 1, as in `paper`, the question is not
    asked."""
    speculate: bool = True
    """Answer and judge the first probes while they are validated. Work on a probe that turns out
    to be invalid is discarded and counted."""
    classify_reason: bool = True
    """Ask for the reason of a rejection, in one more call; changes no decision."""
    json_schema: bool = False
    """Let the server constrain answers to a JSON schema, where it can. A weak model needs this.
    Without it, the prompts of a case share their beginning over all stages, and providers cache
    it."""
    seed: int = 42
    """Decides, with case and role, which answer the judge sees first."""
    regenerations: Annotated[int, Field(ge=0, le=10)] = 2
    """Rounds that generate all invalid probes again, with the validator's reasons."""
    repairs: Annotated[int, Field(ge=0, le=10)] = 1
    """Rounds, after these, that repair each invalid probe on its own."""
    reconstructions: Annotated[int, Field(ge=0, le=10)] = 1
    """Rounds, after these, that write and validate a fresh set of three. A probe that is still
    invalid then may contribute anything that its role allows."""
    history_turns: Annotated[int, Field(ge=1)] = 200
    """Maximum turns of the history shown: those the candidate names, then the newest."""
    history_chars: Annotated[int, Field(ge=200)] = 48_000
    """Maximum characters of the history shown; the receipt notes what was omitted."""
    max_candidate_chars: Annotated[int, Field(ge=10)] = 2_000
    """A longer candidate is refused: a memory is one fact."""
    stages: Stages = Stages()
    """Settings of each stage's model."""
    on_inconclusive: OnInconclusive = "quarantine"
    """What to do with a candidate if the missing verdicts could change the ruling, no probe is
    usable, or a tie could not be broken."""

    # Before validation: afterwards a default cannot be told from a value that the user set.
    @model_validator(mode="before")
    @classmethod
    def _from_preset(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        fields = cast("Mapping[str, Any]", data)
        base = _PRESET_FIELDS.get(str(fields.get("preset", "default")), {})
        filled = {**base, **fields}
        for name in ("weights", "stages"):
            if isinstance(filled.get(name), Mapping):
                filled[name] = _fill(base.get(name, {}), filled[name])
        return filled

    @model_validator(mode="after")
    def _check_ablations(self) -> Self:
        if not (self.quality_judge or self.auditor):
            msg = (
                "without judge and auditor there is no evidence: leave quality_judge or auditor on"
            )
            raise ValueError(msg)
        # A setting without effect would make an experiment look like one that it is not.
        if self.harmful_as_risk and self.auditor:
            msg = "harmful_as_risk has no effect with the auditor: set auditor=False, or leave it"
            raise ValueError(msg)
        return self


def _fill(base: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Values over those of a preset, in mappings of mappings too."""
    filled = {**base, **values}
    for name, value in values.items():
        if isinstance(value, Mapping) and isinstance(base.get(name), Mapping):
            filled[name] = {**base[name], **value}
    return filled


def _merge(fields: Mapping[str, Any], stage: str, value: Any) -> Any:
    """Settings of a stage over its defaults; what cannot be merged fails validation later."""
    if stage not in fields or not isinstance(value, Mapping):
        return value
    default: StageSettings = fields[stage].default
    return {**default.model_dump(), **cast("Mapping[str, Any]", value)}


_ROOM = {stage: {"max_tokens": 8_192} for stage in STAGES}

_PRESET_FIELDS: dict[str, dict[str, Any]] = {
    # The penalty of an attributed risk on the risk probe is 1.0 here and 1.5 in the paper. At 1.5,
    # a memory that helps on the relevant probe and is misused on the risk probe is always rejected,
    # and of the paper's own grid of 27 that setting is the worst (appendix A). At 1.0 the two
    # balance, and the tie-break judge decides. Reasoning counts as output: at high effort, 2,048
    # tokens may end before the verdict.
    "default": {"weights": {"risk_risk": 1.0}, "stages": _ROOM},
    "paper": {"weights": {}, "stages": {}, "speculate": False, "rare_gain": 1.0},
}

CONMEM_PRESETS: dict[str, ConMem] = {"default": ConMem(), "paper": ConMem(preset="paper")}
"""`paper`: the paper's rules. `default`: a penalty of 1.0 for a risk on the risk probe, nothing
gained from rare requests, 8,192 tokens for every answer, and speculation; nothing else differs."""
