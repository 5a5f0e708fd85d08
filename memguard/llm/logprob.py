"""One yes/no question, answered by the log-probabilities at the answer token."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memguard.errors import ErrorCode
from memguard.llm.budget import Meter
from memguard.llm.call import CallSettings, model_error, request
from memguard.llm.metering import current_meter
from memguard.llm.parsing import read_answer
from memguard.policy.yes_no import bare_token, yes_no_probability
from memguard.schema.usage import Usage
from memguard.schema.verdict import Inconclusive

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage

    from memguard.llm.models import Model

TOP_TOKENS = 20
"""Tokens asked for at each position; the most OpenAI gives."""

_DEFAULT_SETTINGS = CallSettings(temperature=0.0)
_CLOSER = re.compile(r"</(?:think(?:ing)?|reasoning)\s*>", re.IGNORECASE)
_OPENER = re.compile(r"<(?:think(?:ing)?|reasoning)\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class LogprobAnswer:
    """A probability, with the tokens it was computed from."""

    probability: float | Inconclusive
    """The probability of yes, in [0, 1]."""
    top: tuple[tuple[str, float], ...]
    """The top tokens at the answer position with their log-probabilities."""
    usage: Usage
    """What it cost."""
    notes: tuple[str, ...] = ()
    """What a receipt should say."""


async def yes_no_logprob(
    model: Model,
    messages: Sequence[BaseMessage],
    *,
    settings: CallSettings | None = None,
    meter: Meter | None = None,
    name: str = "memguard.logprob",
) -> LogprobAnswer:
    """Ask a yes/no question and read the probability of yes.

    Args:
        model: A model whose server returns log-probabilities.
        messages: The prompt; it should ask for `yes` or `no` and nothing else.
        settings: Sampling settings; temperature 0 when left out.
        meter: Counts what this spends; the run's own when left out.
        name: Name of the run in callbacks and traces.

    Raises:
        ModelConfigurationError: If the model gives no log-probabilities, or cannot be used at all.
        BudgetExhaustedError: If the request would begin beyond a limit of the run.
    """
    scope = (meter or current_meter()).scope()
    reply = await request(
        model,
        messages,
        settings=settings or _DEFAULT_SETTINGS,
        meter=scope,
        extra={"logprobs": True, "top_logprobs": TOP_TOKENS},
        name=name,
    )
    if reply.failure is not None:
        return LogprobAnswer(
            probability=reply.failure, top=(), usage=scope.usage, notes=reply.notes
        )
    message = reply.messages[0]
    refused = read_answer(message, lambda text: text)
    tokens = _tokens(message)
    if isinstance(refused, Inconclusive) and refused.reason == "refusal":
        top_or_reason: tuple[tuple[str, float], ...] | Inconclusive = refused
    elif not tokens:
        error = model_error(
            model, code=ErrorCode.MODEL_LOGPROBS, detail="the answer came without any"
        )
        scope.fail(error)
        raise error
    else:
        top_or_reason = top_at_answer(tokens)
    top = () if isinstance(top_or_reason, Inconclusive) else top_or_reason
    return LogprobAnswer(
        probability=top_or_reason
        if isinstance(top_or_reason, Inconclusive)
        else yes_no_probability(top_or_reason),
        top=top,
        usage=scope.usage,
        notes=reply.notes,
    )


def _tokens(message: AIMessage) -> list[Mapping[str, Any]]:
    logprobs: Any = message.response_metadata.get("logprobs") or {}
    content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    return [token for token in content or () if isinstance(token, Mapping)]


def top_at_answer(
    tokens: Sequence[Mapping[str, Any]],
) -> tuple[tuple[str, float], ...] | Inconclusive:
    """The top tokens at the first token that is an answer: past reasoning, space and markup.

    Args:
        tokens: As in OpenAI's `logprobs.content`: `token`, `logprob`, `top_logprobs`.
    """
    for token in tokens[_after_reasoning(tokens) :]:
        if bare_token(str(token.get("token") or "")):
            return _with_chosen(token)
    return Inconclusive(reason="parse_failure", detail="the answer holds no token of text")


def _after_reasoning(tokens: Sequence[Mapping[str, Any]]) -> int:
    """The first position behind the last closing tag; behind everything if none closes."""
    text, ends = "", list[int]()
    for token in tokens:
        text += str(token.get("token") or "")
        ends.append(len(text))
    closers = list(_CLOSER.finditer(text))
    if closers:
        return next(i for i, end in enumerate(ends) if end >= closers[-1].end()) + 1
    return len(tokens) if _OPENER.search(text) else 0


def _with_chosen(token: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    """The top tokens, and the one that was chosen, where it is not among them."""
    pairs = [
        (str(one.get("token")), float(one.get("logprob") or 0.0))
        for one in token.get("top_logprobs") or ()
    ]
    chosen = (str(token.get("token")), float(token.get("logprob") or 0.0))
    if all(name != chosen[0] for name, _ in pairs):
        pairs.append(chosen)
    return tuple(pairs)
