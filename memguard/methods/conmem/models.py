"""The model, prompt and settings of each stage."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel

from memguard.errors import ConfigurationError, ErrorCode
from memguard.llm.ask import ParsedAnswer, TextAnswer, ask, ask_text
from memguard.llm.call import CallSettings
from memguard.llm.models import Model, ModelLike, resolve_model
from memguard.llm.parsing import Parse
from memguard.methods.conmem.config import STAGES, ConMem, Stage
from memguard.prompts import Prompt, load_prompt, resolve_prompt
from memguard.schema.decision import Inconclusive

M = TypeVar("M", bound=BaseModel)
A = TypeVar("A", ParsedAnswer[Any], TextAnswer)

MORE_ROOM = 2
"""Factor of the token limit for an answer that reached it; our own rule."""

PROMPTS: dict[str, Stage] = {
    "probe": "probe",
    "regenerate": "probe",
    "repair": "probe",
    "reconstruct": "probe",
    "validation": "validation",
    "frequency": "validation",
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

    @property
    def frequency_question(self) -> str:
        """What the validator is asked in addition; empty where the answer would count nothing."""
        question = self.prompts["frequency"].user
        # A part of its own, between blank lines.
        return f"\n{question}\n" if self.spec.rare_gain < 1 else ""

    async def ask(
        self, prompt: str, schema: type[M], *, slots: Mapping[str, str], parse: Parse[M] | None
    ) -> ParsedAnswer[M]:
        """Send a prompt to its stage's model and parse the answer.

        Raises:
            ModelConfigurationError: If the model cannot be used as configured.
            BudgetExhaustedError: If the run's budget is spent.
        """
        stage = PROMPTS[prompt]
        messages = self.prompts[prompt].render(**slots)

        async def attempt(settings: CallSettings) -> ParsedAnswer[M]:
            # A schema in the request comes before the prompt and defeats prefix caching.
            return await ask(
                self.by_stage[stage],
                messages,
                schema,
                settings=settings,
                name=f"conmem.{stage}",
                parse=parse,
                constrain=self.spec.json_schema,
            )

        answer = await attempt(self._settings(stage))
        if not _is_truncated(answer.value):
            return answer
        return await self._enlarge(answer, stage=stage, attempt=attempt, value=lambda a: a.value)

    async def respond(self, *, information: str, request: str) -> TextAnswer:
        """Answer a probe. Both arms use this method, so that they differ in `information` alone.

        Raises:
            ModelConfigurationError: If the model cannot be used as configured.
            BudgetExhaustedError: If the run's budget is spent.
        """
        messages = self.prompts["respond"].render(information=information, request=request)

        async def attempt(settings: CallSettings) -> TextAnswer:
            return await ask_text(
                self.by_stage["arms"], messages, settings=settings, name="conmem.arms"
            )

        answer = await attempt(self._settings("arms"))
        if not (answer.cut_off or _is_truncated(answer.text)):
            return answer
        return await self._enlarge(answer, stage="arms", attempt=attempt, value=lambda a: a.text)

    async def _enlarge(
        self,
        first: A,
        *,
        stage: Stage,
        attempt: Callable[[CallSettings], Awaitable[A]],
        value: Callable[[A], object],
    ) -> A:
        """Ask once more for an answer that reached its token limit, with more room."""
        settings = self._settings(stage)
        # Without a limit of ours, the model reached its own, which a setting cannot raise.
        if settings.max_tokens is None:
            return first
        room = MORE_ROOM * settings.max_tokens
        second = await attempt(replace(settings, max_tokens=room))
        note = (
            f"an answer of the stage {stage} reached its limit of {settings.max_tokens} tokens and "
            f"was asked for once more, with {room}"
        )
        # A second request that fails takes nothing away from the first answer.
        is_lost = isinstance(value(second), Inconclusive)
        return replace(
            first if is_lost else second,
            usage=first.usage + second.usage,
            notes=tuple(dict.fromkeys((*first.notes, *second.notes, note))),
            enlarged=True,
        )

    def _settings(self, stage: Stage) -> CallSettings:
        settings = getattr(self.spec.stages, stage)
        return CallSettings(**settings.model_dump())


def _is_truncated(value: object) -> bool:
    return isinstance(value, Inconclusive) and value.reason == "truncated"


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
    # An error here names the arguments. Resolving "local" or nothing would say less, or offer
    # "local", which ConMem cannot use.
    if like is None or like in ("", "local"):
        problem = (
            f"{like!r} is not one ({stage!r})" if like else f"its stage {stage!r} needs a model"
        )
        msg = (
            f"ConMem needs a language model at every stage, and {problem}: "
            "pass model='openai:NAME', a chat model, or 'llamacpp:FILE.gguf', or a model for this "
            f"stage alone with models={{{stage!r}: ...}}"
        )
        raise ConfigurationError(msg, code=ErrorCode.MODEL_MISSING)
    return resolve_model(like)
