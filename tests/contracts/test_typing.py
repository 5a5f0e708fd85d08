"""A type checker knows what memguard returns and takes, in a script of a user."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "tests" / "data" / "typing"

pytestmark = pytest.mark.slow
pytest.importorskip("pyright", reason="pyright is not installed")


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[int]]:
    """Lines with an error, by script. Both are checked at once: starting pyright takes longest."""
    folder = tmp_path_factory.mktemp("user") / "project"
    shutil.copytree(SCRIPTS, folder)
    config = folder / "pyrightconfig.json"
    settings = {
        "extraPaths": [str(ROOT)],
        "typeCheckingMode": "standard",
        "reportUnusedExpression": False,
    }
    config.write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--project", str(config), "--outputjson"]
    command += ["--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 2, report
    found: dict[str, set[int]] = {"right.py": set(), "wrong.py": set()}
    for problem in report["generalDiagnostics"]:
        line = problem["range"]["start"]["line"] + 1
        found[Path(problem["file"]).name].add(line)
    return found


def test_right_code_passes(problems: dict[str, set[int]]) -> None:
    assert problems["right.py"] == set()


def test_wrong_code_fails_where_it_is_wrong(problems: dict[str, set[int]]) -> None:
    lines = (SCRIPTS / "wrong.py").read_text(encoding="utf-8").splitlines()
    marked = {number for number, line in enumerate(lines, start=1) if re.search("# wrong$", line)}
    assert len(marked) > 10
    assert problems["wrong.py"] == marked
