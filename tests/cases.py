"""The public cases, and the evaluation data, which is not part of the repository."""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parent


@cache
def _cases() -> dict[str, dict[str, Any]]:
    lines = (TESTS / "data" / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["id"]: row for row in map(json.loads, lines)}


def case_input(case_id: str) -> dict[str, Any]:
    """The `input` of the public case with this id; see `tests/data/README.md`."""
    return _cases()[case_id]["input"]


def data_file(*parts: str) -> Path:
    """A file of the evaluation data; skips the test where the file is missing."""
    root = Path(os.environ.get("MEMGUARD_DATA", ROOT.parent / "shared" / "data"))
    path = root.joinpath(*parts)
    if not path.is_file():
        pytest.skip(f"{'/'.join(parts)} is missing; set MEMGUARD_DATA to the folder of data sets")
    return path
