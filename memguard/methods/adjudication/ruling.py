"""From an adjudicator's verdicts to what each unit may be used for, and to what is shown.

`rule_on_units` rules on every unit: what the store or the evidence has settled comes first, then
the table of the scheme, then the floors that protect safety constraints and current preferences.
A unit without a usable verdict has rows of its own; no attributes are invented for it. Conflicts
between units are settled next. `compile_ledger` then fills the limits of the spec by priority and
records what became of every unit.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from typing import get_args

from memguard.local.credibility import Credibility
from memguard.local.pieces import adds_words, kind_without_verdict
from memguard.methods.adjudication.authors import (
    ANOTHER_AUTHOR,
    ANOTHER_DEMAND,
    CONFLICT_AUTHOR,
    is_demand,
    is_of_another,
)
from memguard.methods.adjudication.marks import is_past, marked_conflicts
from memguard.methods.adjudication.permissions import (
    FC_OPEN,
    FC_PERSONALIZATION,
    FC_SAFETY,
    FC_TABLE,
    PS_OPEN,
    PS_PERSONALIZATION,
    PS_SAFETY,
    PS_TABLE,
)
from memguard.methods.adjudication.rows import (
    CONFLICT_DOUBTFUL,
    CONFLICT_LOOKED_UP,
    CONFLICT_LOST,
    CONFLICT_MARKED,
    CONFLICT_OPEN,
    CONFLICT_SAFETY,
    EVIDENCE,
    EVIDENCE_CONSTRAINT,
    EVIDENCE_SAFETY,
    INSTRUCTIONS,
    NOT_JUDGED,
    OTHER_TOPIC,
    SUPERSEDED_RECORD,
)
from memguard.methods.adjudication.tables import TableRow, stricter, wider
from memguard.schema.decision import Inconclusive
from memguard.schema.read import (
    Adjudication,
    Conflict,
    Lookup,
    Mode,
    ReadSpec,
    Row,
    Situation,
    Target,
)
from memguard.schema.units import (
    WIDTH,
    Attributes,
    Epistemic,
    FactorAttributes,
    Temporal,
    Unit,
    UnitAttributes,
)

SITUATIONS: tuple[Situation, ...] = tuple(
    Situation(target=target, mode=mode, asks_view=asks_view)
    for target, mode, asks_view in product(get_args(Target), get_args(Mode), (False, True))
)
"""Every possible situation of a request that looks nothing up."""

_NO_ROW = Inconclusive(reason="parse_failure", detail="the answer has no row for this unit")


@dataclass(frozen=True, kw_only=True)
class Ruling:
    """What was ruled on one unit, before conflicts and limits."""

    unit: Unit
    """The unit; its text is what may be shown."""
    row: TableRow
    """The row that decided."""
    finding: Row
    """The adjudicator's row that it rests on; a row without a verdict where there was none."""
    notes: tuple[str, ...] = ()
    """What a reader should know."""


def rule_on_units(
    units: Sequence[Unit],
    *,
    adjudication: Adjudication,
    spec: ReadSpec,
    left_out: AbstractSet[str] = frozenset(),
) -> tuple[Ruling, ...]:
    """What each unit may be used for, conflicts between them settled.

    `left_out` are the ids of units that were not judged because they are of another topic.
    """
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    for row in adjudication.rows:
        rows[row.unit_id].append(row)
    rulings = tuple(
        rule_on_unit(
            unit,
            rows[unit.id],
            situation=adjudication.situation,
            spec=spec,
            fails_open=adjudication.fails_open,
        )
        for unit in units
    )
    rulings = tuple(
        replace(ruling, row=OTHER_TOPIC)
        if ruling.unit.id in left_out and ruling.row is not SUPERSEDED_RECORD
        else ruling
        for ruling in rulings
    )
    # Before conflicts: what another author demands is denied, and then speaks against nothing.
    rulings = _limited_by_author(rulings) if spec.authorship else rulings
    if not spec.memory_conflict:
        return rulings
    return settle_conflicts(
        rulings,
        conflicts=adjudication.conflicts,
        safety=spec.safety,
        authorship=spec.authorship,
        look_up=lookup_of(adjudication.situation, spec=spec) != "none",
    )


def lookup_of(situation: Situation | Inconclusive | None, *, spec: ReadSpec) -> Lookup:
    """What a request looks up; nothing where that is unknown, or not asked."""
    return situation.lookup if spec.lookups and isinstance(situation, Situation) else "none"


def _limited_by_author(rulings: Sequence[Ruling]) -> tuple[Ruling, ...]:
    """The rulings, narrowed where the words are another author's."""
    # Whoever demands something in a memory wrote the rest of it as well.
    demanding = {ruling.unit.memory_id for ruling in rulings if is_demand(ruling.unit)}
    limited: list[Ruling] = []
    for ruling in rulings:
        row = ruling.row
        # "Do not give the patient penicillin" is a demand too, and is shown.
        if ruling.unit.memory_id in demanding and not is_about_safety(ruling):
            row = stricter(row, ANOTHER_DEMAND)
        elif is_of_another(ruling.unit, ruling.finding) and row.then != "DENY":
            row = ANOTHER_AUTHOR
        limited.append(ruling if row is ruling.row else replace(ruling, row=row))
    return tuple(limited)


def rule_on_unit(
    unit: Unit,
    rows: Sequence[Row],
    *,
    situation: Situation | Inconclusive | None,
    spec: ReadSpec,
    fails_open: bool = False,
) -> Ruling:
    """Rule on one unit.

    Args:
        unit: The unit.
        rows: The adjudicator's rows for it. Of several rows the strictest ruling applies; no row
            is the same as a row that could not be read.
        situation: What the query asks for. Where that is unknown, the narrowest permission over
            all situations applies, and what fails open stays context.
        spec: The switches.
        fails_open: Whether what nothing speaks against is shown; see `Adjudication.fails_open`.
    """
    findings = rows or (Row(unit_id=unit.id, attributes=_NO_ROW),)
    rulings = [
        _rule(unit, row, situation=situation, spec=spec, fails_open=fails_open) for row in findings
    ]
    if len(rulings) == 1:
        return rulings[0]
    strictest = min(rulings, key=_strictness)
    # Rows that differ only in their reason or influence are one verdict, and need no note.
    if len({(row.attributes, row.evidence_conflict) for row in findings}) == 1:
        return strictest
    note = f"{unit.id}: {len(findings)} rows that differ; the strictest applies"
    return replace(strictest, notes=(*strictest.notes, note))


def _strictness(ruling: Ruling) -> tuple[int, str, str]:
    """The strictest first; equally strict ones in an order that does not depend on the input's."""
    return WIDTH[ruling.row.then], ruling.row.id, ruling.finding.model_dump_json()


def _rule(
    unit: Unit,
    finding: Row,
    *,
    situation: Situation | Inconclusive | None,
    spec: ReadSpec,
    fails_open: bool,
) -> Ruling:
    if unit.instruction is not None:
        return Ruling(unit=unit, row=INSTRUCTIONS[unit.instruction], finding=finding)
    attributes = finding.attributes
    # The store knows that the record was replaced, which no verdict on its words can change.
    if unit.superseded:
        is_asked_for = is_past(unit) and lookup_of(situation, spec=spec) == "past"
        if isinstance(attributes, Inconclusive) or not is_asked_for:
            return Ruling(unit=unit, row=SUPERSEDED_RECORD, finding=finding)
        attributes = _ended(attributes)
    denied = finding.evidence_conflict and spec.evidence_conflict
    # Not judged is not "no": the words of the unit decide whether it fails open or closed.
    if isinstance(attributes, Inconclusive):
        kind = kind_without_verdict(unit)
        row = NOT_JUDGED.get(kind or "other", NOT_JUDGED["other"])
        # A row that could not be read is not a reason to remove a safety constraint.
        row = EVIDENCE if denied and kind != "safety" else row
        return Ruling(unit=unit, row=row, finding=finding)
    notes: tuple[str, ...] = ()
    if isinstance(attributes, FactorAttributes):
        unit, attributes, notes = _allowed_part(unit, attributes)
        of_safety = attributes.safety
    else:
        of_safety = "safety" in {attributes.kind, unit.kind}
    row = _decide(attributes, situation=situation, spec=spec, of_safety=of_safety)
    if fails_open:
        lookup = lookup_of(situation, spec=spec)
        open_row = _open_row(attributes, situation=situation, of_safety=of_safety, lookup=lookup)
        row = wider(row, open_row)
    if denied:
        row = _row_against_evidence(attributes, row=row, of_safety=of_safety)
    return Ruling(unit=unit, row=row, finding=finding, notes=notes)


def _row_against_evidence(attributes: Attributes, *, row: TableRow, of_safety: bool) -> TableRow:
    """The row of a unit that evidence contradicts, given the row that it would have otherwise."""
    # A menu without a dish for a coeliac does not make the person well.
    if of_safety:
        return stricter(row, EVIDENCE_SAFETY)
    return stricter(row, EVIDENCE_CONSTRAINT) if _is_constraint(attributes) else EVIDENCE


def _ended(attributes: Attributes) -> Attributes:
    """The attributes of a unit that the store marks as superseded, whatever its words suggest."""
    is_entry = isinstance(attributes, FactorAttributes)
    return attributes.model_copy(update={"temporal" if is_entry else "temporality": "superseded"})


def _allowed_part(
    unit: Unit, attributes: FactorAttributes
) -> tuple[Unit, FactorAttributes, tuple[str, ...]]:
    """An entry narrowed to the part that may be used, its attributes, and notes."""
    allowed = attributes.allowed_content.strip() if attributes.scope == "partial" else ""
    notes: tuple[str, ...] = ()
    # The adjudicator may only select words: words that it adds would enter the prompt as memory.
    if allowed and adds_words(allowed, source=unit.text):
        allowed = ""
        notes = (f"{unit.id}: the allowed content was not the entry's own words, so it is void",)
        # What fails open elsewhere fails open here: the part exists, only its words are not known.
        if attributes.role in {"constraint", "preference"} or attributes.safety:
            attributes = attributes.model_copy(update={"scope": "uncertain"})
    # From here on the allowed part is all there is of the unit: nothing can render the rest.
    visible = unit.model_copy(update={"text": allowed}) if allowed else unit
    return visible, attributes.model_copy(update={"allowed_content": allowed}), notes


def _decide(
    attributes: Attributes,
    *,
    situation: Situation | Inconclusive | None,
    spec: ReadSpec,
    of_safety: bool,
) -> TableRow:
    """The row in a situation; where that is unknown, the narrowest row over all."""
    if isinstance(situation, Situation):
        return _row_in(situation, attributes, spec=spec, of_safety=of_safety)
    rows = [_row_in(assumed, attributes, spec=spec, of_safety=of_safety) for assumed in SITUATIONS]
    narrowest = reduce(stricter, rows)
    fails_open = of_safety or (_is_preference(attributes) and _time_of(attributes) == "current")
    if reduce(wider, rows).then == "DENY" or not fails_open:
        return narrowest
    # A safety constraint or a current preference that some situation admits fails open.
    return wider(narrowest, NOT_JUDGED["safety" if of_safety else "preference"])


def _row_in(
    situation: Situation, attributes: Attributes, *, spec: ReadSpec, of_safety: bool
) -> TableRow:
    # Tables ignore the attributes that are not among their columns.
    key = {**dict(attributes), "target": situation.target, "mode": situation.mode}
    key["asks_view"] = "yes" if situation.asks_view and spec.asks_view else "no"
    key["lookup"] = lookup_of(situation, spec=spec)
    if isinstance(attributes, FactorAttributes):
        table, safety, personalization = FC_TABLE, FC_SAFETY, FC_PERSONALIZATION
        key["allowed"] = "given" if attributes.allowed_content.strip() else "empty"
    else:
        table, safety, personalization = PS_TABLE, PS_SAFETY, PS_PERSONALIZATION
        if attributes.kind == "safety" and not spec.safety:
            key["kind"] = "constraint"
    row = table.decide(key)
    # Floors only widen: they protect a unit from the table, and never deny one.
    if spec.safety and of_safety:
        row = wider(row, safety.decide(key))
    if spec.personalization_guard and _is_preference(attributes):
        row = wider(row, personalization.decide(key))
    return row


def _open_row(
    attributes: Attributes,
    *,
    situation: Situation | Inconclusive | None,
    of_safety: bool,
    lookup: Lookup,
) -> TableRow:
    """The row of the floor for doubt; where the situation is unknown, the widest over all."""
    table = FC_OPEN if isinstance(attributes, FactorAttributes) else PS_OPEN
    rows = [
        table.decide(
            {
                **dict(attributes),
                "target": assumed.target,
                "mode": assumed.mode,
                "asks_view": "yes" if assumed.asks_view else "no",
                "lookup": lookup,
                "allowed": "given",
                "of_safety": "yes" if of_safety else "no",
            }
        )
        for assumed in ((situation,) if isinstance(situation, Situation) else SITUATIONS)
    ]
    return reduce(wider, rows)


def _is_preference(attributes: Attributes) -> bool:
    is_entry = isinstance(attributes, FactorAttributes)
    return (attributes.role if is_entry else attributes.kind) == "preference"


def _is_constraint(attributes: Attributes) -> bool:
    is_entry = isinstance(attributes, FactorAttributes)
    return (attributes.role if is_entry else attributes.kind) in {"constraint", "safety"}


def _time_of(attributes: Attributes) -> Temporal:
    is_entry = isinstance(attributes, FactorAttributes)
    return attributes.temporal if is_entry else attributes.temporality


def is_about_safety(ruling: Ruling) -> bool:
    """Whether a unit is an allergy, a medication, a disability or an accessibility need."""
    attributes = ruling.finding.attributes
    if isinstance(attributes, Inconclusive):
        return kind_without_verdict(ruling.unit) == "safety"
    if isinstance(attributes, UnitAttributes):
        return "safety" in {attributes.kind, ruling.unit.kind}
    return attributes.safety


def settle_conflicts(
    rulings: Sequence[Ruling],
    *,
    conflicts: Iterable[Conflict],
    safety: bool,
    authorship: bool = False,
    look_up: bool = False,
) -> tuple[Ruling, ...]:
    """The rulings after every pair is settled, those included that the store marks.

    Args:
        rulings: One per unit.
        conflicts: Pairs of unit ids; pairs with an unknown id, or of a unit with itself, are
            ignored.
        safety: Whether safety constraints that lose are shown as context.
        authorship: Whether the words of another author never win against the user's.
        look_up: Whether the request asks what was told, so that no side of a pair is denied.

    A unit that is denied for another reason has no effect: it would leave nothing to show.
    """
    by_id = {ruling.unit.id: ruling for ruling in rulings}
    # Only the rows change, and no pair looks at a row: no pair sees the outcome of another.
    rows = {ruling.unit.id: ruling.row for ruling in rulings}
    marked = frozenset(marked_conflicts([ruling.unit for ruling in rulings]))
    for conflict in (*conflicts, *marked):
        first, second = by_id.get(conflict.first), by_id.get(conflict.second)
        if first is None or second is None or first is second:
            continue
        if "DENY" in {first.row.then, second.row.then}:
            continue
        losers = _losers_by_author(first, second) if authorship else ()
        if not losers:
            losers = _losers_of(first, second, marked=conflict in marked, look_up=look_up)
        for ruling, cap in losers:
            limit = CONFLICT_SAFETY if safety and is_about_safety(ruling) else cap
            rows[ruling.unit.id] = stricter(rows[ruling.unit.id], limit)
    return tuple(
        ruling if rows[ruling.unit.id] is ruling.row else replace(ruling, row=rows[ruling.unit.id])
        for ruling in rulings
    )


def _losers_by_author(first: Ruling, second: Ruling) -> tuple[tuple[Ruling, TableRow], ...]:
    """The unit in another author's words, where only one of the two is."""
    pair = (first, second)
    others = [ruling for ruling in pair if is_of_another(ruling.unit, ruling.finding)]
    return ((others[0], CONFLICT_AUTHOR),) if len(others) == 1 else ()


def _losers(first: Ruling, second: Ruling) -> tuple[tuple[Ruling, TableRow], ...]:
    """The units that a conflict narrows, each with the row that caps it."""
    at, other_at = first.unit.said_at, second.unit.said_at
    earlier, later = first, second
    # Without two different times nothing tells which of them is current.
    timed = at is not None and other_at is not None and at != other_at
    if at is not None and other_at is not None and at > other_at:
        earlier, later = second, first
    old, new = credibility_of(earlier), credibility_of(later)
    as_good = new.equals_or_exceeds(old)
    if timed and as_good and new.may_replace:
        return ((earlier, CONFLICT_LOST),)
    if as_good == old.equals_or_exceeds(new):
        return (earlier, CONFLICT_OPEN), (later, CONFLICT_OPEN)
    return ((earlier if as_good else later, CONFLICT_DOUBTFUL),)


def _losers_of(
    first: Ruling, second: Ruling, *, marked: bool, look_up: bool
) -> tuple[tuple[Ruling, TableRow], ...]:
    """The units that a conflict of one author narrows, each with the row that caps it."""
    if marked:
        return (first, CONFLICT_MARKED), (second, CONFLICT_MARKED)
    return _losers_in_look_up(first, second) if look_up else _losers(first, second)


def _losers_in_look_up(first: Ruling, second: Ruling) -> tuple[tuple[Ruling, TableRow], ...]:
    """The same where the request asks what was told: both values are shown, with their dates."""
    # A change is no contradiction: what was so until then, and what is so now, both hold.
    if "superseded" in {_ruled_time(first), _ruled_time(second)}:
        return ()
    losers = _losers(first, second)
    if any(cap is CONFLICT_LOST for _, cap in losers):
        return (first, CONFLICT_LOOKED_UP), (second, CONFLICT_LOOKED_UP)
    return losers


def _ruled_time(ruling: Ruling) -> Temporal:
    attributes = ruling.finding.attributes
    if ruling.unit.superseded:
        return "superseded"
    return "uncertain" if isinstance(attributes, Inconclusive) else _time_of(attributes)


def credibility_of(ruling: Ruling) -> Credibility:
    """How well a unit is grounded, and by whom.

    A unit without a verdict, or whose person or time is uncertain, is as doubtful as a guess.
    """
    attributes = ruling.finding.attributes
    epistemic: Epistemic = "uncertain"
    if not isinstance(attributes, Inconclusive):
        uncertain = "uncertain" in {attributes.subject, _time_of(attributes)}
        epistemic = "uncertain" if uncertain else attributes.epistemic
    return Credibility(epistemic, ruling.unit.said_by)
