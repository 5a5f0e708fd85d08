"""One question with a deadline: an answer, or the typed reason why there is none."""

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations
from typing import Annotated, Any, Generic, TypeVar

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from memguard.errors import BudgetExhaustedError, ConfigurationError, ErrorCode
from memguard.llm.ask import ParsedAnswer, ask
from memguard.llm.budget import current_meter, use_meter
from memguard.llm.call import CallSettings
from memguard.llm.models import Model
from memguard.methods.adjudication.answers import (
    ANSWERS,
    AnswerReading,
    RowsAnswer,
    read_answer_rows,
)
from memguard.methods.adjudication.case import (
    case_slots,
    estimate_tokens,
    line_costs,
    names_of,
    split_parts,
    unit_lines,
)
from memguard.prompts import Prompt
from memguard.schema.decision import Inconclusive
from memguard.schema.ledger import Adjudication, Conflict, Flag, Row
from memguard.schema.read import ReadCase, Situation
from memguard.schema.units import Scheme, Unit
from memguard.schema.usage import Usage

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

SETTINGS = CallSettings(temperature=0.0, max_tokens=8192)
"""Temperature 0; room for a reasoning model's thoughts and about sixty rows."""


@dataclass(frozen=True, kw_only=True)
class Deadline:
    """When the model calls of a read have to be over, on the monotonic clock."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        """A deadline that many seconds from now."""
        return cls(at=time.monotonic() + seconds)

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline; 0 once it has passed."""
        return max(0.0, self.at - time.monotonic())


@dataclass(frozen=True, kw_only=True)
class AskResult(Generic[M]):
    """The outcome of one question."""

    answer: ParsedAnswer[M]
    """The answer, or why there is none."""
    flag: Flag | None = None
    """What ended the question before there was an answer."""

    @property
    def may_improve(self) -> bool:
        """Whether a second answer may be better: not after a repair, and not after a failure."""
        value = self.answer.value
        failed = isinstance(value, Inconclusive) and value.reason != "truncated"
        return not (failed or self.answer.repaired)


async def ask_until(
    model: Model,
    messages: Sequence[BaseMessage],
    schema: type[M],
    *,
    deadline: Deadline,
    name: str,
    repair: bool,
) -> AskResult[M]:
    """Ask, and give up at the deadline or when the budget is spent.

    Raises:
        ModelConfigurationError: If no request to this model can succeed as it is set up.
    """
    try:
        async with asyncio.timeout(deadline.seconds_left):
            answer = await ask(model, messages, schema, settings=SETTINGS, name=name, repair=repair)
    # Both are outcomes, not errors: policy decides what a read without a verdict permits.
    except TimeoutError:
        why = Inconclusive(reason="timeout", detail="the deadline of the read had passed")
        return AskResult(answer=ParsedAnswer(value=why, usage=Usage()), flag="adjudication_late")
    except BudgetExhaustedError as error:
        why = Inconclusive(reason="provider_error", detail=error.message)
        return AskResult(answer=ParsedAnswer(value=why, usage=Usage()), flag="budget_spent")
    return AskResult(answer=answer)


async def gather_all(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All results in order, once all have ended; raises the first error, if there was one."""
    # Unlike a task group, nothing is cancelled: an answer that is being paid for is counted.
    results = await asyncio.gather(*work, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]


_MAX_STATEMENT_CHARS = 400
"""Characters of a statement; what two memories disagree about is near their beginning."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much goes into one call, and whether defects are asked about again."""

    part_tokens: int = 6000
    """Tokens of units and of their rows, estimated."""
    part_units: int = 60
    """Units."""
    repair: bool = True
    """Whether units without a usable row are asked for once more."""


@dataclass(frozen=True, kw_only=True)
class ModelAdjudicator:
    """A model with a prompt for one of the schemes, or for each."""

    model: Model
    prompts: Mapping[Scheme, Prompt]
    conflicts_prompt: Prompt
    """The prompt for conflicts between parts."""
    limits: Limits = field(default_factory=Limits)

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
            model=self.model,
            prompt=self.prompts[scheme],
            conflicts_prompt=self.conflicts_prompt,
            case=case,
            units=tuple(units),
            scheme=scheme,
            limits=self.limits,
            deadline=Deadline.after(seconds),
        )
        with use_meter(current_meter().scope()) as meter:
            adjudication = await run.finish()
        return adjudication.model_copy(update={"usage": meter.usage})


@dataclass(frozen=True, kw_only=True)
class _Part:
    """Units that were asked about in one call, and the answer."""

    units: tuple[Unit, ...]
    result: AskResult[RowsAnswer]
    reading: AnswerReading

    @property
    def unjudged(self) -> tuple[Unit, ...]:
        """Units without a usable row."""
        judged = self.reading.judged
        return tuple(unit for unit in self.units if unit.id not in judged)


@dataclass(kw_only=True)
class _Run:
    """One adjudication in progress."""

    model: Model
    prompt: Prompt
    conflicts_prompt: Prompt
    case: ReadCase
    units: tuple[Unit, ...]
    scheme: Scheme
    limits: Limits
    deadline: Deadline
    notes: list[str] = field(default_factory=list[str])
    flags: list[Flag] = field(default_factory=list[Flag])

    def __post_init__(self) -> None:
        """Give the units their names, which are the same in every part."""
        self.names = names_of(self.units)
        self.lines = unit_lines(self.units, names=self.names)
        self.slots = case_slots(self.case)

    async def finish(self) -> Adjudication:
        """Ask what is needed, and combine the answers."""
        parts = await gather_all(
            [self._ask(part, repair=self.limits.repair) for part in self._split()]
        )
        again = await self._ask_again(parts)
        # What was judged once is not replaced: a second answer counts for the missing rows alone.
        rows = _merged(parts, again)
        conflicts = [conflict for part in (*parts, *again) for conflict in part.reading.conflicts]
        prompts = [self.prompt.stamp]
        # A single part has seen all units together, so its conflicts are complete.
        if len(parts) > 1:
            conflicts += await self._find_conflicts()
            prompts.append(self.conflicts_prompt.stamp)
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
            max_tokens=self.limits.part_tokens,
            max_items=self.limits.part_units,
        )

    async def _ask(self, units: Sequence[Unit], *, repair: bool) -> _Part:
        """Ask about some of the units; a failure gives a reading without any verdict on them."""
        whole = len(units) == len(self.units)
        lines = self.lines if whole else unit_lines(units, names=self.names)
        result = await ask_until(
            self.model,
            self.prompt.render(units="\n".join(lines), **self.slots),
            ANSWERS[self.scheme],
            deadline=self.deadline,
            name="memguard.adjudicate",
            repair=repair,
        )
        self.notes += result.answer.notes
        if result.flag is not None:
            self.flags.append(result.flag)
        reading = self._read(units, result.answer.value)
        return _Part(units=tuple(units), result=result, reading=reading)

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
        """Ask once more for the units without a usable row, these alone."""
        if not self.limits.repair:
            return []
        open_parts = [part for part in parts if part.result.may_improve]
        missing = [unit for part in open_parts for unit in part.unjudged]
        situated = any(isinstance(part.reading.situation, Situation) for part in parts)
        if open_parts and not missing and not situated:
            # Every unit has its row, but rows are worthless without a situation: ask about one.
            missing = list(self.units[:1])
        if not missing:
            return []
        self.notes.append(f"asked once more about {len(missing)} units without a usable row")
        # An answer that was truncated would be truncated again, so two calls share the units.
        truncated = any(isinstance(part.result.answer.value, Inconclusive) for part in open_parts)
        middle = -(-len(missing) // 2) if truncated else len(missing)
        halves = [half for half in (missing[:middle], missing[middle:]) if half]
        return await gather_all([self._ask(half, repair=False) for half in halves])

    async def _find_conflicts(self) -> tuple[Conflict, ...]:
        search = await find_conflicts(
            self.model,
            self.conflicts_prompt,
            units=self.units,
            # Bare statements need no room for the rows of an answer, so twice as many fit.
            max_tokens=2 * self.limits.part_tokens,
            deadline=self.deadline,
        )
        self.notes += search.notes
        if not search.complete:
            self.flags.append("adjudication_partial")
        return search.conflicts

    def _situation(self, parts: Sequence[_Part]) -> Situation | Inconclusive:
        readings = [part.reading.situation for part in parts]
        situations = [reading for reading in readings if isinstance(reading, Situation)]
        if len(set(situations)) > 1:
            self.notes.append("the calls did not agree on the situation; the first one applies")
        return situations[0] if situations else readings[0]

    def _flag_unjudged(self, rows: Sequence[Row]) -> None:
        judged = {row.unit_id for row in rows if not isinstance(row.attributes, Inconclusive)}
        if not judged:
            self.flags.append("adjudication_failed")
        elif len(judged) < len(self.units):
            self.flags.append("adjudication_partial")


def _merged(parts: Sequence[_Part], again: Sequence[_Part]) -> tuple[Row, ...]:
    """The rows of the first answers, with the unusable ones replaced by those of the second."""
    unjudged = {unit.id for part in parts for unit in part.unjudged}
    repaired: frozenset[str] = reduce(
        frozenset.union, (part.reading.judged for part in again), frozenset[str]()
    )
    first = [
        row
        for part in parts
        for row in part.reading.rows
        if not (row.unit_id in unjudged and row.unit_id in repaired)
    ]
    second = [row for part in again for row in part.reading.rows if row.unit_id in unjudged]
    return (*first, *second)


def _as_pairs(value: Any) -> list[list[str]]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    groups = [
        group for group in value if isinstance(group, Sequence) and not isinstance(group, str)
    ]
    return [[str(name).strip(" \"'[]").casefold() for name in group] for group in groups]


class ConflictsAnswer(BaseModel):
    """Pairs of names."""

    model_config = ConfigDict(extra="ignore")

    conflicts: Annotated[
        list[list[str]],
        BeforeValidator(_as_pairs),
        WithJsonSchema({"type": "array", "items": {"type": "array", "items": {"type": "string"}}}),
    ]


@dataclass(frozen=True, kw_only=True)
class PartConflicts:
    """Conflicts between units of different parts."""

    conflicts: tuple[Conflict, ...]
    complete: bool
    """Whether every pair was compared."""
    notes: tuple[str, ...] = ()


async def find_conflicts(
    model: Model,
    prompt: Prompt,
    *,
    units: Sequence[Unit],
    max_tokens: int,
    deadline: Deadline,
) -> PartConflicts:
    """Compare every unit with every other one.

    Args:
        model: The model to ask.
        prompt: With the slot `units`.
        units: The statements.
        max_tokens: Tokens of statements in one call, estimated.
        deadline: When to give up.
    """
    names = names_of(units)
    # Shortened for the comparison only; the ledger has the whole text.
    short = [unit.model_copy(update={"text": _shortened(unit.text)}) for unit in units]
    costs = [estimate_tokens(line) for line in unit_lines(short, names=names)]
    if sum(costs) <= max_tokens:
        calls = [tuple(short)]
    else:
        # Two blocks fill a call, so that every pair of blocks, and with it every pair of
        # statements, is in one call.
        blocks = split_parts(short, costs=costs, max_tokens=max_tokens // 2, max_items=len(short))
        calls = [(*first, *second) for first, second in combinations(blocks, 2)]
    results = await gather_all(
        [
            ask_until(
                model,
                prompt.render(units="\n".join(unit_lines(call, names=names))),
                ConflictsAnswer,
                deadline=deadline,
                name="memguard.conflicts",
                repair=False,
            )
            for call in calls
        ]
    )
    return _read_conflicts(results, names=names)


def _read_conflicts(
    results: Sequence[AskResult[ConflictsAnswer]], *, names: dict[str, str]
) -> PartConflicts:
    conflicts: list[Conflict] = []
    notes: list[str] = []
    complete = True
    for result in results:
        value = result.answer.value
        if isinstance(value, Inconclusive):
            complete = False
            notes.append(f"conflicts across parts were not searched for: {value.reason}")
            continue
        for group in value.conflicts:
            ids = [names[name] for name in group if name in names]
            conflicts += [Conflict(first=a, second=b) for a, b in combinations(ids, 2) if a != b]
    return PartConflicts(conflicts=tuple(conflicts), complete=complete, notes=tuple(notes))


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_STATEMENT_CHARS else f"{text[:_MAX_STATEMENT_CHARS]}\u2026"
