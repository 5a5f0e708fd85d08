"""What a person ruled on a candidate that was held."""

from typing import Literal

from pydantic import Field

from memguard.schema.base import Frozen, Namespace, Text
from memguard.schema.failures import Failure
from memguard.schema.memory import CandidateMemory
from memguard.schema.receipt import Receipt, WriteOutcome
from memguard.schema.usage import Usage

ReviewRuling = Literal["approve", "edit", "reject", "respond"]
"""A person's ruling, in the words of LangChain's human-in-the-loop middleware.

* `approve`: store the candidate as it is.
* `edit`: store the person's own wording instead; it is not judged again.
* `reject`: throw the candidate out of quarantine; its receipt stays.
* `respond`: neither; it stays in quarantine, with the person's words on the report.
"""

ReviewOutcome = Literal["stored", "discarded", "held"]
"""Where the candidate is after the ruling."""


class Review(Frozen):
    """A person's ruling on one held candidate, and what came of it."""

    receipt_id: str
    """The decision that held the candidate."""
    ruling: ReviewRuling
    """What the person said."""
    outcome: ReviewOutcome
    """What came of it; not what was asked for where the candidate had left quarantine already."""
    actor: str
    """Who ruled, where the server knows; else `reviewer`."""
    message: Text = ""
    """The person's words: why, or what to do with it."""
    stored_as: str = ""
    """The receipt of the person's own wording, after an edit."""


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
