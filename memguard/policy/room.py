"""Which permitted units fit into the prompt, and in which order they appear there.

Constraints and safety come first and are always shown. The rest is chosen by what the query needs,
then by nearness, then by how wide the permission is. The order of appearance is a different one and
has no part in the choice: sections are fixed, and the query does not move a unit within a section.
The prompts of consecutive turns then begin alike, so a provider's prompt cache serves them.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from memguard.policy.ruling import Ruling, is_about_safety
from memguard.schema.ledger import Withheld
from memguard.schema.permissions import SECTIONS, WIDTH, Permission
from memguard.schema.read_config import ReadSpec
from memguard.schema.units import FactorAttributes, UnitAttributes

_OLDEST = datetime.min.replace(tzinfo=UTC)
"""The time of units whose time is not known: anything that is said later comes after them."""


class Room:
    """The remaining room of the block while units are added to it."""

    def __init__(
        self, spec: ReadSpec, *, costs: Mapping[str, int], frames: Mapping[str, int]
    ) -> None:
        self._spec = spec
        self._costs = costs
        self._frames = frames
        self._units = 0
        self._tokens = 0
        self._open: set[str] = set()
        self.exceeded = False
        """Whether constraints alone are more than the limits allow."""

    def add(self, ruling: Ruling, *, always: bool) -> Withheld | None:
        """Add a unit, or say why it does not fit."""
        cost = self._cost(ruling)
        full = self._full(cost)
        if full and not always:
            return full
        self.exceeded = self.exceeded or full is not None
        self._units += 1
        self._tokens += cost
        self._open |= {"frame", ruling.row.then}
        return None

    def _cost(self, ruling: Ruling) -> int:
        # A heading costs tokens only once, with the first unit below it.
        opened = {"frame", ruling.row.then} - self._open
        return self._costs[ruling.unit.id] + sum(self._frames.get(name, 0) for name in opened)

    def _full(self, cost: int) -> Withheld | None:
        max_units, max_tokens = self._spec.max_units, self._spec.max_tokens
        if max_units is not None and self._units >= max_units:
            return "max_units"
        if max_tokens is not None and self._tokens + cost > max_tokens:
            return "max_tokens"
        return None


def by_priority(rulings: Sequence[Ruling], *, safety: bool) -> list[Ruling]:
    """The permitted units, the most important first; equal ones in the order of recall."""
    # `sorted` is stable, so equal units stay in the order of recall.
    permitted = [ruling for ruling in rulings if ruling.row.then != "DENY"]
    return sorted(
        permitted,
        key=lambda ruling: (
            not is_always_shown(ruling, safety=safety),
            _need(ruling),
            -(ruling.unit.score or 0.0),
            -WIDTH[ruling.row.then],
        ),
    )


def is_always_shown(ruling: Ruling, *, safety: bool) -> bool:
    """Whether a unit is shown even where there is no room for it."""
    return ruling.row.then == "APPLY_CONSTRAINT" or (safety and is_about_safety(ruling))


def positions_of(rulings: Sequence[Ruling]) -> dict[str, int]:
    """The number of each unit among those shown, from 1: by section, then the oldest first.

    Units of the same time are ordered by memory, and units of one memory as in the memory. Ours:
    a new memory goes to the end of its section, and what comes before it does not change.
    """
    section: dict[Permission, int] = {name: number for number, name in enumerate(SECTIONS)}
    ordered = sorted(
        rulings,
        key=lambda ruling: (
            section[ruling.row.then],
            ruling.unit.said_at or _OLDEST,
            ruling.unit.memory_id,
        ),
    )
    return {ruling.unit.id: number for number, ruling in enumerate(ordered, start=1)}


def _need(ruling: Ruling) -> int:
    """0 for what the query needs, 1 for what helps, 2 where the verdict does not tell."""
    attributes = ruling.finding.attributes
    if isinstance(attributes, FactorAttributes):
        return {"needed": 0, "helpful": 1}.get(attributes.utility, 2)
    if isinstance(attributes, UnitAttributes):
        return {"direct": 0, "indirect": 1}.get(attributes.relevance, 2)
    return 2
