"""The adjudicator that is a model: the batched call, its repair, and conflicts across parts.

All units of a read go into one call where they fit, else into parts that are requested at the same
time. Units without a usable row are requested once more. With several parts, a second question
finds conflicts between units of different parts. Every question has a deadline and ends in an
answer or in the typed reason why there is none.
"""

import asyncio
import math
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from typing import Annotated, Any, Generic, TypeVar

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from memguard.errors import BudgetExhaustedError, ConfigurationError, ErrorCode
from memguard.llm.ask import ParsedAnswer, ask
from memguard.llm.call import CallSettings
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
from memguard.schema.read import Adjudication, Conflict, Flag, ReadCase, ReadSpec, Row, Situation
from memguard.schema.receipt import Usage
from memguard.schema.units import Scheme, Unit

# One per process: it loads its embedder at the first read, which takes time and memory.
_local_adjudicator = cache(LocalAdjudicator)

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

SETTINGS = CallSettings(temperature=0.0, max_tokens=8192)
"""Temperature 0; room for a reasoning model's thoughts and about sixty rows."""

_MAX_STATEMENT_CHARS = 400
"""Characters of a statement; what two memories disagree about is near their beginning."""


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

    @property
    def unjudged(self) -> tuple[Unit, ...]:
        """Units without a usable row."""
        judged = self.reading.judged
        return tuple(unit for unit in self.units if unit.id not in judged)


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

    def __post_init__(self) -> None:
        """Name the units; a name is the same in every part, so that conflicts can cross parts."""
        self.spec = self.adjudicator.spec
        self.prompt = self.adjudicator.prompts[self.scheme]
        self.names = names_of(self.units)
        self.lines = self._lines_of(self.units)
        self.slots = case_slots(self.case)

    def _lines_of(self, units: Sequence[Unit]) -> list[str]:
        return prompt_lines(units, names=self.names, authorship=self.spec.authorship)

    async def finish(self) -> Adjudication:
        """Ask what is needed, and combine the answers."""
        split = split_parts(
            self.units,
            costs=line_costs(self.lines),
            max_tokens=self.spec.part_tokens,
            max_items=self.spec.part_units,
        )
        parts = await gather_all([self._ask(part, repair=self.spec.repair) for part in split])
        again = await self._ask_again(parts)
        # What was judged once is not replaced: a second answer counts for the missing rows alone.
        rows = _merged(parts, again)
        conflicts = [conflict for part in (*parts, *again) for conflict in part.reading.conflicts]
        prompts = [self.prompt.stamp]
        # A single part has seen all units together, so its conflicts are complete.
        if len(parts) > 1:
            conflicts += await self._find_conflicts()
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

    async def _ask(self, units: Sequence[Unit], *, repair: bool) -> _Part:
        """Ask about some of the units; a failure gives a reading without any verdict on them."""
        # The lines of all units exist already: they were needed to split the units into parts.
        is_whole = len(units) == len(self.units)
        lines = self.lines if is_whole else self._lines_of(units)
        result = await ask_until(
            self.adjudicator.model,
            self.prompt.render(units="\n".join(lines), **self.slots),
            answer_form(self.scheme, self.spec.unasked),
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
        """Request once more the units without a usable row, and no others."""
        if not self.spec.repair:
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

    async def _find_conflicts(self) -> list[Conflict]:
        """Compare every unit with every other one."""
        # Shortened for the comparison only; the ledger has the whole text.
        short = [unit.model_copy(update={"text": _shortened(unit.text)}) for unit in self.units]
        costs = [estimate_tokens(line) for line in self._lines_of(short)]
        # Bare statements need no room for the rows of an answer, so twice as many fit.
        max_tokens = 2 * self.spec.part_tokens
        calls = [tuple(short)]
        if sum(costs) > max_tokens:
            # Two blocks fill a call, so that every pair of blocks, and with it every pair of
            # statements, is in one call.
            blocks = split_parts(
                short, costs=costs, max_tokens=max_tokens // 2, max_items=len(short)
            )
            calls = [(*first, *second) for first, second in combinations(blocks, 2)]
        results = await gather_all([self._ask_conflicts(call) for call in calls])
        groups: list[Sequence[str]] = []
        for value in (result.answer.value for result in results):
            if isinstance(value, Inconclusive):
                self.flags.append("adjudication_partial")
                self.notes.append(f"conflicts across parts were not searched for: {value.reason}")
            else:
                groups += value.conflicts
        return pairs_of(groups, names=self.names)

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


async def ask_until(
    model: Model,
    messages: Sequence[BaseMessage],
    schema: type[M],
    *,
    deadline: float,
    name: str,
    repair: bool,
) -> AskResult[M]:
    """Ask, and give up at the deadline or when the budget is spent.

    Args:
        model: The model.
        messages: The rendered prompt.
        schema: The form of the answer.
        deadline: When to give up, on the clock of the event loop; infinite for never.
        name: Names the call in traces.
        repair: Whether a malformed answer is requested once more.

    Raises:
        ModelConfigurationError: If no request to this model can succeed as it is set up.
    """
    try:
        async with asyncio.timeout_at(None if math.isinf(deadline) else deadline):
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


def split_parts(
    items: Sequence[T], *, costs: Sequence[int], max_tokens: int, max_items: int
) -> tuple[tuple[T, ...], ...]:
    """Items in order, in as few parts as the limits allow; an item too large has its own part."""
    parts: list[list[T]] = []
    room = 0
    for item, cost in zip(items, costs, strict=True):
        if not parts or cost > room or len(parts[-1]) >= max_items:
            parts.append([])
            room = max_tokens
        parts[-1].append(item)
        room -= cost
    return tuple(tuple(part) for part in parts)
