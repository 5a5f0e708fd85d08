"""What a guarded write reports."""

from pydantic import Field

from memguard.guard.failures import Failure
from memguard.schema.base import Frozen, Namespace
from memguard.schema.memory import CandidateMemory
from memguard.schema.receipt import Receipt, WriteOutcome
from memguard.schema.review import Review, ReviewOutcome
from memguard.schema.usage import Usage

_AFTER_REVIEW: dict[ReviewOutcome, WriteOutcome] = {
    "stored": "stored",
    "discarded": "rejected",
    "held": "quarantined",
}


class WriteReport(Frozen):
    """What became of every candidate of a run.

    Nothing is lost: a candidate has a receipt, or stands in `unjudged`; a turn that could not be
    read stands in `unread`, and a later run takes both up again.
    """

    run_id: str
    """The run; every receipt names it."""
    namespace: Namespace
    """Where it wrote."""
    receipts: tuple[Receipt, ...] = ()
    """One per candidate decided in this run, in the order of the conversation; after a review one
    more for each wording of a person's own."""
    reviews: tuple[Review, ...] = ()
    """What a person ruled on held candidates, where the run asked."""
    resumed: int = 0
    """Candidates that an earlier run had decided; their receipts are in the log."""
    unjudged: tuple[CandidateMemory, ...] = ()
    """Candidates left undecided by the budget or by a failure."""
    unread: tuple[str, ...] = ()
    """Ids of turns that no usable answer came back for, and of those the budget left out."""
    failures: tuple[Failure, ...] = ()
    """What went wrong, each once."""
    usage: Usage = Usage()
    """Model calls of the run: writer and gates."""
    notes: tuple[str, ...] = Field(default=())
    """What a reader should know."""

    @property
    def counts(self) -> dict[WriteOutcome, int]:
        """Candidates by outcome, after a person's review; what did not occur counts 0."""
        counts: dict[WriteOutcome, int] = {
            "stored": 0,
            "duplicate": 0,
            "quarantined": 0,
            "rejected": 0,
            "refused": 0,
        }
        reviewed = {review.receipt_id: review for review in self.reviews}
        for receipt in self.receipts:
            review = reviewed.get(receipt.id)
            if review is None:
                counts[receipt.outcome] += 1
            elif not review.stored_as:  # else the receipt of the new wording counts
                counts[_AFTER_REVIEW[review.outcome]] += 1
        return counts
