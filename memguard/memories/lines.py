"""The lines of an export: a header, then memories, then receipts with their events."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, JsonValue, TypeAdapter

from memguard.journal.events import EventKind
from memguard.schema.base import Frozen, Namespace
from memguard.schema.receipt import Receipt

SCHEMA = 1
"""Version of the lines below; a file with a higher one is refused."""


class ExportHeader(Frozen):
    """The first line: what follows."""

    schema_version: int = SCHEMA
    """Version of the layout of this line."""
    kind: Literal["header"] = "header"
    """What the line is."""
    namespace: Namespace
    """The namespace of every line."""
    exported_at: datetime
    """When the file was written, in UTC."""
    memguard: str
    """The version of memguard that wrote it."""
    memories: int = Field(ge=0)
    """Number of lines with a memory."""
    receipts: int = Field(ge=0)
    """Number of lines with a receipt."""
    left_out: int = Field(default=0, ge=0)
    """Receipts that are left out because they quote a secret that is in quarantine."""


class ExportedMemory(Frozen):
    """A stored memory: its text, origin and state."""

    schema_version: int = SCHEMA
    """Version of the layout of this line."""
    kind: Literal["memory"] = "memory"
    """What the line is."""
    id: Annotated[str, Field(min_length=1)]
    """Its key in the store."""
    value: dict[str, JsonValue]
    """The value in the store: the text under `content`, the rest under `memguard`."""
    stored_at: datetime
    """When it was stored; an import stores it at another time."""


class ExportedEvent(Frozen):
    """What happened to a decision."""

    kind: EventKind
    """What happened."""
    candidate_id: str
    """The candidate; of a change, the memory that is changed, as a digest."""
    actor: str
    """Who did it."""
    at: datetime
    """When, in UTC."""
    body: dict[str, JsonValue] = Field(default={})
    """Details, such as the record of an intent."""


class ExportedReceipt(Frozen):
    """The receipt of a decision, and what happened since."""

    schema_version: int = SCHEMA
    """Version of the layout of this line."""
    kind: Literal["receipt"] = "receipt"
    """What the line is."""
    receipt: Receipt
    """The complete receipt."""
    events: tuple[ExportedEvent, ...]
    """Its events, in order."""


ExportLine = Annotated[ExportHeader | ExportedMemory | ExportedReceipt, Field(discriminator="kind")]
"""Any line of an export."""

EXPORT_LINE: TypeAdapter[ExportHeader | ExportedMemory | ExportedReceipt] = TypeAdapter(ExportLine)
"""Reads a line."""

LOCAL_EVENTS: frozenset[EventKind] = frozenset({"missing", "restored"})
"""Events about the files of one store, which are not exported."""
