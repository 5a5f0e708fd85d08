"""Reads chat messages in all common formats into a `Conversation`, also as fields of models."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, cast

from langchain_core.messages import BaseMessage
from pydantic import BeforeValidator, ValidationError

from memguard.errors import ErrorCode, InvalidInputError
from memguard.quoting import cut_sections
from memguard.schema.memory import CandidateMemory, Conversation, Role, Turn

_ROLES: dict[str, Role] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
    "document": "document",
}
# Types of content blocks with text, of OpenAI's chat completions and of its Responses API.
_TEXT_BLOCKS = ("text", "input_text", "output_text")
# The first one with a value counts.
_TIME_FIELDS = ("at", "timestamp", "created_at", "time")

ConversationLike = (
    Conversation | str | Sequence[BaseMessage | Turn | Mapping[str, Any] | tuple[str, str]]
)
"""A conversation, a plain text (one user turn), or a list of messages in any common format."""


def read_conversation(source: ConversationLike, *, conversation_id: str = "") -> Conversation:
    """Read a conversation from a text, messages or turns.

    A message may be a LangChain message, a `Turn`, a `(role, text)` pair, or a mapping with `role`
    and `content`. Optional fields of a mapping are `id`, `speaker` (or `name`) and a time in `at`,
    `timestamp`, `created_at` or `time`, as ISO 8601 or Unix seconds; naive times are UTC. Turns
    without an id are numbered from 1.

    Args:
        source: A conversation, which is returned unchanged, a text, or a list of messages.
        conversation_id: Id of the new conversation.

    Raises:
        InvalidInputError: If a message has no readable role, text or time, or an id is repeated.
    """
    if isinstance(source, Conversation):
        return source
    if isinstance(source, str):
        source = [("user", source)]
    # Bytes and mappings are iterable, but neither iterates over messages.
    if isinstance(source, bytes | Mapping) or not isinstance(cast("object", source), Iterable):
        kind = type(cast("object", source)).__name__
        msg = (
            f"a conversation cannot be read from a {kind}: pass a text, a `Conversation`, or a "
            "list of messages"
        )
        raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
    turns = tuple(_read_turn(message, number=n) for n, message in enumerate(source, start=1))
    _refuse_repeated_ids(turns)
    return Conversation(turns=turns, id=conversation_id)


def _read_turn(message: object, *, number: int) -> Turn:
    if isinstance(message, Turn):
        return message
    try:
        if isinstance(message, BaseMessage):
            return _from_langchain(message, number=number)
        if isinstance(message, Mapping):
            return _from_mapping(cast("Mapping[str, Any]", message), number=number)
        if isinstance(message, tuple | list) and len(cast("Sequence[Any]", message)) == 2:  # noqa: PLR2004
            role, content = cast("Sequence[Any]", message)
            return _from_mapping({"role": role, "content": content}, number=number)
    except ValidationError as error:
        problem = error.errors()[0]
        field = ".".join(str(part) for part in problem["loc"])
        raise _unreadable(number, f"{field}: {problem['msg']}") from error
    raise _unreadable(number, f"it is a {type(message).__name__}")


def _from_langchain(message: BaseMessage, *, number: int) -> Turn:
    # LangChain messages have no field for a time; clients put it into either of these.
    extras = {**message.response_metadata, **message.additional_kwargs}
    return _create_turn(
        role=message.type,
        content=message.text,
        turn_id=message.id,
        speaker=message.name,
        at=next((extras[field] for field in _TIME_FIELDS if extras.get(field)), None),
        number=number,
    )


def _from_mapping(message: Mapping[str, Any], *, number: int) -> Turn:
    if "role" not in message and "type" not in message:
        raise _unreadable(number, f"it has no `role`, only {sorted(map(str, message))}")
    return _create_turn(
        role=message.get("role", message.get("type")),
        content=_plain_text(message.get("content", message.get("text")), number=number),
        turn_id=message.get("id"),
        speaker=message.get("speaker", message.get("name")),
        at=next((message[field] for field in _TIME_FIELDS if message.get(field)), None),
        number=number,
    )


def _create_turn(
    *, role: object, content: str, turn_id: object, speaker: object, at: object, number: int
) -> Turn:
    if not isinstance(role, str) or role.lower() not in _ROLES:
        raise _unreadable(number, f"role {role!r} is not one of {sorted(_ROLES)}")
    # Memories that memguard rendered into a message must not become the evidence for themselves.
    evidence = cut_sections(content)
    only_rendered = evidence != content and not evidence.strip()
    return Turn(
        id=str(number) if turn_id is None or turn_id == "" else str(turn_id),
        role=_ROLES[role.lower()],
        content=content if only_rendered else evidence,
        speaker="" if speaker is None else str(speaker),
        at=_read_time(at, number=number),
        rendered=only_rendered,
    )


def _plain_text(content: object, *, number: int) -> str:
    """The text of a content field: a string, or the joined text blocks of a list."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        blocks = [block for block in cast("list[Any]", content) if _is_text_block(block)]
        return "".join(block if isinstance(block, str) else block["text"] for block in blocks)
    raise _unreadable(number, f"its content is a {type(content).__name__}")


def _is_text_block(block: object) -> bool:
    if isinstance(block, str):
        return True
    if not isinstance(block, Mapping):
        return False
    fields = cast("Mapping[str, object]", block)
    return fields.get("type", "text") in _TEXT_BLOCKS and isinstance(fields.get("text"), str)


def _read_time(at: object, *, number: int) -> datetime | None:
    if at is None or isinstance(at, datetime):
        return at
    try:
        # `True` is an `int`, but not a time.
        if isinstance(at, int | float) and not isinstance(at, bool):
            return datetime.fromtimestamp(at, UTC)
        return datetime.fromisoformat(cast("str", at))
    except (TypeError, ValueError, OverflowError, OSError) as error:
        raise _unreadable(number, f"its time {at!r} is not ISO 8601 or Unix seconds") from error


def _refuse_repeated_ids(turns: Sequence[Turn]) -> None:
    ids: set[str] = set()
    for turn in turns:
        if turn.id in ids:
            msg = f"turn id {turn.id!r} is repeated in one conversation: give each turn its own id"
            raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
        ids.add(turn.id)


def _unreadable(number: int, reason: str) -> InvalidInputError:
    msg = (
        f"message {number} cannot be read: {reason}; pass LangChain messages, (role, text) pairs, "
        "or mappings with `role` and `content`"
    )
    return InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)


def _read(value: Any) -> Any:
    # JSON from Studio or a checkpoint already has the fields of a `Conversation`.
    is_ready = value is None or (isinstance(value, Mapping) and "turns" in value)
    return value if is_ready else read_conversation(cast("Any", value))


AnyConversation = Annotated[Conversation, BeforeValidator(_read)]
"""Accepts a conversation, a text, chat messages, or the JSON of a conversation."""


def _as_candidate(value: Any) -> Any:
    return {"text": value} if isinstance(value, str) else value


AnyCandidate = Annotated[CandidateMemory, BeforeValidator(_as_candidate)]
"""Accepts a candidate, its text, or the JSON of a candidate."""
