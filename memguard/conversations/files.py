"""Conversations from files: JSON, JSONL of messages, and LoCoMo."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from memguard.conversations.messages import read_conversation
from memguard.errors import ErrorCode, InvalidInputError
from memguard.schema.memory import Conversation, Turn

_LOCOMO_TIME = "%I:%M %p on %d %B, %Y"
_SESSION = re.compile(r"session_(\d+)\Z")


def load_conversation(path: str | Path, *, name: str | None = None) -> list[Conversation]:
    """Read the sessions of one conversation from a file, in the order they took place.

    Read are: a JSON list of messages; a JSON object with `messages` (and `id`); JSONL with one
    message a line; and LoCoMo's `locomo10.json`, of which `name` picks one conversation.

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
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, str(error)) from error
    data = _parse(text, file=file)
    if _is_locomo(data):
        return _locomo_sessions(_pick(data, name=name, file=file))
    if isinstance(data, Mapping):
        fields = cast("Mapping[str, Any]", data)
        messages = fields.get("messages", fields.get("turns"))
        conversation_id = str(fields.get("id") or file.stem)
    else:
        messages, conversation_id = data, file.stem
    if not isinstance(messages, list):
        raise _unreadable(file, "it holds neither a list of messages nor an object with `messages`")
    try:
        return [read_conversation(cast("Any", messages), conversation_id=conversation_id)]
    except InvalidInputError as error:
        raise _unreadable(file, error.message) from error


def _parse(text: str, *, file: Path) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as whole:
        lines = [(n, line) for n, line in enumerate(text.splitlines(), start=1) if line.strip()]
        if len(lines) < 2 and file.suffix != ".jsonl":  # noqa: PLR2004
            raise _unreadable(file, f"it is not JSON: {whole}") from whole
    messages: list[Any] = []
    for number, line in lines:
        try:
            messages.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise _unreadable(file, f"line {number} is not JSON: {error}") from error
    return messages


def _is_locomo(data: object) -> bool:
    rows = cast("list[Any]", data) if isinstance(data, list) else [data]
    return bool(rows) and all(isinstance(row, Mapping) and "conversation" in row for row in rows)


def _pick(data: Any, *, name: str | None, file: Path) -> Mapping[str, Any]:
    rows = data if isinstance(data, list) else [data]
    by_id = {str(row.get("sample_id", "")): row for row in rows}
    if name is None and len(by_id) == 1:
        return next(iter(by_id.values()))
    if name not in by_id:
        asked = "no conversation was named" if name is None else f"it has no {name!r}"
        raise _unreadable(file, f"{asked}; it holds {sorted(by_id)}")
    return by_id[name]


def _locomo_sessions(row: Mapping[str, Any]) -> list[Conversation]:
    """The sessions of a LoCoMo conversation; both speakers are people, so both are users."""
    body = row["conversation"]
    numbers = sorted(int(found[1]) for key in body if (found := _SESSION.match(key)))
    return [
        Conversation(
            id=f"{row.get('sample_id', 'locomo')}/session_{number}",
            turns=_locomo_turns(body[f"session_{number}"], at=_locomo_time(body, number)),
        )
        for number in numbers
        if body[f"session_{number}"]
    ]


def _locomo_time(body: Mapping[str, Any], number: int) -> datetime | None:
    stated = body.get(f"session_{number}_date_time")
    if not isinstance(stated, str):
        return None
    # LoCoMo names no time zone; naive times are UTC throughout memguard.
    try:
        return datetime.strptime(stated.strip(), _LOCOMO_TIME).replace(tzinfo=UTC)
    except ValueError as error:
        msg = f"the time of session {number} is {stated!r}, not like '1:56 pm on 8 May, 2023'"
        raise InvalidInputError(msg, code=ErrorCode.FILE_UNREADABLE) from error


def _locomo_turns(turns: Sequence[Mapping[str, Any]], *, at: datetime | None) -> tuple[Turn, ...]:
    return tuple(
        Turn(
            id=turn["dia_id"],
            role="user",
            speaker=turn["speaker"],
            content=turn["text"] + _caption(turn),
            at=at,
        )
        for turn in turns
    )


def _caption(turn: Mapping[str, Any]) -> str:
    """What a shared picture shows, as the data set's captioner put it."""
    caption = turn.get("blip_caption")
    return f" [shares a picture: {caption}]" if caption else ""


def _unreadable(file: Path, why: str) -> InvalidInputError:
    msg = f"cannot read a conversation from {str(file)!r}: {why}"
    return InvalidInputError(msg, code=ErrorCode.FILE_UNREADABLE)
