"""Reads conversations from files: JSON and JSONL with chat messages, and the LoCoMo data set.

LoCoMo's `locomo10.json` has several conversations, each with dated sessions of turns between two
people. Every other file is one conversation.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from memguard.conversations.messages import read_conversation
from memguard.errors import ErrorCode, InvalidInputError
from memguard.schema.memory import Conversation, Turn

# Fields of an object that may contain the list of messages.
_LISTS = ("messages", "turns", "conversation")
# Fields by which an object is recognised as a single message.
_MESSAGE = ("role", "type")

_LOCOMO_TIME = "%I:%M %p on %d %B, %Y"
_LOCOMO_SESSION = re.compile(r"session_(\d+)\Z")
_LOCOMO_FIELDS = ("dia_id", "speaker", "text")

LocomoRow = Mapping[str, Any]
"""One conversation with all its sessions, an item of `locomo10.json`."""


def load_conversation(path: str | Path, *, name: str | None = None) -> list[Conversation]:
    """Read the sessions of one conversation from a file, in chronological order.

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
    try:
        data = _parse(_text(file), is_jsonl=file.suffix == ".jsonl")
        rows = _locomo_rows(data)
        if rows is not None:
            return _sessions(_select(rows, name=name))
        messages, conversation_id = _messages(data, file=file)
        return [read_conversation(cast("Any", messages), conversation_id=conversation_id)]
    except InvalidInputError as error:
        # Here and not where it is raised: the functions below need not know the file.
        msg = f"cannot read a conversation from {str(file)!r}: {error.message}"
        raise InvalidInputError(msg, code=ErrorCode.FILE_UNREADABLE) from error


def _unreadable(reason: str) -> InvalidInputError:
    return InvalidInputError(reason, code=ErrorCode.FILE_UNREADABLE)


def _text(file: Path) -> str:
    try:
        raw = file.read_bytes()
        return raw.decode(json.detect_encoding(raw))
    except UnicodeDecodeError as error:  # a `ValueError`, like the error of a path with a NUL
        msg = f"it is not UTF-8 text ({error}); save it as UTF-8"
        raise _unreadable(msg) from error
    except (OSError, ValueError) as error:
        raise _unreadable(str(error)) from error


def _parse(text: str, *, is_jsonl: bool) -> Any:
    try:
        return _json(text)
    except ValueError as json_error:
        # Not `splitlines`: JSON text may contain other line separators, such as U+2028.
        lines = [(n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]
        # A single line that is not JSON is a broken JSON file rather than JSONL.
        if len(lines) < 2 and not is_jsonl:  # noqa: PLR2004
            msg = f"it is not JSON: {json_error}" if lines else "it is empty"
            raise _unreadable(msg) from json_error
    messages: list[Any] = []
    for number, line in lines:
        try:
            messages.append(_json(line))
        except ValueError as error:
            msg = f"line {number} is not JSON: {error}"
            raise _unreadable(msg) from error
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
        raise _unreadable(msg)
    return cast("list[Any]", messages), name


def _locomo_rows(data: object) -> list[LocomoRow] | None:
    """The conversations of a LoCoMo file; `None` if the data has another format."""
    rows: list[Any] = cast("list[Any]", data) if isinstance(data, list) else [data]
    # In other formats, `conversation` is a list of messages and not a mapping of sessions.
    is_locomo = bool(rows) and all(
        isinstance(row, Mapping)
        and isinstance(cast("Mapping[str, Any]", row).get("conversation"), Mapping)
        for row in rows
    )
    return rows if is_locomo else None


def _select(rows: Sequence[LocomoRow], *, name: str | None) -> LocomoRow:
    """The conversation with this id; without a name, the only one."""
    names = [str(row.get("sample_id", "")) for row in rows]
    if name is None and len(rows) == 1:
        return rows[0]
    if name is None:
        msg = f"no conversation was named; it contains {sorted(names)}"
        raise _unreadable(msg)
    if names.count(name) > 1:
        msg = f"it contains the conversation {name!r} {names.count(name)} times"
        raise _unreadable(msg)
    if name not in names:
        msg = f"it has no {name!r}, only {sorted(names)}"
        raise _unreadable(msg)
    return rows[names.index(name)]


def _sessions(row: LocomoRow) -> list[Conversation]:
    """The sessions of a conversation, in chronological order."""
    body: Mapping[str, Any] = row["conversation"]
    # By number: as text, session 10 would come before session 2.
    numbers = sorted(int(match[1]) for key in body if (match := _LOCOMO_SESSION.match(key)))
    if not numbers:
        msg = f"its conversation has no `session_1`, only {sorted(body)}"
        raise _unreadable(msg)
    return [
        Conversation(
            id=f"{row.get('sample_id', 'locomo')}/session_{number}",
            turns=_turns(body[f"session_{number}"], number=number, at=_time(body, number)),
        )
        for number in numbers
        if body[f"session_{number}"]
    ]


def _time(body: Mapping[str, Any], number: int) -> datetime | None:
    text = body.get(f"session_{number}_date_time")
    if not isinstance(text, str):
        return None
    # LoCoMo states no time zone; memguard reads all naive times as UTC.
    try:
        return datetime.strptime(text.strip(), _LOCOMO_TIME).replace(tzinfo=UTC)
    except ValueError as error:
        msg = f"the time of session {number} is {text!r}, not like '1:56 pm on 8 May, 2023'"
        raise _unreadable(msg) from error


def _turns(items: object, *, number: int, at: datetime | None) -> tuple[Turn, ...]:
    if not isinstance(items, list):
        msg = f"session {number} is a {type(items).__name__}, not a list of turns"
        raise _unreadable(msg)
    turns: dict[str, Turn] = {}
    for index, item in enumerate(cast("list[Any]", items), start=1):
        where = f"turn {index} of session {number}"
        turn_id, speaker, text = _fields(item, where=where)
        if turn_id in turns:
            msg = f"{where} has the id {turn_id!r} of another turn"
            raise _unreadable(msg)
        # The caption of a shared picture, which the data set has from a model. Without it, an
        # answer such as "She is beautiful!" has nothing to refer to.
        caption = item.get("blip_caption")
        content = f"{text} [shares a picture: {caption}]" if caption else text
        # Both speakers are people, so both are users.
        turns[turn_id] = Turn(id=turn_id, role="user", speaker=speaker, content=content, at=at)
    return tuple(turns.values())


def _fields(turn: object, *, where: str) -> list[str]:
    if not isinstance(turn, Mapping):
        msg = f"{where} is a {type(turn).__name__}, not a mapping"
        raise _unreadable(msg)
    fields = cast("Mapping[str, Any]", turn)
    for name in _LOCOMO_FIELDS:
        if not isinstance(fields.get(name), str):
            msg = f"{where} has {name} {fields.get(name)!r}, which is not a text"
            raise _unreadable(msg)
    return [fields[name] for name in _LOCOMO_FIELDS]
