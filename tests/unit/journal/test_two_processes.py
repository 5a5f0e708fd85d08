"""Two processes that supersede the same memories at once, on one Chroma server."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from memguard import errors
from memguard.journal.audit import audit
from memguard.journal.commit import commit
from memguard.journal.journal import Journal
from memguard.journal.receipts import ReceiptLog
from memguard.schema.memory import lifecycle_of, record_key
from tests.chroma_server import ChromaServer
from tests.unit.journal.journal_append import ANA, receipt
from tests.unit.journal.two_writers import old_record, open_store

ROOT = Path(errors.__file__).parents[1]
CHILD = Path(__file__).with_name("two_writers.py")
NAMES = ("left", "right")
ROUNDS = 12

pytestmark = pytest.mark.slow


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    with ChromaServer(tmp_path / "server") as server:
        yield server.port


@pytest.mark.parametrize("shared", [True, False], ids=["one-journal", "two-journals"])
async def test_one_of_two_supersedes_and_none_is_lost(tmp_path: Path, port: int, shared: bool):
    paths = {name: tmp_path / ("log.db" if shared else f"{name}.db") for name in NAMES}
    async with open_store(port) as store, await Journal.aopen(paths["left"]) as journal:
        await commit(journal, store, [receipt(f"old-{number}") for number in range(ROUNDS)])
        ends = run_both(tmp_path, port, paths)
        counts: Counter[str] = Counter()
        for number in range(ROUNDS):
            old = old_record(number)
            item = await store.aget(ANA, old.key)
            assert item is not None
            keys = {name: record_key(receipt(f"{name}-{number}").candidate.text) for name in NAMES}
            results = {name: ends[f"{name}-{number}"] for name in NAMES}
            # Exactly one holds, and it is the one that the store names.
            (winner,) = [name for name in NAMES if results[name] == "holds"]
            (loser,) = set(NAMES) - {winner}
            assert lifecycle_of(item.value).superseded_by == keys[winner]
            assert await store.aget(ANA, keys[winner]) is not None
            losing = await store.aget(ANA, keys[loser])
            if results[loser] == "refused":
                assert losing is None
            else:
                # It is stored, and nothing is served as certain.
                assert losing is not None
                assert lifecycle_of(losing.value).conflicts_with == (keys[winner],)
            counts[results[loser]] += 1
        for path in dict.fromkeys(paths.values()):
            async with await Journal.aopen(path) as log:
                compared = await audit(log, store)
                assert (compared.without_record, compared.unmarked, compared.pending) == (
                    (),
                    (),
                    (),
                )
                refused = [name for name, end in ends.items() if end == "refused"]
                assert not [name for name in refused if await ReceiptLog(log).astate(name)]
        assert not shared or counts == {"refused": ROUNDS}


def run_both(folder: Path, port: int, paths: dict[str, Path]) -> dict[str, str]:
    meeting = folder / "meeting"
    meeting.mkdir()
    children = [
        subprocess.Popen(
            [
                *(sys.executable, str(CHILD), str(meeting), str(port)),
                *(str(paths[name]), name, str(ROUNDS)),
            ],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in NAMES
    ]
    ends: dict[str, str] = {}
    for child in children:
        output, _ = child.communicate(timeout=180)
        assert child.returncode == 0
        ends |= json.loads(output)
    return ends
