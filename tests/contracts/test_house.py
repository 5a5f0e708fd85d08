"""The rules of the house that a machine can check."""

import ast
import graphlib
import importlib
import inspect
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import grimp
import pytest

import memguard
from memguard.errors import ErrorCode

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "memguard"
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60
MAX_STUDIO_LINES = 12


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its signature and docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_files_stay_small() -> None:
    lengths = {name_of(path): len(path.read_text("utf-8").splitlines()) for path in modules()}
    offenders = {name: lines for name, lines in lengths.items() if lines > MAX_FILE_LINES}
    assert not offenders, offenders


def test_functions_stay_small() -> None:
    lengths = {
        f"{name_of(path)}:{node.name}": body_lines(node)
        for path in modules()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    offenders = {name: lines for name, lines in lengths.items() if lines > MAX_FUNCTION_LINES}
    assert not offenders, offenders


def test_no_modules_import_each_other() -> None:
    """Imports inside functions count, imports for annotations alone do not."""
    graph = grimp.build_graph("memguard", exclude_type_checking_imports=True, cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    # A CycleError names the modules of a circle.
    graphlib.TopologicalSorter(imports).prepare()


def test_init_files_hold_no_logic() -> None:
    allowed = (ast.Expr, ast.Import, ast.ImportFrom, ast.If, ast.Assign, ast.AnnAssign)
    for path in PACKAGE.rglob("__init__.py"):
        for node in tree_of(path).body:
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


def test_public_calls_take_one_positional_argument_at_most() -> None:
    """A method that overrides one of another library keeps the signature of that library."""
    arguments: dict[str, list[str]] = {}
    for name in memguard.__all__:
        value = getattr(memguard, name)
        if inspect.isfunction(value):
            arguments[name] = positional(value)
        elif inspect.isclass(value):
            for method, function in inspect.getmembers(value, inspect.isroutine):
                if defined_here(value, method):
                    arguments[f"{name}.{method}"] = positional(function)
    offenders = {
        name: names
        for name, names in arguments.items()
        # An edit reads like a sentence: which memory, and what it says now.
        if len(names) > 1 and name not in {"Memories.edit", "Memories.aedit"}
    }
    assert not offenders, offenders


def defined_here(kind: type, method: str) -> bool:
    """Whether a public method or constructor is ours, and overrides no other library's."""
    if method.startswith("_") and method != "__init__":
        return False
    owners = [base for base in kind.__mro__ if method in vars(base)]
    foreign = [base for base in owners if not base.__module__.startswith("memguard")]
    return bool(owners) and (not foreign or (method == "__init__" and owners[0] not in foreign))


def positional(function: Any) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    kinds = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
    return [one.name for one in parameters if one.kind in kinds and one.name not in {"self", "cls"}]


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
        assert len(text.splitlines()) <= MAX_STUDIO_LINES
        assert re.search(rf"^{name} = ", text, re.MULTILINE)


def test_no_file_or_class_has_an_empty_name() -> None:
    files = [
        name_of(path) for path in modules() if re.search(r"util|helper|manager|_v\d", path.stem)
    ]
    classes = [
        f"{name_of(path)}:{node.name}"
        for path in modules()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef)
        and re.search(r"Manager|Handler|Helper|Util|\d$", node.name)
    ]
    offenders = files + classes
    assert not offenders, offenders


def test_the_readme_has_exactly_two_set_up_commands() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    setup = readme.split("## Set-up")[1].split("\n## ")[0]
    assert re.findall(r"^make \w+$", setup, re.MULTILINE) == ["make demo", "make test"]
