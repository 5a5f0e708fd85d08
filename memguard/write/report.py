"""What a write guard returns: the report on every candidate of a run, and a person's rulings."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict, get_args

from pydantic import computed_field

from memguard.errors import ErrorCode, MemguardError
from memguard.redaction import redact
from memguard.schema.base import Frozen, Namespace, Text
from memguard.schema.failures import Failure, error_of
from memguard.schema.memory import CandidateMemory
from memguard.schema.receipt import RECEIPT_COLUMNS, Receipt, Usage, WriteOutcome
from memguard.schema.tables import Cell, ReportTable, TableReport

ReviewRuling = Literal["approve", "edit", "reject", "respond"]
"""A person's ruling, in the words of LangChain's human-in-the-loop middleware.

* `approve`: store the candidate as it is.
* `edit`: store the person's text instead; it is not judged again.
* `reject`: discard the candidate from quarantine; its receipt stays.
* `respond`: leave it in quarantine, with the person's message on the report.
"""

ReviewOutcome = Literal["stored", "discarded", "held"]
"""The state of the candidate after the ruling."""


class Review(Frozen):
    """A person's ruling on one quarantined candidate, and its effect."""

    receipt_id: str
    """Id of the receipt that put the candidate into quarantine."""
    ruling: ReviewRuling
    """The person's ruling."""
    outcome: ReviewOutcome
    """The effect; it differs from the ruling if the candidate had already left quarantine."""
    actor: str
    """The person's identity if the server knows it, else `reviewer`."""
    message: Text = ""
    """The person's reason or comment."""
    stored_as: str = ""
    """Id of the receipt of the person's text, after an edit."""


# What a review changes about the count of a candidate, whose receipt says `quarantined`.
_AFTER_REVIEW: dict[ReviewOutcome, WriteOutcome] = {
    "stored": "stored",
    "discarded": "rejected",
    "held": "quarantined",
}


# A budget is a limit that the caller set: reaching it is reported, but raises nothing.
_ERROR_CODES = frozenset(code.value for code in ErrorCode) - {ErrorCode.BUDGET_EXHAUSTED.value}


Correction = Literal["superseded", "confirmed", "conflicting"]
"""What a run did to memories that were stored before.

* `superseded`: a later one took their place.
* `confirmed`: they were said again.
* `conflicting`: they and a new one contradict each other.
"""


class WriteReport(TableReport):
    """The result of a run for every candidate.

    Nothing is lost: a candidate has a receipt or is in `unjudged`, and a turn that could not be
    read is in `unread`. A later run continues with both.
    """

    run_id: str
    """Id of the run; every receipt names it."""
    namespace: Namespace
    """The namespace it wrote to."""
    receipts: tuple[Receipt, ...] = ()
    """One per candidate decided in this run, in the order of the conversation; after a review, one
    more for each text that a person wrote."""
    reviews: tuple[Review, ...] = ()
    """A person's rulings on quarantined candidates, if the run asked for them."""
    resumed: int = 0
    """Number of candidates that an earlier run had decided; their receipts are in the log."""
    unjudged: tuple[CandidateMemory, ...] = ()
    """Candidates left undecided because of the budget or a failure."""
    unread: tuple[str, ...] = ()
    """Ids of turns without a usable answer of the writer, or left out because of the budget."""
    failures: tuple[Failure, ...] = ()
    """What went wrong; equal failures are listed once."""
    usage: Usage = Usage()
    """Model calls of the run: writer and gates."""
    notes: tuple[str, ...] = ()
    """Remarks for a reader, such as the model calls that the order of the gates saved."""

    @computed_field
    @property
    def counts(self) -> dict[WriteOutcome, int]:
        """Candidates by outcome, after a person's review; an outcome that did not occur is 0."""
        # No write undoes a decision.
        outcomes = (o for o in get_args(WriteOutcome) if o not in {"deleted", "undone"})
        counts: dict[WriteOutcome, int] = dict.fromkeys(outcomes, 0)
        # Receipts are never changed, so the effect of a review is counted from the review.
        reviews = {review.receipt_id: review for review in self.reviews}
        for receipt in self.receipts:
            review = reviews.get(receipt.id)
            if review is None:
                counts[receipt.outcome] += 1
            elif not review.stored_as:  # after an edit, the receipt of the new text counts
                counts[_AFTER_REVIEW[review.outcome]] += 1
        return counts

    @computed_field
    @property
    def corrections(self) -> dict[Correction, int]:
        """Memories that the run changed, by what became of them; each is 0 if there are none."""
        counts: dict[Correction, int] = dict.fromkeys(get_args(Correction), 0)
        for change in (change for receipt in self.receipts for change in receipt.changes):
            before, after = change.before, change.after
            # A memory of the past may get another place in its chain; it was superseded before.
            counts["superseded"] += after.ended_as == "superseded" and before.is_current
            counts["confirmed"] += after.confirmed_at != before.confirmed_at
            counts["conflicting"] += after.conflicts_with != before.conflicts_with
        return counts

    def to_table(self) -> ReportTable:
        """The candidates as a table: those with a receipt, then those that are undecided."""
        reviews = {review.receipt_id: review for review in self.reviews}
        rows = [_receipt_row(receipt, reviews.get(receipt.id)) for receipt in self.receipts]
        rows += [(redact(one.text), "unjudged", "", None, "") for one in self.unjudged]
        counts = ", ".join(f"{count} {outcome}" for outcome, count in self.counts.items() if count)
        lines = [line for line in (corrections_line(self.corrections),) if line]
        lines += [failure.line for failure in self.failures]
        if self.unread:
            lines.append(f"{len(self.unread)} turns were not read")
        return ReportTable(
            title=f"write to {' / '.join(self.namespace)}: {counts or 'nothing was decided'}",
            columns=RECEIPT_COLUMNS,
            rows=tuple(rows),
            lines=(*lines, *self.notes),
        )


def _receipt_row(receipt: Receipt, review: Review | None) -> tuple[Cell, ...]:
    if review is None:
        return receipt.to_row()
    # After an edit, the person's text has a receipt of its own.
    outcome = "edited" if review.stored_as else _AFTER_REVIEW[review.outcome]
    return receipt.to_row(outcome=outcome, reason=f"{review.ruling} by {review.actor}")


def corrections_line(corrections: Mapping[Correction, int]) -> str:
    """`of the stored memories: 1 superseded, 2 confirmed`; empty if none was changed."""
    parts = ", ".join(f"{count} {name}" for name, count in corrections.items() if count)
    return f"of the stored memories: {parts}" if parts else ""


class WriteResult(TypedDict):
    """What a run of the write guard returns."""

    writes: WriteReport
    """The report; missing as long as the run waits for a person."""
    __interrupt__: NotRequired[Sequence[Any]]
    """The question to a person, with `review="interrupt"`; its `value` is the request."""


def first_error(failures: Sequence[Failure]) -> MemguardError | None:
    """The failure that stopped a run, as the error it was; `None` if nothing stopped it.

    A pass without a usable answer is not an error: its turns stay unread, and the next run reads
    them again. Neither is an exhausted budget, because the caller set the limit.
    """
    return next((error_of(failure) for failure in failures if failure.code in _ERROR_CODES), None)
