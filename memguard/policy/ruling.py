"""From an adjudicator's verdict on one unit to what the unit may be used for.

What the store or the evidence has settled comes first, then the table, then the floors that protect
safety constraints and current preferences (switches of the spec). A unit that was not judged is
ruled on by a table of its own, never by invented attributes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from typing import get_args

from memguard.policy.cues import kind_without_verdict
from memguard.policy.factors import FC_PERSONALIZATION, FC_SAFETY, FC_TABLE, factor_key
from memguard.policy.permissions import PS_PERSONALIZATION, PS_SAFETY, PS_TABLE, unit_key
from memguard.policy.pieces import adds_words
from memguard.policy.tables import Key, Table, TableRow, stricter, wider
from memguard.schema.ledger import Row
from memguard.schema.permissions import WIDTH
from memguard.schema.read import Mode, Situation, Target
from memguard.schema.read_config import ReadSpec
from memguard.schema.units import FactorAttributes, Unit, UnitAttributes
from memguard.schema.verdict import Inconclusive

SUPERSEDED_RECORD = TableRow(
    id="superseded-record", then="DENY", why="the store holds a later record in its place"
)
EVIDENCE = TableRow(
    id="evidence-conflict", then="DENY", why="the evidence given with the query says otherwise"
)
NOT_JUDGED: dict[str, TableRow] = {
    "safety": TableRow(
        id="not-judged-safety",
        then="CONTEXT",
        why="not judged; it reads as a safety constraint, so it stays in sight",
    ),
    "preference": TableRow(
        id="not-judged-preference",
        then="CONTEXT",
        why="not judged; it reads as a current preference, so it stays in sight",
    ),
    "other": TableRow(id="not-judged", then="DENY", why="not judged"),
}
"""What becomes of a unit without a usable verdict (SPEC section 7)."""

_NO_ROW = Inconclusive(reason="parse_failure", detail="the answer has no row for this unit")

SITUATIONS: tuple[Situation, ...] = tuple(
    Situation(target=target, mode=mode, asks_view=asks_view)
    for target, mode, asks_view in product(get_args(Target), get_args(Mode), (False, True))
)
"""Every possible situation."""


@dataclass(frozen=True, kw_only=True)
class Ruling:
    """What was ruled on one unit, before conflicts and room."""

    unit: Unit
    """The unit; its text is what may be shown."""
    row: TableRow
    """The row that decided."""
    finding: Row
    """The adjudicator's row that it rests on; a row without a verdict where there was none."""
    notes: tuple[str, ...] = ()
    """What a reader should know."""


def rule_on_unit(
    unit: Unit, rows: Sequence[Row], *, situation: Situation | Inconclusive | None, spec: ReadSpec
) -> Ruling:
    """Rule on one unit.

    Args:
        unit: The unit.
        rows: The adjudicator's rows for it. Of several rows the strictest ruling applies; no row
            is the same as a row that could not be read.
        situation: What the query asks for. Where that is unknown, the narrowest permission over
            all situations applies, and what fails open stays context.
        spec: The switches.
    """
    findings = rows or (Row(unit_id=unit.id, attributes=_NO_ROW),)
    rulings = [_rule(unit, row, situation=situation, spec=spec) for row in findings]
    if len(rulings) == 1:
        return rulings[0]
    strictest = min(rulings, key=_strictness)
    if len({(row.attributes, row.evidence_conflict) for row in findings}) == 1:
        return strictest
    note = f"{unit.id}: {len(findings)} rows that differ; the stricter holds"
    return replace(strictest, notes=(*strictest.notes, note))


def _strictness(ruling: Ruling) -> tuple[int, str, str]:
    """The strictest first; equally strict ones in an order that does not depend on the input's."""
    return WIDTH[ruling.row.then], ruling.row.id, ruling.finding.model_dump_json()


def _rule(
    unit: Unit, finding: Row, *, situation: Situation | Inconclusive | None, spec: ReadSpec
) -> Ruling:
    if unit.superseded:
        return Ruling(unit=unit, row=SUPERSEDED_RECORD, finding=finding)
    attributes = finding.attributes
    denied = finding.evidence_conflict and spec.evidence_conflict
    # Not judged is not "no": the words of the unit decide whether it fails open or closed.
    if isinstance(attributes, Inconclusive):
        kind = kind_without_verdict(unit)
        row = NOT_JUDGED.get(kind or "other", NOT_JUDGED["other"])
        # A row that could not be read is no ground for removing a safety constraint.
        row = EVIDENCE if denied and kind != "safety" else row
        return Ruling(unit=unit, row=row, finding=finding)
    if denied:
        return Ruling(unit=unit, row=EVIDENCE, finding=finding)
    if isinstance(attributes, FactorAttributes):
        return _rule_on_entry(unit, finding, attributes, situation=situation, spec=spec)
    of_safety = "safety" in {attributes.kind, unit.kind}

    def key_in(assumed: Situation) -> Key:
        return unit_key(attributes, situation=assumed, safety=spec.safety)

    row = _OF_UNITS.decide(key_in, situation=situation, spec=spec, of_safety=of_safety)
    return Ruling(unit=unit, row=row, finding=finding)


def _rule_on_entry(
    unit: Unit,
    finding: Row,
    attributes: FactorAttributes,
    *,
    situation: Situation | Inconclusive | None,
    spec: ReadSpec,
) -> Ruling:
    allowed = attributes.allowed_content.strip() if attributes.scope == "partial" else ""
    notes: tuple[str, ...] = ()
    if allowed and adds_words(allowed, source=unit.text):
        allowed = ""
        notes = (f"{unit.id}: the allowed content was not the entry's own words, so it is void",)
    read = attributes.model_copy(update={"allowed_content": allowed})

    def key_in(assumed: Situation) -> Key:
        return factor_key(read, situation=assumed)

    row = _OF_ENTRIES.decide(key_in, situation=situation, spec=spec, of_safety=attributes.safety)
    # From here on the allowed part is all there is of the unit: nothing can render the rest.
    visible = unit.model_copy(update={"text": allowed}) if allowed else unit
    return Ruling(unit=visible, row=row, finding=finding, notes=notes)


@dataclass(frozen=True)
class _Tables:
    """A table with its floors."""

    base: Table
    safety: Table
    personalization: Table

    def decide(
        self,
        key_in: Callable[[Situation], Key],
        *,
        situation: Situation | Inconclusive | None,
        spec: ReadSpec,
        of_safety: bool,
    ) -> TableRow:
        """The row in a situation; where that is unknown, the narrowest row over all."""
        if isinstance(situation, Situation):
            return self._row(key_in(situation), spec=spec, of_safety=of_safety)
        rows = [
            self._row(key_in(assumed), spec=spec, of_safety=of_safety) for assumed in SITUATIONS
        ]
        narrowest = reduce(stricter, rows)
        widest = reduce(wider, rows)
        key = key_in(SITUATIONS[0])
        is_preference = "preference" in {key.get("kind"), key.get("role")}
        is_current = "current" in {key.get("temporality"), key.get("temporal")}
        if widest.then == "DENY" or not (of_safety or (is_preference and is_current)):
            return narrowest
        # A safety constraint or a current preference that some situation admits fails open.
        return wider(narrowest, NOT_JUDGED["safety" if of_safety else "preference"])

    def _row(self, key: Key, *, spec: ReadSpec, of_safety: bool) -> TableRow:
        row = self.base.decide(key)
        # Floors only widen: they protect a unit from the table, and never deny one.
        if spec.safety and of_safety:
            row = wider(row, self.safety.decide(key))
        if spec.personalization_guard and "preference" in {key.get("kind"), key.get("role")}:
            row = wider(row, self.personalization.decide(key))
        return row


_OF_UNITS = _Tables(PS_TABLE, PS_SAFETY, PS_PERSONALIZATION)
_OF_ENTRIES = _Tables(FC_TABLE, FC_SAFETY, FC_PERSONALIZATION)


def is_about_safety(ruling: Ruling) -> bool:
    """Whether a unit is an allergy, a medication, a disability or an accessibility need."""
    attributes = ruling.finding.attributes
    if isinstance(attributes, Inconclusive):
        return kind_without_verdict(ruling.unit) == "safety"
    if isinstance(attributes, UnitAttributes):
        return "safety" in {attributes.kind, ruling.unit.kind}
    return attributes.safety


def narrowed(ruling: Ruling, *, to: TableRow) -> Ruling:
    """The ruling, not wider than a row allows."""
    if WIDTH[ruling.row.then] <= WIDTH[to.then]:
        return ruling
    return replace(ruling, row=to)
