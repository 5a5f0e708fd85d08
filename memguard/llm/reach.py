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
    root: Any = getattr(model.chat, "root_client", None)
    if root is None:
        return f"{model.name}: its provider has no free check; the first call will tell"
    name = getattr(model.chat, "model_name", "")
    try:
        client = root.with_options(timeout=_SECONDS, max_retries=0)
        listed = await asyncio.to_thread(lambda: [entry.id for entry in client.models.list()])
    except Exception as error:  # the SDK's own tree of errors; each means "not reachable so"
        msg = f"{model.name} at {model.base_url or 'the default address'}: {type(error).__name__}"
        raise ModelConfigurationError(msg, code=ErrorCode.MODEL_UNREACHABLE) from error
    if name in listed:
        return f"{model.name} is served at {model.base_url or 'the default address'}"
    msg = f"{model.name} is not among the {len(listed)} models served: {sorted(listed)[:10]}"
    raise ModelConfigurationError(msg, code=ErrorCode.MODEL_UNKNOWN)
