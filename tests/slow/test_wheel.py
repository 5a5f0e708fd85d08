"""What is built from the repository, and what a pip user gets from it."""

import re
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path, PurePosixPath

import pytest

from memguard.errors import ErrorCode

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "memguard"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by the backend itself, which needs no network."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith("/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def test_the_wheel_has_what_users_need(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {PurePosixPath(name) for name in archive.namelist()}
    inside = {name for name in names if not name.parts[0].endswith(".dist-info")}
    assert {name.parts[0] for name in inside} == {"memguard"}
    assert {name.parts[1] for name in inside}.isdisjoint({"tests", "benchmarks", "docs"})
    source = {
        PurePosixPath(path.relative_to(ROOT).as_posix())
        for path in PACKAGE.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    # All modules, prompts and data, the type marker among them, and the page of the error codes.
    assert inside == source | {PurePosixPath("memguard/errors.md")}
    assert PurePosixPath("memguard/py.typed") in inside


def test_links_of_the_pypi_page_are_absolute(wheel: Path) -> None:
    page = metadata(wheel).get_payload()
    assert isinstance(page, str)
    targets = re.findall(r"\]\(([^)\s]+)\)", page)
    assert targets
    assert [target for target in targets if not re.match(r"https?://|#", target)] == []
    # Every link to the repository leads to a file or folder of it.
    for path in re.findall(r"langgraph-memguard/(?:blob/)?v[\d.]+/([^)#\s]+)", "\n".join(targets)):
        assert (ROOT / path).exists(), path
    pictures = re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", page)
    assert all(picture.startswith("https://raw.githubusercontent.com/") for picture in pictures)


def test_an_installed_package_explains_every_code(wheel: Path, tmp_path: Path) -> None:
    """From the files of the wheel alone; the checkout is not on the path."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = (
        "import memguard, memguard.cli.explain as explain;"
        "print(memguard.__file__);"
        "print(' '.join(explain.read_pages()))"
    )
    # `-P` keeps the working directory out; PYTHONPATH comes before any editable installation.
    out = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    assert Path(out[0]).is_relative_to(tmp_path)
    assert out[1].split() == [code.value for code in ErrorCode]
