"""What a read without a model admits, on labelled reads in five languages.

The reads of `tests/data/local_reads.jsonl` were written by hand. A memory is labelled `must` (be in
the prompt), `must_not` or `either`.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest

from memguard.instructions import find_instruction
from memguard.local.adjudicator import LocalAdjudicator
from memguard.local.adjudicator.decomposer import split_memory
from memguard.local.safety import looks_like_safety
from memguard.methods.adjudication.recalled_units import units_of, units_to_judge
from memguard.methods.adjudication.ruling import Ruling, rule_on_units
from memguard.schema.memory import Provenance, Turn
from memguard.schema.read import (
    Evidence,
    FactorCompiled,
    PermissionSemantic,
    ReadCase,
    RecalledMemory,
)
from memguard.schema.units import Scheme

DATA = Path(__file__).parents[2] / "data" / "local_reads.jsonl"
NOW = datetime(2026, 3, 15, 14, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one memory of a read."""

    read: str
    language: str
    kind: str
    text: str
    label: str
    said_by: str
    rulings: tuple[Ruling, ...]

    @property
    def shown(self) -> bool:
        """Whether a part of it is in the prompt."""
        return any(ruling.row.then != "DENY" for ruling in self.rulings)


@cache
def adjudicator() -> LocalAdjudicator:
    return LocalAdjudicator()


def reads() -> list[dict[str, Any]]:
    return [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]


def outcomes_of(read: dict[str, Any], scheme: Scheme) -> Iterator[Outcome]:
    """Judge one read and apply the policy, as the methods do."""
    memories = [
        RecalledMemory(
            text=entry["text"],
            id=f"m{number}",
            said_at=entry["said_at"],
            provenance=Provenance(candidate_id="c", receipt_id="r", said_by=entry["said_by"]),
        )
        for number, entry in enumerate(read["memories"], start=1)
    ]
    units = [
        unit
        for memory in memories
        for unit in units_of(
            memory,
            pieces=split_memory(memory.text) if scheme == "units" else None,
            instruction=find_instruction(memory.text),
        )
    ]
    turns = enumerate(read["dialogue"], start=1)
    case = ReadCase(
        query=read["query"],
        dialogue=tuple(Turn(id=str(n), role="user", content=text) for n, text in turns),
        evidence=tuple(Evidence(text=text) for text in read["evidence"]),
        now=NOW,
    )
    spec = PermissionSemantic() if scheme == "units" else FactorCompiled()
    adjudication = adjudicator().judge(case, units_to_judge(units), scheme)
    rulings = rule_on_units(units, adjudication=adjudication, spec=spec)
    for memory, entry in zip(memories, read["memories"], strict=True):
        yield Outcome(
            read=read["id"],
            language=read["language"],
            kind=read["kind"],
            text=memory.text,
            label=entry["label"],
            said_by=entry["said_by"],
            rulings=tuple(r for r in rulings if r.unit.memory_id == memory.id),
        )


@cache
def all_outcomes(scheme: Scheme) -> tuple[Outcome, ...]:
    return tuple(outcome for read in reads() for outcome in outcomes_of(read, scheme))


def share_shown(outcomes: Iterable[Outcome], label: str) -> float:
    """The share of memories with a label that are in the prompt."""
    counts = Counter(outcome.shown for outcome in outcomes if outcome.label == label)
    return counts[True] / counts.total()


SCHEMES = pytest.mark.parametrize("scheme", get_args(Scheme))


@SCHEMES
def test_what_must_be_in_the_prompt_is(scheme: Scheme) -> None:
    outcomes = all_outcomes(scheme)
    assert share_shown(outcomes, "must") >= 0.92
    assert share_shown(outcomes, "must_not") <= 0.15


@SCHEMES
def test_every_safety_constraint_that_bears_on_the_answer_is_shown(scheme: Scheme) -> None:
    lost = [
        outcome.text
        for outcome in all_outcomes(scheme)
        if outcome.label == "must" and looks_like_safety(outcome.text) and not outcome.shown
    ]
    assert lost == []


@SCHEMES
def test_no_other_author_instructs_or_is_more_than_uncertain(scheme: Scheme) -> None:
    others = [outcome for outcome in all_outcomes(scheme) if outcome.said_by != "user"]
    assert others
    assert not any(outcome.shown for outcome in others if outcome.label == "must_not")
    permissions = {ruling.row.then for outcome in others for ruling in outcome.rulings}
    assert permissions <= {"CONTEXT_UNCERTAIN", "DENY"}


@SCHEMES
@pytest.mark.parametrize("language", ["de", "es", "fr", "zh"])
def test_other_languages_are_near_english(scheme: Scheme, language: str) -> None:
    by_language = [o for o in all_outcomes(scheme) if o.language == language]
    english = [o for o in all_outcomes(scheme) if o.language == "en"]
    assert share_shown(by_language, "must") >= share_shown(english, "must") - 0.15
    assert share_shown(by_language, "must_not") <= share_shown(english, "must_not") + 0.15


@SCHEMES
@pytest.mark.parametrize("kind", ["topic", "sycophancy", "correction", "bystander"])
def test_of_each_kind_most_of_what_must_not_be_shown_is_denied(scheme: Scheme, kind: str) -> None:
    of_kind = [outcome for outcome in all_outcomes(scheme) if outcome.kind == kind]
    assert share_shown(of_kind, "must_not") <= 0.4


def test_the_set_has_several_languages_and_kinds() -> None:
    kinds = Counter(read["kind"] for read in reads())
    assert len(reads()) >= 60
    assert {read["language"] for read in reads()} == {"en", "de", "es", "fr", "zh"}
    assert len(kinds) >= 9
