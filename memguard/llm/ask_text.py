"""Ask a model for a text: an answer as a user would get it, or a typed reason why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memguard.llm.budget import Meter
from memguard.llm.call import CallSettings, request
from memguard.llm.metering import current_meter
from memguard.llm.parsing import is_cut_off, read_answer, without_reasoning
from memguard.schema.base import is_blank
from memguard.schema.usage import Usage
from memguard.schema.verdict import Inconclusive

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from memguard.llm.models import Model


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
