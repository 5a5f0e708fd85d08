"""Reads conversations from files: JSON, JSONL of messages, and LoCoMo."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from memguard.conversations.locomo import locomo_rows, pick_row, read_sessions
from memguard.conversations.messages import read_conversation
from memguard.errors import ErrorCode, InvalidInputError
from memguard.schema.memory import Conversation

# Fields of an object that may hold the list of messages.
_LISTS = ("messages", "turns", "conversation")
# Fields by which an object is recognised as a single message.
_MESSAGE = ("role", "type")


def load_conversation(path: str | Path, *, name: str | None = None) -> list[Conversation]:
    """Read the sessions of one conversation from a file, in the order they took place.

    Supported are a JSON list of messages, a JSON object with `messages` (and optionally `id`),
    JSONL with one message per line, and LoCoMo's `locomo10.json`, from which `name` selects a
    conversation. The encoding is UTF-8, or UTF-16 or UTF-32 with a byte order mark, as some Windows
    editors write.

    Args:
        path: The file.
        name: Id of the conversation to read from a file with several, for example `conv-26`.

    Returns:
        One conversation per session; a single one for files without sessions.

    Raises:
        InvalidInputError: If the file is missing, has none of these formats, or does not contain
            `name`. The message states the file and the line or field.
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
        raise _unreadable(file, f"it is not UTF-8 text ({error}); save it as UTF-8") from error


def _parse(text: str, *, file: Path) -> Any:
    try:
        return _json(text)
    except ValueError as whole:
        # Not `splitlines`: JSON text may contain other line separators, such as U+2028.
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
        # A `ValueError`, so that hostile input is reported like any other broken file.
        msg = "it is nested too deeply"
        raise ValueError(msg) from None


def _messages(data: object, *, file: Path) -> tuple[list[Any], str]:
    """The messages, and the id of the conversation."""
    if not isinstance(data, Mapping):
        messages, name = data, file.stem
    else:
        fields = cast("Mapping[str, Any]", data)
        messages = next((fields[field] for field in _LISTS if field in fields), None)
        name = str(fields.get("id") or file.stem)
        if messages is None and (file.suffix == ".jsonl" or any(key in fields for key in _MESSAGE)):
            # JSONL of one line is parsed as an object; like other lines, it is one message.
            messages, name = [data], file.stem
    if not isinstance(messages, list):
        msg = "it contains neither a list of messages nor an object with `messages`"
        raise _unreadable(file, msg)
    return cast("list[Any]", messages), name


def _unreadable(file: Path, why: str) -> InvalidInputError:
    msg = f"cannot read a conversation from {str(file)!r}: {why}"
    return InvalidInputError(msg, code=ErrorCode.FILE_UNREADABLE)
