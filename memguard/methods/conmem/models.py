"""The model, prompt and settings of each stage."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel

from memguard.errors import ConfigurationError, ErrorCode
from memguard.llm.ask import ParsedAnswer, TextAnswer, ask, ask_text
from memguard.llm.call import CallSettings
from memguard.llm.models import Model, ModelLike, resolve_model
from memguard.llm.parsing import Parse
from memguard.methods.conmem.config import STAGES, ConMem, Stage
from memguard.prompts import Prompt, load_prompt, resolve_prompt

M = TypeVar("M", bound=BaseModel)

PROMPTS: dict[str, Stage] = {
    "probe": "probe",
    "regenerate": "probe",
    "repair": "probe",
    "reconstruct": "probe",
    "validation": "validation",
    "respond": "arms",
    "quality": "quality",
    "audit": "audit",
    "tie_break": "tie_break",
    "reason": "reason",
}
"""Each prompt, with the stage whose model receives it."""

JUDGE_STAGES: frozenset[Stage] = frozenset(
    {"validation", "quality", "audit", "tie_break", "reason"}
)
"""Stages that use the model named `judge`."""

# Read at import: a gate may be created inside a running event loop, which must not read files.
for _name in PROMPTS:
    load_prompt("conmem", _name)


@dataclass(frozen=True, kw_only=True)
class StageModels:
    """The models and prompts of all stages."""

    spec: ConMem
    """Settings."""
    by_stage: Mapping[Stage, Model]
    """The model of each stage."""
    prompts: Mapping[str, Prompt]
    """Prompts by short name, for example `probe`."""

    @property
    def fingerprint(self) -> str:
        """Identifies models and prompts: with the settings, all that can change a decision."""
        models = ",".join(self.by_stage[stage].name for stage in STAGES)
        prompts = ",".join(self.prompts[name].digest for name in sorted(self.prompts))
        return f"{models}:{prompts}"

    async def ask(
        self, prompt: str, schema: type[M], *, slots: Mapping[str, str], parse: Parse[M] | None
    ) -> ParsedAnswer[M]:
        """Send a prompt to its stage's model and parse the answer.

        Raises:
            ModelConfigurationError: If the model cannot be used as configured.
            BudgetExhaustedError: If the run's budget is spent.
        """
        stage = PROMPTS[prompt]
        return await ask(
            self.by_stage[stage],
            self.prompts[prompt].render(**slots),
            schema,
            settings=self._settings(stage),
            name=f"conmem.{stage}",
            parse=parse,
            # A schema in the request comes before the prompt and defeats prefix caching.
            constrain=self.spec.json_schema,
        )

    async def respond(self, *, information: str, request: str) -> TextAnswer:
        """Answer a probe. Both arms use this method, so that they differ in `information` alone.

        Raises:
            ModelConfigurationError: If the model cannot be used as configured.
            BudgetExhaustedError: If the run's budget is spent.
        """
        return await ask_text(
            self.by_stage["arms"],
            self.prompts["respond"].render(information=information, request=request),
            settings=self._settings("arms"),
            name="conmem.arms",
        )

    def _settings(self, stage: Stage) -> CallSettings:
        settings = getattr(self.spec.stages, stage)
        return CallSettings(**settings.model_dump())


def prompt_names() -> tuple[str, ...]:
    """Full names of the prompts that can be replaced, for example `conmem/probe`."""
    return tuple(f"conmem/{name}" for name in PROMPTS)


def resolve_stage_models(
    model: "ModelLike | None",
    *,
    spec: ConMem,
    models: Mapping[str, ModelLike] | None = None,
    prompts: Mapping[str, Prompt] | None = None,
) -> StageModels:
    """Resolve the model and the prompt of each stage.

    Args:
        model: Used for every stage that `models` does not name.
        spec: Settings.
        models: Models by stage; `judge` names one for all stages that judge.
        prompts: Your own prompts by name, for example `conmem/quality`.

    Raises:
        ConfigurationError: If a stage has no language model, or a prompt cannot be used.
    """
    named = dict(models or {})
    # Stages that share a model share its client and its limiter, so each model is resolved once.
    resolved: dict[int | str, Model] = {}
    chosen: dict[Stage, Model] = {}
    for stage in STAGES:
        judge = named.get("judge") if stage in JUDGE_STAGES else None
        like = named.get(stage) or judge or model
        key = like if isinstance(like, str) else id(like)
        # By identity for objects: two chat models can be equal and still have clients of their own.
        if key not in resolved:
            resolved[key] = _language_model(like, stage=stage)
        chosen[stage] = resolved[key]
    overrides = prompts or {}
    return StageModels(
        spec=spec,
        by_stage=chosen,
        prompts={
            name: resolve_prompt("conmem", name, override=overrides.get(f"conmem/{name}"))
            for name in PROMPTS
        },
    )


def _language_model(like: "ModelLike | None", *, stage: Stage) -> Model:
    # A clear error here; resolving "local" would fail later, and say less.
    if like == "local":
        msg = (
            f"ConMem needs a language model at every stage, and 'local' is not one ({stage!r}): "
            "pass model='openai:NAME', a chat model, or 'llamacpp:FILE.gguf'"
        )
        raise ConfigurationError(msg, code=ErrorCode.MODEL_MISSING)
    return resolve_model(like)
