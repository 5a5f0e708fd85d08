"""`memguard models`, against a server on the loopback address."""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.test_cli import Cli
from tests.unit.llm.file_server import FileServer, status

CONTENT = b"GGUF" + bytes(range(256)) * 40
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Cli:
    monkeypatch.setenv("MEMGUARD_MODELS", str(tmp_path / "models"))
    return Cli(tmp_path, None, monkeypatch=monkeypatch, capsys=capsys)


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer(CONTENT) as running:
        yield running


@pytest.mark.parametrize("words", [("models",), ("models", "list")])
def test_list(shell: Cli, words: tuple[str, ...]) -> None:
    out = shell.run(*words)
    for name in ("qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b", "smollm2-135m"):
        assert re.search(rf"^absent +{re.escape(name)} .*Apache-2.0", out, re.MULTILINE)
    assert "1.12 GB" in out
    assert re.search(r"AUC 0\.\d\d \(0\.\d\d to 0\.\d\d\)", out)
    assert str(shell.folder / "models") in out
    body = shell.json(*words)
    assert body["folder"] == str(shell.folder / "models")
    assert {entry["state"] for entry in body["models"]} == {"absent"}
    assert all(len(entry["model"]["sha256"]) == 64 for entry in body["models"])


def test_a_narrow_terminal_loses_nothing(shell: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = shell.run("models").split()
    monkeypatch.setenv("COLUMNS", "80")
    narrow = shell.run("models")
    assert narrow.split() == wide
    assert max(map(len, narrow.splitlines())) <= 80


def test_from_pull_to_remove(shell: Cli, server: FileServer) -> None:
    out = shell.run("models", "pull", "tiny", "--url", server.url, "--sha256", SHA256)
    assert SHA256 in out
    assert "--model local:tiny" in out
    path = shell.run("models", "path", "tiny").strip()
    assert Path(path).read_bytes() == CONTENT
    listed = shell.json("models")["models"][-1]
    assert (listed["model"]["name"], listed["state"]) == ("tiny", "pulled")
    out = shell.run("models")
    assert re.search(r"^pulled +tiny +0 MB, licence unknown$", out, re.MULTILINE)
    assert "run memguard calibrate" in out
    found = shell.json("doctor")["pulled"]
    assert found == {"ok": True, "state": "ok", "found": f"tiny, in {shell.folder / 'models'}"}
    assert shell.json("models", "remove", "tiny") == {"name": "tiny", "freed": len(CONTENT)}
    assert "no local model" in shell.json("doctor")["pulled"]["found"]


def test_a_file_in_place_of_a_download(shell: Cli) -> None:
    (shell.folder / "mine.gguf").write_bytes(CONTENT)
    stored = shell.json("models", "pull", "tiny", "--from", "mine.gguf")
    assert (stored["state"], stored["arrived"]) == ("pulled", len(CONTENT))
    assert stored["model"]["sha256"] == SHA256
    assert "removed tiny" in shell.run("models", "remove", "tiny")


def test_what_fails_says_what_to_do(shell: Cli, server: FileServer) -> None:
    out = shell.run("models", "path", "smollm2-135m", code=2)
    assert "memguard models pull smollm2-135m" in out
    assert "memguard explain model-absent" in out
    assert "model-unknown" in shell.run("models", "remove", "nothing", code=2)
    pull = ("models", "pull", "tiny", "--url", server.url)
    assert "--sha256" in shell.run(*pull, code=2)
    server.acts.append(status(404))
    error = shell.json(*pull, "--sha256", SHA256, code=1)["error"]
    assert error["code"] == "model-download"
    assert "404" in error["message"]
    out = shell.run(*pull, "--sha256", "0" * 64, code=1)
    assert "memguard explain model-digest" in out


def test_every_command_says_what_to_pull(shell: Cli) -> None:
    talk = json.dumps([{"id": "1", "role": "user", "content": "I live in Porto."}])
    (shell.folder / "talk.json").write_text(talk, encoding="utf-8")
    words = ("--model", "local:smollm2-135m")
    for command in (
        ("check", "The user lives in Porto.", "--source", "talk.json"),
        ("write", "talk.json", "--user", "ana"),
        ("recall", "Where?", "--user", "ana"),
        ("calibrate",),
        ("chat", "--user", "ana"),
    ):
        assert "memguard models pull smollm2-135m" in shell.run(*command, *words, code=2), command
    found = shell.json("doctor", *words, code=1)["model"]
    assert "memguard models pull smollm2-135m" in found["found"]


def test_an_interrupted_pull_is_reported(shell: Cli) -> None:
    (shell.folder / "models").mkdir()
    (shell.folder / "models" / "smollm2-135m.gguf.part").write_bytes(CONTENT)
    assert re.search(r"^partial +smollm2-135m +0 MB of 98 MB", shell.run("models"), re.MULTILINE)
    found = shell.json("doctor")["pulled"]
    assert found["state"] == "warning"
    assert "smollm2-135m" in found["found"]
