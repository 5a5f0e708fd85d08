"""Look for known vulnerabilities in an environment: `python .ci/audit.py .venv/bin/python`.

pip-audit runs through pipx, so that the project does not depend on it. Without pipx or a network
nothing is audited, which is said and is no failure. A vulnerability without a fixed release is
printed and is no failure either: no upgrade would help.
"""

import json
import shutil
import subprocess
import sys
from typing import Any

_SECONDS = 600


def verdict(output: str, *, error: str) -> tuple[int, list[str]]:
    """The exit status and the lines to print, from what pip-audit wrote."""
    try:
        packages: list[dict[str, Any]] = json.loads(output)["dependencies"]
    except (ValueError, KeyError, TypeError):
        reason = (error.strip().splitlines() or ["no output"])[-1]
        return 0, [f"dependencies were not audited: {reason}"]
    audited = [package for package in packages if "skip_reason" not in package]
    lines = [f"{len(audited)} packages audited"]
    status = 0
    for package in audited:
        for entry in package.get("vulns", []):
            fixes = ", ".join(entry["fix_versions"])
            status = 1 if fixes else status
            advice = f"fixed in {fixes}" if fixes else "no fixed release"
            lines.append(f"{package['name']} {package['version']}: {entry['id']}, {advice}")
    return status, lines


def main(python: str) -> int:
    """Audit the environment of an interpreter, and print the result."""
    pipx = shutil.which("pipx")
    if pipx is None:
        sys.stdout.write("dependencies were not audited: pipx is not installed\n")
        return 0
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)  # noqa: S603 - the interpreter of the project
    command = [pipx, "run", "pip-audit", "--format=json", "--progress-spinner=off"]
    command += ["--skip-editable", "--path", packages.stdout.strip()]
    try:
        done = subprocess.run(  # noqa: S603 - constants
            command, check=False, capture_output=True, text=True, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        status, lines = verdict("", error=f"no answer after {error.timeout:g} seconds")
    else:
        status, lines = verdict(done.stdout, error=done.stderr)
    sys.stdout.write("\n".join(lines) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
