"""Reads LoCoMo's conversations: dated sessions of turns between two people."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from memguard.conversations.messages import read_conversation
from memguard.errors import ErrorCode, InvalidInputError
from memguard.schema.memory import Conversation, Turn

_TIME = "%I:%M %p on %d %B, %Y"
_SESSION = re.compile(r"session_(\d+)\Z")
_NEEDED = ("dia_id", "speaker", "text")

LocomoRow = Mapping[str, Any]
"""One conversation with all its sessions, an item of `locomo10.json`."""


def locomo_rows(data: object) -> list[LocomoRow] | None:
    """The conversations of a LoCoMo file; `None` if the data has another format."""
    rows: list[Any] = cast("list[Any]", data) if isinstance(data, list) else [data]
    is_locomo = bool(rows) and all(
        isinstance(row, Mapping)
        and isinstance(cast("Mapping[str, Any]", row).get("conversation"), Mapping)
        for row in rows
    )
    return rows if is_locomo else None


def pick_row(rows: Sequence[LocomoRow], *, name: str | None) -> LocomoRow:
    """The conversation with that id; without a name, the only one.

    Raises:
        InvalidInputError: If not exactly one conversation matches.
    """
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


def read_sessions(row: LocomoRow) -> list[Conversation]:
    """The sessions of a conversation, in the order they took place.

    Both speakers have the role `user`, since both are people.

    Raises:
        InvalidInputError: If a session, a turn or a time does not have LoCoMo's format; the message
            says which.
    """
    body: Mapping[str, Any] = row["conversation"]
    # By number: as text, session 10 would come before session 2.
    numbers = sorted(int(hit[1]) for key in body if (hit := _SESSION.match(key)))
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
    stated = body.get(f"session_{number}_date_time")
    if not isinstance(stated, str):
        return None
    # LoCoMo states no time zone; memguard reads all naive times as UTC.
    try:
        return datetime.strptime(stated.strip(), _TIME).replace(tzinfo=UTC)
    except ValueError as error:
        msg = f"the time of session {number} is {stated!r}, not like '1:56 pm on 8 May, 2023'"
        raise _unreadable(msg) from error


def _turns(turns: object, *, number: int, at: datetime | None) -> tuple[Turn, ...]:
    if not isinstance(turns, list):
        msg = f"session {number} is a {type(turns).__name__}, not a list of turns"
        raise _unreadable(msg)
    read: dict[str, Turn] = {}
    for index, turn in enumerate(cast("list[Any]", turns), start=1):
        where = f"turn {index} of session {number}"
        fields = _fields(turn, where=where)
        if fields["dia_id"] in read:
            msg = f"{where} has the id {fields['dia_id']!r} of another turn"
            raise _unreadable(msg)
        read[fields["dia_id"]] = Turn(
            id=fields["dia_id"],
            role="user",
            speaker=fields["speaker"],
            content=fields["text"] + _caption(turn),
            at=at,
        )
    return tuple(read.values())


def _fields(turn: object, *, where: str) -> dict[str, str]:
    if not isinstance(turn, Mapping):
        msg = f"{where} is a {type(turn).__name__}, not a mapping"
        raise _unreadable(msg)
    fields = cast("Mapping[str, Any]", turn)
    for name in _NEEDED:
        if not isinstance(fields.get(name), str):
            msg = f"{where} has {name} {fields.get(name)!r}, which is not a text"
            raise _unreadable(msg)
    return {name: fields[name] for name in _NEEDED}


def _caption(turn: Mapping[str, Any]) -> str:
    """The caption of a shared picture, which the data set has from a model."""
    # Without it, an answer such as "She is beautiful!" has nothing to refer to.
    caption = turn.get("blip_caption")
    return f" [shares a picture: {caption}]" if caption else ""


def _unreadable(why: str) -> InvalidInputError:
    return InvalidInputError(why, code=ErrorCode.FILE_UNREADABLE)


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
        raise _files_unreadable(file, error.message) from error


def _text(file: Path) -> str:
    try:
        raw = file.read_bytes()
    except (OSError, ValueError) as error:
        raise _files_unreadable(file, str(error)) from error
    try:
        return raw.decode(json.detect_encoding(raw))
    except UnicodeDecodeError as error:
        raise _files_unreadable(
            file, f"it is not UTF-8 text ({error}); save it as UTF-8"
        ) from error


def _parse(text: str, *, file: Path) -> Any:
    try:
        return _json(text)
    except ValueError as whole:
        # Not `splitlines`: JSON text may contain other line separators, such as U+2028.
        lines = [(n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]
        if len(lines) < 2 and file.suffix != ".jsonl":  # noqa: PLR2004
            why = f"it is not JSON: {whole}" if lines else "it is empty"
            raise _files_unreadable(file, why) from whole
    messages: list[Any] = []
    for number, line in lines:
        try:
            messages.append(_json(line))
        except ValueError as error:
            raise _files_unreadable(file, f"line {number} is not JSON: {error}") from error
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
        raise _files_unreadable(file, msg)
    return cast("list[Any]", messages), name


def _files_unreadable(file: Path, why: str) -> InvalidInputError:
    msg = f"cannot read a conversation from {str(file)!r}: {why}"
    return InvalidInputError(msg, code=ErrorCode.FILE_UNREADABLE)
