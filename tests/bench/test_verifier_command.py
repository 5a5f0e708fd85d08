"""`python -m benchmarks.verifier`: judges side by side, and what is skipped."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.verifier.__main__ import app
from benchmarks.verifier.measure import JudgeScores, read_sets
from benchmarks.verifier.report import SetMeasurement, judge_rows, kind_rows
from benchmarks.verifier.sets import handmade_groups
from benchmarks.verifier.swaps import KINDS, written_pairs
from benchmarks.verifier.swaps import app as swaps_app
from memguard.testing import LoopbackModelServer

RIGHT = {group.claims[0].text for each in ("en", "de") for group in handmade_groups(each)}


class Ended:
    def __init__(self, out: str, err: str) -> None:
        self.out, self.err = out, err


def run(
    words: Sequence[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Ended:
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.delenv("MEMGUARD_DATA", raising=False)
    with pytest.raises(SystemExit) as ended:
        app(list(words), prog_name="python -m benchmarks.verifier")
    out, err = capsys.readouterr()
    assert not ended.value.code, out + err
    return Ended(out, err)


def test_without_data_the_hand_written_sets_are_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = run(["--limit", "3"], monkeypatch, capsys)
    assert "skipped: name the folder" in ended.err
    assert "docs/guides/local.md" in ended.err
    for word in ("verifier", "WriteAll", "cosine", "claim alone", "(en)", "(de)", "CPU per pair"):
        assert word in ended.out
    assert "LoCoMo" not in ended.out


def test_a_folder_without_the_sets_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = run(["--limit", "2", "--data", str(tmp_path)], monkeypatch, capsys)
    assert str(tmp_path / "msc" / "msc_personasummary") in ended.err


def test_a_model_is_compared_with_the_verifier(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(request: Any) -> str:
        prompt = request["messages"][-1]["content"]
        hit = re.search(r"<memory>\n(.*)\n</memory>", prompt)
        assert hit is not None
        text = json.loads(hit[1])
        if text == wordless:
            return "I would rather not say."
        return '{"score": 0.9}' if text in RIGHT else '{"score": 0.1}'

    wordless = handmade_groups("en")[0].claims[1].text
    with LoopbackModelServer(answer) as server:
        words = ["--limit", "4", "--json", "--k", "1"]
        words += ["--model", "openai:m", "--base-url", server.url]
        ended = json.loads(run(words, monkeypatch, capsys).out)
    rows = {(item["language"], item["judge"]): item for item in ended["sets"]}
    assert rows["de", "openai:m"]["auc"] == 1.0
    assert rows["de", "openai:m"]["tau"] == 0.7
    assert (rows["en", "openai:m"]["unusable"], rows["en", "openai:m"]["claims"]) == (1, 7)
    assert rows["en", "WriteAll"]["auc"] == 0.5
    assert rows["en", "WriteAll"]["contamination"]["value"] == 0.5
    assert rows["en", "verifier"]["tau"] == ended["tau"]
    assert rows["en", "verifier"]["cpu_ms_median"] > 0


def test_the_tables_have_a_row_per_kind_and_judge() -> None:
    chosen = read_sets(None, limit=None, skipped=lambda _: None)[0]
    labels = [claim.supported for _, claim in chosen.claims]
    perfect = judged("verifier", chosen.claims, [float(item) for item in labels])
    blind = judged("blind", chosen.claims, [0.5] * len(labels))
    measured = [SetMeasurement(evaluation_set=chosen, judges=[perfect, blind])]
    assert [row[2:4] for row in judge_rows(measured)] == [("verifier", "1.000"), ("blind", "0.500")]
    kinds = {row[0]: row[1] for row in kind_rows(measured)}
    assert "correct" not in kinds
    assert set(kinds) == {claim.kind for _, claim in chosen.claims} - {"correct"}
    assert all(cell.startswith("0.0 %") for cell in kinds.values())


def judged(name: str, claims: Any, scores: list[float]) -> JudgeScores:
    return JudgeScores(
        judge=name, claims=[claim for _, claim in claims], scores=scores, tau=0.5, has_own_tau=True
    )


def test_written_pairs_have_every_kind_in_both_splits() -> None:
    pairs = written_pairs()
    assert len(pairs) >= 250
    assert {(pair.split, pair.kind) for pair in pairs} == {
        (split, kind) for split in ("dev", "test") for kind in KINDS
    }
    # No sentence of the development split is in the other one.
    texts = {
        split: {turn.content for pair in pairs if pair.split == split for turn in pair.turns}
        for split in ("dev", "test")
    }
    assert not texts["dev"] & texts["test"]
    assert {pair.language for pair in pairs} == {"en", "de", "es", "fr", "zh"}


def test_swaps_are_measured_by_kind(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        swaps_app([], prog_name="python -m benchmarks.verifier.swaps")
    out, _ = capsys.readouterr()
    assert not ended.value.code
    (line,) = re.findall(r"written test, en.*", out)
    true, subject, detail = (int(share) for share in re.findall(r"(\d+) % of", line))
    assert true >= 60
    assert subject <= 10
    assert detail <= 20
