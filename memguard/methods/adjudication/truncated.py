"""What an answer says before it was truncated: its complete entries, read from the beginning. Pure.

The object is read strictly in order, so that a brace or an entry within a quoted text is never
taken for one of the answer.
"""

import json
from typing import Any, cast

from memguard.llm.texts import without_reasoning

_DECODER = json.JSONDecoder()
_SPACE = " \t\r\n"


def entries_before_end(text: str, *, name: str) -> dict[str, Any] | None:
    """The members of an object up to where it ends, with the complete entries of one of its lists.

    Args:
        text: The answer of a model, perhaps with reasoning before the object.
        name: The list that may be incomplete.

    Returns:
        `None` if no entry of the list is complete.
    """
    plain = without_reasoning(text)
    start = plain.find("{")
    members: dict[str, Any] = {}
    position = start + 1 if start >= 0 else len(plain)
    while (member := _next_name(plain, position)) is not None:
        key, position = member
        if key == name and plain.startswith("[", position):
            entries = _entries(plain, position + 1)
            return {**members, name: entries} if entries else None
        value = _value(plain, position)
        if value is None:
            return None
        members[key], position = value
    return None


def _next_name(text: str, position: int) -> tuple[str, int] | None:
    """The next name of an object, and where its value begins."""
    position = _skip(text, position, _SPACE + ",")
    name = _value(text, position) if text.startswith('"', position) else None
    if name is None:
        return None
    position = _skip(text, name[1], _SPACE)
    return (str(name[0]), _skip(text, position + 1, _SPACE)) if text[position:][:1] == ":" else None


def _entries(text: str, position: int) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    while True:
        position = _skip(text, position, _SPACE + ",")
        entry = _value(text, position) if text.startswith("{", position) else None
        if entry is None:
            return entries
        value, position = entry
        if isinstance(value, dict):
            entries.append(cast("dict[str, Any]", value))


def _value(text: str, position: int) -> tuple[Any, int] | None:
    """The complete JSON value at a position, and its end."""
    try:
        value, end = _DECODER.raw_decode(text, position)
    except (ValueError, RecursionError):
        return None
    # A number at the very end may have had more digits.
    return None if end == len(text) and text[-1:].isdigit() else (value, end)


def _skip(text: str, position: int, characters: str) -> int:
    while position < len(text) and text[position] in characters:
        position += 1
    return position
