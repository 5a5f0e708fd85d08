"""`memguard recall` and the receipts of reads, on a real Chroma with the built-in embedder."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from memguard.cli import main
from memguard.cli.show import FLAGS
from memguard.schema.memory import MemoryRecord, Provenance
from memguard.schema.read_flags import Flag
from memguard.stores import ChromaStore
from memguard.testing import LoopbackModelServer
from tests.unit.read.read_scripts import UNIT, units_in

Run = Callable[..., tuple[int, str, str]]
MEMORIES = (
    "The user has a peanut allergy.",
    "The user loves green curry.",
    "The user believes that curry cures colds.",
    "The user owns a sailing boat.",
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    with ChromaStore.local(tmp_path / "memory") as store:
        for number, text in enumerate(MEMORIES):
            provenance = Provenance(candidate_id=f"c{number}", receipt_id=f"w{number}")
            record = MemoryRecord(
                namespace=("memories", "ana"), key=f"k{number}", text=text, provenance=provenance
            )
            store.put(record.namespace, record.key, record.to_value(), index=["content"])

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["memguard", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        out = capsys.readouterr()
        code = ended.value.code
        return code if isinstance(code, int) else 0, out.out, out.err

    return run


def test_a_read_with_no_model_says_what_may_be_used_and_why(run: Run) -> None:
    code, out, err = run("recall", "Which curry should I cook for dinner?", "--user", "ana")
    assert (code, err) == (0, "")
    used, _, rest = out.partition("Withheld:")
    withheld, _, section = rest.partition("The section, exactly as it goes into the prompt")
    assert "APPLY_CONSTRAINT: the answer must keep to it" in used
    assert "The user has a peanut allergy." in used
    assert "row constraint: stated, current and to be respected" in used
    assert "The user owns a sailing boat." in withheld
    assert "row irrelevant: has no bearing on the query" in withheld
    assert "MENTION_VIEW: may be mentioned as the user's view" in used
    assert "<memguard-memory>\n" in section
    assert '"The user loves green curry."' in section
    assert "sailing" not in section
    assert "judged by the local adjudicator" in out
    assert "0 model calls" in out


def test_the_receipt_is_listed_and_shown(run: Run) -> None:
    question = "Which curry should I cook?"
    _, out, _ = run("recall", question, "--user", "ana", "--evidence", "The shop is shut.")
    read_id = out.partition("receipt ")[2][:32]
    _, listed, _ = run("receipts", "list")
    assert "1 reads" in listed
    assert question in listed
    assert read_id[:8] in listed
    code, shown, _ = run("receipts", "show", read_id[:10])
    assert code == 0
    assert question in shown
    assert "The user owns a sailing boat." in shown
    assert "The shop is shut." in shown
    assert "Settings: " in shown
    _, whole, _ = run("receipts", "show", read_id, "--json")
    assert json.loads(whole)["read"]["id"] == read_id
    _, listed, _ = run("receipts", "list", "--json", "--user", "ben")
    assert json.loads(listed)["reads"] == []


def test_settings_reach_the_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "evidence.txt").write_text("Curry is off the menu.", encoding="utf-8")
    words = ("--admission", "fc", "--rendering", "neutral", "--preset", "paper")
    more = ("--limit", "2", "--latest", "--superseded", "--evidence", "evidence.txt")
    _, out, _ = run("recall", "Curry?", "--user", "ana", "--json", *words, *more)
    read: dict[str, Any] = json.loads(out)
    assert read["method"] == "factor_compiled"
    assert (read["spec"]["rendering"], read["spec"]["safety"]) == ("neutral", False)
    # The two latest alone: the paper recalls no safety constraints in addition.
    assert len(read["memories"]) == 2
    assert read["evidence"][0]["source"] == "evidence.txt"
    _, out, _ = run("recall", "Curry?", "--user", "ana", "--json", "--until", "2020-01-01")
    assert [each["text"] for each in json.loads(out)["memories"]] == [MEMORIES[0]]
    _, out, _ = run("recall", "Curry?", "--user", "ana", "--json", "--admission", "relevance")
    assert json.loads(out)["method"] == "relevance_gate"


MISTAKES = (
    (["--admission", "magic"], "no admission named 'magic'"),
    (["--rendering", "loud"], "no rendering 'loud'"),
    (["--preset", "best"], "no preset 'best'"),
    (["--since", "soon"], "give days as 2026-03-01"),
    (["--since", "2026-03-02", "--until", "2026-03-01"], "is not before"),
    (["--store", "elsewhere"], "no store at 'elsewhere'"),
)


def test_mistakes_are_explained(run: Run) -> None:
    for words, message in MISTAKES:
        code, _, err = run("recall", "Curry?", "--user", "ana", *words)
        assert code == 2, words
        assert message in err, words


def test_nothing_stored_and_nothing_asked(run: Run) -> None:
    code, out, _ = run("recall", "Which curry?", "--user", "ben")
    assert code == 0
    assert "(nothing: no section is added)" in out
    code, out, _ = run("recall", " ", "--user", "ana")
    assert code == 0
    assert "the query is blank: nothing was recalled" in out


def test_a_model_on_the_loopback_completes_a_read(
    run: Run, loopback_model: LoopbackModelServer
) -> None:
    def answer(body: Any) -> str:
        text = body["messages"][-1]["content"]
        if "<memories>" in text:
            return json.dumps({"memories": []})
        situation = {"target": "user", "mode": "recommendation", "asks_view": False}
        rows = [{"unit": name, "reason": "near", **UNIT} for name, _ in units_in(text)]
        return json.dumps({"situation": situation, "units": rows})

    loopback_model.answer = answer
    words = ("--model", "openai:m", "--base-url", loopback_model.url)
    code, out, _ = run("recall", "Which curry?", "--user", "ana", *words)
    assert code == 0
    assert "as openai:m judged" in out
    assert "May be used: 4" in out
    assert "model calls" in out


def test_every_flag_of_a_read_is_explained() -> None:
    # Notes of the local adjudicator explain its flag in more detail.
    assert set(get_args(Flag)) - {"local_adjudicator"} == set(FLAGS)
