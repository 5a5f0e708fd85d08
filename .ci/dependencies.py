"""Print the installed dependencies of memguard, one a line, without those pinned to one version."""

import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path

_NAME = re.compile(r"([\w.-]+)(?:\[[\w,-]+\])?")
"""A name, with its extras as in `psycopg[binary]`."""


def dependencies() -> list[str]:
    """What `pyproject.toml` requires, bounds removed, as far as it is installed here."""
    file = Path(__file__).parents[1] / "pyproject.toml"
    project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
    required = chain(project["dependencies"], *project["optional-dependencies"].values())
    # An exact pin is a choice, not a bound: the weights of the embedder, for example.
    names = {match for text in required if "==" not in text and (match := _NAME.match(text))}
    return sorted({match[0] for match in names if _is_installed(match[1])} - {"langgraph-memguard"})


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    sys.stdout.write("\n".join(dependencies()) + "\n")
