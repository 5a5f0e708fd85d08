"""Two processes whose guards correct the same memory at once, on one Chroma server."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memguard import create_write_guard, errors
from memguard.schema.memory import lifecycle_of
from tests.chroma_server import ChromaServer
from tests.unit.write.two_guards import NAMESPACE, open_store

ROOT = Path(errors.__file__).parents[1]
CHILD = Path(__file__).with_name("two_guards.py")
ROUNDS = 3

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("shared", [True, False], ids=["one-journal", "two-journals"])
async def test_neither_loses_a_memory_and_the_latest_one_holds(
    tmp_path: Path, shared: bool
) -> None:
    with ChromaServer(tmp_path / "server") as server:
        journals = {name: tmp_path / ("j.db" if shared else f"{name}.db") for name in _NAMES}
        async with open_store(server.port) as store:
            guard = create_write_guard(
                "local", store=store, namespace=NAMESPACE, receipts=journals["Left"]
            )
            first = {"role": "user", "content": "I live in Porto.", "at": "2025-12-01"}
            await guard.ainvoke({"messages": [first]})
            run_both(server.port, journals)
            items = await store.asearch(NAMESPACE, limit=100)
    texts = {item.key: item.value["content"] for item in items}
    assert len(texts) == 1 + 2 * ROUNDS
    lifecycles = {item.key: lifecycle_of(item.value) for item in items}
    ended = {key: cycle for key, cycle in lifecycles.items() if not cycle.is_current}
    # Whatever was replaced names what took its place.
    assert {cycle.superseded_by for cycle in ended.values()} <= set(texts)
    current = {key: cycle for key, cycle in lifecycles.items() if cycle.is_current}
    assert "I live in Madrid" in " ".join(texts[key] for key in current)
    # After three refusals a memory is stored in conflict; no two hold as if nothing were wrong.
    assert sum(not lifecycle.conflicts_with for lifecycle in current.values()) <= 1


_NAMES = ("Left", "Right")


def run_both(port: int, journals: dict[str, Path]) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, str(CHILD), str(port), str(path), name],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, path in journals.items()
    ]
    for child in children:
        output, _ = child.communicate(timeout=180)
        assert child.returncode == 0
        assert output.split() == ["stored"] * ROUNDS
