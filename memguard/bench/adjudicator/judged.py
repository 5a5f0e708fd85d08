"""One read judged by the local adjudicator, with what policy makes of it."""

from dataclasses import dataclass

from memguard.bench.adjudicator.sets import Labelled
from memguard.local.adjudicator import LocalAdjudicator
from memguard.local.adjudicator.decompose import split_memory
from memguard.policy.ledger import rule_on_units
from memguard.policy.ruling import Ruling
from memguard.schema.permissions import WIDTH, Permission
from memguard.schema.read_config import FactorCompiled, PermissionSemantic
from memguard.schema.units import FactorAttributes, Scheme, Temporal, Unit, UnitAttributes


@dataclass(frozen=True, kw_only=True)
class JudgedMemory:
    """What became of one memory."""

    label: str
    """Its label in the data; may be empty."""
    temporal: Temporal
    """Whether it still holds, as judged; of several units the one least held."""
    permission: Permission
    """The widest permission of its units: what of it reaches the prompt."""


def judge(row: Labelled, *, adjudicator: LocalAdjudicator, scheme: Scheme) -> list[JudgedMemory]:
    """The memories of a row, each with its fate.

    Args:
        row: A query with its memories.
        adjudicator: The local adjudicator.
        scheme: `units` cuts memories first (PS), `factors` judges them whole (FC).
    """
    units: list[Unit] = []
    for number, (text, _) in enumerate(row.memories):
        pieces = split_memory(text).pieces if scheme == "units" else ()
        whole = Unit(id=f"{number}.0", memory_id=str(number), text=text)
        units += [
            Unit(id=f"{number}.{at}", memory_id=str(number), text=piece.text, kind=piece.kind)
            for at, piece in enumerate(pieces)
        ] or [whole]
    said = adjudicator.judge(row.case, units, scheme)
    spec = PermissionSemantic() if scheme == "units" else FactorCompiled()
    rulings = rule_on_units(units, adjudication=said, spec=spec)
    return [
        _judged(label, [each for each in rulings if each.unit.memory_id == str(number)])
        for number, (_, label) in enumerate(row.memories)
    ]


def _judged(label: str, rulings: list[Ruling]) -> JudgedMemory:
    order: tuple[Temporal, ...] = ("superseded", "uncertain", "current")
    found = {_temporal(ruling) for ruling in rulings}
    return JudgedMemory(
        label=label,
        temporal=next(each for each in order if each in found),
        permission=max((ruling.row.then for ruling in rulings), key=lambda each: WIDTH[each]),
    )


def _temporal(ruling: Ruling) -> Temporal:
    attributes = ruling.finding.attributes
    if isinstance(attributes, UnitAttributes):
        return attributes.temporality
    return attributes.temporal if isinstance(attributes, FactorAttributes) else "uncertain"
