"""What a person ruled on a candidate that was held."""

from typing import Literal

from memguard.schema.base import Frozen, Text

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
