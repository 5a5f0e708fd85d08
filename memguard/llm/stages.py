"""Which model serves which stage of a graph."""

from collections.abc import Mapping

from memguard.errors import ConfigurationError, ErrorCode
from memguard.llm.models import HOW_TO_GIVE_ONE, ModelLike, resolve_model

DEFAULT = "default"
"""The stage whose model serves every stage that has none of its own."""

LOCAL = "local"
"""The model string of what runs without a language model."""


def resolve_stages(
    model: "ModelLike | None",
    models: Mapping[str, ModelLike] | None,
    *,
    default: "ModelLike | None" = None,
) -> dict[str, ModelLike]:
    """The models by stage, each resolved once, so that every user of a stage shares one client.

    Args:
        model: Serves every stage that `models` does not name.
        models: By stage. A model for one stage never serves another one.
        default: Used in place of `model` where that is `None`.

    Raises:
        ModelConfigurationError: If a model cannot be used.
    """
    stages: dict[str, ModelLike] = dict(models or {})
    general = default if model is None else model
    if general is not None:
        stages.setdefault(DEFAULT, general)
    return {stage: like if like == LOCAL else resolve_model(like) for stage, like in stages.items()}


def model_of(models: Mapping[str, ModelLike], stage: str, *alternatives: str) -> ModelLike:
    """The model of a stage, or of the first alternative that has one, or the default.

    Args:
        models: By stage, as `resolve_stages` returns them.
        stage: The stage.
        alternatives: Stages whose model serves this one too, before the default.

    Raises:
        ConfigurationError: If none of them has a model.
    """
    for name in (stage, *alternatives, DEFAULT):
        if name in models:
            return models[name]
    msg = (
        f"the stage {stage!r} needs a model: {HOW_TO_GIVE_ONE}, or name one for this stage with "
        f"`models={{{stage!r}: ...}}`"
    )
    raise ConfigurationError(msg, code=ErrorCode.MODEL_MISSING)
