"""Arms with the budget of PS: as many units as it shows, chosen by chance or by nearness.

They tell whether it matters which units are admitted, or only how many (arXiv 2610.11188, section
4.1). Both are rendered as the neutral list.
"""

from collections.abc import Sequence
from random import Random

from memguard.rendering.memories import frame, unit_line
from memguard.schema.ledger import Ledger
from memguard.schema.units import Unit

SEEDS = (0, 1, 2, 3, 4)
"""The five seeds of the random arm."""


def budget_random(ledger: Ledger, *, seed: int) -> str:
    """As many units as the ledger shows, drawn from all of them.

    Args:
        ledger: The verdicts of PS.
        seed: The draw depends on it and on the units alone, not on other draws.
    """
    pool = _pool(ledger)
    # A draw is for measuring, not for secrets.
    rng = Random(f"{seed}:{':'.join(unit.id for unit in pool)}")  # noqa: S311
    drawn = set(rng.sample(range(len(pool)), k=len(ledger.shown)))
    return _listed([unit for place, unit in enumerate(pool) if place in drawn])


def budget_relevance(ledger: Ledger) -> str:
    """As many units as the ledger shows, the nearest to the query; ties go by recall."""
    pool = sorted(_pool(ledger), key=lambda unit: -(unit.score or 0.0))
    return _listed(pool[: len(ledger.shown)])


def _pool(ledger: Ledger) -> list[Unit]:
    return [v.unit for v in ledger.verdicts if v.withheld != "duplicate"]


def _listed(units: Sequence[Unit]) -> str:
    lines = [unit_line(unit.text, said_at=unit.said_at) for unit in units]
    return frame(lines) if lines else ""
