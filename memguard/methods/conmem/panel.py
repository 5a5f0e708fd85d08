"""Who is asked at each stage, with what prompt and settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel

from memguard.errors import ConfigurationError, ErrorCode
from memguard.llm.ask import Answer, ask
from memguard.llm.ask_text import TextAnswer, ask_text
from memguard.llm.call import CallSettings
from memguard.llm.models import Model, ModelLike, resolve_model
from memguard.llm.parsing import Parse
from memguard.prompts import Prompt, load_prompt, prompt_or_own
from memguard.schema.conmem import STAGES, ConMem, Stage

M = TypeVar("M", bound=BaseModel)

LOCAL = "local"

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
"""Every prompt, with the stage whose model gets it."""

JUDGES: frozenset[Stage] = frozenset({"validation", "quality", "audit", "tie_break", "reason"})
"""Stages that a model named `judge` serves."""

# Read now, with the module: a gate may be made inside a running event loop.
for _name in PROMPTS:
    load_prompt("conmem", _name)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """The models of a case."""

    spec: ConMem
    """Settings."""
    models: Mapping[Stage, Model]
    """One per stage."""
    prompts: Mapping[str, Prompt]
    """By name."""

    @property
    def fingerprint(self) -> str:
        """Of models and prompts, by name; what can change a ruling, settings aside."""
        models = ",".join(self.models[stage].name for stage in STAGES)
        prompts = ",".join(self.prompts[name].digest for name in sorted(self.prompts))
        return f"{models}:{prompts}"

    async def ask(
        self, prompt: str, schema: type[M], *, slots: Mapping[str, str], parse: Parse[M] | None
    ) -> Answer[M]:
        """Ask the model of a prompt's stage for an object.

        Raises:
            ModelConfigurationError: If the model cannot be used as configured.
            BudgetExhaustedError: If the run's budget is spent.
        """
        stage = PROMPTS[prompt]
        return await ask(
            self.models[stage],
            self.prompts[prompt].render(**slots),
            schema,
            settings=self._settings(stage),
            name=f"conmem.{stage}",
            parse=parse,
            constrain=self.spec.json_schema,
        )

    async def respond(self, *, information: str, request: str) -> TextAnswer:
        """Answer a probe; both arms go through here.

        Raises:
            ModelConfigurationError: If the model cannot be used as configured.
            BudgetExhaustedError: If the run's budget is spent.
        """
        return await ask_text(
            self.models["arms"],
            self.prompts["respond"].render(information=information, request=request),
            settings=self._settings("arms"),
            name="conmem.arms",
        )

    def _settings(self, stage: Stage) -> CallSettings:
        given = getattr(self.spec.stages, stage)
        return CallSettings(
            temperature=given.temperature,
            seed=given.seed,
            max_tokens=given.max_tokens,
            reasoning_effort=given.reasoning_effort,
        )


def prompt_names() -> tuple[str, ...]:
    """The prompts that can be replaced, by full name."""
    return tuple(f"conmem/{name}" for name in PROMPTS)


def make_panel(
    model: "ModelLike | None",
    *,
    spec: ConMem,
    models: Mapping[str, ModelLike] | None = None,
    prompts: Mapping[str, Prompt] | None = None,
) -> Panel:
    """Choose the model and the prompt of each stage.

    Args:
        model: Serves every stage that `models` names none for.
        spec: Settings.
        models: By stage; `judge` serves the stages that judge.
        prompts: Your own prompts by name, for example `conmem/quality`.

    Raises:
        ConfigurationError: If a stage has no language model, or a prompt cannot be used.
    """
    known = dict(models or {})
    resolved: dict[int | str, Model] = {}
    chosen: dict[Stage, Model] = {}
    for stage in STAGES:
        like = known.get(stage) or (known.get("judge") if stage in JUDGES else None) or model
        key = like if isinstance(like, str) else id(like)
        if key not in resolved:
            resolved[key] = _language_model(like, stage=stage)
        chosen[stage] = resolved[key]
    own = prompts or {}
    return Panel(
        spec=spec,
        models=chosen,
        prompts={
            name: prompt_or_own("conmem", name, override=own.get(f"conmem/{name}"))
            for name in PROMPTS
        },
    )


def _language_model(like: "ModelLike | None", *, stage: Stage) -> Model:
    if like == LOCAL:
        msg = (
            "ConMem asks a language model to write, answer and judge requests, and 'local' is none "
            f"(stage {stage!r}): pass model='openai:NAME', a chat model, or 'llamacpp:FILE.gguf'"
        )
        raise ConfigurationError(msg, code=ErrorCode.MODEL_MISSING)
    return resolve_model(like)
