"""Models: what a user passes as `model`, made into a `Model` that memguard can call.

`resolve_model` takes a string, a LangChain chat model or a `Model`. `resolve_stages` and `model_of`
do the same for graphs whose stages may use different models. `check_server` and `list_models` ask
an OpenAI-compatible server for its models, without spending tokens.
"""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from memguard import compat
from memguard.errors import ConfigurationError, ErrorCode, ModelConfigurationError
from memguard.llm.failures import public_address, redact, shorten
from memguard.llm.limits import ModelState, state_of_model
from memguard.schema.receipt import Usage

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


MODEL_HINT = (
    "pass model='openai:<name>' (with base_url=... for any OpenAI-compatible server), "
    "or a LangChain chat model"
)

DEFAULT = "default"
"""The stage whose model serves every stage without a model of its own."""

LOCAL = "local"
"""The model string of what runs without a language model."""

# Sent to a server that needs no key; the SDK insists on a value.
_NO_KEY = "not-needed"

# Providers whose package is not `langchain-<provider>`.
_PACKAGES = {
    "azure_openai": "langchain-openai",
    "bedrock": "langchain-aws",
    "google_genai": "langchain-google-genai",
    "google_vertexai": "langchain-google-vertexai",
}

# Names that integrations have for the address of the server.
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
    """The price of tokens, per million, in any currency."""

    prompt: float
    """Per million tokens of the prompt."""
    completion: float
    """Per million tokens of the answer."""

    def of(self, usage: Usage) -> float:
        """The price of the tokens in `usage`."""
        return (
            usage.prompt_tokens * self.prompt + usage.completion_tokens * self.completion
        ) / 1_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A chat model and how to call it. Compares by identity; its `repr` contains no key."""

    name: str
    """For example `openai:gpt-5-mini`; for receipts."""
    chat: BaseChatModel = field(repr=False)
    """The LangChain chat model."""
    base_url: str = ""
    """The address of the server, if the chat model has one."""
    timeout: float = 60.0
    """The time limit of one attempt, in seconds."""
    max_attempts: int = 3
    """The maximum number of requests for one answer, the first included."""
    concurrency: int = 16
    """The maximum number of requests to this model in flight, over the whole process."""
    backoff: float = 0.5
    """Seconds that the wait before a retry starts from; it doubles, with full jitter."""
    price: Price | None = None
    """The price of its tokens; the cost is unknown if `None`."""

    @property
    def key(self) -> str:
        """Identifies the model within the process: provider, name and address."""
        return f"{self.name}@{self.base_url}"

    @property
    def state(self) -> ModelState:
        """What this process knows of the model; shared by all values with the same key."""
        return state_of_model(self.key)

    @functools.cached_property
    def is_openai_like(self) -> bool:
        """Whether it takes the keywords of OpenAI's chat completions."""
        if getattr(self.chat, "openai_keywords", False):
            return True
        if compat.openai_client(self.chat) is None:
            return False
        return not compat.uses_responses_api(self.chat)

    @property
    def takes_n(self) -> bool:
        """Whether one request can return several answers, as far as is known."""
        able = self.is_openai_like or bool(getattr(self.chat, "supports_n", False))
        return able and "n" not in self.state.refused

    def secrets(self) -> tuple[str, ...]:
        """The keys of the chat model, which no message may contain."""
        from pydantic import SecretStr  # noqa: PLC0415

        fields = (getattr(self.chat, name, None) for name in type(self.chat).model_fields)
        values = (field.get_secret_value() for field in fields if isinstance(field, SecretStr))
        # A placeholder such as "none" would be replaced in every error message.
        keys = (value for value in (*values, *_secrets_of(_urls_of(self.chat))) if len(value) > 5)  # noqa: PLR2004
        return tuple(dict.fromkeys(keys))


ModelLike: TypeAlias = "str | BaseChatModel | Model"
"""The type of every `model=` argument."""


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
    """Create a callable model from a string, a LangChain chat model or a `Model`.

    Args:
        model: `"provider:name"`, `"llamacpp:FILE.gguf"`, `"local:NAME"` for a model that
            `memguard models pull` has fetched, a chat model, or a `Model`, which is returned
            unchanged. There is no default model.
        base_url: Address of the server, for a string.
        api_key: Key of the server, for a string; by default the provider's SDK reads its
            environment variable.
        timeout: As in `Model`.
        max_attempts: As in `Model`.
        concurrency: As in `Model`.
        backoff: As in `Model`.
        prices: Price by model name, with the provider as in `Model.name`, or without it.
        streams: Whether to leave streaming as the chat model has it, for answers that a host
            shows.

    Raises:
        ModelConfigurationError: If there is no model, the string is not a model string, a package
            is missing, a local model is not pulled, or a number is out of range.
    """
    if isinstance(model, Model):
        return model
    if model is None or model == "":
        msg = f"no model was given, and there is no default; {MODEL_HINT}"
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
        # `LlamaCppChat` has its own limits: it is one engine on a processor, and slow.
        timeout=max(timeout, getattr(chat, "min_timeout", 0.0)),
        max_attempts=max_attempts,
        concurrency=min(concurrency, getattr(chat, "max_concurrency", concurrency)),
        backoff=backoff,
        price=_price_of(name, prices or {}),
    )


def _price_of(name: str, prices: Mapping[str, Price]) -> Price | None:
    # The full name first: two providers may serve one model at different prices.
    return prices.get(name) or prices.get(name.partition(":")[2])


def _from_string(
    text: str, *, base_url: str | None, api_key: str | None, timeout: float
) -> BaseChatModel:
    provider, colon, name = text.partition(":")
    if not (colon and provider.strip() and name.strip()):
        msg = f"a model string looks like 'provider:name', got {text!r}; {MODEL_HINT}"
        raise ModelConfigurationError(msg, code=ErrorCode.MODEL_STRING)
    if provider == "llamacpp":
        from memguard.llm.llamacpp import open_gguf  # noqa: PLC0415 - only for those who use it

        return open_gguf(name)
    if provider == LOCAL:
        from memguard.llm.llamacpp import open_gguf  # noqa: PLC0415
        from memguard.llm.local_models import path_of_model  # noqa: PLC0415

        return open_gguf(str(path_of_model(name)))
    # Retries are counted by memguard; the SDK's would multiply them and hide their cost.
    settings: dict[str, Any] = {"timeout": timeout, "max_retries": 0}
    if base_url is not None:
        settings["base_url"] = base_url
    if api_key is not None:
        settings["api_key"] = api_key
    if provider == "openai":
        return _openai(name, settings)
    return _by_langchain(provider, text, settings)


def _openai(name: str, settings: dict[str, Any]) -> BaseChatModel:
    # The SDK takes most of a second to import, which commands without a model should not need.
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
    try:
        from langchain.chat_models import init_chat_model  # noqa: PLC0415

        return init_chat_model(text, **settings)
    except ImportError:
        msg = f"model {text!r} needs another package: pip install langchain {package}"
        code = ErrorCode.MODEL_EXTRA
    except Exception as error:  # a provider's constructor may raise anything on bad settings
        secrets = tuple(value for value in [settings.get("api_key")] if value)
        problem = shorten(redact(f"{type(error).__name__}: {error}", secrets), 300)
        msg = f"model {text!r} could not be set up ({problem}); {MODEL_HINT}"
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

    Under a host's `stream_mode="messages"` LangChain would stream memguard's calls too, and lose
    all answers but the first. A cache would return one sample K times.
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


def _urls_of(chat: BaseChatModel) -> list[str]:
    addresses = [getattr(compat.openai_client(chat), "base_url", None)]
    addresses += [getattr(chat, name, None) for name in _URL_FIELDS]
    return [str(address) for address in addresses if address]


def _address_of(chat: BaseChatModel) -> str:
    return public_address(next(iter(_urls_of(chat)), ""))


def _secrets_of(urls: Sequence[str]) -> list[str]:
    """The parts of addresses that may be secret, longest first, so that none remains in part."""
    secrets: list[str] = []
    for url in urls:
        login = re.search(r"//([^/?#]*)@", url)
        query = url.partition("?")[2]
        secrets += [login[1], *login[1].split(":")] if login else []
        secrets += [query, *(pair.partition("=")[2] for pair in re.split("[&#]", query))]
    return sorted(filter(None, secrets), key=len, reverse=True)


def resolve_stages(
    model: ModelLike | None,
    models: Mapping[str, ModelLike] | None,
    *,
    default: ModelLike | None = None,
) -> dict[str, ModelLike]:
    """The models by stage, each resolved once, so that all users of a stage share one client.

    `model`, or `default` if that is `None`, is the model of every stage that `models` does not
    name. A model for one stage never serves another one.

    Raises:
        ModelConfigurationError: If a model cannot be used.
    """
    stages: dict[str, ModelLike] = dict(models or {})
    general = default if model is None else model
    if general is not None:
        stages.setdefault(DEFAULT, general)
    return {
        stage: value if value == LOCAL else resolve_model(value) for stage, value in stages.items()
    }


def model_of(models: Mapping[str, ModelLike], stage: str, *alternatives: str) -> ModelLike:
    """The model of a stage, or of the first alternative that has one, or the default.

    Raises:
        ConfigurationError: If there is no model for any of them.
    """
    for name in (stage, *alternatives, DEFAULT):
        if name in models:
            return models[name]
    msg = (
        f"the stage {stage!r} needs a model: {MODEL_HINT}, or set one for this stage with "
        f"`models={{{stage!r}: ...}}`"
    )
    raise ConfigurationError(msg, code=ErrorCode.MODEL_MISSING)


_LIST_TIMEOUT = 5.0
"""Seconds to wait for a server's list of models."""


async def check_server(model: Model) -> str:
    """Ask the server for its list of models, which spends no tokens.

    Returns:
        A sentence for the user.

    Raises:
        ModelConfigurationError: If the server cannot be reached, refuses the key, or does not list
            this model.
    """
    if getattr(model.chat, "root_client", None) is None:
        return f"{model.name}: its provider has no free check; the first call will show"
    listed = await list_models(model)
    where = model.base_url or "the default address"
    if getattr(model.chat, "model_name", "") in listed:
        return f"{model.name} is served at {where}"
    msg = f"{model.name} is not among the {len(listed)} models served at {where}: {listed[:10]}"
    raise ModelConfigurationError(msg, code=ErrorCode.MODEL_UNKNOWN)


async def list_models(model: Model) -> list[str]:
    """The names of the models that the server of an OpenAI-compatible model lists, sorted.

    Raises:
        ModelConfigurationError: If the server cannot be reached or refuses the key.
    """
    root: Any = getattr(model.chat, "root_client", None)
    try:
        # The sync client, in a thread: the async one may be bound to a loop that has ended.
        client = root.with_options(timeout=_LIST_TIMEOUT, max_retries=0)
        return sorted(await asyncio.to_thread(lambda: [entry.id for entry in client.models.list()]))
    except Exception as error:  # the SDK's error classes; each means that there is no list
        msg = (
            f"no list of models from {model.base_url or 'the default address'}: "
            f"{type(error).__name__}; check the address and the key"
        )
        raise ModelConfigurationError(msg, code=ErrorCode.MODEL_UNREACHABLE) from error
