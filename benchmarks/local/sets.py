"""The held-out sets, and the questions of LoCoMo with the memories recalled for them.

The sets in `data/` were written by hand, without a look at the rules that they measure; of the
first, the author of the second saw three lines of each file, for the format. Nobody who changes
those rules may read them; `--failures` exists for the maintainer who decides what to do next.
"""

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from pydantic import BaseModel

from memguard.schema.base import Frozen
from memguard.schema.memory import Moment, SaidBy, Turn

DATA = Path(__file__).with_name("data")
Language = Literal["en", "de", "es", "fr", "zh"]
SetName = Literal["held_out", "second"]
SETS: tuple[SetName, ...] = get_args(SetName)
NOW = datetime(2026, 3, 5, 12, tzinfo=UTC)
"""The time of every read of the hand-written set, after all of its memories."""
QUESTIONS = 200
"""Questions of LoCoMo that are asked."""
RECALLED = 15
"""Memories of a read of LoCoMo."""
_SEED = 11
_UNANSWERABLE = 5
"""The category of LoCoMo whose questions have no answer in the conversation."""

M = TypeVar("M", bound=BaseModel)


class LabelledMemory(Frozen):
    """One recalled memory of a read, with its label."""

    text: str
    said_by: SaidBy
    said_at: Moment
    label: Literal["must", "must_not", "either"]
    """Whether the prompt must contain it."""
    superseded: bool = False
    """Whether the store marks it as superseded."""
    part: str = ""
    """The part of the text that the label is about; any of it when empty."""
    safety: bool = False
    """Whether it is a safety constraint of the user or of a person the answer is for."""
    another_author_instruction: bool = False
    """Whether it is an instruction that somebody other than the user wrote."""


class LabelledRead(Frozen):
    """One request with the memories recalled for it."""

    id: str
    language: Language
    kind: str
    query: str
    dialogue: tuple[dict[str, str], ...] = ()
    evidence: tuple[str, ...] = ()
    memories: tuple[LabelledMemory, ...]


WrongKind = Literal[
    "another_author",
    "retracted",
    "old_value",
    "ironic",
    "hypothetical",
    "fragment",
    "momentary",
]


class Span(Frozen):
    """A part of a turn, and whether it should become a memory."""

    turn: str
    """Id of the turn."""
    text: str
    """The part, an exact substring of the turn."""
    verdict: Literal["keep", "either", "wrong"]
    """`keep`: a careful reader would keep it. `wrong`: nobody should."""
    kind: WrongKind | Literal[""] = ""
    """Why its storage is wrong."""


class LabelledConversation(Frozen):
    """A conversation with its labelled parts. What no span covers should not be stored either."""

    id: str
    language: Language
    turns: tuple[Turn, ...]
    spans: tuple[Span, ...]


class SupportPair(Frozen):
    """Turns, and a candidate that they support or not."""

    id: str
    language: Language
    turns: tuple[Turn, ...]
    candidate: str
    label: Literal["true", "subject_swap", "detail_swap"]


def reads(name: SetName = "held_out") -> tuple[LabelledRead, ...]:
    """The hand-written reads of a set."""
    return _load(f"reads_{name}.jsonl", LabelledRead)


def conversations(name: SetName = "held_out") -> tuple[LabelledConversation, ...]:
    """The hand-written conversations of a set."""
    return _load(f"conversations_{name}.jsonl", LabelledConversation)


def swaps(name: SetName = "held_out") -> tuple[SupportPair, ...]:
    """The hand-written support pairs of a set."""
    return _load(f"swaps_{name}.jsonl", SupportPair)


def _load(name: str, model: type[M]) -> tuple[M, ...]:
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return tuple(model.model_validate_json(line) for line in lines)


@dataclass(frozen=True, kw_only=True)
class Observation:
    """A memory of LoCoMo: a sentence that annotators wrote about a speaker."""

    text: str
    turns: frozenset[str]
    """Ids of the turns it is taken from."""
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question of LoCoMo, with the observations of its conversation."""

    text: str
    evidence: frozenset[str]
    """Ids of the turns that answer it, of those that an observation cites."""
    observations: tuple[Observation, ...]
    now: datetime
    """The time of the last session."""


def locomo_questions(folder: Path, *, limit: int = QUESTIONS) -> tuple[Question, ...]:
    """A sample of the answerable questions, the same in every run; empty without the data."""
    path = folder / "locomo" / "locomo10.json"
    if not path.is_file():
        return ()
    samples = json.loads(path.read_text(encoding="utf-8"))
    questions = [question for sample in samples for question in _questions(sample)]
    # A fixed sample, so that two runs can be compared.
    return tuple(random.Random(_SEED).sample(questions, min(limit, len(questions))))


def _questions(sample: dict[str, Any]) -> Iterator[Question]:
    observations = tuple(_observations(sample))
    cited = frozenset[str]().union(*(observation.turns for observation in observations))
    now = max(observation.at for observation in observations)
    for row in sample["qa"]:
        evidence = _turn_ids(row.get("evidence", [])) & cited
        if evidence and row["category"] != _UNANSWERABLE:
            yield Question(
                text=row["question"], evidence=evidence, observations=observations, now=now
            )


def _observations(sample: dict[str, Any]) -> Iterator[Observation]:
    for session, speakers in sample["observation"].items():
        name = session.removesuffix("_observation")
        at = datetime.strptime(
            sample["conversation"][f"{name}_date_time"], "%I:%M %p on %d %B, %Y"
        ).replace(tzinfo=UTC)
        for rows in speakers.values():
            for text, source in rows:
                yield Observation(text=text, turns=_turn_ids(source), at=at)


def _turn_ids(source: Any) -> frozenset[str]:
    # A list, one id, or several in one string.
    return frozenset(re.findall(r"D\d+:\d+", json.dumps(source)))
