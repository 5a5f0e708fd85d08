"""The load run in small; `python -m benchmarks.load` is the long one."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.load import Load, Part, render, run_load

PART = Part(turns=10, seconds=[0.1] * 10, memory=100, handles=20)
FINE = Load(parts=(PART, PART, PART), acknowledged=9, lost=0, disagreements=0, redone=0, children=0)


@pytest.mark.slow
def test_nothing_is_lost_and_nothing_grows(tmp_path: Path) -> None:
    load = run_load(tmp_path, seconds=15, conversations=12, cancel_share=0.1)
    assert sum(part.cancelled for part in load.parts) > 0
    # No figure of time: the machine may be busy.
    assert list(load.problems(timed=False)) == []


def grown(**changes: object) -> Load:
    return replace(FINE, parts=(PART, PART, replace(PART, **changes)))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("load", "problem"),
    [
        (replace(FINE, lost=1), "1 writes lost, 0 disagreements"),
        (replace(FINE, disagreements=2), "0 writes lost, 2 disagreements"),
        (replace(FINE, acknowledged=0), "nothing was stored"),
        (replace(FINE, children=1), "1 processes were left behind"),
        (grown(memory=121), "memory grew from 100 to 121 MiB"),
        (grown(handles=29), "file descriptors and threads grew from 20 to 29"),
        (grown(tasks=1), "1 tasks were left behind"),
        (grown(seconds=[0.2] * 10), "p95 of a turn grew from 100 to 200 ms"),
    ],
)
def test_every_problem_is_named(load: Load, problem: str) -> None:
    assert list(load.problems()) == [problem]


def test_a_run_without_a_problem_is_a_table() -> None:
    assert list(FINE.problems()) == []
    assert "| 3 | 10 | 0 | 0 | 100 ms | 100 MiB | 20 |" in render(FINE)
