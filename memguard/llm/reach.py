"""Whether a model can be reached, found out without asking it anything."""

import asyncio
from typing import Any

from memguard.errors import ErrorCode, ModelConfigurationError
from memguard.llm.models import Model

_SECONDS = 5.0


async def reach(model: Model) -> str:
    """Ask the server for its list of models, which costs nothing.

    Returns:
        What was found, for a person.

    Raises:
        ModelConfigurationError: If the server cannot be reached, refuses the key, or lists models
            without this one.
    """
    if getattr(model.chat, "root_client", None) is None:
        return f"{model.name}: its provider has no free check; the first call will tell"
    listed = await served(model)
    where = model.base_url or "the default address"
    if getattr(model.chat, "model_name", "") in listed:
        return f"{model.name} is served at {where}"
    msg = f"{model.name} is not among the {len(listed)} models served at {where}: {listed[:10]}"
    raise ModelConfigurationError(msg, code=ErrorCode.MODEL_UNKNOWN)


async def served(model: Model) -> list[str]:
    """The names of the models that the server of an OpenAI-compatible model lists, sorted.

    Raises:
        ModelConfigurationError: If the server cannot be reached or refuses the key.
    """
    root: Any = getattr(model.chat, "root_client", None)
    try:
        client = root.with_options(timeout=_SECONDS, max_retries=0)
        return sorted(await asyncio.to_thread(lambda: [entry.id for entry in client.models.list()]))
    except Exception as error:  # the SDK's own tree of errors; each means "not reachable so"
        msg = (
            f"no list of models from {model.base_url or 'the default address'}: "
            f"{type(error).__name__}; check the address and the key"
        )
        raise ModelConfigurationError(msg, code=ErrorCode.MODEL_UNREACHABLE) from error
