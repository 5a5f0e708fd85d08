"""The tests that the threat model cites exist, and none of them skips in a clean clone."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "threat-model.md"
CITED = re.findall(r"\[`(test_\w+|Test\w+)`\]\(([^)#\s]+\.py)\)", PAGE.read_text(encoding="utf-8"))

SKIPS = {"skip", "skipif", "importorskip", "xfail", "data_file"}
"""Names that a test which may be skipped uses; `data_file` of `tests/cases.py` skips, too."""


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def definitions(tree: ast.Module) -> dict[str, ast.stmt]:
    """Functions and classes of the module by name, and what its names are assigned."""
    named: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            named[node.name] = node
        elif isinstance(node, ast.Assign):
            named |= {target.id: node for target in node.targets if isinstance(target, ast.Name)}
    for node in list(named.values()):
        if isinstance(node, ast.ClassDef):
            # Under the name of the method alone, as the page cites it.
            functions = (ast.FunctionDef, ast.AsyncFunctionDef)
            methods = [entry.name for entry in node.body if isinstance(entry, functions)]
            named |= {name: node for name in methods if name.startswith("test_")}
    return named


def names_in(node: ast.AST) -> Iterator[str]:
    for child in ast.walk(node):
        if isinstance(child, ast.Name):
            yield child.id
        elif isinstance(child, ast.Attribute):
            yield child.attr
        elif isinstance(child, ast.arg):
            yield child.arg  # a fixture


def skips_of(name: str, tree: ast.Module) -> set[str]:
    """What makes a test skip: in itself, in what it uses of its module, or for the module."""
    named = definitions(tree)
    pending, used = [name, "pytestmark"], set[str]()
    found: set[str] = set()
    while pending:
        current = pending.pop()
        if current in used or current not in named:
            continue
        used.add(current)
        names = set(names_in(named[current]))
        found |= names & SKIPS
        pending += names
    # A call at the top of the module skips all of it.
    calls = [node for node in tree.body if isinstance(node, ast.Expr)]
    return found | {skip for call in calls for skip in set(names_in(call)) & SKIPS}


def test_the_page_cites_tests() -> None:
    assert len(CITED) >= 20


@pytest.mark.parametrize(("name", "link"), CITED, ids=[name for name, _ in CITED])
def test_a_cited_test_exists_and_never_skips(name: str, link: str) -> None:
    tree = tree_of((PAGE.parent / link).resolve())
    assert name in definitions(tree), f"{link} has no {name}"
    assert skips_of(name, tree) == set()


def test_a_test_that_skips_would_be_noticed() -> None:
    text = """
needs = pytest.mark.skipif(True, reason="x")
def helper(): pytest.skip("x")
@pytest.fixture
def data(): return data_file("x")
@needs
def test_marked(): pass
def test_by_helper(): helper()
def test_by_fixture(data): pass
class TestAll:
    def test_in_class(self): helper()
def test_fine(): pass
"""
    tree = ast.parse(text)
    assert skips_of("test_fine", tree) == set()
    for name in ("test_marked", "test_by_helper", "test_by_fixture", "test_in_class", "TestAll"):
        assert skips_of(name, tree), name
    assert skips_of("test_fine", ast.parse("pytest.importorskip('x')\ndef test_fine(): pass"))
