"""Permission-Semantic Admission as a graph, with a scripted model."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from memguard import (
    Budget,
    PermissionSemantic,
    create_permission_semantic_graph,
    resolve_model,
)
from memguard.errors import ConfigurationError, ErrorCode
from memguard.methods.adjudication.permissions import PS_PERSONALIZATION, PS_SAFETY, PS_TABLE
from memguard.methods.adjudication.rendering import render_memories
from memguard.methods.adjudication.tables import Table, TableRow
from memguard.prompts import parse_prompt
from memguard.schema.decision import Inconclusive
from memguard.schema.units import UnitAttributes
from memguard.testing import ScriptedChatModel
from tests.cases import case_input
from tests.unit.methods.reading import answer, answer_of_key, cut, key_of_row, unit_row

TEXT = "The user lives in Porto."
PAPER = PermissionSemantic(preset="paper")
NOW = datetime(2026, 3, 15, 9, 0, tzinfo=UTC)


def read(
    steps: list[Any], *, memories: Any = (TEXT,), spec: Any = None, **given: Any
) -> dict[str, Any]:
    model = ScriptedChatModel(steps)
    graph: Any = create_permission_semantic_graph(
        model, spec=spec or PermissionSemantic(), clock=lambda: NOW
    )
    out = graph.invoke({"query": "Where to?", "memories": list(memories), **given})
    out["model"] = model
    return out


def as_cut(*texts: str) -> dict[str, Any]:
    return cut(*({text: "fact"} for text in texts))


def rows_of(*tables: Table) -> list[Any]:
    return [pytest.param(table, row, id=row.id) for table in tables for row in table.rows]


@pytest.mark.parametrize(("table", "row"), rows_of(PS_TABLE))
def test_every_row_of_the_table_rules_in_a_run(table: Table, row: TableRow) -> None:
    attributes, situation = answer_of_key(key_of_row(table, row))
    # Without the floors, but with the attributes of ours that the table has columns for.
    spec = PAPER.model_copy(update={"asks_view": True, "lookups": True})
    out = read([as_cut(TEXT), answer(unit_row("u1", **attributes), **situation)], spec=spec)
    (verdict,) = out["ledger"].verdicts
    assert (verdict.row, verdict.permission, verdict.explanation) == (row.id, row.then, row.why)
    assert (TEXT in out["memory_context"]) == (row.then != "DENY")
    assert verdict.attributes == UnitAttributes.model_validate(
        {**attributes, "kind": attributes["kind"]}
    )
    assert verdict.reason == "about u1"
    out["model"].assert_consumed()


@pytest.mark.parametrize(
    ("attributes", "situation", "row"),
    [
        ({"kind": "safety", "epistemic": "uncertain"}, {}, "safety"),
        (
            {"kind": "safety", "subject": "uncertain", "epistemic": "inferred"},
            {},
            "constraint-doubt",
        ),
        (
            {"kind": "preference", "epistemic": "inferred", "relevance": "indirect"},
            {},
            "preference-kept",
        ),
        ({"kind": "preference", "epistemic": "inferred"}, {"mode": "support"}, "preference-doubt"),
    ],
    ids=["safety", "safety-doubt", "preference", "no-advice"],
)
def test_the_floors_rule_in_a_run(attributes: Any, situation: Any, row: str) -> None:
    out = read([as_cut(TEXT), answer(unit_row("u1", **attributes), **situation)])
    assert out["ledger"].verdicts[0].row == row
    assert out["ledger"].verdicts[0].permission != "DENY"
    assert {row.id for table in (PS_SAFETY, PS_PERSONALIZATION) for row in table.rows} >= {
        "safety",
        "preference-kept",
    }


def test_a_memory_is_cut_and_each_unit_has_its_own_fate() -> None:
    text = "I prefer brand A because its battery lasts longest"
    parts = {"I prefer brand A": "preference", "brand A's battery lasts longest": "claim"}
    said = {"text": text, "said_at": "2025-12-30T22:40:00-05:00", "score": 0.8}
    steps = [
        cut(parts),
        answer(
            unit_row("u1", kind="preference"),
            unit_row("u2", kind="claim", subject="world", evidence_conflict=True),
        ),
    ]
    out = read(steps, memories=[said], evidence="Tests: brand B lasts longest.")
    first, second = out["ledger"].verdicts
    assert (first.permission, second.permission) == ("PERSONALIZE", "DENY")
    assert second.row == "evidence-conflict"
    assert [(v.unit.start, v.unit.end) for v in (first, second)] == [(0, 16), (None, None)]
    assert "(said 2025-12-30)" in out["memory_context"]
    assert "battery" not in out["memory_context"]
    assert (out["report"].decomposed, out["report"].cached) == (1, 0)
    assert out["report"].usage.calls == 2


def test_a_second_read_costs_one_call_and_says_so() -> None:
    given = answer(unit_row("u1"))
    model = ScriptedChatModel([as_cut(TEXT), given, given])
    graph: Any = create_permission_semantic_graph(model)
    first = graph.invoke({"query": "Where to?", "memories": [TEXT]})["report"]
    second = graph.invoke({"query": "And then?", "memories": [TEXT]})["report"]
    assert (first.usage.calls, first.decomposed, first.cached) == (2, 1, 0)
    assert (second.usage.calls, second.decomposed, second.cached) == (1, 0, 1)
    assert [stamp.name for stamp in first.prompts] == [
        "permission_semantic/decompose",
        "permission_semantic/adjudicate",
    ]
    assert [stamp.name for stamp in second.prompts] == ["permission_semantic/adjudicate"]
    assert first.id != second.id


def test_units_are_cut_anew_under_another_prompt() -> None:
    from memguard.methods.permission_semantic.graph import InMemoryPieces

    cache = InMemoryPieces()
    own = parse_prompt(
        "---\nversion: 9\nslots: memories\n---\nCut.\n---user---\n{{memories}}", name="mine"
    )
    for prompt in (None, own, own):
        model = ScriptedChatModel([as_cut(TEXT), answer(unit_row("u1"))])
        graph: Any = create_permission_semantic_graph(model, cache=cache, decompose_prompt=prompt)
        report = graph.invoke({"query": "Where to?", "memories": [TEXT]})["report"]
        if report.decomposed:
            model.assert_consumed()
    assert report.cached == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"The user lives.": "fact"},
        {"The user lives in Lisbon.": "fact", "Porto": "fact"},
        {},
    ],
    ids=["loses", "adds", "nothing"],
)
def test_a_cut_that_is_not_the_memory_is_refused(wrong: dict[str, str]) -> None:
    text = "The user lives in Porto and works in Braga."
    wrong_cut = cut(wrong or {"": "fact"})
    if len(wrong) == 1:
        wrong_cut = cut({**wrong, "The user works in Braga.": "fact"})
    # A refused cut is asked about once more.
    steps = [*([wrong_cut] * (2 if wrong else 1)), answer(unit_row("u1"))]
    out = read(steps, memories=[text])
    assert out["report"].flags == (("decomposition_refused",) if wrong else ())
    (verdict,) = out["ledger"].verdicts
    assert verdict.unit.text == text
    assert verdict.unit.kind is None or not wrong
    assert not wrong or any("not split" in note for note in out["report"].notes)


def test_a_refused_cut_is_asked_about_once_more_with_the_reason() -> None:
    text, other = "I prefer brand A because its battery lasts longest.", "The user lives in Porto."
    wrong = cut({"I prefer brand A": "preference", "Its quality lasts": "claim"}, {other: "fact"})
    right = {"I prefer brand A": "preference", "brand A's battery lasts longest": "claim"}
    steps = [wrong, cut(right), answer(unit_row("u1"), unit_row("u2"), unit_row("u3"))]
    out = read(steps, memories=[text, other])
    assert [verdict.unit.text for verdict in out["ledger"].verdicts] == [*right, other]
    assert out["report"].flags == ()
    second = out["model"].calls[1].text
    assert "(cut before: " in second
    assert "adds 'quality'" in second
    assert other not in second


def test_the_flag_of_a_refused_cut_is_on_every_read() -> None:
    """The next read finds the memory cached whole, and is a read of whole memories as well."""
    text = "The user lives in Porto and works in Braga."
    wrong = cut({"The user lives.": "fact", "The user works in Braga.": "fact"})
    model = ScriptedChatModel([wrong, wrong, answer(unit_row("u1")), answer(unit_row("u1"))])
    graph: Any = create_permission_semantic_graph(model)
    for _ in range(2):
        report = graph.invoke({"query": "Where to?", "memories": [text]})["report"]
        assert report.flags == ("decomposition_refused",)
    model.assert_consumed()


def test_a_decomposer_that_fails_leaves_memories_whole() -> None:
    model = ScriptedChatModel([RuntimeError("HTTP 500"), answer(unit_row("u1")), as_cut(TEXT)] * 2)
    graph: Any = create_permission_semantic_graph(resolve_model(model, max_attempts=1))
    report = graph.invoke({"query": "Where to?", "memories": [TEXT]})["report"]
    assert report.flags == ("decomposition_failed",)
    assert report.admitted[0].unit.text == TEXT
    assert (report.decomposed, report.cached) == (0, 0)


def test_one_ledger_renders_three_ways_without_another_call() -> None:
    texts = [f"The user has {n} cats." for n in range(1, 6)]
    kinds = ["safety", "preference", "belief", "fact", "claim"]
    rows = [unit_row(f"u{n}", kind=kind) for n, kind in enumerate(kinds, start=1)]
    out = read([as_cut(*texts), answer(*rows)], memories=texts)
    calls = len(out["model"].calls)
    found = {
        name: render_memories(out["ledger"], rendering=name)
        for name in ("channels", "permission_notes", "neutral")
    }
    assert len(out["model"].calls) == calls
    assert out["memory_context"] == found["channels"]
    lines = {name: [x for x in text.splitlines() if x[0] == "-"] for name, text in found.items()}
    assert lines["channels"] == lines["permission_notes"] == lines["neutral"]
    assert len(lines["neutral"]) == 5


def test_the_adjudicator_sees_the_evidence_apart_from_the_dialogue() -> None:
    out = read(
        [as_cut(TEXT), answer(unit_row("u1"))],
        dialogue=[("user", "Hi there."), ("assistant", "Hello!"), ("system", "Be nice.")],
        evidence=["The café is closed.", {"text": "Open at 9.", "source": "site"}, " "],
    )
    shown = str(out["model"].calls[1].messages[-1].content)
    dialogue = shown.split("<dialogue>")[1].split("</dialogue>", maxsplit=1)[0]
    evidence = shown.split("<evidence>")[1].split("</evidence>", maxsplit=1)[0]
    assert "Hi there." in dialogue
    assert "Be nice." not in shown
    assert evidence.count("[evidence") == 2
    assert "closed" in evidence
    assert "closed" not in dialogue
    assert "Sunday 2026-03-15 09:00+00:00" in shown.split("<now>")[1].split("</now>", maxsplit=1)[0]


def test_b01_the_line_shows_when_it_was_said() -> None:
    given = case_input("B-01")
    text = "The user starts at a new bakery next month."
    memory = {"text": text, "said_at": given["conversation_time"]}
    out = read(
        [as_cut(text), answer(unit_row("u1"), mode="support")],
        memories=[memory],
        query=given["query"],
        now=given["read_time"],
    )
    assert f'- (said 2025-12-30) "{text}"' in out["memory_context"]
    shown = str(out["model"].calls[1].messages[-1].content)
    assert "said Tuesday 2025-12-30 22:40-05:00" in shown
    assert "<now>Sunday 2026-03-15 09:00-05:00</now>" in shown


def f04(*, repair: bool, second: Any = None) -> dict[str, Any]:
    given = case_input("F-04")
    names = {memory["id"]: f"u{n}" for n, memory in enumerate(given["memories"], start=1)}
    names["m9"] = "u9"
    relevance = {"direct": "DIRECT", "none": "none", "DIRECT": "DIRECT", "kind of": "kind of"}
    rows = [
        {
            **unit_row(str(names.get(row["unit_id"], row["unit_id"]))),
            "subject": row["subject"],
            "relevance": relevance[row["relevance"]],
            "comment": "extra key",
            **({} if "sensitivity" in row else {"temporality": ""}),
        }
        for row in given["scripted_attributes"]["units"]
    ]
    texts = [memory["text"] for memory in given["memories"]]
    steps = [as_cut(*texts), answer(*rows), *([second] if second else [])]
    return read(
        steps,
        memories=given["memories"],
        query=given["query"],
        spec=PermissionSemantic(repair=repair),
    )


def fates(out: dict[str, Any]) -> dict[str, str]:
    return {v.unit.memory_id: v.permission for v in out["ledger"].verdicts}


def test_f04_one_broken_row_spoils_no_other() -> None:
    out = f04(repair=False)
    assert fates(out) == {
        "m1": "CONTEXT",
        "m2": "DENY",
        "m3": "DENY",
        "m4": "DENY",
        "m5": "DENY",
    }
    by_id = {v.unit.memory_id: v for v in out["ledger"].verdicts}
    assert by_id["m3"].row == "irrelevant"
    assert isinstance(by_id["m5"].attributes, Inconclusive)
    assert by_id["m2"].row == by_id["m4"].row == "not-judged"
    notes = " ".join(out["report"].notes)
    assert "'u9', which is not one of the units" in notes
    assert "'4', which is not one of the units" in notes
    assert len(out["model"].calls) == 2  # one to cut, one to judge
    assert out["report"].flags == ("adjudication_partial",)
    assert out["report"].degraded


def test_f04_what_is_missing_is_asked_for_once_more_and_nothing_else() -> None:
    second = answer(unit_row("u2"), unit_row("u4", relevance="none"), unit_row("u5"))
    out = f04(repair=True, second=second)
    assert fates(out) == {
        "m1": "CONTEXT",
        "m2": "CONTEXT",
        "m3": "DENY",
        "m4": "DENY",
        "m5": "CONTEXT",
    }
    shown = str(out["model"].calls[2].messages[-1].content)
    units = shown.split("<units>")[1]
    assert [name in units for name in ("[u1]", "[u2]", "[u3]", "[u4]", "[u5]")] == [
        False,
        True,
        False,
        True,
        True,
    ]
    assert len(out["model"].calls) == 3  # one to cut, two to judge
    assert out["report"].flags == ()


def l01(*steps: Any, **given: Any) -> dict[str, Any]:
    case = case_input("L-01")
    memories = [
        {"id": m["id"], "text": m["text"], "said_at": m["observed_at"], "score": m["similarity"]}
        for m in case["memories"]
    ]
    by_text = {memory["text"]: "fact" for memory in memories}
    by_text[memories[0]["text"]] = "safety"
    by_text[memories[1]["text"]] = "preference"
    by_text[memories[5]["text"]] = "preference"
    cutting = cut(*({text: kind} for text, kind in by_text.items()))
    model = ScriptedChatModel([cutting, *steps])
    graph: Any = create_permission_semantic_graph(
        resolve_model(model, max_attempts=1),
        spec=PermissionSemantic(max_units=3, **given.pop("spec", {})),
    )
    return graph.invoke({"query": case["query"], "memories": memories, **given})


L01_ROWS = [
    unit_row("u1", kind="safety", relevance="indirect"),
    unit_row("u2", kind="preference"),
    unit_row("u3", kind="experience"),
    unit_row("u4"),
    unit_row("u5"),
    unit_row("u6", kind="preference", relevance="indirect"),
    unit_row("u7", relevance="indirect"),
]


def test_l01_a_safety_constraint_loses_to_nothing() -> None:
    out = l01(answer(*L01_ROWS, mode="planning"))
    lines = out["memory_context"].splitlines()
    place = next(i for i, line in enumerate(lines) if "peanut allergy" in line)
    assert lines[place - 1].startswith("## Constraints")
    assert [v.unit.memory_id for v in out["admitted"]] == ["m1", "m2", "m3"]
    cut_first = [v.unit.memory_id for v in out["withheld"] if v.withheld == "max_units"]
    assert set(cut_first) == {"m4", "m5", "m6", "m7"}


def test_l01_tokens_leave_the_constraint_whatever_they_are() -> None:
    out = l01(answer(*L01_ROWS, mode="planning"), spec={"max_tokens": 60})
    assert [v.unit.memory_id for v in out["admitted"]] == ["m1"]
    assert "limits_exceeded" in out["report"].flags
    assert {v.withheld for v in out["withheld"]} == {"max_tokens"}


def test_l01_an_adjudicator_that_fails_leaves_the_allergy_in_sight_and_says_so() -> None:
    out = l01(RuntimeError("HTTP 500"))
    assert "peanut allergy" in out["memory_context"]
    assert out["report"].degraded
    assert "adjudication_failed" in out["report"].flags
    kept = {v.unit.memory_id: v.row for v in out["admitted"]}
    assert kept == {
        "m1": "not-judged-safety",
        "m2": "not-judged-preference",
        "m6": "not-judged-preference",
    }
    assert all(v.permission == "CONTEXT" for v in out["admitted"])


def test_l01_the_allergy_is_no_matter_of_a_conversion() -> None:
    rows = [unit_row(f"u{n}", kind="safety", relevance="none") for n in range(1, 8)]
    out = l01(answer(*rows, target="world", mode="factual"))
    assert out["memory_context"] == ""


@pytest.mark.parametrize("index", range(4))
def test_l02_nothing_personal_enters_a_question_that_has_nothing_to_do_with_it(index: int) -> None:
    given = case_input("L-02")
    query = [given["query"], *given["more_queries"]][index]
    texts = [memory["text"] for memory in given["memories"]]
    rows = [unit_row(f"u{n}", relevance="none") for n in (1, 2, 3)]
    rows.append(unit_row("u4", kind="preference", relevance="none"))
    steps = [as_cut(*texts), answer(*rows, target="world", mode="factual")]
    out = read(steps, memories=texts, query=query)
    assert out["memory_context"] == ""
    assert out["admitted"] == ()
    assert len(out["withheld"]) == 4
    assert out["report"].usage.calls - 1 <= 1


def test_l02_a_setting_asks_for_a_line() -> None:
    spec = PermissionSemantic(when_empty="line")
    out = read([as_cut(TEXT), answer(unit_row("u1", relevance="none"))], spec=spec)
    assert "Nothing that is remembered applies" in out["memory_context"]
    assert TEXT not in out["memory_context"]


@pytest.mark.parametrize("asks_view", [False, True])
def test_l03_a_belief_is_no_fact(asks_view: bool) -> None:
    given = case_input("L-03")
    texts = [memory["text"] for memory in given["memories"]]
    rows = [
        unit_row("u1", kind="belief", relevance="direct"),
        unit_row("u2"),
        unit_row("u3", relevance="indirect", epistemic="stated"),
    ]
    steps = [
        as_cut(*texts),
        answer(*rows, target="world", mode="factual", asks_view=asks_view),
    ]
    out = read(steps, memories=texts, query=given["query"])
    text = out["memory_context"]
    assert texts[1] in text
    assert (texts[0] in text) == asks_view
    if asks_view:
        lines = text.splitlines()
        heading = lines[next(i for i, x in enumerate(lines) if texts[0] in x) - 1]
        assert "Views of the user" in heading
        assert "not adopted" in heading
    for word in ("authoritative", "ground truth", "verified"):
        assert word not in text.lower()


def test_conflicts_of_units_are_settled_by_time() -> None:
    texts = ["The user lives in Porto.", "The user lives in Lyon."]
    memories = [
        {"text": texts[0], "said_at": "2024-01-01"},
        {"text": texts[1], "said_at": "2025-01-01"},
    ]
    steps = [as_cut(*texts), answer(unit_row("u1", conflicts_with=["U2"]), unit_row("u2"))]
    first, second = read(steps, memories=memories)["ledger"].verdicts
    assert (first.row, second.row) == ("conflict-lost", "fact")
    assert first.conflicts_with == (second.unit.id,)
    assert second.conflicts_with == (first.unit.id,)
    paper = read(steps, memories=memories, spec=PAPER)
    assert [v.row for v in paper["ledger"].verdicts] == ["fact", "fact"]


async def test_the_async_form_gives_the_same() -> None:
    steps = [as_cut(TEXT), answer(unit_row("u1"))]
    by_sync = await asyncio.to_thread(read, list(steps))
    model = ScriptedChatModel(steps)
    graph: Any = create_permission_semantic_graph(model, clock=lambda: NOW)
    by_async = await graph.ainvoke({"query": "Where to?", "memories": [TEXT]})
    assert by_async["ledger"] == by_sync["ledger"]
    assert by_async["memory_context"] == by_sync["memory_context"]


def test_a_budget_ends_the_read_with_a_flag() -> None:
    model = ScriptedChatModel([as_cut(TEXT)])
    graph: Any = create_permission_semantic_graph(model, budget=Budget(calls=1))
    report = graph.invoke({"query": "Where to?", "memories": [TEXT]})["report"]
    assert "budget_spent" in report.flags
    assert report.degraded
    assert report.ledger.verdicts[0].row == "not-judged"
    model.assert_consumed()


def test_no_model_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(ConfigurationError) as caught:
        create_permission_semantic_graph(None)
    assert caught.value.code == ErrorCode.MODEL_MISSING


def test_a_prompt_with_other_slots_is_refused() -> None:
    own = parse_prompt("---\nversion: 1\nslots: x\n---\nA\n---user---\n{{x}}", name="mine")
    with pytest.raises(ConfigurationError) as caught:
        create_permission_semantic_graph(ScriptedChatModel(), prompt=own)
    assert caught.value.code == ErrorCode.PROMPT_SLOTS
