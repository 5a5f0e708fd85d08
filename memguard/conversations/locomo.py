"""Reads LoCoMo's conversations: dated sessions of turns between two people."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from memguard.errors import ErrorCode, InvalidInputError
from memguard.schema.memory import Conversation, Turn

_TIME = "%I:%M %p on %d %B, %Y"
_SESSION = re.compile(r"session_(\d+)\Z")
_NEEDED = ("dia_id", "speaker", "text")

Row = Mapping[str, Any]
"""One conversation with all its sessions, an item of `locomo10.json`."""


def locomo_rows(data: object) -> list[Row] | None:
    """The conversations of a LoCoMo file; `None` if the data has another format."""
    rows: list[Any] = cast("list[Any]", data) if isinstance(data, list) else [data]
    is_locomo = bool(rows) and all(
        isinstance(row, Mapping)
        and isinstance(cast("Mapping[str, Any]", row).get("conversation"), Mapping)
        for row in rows
    )
    return rows if is_locomo else None


def pick_row(rows: Sequence[Row], *, name: str | None) -> Row:
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


def read_sessions(row: Row) -> list[Conversation]:
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
