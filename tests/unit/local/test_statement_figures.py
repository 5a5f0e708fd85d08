"""What is stored of whole conversations, with a label for every sentence.

`tests/data/statements.jsonl` has one conversation per line. A sentence of the user is labelled
`keep` (a lasting statement of the user's own), `replaced` (one that a later sentence takes back
or replaces) or `other`. `completed` lists what may be stored in other words than it was said.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from memguard.local.statements import Statement, read_statements
from memguard.schema.memory import Turn

FILE = Path(__file__).parents[2] / "data" / "statements.jsonl"
CONVERSATIONS = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
MIN_PRECISION = 0.95
MIN_COVERED = 0.9
MIN_STORED = 0.8


class Label(NamedTuple):
    position: int
    text: str
    label: str


def _turns(conversation: dict[str, Any]) -> tuple[list[Turn], list[Label]]:
    turns: list[Turn] = []
    labels: list[Label] = []
    joint = conversation["joint"]
    for position, turn in enumerate(conversation["turns"]):
        sentences = turn.get("sentences", [])
        labels += [Label(position, text, label) for text, label in sentences]
        content = turn.get("text") or joint.join(text for text, _ in sentences)
        speaker = conversation["speaker"] if turn["role"] == "user" else ""
        turns.append(Turn(id=str(position), role=turn["role"], content=content, speaker=speaker))
    return turns, labels


def _is_right(statement: Statement, labels: list[Label], completed: list[str]) -> bool:
    if statement.completed:
        return statement.text in completed
    return any(
        statement.position == label.position
        and statement.text in label.text
        and label.label == "keep"
        for label in labels
    )


def test_at_least_six_conversations_in_five_languages() -> None:
    assert len(CONVERSATIONS) >= 6
    assert {row["language"] for row in CONVERSATIONS} == {"en", "de", "es", "fr", "zh"}


@pytest.mark.parametrize(
    "conversation", CONVERSATIONS, ids=[f"{c['language']}-{c['speaker']}" for c in CONVERSATIONS]
)
def test_what_is_replaced_is_never_stored(conversation: dict[str, Any]) -> None:
    turns, labels = _turns(conversation)
    stored = {(s.position, s.text) for s in read_statements(turns) if not s.doubt}
    assert not [one for one in labels if one.label == "replaced" and one[:2] in stored]


def test_what_is_stored_is_the_users_own_and_lasts() -> None:
    right = wrong = covered = stored_keeps = keeps = 0
    for conversation in CONVERSATIONS:
        turns, labels = _turns(conversation)
        statements = read_statements(turns)
        for statement in statements:
            if statement.doubt:
                continue
            if _is_right(statement, labels, conversation["completed"]):
                right += 1
            else:
                wrong += 1
        for label in labels:
            if label.label != "keep":
                continue
            matches = [
                s
                for s in statements
                if s.position == label.position
                and (s.text in label.text or s.completed == label.text)
            ]
            keeps += 1
            covered += bool(matches)
            stored_keeps += any(not s.doubt for s in matches)
    assert right / (right + wrong) >= MIN_PRECISION
    assert covered / keeps >= MIN_COVERED
    assert stored_keeps / keeps >= MIN_STORED
