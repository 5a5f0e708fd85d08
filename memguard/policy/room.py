"""Which permitted units fit into the prompt, and in which order they stand there.

Constraints and safety come first and are never cut. Then counts what the query needs, then
nearness, then how wide the permission is. The order in which units stand is another one, and has no
part in what is cut: sections are fixed, and within one a unit stands where no query moves it. The
prompts of consecutive turns then begin alike, and a provider's prompt cache serves them.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from memguard.policy.ruling import Ruling, is_about_safety
from memguard.schema.ledger import Withheld
from memguard.schema.permissions import SECTIONS, WIDTH, Permission
from memguard.schema.read_config import ReadSpec
from memguard.schema.units import FactorAttributes, UnitAttributes

_OLDEST = datetime.min.replace(tzinfo=UTC)
"""Where units stand of which nobody knows when they were said: what is said later comes after."""


class Room:
    """What is left of the block while units are put into it."""

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

    def put(self, ruling: Ruling, *, always: bool) -> Withheld | None:
        """Put a unit in, or say why it does not fit."""
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
        opened = {"frame", ruling.row.then} - self._open
        return self._costs[ruling.unit.id] + sum(self._frames.get(name, 0) for name in opened)

    def _full(self, cost: int) -> Withheld | None:
        most_units, most_tokens = self._spec.max_units, self._spec.max_tokens
        if most_units is not None and self._units >= most_units:
            return "max_units"
        if most_tokens is not None and self._tokens + cost > most_tokens:
            return "max_tokens"
        return None


def by_priority(rulings: Sequence[Ruling], *, safety: bool) -> list[Ruling]:
    """The permitted units, the most important first; equal ones in the order of recall."""
    permitted = [ruling for ruling in rulings if ruling.row.then != "DENY"]
    return sorted(
        permitted,
        key=lambda ruling: (
            not is_never_cut(ruling, safety=safety),
            _need(ruling),
            -(ruling.unit.score or 0.0),
            -WIDTH[ruling.row.then],
        ),
    )


def is_never_cut(ruling: Ruling, *, safety: bool) -> bool:
    """Whether a unit stays whatever room there is."""
    return ruling.row.then == "APPLY_CONSTRAINT" or (safety and is_about_safety(ruling))


def places(shown: Sequence[Ruling]) -> dict[str, int]:
    """The number of each unit among those shown, from 1: by section, then the oldest first.

    What was said at the same time goes by memory, and pieces of one memory as they were given.
    Ours: a new memory is added at its section's end, and what stood before it stays as it was.
    """
    section: dict[Permission, int] = {name: number for number, name in enumerate(SECTIONS)}
    ordered = sorted(
        shown,
        key=lambda ruling: (
            section[ruling.row.then],
            ruling.unit.said_at or _OLDEST,
            ruling.unit.memory_id,
        ),
    )
    return {ruling.unit.id: number for number, ruling in enumerate(ordered, start=1)}


def _need(ruling: Ruling) -> int:
    """0 for what the query needs, 1 for what helps, 2 for what nobody could place."""
    attributes = ruling.found.attributes
    if isinstance(attributes, FactorAttributes):
        return {"needed": 0, "helpful": 1}.get(attributes.utility, 2)
    if isinstance(attributes, UnitAttributes):
        return {"direct": 0, "indirect": 1}.get(attributes.relevance, 2)
    return 2
