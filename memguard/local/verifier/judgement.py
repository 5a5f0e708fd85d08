"""What the verifier found, as a value."""

from typing import Literal

from memguard.schema.base import Frozen

Ruling = Literal["supported", "unsupported", "inconclusive"]
"""What the score says; `inconclusive` is for a reviewer or a language model, and is not a no."""

WordStatus = Literal["stated", "reworded", "misplaced", "missing"]
"""`stated`: the same word or value; `reworded`: one like it; `misplaced`: it is there, but beside
something else; `missing`: nothing like it."""

Note = Literal["language", "script", "retrieved", "sentences"]
"""`language`: not English, or not sure to be; `script`: source and candidate are in different
scripts; `retrieved`: not all turns were read; `sentences`: the candidate was cut into sentences."""


class WordEvidence(Frozen):
    """One word of a candidate, and where it was found."""

    word: str
    """The word as written."""
    start: int
    """Its first character in the candidate."""
    status: WordStatus
    """How it was found."""
    source_word: str = ""
    """The word it was found as; empty when missing."""
    turn_id: str = ""
    """The turn that word is in; empty when missing or when the source has no turns."""


class SupportJudgement(Frozen):
    """Whether a candidate is supported by its source turns, and what that rests on."""

    ruling: Ruling
    """What the score says."""
    score: float
    """Calibrated probability of support, in a world where every second candidate is wrong."""
    tau: float
    """From here on a candidate counts as supported when a yes or no is needed."""
    band: tuple[float, float]
    """The zone around `tau` in which the ruling is `inconclusive`."""
    reason: str
    """One sentence."""
    words: tuple[WordEvidence, ...] = ()
    """The words that carry a detail, in the order of the candidate."""
    turns_read: int = 0
    """How many turns were laid beside the candidate."""
    turns_given: int = 0
    """How many turns there were."""
    notes: tuple[Note, ...] = ()
    """What a reader should know before trusting the score."""
    version: str
    """Names the weights."""

    @property
    def supported(self) -> bool:
        """Whether the score reaches `tau`, for callers who need a yes or no."""
        return self.score >= self.tau

    @property
    def unfound(self) -> tuple[str, ...]:
        """The words that found no support."""
        return tuple(each.word for each in self.words if each.status in {"missing", "misplaced"})
