"""Settings of reconciliation, and its named presets."""

from typing import Annotated, Literal

from pydantic import Field

from memguard.schema.base import Frozen, UnitInterval

ConflictMode = Literal["both", "hold"]
"""What happens to a candidate that contradicts a memory while nothing tells which of them holds.

* `both`: it is stored, and each of the two is marked as in conflict with the other.
* `hold`: it goes into quarantine, where a person decides.
"""


class Reconcile(Frozen):
    """Settings of reconciliation: how does an admitted candidate change what is stored?"""

    k: Annotated[int, Field(ge=1, le=50)] = 8
    """How many near memories the candidate is compared with."""
    # Measured with the built-in embedder; the page of the method has the figures.
    min_score: UnitInterval = 0.2
    """The similarity from which a memory counts as near, in another language from half of it. With
    another embedder, measure it."""
    on_conflict: ConflictMode = "both"
    """What happens to a candidate in conflict with a stored memory."""
    duplicates: Literal["confirm", "store"] = "confirm"
    """Whether a candidate that says what a memory says in other words confirms that memory, or is
    stored alongside it."""

    @classmethod
    def preset(cls, name: str) -> "Reconcile":
        """The settings of a preset; see `RECONCILE_PRESETS`.

        Raises:
            KeyError: If there is no preset of that name.
        """
        return RECONCILE_PRESETS[name]


RECONCILE_PRESETS: dict[str, Reconcile] = {
    "default": Reconcile(),
    "review": Reconcile(on_conflict="hold"),
}
"""`review`: a person decides where two memories contradict each other."""
