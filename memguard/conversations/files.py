"""Conversations from files: JSON, JSONL of messages, and LoCoMo."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from memguard.conversations.locomo import locomo_rows, pick_row, read_sessions
from memguard.conversations.messages import read_conversation
from memguard.errors import ErrorCode, InvalidInputError
from memguard.schema.memory import Conversation

_LISTS = ("messages", "turns", "conversation")
_MESSAGE = ("role", "type")


def load_conversation(path: str | Path, *, name: str | None = None) -> list[Conversation]:
    """Read the sessions of one conversation from a file, in the order they took place.

    Read are: a JSON list of messages; a JSON object with `messages` (and `id`); JSONL with one
    message a line; and LoCoMo's `locomo10.json`, of which `name` picks one conversation. The text
    is UTF-8, or UTF-16 or UTF-32 with a byte order mark, as some editors of Windows write it.

    Args:
        path: The file.
        name: For a file of several conversations, the id of the one to read, for example
            `conv-26`.

    Returns:
        One conversation per session; one in all for files that know no sessions.

    Raises:
        InvalidInputError: If the file is missing, is not readable as any of these, or does not
            hold `name`. The message names the file and the line or field.
    """
    file = Path(path)
    data = _parse(_text(file), file=file)
    try:
        rows = locomo_rows(data)
        if rows is not None:
            return read_sessions(pick_row(rows, name=name))
        messages, conversation_id = _messages(data, file=file)
        return [read_conversation(cast("Any", messages), conversation_id=conversation_id)]
    except InvalidInputError as error:
        raise _unreadable(file, error.message) from error


def _text(file: Path) -> str:
    try:
        raw = file.read_bytes()
    except (OSError, ValueError) as error:
        raise _unreadable(file, str(error)) from error
    try:
        return raw.decode(json.detect_encoding(raw))
    except UnicodeDecodeError as error:
        raise _unreadable(file, f"it is not UTF-8 text, save it as such: {error}") from error


def _parse(text: str, *, file: Path) -> Any:
    try:
        return _json(text)
    except ValueError as whole:
        # Not `splitlines`: JSON text may hold other line separators, U+2028 for one.
        lines = [(n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]
        if len(lines) < 2 and file.suffix != ".jsonl":  # noqa: PLR2004
            why = f"it is not JSON: {whole}" if lines else "it is empty"
            raise _unreadable(file, why) from whole
    messages: list[Any] = []
    for number, line in lines:
        try:
            messages.append(_json(line))
        except ValueError as error:
            raise _unreadable(file, f"line {number} is not JSON: {error}") from error
    return messages


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        msg = "it is nested too deep"
        raise ValueError(msg) from None


def _messages(data: object, *, file: Path) -> tuple[list[Any], str]:
    """The messages, and what the conversation is called."""
    if not isinstance(data, Mapping):
        found, name = data, file.stem
    else:
        fields = cast("Mapping[str, Any]", data)
        found = next((fields[field] for field in _LISTS if field in fields), None)
        name = str(fields.get("id") or file.stem)
        if found is None and (file.suffix == ".jsonl" or any(key in fields for key in _MESSAGE)):
            # A file of one line is one message, as a file of two lines is two.
            found, name = [data], file.stem
    if not isinstance(found, list):
        msg = "it holds neither a list of messages nor an object with `messages`"
        raise _unreadable(file, msg)
    return cast("list[Any]", found), name


def _unreadable(file: Path, why: str) -> InvalidInputError:
    msg = f"cannot read a conversation from {str(file)!r}: {why}"
    return InvalidInputError(msg, code=ErrorCode.FILE_UNREADABLE)
