"""Two units that contradict each other: the later wins, or else both are doubtful.

Ours; switched by `memory_conflict`. Every pair is settled on the rulings before any settlement, so
that the order of the pairs has no effect. Settling narrows a permission, and never widens it.
"""

from collections.abc import Iterable, Sequence

from memguard.policy.ruling import Ruling, is_about_safety, narrowed
from memguard.policy.tables import TableRow
from memguard.schema.ledger import Conflict
from memguard.schema.units import FactorAttributes, UnitAttributes

LOST = TableRow(id="conflict-lost", then="DENY", why="a later unit says otherwise")
OPEN = TableRow(
    id="conflict-open",
    then="CONTEXT_UNCERTAIN",
    why="another unit says otherwise, and time does not tell which holds",
)
SAFETY = TableRow(
    id="conflict-safety",
    then="CONTEXT",
    why="another unit says otherwise; a safety constraint stays in sight",
)


def settle_conflicts(
    rulings: Sequence[Ruling], *, conflicts: Iterable[Conflict], safety: bool
) -> tuple[Ruling, ...]:
    """The rulings after every pair is settled.

    Args:
        rulings: One per unit.
        conflicts: Pairs of unit ids; pairs with an unknown id, or of a unit with itself, are
            ignored.
        safety: Whether safety constraints stay in sight.
    """
    # Collected first and applied at the end, so that no pair sees the outcome of another.
    by_id = {ruling.unit.id: ruling for ruling in rulings}
    caps: dict[str, list[TableRow]] = {unit_id: [] for unit_id in by_id}
    for conflict in conflicts:
        first, second = by_id.get(conflict.first), by_id.get(conflict.second)
        if first is None or second is None or first is second:
            continue
        if not (_is_valid(first) and _is_valid(second)):
            continue
        for ruling, cap in _settled(first, second):
            caps[ruling.unit.id].append(SAFETY if safety and is_about_safety(ruling) else cap)
    settled: list[Ruling] = []
    for ruling in rulings:
        after = ruling
        for cap in caps[ruling.unit.id]:
            after = narrowed(after, to=cap)
        settled.append(after)
    return tuple(settled)


def _settled(first: Ruling, second: Ruling) -> tuple[tuple[Ruling, TableRow], ...]:
    one, other = first.unit.said_at, second.unit.said_at
    # Without two different times nothing tells which of them is current.
    if one is None or other is None or one == other:
        return (first, OPEN), (second, OPEN)
    return ((first, LOST),) if one < other else ((second, LOST),)


def _is_valid(ruling: Ruling) -> bool:
    """Whether a unit counts against another: nothing has settled that it is no longer true."""
    finding = ruling.finding
    if ruling.unit.superseded or finding.evidence_conflict:
        return False
    if isinstance(finding.attributes, FactorAttributes):
        time = finding.attributes.temporal
    elif isinstance(finding.attributes, UnitAttributes):
        time = finding.attributes.temporality
    else:
        return True
    return time != "superseded" and finding.attributes.epistemic != "contradicted"
