"""One adjudication by a language model, from its parts to its last conflict.

```text
units -> parts -> [ask | ask | ...] -> ask again for missing rows -> conflicts across parts
```

Every step is bounded by the deadline; what is not there by then is not waited for.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce

from memguard.adjudication.across import find_conflicts
from memguard.adjudication.answers import ANSWERS, Reading, RowsAnswer, read_answer_rows
from memguard.adjudication.asking import Asked, Deadline, ask_until, together
from memguard.adjudication.case import line_costs, names_of, shown_case, unit_lines
from memguard.llm.models import Model
from memguard.policy.parts import split_parts
from memguard.prompts import Prompt
from memguard.schema.ledger import Adjudication, Conflict, Flag, Row
from memguard.schema.read import ReadCase, Situation
from memguard.schema.units import Scheme, Unit
from memguard.schema.verdict import Inconclusive


@dataclass(frozen=True, kw_only=True)
class _Part:
    """Units that were asked about together, and what was said."""

    units: tuple[Unit, ...]
    asked: Asked[RowsAnswer]
    reading: Reading

    @property
    def unjudged(self) -> tuple[Unit, ...]:
        """Units without a usable row."""
        judged = self.reading.judged
        return tuple(unit for unit in self.units if unit.id not in judged)


@dataclass(kw_only=True)
class Run:
    """The adjudication on its way."""

    model: Model
    prompt: Prompt
    across: Prompt
    case: ReadCase
    units: tuple[Unit, ...]
    scheme: Scheme
    part_tokens: int
    part_units: int
    repair: bool
    deadline: Deadline
    notes: list[str] = field(default_factory=list[str])
    flags: list[Flag] = field(default_factory=list[Flag])

    def __post_init__(self) -> None:
        """Give the units their names; these stay over all parts."""
        self.names = names_of(self.units)
        self.lines = unit_lines(self.units, names=self.names)
        self.slots = shown_case(self.case)

    async def finish(self) -> Adjudication:
        """Ask what has to be asked, and put the answers together."""
        parts = await together([self._ask(part, repair=self.repair) for part in self._split()])
        again = await self._ask_again(parts)
        rows = _merged(parts, again)
        conflicts = [conflict for each in (*parts, *again) for conflict in each.reading.conflicts]
        prompts = [self.prompt.stamp]
        if len(parts) > 1:
            conflicts += await self._look_across()
            prompts.append(self.across.stamp)
        situation = self._situation([*parts, *again])
        self._flag_unjudged(rows)
        if isinstance(situation, Inconclusive):
            self.flags.append("situation_unknown")
        return Adjudication(
            situation=situation,
            rows=rows,
            conflicts=tuple(dict.fromkeys(conflicts)),
            adjudicator=self.model.name,
            prompts=tuple(prompts),
            flags=tuple(dict.fromkeys(self.flags)),
            notes=tuple(dict.fromkeys(self.notes)),
        )

    def _split(self) -> tuple[tuple[Unit, ...], ...]:
        return split_parts(
            self.units,
            costs=line_costs(self.lines),
            most_tokens=self.part_tokens,
            most_things=self.part_units,
        )

    async def _ask(self, units: Sequence[Unit], *, repair: bool) -> _Part:
        """Ask about some of the units; a failure is a reading that says nothing of them."""
        whole = len(units) == len(self.units)
        lines = self.lines if whole else unit_lines(units, names=self.names)
        asked = await ask_until(
            self.model,
            self.prompt.render(units="\n".join(lines), **self.slots),
            ANSWERS[self.scheme],
            deadline=self.deadline,
            name="memguard.adjudicate",
            repair=repair,
        )
        self.notes += asked.answer.notes
        if asked.flag is not None:
            self.flags.append(asked.flag)
        return _Part(units=tuple(units), asked=asked, reading=self._read(units, asked.answer.value))

    def _read(self, units: Sequence[Unit], value: RowsAnswer | Inconclusive) -> Reading:
        ids = dict.fromkeys(unit.id for unit in units)
        if isinstance(value, Inconclusive):
            self.notes.append(f"no usable answer ({value.reason}): {value.detail}")
            return Reading.lost(ids, why=value)
        reading = read_answer_rows(
            value.situation,
            value.units,
            scheme=self.scheme,
            asked={name: unit_id for name, unit_id in self.names.items() if unit_id in ids},
            known=self.names,
        )
        self.notes += reading.notes
        return reading

    async def _ask_again(self, parts: Sequence[_Part]) -> list[_Part]:
        """Ask once more for the units without a usable row, these alone."""
        if not self.repair:
            return []
        open_parts = [part for part in parts if part.asked.may_be_mended]
        missing = [unit for part in open_parts for unit in part.unjudged]
        known = any(isinstance(part.reading.situation, Situation) for part in parts)
        if open_parts and not missing and not known:
            missing = list(self.units[:1])
        if not missing:
            return []
        self.notes.append(f"asked once more about {len(missing)} units without a usable row")
        # An answer that was cut off would be cut off again.
        cut = any(isinstance(part.asked.answer.value, Inconclusive) for part in open_parts)
        middle = -(-len(missing) // 2) if cut else len(missing)
        halves = [half for half in (missing[:middle], missing[middle:]) if half]
        return await together([self._ask(half, repair=False) for half in halves])

    async def _look_across(self) -> tuple[Conflict, ...]:
        found = await find_conflicts(
            self.model,
            self.across,
            units=self.units,
            # The bare statements take no rows of an answer.
            most_tokens=2 * self.part_tokens,
            deadline=self.deadline,
        )
        self.notes += found.notes
        if not found.complete:
            self.flags.append("adjudication_partial")
        return found.conflicts

    def _situation(self, parts: Sequence[_Part]) -> Situation | Inconclusive:
        said = [part.reading.situation for part in parts]
        known = [each for each in said if isinstance(each, Situation)]
        if len(set(known)) > 1:
            self.notes.append("the calls did not agree on the situation; the first one holds")
        return known[0] if known else said[0]

    def _flag_unjudged(self, rows: Sequence[Row]) -> None:
        judged = {row.unit_id for row in rows if not isinstance(row.attributes, Inconclusive)}
        if not judged:
            self.flags.append("adjudication_failed")
        elif len(judged) < len(self.units):
            self.flags.append("adjudication_partial")


def _merged(parts: Sequence[_Part], again: Sequence[_Part]) -> tuple[Row, ...]:
    """The rows of the first answers, and in place of unusable ones those of the second."""
    unjudged = {unit.id for part in parts for unit in part.unjudged}
    mended: frozenset[str] = reduce(
        frozenset.union, (part.reading.judged for part in again), frozenset[str]()
    )
    first = [
        row
        for part in parts
        for row in part.reading.rows
        if not (row.unit_id in unjudged and row.unit_id in mended)
    ]
    second = [row for part in again for row in part.reading.rows if row.unit_id in unjudged]
    return (*first, *second)
