"""Turns, the candidates extracted from them, and the records that were stored."""

import hashlib
import operator
import unicodedata
import uuid
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self, cast

from pydantic import AfterValidator, Field, JsonValue, ValidationError

from memguard.normal_form import comparison_form
from memguard.schema.base import CandidateText, Frozen, Namespace, Text, is_blank, is_none

Role = Literal["user", "assistant", "system", "tool", "document"]
"""The role of a speaker, as in chat protocols; `document` is a text that nobody in the conversation
wrote."""

PassageKind = Literal["own", "quotation", "mail", "transcript", "code", "log", "table", "system"]
"""What a part of a turn is: the speaker's own words, or text that the speaker pasted."""

SourceRole = Literal["user", "tool", "document"]
"""A role whose words may be a source of memories. What the assistant says never is."""

SaidBy = Literal["user", "assistant", "tool", "document", "mixed", "unknown"]
"""Whose turns a candidate is based on: `mixed` if a user's and others', `unknown` if it cites no
turn. Without a user's turn, a tool comes before a document, and a document before the assistant."""


def as_moment(at: datetime | None) -> datetime | None:
    """A time with its offset; a naive time is read as UTC."""
    # Not local time: a result must not depend on the time zone of the machine.
    return at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at


Moment = Annotated[datetime | None, AfterValidator(as_moment)]
"""A time with its offset; a naive time is read as UTC; `None` if it is unknown."""


def _is_own(kind: PassageKind) -> bool:
    return kind == "own"


class Turn(Frozen):
    """One utterance of a conversation."""

    id: Text
    """Unique within the conversation, for example `D1:3`."""
    role: Role
    """The role of the speaker."""
    content: Text
    """The text."""
    speaker: Text = ""
    """The speaker's name, if known."""
    at: Moment = None
    """The time of the turn, with the speaker's offset."""
    rendered: bool = False
    """Whether memguard wrote this text into the prompt; it is then never used as evidence."""
    pasted_as: PassageKind = Field(default="own", exclude_if=_is_own)
    """Of a `document` that a user pasted into a turn: what it is. `own` for every other turn."""

    @property
    def is_evidence(self) -> bool:
        """Whether a memory may be based on this turn."""
        # A memory that confirms itself, or the instructions of a developer, are no evidence.
        return not self.rendered and self.role != "system" and not is_blank(self.content)


class Conversation(Frozen):
    """Turns in the order they were said."""

    turns: tuple[Turn, ...] = ()
    """The turns; ids are unique."""
    id: Text = ""
    """Identifies the conversation in receipts; empty if it has no id."""
    notes: tuple[str, ...] = Field(default=(), exclude_if=operator.not_)
    """Messages that are no turns, and why; for the notes of a report."""

    @property
    def evidence(self) -> tuple[Turn, ...]:
        """The turns that a memory may be based on."""
        return tuple(turn for turn in self.turns if turn.is_evidence)

    @property
    def has_user_words(self) -> bool:
        """Whether a turn of a user is evidence."""
        return self.has_words_of(("user",))

    def has_words_of(self, roles: Collection[Role]) -> bool:
        """Whether a turn of one of these roles is evidence."""
        return any(turn.role in roles for turn in self.evidence)


class CandidateMemory(Frozen):
    """Text proposed for storage, with the turns it is based on."""

    text: CandidateText
    """The memory; the same bytes are judged, stored and rendered."""
    namespace: Namespace = ()
    """The namespace in which it would be stored."""
    turn_ids: tuple[str, ...] = ()
    """The source turns, as the writer cited them."""
    subject: Text = ""
    """The person or thing that the memory is about, as the writer named it."""
    said_by: SaidBy = "unknown"
    """Whose turns it is based on, computed from the turns and not taken from the writer."""
    said_at: Moment = None
    """The time of its latest source turn."""
    conversation_id: Text = ""
    """The conversation it came from."""
    speaker: Text = Field(default="", exclude_if=operator.not_)
    """The name of who said its latest source turn, if known."""

    @property
    def id(self) -> str:
        """An id that is the same for the same text, source and namespace."""
        # Deterministic, so that writing a candidate again finds the earlier decision on it. The
        # empty strings separate the lists, which would otherwise run into each other.
        parts = (*self.namespace, "", self.conversation_id, *self.turn_ids, "", self.text)
        return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:24]

    def located(self, namespace: Namespace) -> Self:
        """The same candidate in another namespace."""
        return self.model_copy(update={"namespace": namespace})


class Provenance(Frozen):
    """The origin of a stored memory."""

    candidate_id: str
    """The candidate that became this record."""
    receipt_id: str
    """The receipt of the decision that admitted it."""
    conversation_id: Text = ""
    """The conversation it came from."""
    turn_ids: tuple[str, ...] = ()
    """Its source turns."""
    subject: Text = ""
    """The person or thing that it is about."""
    said_by: SaidBy = "unknown"
    """Whose turns it is based on."""
    said_at: Moment = None
    """The time of its latest source turn, to which a relative date in the text refers."""
    speaker: Text = Field(default="", exclude_if=operator.not_)
    """The name of who said its latest source turn, if known."""


Ending = Literal["superseded", "edited", "deleted", "undone"]
"""Why a stored memory is no longer current.

* `superseded`: a later one replaced it; it held until then.
* `edited`: a person wrote another text in its place.
* `deleted`: a person took it out of memory; it can be brought back until it is forgotten.
* `undone`: a person took back the decision that stored it.
"""


class Lifecycle(Frozen):
    """What became of a memory since it was stored; the default is a current one."""

    superseded_by: Text = ""
    """The key of the memory in its place, in the same namespace; empty for a current one."""
    ended_as: Ending | None = None
    """Why it is no longer current; `None` for a current one."""
    valid_until: Moment = None
    """When what it says ceased to hold, if known: the event time of the later one."""
    reason: Text = ""
    """Why it was replaced, for a person; it may repeat words of the two memories."""
    event_at: Moment = None
    """When what it says happened or began, if its words tell; not the time at which it was said."""
    detail_of: Text = ""
    """The key of the memory of which it is a detail."""
    conflicts_with: tuple[str, ...] = ()
    """Keys of memories that contradict it, where nothing tells which of them holds."""
    confirmed_at: Moment = None
    """When it was last said again."""
    confirmed_by: tuple[str, ...] = ()
    """Source turns that say it again, each as `conversation_id:turn_id`."""

    @property
    def is_current(self) -> bool:
        """Whether nothing replaced it."""
        return self.ended_as is None and not self.superseded_by


_FIELDS = tuple(Lifecycle.model_fields)
_LIFECYCLE_KEY = "memguard"


def lifecycle_of(value: Mapping[str, object]) -> Lifecycle:
    """What became of the memory in an item of a store, from the mapping `memguard` in its value.

    A field that this version cannot read counts as not set, and so does a mapping that another
    program wrote.
    """
    fields = value.get(_LIFECYCLE_KEY)
    if not isinstance(fields, Mapping):
        return Lifecycle()
    record = cast("Mapping[str, object]", fields)
    marks = {name: record[name] for name in _FIELDS if name in record}
    if not marks:
        return Lifecycle()
    try:
        return Lifecycle.model_validate(marks)
    except ValidationError:
        readable = {name: mark for name, mark in marks.items() if _is_readable(name, mark)}
        return Lifecycle.model_validate(readable)


def _is_readable(name: str, mark: object) -> bool:
    try:
        Lifecycle.model_validate({name: mark})
    except ValidationError:
        return False
    return True


def without_lifecycle(value: Mapping[str, Any]) -> dict[str, Any]:
    """The value of an item as it was before anything became of it, for comparisons."""
    fields = value.get(_LIFECYCLE_KEY)
    if not isinstance(fields, Mapping):
        return dict(value)
    record = cast("Mapping[str, Any]", fields)
    rest = {name: entry for name, entry in record.items() if name not in _FIELDS}
    others = {name: entry for name, entry in value.items() if name != _LIFECYCLE_KEY}
    # The mapping of an item that another program wrote is there for the marks alone.
    return {**value, _LIFECYCLE_KEY: rest} if rest or not record else others


def with_lifecycle(value: Mapping[str, Any], lifecycle: Lifecycle) -> dict[str, Any]:
    """The value of an item with another lifecycle; all other fields stay as they are.

    A value in which another program uses the name `memguard` for something else stays as it is.
    """
    bare = without_lifecycle(value)
    marks = lifecycle.model_dump(mode="json", exclude_defaults=True)
    fields = bare.get(_LIFECYCLE_KEY, {})
    if not marks or not isinstance(fields, Mapping):
        return bare
    record = cast("Mapping[str, Any]", fields)
    return {**bare, _LIFECYCLE_KEY: {**record, **marks}}


def _is_unchanged(lifecycle: Lifecycle) -> bool:
    return lifecycle == Lifecycle()


class MemoryRecord(Frozen):
    """A memory in the store."""

    namespace: Namespace
    """Its namespace."""
    key: str
    """Its key within the namespace, derived from the text."""
    text: Text
    """The memory."""
    provenance: Provenance
    """Its origin."""
    value: dict[str, JsonValue] | None = Field(default=None, exclude_if=is_none)
    """The item as the caller of a guarded store passed it; `None` for memguard's own form."""
    lifecycle: Lifecycle = Field(default=Lifecycle(), exclude_if=_is_unchanged)
    """What became of it since it was stored."""

    def to_value(self) -> dict[str, object]:
        """The value for the store: the text under `content`, where langmem reads it."""
        if self.value is not None:
            begins_as_usual = self.lifecycle == Lifecycle()
            return {**self.value} if begins_as_usual else with_lifecycle(self.value, self.lifecycle)
        origin = self.provenance.model_dump(mode="json")
        # Only what differs from a current record, so that older records keep their form.
        return with_lifecycle({"content": self.text, _LIFECYCLE_KEY: origin}, self.lifecycle)


def turn_time(turns: tuple[Turn, ...]) -> datetime | None:
    """The latest time of some turns, or `None` if none of them has a time."""
    return max((turn.at for turn in turns if turn.at is not None), default=None)


def turn_speaker(turns: tuple[Turn, ...]) -> str:
    """The name of who said the latest of some turns, of a user's if there is one; empty if unknown.

    The assistant or a tool that speaks after the user is not who tells the memory.
    """
    of_user = [turn for turn in turns if turn.role == "user"]
    named = [turn.speaker for turn in of_user or turns if turn.speaker]
    return named[-1] if named else ""


def speaker_roles(turns: tuple[Turn, ...]) -> SaidBy:
    """Whose turns these are."""
    roles = {turn.role for turn in turns}
    if not roles:
        return "unknown"
    if "user" in roles:
        return "user" if roles == {"user"} else "mixed"
    if "tool" in roles:
        return "tool"
    return "document" if "document" in roles else "assistant"


# Full stops of Latin, Chinese and Japanese text, and the full-width one.
_CLOSING = ".\u3002\uff0e"


def same_text_form(text: str) -> str:
    """The normalised form of a text; texts with the same form are repeats.

    The form in which characters are compared, with single spaces, no surrounding white space and
    no final full stop. Case, digits, signs, units and all words stay, because they carry meaning.
    """
    squeezed = " ".join(comparison_form(text).split())
    # A text of full stops alone keeps them, or it would have an empty form.
    return squeezed.rstrip(_CLOSING).rstrip() or squeezed


def record_key(text: str, *, generation: int = 0) -> str:
    """The key of a memory within its namespace, the same for repeats of a text.

    128 bits of SHA-256 over `same_text_form(text)`, written as a UUID, because langmem's memory
    tool edits and deletes by UUID. A text that is stored again after it was superseded has a key of
    the next generation, so that the earlier record stays.
    """
    form = same_text_form(text)
    # No text has the separator, so that no other text has this key.
    return _key_of(f"{form}\x1f{generation}" if generation else form)


def record_keys(text: str) -> tuple[str, ...]:
    """The keys under which a repeat of a text may be stored, that of new records first.

    The second is made from NFC alone, as all keys were before look-alikes were compared.
    """
    squeezed = " ".join(unicodedata.normalize("NFC", text).split())
    earlier = _key_of(squeezed.rstrip(_CLOSING).rstrip() or squeezed)
    return tuple(dict.fromkeys((record_key(text), earlier)))


def _key_of(form: str) -> str:
    digest = hashlib.sha256(form.encode()).digest()
    return str(uuid.UUID(bytes=digest[:16]))
