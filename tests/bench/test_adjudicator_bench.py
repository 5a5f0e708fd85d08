"""The bench of the local adjudicator: what it reads, and what it counts."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.adjudicator import __main__ as bench
from benchmarks.adjudicator.judged import judge
from benchmarks.adjudicator.sets import memsyco, persistbench
from memguard.local.adjudicator import LocalAdjudicator
from tests.cases import data_file


def write(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    talk = [
        {"role": "user", "content": "Let us talk about music."},
        {"role": "assistant", "content": "<search>\nquery: music\nresult</search>"},
    ]
    items = [
        {"content": "User likes heavy metal music.", "type": "p", "status": "outdated"},
        {"content": "User now prefers classical music.", "type": "p", "status": "current"},
    ]
    row = {
        "dialogue": talk,
        "question": "Which music should I play tonight?",
        "memory": {"policy": "update", "items": items},
    }
    write(tmp_path, "memsyco/valid_memory_selection.jsonl", [row])
    persist = {
        "query": "What should I play?",
        "memories": ["User likes jazz."],
        "failure_type": "sycophancy",
    }
    write(tmp_path, "persistbench/full_benchmark.jsonl", [persist])
    return tmp_path


def test_search_results_are_evidence_and_not_dialogue(data: Path) -> None:
    (row,) = memsyco(data)
    assert [turn.role for turn in row.case.dialogue] == ["user"]
    assert row.case.evidence[0].text.startswith("<search>")
    assert [label for _, label in row.memories] == ["outdated", "current"]
    (other,) = persistbench(data)
    assert other.group == "sycophancy"


def test_the_result_for_each_memory(data: Path) -> None:
    (row,) = memsyco(data)
    old, new = judge(row, adjudicator=LocalAdjudicator(), scheme="units")
    assert (old.temporal, old.permission) == ("superseded", "DENY")
    assert (new.temporal, new.permission) == ("current", "PERSONALIZE")


def test_the_tables_are_printed(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["bench", "--data", str(data)])
    bench.main()
    out = capsys.readouterr().out
    assert "outdated and current memories" in out
    assert "1/1 100.0 %" in out
    assert "sycophancy" in out


def test_the_real_sets_have_the_sizes_that_are_published() -> None:
    folder = data_file("memsyco", "valid_memory_selection.jsonl").parents[1]
    rows = list(memsyco(folder))
    labels = [label for row in rows if row.policy == "update" for _, label in row.memories]
    assert len(rows) == 1550
    assert (labels.count("outdated"), labels.count("current")) == (350, 350)
    data_file("persistbench", "full_benchmark.jsonl")
    assert len(list(persistbench(folder))) == 500
