"""The matrix of faults and stages, in part; `python -m benchmarks.faults` runs all of it."""

from dataclasses import replace

import pytest

from benchmarks.faults import EXPECTED, STAGES, Cell, Stage, render, run_cell, run_cells
from memguard.testing import FaultName
from memguard.testing.faults import FAULTS

NAMES: tuple[FaultName, ...] = tuple(FAULTS)
BY_NAME = {stage.name: stage for stage in STAGES}


def diagonal(offset: int) -> list[tuple[Stage, FaultName]]:
    """Every fault at one stage, and with it every stage."""
    return [(STAGES[(i + offset) % len(STAGES)], name) for i, name in enumerate(NAMES)]


async def problems_of(pairs: list[tuple[Stage, FaultName]]) -> dict[str, tuple[str, ...]]:
    cells = await run_cells(pairs)
    return {f"{cell.fault} at {cell.stage}": cell.problems for cell in cells if cell.problems}


def test_every_fault_has_an_expected_outcome() -> None:
    assert set(EXPECTED) == set(FAULTS)
    assert len(STAGES) < len(NAMES), "each diagonal has every stage"


async def test_every_fault_and_every_stage_has_its_typed_outcome() -> None:
    assert await problems_of(diagonal(0)) == {}


@pytest.mark.slow
@pytest.mark.parametrize("offset", [3, 8, 13])
async def test_more_pairs_of_faults_and_stages(offset: int) -> None:
    assert await problems_of(diagonal(offset)) == {}


async def test_a_run_that_ends_otherwise_is_a_problem() -> None:
    """The check can fail: of a stage without the fault, and with a bound that is too small."""
    stage = replace(BY_NAME["gate: soft"], prompt="no such prompt")
    cell = await run_cell(stage, "server_error")
    assert cell.problems == (
        "the stage was not reached",
        "[] instead of ['provider_error']",
        "the memory was admitted",
    )
    cell = await run_cell(replace(BY_NAME["gate: soft"], asks=0), "server_error")
    assert cell.problems == ("2 requests, and 0 are the bound",)


async def test_the_matrix_is_a_table_of_groups_with_the_problems_marked() -> None:
    answer = await run_cell(BY_NAME["agent: answer"], "unauthorized")
    same = replace(answer, stage="another")
    bad = Cell(stage="s", fault="quota", outcomes=frozenset(), requests=0, problems=("wrong",))
    assert render([answer, same, bad]).splitlines() == [
        "* A: agent: answer; another",
        "* B: s",
        "",
        "| fault | A | B |",
        "|---|---|---|",
        "| `unauthorized` | model-auth |  |",
        "| `quota` |  | no harm! |",
    ]
