"""The pages of read time show the tables and defaults of the code, and the golden drawings."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memguard import FactorCompiled, PermissionSemantic, RelevanceGate
from memguard.methods.adjudication.permissions import (
    FC_OPEN,
    FC_PERSONALIZATION,
    FC_SAFETY,
    FC_TABLE,
    PS_OPEN,
    PS_PERSONALIZATION,
    PS_SAFETY,
    PS_TABLE,
)
from memguard.methods.adjudication.tables import Table
from memguard.schema.units import CHANNEL_OF, Permission

ROOT = Path(__file__).parents[2]
TABLES = (
    ("factor-compiled", FC_TABLE),
    ("factor-compiled", FC_SAFETY),
    ("factor-compiled", FC_PERSONALIZATION),
    ("factor-compiled", FC_OPEN),
    ("permission-semantic", PS_TABLE),
    ("permission-semantic", PS_SAFETY),
    ("permission-semantic", PS_PERSONALIZATION),
    ("permission-semantic", PS_OPEN),
)
DEFAULT_ROW = re.compile(r"^\| `(\w+)` \| `([^`]*)` \|", re.MULTILINE)


def print_table(table: Table, *, names: Mapping[Permission, str] | None = None) -> str:
    """The table in Markdown; `names` are other names of the permissions, such as channels."""
    lines = ["| row | when | then | because |", "|---|---|---|---|"]
    for row in table.rows:
        parts = [
            f"{column} {'/'.join(f'`{value}`' for value in values)}"
            for column, values in row.when.items()
        ]
        then = names[row.then] if names else row.then
        lines.append(f"| `{row.id}` | {', '.join(parts) or 'else'} | `{then}` | {row.why} |")
    return "\n".join(lines)


def page_of(method: str) -> Path:
    return ROOT / "docs" / "methods" / f"{method}.md"


@pytest.mark.parametrize(("method", "table"), TABLES, ids=[table.name for _, table in TABLES])
def test_a_page_prints_the_table_that_rules(method: str, table: Table) -> None:
    names = CHANNEL_OF if method == "factor-compiled" else None
    printed = print_table(table, names=names)
    page = page_of(method)
    text = page.read_text(encoding="utf-8")
    mark = f"<!-- table {table.name} -->\n"
    before, found, after = text.partition(mark)
    assert found, f"{page.name} has no {mark.strip()}"
    shown, _, rest = after.lstrip("\n").partition("\n\n")
    if os.environ.get("MEMGUARD_GOLDEN") == "write":
        kept = rest if shown.startswith("|") else f"{shown}\n\n{rest}"
        page.write_text(f"{before}{mark}\n{printed}\n\n{kept}", encoding="utf-8")
        return
    assert shown == printed


@pytest.mark.parametrize("method", ["factor-compiled", "permission-semantic"])
def test_a_page_draws_the_golden_graph(method: str) -> None:
    golden = ROOT / "tests" / "golden" / "graphs" / f"{method.replace('-', '_')}.mmd"
    drawing = golden.read_text(encoding="utf-8").strip()
    text = page_of(method).read_text(encoding="utf-8")
    assert f"```mermaid\n{drawing}\n```" in text


@pytest.mark.parametrize(
    "spec",
    [FactorCompiled(), PermissionSemantic(), RelevanceGate()],
    ids=lambda spec: type(spec).__name__,
)
def test_every_default_is_stated(spec: Any) -> None:
    page = (ROOT / "docs" / "config.md").read_text(encoding="utf-8")
    section = page.split(f"## `{type(spec).__name__}`")[1].split("\n## ")[0]
    actual = {name: str(value) for name, value in spec.model_dump().items()}
    assert dict(DEFAULT_ROW.findall(section)) == actual
