"""What policy and rendering cost for one read: `python -m memguard.bench.render`.

Ten memories in thirty units, or as many as you say: CPU milliseconds of ruling, settling, choosing
and rendering, without any model. CPU is that of the process, so a busy machine blurs it less than
it blurs the clock. The attributes are drawn at random, so that every part of the table has its
turn.
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

from memguard.adjudication.steps import costs_of
from memguard.policy.ledger import compile_ledger, rule_on_units
from memguard.policy.permissions import COLUMNS
from memguard.rendering.memories import render_memories
from memguard.schema.ledger import Adjudication, Conflict, Ledger, Row
from memguard.schema.read import Situation
from memguard.schema.read_config import PermissionSemantic, Rendering
from memguard.schema.units import Unit, UnitAttributes

_WORDS = "The user told us in spring that the harbour of the old town is worth a visit, number"
_ATTRIBUTES = ("kind", "subject", "epistemic", "temporality", "relevance")
_SITUATION = Situation(target="user", mode="recommendation")


def made_up(*, memories: int, units: int, rng: Random) -> tuple[tuple[Unit, ...], Adjudication]:
    """Units of some memories, and what an adjudicator might have found of them."""
    began = datetime(2024, 1, 1, tzinfo=UTC)
    made = tuple(
        Unit(
            id=f"m{n % memories}.{n}",
            memory_id=f"m{n % memories}",
            text=f"{_WORDS} {n}.",
            said_at=began + timedelta(days=n),
            score=rng.random(),
        )
        for n in range(units)
    )
    rows = tuple(
        Row(
            unit_id=unit.id,
            attributes=UnitAttributes.model_validate(
                {name: rng.choice(COLUMNS[name]) for name in _ATTRIBUTES}
            ),
            influence=rng.random(),
        )
        for unit in made
    )
    pairs = tuple(
        Conflict(first=made[n].id, second=made[n + 1].id) for n in range(0, units - 1, 10)
    )
    return made, Adjudication(situation=_SITUATION, rows=rows, conflicts=pairs)


def compile_once(units: tuple[Unit, ...], found: Adjudication) -> Ledger:
    """The ledger, as the graph makes it."""
    spec = PermissionSemantic()
    rulings = rule_on_units(units, adjudication=found, spec=spec)
    return compile_ledger(
        rulings,
        adjudication=found,
        spec=spec,
        scheme="units",
        costs=costs_of(rulings),
        repeats={},
    ).ledger


def cpu_ms(run: Callable[[], object], *, times: int, rounds: int) -> tuple[float, float]:
    """CPU milliseconds of one run: the median and the fastest of several rounds."""
    found: list[float] = []
    run()
    gc.collect()
    for _ in range(rounds):
        began = time.process_time()
        for _ in range(times):
            run()
        found.append((time.process_time() - began) / times * 1000)
    return statistics.median(found), min(found)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m memguard.bench.render")
    parser.add_argument("--memories", type=int, default=10, help="memories of one read")
    parser.add_argument("--units", type=int, default=30, help="units of them, all together")
    parser.add_argument("--times", type=int, default=200, help="reads in a round")
    parser.add_argument("--rounds", type=int, default=7, help="rounds")
    parser.add_argument("--seed", type=int, default=0, help="of the attributes")
    options = parser.parse_args(argv)

    units, found = made_up(memories=options.memories, units=options.units, rng=Random(options.seed))
    ledger = compile_once(units, found)
    table = Table("step", "CPU ms, median", "fastest")

    def measure(name: str, run: Callable[[], object]) -> None:
        median, fastest = cpu_ms(run, times=options.times, rounds=options.rounds)
        table.add_row(name, f"{median:.3f}", f"{fastest:.3f}")

    def whole() -> str:
        return render_memories(compile_once(units, found), rendering="channels")

    measure("policy and rendering", whole)
    measure("policy", lambda: compile_once(units, found))
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
