"""CPU cost of policy and rendering for one read: `python -m benchmarks.render`.

By default ten memories in thirty units, without any model. CPU time is that of the process, which a
busy machine distorts less than wall time. The attributes are random, so that every part of the
permission table is used.
"""

import argparse
import gc
import statistics
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import get_args

from rich.console import Console
from rich.table import Table

from memguard.methods.adjudication.ledger import compile_ledger
from memguard.methods.adjudication.permissions import PS_COLUMNS
from memguard.methods.adjudication.rendering import render_memories
from memguard.methods.adjudication.ruling import rule_on_units
from memguard.methods.adjudication.steps import costs_of
from memguard.schema.read import (
    Adjudication,
    Conflict,
    Ledger,
    PermissionSemantic,
    Rendering,
    Row,
    Situation,
)
from memguard.schema.units import Unit, UnitAttributes

_WORDS = "The user told us in spring that the harbour of the old town is worth a visit, number"
_ATTRIBUTES = ("kind", "subject", "epistemic", "temporality", "relevance")
_SITUATION = Situation(target="user", mode="recommendation")


def random_units(
    *, memories: int, units: int, rng: Random
) -> tuple[tuple[Unit, ...], Adjudication]:
    """Random units, and an adjudication with random attributes.

    Args:
        memories: How many memories the units belong to.
        units: How many units.
        rng: Source of randomness.
    """
    start = datetime(2024, 1, 1, tzinfo=UTC)
    created = tuple(
        Unit(
            id=f"m{n % memories}.{n}",
            memory_id=f"m{n % memories}",
            text=f"{_WORDS} {n}.",
            said_at=start + timedelta(days=n),
            score=rng.random(),
        )
        for n in range(units)
    )
    # Every attribute from the values of its column, so that any row of the table may match.
    rows = tuple(
        Row(
            unit_id=unit.id,
            attributes=UnitAttributes.model_validate(
                {name: rng.choice(PS_COLUMNS[name]) for name in _ATTRIBUTES}
            ),
            influence=rng.random(),
        )
        for unit in created
    )
    # One conflict in ten units: enough that conflicts are resolved, few enough to be realistic.
    pairs = tuple(
        Conflict(first=created[n].id, second=created[n + 1].id) for n in range(0, units - 1, 10)
    )
    return created, Adjudication(situation=_SITUATION, rows=rows, conflicts=pairs)


def compile_once(units: tuple[Unit, ...], adjudication: Adjudication) -> Ledger:
    """Compile the ledger as the read guard does."""
    spec = PermissionSemantic()
    rulings = rule_on_units(units, adjudication=adjudication, spec=spec)
    return compile_ledger(
        rulings,
        adjudication=adjudication,
        spec=spec,
        scheme="units",
        costs=costs_of(rulings),
        repeats={},
    ).ledger


def cpu_ms(run: Callable[[], object], *, times: int, rounds: int) -> tuple[float, float]:
    """CPU milliseconds of one run: median and minimum of several rounds."""
    durations: list[float] = []
    # The first run fills caches; a collection that earlier work made due is not this one's cost.
    run()
    gc.collect()
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(times):
            run()
        durations.append((time.process_time() - start) / times * 1000)
    return statistics.median(durations), min(durations)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.render")
    parser.add_argument("--memories", type=int, default=10, help="memories of one read")
    parser.add_argument("--units", type=int, default=30, help="units of them, all together")
    parser.add_argument("--times", type=int, default=200, help="reads in a round")
    parser.add_argument("--rounds", type=int, default=7, help="rounds")
    parser.add_argument("--seed", type=int, default=0, help="of the attributes")
    options = parser.parse_args(argv)

    units, adjudication = random_units(
        memories=options.memories, units=options.units, rng=Random(options.seed)
    )
    ledger = compile_once(units, adjudication)
    table = Table("step", "CPU ms, median", "fastest")

    def measure(name: str, run: Callable[[], object]) -> None:
        median, fastest = cpu_ms(run, times=options.times, rounds=options.rounds)
        table.add_row(name, f"{median:.3f}", f"{fastest:.3f}")

    def whole() -> str:
        return render_memories(compile_once(units, adjudication), rendering="channels")

    measure("policy and rendering", whole)
    measure("policy", lambda: compile_once(units, adjudication))
    # All renderings that exist, so that a new one is measured without a change here.
    for rendering in get_args(Rendering):
        measure(f"rendering, {rendering}", _render(ledger, rendering))
    console = Console()
    console.print(
        f"{options.memories} memories, {options.units} units, {len(ledger.shown)} of them shown"
    )
    console.print(table)


def _render(ledger: Ledger, rendering: Rendering) -> Callable[[], str]:
    return lambda: render_memories(ledger, rendering=rendering)


if __name__ == "__main__":
    main()
