"""The held-out sets of the path without a model, and how their figures are counted."""

import json
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.local import __main__ as bench
from benchmarks.local import reading, sets, writing
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import CandidateMemory, Turn
from memguard.schema.receipt import Receipt

each_set = pytest.mark.parametrize("name", sets.SETS)


@pytest.mark.parametrize(
    ("name", "reads", "conversations", "swaps"), [("held_out", 90, 8, 120), ("second", 70, 8, 90)]
)
def test_ids_are_unique_and_all_languages_are_there(
    name: sets.SetName, reads: int, conversations: int, swaps: int
) -> None:
    for rows, minimum in (
        (sets.reads(name), reads),
        (sets.conversations(name), conversations),
        (sets.swaps(name), swaps),
    ):
        assert len(rows) >= minimum
        assert len({row.id for row in rows}) == len(rows)
        assert {row.language for row in rows} == {"en", "de", "es", "fr", "zh"}


def test_the_sets_share_no_text() -> None:
    for load in (sets.reads, sets.conversations, sets.swaps):
        first, second = load("held_out"), load("second")
        assert not {row.id for row in first} & {row.id for row in second}
        assert not {_source(row) for row in first} & {_source(row) for row in second}


def _source(row: sets.LabelledRead | sets.LabelledConversation | sets.SupportPair) -> str:
    if isinstance(row, sets.LabelledRead):
        return row.query
    return " / ".join(turn.content for turn in row.turns)


@each_set
def test_every_read_has_labels_that_fit(name: sets.SetName) -> None:
    for read in sets.reads(name):
        assert 3 <= len(read.memories) <= 10, read.id
        assert len({memory.text for memory in read.memories}) == len(read.memories), read.id
        for memory in read.memories:
            assert memory.part in memory.text
            assert not memory.safety or memory.label == "must"
            assert not memory.another_author_instruction or memory.label == "must_not"
            assert memory.said_at is not None
            assert memory.said_at < sets.NOW


@each_set
def test_there_are_enough_safety_constraints_and_instructions(name: sets.SetName) -> None:
    reads = sets.reads(name)
    assert sum(any(memory.safety for memory in read.memories) for read in reads) >= 18
    instructions = [m for read in reads for m in read.memories if m.another_author_instruction]
    assert len(instructions) >= 10
    assert {memory.said_by for memory in instructions} == {"document", "tool"}


@each_set
def test_spans_are_exact_and_say_why_they_are_wrong(name: sets.SetName) -> None:
    for conversation in sets.conversations(name):
        turns = {turn.id: turn for turn in conversation.turns}
        assert len(turns) == len(conversation.turns) >= 12
        for span in conversation.spans:
            assert span.text in turns[span.turn].content
            assert turns[span.turn].role == "user"
            assert bool(span.kind) == (span.verdict == "wrong")
        assert any(span.verdict == "keep" for span in conversation.spans)


@pytest.mark.parametrize(("name", "true"), [("held_out", 45), ("second", 40)])
def test_every_pair_has_a_source_and_every_label_occurs_often_enough(
    name: sets.SetName, true: int
) -> None:
    pairs = sets.swaps(name)
    assert all(any(turn.role == "user" for turn in pair.turns) for pair in pairs)
    counts = Counter(pair.label for pair in pairs)
    assert counts["true"] >= true
    assert min(counts["subject_swap"], counts["detail_swap"]) >= 15
    assert len({(pair.turns, pair.candidate) for pair in pairs}) == len(pairs)


def _conversation() -> sets.LabelledConversation:
    content = "The rent is 900. He says that I work too much. I live in Porto and like tea."
    return sets.LabelledConversation(
        id="c",
        language="en",
        turns=(Turn(id="1", role="user", content=content),),
        spans=(
            sets.Span(turn="1", text="The rent is 900.", verdict="wrong", kind="old_value"),
            sets.Span(turn="1", text="I work too much", verdict="wrong", kind="another_author"),
            sets.Span(turn="1", text="He says that I work too much.", verdict="either"),
            sets.Span(turn="1", text="I live in Porto and like tea.", verdict="keep"),
        ),
    )


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Ana: I live in Porto and like tea.", "keep"),
        ("The rent is 900.", "old_value"),
        ("The rent is 950.", "unlabelled"),
        ("I work too much", "another_author"),
        ("He says that I work too much.", "either"),
        ("I live in Porto and like tea. The rent is 900.", "old_value"),
        ("The weather is fine.", "unlabelled"),
    ],
)
def test_a_stored_text_is_what_the_nearest_label_says(text: str, verdict: str) -> None:
    candidate = CandidateMemory(text=text, turn_ids=("1",))
    receipt = Receipt(
        id="r",
        at=datetime(2026, 1, 1, tzinfo=UTC),
        run_id="run",
        candidate=candidate,
        namespace=("memories",),
        decision=AdmissionDecision(outcome="admit", reason="supported", explanation=""),
    )
    assert writing.verdict_of(receipt, _conversation()) == verdict


def _write_locomo(folder: Path) -> None:
    sample = {
        "qa": [
            {"question": "Where does Ana live?", "evidence": ["D1:1"], "category": 4},
            {"question": "Who is Tim?", "evidence": ["D1:2"], "category": 5},
            {"question": "What is not cited?", "evidence": ["D9:9"], "category": 1},
        ],
        "conversation": {"session_1_date_time": "1:56 pm on 8 May, 2023"},
        "observation": {
            "session_1_observation": {
                "Ana": [["Ana lives in Porto.", "D1:1"], ["Ana has a brother, Tim.", ["D1:2"]]]
            }
        },
    }
    (folder / "locomo").mkdir()
    (folder / "locomo" / "locomo10.json").write_text(json.dumps([sample]), encoding="utf-8")


def test_questions_of_locomo_have_an_answer_and_an_observation(tmp_path: Path) -> None:
    assert sets.locomo_questions(tmp_path) == ()
    _write_locomo(tmp_path)
    (question,) = sets.locomo_questions(tmp_path)
    assert question.text == "Where does Ana live?"
    assert question.evidence == {"D1:1"}
    assert question.now == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    (result,) = reading.measure_questions("PS", [question])
    assert result.others == 1
    assert result.lost == ()


def test_a_read_is_counted_by_its_labels(capsys: pytest.CaptureFixture[str]) -> None:
    (read,) = (read for read in sets.reads() if read.id == "en-02")
    results = reading.measure_reads("PS", [read])
    assert [result.memory for result in results] == list(read.memories)
    assert any(result.admitted for result in results)
    report = bench.Report(show_failures=False)
    report.table("T", [("all", [True, True, False], ">= 60 %"), ("none", [True], "= 0")])
    shown = capsys.readouterr().out
    assert re.search(r"2/3 .*66\.7 %.*>= 60 % .*met", shown)
    assert re.search(r"1/1 .*= 0 .*MISSED", shown)


def test_the_command_takes_a_set(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pair = sets.swaps()[0]
    (tmp_path / "swaps_second.jsonl").write_text(f"{pair.model_dump_json()}\n", encoding="utf-8")
    monkeypatch.setattr(sets, "DATA", tmp_path)
    monkeypatch.setattr("sys.argv", ["local", "--set", "second", "--only", "swaps"])
    bench.main()
    shown = capsys.readouterr().out
    assert "Hand-written sets: second" in shown
    assert "of 1 support pairs" in shown


@pytest.mark.slow
def test_the_command_prints_every_figure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _write_locomo(tmp_path)
    monkeypatch.setattr("sys.argv", ["local", "--data", str(tmp_path)])
    bench.main()
    shown = capsys.readouterr().out
    for name in ("must: safety", "LoCoMo", "another author", "stored or held", "subject swaps"):
        assert name in shown
    # Without `--failures` no text of the sets is shown.
    assert sets.swaps()[0].candidate not in shown
