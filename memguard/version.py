"""The version of the installed package."""

import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

DISTRIBUTION = "langgraph-memguard"


def read_version() -> str:
    """The version from the package metadata, or from `pyproject.toml` in a plain checkout."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        # A checkout on PYTHONPATH has no metadata; the metadata is built from its project file.
        project = Path(__file__).parents[1] / "pyproject.toml"
        return str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"])
