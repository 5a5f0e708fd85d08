"""The host's own answer: the one kind of call whose text the user sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memguard.errors import AnswerError, ErrorCode, ModelConfigurationError
from memguard.llm.budget import Meter
from memguard.llm.call import CallSettings, request

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.tools import BaseTool

    from memguard.llm.models import Model


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
