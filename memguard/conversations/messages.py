"""Reads chat messages in all common formats into a `Conversation`, also as fields of models."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any, cast

from langchain_core.messages import BaseMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from pydantic import BeforeValidator, ValidationError, WithJsonSchema

from memguard.errors import ErrorCode, InvalidInputError
from memguard.quoting import cut_sections
from memguard.schema.base import is_blank
from memguard.schema.memory import CandidateMemory, Conversation, Role, Turn

_ROLES: dict[str, Role] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
    "document": "document",
    "function_call_output": "tool",
}
_REMOVE = "remove"
"""The role of LangGraph's `RemoveMessage`."""
_SILENT = ("reasoning",)
"""Items of OpenAI's Responses API in which nobody says anything."""
_CONTENT_FIELDS = ("content", "text", "parts", "output")
_TOOL_CALLS = frozenset({"tool_use", "tool_call", "function_call", "functionCall"})
"""Types of blocks and items that call a tool, of several providers."""
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

    A message may be a LangChain message or chunk, its JSON, a `Turn`, a `(role, text)` pair, or a
    mapping with `role` and `content` or `parts`. Optional fields of a mapping are `id`, `speaker`
    (or `name`) and a time in `at`, `timestamp`, `created_at` or `time`, as ISO 8601 or Unix
    seconds; naive times are UTC. Turns without an id are numbered from 1.

    Chunks of one message are joined, and a `RemoveMessage` is carried out. A message without text,
    such as a picture, is no turn; `notes` of the conversation says so.

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
    turns: list[Turn] = []
    notes: list[str] = []
    for message in _joined(_parse(entry, number=n) for n, entry in enumerate(source, start=1)):
        if isinstance(message, Turn):
            turns.append(message)
        elif message.role == _REMOVE:
            kept = [] if message.id == REMOVE_ALL_MESSAGES else _without(turns, message.id)
            if len(kept) == len(turns):
                notes.append(f"message {message.number} removes {message.id!r}, which is no turn")
            turns = kept
        elif (note := _why_skipped(message)) is None:
            turns.append(_create_turn(message))
        elif note:
            notes.append(f"message {message.number} was not read: {note}")
    _refuse_repeated_ids(turns)
    return Conversation(turns=tuple(turns), id=conversation_id, notes=tuple(notes))


@dataclass(frozen=True, kw_only=True)
class _Message:
    """A message in any of the formats, before it is a turn."""

    number: int
    role: str
    """In lower case, without the `Message` or `MessageChunk` of a class of LangChain's."""
    text: str
    blocks: tuple[str, ...]
    """Types of the content blocks that have no text."""
    id: object
    speaker: object
    at: object
    is_chunk: bool
    calls_tools: bool
    any_role: bool
    """Whether its role may be any text, as in LangChain's `ChatMessage`."""


def _parse(entry: object, *, number: int) -> "Turn | _Message":
    if isinstance(entry, Turn):
        return entry
    if isinstance(entry, BaseMessage):
        # LangChain messages have no field for a time; clients put it into either of these.
        extras = {**entry.response_metadata, **entry.additional_kwargs}
        return _from_mapping({**extras, **dict(entry)}, number=number)
    if isinstance(entry, Mapping):
        return _from_mapping(_unwrapped(cast("Mapping[str, Any]", entry)), number=number)
    if isinstance(entry, tuple | list) and len(cast("Sequence[Any]", entry)) == 2:  # noqa: PLR2004
        role, content = cast("Sequence[Any]", entry)
        return _from_mapping({"role": role, "content": content}, number=number)
    raise _unreadable(number, f"it is a {type(entry).__name__}")


def _unwrapped(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of a message that LangChain wrote as JSON."""
    # `messages_to_dict` writes {"type": ..., "data": {...}}.
    if isinstance(message.get("data"), Mapping) and "content" not in message:
        return {**message["data"], "type": message.get("type")}
    # `dumpd` writes {"type": "constructor", "id": [..., "HumanMessage"], "kwargs": {...}}.
    if message.get("type") == "constructor" and isinstance(message.get("kwargs"), Mapping):
        return {**message["kwargs"], "type": str(message["id"][-1])}
    return message


def _from_mapping(message: Mapping[str, Any], *, number: int) -> _Message:
    if "role" not in message and "type" not in message:
        raise _unreadable(number, f"it has no `role`, only {sorted(map(str, message))}")
    kind = str(message.get("type", ""))
    role = message.get("role") or message.get("type")
    if not isinstance(role, str):
        raise _unreadable(number, f"role {role!r} is not one of {sorted(_ROLES)}")
    content = next((message[f] for f in _CONTENT_FIELDS if message.get(f) is not None), None)
    text, blocks = _read_content(content, number=number)
    extras: Any = message.get("additional_kwargs") or {}
    calls = (message, "tool_calls"), (extras, "tool_calls"), (extras, "function_call")
    return _Message(
        number=number,
        role=role.lower().removesuffix("chunk").removesuffix("message"),
        text=text,
        blocks=blocks,
        id=message.get("id"),
        speaker=message.get("speaker", message.get("name")),
        at=next((message[field] for field in _TIME_FIELDS if message.get(field)), None),
        is_chunk=kind.endswith("Chunk"),
        calls_tools=any(fields.get(name) for fields, name in calls)
        or not _TOOL_CALLS.isdisjoint({*blocks, role}),
        any_role=kind.lower().startswith("chat"),
    )


def _joined(messages: Iterable[Turn | _Message]) -> list[Turn | _Message]:
    """The messages, with the chunks of one message as one."""
    joined: list[Turn | _Message] = []
    for message in messages:
        last = joined[-1] if joined else None
        if (
            isinstance(message, _Message)
            and isinstance(last, _Message)
            and message.is_chunk
            and last.is_chunk
            and (message.role, message.id) == (last.role, last.id)
        ):
            joined[-1] = replace(
                last,
                text=last.text + message.text,
                blocks=(*last.blocks, *message.blocks),
                calls_tools=last.calls_tools or message.calls_tools,
            )
        else:
            joined.append(message)
    return joined


def _why_skipped(message: _Message) -> str | None:
    """Why a message is no turn; `None` for a turn, empty where there is nothing to tell."""
    if message.role not in _ROLES:
        if message.any_role:
            return f"its role {message.role!r} is not one of {sorted(_ROLES)}"
        if message.calls_tools or message.role in _SILENT:
            return ""
        raise _unreadable(message.number, f"role {message.role!r} is not one of {sorted(_ROLES)}")
    if not is_blank(message.text):
        return None
    if message.calls_tools:
        return ""
    return f"it has no text, only {', '.join(message.blocks)}" if message.blocks else "it is empty"


def _create_turn(message: _Message) -> Turn:
    # Memories that memguard rendered into a message must not become the evidence for themselves.
    evidence = cut_sections(message.text)
    only_rendered = evidence != message.text and not evidence.strip()
    try:
        return Turn(
            id=str(message.number) if message.id in {None, ""} else str(message.id),
            role=_ROLES[message.role],
            content=message.text if only_rendered else evidence,
            speaker="" if message.speaker is None else str(message.speaker),
            at=_read_time(message.at, number=message.number),
            rendered=only_rendered,
        )
    except ValidationError as error:
        problem = error.errors()[0]
        field = ".".join(str(part) for part in problem["loc"])
        raise _unreadable(message.number, f"{field}: {problem['msg']}") from error


def _read_content(content: object, *, number: int) -> tuple[str, tuple[str, ...]]:
    """The text of a content field, and the types of the blocks without text."""
    if content is None or isinstance(content, str):
        return content or "", ()
    if isinstance(content, Mapping):
        # A single block, or the nested `parts` of a ChatGPT export.
        fields = cast("Mapping[str, Any]", content)
        parts: Any = fields.get("parts")
        return _read_content(parts if isinstance(parts, list) else [fields], number=number)
    if not isinstance(content, list | tuple):
        raise _unreadable(number, f"its content is a {type(content).__name__}")
    texts: list[str] = []
    others: list[str] = []
    for block in cast("Sequence[Any]", content):
        text = _block_text(block)
        if text is None:
            others.append(_block_type(block))
        else:
            texts.append(text)
    return "".join(texts), tuple(dict.fromkeys(others))


def _block_text(block: object) -> str | None:
    """The text of a block; `None` for another kind, and for thoughts, which nobody said."""
    if isinstance(block, str):
        return block
    if not isinstance(block, Mapping):
        return None
    fields = cast("Mapping[str, Any]", block)
    is_text = fields.get("type", "text") in _TEXT_BLOCKS and not fields.get("thought")
    text = fields.get("text")
    return text if is_text and isinstance(text, str) else None


def _block_type(block: object) -> str:
    fields = cast("Mapping[str, Any]", block if isinstance(block, Mapping) else {})
    # Gemini's blocks have no type: the one field of a block names it.
    return str(fields.get("type") or next(iter(fields), type(block).__name__))


def _without(turns: Sequence[Turn], turn_id: object) -> list[Turn]:
    return [turn for turn in turns if turn.id != turn_id]


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


# A form, such as that of LangGraph Studio, shows a field for text instead of nested objects.
_AS_TEXT = WithJsonSchema({"type": "string"}, mode="validation")

AnyConversation = Annotated[Conversation, BeforeValidator(_read), _AS_TEXT]
"""Accepts a conversation, a text, chat messages, or the JSON of a conversation."""


def _as_candidate(value: Any) -> Any:
    return {"text": value} if isinstance(value, str) else value


AnyCandidate = Annotated[CandidateMemory, BeforeValidator(_as_candidate), _AS_TEXT]
"""Accepts a candidate, its text, or the JSON of a candidate."""
