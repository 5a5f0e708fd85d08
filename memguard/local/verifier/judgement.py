"""The result of the support verifier."""

from typing import Literal

from memguard.schema.base import Frozen

SupportRuling = Literal["supported", "unsupported", "inconclusive"]
"""What the score means; `inconclusive` leaves the decision to a reviewer or a language model."""

WordStatus = Literal["stated", "reworded", "misplaced", "missing"]
"""How a word was found. `stated`: the same word or value. `reworded`: a similar word. `misplaced`:
it is there, but said of something else. `missing`: nothing similar."""

SupportNote = Literal["language", "script", "retrieved", "sentences"]
"""What limits a judgement. `language`: the text does not seem to be English. `script`: source and
candidate use different scripts. `retrieved`: only some turns were read. `sentences`: the candidate
was split, and its weakest sentence counts."""


class WordEvidence(Frozen):
    """One word of a candidate, and the word of the context that matches it."""

    word: str
    """The word as written."""
    start: int
    """Offset in the candidate, in characters."""
    status: WordStatus
    """How it was found."""
    source_word: str = ""
    """The matching word of the context; empty when missing."""
    turn_id: str = ""
    """The turn that word is in; empty when missing or when the source has no turns."""


class SupportJudgement(Frozen):
    """Whether a candidate is supported by its source turns, with the evidence for it."""

    ruling: SupportRuling
    """What the score means."""
    score: float
    """Calibrated probability of support in [0, 1], on the assumption that half of all candidates
    are wrong."""
    tau: float
    """The threshold of `supported`: a score at or above it counts as support."""
    band: tuple[float, float]
    """Lower and upper end of the scores, around `tau`, whose ruling is `inconclusive`."""
    reason: str
    """The ruling explained in one sentence."""
    words: tuple[WordEvidence, ...] = ()
    """The words that carry a detail, in the order of the candidate."""
    turns_read: int = 0
    """How many turns the candidate was compared with."""
    turns_given: int = 0
    """How many turns the caller passed."""
    notes: tuple[SupportNote, ...] = ()
    """What a reader should know before trusting the score."""
    version: str
    """Identifies the weights."""

    @property
    def supported(self) -> bool:
        """Whether the score reaches `tau`, for callers that need a yes or no."""
        return self.score >= self.tau

    @property
    def unsupported_words(self) -> tuple[str, ...]:
        """The words with the status `missing` or `misplaced`."""
        return tuple(w.word for w in self.words if w.status in {"missing", "misplaced"})
