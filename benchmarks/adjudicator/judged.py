"""Judges one read by the local adjudicator and applies the policy to the result."""

from dataclasses import dataclass

from benchmarks.adjudicator.sets import LabelledRead
from memguard.local.adjudicator import LocalAdjudicator
from memguard.local.adjudicator.decomposer import split_memory
from memguard.methods.adjudication.ruling import Ruling, rule_on_units
from memguard.schema.read import FactorCompiled, PermissionSemantic
from memguard.schema.units import (
    WIDTH,
    FactorAttributes,
    Permission,
    Scheme,
    Temporal,
    Unit,
    UnitAttributes,
)


@dataclass(frozen=True, kw_only=True)
class AdjudicatedMemory:
    """The result for one memory."""

    label: str
    """Its label in the data; empty if it has none."""
    temporal: Temporal
    """The judged temporality; of several units, the one furthest from `current`."""
    permission: Permission
    """The widest permission of its units."""


def judge(
    row: LabelledRead, *, adjudicator: LocalAdjudicator, scheme: Scheme
) -> list[AdjudicatedMemory]:
    """Judge the memories of a row, in their order.

    Args:
        row: A query with its memories.
        adjudicator: The local adjudicator.
        scheme: `units` splits memories first (PS), `factors` judges them whole (FC).
    """
    # As the read guard builds them: PS judges pieces, FC whole memories.
    units: list[Unit] = []
    for number, (text, _) in enumerate(row.memories):
        pieces = split_memory(text).pieces if scheme == "units" else ()
        whole = Unit(id=f"{number}.0", memory_id=str(number), text=text)
        units += [
            Unit(id=f"{number}.{at}", memory_id=str(number), text=piece.text, kind=piece.kind)
            for at, piece in enumerate(pieces)
        ] or [whole]
    adjudication = adjudicator.judge(row.case, units, scheme)
    spec = PermissionSemantic() if scheme == "units" else FactorCompiled()
    rulings = rule_on_units(units, adjudication=adjudication, spec=spec)
    return [
        _combine(label, [ruling for ruling in rulings if ruling.unit.memory_id == str(number)])
        for number, (_, label) in enumerate(row.memories)
    ]


def _combine(label: str, rulings: list[Ruling]) -> AdjudicatedMemory:
    # A memory is as outdated as its most outdated piece.
    order: tuple[Temporal, ...] = ("superseded", "uncertain", "current")
    temporalities = {_temporal(ruling) for ruling in rulings}
    return AdjudicatedMemory(
        label=label,
        temporal=next(value for value in order if value in temporalities),
        permission=max((ruling.row.then for ruling in rulings), key=WIDTH.__getitem__),
    )


def _temporal(ruling: Ruling) -> Temporal:
    attributes = ruling.finding.attributes
    if isinstance(attributes, UnitAttributes):
        return attributes.temporality
    return attributes.temporal if isinstance(attributes, FactorAttributes) else "uncertain"
