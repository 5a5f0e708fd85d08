"""Ask a model for one JSON object: own tolerant parser, one repair, typed outcomes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel

from memguard.errors import AnswerError, ErrorCode, ModelConfigurationError
from memguard.llm.budget import Meter, current_meter
from memguard.llm.call import CallSettings, Reply, request
from memguard.llm.failures import shorten
from memguard.llm.parsing import (
    Parse,
    is_cut_off,
    parse_json,
    read_answer,
    text_of,
    without_reasoning,
)
from memguard.schema.base import is_blank
from memguard.schema.decision import Inconclusive
from memguard.schema.usage import Usage

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.tools import BaseTool

    from memguard.llm.models import Model


M = TypeVar("M", bound=BaseModel)

_REPAIR = """\
Your answer could not be used: {problem}

Answer again with one JSON object, and nothing else, that fits this JSON schema:
{schema}"""
"""What is said when an answer does not validate. Not a method's prompt: it judges nothing."""

_DEFAULT_SETTINGS = CallSettings(temperature=0.0)


@dataclass(frozen=True, kw_only=True)
class Answer(Generic[M]):
    """One answer, read."""

    value: M | Inconclusive
    """The object, or why there is none."""
    usage: Usage
    """What it cost, the repair included."""
    notes: tuple[str, ...] = ()
    """What a receipt should say."""
    repaired: bool = False
    """Whether the model was shown its first answer and asked again."""
    text: str = ""
    """The last answer as the model gave it, shortened."""


async def ask(
    model: Model,
    messages: Sequence[BaseMessage],
    schema: type[M],
    *,
    settings: CallSettings | None = None,
    meter: Meter | None = None,
    name: str = "memguard.ask",
    repair: bool = True,
    parse: Parse[M] | None = None,
    constrain: bool = True,
) -> Answer[M]:
    """Ask for one object of a schema.

    The server is asked to keep to the schema where it can. An answer that does not validate is
    shown to the model once, with the error. A refusal, an answer cut off, a timeout and a
    provider's failure are outcomes of their own and are not repaired.

    Args:
        model: The model to ask.
        messages: The prompt; it should say which JSON is wanted, for servers that cannot be told.
        schema: The Pydantic model of the answer.
        settings: Sampling settings; temperature 0 when left out.
        meter: Counts what this spends; the run's own when left out.
        name: Name of the run in callbacks and traces.
        repair: Whether to ask again after an answer that does not validate.
        parse: Reads the object out of the answer's text, where more than JSON is welcome.
        constrain: Whether to have the server keep to the schema. Providers put a schema before the
            prompt, so prompts with different schemas share no cached beginning.

    Raises:
        ModelConfigurationError: If no request to this model can succeed as it is set up.
        BudgetExhaustedError: If a request would begin beyond a limit of the run.
    """
    scope = (meter or current_meter()).scope()
    question = _Question(
        model=model,
        schema=schema,
        settings=settings or _DEFAULT_SETTINGS,
        meter=scope,
        name=name,
        parse=parse,
        constrain=constrain,
    )
    value, reply = await question.once(messages)
    notes, repaired = reply.notes, False
    if repair and isinstance(value, Inconclusive) and value.reason == "parse_failure":
        repaired = True
        value, reply = await question.once([*messages, *_repair_turns(reply, schema, value)])
        notes = tuple(dict.fromkeys((*notes, *reply.notes)))
    return Answer(
        value=value,
        usage=scope.usage,
        notes=notes,
        repaired=repaired,
        text=shorten(text_of(reply.messages[0]), 2_000) if reply.messages else "",
    )


@dataclass(frozen=True, kw_only=True)
class _Question(Generic[M]):
    model: Model
    schema: type[M]
    settings: CallSettings
    meter: Meter
    name: str
    parse: Parse[M] | None
    constrain: bool

    async def once(self, messages: Sequence[BaseMessage]) -> tuple[M | Inconclusive, Reply]:
        extra = (
            {"response_format": json_schema_format(self.schema)}
            if self.constrain and self.model.is_openai_like
            else {}
        )
        reply = await request(
            self.model,
            messages,
            settings=self.settings,
            meter=self.meter,
            extra=extra,
            name=self.name,
        )
        if reply.failure is not None:
            return reply.failure, reply
        return read_answer(reply.messages[0], self._parse), reply

    def _parse(self, text: str) -> M | Inconclusive:
        return parse_json(text, self.schema) if self.parse is None else self.parse(text)


def _repair_turns(
    reply: Reply, schema: type[BaseModel], problem: Inconclusive
) -> list[BaseMessage]:
    from langchain_core.messages import AIMessage, HumanMessage  # noqa: PLC0415

    shape = json.dumps(schema.model_json_schema(), ensure_ascii=False)
    # An empty assistant turn is refused by some servers.
    answer = text_of(reply.messages[0]) or "(no answer)"
    return [
        AIMessage(answer),
        HumanMessage(_REPAIR.format(problem=problem.detail, schema=shape)),
    ]


def json_schema_format(schema: type[BaseModel]) -> dict[str, Any]:
    """The `response_format` that asks a server to keep to a schema."""
    return {
        "type": "json_schema",
        "json_schema": {
            "name": schema.__name__.strip("_") or "answer",
            "schema": _strict(schema.model_json_schema()),
            "strict": True,
        },
    }


def _strict(schema: Any) -> Any:
    """The schema in the subset of strict mode: every property required, none additional.

    https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
    """
    if isinstance(schema, list):
        return [_strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {
        key: (
            {name: _strict(inner) for name, inner in value.items()}
            if key in {"properties", "$defs"} and isinstance(value, dict)
            else _strict(value)
        )
        for key, value in schema.items()
        if key not in {"default", "title"}
    }
    if "properties" in strict:
        strict["required"] = list(strict["properties"])
        strict["additionalProperties"] = False
    return strict


@dataclass(frozen=True, kw_only=True)
class TextAnswer:
    """One answer."""

    text: str | Inconclusive
    """The answer without its reasoning, or why there is none."""
    cut_off: bool
    """Whether it reached the cap of tokens; it is given as far as it goes."""
    usage: Usage
    """What it cost."""
    notes: tuple[str, ...] = ()
    """What a receipt should say."""


async def ask_text(
    model: Model,
    messages: Sequence[BaseMessage],
    *,
    settings: CallSettings,
    meter: Meter | None = None,
    name: str = "memguard.ask_text",
) -> TextAnswer:
    """Ask for one text.

    Args:
        model: The model to ask.
        messages: The prompt.
        settings: Sampling settings.
        meter: Counts what this spends; the run's own when left out.
        name: Name of the run in callbacks and traces.

    Returns:
        The answer. An empty one is a `parse_failure`, or `truncated` where the cap cut it off.

    Raises:
        ModelConfigurationError: If no request to this model can succeed as it is set up.
        BudgetExhaustedError: If a request would begin beyond a limit of the run.
    """
    scope = (meter or current_meter()).scope()
    reply = await request(model, messages, settings=settings, meter=scope, name=name)
    if reply.failure is not None:
        return TextAnswer(text=reply.failure, cut_off=False, usage=scope.usage, notes=reply.notes)
    message = reply.messages[0]
    cut_off = is_cut_off(message)
    text = read_answer(message, _text, partial=True)
    return TextAnswer(text=text, cut_off=cut_off, usage=scope.usage, notes=reply.notes)


def _text(text: str) -> str | Inconclusive:
    plain = without_reasoning(text).strip()
    if is_blank(plain):
        return Inconclusive(reason="parse_failure", detail="empty answer")
    return plain


async def answer(
    model: Model,
    messages: Sequence[BaseMessage],
    *,
    tools: Mapping[str, Any] | None = None,
    settings: CallSettings | None = None,
) -> AIMessage:
    """Ask for the next message of a conversation.

    Under `stream_mode="messages"` its tokens are streamed where the model was resolved with
    `streams=True`.

    Args:
        model: Who answers.
        messages: The conversation, the system message first.
        tools: What `tool_settings` made of the tools.
        settings: Sampling settings; the model's own when left out.

    Raises:
        AnswerError: If no answer came, after the attempts that the model allows.
        ModelConfigurationError: If no request to this model can succeed as it is set up.
    """
    reply = await request(
        model,
        messages,
        settings=settings or CallSettings(),
        meter=Meter(),
        extra=tools,
        name="answer",
        visible=True,
    )
    if reply.failure is not None:
        failure = reply.failure
        msg = (
            f"model {model.name!r} gave no answer ({failure.reason}: {failure.detail}); what was "
            "remembered is safe, and the same input can be sent again"
        )
        raise AnswerError(msg, code=ErrorCode.ANSWER_FAILED)
    return reply.messages[0]


def tool_settings(model: Model, tools: Sequence[BaseTool]) -> dict[str, Any]:
    """The tools in the form that the model's provider takes, for `answer`.

    Raises:
        ModelConfigurationError: If the chat model takes no tools.
    """
    if not tools:
        return {}
    try:
        bound: Any = model.chat.bind_tools(tools)
    except NotImplementedError:
        msg = f"model {model.name!r} takes no tools: leave `tools` out, or use another model"
        raise ModelConfigurationError(msg, code=ErrorCode.MODEL_REQUEST) from None
    return dict(bound.kwargs)
