"""MemSyco-Bench and PersistBench as reads, with the label of each memory if it has one."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memguard.schema.memory import Turn
from memguard.schema.read import Evidence, ReadCase

TASKS = (
    "objective_fact_judgment",
    "contextual_scope_control",
    "memory_evidence_conflict",
    "personalized_memory_use",
    "valid_memory_selection",
)
"""The tasks of MemSyco-Bench; each has one policy for its memories."""

_SEARCH = re.compile(r"<search>.*?(?:</search>|$)", re.DOTALL)
# Turns that the adjudicator reads, as by default in `ReadSpec.dialogue_turns`.
_DIALOGUE_TURNS = 10


@dataclass(frozen=True, kw_only=True)
class LabelledRead:
    """One query with its labelled memories."""

    group: str
    """Task of MemSyco-Bench or failure type of PersistBench."""
    policy: str
    """Policy of the task; empty if it has none."""
    case: ReadCase
    """Query, dialogue and evidence."""
    memories: tuple[tuple[str, str], ...]
    """Text and label of each memory; the label is its status, or empty."""


def memsyco(folder: Path) -> Iterator[LabelledRead]:
    """The rows of MemSyco-Bench; search results in a dialogue become evidence."""
    for task in TASKS:
        for row in _rows(folder / "memsyco" / f"{task}.jsonl"):
            memory = row["memory"]
            yield LabelledRead(
                group=task,
                policy=memory["policy"],
                case=_case(row),
                memories=tuple((item["content"], item["status"]) for item in memory["items"]),
            )


def persistbench(folder: Path) -> Iterator[LabelledRead]:
    """The rows of PersistBench; all memories of a row count as recalled."""
    for row in _rows(folder / "persistbench" / "full_benchmark.jsonl"):
        yield LabelledRead(
            group=row["failure_type"],
            policy="",
            case=ReadCase(query=row["query"]),
            memories=tuple((text, "") for text in row["memories"]),
        )


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    # A missing set is skipped, as the data cannot be distributed with the package.
    if not path.is_file():
        return
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _case(row: dict[str, Any]) -> ReadCase:
    turns: list[Turn] = []
    evidence: list[Evidence] = []
    for number, message in enumerate(row["dialogue"], start=1):
        content = message["content"]
        evidence += [Evidence(text=hit, source="search") for hit in _SEARCH.findall(content)]
        # What is left after the search results is what was said; often nothing.
        rest = _SEARCH.sub("", content).strip()
        if rest:
            turns.append(Turn(id=str(number), role=message["role"], content=rest))
    return ReadCase(
        query=row["question"],
        dialogue=tuple(turns[-_DIALOGUE_TURNS:]),
        evidence=tuple(evidence),
    )
