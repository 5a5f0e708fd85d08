"""What `Memories` returns: stored memories with their state, pages of them, and reports."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from memguard.schema.base import Frozen, Namespace, Text, UnitInterval
from memguard.schema.memory import Moment, SaidBy, Turn
from memguard.schema.receipt import Receipt
from memguard.schema.tables import ReportTable, TableReport

MemoryState = Literal["current", "superseded", "edited", "deleted", "undone"]
"""The state of a stored memory: `current`, or why it no longer is; see `Lifecycle.ended_as`."""


class MemoryEntry(Frozen):
    """A stored memory, and what became of it."""

    id: str
    """Its key in the store; methods accept a unique beginning of it."""
    namespace: Namespace
    """Its namespace."""
    text: Text
    """The memory."""
    state: MemoryState = "current"
    """Whether it is current, and if not, why."""
    said_at: Moment = None
    """The time of its latest source turn; `None` if unknown."""
    event_at: Moment = None
    """When what it says happened or began, if its words tell."""
    stored_at: datetime
    """When it was stored."""
    said_by: SaidBy = "unknown"
    """Whose words it is based on."""
    speaker: Text = ""
    """The name of who said it, if known."""
    subject: Text = ""
    """The person or thing that it is about, if known."""
    superseded_by: str = ""
    """The id of the memory in its place; empty for a current one and for a deleted one."""
    valid_until: Moment = None
    """When what it says ceased to hold, if known."""
    reason: Text = ""
    """Why it is no longer current, in words; empty for a current one."""
    detail_of: str = ""
    """The id of the memory of which it is a detail."""
    conflicts_with: tuple[str, ...] = ()
    """Ids of current memories that contradict it."""
    confirmed: int = Field(default=0, ge=0)
    """How often it was said again."""
    confirmed_at: Moment = None
    """When it was last said again."""
    receipt_id: str = ""
    """The receipt of the decision that stored it; empty if another program stored it."""
    score: UnitInterval | None = None
    """Similarity to the query of a search; `None` in a list."""

    @property
    def at(self) -> datetime:
        """The time by which memories are ordered: when it was said, else when it was stored."""
        return self.said_at or self.stored_at

    @property
    def is_current(self) -> bool:
        """Whether nothing replaced it and nobody deleted it."""
        return self.state == "current"

    @property
    def is_guarded(self) -> bool:
        """Whether memguard stored it; only such a memory has receipts, edits and an undo."""
        return bool(self.receipt_id)


class MemoryPage(TableReport):
    """Memories, newest first."""

    memories: tuple[MemoryEntry, ...] = ()
    """The memories of this page."""
    before: str | None = None
    """The value of `before` for the next page; `None` on the last page."""
    total: int = 0
    """How many memories meet the conditions, on all pages together."""
    hidden: int = 0
    """How many more would meet them that are no longer current."""

    def to_table(self) -> ReportTable:
        """The page as a table."""
        rows = tuple(
            (entry.id[:8], entry.state, f"{entry.at:%Y-%m-%d}", entry.text)
            for entry in self.memories
        )
        lines = (f"{self.hidden} more are no longer current",) if self.hidden else ()
        return ReportTable(
            title=f"{self.total} memories",
            columns=("id", "state", "said", "text"),
            rows=rows,
            lines=lines,
        )


class MemoryDetail(Frozen):
    """Everything about one memory."""

    memory: MemoryEntry
    """The memory."""
    receipt: Receipt | None = None
    """The receipt of the decision that stored it; `None` if there is none or it was forgotten."""
    source: tuple[Turn, ...] = ()
    """Its source turns as the receipt quotes them, without secrets."""
    details: tuple[MemoryEntry, ...] = ()
    """Current memories that are a detail of it."""

    @property
    def explanation(self) -> str:
        """Why it was stored; empty without a receipt."""
        return "" if self.receipt is None else self.receipt.decision.explanation


class ExportReport(Frozen):
    """What an export contains."""

    path: str = ""
    """The file; empty if it was written to an open file."""
    namespace: Namespace
    """The namespace; nothing of another one is in the export."""
    memories: int
    """Stored memories, current or not."""
    receipts: int
    """Receipts of decisions in this namespace."""
    left_out: int = 0
    """Receipts that are left out because they quote a secret that is in quarantine."""


class ImportReport(Frozen):
    """What an import has done."""

    namespace: Namespace
    """The namespace."""
    memories: int = 0
    """Memories that were stored."""
    receipts: int = 0
    """Receipts that were logged."""
    unchanged: int = 0
    """Memories and receipts that were there already, with the same content."""
    skipped: tuple[str, ...] = ()
    """Why others were left out, each with its id: something else was there under that id."""
