"""What the package imports is declared, and what `memguard.compat` leans on is bounded."""

import ast
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TRAINING = frozenset({"torch"})
"""Imported when the verifier's network is trained, which users do not do."""


def requirements(*extras: str) -> dict[str, Requirement]:
    lines = [*PROJECT["dependencies"]]
    for extra in extras:
        lines += PROJECT["optional-dependencies"][extra]
    parsed = [Requirement(line) for line in lines]
    return {requirement.name: requirement for requirement in parsed}


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names - sys.stdlib_module_names - TRAINING - {"memguard"}


def test_every_import_is_declared() -> None:
    extras = [name for name in PROJECT["optional-dependencies"] if name != "dev"]
    declared = set(requirements(*extras))
    distributions = packages_distributions()
    undeclared = {
        f"{path.relative_to(ROOT)}: {module}"
        for path in sorted((ROOT / "memguard").rglob("*.py"))
        for module in imported(path)
        if declared.isdisjoint(distributions.get(module, []))
    }
    assert undeclared == set()


@pytest.mark.parametrize(
    "name", ["langgraph", "langchain-core", "langchain-openai", "chromadb", "onnxruntime"]
)
def test_what_compat_leans_on_has_an_upper_bound(name: str) -> None:
    operators = {specifier.operator for specifier in requirements()[name].specifier}
    assert "<" in operators
