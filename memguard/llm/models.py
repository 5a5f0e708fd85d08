"""From what a user passes as `model` to a model that can be called."""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from memguard import compat
from memguard.errors import ConfigurationError, ErrorCode, ModelConfigurationError
from memguard.llm.limits import Learned, learned_about
from memguard.schema.usage import Usage

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


HOW_TO_GIVE_ONE = (
    "pass model='openai:<name>' (with base_url=... for any OpenAI-compatible server), "
    "or a LangChain chat model"
)  # fmt: skip

_NO_KEY = "not-needed"
"""Sent to a server of the user's own that asks for no key; the SDK insists on a value."""

_PACKAGES = {
    "anthropic": "langchain-anthropic",
    "azure_openai": "langchain-openai",
    "bedrock": "langchain-aws",
    "google_genai": "langchain-google-genai",
    "google_vertexai": "langchain-google-vertexai",
    "mistralai": "langchain-mistralai",
    "ollama": "langchain-ollama",
}


_URL_FIELDS = (
    "openai_api_base",
    "azure_endpoint",
    "base_url",
    "anthropic_api_url",
    "endpoint_url",
    "endpoint",
)


@dataclass(frozen=True, kw_only=True)
class Price:
    """What tokens cost, per million, in a currency of your choice."""

    prompt: float
    """Per million tokens read."""
    completion: float
    """Per million tokens written."""

    def of(self, usage: Usage) -> float:
        """The price of the tokens in `usage`."""
        return (
            usage.prompt_tokens * self.prompt + usage.completion_tokens * self.completion
        ) / 1_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A chat model, with how to call it. Compares by identity; never shows a key."""

    name: str
    """For example `openai:gpt-5-mini`; for receipts."""
    chat: BaseChatModel = field(repr=False)
    """The model as LangChain knows it."""
    base_url: str = ""
    """Where it answers, as far as the chat model says."""
    timeout: float = 60.0
    """Seconds one attempt may take."""
    max_attempts: int = 3
    """Requests sent at most for one answer, the first included."""
    concurrency: int = 16
    """Requests to this model in flight at once, over the whole process."""
    backoff: float = 0.5
    """Seconds that the wait before a retry grows from; it doubles, with full jitter."""
    price: Price | None = None
    """What its tokens cost; `None` leaves the cost unknown."""

    @property
    def key(self) -> str:
        """Tells models apart within a process: provider, name and address."""
        return f"{self.name}@{self.base_url}"

    @property
    def learned(self) -> Learned:
        """What this process knows about the model; shared by all values with the same key."""
        return learned_about(self.key)

    @functools.cached_property
    def is_openai_like(self) -> bool:
        """Whether it takes the keywords of OpenAI's chat completions, by that client or itself."""
        if getattr(self.chat, "openai_keywords", False):
            return True
        if compat.openai_client(self.chat) is None:
            return False
        return not compat.uses_responses_api(self.chat)

    @property
    def takes_n(self) -> bool:
        """Whether one request can bring several answers, as far as is known."""
        able = self.is_openai_like or bool(getattr(self.chat, "supports_n", False))
        return able and "n" not in self.learned.refused

    @property
    def takes_schema(self) -> bool:
        """Whether a request can ask for answers of a JSON schema, as far as is known."""
        return self.is_openai_like and "response_format" not in self.learned.refused

    def secrets(self) -> tuple[str, ...]:
        """Keys held by the chat model, to be kept out of every message."""
        return _secrets_of(self.chat)


ModelLike: TypeAlias = "str | BaseChatModel | Model"
"""What every `model=` argument takes."""


def resolve_model(
    model: ModelLike | None,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    timeout: float = 60.0,
    max_attempts: int = 3,
    concurrency: int = 16,
    backoff: float = 0.5,
    prices: Mapping[str, Price] | None = None,
    streams: bool = False,
) -> Model:
    """Make a callable model of a string, a LangChain chat model or a `Model`.

    Args:
        model: `"provider:name"`, `"llamacpp:FILE.gguf"`, a chat model, or a `Model`, which is
            returned as it is. There is no default model.
        base_url: Address of the server, for a string.
        api_key: Key of the server, for a string; the provider's own environment variable when
            left out.
        timeout: Seconds one attempt may take.
        max_attempts: Requests sent at most for one answer, the first included.
        concurrency: Requests to this model in flight at once, over the whole process.
        backoff: Seconds that the wait before a retry grows from.
        prices: Price by model name, as in `Model.name`.
        streams: Leave streaming as the chat model has it: for answers that a host shows.

    Raises:
        ModelConfigurationError: If there is no model, the string is none, or a package is missing.
    """
    if isinstance(model, Model):
        return model
    if model is None or model == "":
        msg = f"no model was given, and there is no default; {HOW_TO_GIVE_ONE}"
        raise ModelConfigurationError(msg, code=ErrorCode.MODEL_MISSING)
    if isinstance(model, str):
        chat = _from_string(model, base_url=base_url, api_key=api_key, timeout=timeout)
        name = model
    else:
        chat = _checked(model)
        name = _name_of(chat)
    if max_attempts < 1 or concurrency < 1 or timeout <= 0:
        msg = (
            f"a model needs max_attempts and concurrency of at least 1 and a timeout above 0; "
            f"got {max_attempts!r}, {concurrency!r} and {timeout!r}"
        )
        raise ModelConfigurationError(msg, code=ErrorCode.MODEL_REQUEST)
    return Model(
        name=name,
        chat=chat if streams else _never_streaming(chat),
        base_url=_address_of(chat),
        # A model in this process is slow, and one engine: it says what it needs and what it bears.
        timeout=max(timeout, getattr(chat, "least_timeout", 0.0)),
        max_attempts=max_attempts,
        concurrency=min(concurrency, getattr(chat, "most_at_once", concurrency)),
        backoff=backoff,
        price=(prices or {}).get(name),
    )


def _from_string(
    text: str, *, base_url: str | None, api_key: str | None, timeout: float
) -> BaseChatModel:
    provider, colon, name = text.partition(":")
    if not (colon and provider.strip() and name.strip()):
        msg = f"a model string looks like 'provider:name', got {text!r}; {HOW_TO_GIVE_ONE}"
        raise ModelConfigurationError(msg, code=ErrorCode.MODEL_STRING)
    if provider == "llamacpp":
        from memguard.llm.llamacpp import open_gguf  # noqa: PLC0415 - only for those who use it

        return open_gguf(name)
    settings: dict[str, Any] = {"timeout": timeout, "max_retries": 0}
    if base_url is not None:
        settings["base_url"] = base_url
    if api_key is not None:
        settings["api_key"] = api_key
    if provider == "openai":
        return _openai(name, settings)
    return _by_langchain(provider, text, settings)


def _openai(name: str, settings: dict[str, Any]) -> BaseChatModel:
    # Lazy: the SDK takes most of a second to import, which no keyless command should pay.
    import openai  # noqa: PLC0415
    from langchain_openai import ChatOpenAI  # noqa: PLC0415

    try:
        return ChatOpenAI(model=name, **settings)
    except openai.OpenAIError:
        if "api_key" in settings:
            raise
    if "base_url" in settings:
        return ChatOpenAI(model=name, **settings, api_key=_NO_KEY)  # pyright: ignore[reportArgumentType]
    msg = f"no key for model 'openai:{name}': pass api_key=..., or set OPENAI_API_KEY"
    raise ModelConfigurationError(msg, code=ErrorCode.MODEL_AUTH)


def _by_langchain(provider: str, text: str, settings: dict[str, Any]) -> BaseChatModel:
    package = _PACKAGES.get(provider, f"langchain-{provider.replace('_', '-')}")
    problem = ""
    try:
        from langchain.chat_models import init_chat_model  # noqa: PLC0415

        return init_chat_model(text, **settings)
    except ImportError:
        msg = f"model {text!r} needs another package: pip install langchain {package}"
        code = ErrorCode.MODEL_EXTRA
    except Exception as error:  # a provider's constructor may raise anything on bad settings
        problem = f"{type(error).__name__}: {error}"[:300]
        secrets = tuple(value for value in [settings.get("api_key")] if value)
        for secret in secrets:
            problem = problem.replace(secret, "[key]")
        msg = f"model {text!r} could not be set up ({problem}); {HOW_TO_GIVE_ONE}"
        code = ErrorCode.MODEL_STRING
    raise ModelConfigurationError(msg, code=code)


def _checked(model: object) -> BaseChatModel:
    from langchain_core.language_models import BaseChatModel  # noqa: PLC0415

    if isinstance(model, BaseChatModel):
        return model
    msg = (
        f"a model is a 'provider:name' string or a LangChain chat model, got "
        f"{type(model).__name__}; pass the chat model itself, without bind() or with_retry()"
    )
    raise ModelConfigurationError(msg, code=ErrorCode.MODEL_STRING)


def _never_streaming(chat: BaseChatModel) -> BaseChatModel:
    """The model with streaming and LangChain's answer cache off.

    Under a host's `stream_mode="messages"` LangChain would stream our calls too, which loses the
    answers after the first; and a cache would make K samples one.
    """
    update: dict[str, Any] = {}
    if compat.can_stream(chat):
        update["disable_streaming"] = True
    if getattr(chat, "streaming", False):
        update["streaming"] = False
    if chat.cache is not False:
        update["cache"] = False
    return chat.model_copy(update=update) if update else chat


def _name_of(chat: BaseChatModel) -> str:
    provider = compat.kind_of_chat(chat).removesuffix("-chat")
    for attribute in ("model_name", "model", "model_id", "deployment_name"):
        name = getattr(chat, attribute, None)
        if isinstance(name, str) and name:
            return f"{provider}:{name}"
    return f"{provider}:{type(chat).__name__}"


def _address_of(chat: BaseChatModel) -> str:
    addresses = [getattr(compat.openai_client(chat), "base_url", None)]
    addresses += [getattr(chat, name, None) for name in _URL_FIELDS]
    url = next((str(address) for address in addresses if address), "")
    # A user name and password in the address are a key too.
    return re.sub(r"//[^/@]*@", "//", url).rstrip("/")


def _secrets_of(chat: BaseChatModel) -> tuple[str, ...]:
    from pydantic import SecretStr  # noqa: PLC0415

    values = (getattr(chat, name, None) for name in type(chat).model_fields)
    return tuple(
        value.get_secret_value()
        for value in values
        if isinstance(value, SecretStr) and len(value.get_secret_value()) > 5  # noqa: PLR2004
    )


DEFAULT = "default"
"""The stage whose model serves every stage that has none of its own."""

LOCAL = "local"
"""The model string of what runs without a language model."""


def resolve_stages(
    model: ModelLike | None,
    models: Mapping[str, ModelLike] | None,
    *,
    default: ModelLike | None = None,
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
