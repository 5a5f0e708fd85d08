"""Check that a tag, the version and the changelog agree: `python .ci/release.py v1.2.3`."""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def problems(tag: str, *, root: Path = ROOT) -> list[str]:
    """What has to be corrected before the tag can be released; empty if nothing."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    version = str(project["version"])
    found: list[str] = []
    if tag != f"v{version}":
        found.append(f"the tag is {tag!r} and the version in pyproject.toml is {version!r}")
    if not re.search(rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE):
        found.append(f"CHANGELOG.md has no heading '## {version} - YYYY-MM-DD'")
    return found


if __name__ == "__main__":
    if messages := problems(sys.argv[1]):
        sys.exit("; ".join(messages))
