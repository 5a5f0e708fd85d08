"""Which of two units that contradict each other may replace the other; pure, and ours.

A later statement replaces an earlier one only if it is at least as well grounded, and if whoever
said it may know at least as well. Otherwise a joke, a rumour or planted text would remove what the
user stated.
"""

from dataclasses import dataclass

from memguard.schema.memory import SaidBy
from memguard.schema.units import Epistemic

GROUNDING: dict[Epistemic, int] = {
    "verified": 3,
    "stated": 2,
    "inferred": 1,
    "uncertain": 0,
    "contradicted": -1,
}
"""How well a unit is supported, as an order; more is better.

A joke, a rumour, a guess and "I wonder whether" are `uncertain`. A unit below `inferred` is
doubtful: it never replaces another one.
"""

STANDING: dict[SaidBy, int] = {"user": 2, "mixed": 1, "unknown": 1}
"""How well the speaker may know, as an order; everybody else has 0 and replaces nothing.

A memory belongs to a user, who is the one that it is about, or the one who tells of it.
"""


@dataclass(frozen=True)
class Credibility:
    """How well a unit is grounded, and by whom."""

    epistemic: Epistemic
    """How well it is supported."""
    said_by: SaidBy
    """Who said it."""

    @property
    def standing(self) -> int:
        """How well the speaker may know."""
        return STANDING.get(self.said_by, 0)

    @property
    def may_replace(self) -> bool:
        """Whether such a unit can replace another one at all."""
        return GROUNDING[self.epistemic] >= GROUNDING["inferred"] and self.standing > 0

    def equals_or_exceeds(self, other: "Credibility") -> bool:
        """Whether it is at least as well grounded, and said by somebody who knows as well."""
        grounded = GROUNDING[self.epistemic] >= GROUNDING[other.epistemic]
        return grounded and self.standing >= other.standing
