"""Relations of pairs with a label, in five languages.

`tests/data/corrections.jsonl` has one pair per line, both said by the user. The rules were
developed on it, so the figures on other pairs are lower.
"""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from memguard.local.corrections import read_relations
from memguard.schema.memory import CandidateMemory
from memguard.schema.relations import Neighbour, RelationVerdict

FILE = Path(__file__).parents[2] / "data" / "corrections.jsonl"
NOW = datetime(2026, 12, 1, tzinfo=UTC)
MIN_PAIRS = 1_100
MIN_RIGHT = 0.9
MIN_DUPLICATES = 0.85
MIN_CERTAIN = 0.85


class LabelledPair(NamedTuple):
    language: str
    label: str
    texts: tuple[str, str]
    verdict: RelationVerdict


def _read(line: str) -> LabelledPair:
    row = json.loads(line)
    reading = read_relations(
        CandidateMemory(text=row["candidate"], said_by="user"),
        [Neighbour(namespace=("ana",), key="key", text=row["neighbour"])],
        now=NOW,
    )
    texts = (row["candidate"], row["neighbour"])
    return LabelledPair(row["language"], row["relation"], texts, reading.verdicts[0])


PAIRS = [_read(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def _texts(pairs: Iterable[LabelledPair]) -> list[tuple[str, str]]:
    return [pair.texts for pair in pairs]


def test_the_set_has_every_language_and_relation() -> None:
    assert len(PAIRS) >= MIN_PAIRS
    for language in ("en", "de", "es", "fr", "zh"):
        labels = {pair.label for pair in PAIRS if pair.language == language}
        assert labels == {"duplicate", "refines", "supersedes", "contradicts", "coexists"}


def test_nothing_is_wrongly_replaced() -> None:
    wrong = [
        pair
        for pair in PAIRS
        if pair.verdict.relation == "supersedes"
        and pair.verdict.certain
        and pair.label != "supersedes"
    ]
    assert _texts(wrong) == []


def test_two_values_are_never_one() -> None:
    wrong = [
        pair for pair in PAIRS if pair.verdict.relation == "duplicate" and pair.label != "duplicate"
    ]
    assert _texts(wrong) == []


def test_paraphrases_are_found_in_every_language() -> None:
    for language in ("en", "de", "es", "fr", "zh"):
        pairs = [one for one in PAIRS if one.label == "duplicate" and one.language == language]
        missed = [one for one in pairs if one.verdict.relation != "duplicate"]
        assert 1 - len(missed) / len(pairs) >= MIN_DUPLICATES, _texts(missed)


def test_clear_changes_are_certain() -> None:
    pairs = [pair for pair in PAIRS if pair.label == "supersedes"]
    missed = [pair for pair in pairs if not pair.verdict.certain]
    assert 1 - len(missed) / len(pairs) >= MIN_CERTAIN, _texts(missed)


def test_most_relations_are_right() -> None:
    wrong = [pair for pair in PAIRS if pair.verdict.relation != pair.label]
    assert 1 - len(wrong) / len(PAIRS) >= MIN_RIGHT, _texts(wrong)
