"""Kills, full disks and read-only folders: short versions of `python -m benchmarks.crash`."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="it forks")]


def _run(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_kills_lose_nothing() -> None:
    out = _run("-m", "benchmarks.crash", "--trials", "3", "--seconds", "0.5")
    assert "| store | 3 |" in out


def test_a_full_disk_is_reported_and_loses_nothing(tmp_path: Path) -> None:
    found = json.loads(_run("tests/slow/bad_disk.py", "full", str(tmp_path / "m")))
    assert found["codes"]
    assert set(found["codes"]) <= {"store-failed", "receipt-failed"}
    assert found["after"] == []
    assert found["agrees"]
    assert found["stored"] == found["claimed"]


def test_a_read_only_folder_is_a_typed_error() -> None:
    # Not `tmp_path`, whose parents only this user may enter.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "m"
        found: dict[str, Any] = json.loads(_run("tests/slow/bad_disk.py", "read-only", str(folder)))
    assert found["codes"] == ["store-path", "store-path", "store-path"]
