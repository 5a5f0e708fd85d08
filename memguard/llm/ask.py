"""Asking a model once: for a JSON object, for a text, or for the next message of a conversation.

`ask` validates the answer against a Pydantic model and repairs it once. `ask_text` returns the text
without its reasoning. Both return failures as `Inconclusive`. `answer` serves the agent, which has
no use for a missing answer, and raises.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel

from memguard.errors import AnswerError, ErrorCode, ModelConfigurationError
from memguard.llm.call import TEMPERATURE_ZERO, CallSettings, Metered, Reply, request
from memguard.llm.failures import shorten
from memguard.llm.limits import Meter, current_meter
from memguard.llm.parsing import Parse, is_cut_off, parse_json, read_answer
from memguard.llm.texts import text_of, without_reasoning
from memguard.schema.base import is_blank
from memguard.schema.decision import Inconclusive

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.tools import BaseTool

    from memguard.llm.models import Model


M = TypeVar("M", bound=BaseModel)

_REPAIR = """\
Your answer could not be used: {problem}

Answer again with one JSON object, and nothing else, that fits this JSON schema:
{schema}"""
"""The message after an answer that does not validate. It asks about the form alone, so it is not a
prompt of a method."""
# Of the first answer, as the model sees it again.
_MAX_REPAIRED_CHARS = 20_000


@dataclass(frozen=True, kw_only=True)
class ParsedAnswer(Metered, Generic[M]):
    """One answer, read as an object."""

    value: M | Inconclusive
    """The object, or why there is none."""
    repaired: bool = False
    """Whether the model was sent its first answer and asked again."""
    text: str = ""
    """The text of the last answer, shortened."""


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
) -> ParsedAnswer[M]:
    """Ask for one object of a schema.

    The server is asked to keep to the schema where it can. An answer that does not validate is
    sent back to the model once, with the error. A refusal, a truncated answer, a timeout and a
    failure of the provider are typed outcomes and are not repaired.

    Args:
        model: The model to ask.
        messages: The prompt; it should describe the JSON, for servers that take no schema.
        schema: The Pydantic model of the answer.
        settings: Sampling settings; temperature 0 by default.
        meter: Counts the usage; the meter of the run by default.
        name: Name of the run in callbacks and traces.
        repair: Whether to ask again after an answer that does not validate.
        parse: Reads the object from the text of the answer, where other forms than JSON are
            accepted.
        constrain: Whether to have the server keep to the schema. Providers put a schema before the
            prompt, so prompts with different schemas have no cached prefix in common.

    Raises:
        ModelConfigurationError: If no request to this model can succeed with its configuration.
        BudgetExhaustedError: If a request would start beyond a limit of the run.
    """
    scope = (meter or current_meter()).scope()
    read: Parse[M] = partial(parse_json, schema=schema) if parse is None else parse
    constrained = constrain and model.is_openai_like

    async def attempt(turns: Sequence[BaseMessage]) -> tuple[M | Inconclusive, Reply]:
        reply = await request(
            model,
            turns,
            settings=settings or TEMPERATURE_ZERO,
            meter=scope,
            extra={"response_format": json_schema_format(schema)} if constrained else None,
            name=name,
        )
        return reply.failure or read_answer(reply.messages[0], read), reply

    value, reply = await attempt(messages)
    notes, repaired = reply.notes, False
    if repair and isinstance(value, Inconclusive) and value.reason == "parse_failure":
        repaired = True
        value, reply = await attempt([*messages, *_repair_turns(reply, schema, value)])
        notes = tuple(dict.fromkeys((*notes, *reply.notes)))
    return ParsedAnswer(
        value=value,
        usage=scope.usage,
        notes=notes,
        repaired=repaired,
        text=shorten(text_of(reply.messages[0]), 2_000) if reply.messages else "",
    )


def _repair_turns(
    reply: Reply, schema: type[BaseModel], problem: Inconclusive
) -> list[BaseMessage]:
    from langchain_core.messages import AIMessage, HumanMessage  # noqa: PLC0415

    shape = json.dumps(schema.model_json_schema(), ensure_ascii=False)
    # Some servers refuse an empty assistant turn, and a runaway answer is not paid for twice.
    first_answer = text_of(reply.messages[0])[:_MAX_REPAIRED_CHARS] or "(no answer)"
    return [
        AIMessage(first_answer),
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
            # Keys in here are names of the user's fields, which may be "title" or "default".
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
class TextAnswer(Metered):
    """One answer as text."""

    text: str | Inconclusive
    """The answer without its reasoning, or why there is none."""
    cut_off: bool
    """Whether it reached the token limit; `text` then has the part before it."""


async def ask_text(
    model: Model,
    messages: Sequence[BaseMessage],
    *,
    settings: CallSettings,
    meter: Meter | None = None,
    name: str = "memguard.ask_text",
) -> TextAnswer:
    """Ask for one text; the arguments are those of `ask`.

    Returns:
        The answer. An empty answer is a `parse_failure`, or `truncated` if the token limit cut it.
        So is the call of a tool: its arguments are no text for a reader.

    Raises:
        ModelConfigurationError: If no request to this model can succeed with its configuration.
        BudgetExhaustedError: If a request would start beyond a limit of the run.
    """
    scope = (meter or current_meter()).scope()
    reply = await request(model, messages, settings=settings, meter=scope, name=name)
    if reply.failure is not None:
        return TextAnswer(text=reply.failure, cut_off=False, usage=scope.usage, notes=reply.notes)
    message = reply.messages[0]
    if message.tool_calls and is_blank(message.text):
        message = message.model_copy(update={"tool_calls": []})
    return TextAnswer(
        text=read_answer(message, _text, partial=True),
        cut_off=is_cut_off(message),
        usage=scope.usage,
        notes=reply.notes,
    )


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
    """Ask for the next message of a conversation, whose system message comes first.

    The tools are as `tool_settings` returns them. Under `stream_mode="messages"` the tokens are
    streamed if the model was resolved with `streams=True`.

    Raises:
        AnswerError: If there is no answer after the attempts that the model allows, or the answer
            has neither content nor a call of one of the tools.
        ModelConfigurationError: If no request to this model can succeed with its configuration.
    """
    reply = await request(
        model,
        messages,
        settings=settings or CallSettings(),
        # A separate meter: a budget of the guard does not limit the answers of the agent.
        meter=Meter(),
        extra=tools,
        name="answer",
        visible=True,
    )
    failure = reply.failure or _why_empty(reply.messages[0], offers_tools=bool(tools))
    if failure is not None:
        msg = (
            f"model {model.name!r} gave no answer ({failure.reason}: {failure.detail}); stored "
            "memories are not affected, and the same input can be sent again"
        )
        raise AnswerError(msg, code=ErrorCode.ANSWER_FAILED)
    return reply.messages[0]


def _why_empty(message: AIMessage, *, offers_tools: bool) -> Inconclusive | None:
    """Why a message is no answer to a person; `None` if it is one, or the call of a tool."""
    if message.tool_calls and offers_tools:
        return None
    blocks = message.content if isinstance(message.content, list) else []
    # An image or a file is an answer too.
    if not is_blank(message.text) or any(
        isinstance(block, dict) and block.get("type") not in _NO_CONTENT for block in blocks
    ):
        return None
    read = read_answer(message.model_copy(update={"tool_calls": []}), _text, partial=True)
    if message.tool_calls and isinstance(read, Inconclusive):
        name = message.tool_calls[0]["name"]
        return read.model_copy(update={"detail": f"a call of the tool {name!r}, not offered"})
    return read if isinstance(read, Inconclusive) else None


_NO_CONTENT = frozenset({"text", "output_text", "reasoning", "thinking", "refusal", "tool_use"})
"""Types of content blocks that, without a text, show a person nothing."""


def tool_settings(model: Model, tools: Sequence[BaseTool]) -> dict[str, Any]:
    """The tools in the form that the model's provider takes, as `answer` expects them.

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
