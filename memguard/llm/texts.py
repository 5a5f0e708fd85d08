"""The text of a model's answer, without its reasoning, and the JSON objects in it. Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_TAGS = r"(?:think(?:ing)?|reasoning|thoughts?|reflection|scratchpad)"
_CLOSED = re.compile(rf"<({_TAGS})\b[^>]*>.*?</\1\s*>", re.IGNORECASE | re.DOTALL)
# Anchored: from every other position `.*` would read the whole text again.
_LAST_CLOSER = re.compile(rf"\A.*</{_TAGS}\s*>", re.IGNORECASE | re.DOTALL)
_OPENER = re.compile(rf"<{_TAGS}\b[^>]*>.*", re.IGNORECASE | re.DOTALL)


def text_of(message: object) -> str:
    """What the model answered, as text: never its reasoning, never the repr of a list.

    Args:
        message: A string, or anything with the `content` and `tool_calls` of a chat message.

    Returns:
        The text blocks joined; if there is no text, the arguments of the first tool call as JSON.
    """
    if isinstance(message, str):
        return message
    text = _text_of_content(_get(message, "content"))
    if text.strip():
        return text
    calls = _get(message, "tool_calls")
    if isinstance(calls, Sequence) and calls:
        args = _get(calls[0], "args")
        return json.dumps(args) if isinstance(args, Mapping) else ""
    return text


def _text_of_content(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    parts: list[str] = []
    for block in content:
        if isinstance(block, str):
            parts.append(block)
        elif isinstance(block, Mapping) and block.get("type") in {"text", "output_text"}:
            parts.append(str(block.get("text") or ""))
    return "".join(parts)


def _get(thing: object, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def without_reasoning(text: str) -> str:
    """The text after reasoning tags, whether they were closed, opened by the template, or cut off.

    An answer that is one JSON value is left as it is: a tag inside a string is a quotation.
    """
    if _is_json(text):
        return text
    text = _CLOSED.sub("", text)
    text = _LAST_CLOSER.sub("", text)
    return _OPENER.sub("", text)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


@dataclass(frozen=True)
class JsonObject:
    """One JSON object found in a text."""

    value: dict[str, Any]
    """The object."""
    start: int
    """Where it begins."""
    end: int
    """Where it ends."""
    enclosed: bool
    """Whether it lies inside braces that are no JSON: a quotation in a broken answer."""


_DECODER = json.JSONDecoder()
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
MAX_ANSWER_CHARS = 8_000
"""Characters of an answer that are searched for a score or a choice, from its end: a verdict is
stated last, and a runaway answer must not hold up the event loop."""

_MAX_TRIES = 200
"""Openings tried in one text; bounds the work on a text made of braces."""


def json_objects(text: str) -> list[JsonObject]:
    """The complete JSON objects in a text, outermost ones only, in order."""
    objects: list[JsonObject] = []
    closings = _closings(text)
    broken_until = -1
    position = text.find("{")
    for _ in range(_MAX_TRIES):
        if position < 0:
            break
        closing = closings.get(position, len(text))
        read = _read_object(text, position, closing=closing)
        if read is None:
            # Whatever lies within these braces may be a quotation.
            broken_until = max(broken_until, closing)
            position = text.find("{", position + 1)
        else:
            value, end = read
            objects.append(JsonObject(value, position, end, enclosed=position < broken_until))
            position = text.find("{", end)
    return objects


def _read_object(text: str, start: int, *, closing: int) -> tuple[dict[str, Any], int] | None:
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return _read_forgiving(text[start : closing + 1], end=closing + 1)
    return value, end


def _read_forgiving(piece: str, *, end: int) -> tuple[dict[str, Any], int] | None:
    """Read an object whose only fault is a comma before a closing bracket."""
    if not _TRAILING_COMMA.search(piece):
        return None
    try:
        return json.loads(_TRAILING_COMMA.sub(r"\1", piece)), end
    except (ValueError, RecursionError):
        return None


def _closings(text: str) -> dict[int, int]:
    """Where each opening brace is closed, by count alone; a brace that is not closed is absent.

    One pass over the text: counting from every brace anew held the event loop for a second.
    """
    closings: dict[int, int] = {}
    openings: list[int] = []
    for brace in re.finditer(r"[{}]", text):
        if brace[0] == "{":
            openings.append(brace.start())
        elif openings:
            closings[openings.pop()] = brace.start()
    return closings
