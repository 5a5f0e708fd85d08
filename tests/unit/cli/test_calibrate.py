"""`memguard calibrate`: pairs, runner, record, output, and what doctor makes of it."""

# pyright: reportUnknownLambdaType=false

import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memguard.calibration import (
    CalibrationRecord,
    find_records,
    keep_record,
    load_pairs,
    measure_judge,
)
from memguard.cli import main
from memguard.errors import ErrorCode, ModelConfigurationError, StoreConfigurationError
from memguard.llm.models import resolve_model
from memguard.methods.consistency_gate.config import ConsistencyGate
from memguard.prompts import load_prompt
from memguard.testing import LoopbackModelServer, ScriptedChatModel, ServerReply

RIGHT = {one.text for one in load_pairs() if one.is_supported}


def memory_in(prompt: str) -> str:
    match = re.search(r"<memory>\n(.*)\n</memory>", prompt)
    assert match is not None
    return json.loads(match[1])


def knowing(right: str, wrong: str) -> ScriptedChatModel:
    """A judge that knows the labels, and says so in these words."""
    return ScriptedChatModel(
        rules=[
            (lambda prompt: memory_in(prompt) in RIGHT, right),
            ("<memory>", wrong),
        ],
        supports_n=True,
    )


def answering(right: str, wrong: str) -> Callable[[Any], str]:
    def answer(request: Any) -> str:
        return right if memory_in(request["messages"][-1]["content"]) in RIGHT else wrong

    return answer


# --- the pairs ----------------------------------------------------------------------------------


def test_the_pairs_are_balanced_and_differ_in_one_place() -> None:
    memories = load_pairs()
    assert len(memories) == 60
    assert Counter(one.is_supported for one in memories) == {True: 30, False: 30}
    assert len({one.id for one in memories}) == 60
    for right, wrong in zip(memories[::2], memories[1::2], strict=True):
        assert right.source == wrong.source
        assert (right.is_supported, wrong.is_supported) == (True, False)
        assert right.text != wrong.text
    kinds = {"number", "name", "date", "place", "negation", "subject"}
    assert {one.change for one in memories} == kinds | {"said by assistant", "hypothetical"}
    assert all(one.source.has_user_words for one in memories)


def test_a_part_of_the_pairs_is_mixed() -> None:
    part = load_pairs(16)
    assert Counter(one.is_supported for one in part) == {True: 8, False: 8}
    assert len({one.change for one in part}) == 8
    assert len(load_pairs(1)) == 2


# --- the runner ---------------------------------------------------------------------------------


async def test_a_perfect_judge_has_an_area_of_one() -> None:
    progress: list[str] = []
    measured = await measure_judge(
        knowing('{"score": 0.6}', '{"score": 0.2}'),
        memories=load_pairs(20),
        spec=ConsistencyGate(k=3),
        on_judged=lambda judged: progress.append(judged.memory.id),
    )
    figures = measured.calibration
    assert figures is not None
    assert (figures.auc, figures.is_chance) == (1.0, False)
    assert figures.admits_nothing, "0.6 is below the threshold in force"
    assert figures.suggested is not None
    assert figures.suggested.tau == 0.4
    assert (measured.usage.calls, len(progress)) == (20, 20)
    assert measured.prompt_digest
    assert [one.memory for one in measured.judged] == list(load_pairs(20))


async def test_unusable_answers_are_not_scores() -> None:
    measured = await measure_judge(
        knowing('{"score": 0.9}', "I would rather not say."),
        memories=load_pairs(6),
        spec=ConsistencyGate(k=1),
    )
    assert measured.inconclusive == {"supported": 0, "changed": 3}
    assert measured.calibration is None


async def test_all_samples_are_drawn() -> None:
    model = ScriptedChatModel(rules=[("<memory>", '{"score": 0.9}')])
    await measure_judge(model, memories=load_pairs(2), spec=ConsistencyGate(k=5))
    assert len(model.calls) == 10, "an early stop would change the mean that is measured"


async def test_a_model_that_cannot_be_used_ends_the_run() -> None:
    with LoopbackModelServer(script=[ServerReply.error(401)] * 60) as server:
        model = resolve_model("openai:m", base_url=server.url)
        with pytest.raises(ModelConfigurationError):
            await measure_judge(model, memories=load_pairs(), spec=ConsistencyGate(k=1))
        assert len(server.chats) == 1


# --- the record ---------------------------------------------------------------------------------


def record(**changes: Any) -> CalibrationRecord:
    values: dict[str, Any] = {
        "model": "openai:m",
        "variant": "soft",
        "k": 5,
        "prompt": "abc",
        "at": "2026-01-02T00:00:00Z",
        "memories": 60,
        "inconclusive": 0,
        "auc": 0.9,
        "auc_low": 0.8,
        "auc_high": 0.95,
        "tau": 0.7,
        "suggested_tau": 0.4,
        "target": 0.1,
    }
    return CalibrationRecord(**{**values, **changes})


def test_a_record_replaces_the_last_of_the_same_model_and_variant(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "yet"
    assert find_records(folder, model="openai:m") == ()
    keep_record(folder, record(auc=0.5))
    keep_record(folder, record(model="openai:other"))
    keep_record(folder, record(variant="logprob", at="2025-01-01T00:00:00Z"))
    keep_record(folder, record())
    assert find_records(folder, model="openai:m") == (
        record(variant="logprob", at="2025-01-01T00:00:00Z"),
        record(),
    )
    assert [file.name for file in folder.iterdir()] == ["calibration.json"]


@pytest.mark.parametrize("text", ["{", "[]", '{"version": 1, "records": [{"model": 1}]}'])
def test_a_broken_record_says_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / "calibration.json").write_text(text)
    with pytest.raises(StoreConfigurationError, match="delete it and calibrate again") as caught:
        find_records(tmp_path, model="m")
    assert caught.value.code == ErrorCode.STORE_PATH


def test_a_record_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreConfigurationError, match="another --store"):
        keep_record(tmp_path / "file" / "store", record())


# --- the command --------------------------------------------------------------------------------


class Cli:
    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys
        monkeypatch.chdir(folder)
        monkeypatch.setenv("COLUMNS", "300")

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
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(tmp_path, monkeypatch, capsys)


def ask_for(server: LoopbackModelServer) -> list[str]:
    return ["--model", "openai:m", "--base-url", server.url, "--store", "s"]


def test_calibrate_prints_and_notes_and_doctor_reads(cli: Cli) -> None:
    with LoopbackModelServer(answering('{"score": 0.9}', '{"score": 0.1}')) as server:
        checks = cli.json("doctor", *ask_for(server))
        assert checks["calibration"]["state"] == "warning"
        assert "memguard calibrate" in checks["calibration"]["found"]
        out = cli.run("calibrate", *ask_for(server), "--limit", "40", "--k", "2")
        assert "AUC 1.000" in out
        assert "ConsistencyGate(tau=0.5)" in out
        assert "in force" in out
        assert "40 calls" in out
        assert "chance" not in out
        assert "saved in s/calibration.json" in out
        checks = cli.json("doctor", *ask_for(server))
        assert checks["calibration"]["state"] == "ok"
        assert "AUC 1.00" in checks["calibration"]["found"]
        assert checks["store"]["found"].endswith("the first write creates it")
        assert [file.name for file in Path("s").iterdir()] == ["calibration.json"]


def test_the_log_probability_variant(cli: Cli) -> None:
    with LoopbackModelServer(answering("yes", "no")) as server:
        ended = cli.json("calibrate", *ask_for(server), "--variant", "logprob", "--limit", "20")
    assert ended["record"]["variant"] == "logprob"
    assert ended["record"]["auc"] == 1.0
    assert ended["usage"]["calls"] == 20


def test_a_model_at_chance_is_reported_and_doctor_warns(cli: Cli) -> None:
    with LoopbackModelServer(lambda _: '{"score": 0.5}') as server:
        ended = cli.json("calibrate", *ask_for(server), "--k", "1")
        assert ended["record"]["auc"] == 0.5
        assert any("no better than chance" in line for line in ended["warnings"])
        assert any("admits nothing" in line for line in ended["warnings"])
        assert any("No threshold" in line for line in ended["warnings"])
        assert "should not judge" in cli.json("doctor", *ask_for(server))["calibration"]["found"]
        said = cli.run("calibrate", *ask_for(server), "--k", "1", "--tau", "0.5")
        assert "At the threshold in force, 0.5, it admits everything" in said


def test_settings_of_a_model_in_this_process(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("xllamacpp")
    Path("m.gguf").write_bytes(b"GGUF")
    used: list[Any] = []

    def measure(judge: Any, *_: Any, **__: Any) -> None:
        used.append(judge.chat)
        raise KeyboardInterrupt

    monkeypatch.setattr("memguard.cli.calibrate._measure", measure)
    words = ["--model", "llamacpp:m.gguf", "--threads", "1", "--max-tokens", "64"]
    cli.run("calibrate", *words, code=130)
    assert (used[0].n_threads, used[0].max_tokens) == (1, 64)


def test_settings_are_refused_for_another_judge(cli: Cli) -> None:
    ended = cli.json("calibrate", "--model", "local", "--max-tokens", "64", code=2)
    assert ended["error"]["code"] == ErrorCode.SPEC_INVALID
    assert "llamacpp:" in ended["error"]["message"]


def test_a_changed_prompt_needs_a_new_measurement(cli: Cli) -> None:
    keep_record(Path("s"), record())
    with LoopbackModelServer() as server:
        checks = cli.json("doctor", *ask_for(server))
    assert checks["calibration"]["state"] == "warning"
    assert "prompt has changed" in checks["calibration"]["found"]


@pytest.mark.parametrize("name", ["support", "paper_support", "paper_support_yes_no"])
def test_a_measurement_of_any_wording_counts(cli: Cli, name: str) -> None:
    keep_record(Path("s"), record(prompt=load_prompt("consistency_gate", name).digest))
    with LoopbackModelServer() as server:
        checks = cli.json("doctor", *ask_for(server))
    assert checks["calibration"]["state"] == "ok"


def test_the_small_preset_is_measured_as_it_is(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    specs: list[ConsistencyGate] = []

    def measure(*_: Any, spec: ConsistencyGate, **__: Any) -> Any:
        specs.append(spec)
        raise KeyboardInterrupt

    monkeypatch.setattr("memguard.cli.calibrate._measure", measure)
    cli.run("calibrate", "--model", "local", "--preset", "small", code=130)
    assert (specs[0].variant, specs[0].prompts) == ("logprob", "paper")


def test_a_judge_without_usable_answers_has_no_figures(cli: Cli) -> None:
    with LoopbackModelServer(lambda _: "No comment.") as server:
        out = cli.run("calibrate", *ask_for(server), "--limit", "4", "--k", "1")
    assert "No figures" in out
    assert "2 supported, 2 changed (counted separately, not as 0)" in out
    assert "parse_failure: No comment." in out
    assert not Path("s").exists()


def test_a_server_that_fails_is_named_as_the_reason(cli: Cli) -> None:
    boom = ServerReply.error(400, "context length exceeded")
    with LoopbackModelServer(lambda _: boom) as server:
        ended = cli.json("calibrate", *ask_for(server), "--limit", "2", "--k", "1")
    assert "context length exceeded" in ended["why_inconclusive"][0]


def test_the_local_judge_costs_no_call(cli: Cli) -> None:
    ended = cli.json("calibrate", "--model", "local", "--store", "s")
    assert ended["usage"]["calls"] == 0
    assert ended["model"] == "local"
    assert sum(ended["inconclusive"].values()) < 60
    checks = cli.json("doctor", "--store", "s")
    assert checks["calibration"]["state"] == "ok"


def test_a_preset_is_measured_with_its_own_prompt() -> None:
    from memguard.cli.calibrate import _gate

    paper = _gate(("paper",), {"k": 1})
    assert (paper.prompts, paper.k, paper.tau) == ("paper", 1, 0.7)
    # Without a namespace to count, the adaptive preset is measured at its fixed threshold.
    assert _gate(("adaptive",), {}).threshold == "fixed"
    # The local judge must not take a default for a threshold that the user chose.
    assert "tau" not in _gate((), {"k": 5}).model_fields_set


async def test_what_the_assistant_said_is_measured_too() -> None:
    """In a guard it is held before the judge; here the judge alone is measured."""
    measured = await measure_judge(
        knowing("1.0", "0.0"), memories=load_pairs(), spec=ConsistencyGate(k=1)
    )
    assert all(result.score is not None for result in measured.judged)
