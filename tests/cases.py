"""Failing inputs from public bug reports, read in place."""

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent


@cache
def _cases() -> dict[str, dict[str, Any]] | None:
    path = Path(os.environ.get("MEMGUARD_CASES", ROOT.parent / "shared" / "cases" / "cases.jsonl"))
    if not path.is_file():
        return None
    lines = path.read_text(encoding="utf-8").splitlines()
    return {row["id"]: row for row in map(json.loads, lines)}


def case_input(case_id: str) -> dict[str, Any]:
    """The input of a case; skips the test where the cases are not at hand."""
    cases = _cases()
    if cases is None:
        pytest.skip("the file of public cases is not here; set MEMGUARD_CASES")
    return cases[case_id]["input"]


def data_file(*parts: str) -> Path:
    """A file of the evaluation data; skips the test where it is not at hand."""
    root = Path(os.environ.get("MEMGUARD_DATA", ROOT.parent / "shared" / "data"))
    path = root.joinpath(*parts)
    if not path.is_file():
        pytest.skip(f"{'/'.join(parts)} is not here; set MEMGUARD_DATA")
    return path
