"""A conversation as a field of graph input: validated from whatever shape the caller has."""

from collections.abc import Mapping
from typing import Annotated, Any, cast

from pydantic import BeforeValidator

from memguard.conversations.messages import read_conversation
from memguard.schema.memory import Conversation


def _read(value: Any) -> Any:
    # JSON from Studio or a checkpoint already has a conversation's own fields.
    is_ready = value is None or (isinstance(value, Mapping) and "turns" in value)
    return value if is_ready else read_conversation(cast("Any", value))


AnyConversation = Annotated[Conversation, BeforeValidator(_read)]
"""Takes a conversation, a text, chat messages, or the JSON of a conversation."""
