"""The adjudicator that is a model: the batched call, its repair, and conflicts across parts.

All units of a read go into one call where they fit, else into parts that are requested at the same
time. Units without a usable row are requested once more. An answer that was truncated is continued:
its complete rows are used, and only the units without one are requested again. With several parts,
another question finds conflicts between units of different parts. The spec limits the number of
calls and the length of each prompt. Every question has a deadline and ends in an answer or in the
typed reason why there is none.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from memguard.errors import ConfigurationError, ErrorCode
from memguard.llm.limits import current_meter, use_meter
from memguard.llm.models import LOCAL, Model, ModelLike, resolve_model
from memguard.local.adjudicator import LocalAdjudicator
from memguard.methods.adjudication.answers import (
    AnswerReading,
    RowsAnswer,
    answer_form,
    read_answer_rows,
    without_fields,
)
from memguard.methods.adjudication.asking import AskResult, PartialParser, ask_until, gather_all
from memguard.methods.adjudication.case import UNITS_SHARE, fit_case
from memguard.methods.adjudication.parts import clip_quoted, split_parts
from memguard.methods.adjudication.rendering import (
    case_slots,
    estimate_tokens,
    line_costs,
    names_of,
    prompt_lines,
)
from memguard.prompts import Prompt, load_prompt
from memguard.protocols import Adjudicator
from memguard.schema.decision import Inconclusive
from memguard.schema.read import Adjudication, Conflict, ReadCase, ReadSpec, Row, Situation
from memguard.schema.read_flags import Flag
from memguard.schema.units import FactorAttributes, Scheme, Unit, UnitAttributes

# One per process: it loads its embedder at the first read, which takes time and memory.
_local_adjudicator = cache(LocalAdjudicator)

_FULL_PART = 1.25
"""How much larger a call may be where a read would need more of them than it may make. An answer of
75 rows still fits into one reply."""
_MAX_STATEMENT_CHARS = 400
"""Characters of a statement; what two memories disagree about is near their beginning."""


def _as_groups(value: Any) -> list[list[str]]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    groups = [
        group for group in value if isinstance(group, Sequence) and not isinstance(group, str)
    ]
    return [[str(name).strip(" \"'[]").casefold() for name in group] for group in groups]


class ConflictsAnswer(BaseModel):
    """Groups of short names of units that contradict one another."""

    model_config = ConfigDict(extra="ignore")

    conflicts: Annotated[
        list[list[str]],
        BeforeValidator(_as_groups),
        WithJsonSchema({"type": "array", "items": {"type": "array", "items": {"type": "string"}}}),
    ]


# Read now, with the module: a graph may be built inside a running event loop, where reading a file
# would block.
load_prompt("adjudication", "conflicts")


def create_adjudicator(
    model: "ModelLike | None", *, prompt: Prompt, scheme: Scheme, spec: ReadSpec
) -> Adjudicator:
    """The adjudicator that a model argument asks for.

    Args:
        model: The model argument.
        prompt: Describes situation and units; slots `now dialogue evidence units request`.
        scheme: Which attributes the prompt asks for.
        spec: Sizes of a call.

    Raises:
        ConfigurationError: If the model cannot be used.
    """
    if model == LOCAL:
        return _local_adjudicator()
    return ModelAdjudicator(
        model=resolve_model(model),
        prompts={scheme: without_fields(prompt, spec.unasked)},
        conflicts_prompt=load_prompt("adjudication", "conflicts"),
        spec=spec,
    )


@dataclass(frozen=True, kw_only=True)
class ModelAdjudicator:
    """A model with a prompt for one of the schemes, or for each."""

    model: Model
    prompts: Mapping[Scheme, Prompt]
    conflicts_prompt: Prompt
    """The prompt for conflicts between parts."""
    spec: ReadSpec = field(default_factory=ReadSpec)
    """Gives the size of a call, and whether missing rows are requested again."""

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.name

    @property
    def fingerprint(self) -> str:
        """Of the model, by name, and the prompts."""
        digests = [self.prompts[scheme].digest for scheme in sorted(self.prompts)]
        return ":".join([self.model.name, *digests, self.conflicts_prompt.digest])

    async def adjudicate(
        self, case: ReadCase, *, units: Sequence[Unit], scheme: Scheme, seconds: float
    ) -> Adjudication:
        """Judge the situation and every unit; see `memguard.protocols.Adjudicator`.

        Raises:
            ConfigurationError: If there is no prompt for the scheme, or the model cannot be used.
        """
        if scheme not in self.prompts:
            msg = f"this adjudicator has no prompt for {scheme!r}; it has {sorted(self.prompts)}"
            raise ConfigurationError(msg, code=ErrorCode.SPEC_INVALID)
        run = _Run(
            adjudicator=self,
            case=case,
            units=tuple(units),
            scheme=scheme,
            deadline=asyncio.get_running_loop().time() + seconds,
        )
        with use_meter(current_meter().scope()) as meter:
            adjudication = await run.finish()
        return adjudication.model_copy(update={"usage": meter.usage})


@dataclass(frozen=True, kw_only=True)
class _Part:
    """The units of one call, and the answer."""

    units: tuple[Unit, ...]
    result: AskResult[RowsAnswer]
    reading: AnswerReading
    continues: bool = False
    """Whether the answer was truncated after some rows, so that another call can go on."""

    @property
    def unjudged(self) -> tuple[Unit, ...]:
        """Units without a usable row."""
        judged = self.reading.judged
        return tuple(unit for unit in self.units if unit.id not in judged)

    @property
    def may_improve(self) -> bool:
        """Whether another call may give more rows."""
        return self.continues or self.result.may_improve


@dataclass(kw_only=True)
class _Run:
    """One adjudication in progress."""

    adjudicator: ModelAdjudicator
    case: ReadCase
    units: tuple[Unit, ...]
    scheme: Scheme
    deadline: float
    """On the clock of the event loop, as `asyncio.timeout_at` takes it."""
    notes: list[str] = field(default_factory=list[str])
    flags: list[Flag] = field(default_factory=list[Flag])
    calls: int = 0
    """Calls in which units are judged, so far."""

    def __post_init__(self) -> None:
        """Name the units; a name is the same in every part, so that conflicts can cross parts."""
        self.spec = self.adjudicator.spec
        self.prompt = self.adjudicator.prompts[self.scheme]
        self.names = names_of(self.units)
        self.lines = self._lines_of(self.units)
        self.slots = case_slots(self.case)
        self.room = self._fit()
        self.lines = self._fitting(self.units, self.lines, room=self.room)

    def _fit(self) -> int:
        """Shorten the case where it is too long; returns the characters for units in a prompt."""
        free = self.spec.prompt_chars - len(self.prompt.system) - len(self.prompt.user)
        needed = sum(map(len, self.lines)) + len(self.lines)
        for_units = min(needed, int(UNITS_SHARE * self.spec.prompt_chars))
        taken = sum(map(len, self.slots.values()))
        if taken > free - for_units:
            # Only a prompt with longer instructions than those that ship needs this.
            self.case, flags = fit_case(self.case, max_chars=max(1_000, free - for_units))
            self.slots = case_slots(self.case)
            self.flags += flags
        return max(for_units, free - sum(map(len, self.slots.values())))

    def _lines_of(self, units: Sequence[Unit]) -> list[str]:
        return prompt_lines(units, names=self.names, authorship=self.spec.authorship)

    def _fitting(self, units: Sequence[Unit], lines: list[str], *, room: int) -> list[str]:
        """The lines of units, of which one that is too long for a prompt loses its middle."""
        if all(len(line) < room for line in lines):
            return lines
        self.flags.append("prompt_shortened")
        short = [
            unit
            if len(line) < room
            else unit.model_copy(
                update={
                    "text": clip_quoted(
                        unit.text, max_chars=room, overhead=len(line) - len(unit.text)
                    )
                }
            )
            for unit, line in zip(units, lines, strict=True)
        ]
        return self._lines_of(short)

    async def finish(self) -> Adjudication:
        """Ask what is needed, and combine the answers."""
        # One call is left to repeat or to continue another one.
        max_parts = self.spec.max_calls - 1
        split = self._split(self.units, self.lines)
        if len(split) > max_parts:
            split = self._split(self.units, self.lines, factor=_FULL_PART)
        askable, rest = split[:max_parts], split[max_parts:]
        parts = await gather_all([self._ask(part, repair=self.spec.repair) for part in askable])
        again = await self._ask_again(parts)
        # What was judged once is not replaced: a second answer counts for the missing rows alone.
        rows = (*_merged(parts, again), *self._left_over(rest))
        conflicts = [conflict for part in (*parts, *again) for conflict in part.reading.conflicts]
        prompts = [self.prompt.stamp]
        # A single part has seen all units together, so its conflicts are complete.
        if len(parts) > 1:
            conflicts += await self._find_conflicts(rows)
            prompts.append(self.adjudicator.conflicts_prompt.stamp)
        situation = self._situation([*parts, *again])
        self._flag_unjudged(rows)
        if isinstance(situation, Inconclusive):
            self.flags.append("situation_unknown")
        return Adjudication(
            situation=situation,
            rows=rows,
            conflicts=tuple(dict.fromkeys(conflicts)),
            adjudicator=self.adjudicator.model.name,
            prompts=tuple(prompts),
            flags=tuple(dict.fromkeys(self.flags)),
            notes=tuple(dict.fromkeys(self.notes)),
        )

    def _split(
        self, units: Sequence[Unit], lines: Sequence[str], *, factor: float = 1.0
    ) -> tuple[tuple[Unit, ...], ...]:
        """The units of each call; with a factor, as many times the units and tokens in one."""
        return split_parts(
            units,
            costs=line_costs(lines),
            max_tokens=int(factor * self.spec.part_tokens),
            max_items=int(factor * self.spec.part_units),
            chars=[len(line) + 1 for line in lines],
            max_chars=self.room,
        )

    def _left_over(self, parts: Sequence[Sequence[Unit]]) -> tuple[Row, ...]:
        """The rows of units for which there is no call; policy treats them as not judged."""
        units = [unit for part in parts for unit in part]
        if units:
            limit = f"{self.spec.max_calls} calls"
            self.notes.append(f"{len(units)} units were not judged: they do not fit in {limit}")
        why = Inconclusive(reason="truncated", detail="more units than the calls of a read take")
        return tuple(Row(unit_id=unit.id, attributes=why) for unit in units)

    async def _ask(self, units: Sequence[Unit], *, repair: bool) -> _Part:
        """Ask about some of the units; a failure gives a reading without any verdict on them."""
        self.calls += 1
        # The lines of all units exist already: they were needed to split the units into parts.
        is_whole = len(units) == len(self.units)
        lines = self.lines if is_whole else self._lines_of(units)
        lines = self._fitting(units, lines, room=self.room)
        form = answer_form(self.scheme, self.spec.unasked)
        parser = PartialParser(form, name="units")
        result = await ask_until(
            self.adjudicator.model,
            self.prompt.render(units="\n".join(lines), **self.slots),
            form,
            deadline=self.deadline,
            name="memguard.adjudicate",
            repair=repair,
            parse=parser,
        )
        self.notes += result.answer.notes
        if result.flag is not None:
            self.flags.append(result.flag)
        value = result.answer.value
        rest = parser.before_end if _ended_early(value) else None
        reading = self._read(units, value if rest is None else rest)
        continues = rest is not None and bool(reading.judged)
        return _Part(units=tuple(units), result=result, reading=reading, continues=continues)

    def _read(self, units: Sequence[Unit], value: RowsAnswer | Inconclusive) -> AnswerReading:
        ids = dict.fromkeys(unit.id for unit in units)
        if isinstance(value, Inconclusive):
            self.notes.append(f"no usable answer ({value.reason}): {value.detail}")
            return AnswerReading.lost(ids, why=value)
        reading = read_answer_rows(
            value.situation,
            value.units,
            scheme=self.scheme,
            requested={name: unit_id for name, unit_id in self.names.items() if unit_id in ids},
            names=self.names,
        )
        self.notes += reading.notes
        return reading

    async def _ask_again(self, parts: Sequence[_Part]) -> list[_Part]:
        """Request the units without a usable row, and no others, as long as calls are left.

        Once more for rows that are missing or could not be read; and again while answers are
        truncated after some of their rows.
        """
        again: list[_Part] = []
        rounds = list(parts)
        while self.spec.repair and rounds:
            groups = self._missing_groups(rounds, all_parts=[*parts, *again])
            groups = groups[: max(0, self.spec.max_calls - self.calls)]
            if not groups:
                break
            count = sum(map(len, groups))
            self.notes.append(f"asked once more about {count} units without a usable row")
            answers = await gather_all([self._ask(group, repair=False) for group in groups])
            again += answers
            rounds = [part for part in answers if part.continues]
        return again

    def _missing_groups(
        self, rounds: Sequence[_Part], *, all_parts: Sequence[_Part]
    ) -> list[tuple[Unit, ...]]:
        """The units to request again, one group per call."""
        open_parts = [part for part in rounds if part.may_improve]
        missing = [unit for part in open_parts for unit in part.unjudged]
        situated = any(isinstance(part.reading.situation, Situation) for part in all_parts)
        if open_parts and not missing and not situated:
            # Every unit has its row, but rows are worthless without a situation: ask about one.
            missing = list(self.units[:1])
        # An answer that was truncated before its first row would be truncated again, so two calls
        # share the units.
        lost = any(_ended_early(part.result.answer.value, usable=False) for part in open_parts)
        if lost and not any(part.continues for part in open_parts):
            middle = -(-len(missing) // 2)
            return [tuple(half) for half in (missing[:middle], missing[middle:]) if half]
        lines = self._fitting(missing, self._lines_of(missing), room=self.room)
        return list(self._split(missing, lines))

    async def _find_conflicts(self, rows: Sequence[Row]) -> list[Conflict]:
        """Compare every unit with every other one, as far as calls are left."""
        # Shortened for the comparison only; the ledger has the whole text.
        short = [unit.model_copy(update={"text": _shortened(unit.text)}) for unit in self.units]
        calls = self._comparisons(short)
        allowed = max(1, self.spec.max_calls - self.calls)
        if len(calls) > allowed:
            # What the answer needs first: a conflict of others would change nothing that is shown.
            needs = {row.unit_id: _need_of(row) for row in rows}
            short.sort(key=lambda unit: needs.get(unit.id, len(needs)))
            blocks = self._blocks(short, share=1)
            calls = [blocks[0]]
            left_out = len(short) - len(blocks[0])
            self.notes.append(f"conflicts of the {left_out} units least needed were not looked for")
        results = await gather_all([self._ask_conflicts(call) for call in calls])
        groups: list[Sequence[str]] = []
        for value in (result.answer.value for result in results):
            if isinstance(value, Inconclusive):
                self.flags.append("adjudication_partial")
                self.notes.append(f"conflicts across parts were not searched for: {value.reason}")
            else:
                groups += value.conflicts
        return pairs_of(groups, names=self.names)

    def _comparisons(self, units: Sequence[Unit]) -> list[tuple[Unit, ...]]:
        """The units of each call, so that every two of them are together in one."""
        if len(self._blocks(units, share=1)) == 1:
            return [tuple(units)]
        # Two blocks fill a call, so that every pair of blocks, and with it every pair of
        # statements, is in one call.
        return [(*one, *other) for one, other in combinations(self._blocks(units, share=2), 2)]

    def _blocks(self, units: Sequence[Unit], *, share: int) -> tuple[tuple[Unit, ...], ...]:
        """The units in blocks, of which `share` fill a call."""
        lines = self._lines_of(units)
        prompt = self.adjudicator.conflicts_prompt
        room = self.spec.prompt_chars - len(prompt.system) - len(prompt.user)
        return split_parts(
            units,
            costs=[estimate_tokens(line) for line in lines],
            # Bare statements need no room for the rows of an answer, so twice as many fit.
            max_tokens=2 * self.spec.part_tokens // share,
            max_items=len(units),
            chars=[len(line) + 1 for line in lines],
            max_chars=room // share,
        )

    async def _ask_conflicts(self, units: Sequence[Unit]) -> AskResult[ConflictsAnswer]:
        lines = self._lines_of(units)
        return await ask_until(
            self.adjudicator.model,
            self.adjudicator.conflicts_prompt.render(units="\n".join(lines)),
            ConflictsAnswer,
            deadline=self.deadline,
            name="memguard.conflicts",
            repair=False,
        )

    def _situation(self, parts: Sequence[_Part]) -> Situation | Inconclusive:
        readings = [part.reading.situation for part in parts]
        situations = [reading for reading in readings if isinstance(reading, Situation)]
        # A read has one query, so parts that disagree are an error of the model, not of the read.
        if len(set(situations)) > 1:
            self.notes.append("the calls did not agree on the situation; the first one applies")
        return situations[0] if situations else readings[0]

    def _flag_unjudged(self, rows: Sequence[Row]) -> None:
        judged = {row.unit_id for row in rows if not isinstance(row.attributes, Inconclusive)}
        if not judged:
            self.flags.append("adjudication_failed")
        elif len(judged) < len(self.units):
            self.flags.append("adjudication_partial")


def _ended_early(value: object, *, usable: bool = True) -> bool:
    """Whether an answer was truncated; with `usable`, also one whose server did not say so."""
    if not isinstance(value, Inconclusive):
        return False
    return value.reason == "truncated" or (usable and value.reason == "parse_failure")


_NEEDS = {"needed": 0, "direct": 0, "helpful": 1, "indirect": 1, "uncertain": 2}


def _need_of(row: Row) -> int:
    """0 for what the query needs, 1 for what helps, more for the rest."""
    attributes = row.attributes
    if isinstance(attributes, UnitAttributes):
        return _NEEDS.get(attributes.relevance, 3)
    return _NEEDS.get(attributes.utility, 3) if isinstance(attributes, FactorAttributes) else 3


def _merged(parts: Sequence[_Part], again: Sequence[_Part]) -> tuple[Row, ...]:
    """The rows of the first answers, with the unusable ones replaced by those of the second."""
    unjudged = {unit.id for part in parts for unit in part.unjudged}
    repaired = frozenset[str]().union(*(part.reading.judged for part in again))
    first = [
        row for part in parts for row in part.reading.rows if row.unit_id not in unjudged & repaired
    ]
    second = [row for part in again for row in part.reading.rows if row.unit_id in unjudged]
    return (*first, *second)


def pairs_of(groups: Iterable[Sequence[str]], *, names: Mapping[str, str]) -> list[Conflict]:
    """Every two units of each group, once; names of no unit are ignored."""
    pairs: dict[tuple[str, str], None] = {}
    for group in groups:
        # A model may name more than two, or one of them a thousand times.
        ids = dict.fromkeys(names[name] for name in group if name in names)
        pairs |= dict.fromkeys(combinations(ids, 2))
    return [Conflict(first=first, second=second) for first, second in pairs]


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_STATEMENT_CHARS else f"{text[:_MAX_STATEMENT_CHARS]}\u2026"
