"""What is shown of what was permitted, and the record of what became of every unit. Pure.

`compile_ledger` fills the limits of the spec by priority. Safety constraints and what must be
applied are shown even where there is no room.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from memguard.methods.adjudication.marks import marked_conflicts
from memguard.methods.adjudication.rows import OTHER_TOPIC
from memguard.methods.adjudication.ruling import Ruling, is_about_safety
from memguard.schema.memory import same_text_form
from memguard.schema.read import (
    Adjudication,
    Conflict,
    Flag,
    Ledger,
    ReadSpec,
    UnitVerdict,
    Withheld,
)
from memguard.schema.units import (
    SECTIONS,
    WIDTH,
    FactorAttributes,
    Permission,
    Scheme,
    Unit,
    UnitAttributes,
)

_OLDEST = datetime.min.replace(tzinfo=UTC)
"""The time of units whose time is not known: anything that is said later comes after them."""


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
    withheld, exceeded = _apply_limits(rulings, spec=spec, costs=costs)
    positions = positions_of([ruling for ruling in rulings if withheld[ruling.unit.id] is None])
    marked = marked_conflicts([ruling.unit for ruling in rulings])
    conflicts = _conflicts_by_unit((*adjudication.conflicts, *marked))
    verdicts: list[UnitVerdict] = []
    for ruling in rulings:
        unit_id = ruling.unit.id
        verdict = UnitVerdict(
            unit=ruling.unit,
            # Nobody was asked about a unit of another topic, so it has no verdict to report.
            attributes=None if ruling.row is OTHER_TOPIC else ruling.finding.attributes,
            evidence_conflict=ruling.finding.evidence_conflict,
            conflicts_with=conflicts.get(unit_id, ()),
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
    instructed = any(ruling.unit.instruction for ruling in rulings)
    flags: tuple[Flag, ...] = (
        *(("limits_exceeded",) if exceeded else ()),
        *(("instruction_withheld",) if instructed else ()),
    )
    notes = tuple(note for ruling in rulings for note in ruling.notes)
    return Compiled(ledger=ledger, flags=flags, notes=notes)


def _conflicts_by_unit(conflicts: Sequence[Conflict]) -> dict[str, tuple[str, ...]]:
    conflicting: defaultdict[str, list[str]] = defaultdict(list)
    for conflict in conflicts:
        conflicting[conflict.first].append(conflict.second)
        conflicting[conflict.second].append(conflict.first)
    return {unit_id: tuple(dict.fromkeys(others)) for unit_id, others in conflicting.items()}


def _repeat(unit: Unit, verdict: UnitVerdict) -> UnitVerdict:
    is_same = same_text_form(unit.text) == same_text_form(verdict.unit.text)
    # A memory in other words is represented as a whole, by the first unit of the other one.
    in_words = "the same text as" if is_same else "the same in other words as"
    explanation = f"{in_words} {verdict.unit.id}"
    update = {"unit": unit, "withheld": "duplicate", "position": None, "explanation": explanation}
    return verdict.model_copy(update=update)


def _apply_limits(
    rulings: Sequence[Ruling], *, spec: ReadSpec, costs: Costs
) -> tuple[dict[str, Withheld | None], bool]:
    """Why each unit is withheld, by its id, and whether constraints alone exceed the limits."""
    withheld: dict[str, Withheld | None] = {ruling.unit.id: "denied" for ruling in rulings}
    units, tokens, exceeded = 0, 0, False
    opened: set[str] = set()
    # The most important first, because the room that is left decides about the rest.
    for ruling in by_priority(rulings, safety=spec.safety):
        # A heading costs tokens only once, with the first unit below it.
        new = {"frame", ruling.row.then} - opened
        cost = costs.units[ruling.unit.id] + sum(costs.frames.get(name, 0) for name in new)
        full: Withheld | None = None
        if spec.max_units is not None and units >= spec.max_units:
            full = "max_units"
        elif spec.max_tokens is not None and tokens + cost > spec.max_tokens:
            full = "max_tokens"
        if full and not is_always_shown(ruling, safety=spec.safety):
            withheld[ruling.unit.id] = full
            continue
        exceeded = exceeded or full is not None
        withheld[ruling.unit.id] = None
        units, tokens = units + 1, tokens + cost
        opened |= new
    return withheld, exceeded


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
