"""From an adjudicator's answer to the ledger: rule on every unit, settle conflicts, choose."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memguard.policy.conflicts import settle_conflicts
from memguard.policy.room import Room, by_priority, is_always_shown, positions_of
from memguard.policy.ruling import Ruling, rule_on_unit
from memguard.schema.ledger import Adjudication, Flag, Ledger, Row, UnitVerdict, Withheld
from memguard.schema.read_config import ReadSpec
from memguard.schema.units import Scheme, Unit


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What showing units takes, in tokens."""

    units: Mapping[str, int]
    """By unit id."""
    frames: Mapping[str, int]
    """What `frame`, the whole block, and the heading of each permission take in addition."""


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """The ledger, with flags and notes for the receipt."""

    ledger: Ledger
    flags: tuple[Flag, ...] = ()
    notes: tuple[str, ...] = ()


def rule_on_units(
    units: Sequence[Unit], *, adjudication: Adjudication, spec: ReadSpec
) -> tuple[Ruling, ...]:
    """What each unit may be used for, conflicts between them settled."""
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    for row in adjudication.rows:
        rows[row.unit_id].append(row)
    rulings = tuple(
        rule_on_unit(unit, rows[unit.id], situation=adjudication.situation, spec=spec)
        for unit in units
    )
    if not spec.memory_conflict:
        return rulings
    return settle_conflicts(rulings, conflicts=adjudication.conflicts, safety=spec.safety)


def compile_ledger(
    rulings: Sequence[Ruling],
    *,
    adjudication: Adjudication,
    spec: ReadSpec,
    scheme: Scheme,
    costs: Costs,
    repeats: Mapping[str, Sequence[Unit]],
) -> Compiled:
    """Choose what is shown, and record what became of every unit.

    Args:
        rulings: One per unit, in the order of recall.
        adjudication: The verdicts.
        spec: The limits.
        scheme: Which attributes they have.
        costs: What showing a unit takes.
        repeats: Units of memories whose text another memory represents, by that one's unit id.
    """
    room = Room(spec, costs=costs.units, frames=costs.frames)
    withheld: dict[str, Withheld | None] = {ruling.unit.id: "denied" for ruling in rulings}
    # The most important first, because the room that is left decides about the rest.
    for ruling in by_priority(rulings, safety=spec.safety):
        always = is_always_shown(ruling, safety=spec.safety)
        withheld[ruling.unit.id] = room.add(ruling, always=always)
    positions = positions_of([ruling for ruling in rulings if withheld[ruling.unit.id] is None])
    conflicts = _conflicts_by_unit(adjudication)
    verdicts: list[UnitVerdict] = []
    for ruling in rulings:
        unit_id = ruling.unit.id
        verdict = UnitVerdict(
            unit=ruling.unit,
            attributes=ruling.finding.attributes,
            evidence_conflict=ruling.finding.evidence_conflict,
            conflicts_with=tuple(conflicts.get(unit_id, ())),
            influence=ruling.finding.influence,
            reason=ruling.finding.reason,
            permission=ruling.row.then,
            row=ruling.row.id,
            explanation=ruling.row.why,
            withheld=withheld[unit_id],
            position=positions.get(unit_id),
        )
        verdicts.append(verdict)
        # Repeats are on the receipt too: it accounts for every recalled memory.
        verdicts += [_repeat(unit, verdict) for unit in repeats.get(unit_id, ())]
    ledger = Ledger(scheme=scheme, situation=adjudication.situation, verdicts=tuple(verdicts))
    flags: tuple[Flag, ...] = ("limits_exceeded",) if room.exceeded else ()
    notes = tuple(note for ruling in rulings for note in ruling.notes)
    return Compiled(ledger=ledger, flags=flags, notes=notes)


def _conflicts_by_unit(adjudication: Adjudication) -> dict[str, list[str]]:
    conflicting: defaultdict[str, list[str]] = defaultdict(list)
    for conflict in adjudication.conflicts:
        conflicting[conflict.first].append(conflict.second)
        conflicting[conflict.second].append(conflict.first)
    return {unit_id: list(dict.fromkeys(others)) for unit_id, others in conflicting.items()}


def _repeat(unit: Unit, verdict: UnitVerdict) -> UnitVerdict:
    explanation = f"the same text as {verdict.unit.id}"
    return verdict.model_copy(
        update={
            "unit": unit,
            "withheld": "duplicate",
            "position": None,
            "explanation": explanation,
        }
    )
