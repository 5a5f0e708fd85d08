"""The rules of the house that a machine can check."""

import ast
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import memguard
from memguard.errors import ErrorCode

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "memguard"
MOST_LINES = 600
MOST_FUNCTION_LINES = 40
MOST_STUDIO_LINES = 12


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function, its signature and docstring left out."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_stay_small(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES
    for function in functions(path):
        assert body_lines(function) <= MOST_FUNCTION_LINES, function.name


def test_init_files_hold_no_logic() -> None:
    allowed = (ast.Expr, ast.Import, ast.ImportFrom, ast.If, ast.Assign, ast.AnnAssign)
    for path in PACKAGE.rglob("__init__.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                assert node.name in {"__getattr__", "__dir__", "main"}, path
            else:
                assert isinstance(node, allowed), path


def test_the_public_surface_is_sorted_complete_and_loads() -> None:
    assert memguard.__all__ == sorted(memguard.__all__)
    for name in memguard.__all__:
        assert getattr(memguard, name) is not None
    with pytest.raises(AttributeError):
        _ = memguard.nothing_of_that_name
    assert set(dir(memguard)) == set(memguard.__all__)


def test_every_all_is_sorted_and_true() -> None:
    for path in modules():
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if name.endswith("__main__") or "torch" in path.read_text(encoding="utf-8"):
            continue
        exported = getattr(importlib.import_module(name), "__all__", None)
        if exported is not None:
            assert list(exported) == sorted(exported), name


def test_arguments_after_the_first_are_named_in_public_functions() -> None:
    bad: list[str] = []
    for path in modules():
        if "cli" in path.parts or "bench" in path.parts or "testing" in path.parts:
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if node.name.startswith("_"):
                continue
            if len(node.args.args) + len(node.args.posonlyargs) > 3:
                bad.append(f"{path.relative_to(ROOT)}:{node.name}")
    assert bad == []


def test_importing_memguard_loads_nothing_heavy() -> None:
    heavy = ["pydantic", "langgraph", "langchain_core", "openai", "chromadb", "numpy", "rich"]
    code = (
        "import sys, memguard, memguard.cli.app;"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_every_error_code_has_its_heading() -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    headings = re.findall(r"^### `([a-z-]+)`$", page, re.MULTILINE)
    assert headings == [code.value for code in ErrorCode]


def test_studio_entries_are_short_and_exist() -> None:
    config = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
    for target in config["graphs"].values():
        file, _, name = target.partition(":")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert len(text.splitlines()) <= MOST_STUDIO_LINES
        assert re.search(rf"^{name} = ", text, re.MULTILINE)


def test_words_that_are_not_used() -> None:
    for path in modules():
        assert not re.search(r"utils|helper|manager|_v\d", path.stem), path
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                assert not re.search(r"Manager|Handler|Helper|Engine2", node.name), node.name


def test_the_readme_has_exactly_two_set_up_commands() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    setup = readme.split("## Set-up")[1].split("\n## ")[0]
    assert re.findall(r"^make \w+$", setup, re.MULTILINE) == ["make demo", "make test"]
