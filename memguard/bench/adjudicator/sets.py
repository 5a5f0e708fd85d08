"""MemSyco-Bench and PersistBench as reads, with the label of each memory where there is one."""

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
"""The tasks of MemSyco-Bench; each one asks for one policy towards its memories."""

_SEARCH = re.compile(r"<search>.*?(?:</search>|$)", re.DOTALL)
_DIALOGUE_TURNS = 10
"""Turns that a read shows its adjudicator, as `ReadSpec.dialogue_turns` has it."""


@dataclass(frozen=True, kw_only=True)
class Labelled:
    """One query with its memories."""

    group: str
    """Task of MemSyco, or failure type of PersistBench."""
    policy: str
    """What the task asks for; empty where it says nothing."""
    case: ReadCase
    """Query, dialogue, evidence."""
    memories: tuple[tuple[str, str], ...]
    """Text and label of each memory; the label is its status, or empty."""


def memsyco(folder: Path) -> Iterator[Labelled]:
    """The rows of MemSyco-Bench; search results in a dialogue are evidence apart."""
    for task in TASKS:
        for row in _rows(folder / "memsyco" / f"{task}.jsonl"):
            memory = row["memory"]
            yield Labelled(
                group=task,
                policy=memory["policy"],
                case=_case(row),
                memories=tuple((each["content"], each["status"]) for each in memory["items"]),
            )


def persistbench(folder: Path) -> Iterator[Labelled]:
    """The rows of PersistBench, every memory of a row recalled."""
    for row in _rows(folder / "persistbench" / "full_benchmark.jsonl"):
        yield Labelled(
            group=row["failure_type"],
            policy="",
            case=ReadCase(query=row["query"]),
            memories=tuple((text, "") for text in row["memories"]),
        )


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if not path.is_file():
        return
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _case(row: dict[str, Any]) -> ReadCase:
    turns: list[Turn] = []
    evidence: list[Evidence] = []
    for number, said in enumerate(row["dialogue"], start=1):
        content = said["content"]
        evidence += [Evidence(text=found, source="search") for found in _SEARCH.findall(content)]
        rest = _SEARCH.sub("", content).strip()
        if rest:
            turns.append(Turn(id=str(number), role=said["role"], content=rest))
    return ReadCase(
        query=row["question"],
        dialogue=tuple(turns[-_DIALOGUE_TURNS:]),
        evidence=tuple(evidence),
    )
