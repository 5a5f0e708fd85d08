"""Field types of graph input that accept several shapes."""

from collections.abc import Mapping
from typing import Annotated, Any, cast

from pydantic import BeforeValidator

from memguard.conversations.messages import read_conversation
from memguard.schema.memory import CandidateMemory, Conversation


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
