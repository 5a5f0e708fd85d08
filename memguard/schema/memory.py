"""Turns, the candidates extracted from them, and the records that were stored."""

import hashlib
import unicodedata
import uuid
from datetime import UTC, datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, JsonValue

from memguard.schema.base import Frozen, Namespace, Text, is_blank, is_none

Role = Literal["user", "assistant", "system", "tool"]
"""Who spoke, in the chat protocol's sense."""

SaidBy = Literal["user", "assistant", "mixed", "unknown"]
"""Whose turns a candidate rests on; `unknown` when it names no turn."""


def _aware(at: datetime | None) -> datetime | None:
    """Read a naive time as UTC, whatever time zone the machine is set to."""
    return at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at


Moment = Annotated[datetime | None, AfterValidator(_aware)]
"""An instant with its offset; a naive time is read as UTC; `None` when nobody said when."""


class Turn(Frozen):
    """One utterance of a conversation."""

    id: Text
    """Unique within the conversation, for example `D1:3`."""
    role: Role
    """Who spoke, in the chat protocol's sense."""
    content: Text
    """What was said."""
    speaker: Text = ""
    """The speaker's name, when known."""
    at: Moment = None
    """When it was said, with the speaker's own offset."""
    rendered: bool = False
    """Whether memguard itself put this text into the prompt; never evidence, never extracted."""

    @property
    def is_evidence(self) -> bool:
        """Whether a memory may rest on this turn."""
        return not self.rendered and self.role != "system" and not is_blank(self.content)


class Conversation(Frozen):
    """Turns in the order they were said."""

    turns: tuple[Turn, ...] = ()
    """The turns; ids are unique."""
    id: Text = ""
    """Names the conversation in receipts; empty when it has no name."""

    def select(self, turn_ids: tuple[str, ...]) -> tuple[Turn, ...]:
        """The turns with these ids, in the order they were said; unknown ids are left out."""
        wanted = frozenset(turn_ids)
        return tuple(turn for turn in self.turns if turn.id in wanted)

    @property
    def evidence(self) -> tuple[Turn, ...]:
        """The turns that a memory may rest on."""
        return tuple(turn for turn in self.turns if turn.is_evidence)

    @property
    def has_user_words(self) -> bool:
        """Whether a user said anything at all."""
        return any(turn.role == "user" for turn in self.evidence)


class CandidateMemory(Frozen):
    """Text proposed for storage, with the turns it rests on."""

    text: Text
    """The memory, as it would be stored: judged, stored and rendered byte for byte the same."""
    namespace: Namespace = ()
    """Where it would be stored."""
    turn_ids: tuple[str, ...] = ()
    """The source turns it rests on, as the writer named them."""
    subject: Text = ""
    """Whom the memory is about, as the writer named them."""
    said_by: SaidBy = "unknown"
    """Whose turns it rests on, derived from the turns and never from the writer."""
    said_at: Moment = None
    """When the latest of its source turns was said."""
    conversation_id: Text = ""
    """The conversation it came from."""

    @property
    def id(self) -> str:
        """The same for the same text, source and namespace: what makes writes idempotent."""
        parts = (*self.namespace, "", self.conversation_id, *self.turn_ids, "", self.text)
        return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:24]

    def located(self, namespace: Namespace) -> Self:
        """The same candidate in another namespace."""
        return self.model_copy(update={"namespace": namespace})


class Provenance(Frozen):
    """Where a stored memory came from."""

    candidate_id: str
    """The candidate that became this record."""
    receipt_id: str
    """The receipt of the decision that admitted it."""
    conversation_id: Text = ""
    """The conversation it came from."""
    turn_ids: tuple[str, ...] = ()
    """The turns it rests on."""
    subject: Text = ""
    """Whom it is about."""
    said_by: SaidBy = "unknown"
    """Whose turns it rests on."""
    said_at: Moment = None
    """When it was said; a relative date in the text is relative to this."""


class MemoryRecord(Frozen):
    """What was stored."""

    namespace: Namespace
    """Where it lives."""
    key: str
    """Its key within the namespace, derived from the text."""
    text: Text
    """The memory."""
    provenance: Provenance
    """Where it came from."""
    value: dict[str, JsonValue] | None = Field(default=None, exclude_if=is_none)
    """The item as its writer gave it, where a guarded store held it; `None` for our own form."""

    def to_value(self) -> dict[str, object]:
        """The value put into the store; `content` comes first so that langmem can read it."""
        if self.value is not None:
            return {**self.value}
        return {"content": self.text, "memguard": self.provenance.model_dump(mode="json")}


def turn_time(turns: tuple[Turn, ...]) -> datetime | None:
    """The latest time among turns, or `None` when none of them has one."""
    return max((turn.at for turn in turns if turn.at is not None), default=None)


def speaker_roles(turns: tuple[Turn, ...]) -> SaidBy:
    """Whose turns these are."""
    roles = {turn.role for turn in turns}
    if not roles:
        return "unknown"
    if roles == {"user"}:
        return "user"
    return "mixed" if "user" in roles else "assistant"


# Full stops of Latin, Chinese and Japanese text, and the full-width one.
_CLOSING = ".\u3002\uff0e"


def same_text_form(text: str) -> str:
    """The normalised form of a text; texts with the same form are repeats.

    Unicode NFC, single spaces, no surrounding white space and no final full stop. Case, digits,
    signs, units and all words stay, because they carry meaning.
    """
    # NFC and not NFKC, which would turn 10² into 102.
    squeezed = " ".join(unicodedata.normalize("NFC", text).split())
    # A text of full stops alone keeps them, or it would have an empty form.
    return squeezed.rstrip(_CLOSING).rstrip() or squeezed


def record_key(text: str) -> str:
    """The key of a memory within its namespace, the same for repeats of a text.

    128 bits of SHA-256 over `same_text_form(text)`, written as a UUID, because langmem's memory
    tool edits and deletes by UUID.
    """
    digest = hashlib.sha256(same_text_form(text).encode()).digest()
    return str(uuid.UUID(bytes=digest[:16]))
