"""What the store knows of a memory, as fields of its units. Pure.

The origin says who spoke, and the lifecycle what became of the memory since. No verdict on the
words of a unit changes either of them.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from memguard.local.look_ups import asks_about_past
from memguard.methods.adjudication.authors import OTHER_AUTHORS
from memguard.schema.read import Conflict, ReadSpec, RecalledMemory, recalled_id
from memguard.schema.units import Unit


def store_marks(memory: RecalledMemory) -> dict[str, Any]:
    """The fields of a memory's units that do not depend on its words."""
    origin, lifecycle = memory.provenance, memory.lifecycle
    said_by = origin.said_by if origin else "unknown"
    return {
        "said_at": memory.said_at,
        "score": memory.score,
        "superseded": memory.superseded or not lifecycle.is_current,
        "said_by": said_by,
        "author": origin.speaker if origin and said_by in OTHER_AUTHORS else "",
        "ended_as": lifecycle.ended_as,
        "valid_until": lifecycle.valid_until,
        # Ids as recall gives them: keys name a memory only together with its namespace.
        "conflicts_with": tuple(
            recalled_id(memory.namespace, key=key) for key in lifecycle.conflicts_with
        ),
    }


def is_past(unit: Unit) -> bool:
    """Whether the store marks a unit as something that was so once, and was not taken back."""
    return unit.superseded and unit.ended_as in {None, "superseded"}


def may_be_about_past(query: str, *, spec: ReadSpec) -> bool:
    """Whether verdicts on what no longer holds can have an effect: the words of the query tell."""
    return spec.lookups and asks_about_past(query)


def marked_conflicts(units: Sequence[Unit]) -> tuple[Conflict, ...]:
    """Pairs of units whose memories the store marks as contradicting each other, each pair once."""
    by_memory: defaultdict[str, list[str]] = defaultdict(list)
    for unit in units:
        by_memory[unit.memory_id].append(unit.id)
    pairs = {
        (min(unit.id, other), max(unit.id, other)): None
        for unit in units
        for memory_id in unit.conflicts_with
        for other in by_memory.get(memory_id, ())
        if memory_id != unit.memory_id
    }
    return tuple(Conflict(first=first, second=second) for first, second in pairs)
