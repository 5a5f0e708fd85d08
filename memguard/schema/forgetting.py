"""What is to be forgotten, and what was erased."""

from datetime import datetime
from typing import Self

from pydantic import Field, model_validator

from memguard.errors import ErrorCode, InvalidInputError
from memguard.schema.base import Frozen, GraphInput, Namespace, is_blank


class ForgetSelection(GraphInput, Frozen):
    """What is to be forgotten: everything of a namespace, one memory, or all with some text."""

    namespace: Namespace = ()
    """The namespace; those below it are meant, too. Empty for all, which `everything` refuses."""
    exact: bool = Field(default=False, exclude_if=lambda value: not value)
    """Whether only the namespace itself is meant, and none below it."""
    everything: bool = False
    """Everything of the namespace."""
    memory: str = ""
    """One memory: its key, the id of its receipt or of its candidate, or the beginning of one."""
    contains: str = ""
    """All memories whose text has this in it, without regard to case."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        chosen = [self.everything, self.memory != "", self.contains != ""]
        if sum(chosen) != 1:
            msg = (
                f"a selection has exactly one of everything={self.everything!r}, "
                f"memory={self.memory!r} and contains={self.contains!r}"
            )
            raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
        if self.everything and not self.namespace:
            msg = "everything=True needs a namespace: name the user whose memories are meant"
            raise InvalidInputError(msg, code=ErrorCode.NAMESPACE_INVALID)
        if any(chosen[1:]) and is_blank(self.memory + self.contains):
            msg = f"{self.memory + self.contains!r} shows nothing; pass an id or a text"
            raise InvalidInputError(msg, code=ErrorCode.INPUT_INVALID)
        return self

    def covers(self, namespace: Namespace) -> bool:
        """Whether a namespace is meant."""
        if self.exact:
            return namespace == self.namespace
        return namespace[: len(self.namespace)] == self.namespace


class ForgetReport(Frozen):
    """What was erased, or would be; it repeats no text of a memory."""

    preview: bool
    """Whether nothing was changed."""
    receipt_id: str = ""
    """The id of the receipt of this forgetting; empty for a preview, or if there was nothing."""
    records: int = 0
    """Current memories in the store."""
    superseded: int = 0
    """Memories in the store that were no longer current."""
    receipts: int = 0
    """Receipts of decisions on them, of every outcome, with their events."""
    quarantined: int = 0
    """Those of the receipts whose candidate was in quarantine."""
    reads: int = 0
    """Receipts of reads that showed or withheld them, or repeated their text."""
    extractions: int = 0
    """Cached extractions of a chunk of a conversation; the chunk may be read again."""
    decompositions: int = 0
    """Cached units of memories."""
    quotes: int = 0
    """Other receipts in which quotes were replaced by `[forgotten]`."""
    marks: int = 0
    """Other memories in the store whose marks named or quoted them."""
    receipt_ids: tuple[str, ...] = ()
    """The receipts of decisions that were erased."""
    keys: tuple[str, ...] = ()
    """The keys of the records that were erased from the store."""
    notes: tuple[str, ...] = ()
    """What is beyond memguard's reach or remains to be done, one line each."""

    @property
    def count(self) -> int:
        """Number of memories: in the store, and in quarantine."""
        return self.records + self.superseded + self.quarantined

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to erase."""
        numbers = (self.receipts, self.reads, self.extractions, self.decompositions, self.quotes)
        return self.count + sum(numbers) + self.marks == 0


class ForgettingReceipt(Frozen):
    """The receipt of a forgetting; it has no text of what was forgotten."""

    id: str
    """Unique."""
    at: datetime
    """When, in UTC."""
    actor: str
    """Who."""
    reason: str
    """Why."""
    is_done: bool
    """Whether it is complete; `recover` completes it otherwise."""
    counts: dict[str, int] = Field(default={})
    """How much was erased, by the names of `ForgetReport`; empty until the log was erased."""
