"""Conflicts between units that were judged in different calls.

Each part of a large read sees its own units alone. One more call, over the bare statements, finds
the pairs that no part could see; statements that do not fit into one call are compared block by
block.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from memguard.adjudication.asking import Asked, Deadline, ask_until, together
from memguard.adjudication.case import names_of, unit_lines
from memguard.llm.models import Model
from memguard.policy.parts import estimate_tokens, split_parts
from memguard.prompts import Prompt
from memguard.schema.ledger import Conflict
from memguard.schema.units import Unit
from memguard.schema.verdict import Inconclusive

_MOST_CHARS = 400
"""Of a statement; what two memories disagree about stands near their beginning."""


def _as_pairs(value: Any) -> list[list[str]]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    lists = [each for each in value if isinstance(each, Sequence) and not isinstance(each, str)]
    return [[str(name).strip(" \"'[]").casefold() for name in each] for each in lists]


class ConflictsAnswer(BaseModel):
    """Pairs of names."""

    model_config = ConfigDict(extra="ignore")

    conflicts: Annotated[
        list[list[str]],
        BeforeValidator(_as_pairs),
        WithJsonSchema({"type": "array", "items": {"type": "array", "items": {"type": "string"}}}),
    ]


@dataclass(frozen=True, kw_only=True)
class Across:
    """What was found."""

    conflicts: tuple[Conflict, ...]
    complete: bool
    """Whether every pair was looked at."""
    notes: tuple[str, ...] = ()


async def find_conflicts(
    model: Model,
    prompt: Prompt,
    *,
    units: Sequence[Unit],
    most_tokens: int,
    deadline: Deadline,
) -> Across:
    """Compare every unit with every other one.

    Args:
        model: The model to ask.
        prompt: With the slot `units`.
        units: The statements.
        most_tokens: Tokens of statements in one call, estimated.
        deadline: When to give up.
    """
    names = names_of(units)
    short = [unit.model_copy(update={"text": _shortened(unit.text)}) for unit in units]
    costs = [estimate_tokens(line) for line in unit_lines(short, names=names)]
    if sum(costs) <= most_tokens:
        calls = [tuple(short)]
    else:
        blocks = split_parts(
            short, costs=costs, most_tokens=most_tokens // 2, most_things=len(short)
        )
        calls = [(*first, *second) for first, second in combinations(blocks, 2)]
    asked = await together(
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
    return _read(asked, names=names)


def _read(asked: Sequence[Asked[ConflictsAnswer]], *, names: dict[str, str]) -> Across:
    found: list[Conflict] = []
    notes: list[str] = []
    complete = True
    for each in asked:
        value = each.answer.value
        if isinstance(value, Inconclusive):
            complete = False
            notes.append(f"conflicts across parts were not looked for: {value.reason}")
            continue
        for group in value.conflicts:
            known = [names[name] for name in group if name in names]
            found += [Conflict(first=a, second=b) for a, b in combinations(known, 2) if a != b]
    return Across(conflicts=tuple(found), complete=complete, notes=tuple(notes))


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}\u2026"
