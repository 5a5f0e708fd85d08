"""Private and undocumented APIs of other libraries are used in `memguard/compat.py` alone."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNDOCUMENTED = frozenset({
    "chromadb.api.ServerAPI",
    "chromadb.config.System",
    "langchain_core.runnables.config.var_child_runnable_config",
    "langgraph.constants.CONF",
    "langgraph.constants.CONFIG_KEY_CHECKPOINTER",
    "langgraph.store.base.batch.AsyncBatchedBaseStore",
    "onnxruntime.capi.onnxruntime_pybind11_state",
})  # fmt: skip
"""Names without an underscore that no documentation has."""
ATTRIBUTES = frozenset({"configuration_json", "root_async_client"})
"""Attributes without an underscore that no documentation has."""
SELF = frozenset({"self", "cls", "_self"})


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in {"_", "_replace"}


def uses(tree: ast.AST) -> Iterator[str]:
    """Private APIs that a module uses, as they are written there.

    An attribute that the module itself sets is its own, whatever the object is called.
    """
    defined = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    } | {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            yield from (name for name in names if any(map(is_private, name.split("."))))
        elif isinstance(node, ast.ImportFrom):
            yield from imported(node)
        elif isinstance(node, ast.Attribute):
            mine = isinstance(node.value, ast.Name) and node.value.id in SELF
            if (
                is_private(node.attr) and not mine and node.attr not in defined
            ) or node.attr in ATTRIBUTES:
                yield ast.unparse(node)
        elif isinstance(node, ast.Constant) and str(node.value).startswith("__pregel"):
            yield repr(node.value)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in {"getattr", "hasattr"}:
            name = node.args[1] if len(node.args) > 1 else None
            if isinstance(name, ast.Constant) and (
                is_private(str(name.value)) or name.value in ATTRIBUTES
            ):
                yield ast.unparse(node)


def imported(node: ast.ImportFrom) -> Iterator[str]:
    module = node.module or ""
    for alias in node.names:
        name = f"{module}.{alias.name}"
        if not module.startswith("memguard") and (
            any(map(is_private, name.split("."))) or name in UNDOCUMENTED
        ):
            yield name


@pytest.mark.parametrize(
    "code",
    [
        "from langgraph._internal._constants import CONF",
        "from langchain_core.runnables.config import var_child_runnable_config",
        "import _thread",
        "store._loop",
        "getattr(chat, '_llm_type', None)",
        "getattr(chat, 'root_async_client', None)",
        "config['__pregel_read']",
    ],
)
def test_a_private_api_is_noticed(code: str) -> None:
    assert list(uses(ast.parse(code)))


def test_only_compat_uses_private_apis() -> None:
    broken = {
        str(path.relative_to(ROOT)): names
        for folder in ("memguard", "graphs", "examples")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path.name != "compat.py"
        and (names := sorted(set(uses(ast.parse(path.read_text(encoding="utf-8"))))))
    }
    assert broken == {}


def test_compat_has_a_test_for_every_function() -> None:
    tested = (ROOT / "tests/unit/test_compat.py").read_text(encoding="utf-8")
    compat = ast.parse((ROOT / "memguard/compat.py").read_text(encoding="utf-8"))
    names = [node.name for node in compat.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert [name for name in names if f"compat.{name}" not in tested] == []
