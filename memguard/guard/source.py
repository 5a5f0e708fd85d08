"""What supports a memory that somebody puts into a store by hand: the conversation around it."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

from langgraph.config import get_config
from langgraph.store.base import PutOp

from memguard import compat
from memguard.conversations import read_conversation
from memguard.conversations.messages import ConversationLike
from memguard.schema.memory import Conversation

SourceLike = Callable[[PutOp], ConversationLike | None] | ConversationLike
"""A conversation, or a function that finds one for a write; `None` where there is none."""

_SOURCE: ContextVar[Conversation | None] = ContextVar("memguard_source", default=None)

_MESSAGES = "messages"
_DIALOGUE = 10
"""Turns before a search that its judge sees."""


@contextmanager
def use_source(source: ConversationLike, *, conversation_id: str = "") -> Generator[Conversation]:
    """Set the source of the writes inside the block.

    Args:
        source: A conversation, chat messages, or a text that the user said.
        conversation_id: Names the conversation on receipts.

    Raises:
        InvalidInputError: If the source cannot be read.
    """
    conversation = read_conversation(source, conversation_id=conversation_id)
    token = _SOURCE.set(conversation)
    try:
        yield conversation
    finally:
        _SOURCE.reset(token)


def find_source(op: PutOp, *, setting: "SourceLike | None", turns: int) -> Conversation | None:
    """The conversation that a write rests on; `None` when nobody knows one.

    Looked for in this order: `use_source`, the setting, the messages of the run in progress.

    Args:
        op: The write.
        setting: The `source` of `guard_store`.
        turns: The most recent turns that are kept.

    Raises:
        InvalidInputError: If what is found cannot be read.
    """
    source = _SOURCE.get()
    if source is None and setting is not None:
        conversation = setting(op) if callable(setting) else setting
        source = None if conversation is None else read_conversation(conversation)
    if source is None and setting is None:
        source = _of_run()
    if source is None or not source.evidence:
        return None
    return Conversation(turns=source.evidence[-turns:], id=source.id)


def find_dialogue() -> Conversation:
    """What was said in the run in progress; empty where nobody knows."""
    source = _SOURCE.get() or _of_run() or Conversation()
    return Conversation(turns=source.evidence[-_DIALOGUE:], id=source.id)


def _of_run() -> Conversation | None:
    """The messages in the state of the graph that runs here, if one does."""
    try:
        configurable = get_config().get("configurable", {})
    except RuntimeError:
        return None  # no graph runs here
    read = compat.state_reader(configurable)
    if read is None:
        return None
    try:
        messages = read(_MESSAGES)
    except KeyError:
        return None  # a graph whose state has no messages
    thread = str(configurable.get("thread_id") or "")
    return read_conversation(messages, conversation_id=thread) if messages else None
