"""From a model's answer to a value, or to a typed reason why there is none. Pure.

`read_answer` is the one way in: it knows refusals and answers that were cut off, takes the text
off the message, and leaves the rest to one of the `parse_*` functions.
"""

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from memguard.llm.choices import parse_choice
from memguard.llm.failures import shorten
from memguard.llm.scores import find_score, parse_score
from memguard.llm.texts import json_objects, text_of, without_reasoning
from memguard.schema.verdict import Inconclusive, SupportSample

__all__ = [
    "Parse",
    "is_cut_off",
    "parse_choice",
    "parse_json",
    "parse_score",
    "parse_support",
    "read_answer",
    "text_of",
    "without_reasoning",
]

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

Parse = Callable[[str], T | Inconclusive]
"""Reads a value out of an answer's text."""

_TURN_KEYS = ("turns", "turn_ids", "evidence", "sources")
_CUT = frozenset({"length", "max_tokens", "max_output_tokens", "MAX_TOKENS"})
_FILTERED = frozenset({"content_filter", "refusal", "SAFETY", "PROHIBITED_CONTENT"})


def read_answer(message: object, parse: Parse[T], *, partial: bool = False) -> T | Inconclusive:
    """Read a chat message with one of the parsers.

    Args:
        message: An `AIMessage`, or anything shaped like one.
        parse: Reads the value out of the text.
        partial: Whether a value that may have had more digits is welcome, as in prose.

    Returns:
        The value; `refusal` when the model declined; `truncated` when the answer was cut off
        before or within the value; otherwise what `parse` says.
    """
    extra: Any = getattr(message, "additional_kwargs", None) or {}
    finish = _finish_of(message)
    text = text_of(message)
    refusal = extra.get("refusal") or _refusal_block(message)
    if refusal or finish in _FILTERED:
        return Inconclusive(reason="refusal", detail=shorten(str(refusal or text or finish)))
    value = parse(text)
    if finish not in _CUT:
        return value
    if isinstance(value, Inconclusive) or (not partial and _may_be_cut(text)):
        return Inconclusive(reason="truncated", detail=shorten(text))
    return value


def is_cut_off(message: object) -> bool:
    """Whether an answer reached the cap of tokens."""
    return _finish_of(message) in _CUT


def _finish_of(message: object) -> str:
    metadata: Any = getattr(message, "response_metadata", None) or {}
    return metadata.get("finish_reason") or metadata.get("stop_reason") or ""


def _refusal_block(message: object) -> str:
    content: Any = getattr(message, "content", None)
    blocks = content if isinstance(content, list) else []
    parts = (block for block in blocks if isinstance(block, dict))
    return next((str(b.get("refusal") or "") for b in parts if b.get("type") == "refusal"), "")


def _may_be_cut(text: str) -> bool:
    """Whether a number at the very end may have had more digits."""
    return re.search(r"[\d.,]\s*$", text) is not None


def parse_support(text: str, *, turn_ids: Collection[str]) -> SupportSample | Inconclusive:
    """Read a support score with its reason and evidence.

    Args:
        text: The model's answer: `{"reason": ..., "turns": [...], "score": ...}`, or any form
            that `parse_score` takes.
        turn_ids: The turns the model was shown; other ids are left out.
    """
    score = find_score(text)
    if isinstance(score, Inconclusive):
        return score
    assert not isinstance(score.reading, str)  # noqa: S101 - `find_score` returns readings only
    value = score.source.value if score.source is not None else {}
    reason = value.get("reason") or value.get("explanation") or ""
    named = next((value[key] for key in _TURN_KEYS if key in value), ())
    return SupportSample(
        score=score.reading,
        reason=shorten(str(reason), 1_000) if isinstance(reason, str) else "",
        turn_ids=_known(named, turn_ids),
    )


def _known(named: object, turn_ids: Collection[str]) -> tuple[str, ...]:
    if isinstance(named, str):
        named = re.split(r"[,;]\s*|\s+", named)
    if not isinstance(named, Sequence):
        return ()
    ids = (str(one).strip(" \t\n[](){}#\"'") for one in named)
    return tuple(dict.fromkeys(one for one in ids if one in turn_ids))


def parse_json(text: str, schema: type[M]) -> M | Inconclusive:
    """Read a JSON object of a schema: the last complete one that validates.

    Takes fences, prose around the object and a comma too many. An object inside the braces of a
    broken one may be a quotation and is not read.

    Args:
        text: The model's answer; reasoning tags are taken off here.
        schema: The Pydantic model to validate with.
    """
    objects = json_objects(without_reasoning(text))
    problem = "no JSON object"
    for candidate in reversed(objects):
        if candidate.enclosed:
            continue
        try:
            return schema.model_validate(candidate.value)
        except ValidationError as error:
            problem = explain(error)
    detail = f"{problem}: {text}" if text.strip() else "empty answer"
    return Inconclusive(reason="parse_failure", detail=shorten(detail))


def explain(error: ValidationError) -> str:
    """A validation error in a form that a model can act on."""
    lines = [
        f"{'.'.join(str(part) for part in item['loc']) or 'the object'}: {item['msg']}"
        for item in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return shorten("; ".join(lines), 500)
