"""Factor-Compiled Admission as a graph, with a scripted model."""

from typing import Any

import pytest

from memguard import FactorCompiled, create_factor_compiled_graph
from memguard.methods.adjudication.permissions import FC_TABLE
from memguard.methods.adjudication.tables import TableRow
from memguard.schema.read import FACTOR_COMPILED_PRESETS, PERMISSION_SEMANTIC_PRESETS
from memguard.testing import ScriptedChatModel
from tests.unit.methods.reading import answer, answer_of_key, entry_row, key_of_row

TEXT = "The user likes jazz at home and rock at work."
PAPER = FactorCompiled(preset="paper")


def read(steps: list[Any], *, memories: Any = (TEXT,), **given: Any) -> dict[str, Any]:
    model = ScriptedChatModel(steps)
    graph: Any = create_factor_compiled_graph(model, spec=given.pop("spec", FactorCompiled()))
    out = graph.invoke({"query": "What to play?", "memories": list(memories), **given})
    model.assert_consumed()
    return out


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in FC_TABLE.rows])
def test_every_row_of_the_table_rules_in_a_run(row: TableRow) -> None:
    attributes, situation = answer_of_key(key_of_row(FC_TABLE, row))
    allowed = {"given": "likes jazz at home", "empty": ""}[attributes.pop("allowed")]
    given = entry_row("u1", **attributes, allowed_content=allowed)
    out = read(
        [answer(given, **situation)],
        spec=PAPER.model_copy(update={"asks_view": True, "lookups": True}),
    )
    (verdict,) = out["ledger"].verdicts
    # Allowed content counts only for a part.
    whole = attributes["scope"] != "partial"
    assert verdict.row == row.id
    assert verdict.permission == row.then
    shown = TEXT if whole or not allowed else allowed
    assert (shown in out["memory_context"]) == (row.then != "DENY")
    assert out["report"].usage.calls == 1


def test_the_channel_is_on_the_verdict() -> None:
    given = [entry_row("u1", role="constraint"), entry_row("u2", role="belief", scope="out")]
    out = read([answer(*given)], memories=[TEXT, "The user thinks rock is dead."])
    assert [v.channel for v in out["ledger"].verdicts] == ["CONSTRAINTS", "EXCLUDED"]
    assert out["report"].method == "factor_compiled"
    assert [stamp.name for stamp in out["report"].prompts] == ["factor_compiled/adjudicate"]


def test_only_the_allowed_part_is_shown() -> None:
    part = entry_row("u1", role="preference", scope="partial", allowed_content="likes jazz at home")
    out = read([answer(part)])
    assert '"likes jazz at home"' in out["memory_context"]
    assert "rock" not in out["memory_context"]
    assert out["report"].memories[0].text == TEXT


def test_an_adjudicator_may_not_write_the_allowed_part_itself() -> None:
    part = entry_row("u1", role="fact", scope="partial", allowed_content="The user is a musician")
    out = read([answer(part)])
    assert out["memory_context"] == ""
    assert out["ledger"].verdicts[0].row == "2-nothing-allowed"
    assert any("own words" in note for note in out["report"].notes)


def test_safety_and_switches() -> None:
    given = answer(entry_row("u1", role="fact", epistemic="uncertain", safety=True))
    assert read([given])["ledger"].verdicts[0].row == "safety"
    assert read([given], spec=PAPER)["ledger"].verdicts[0].row == "8-fact-doubt"
    against = answer(entry_row("u1", role="context", evidence_conflict=True))
    assert read([against])["ledger"].verdicts[0].row == "evidence-conflict"
    assert read([against], spec=PAPER)["ledger"].verdicts[0].row == "9-context"


def test_wrong_case_and_missing_rows() -> None:
    rows = [entry_row("U1", role="Preference", scope="IN"), entry_row("u9")]
    out = read(
        [answer(*rows)],
        memories=[TEXT, "The user is allergic to nuts."],
        spec=FactorCompiled(repair=False),
    )
    assert [v.row for v in out["ledger"].verdicts] == ["6-preference", "not-judged-safety"]


async def test_the_async_form() -> None:
    model = ScriptedChatModel([answer(entry_row("u1", role="context"))])
    out = await create_factor_compiled_graph(model).ainvoke({"query": "?", "memories": [TEXT]})
    assert out["ledger"].verdicts[0].row == "9-context"


def test_the_preset_of_the_paper_has_no_deadline_and_sends_a_shorter_prompt() -> None:
    model = ScriptedChatModel([answer(entry_row("u1", role="belief"), asks_view=True)])
    graph: Any = create_factor_compiled_graph(model, spec=PAPER)
    out = graph.invoke({"query": "What do I think of it?", "memories": [TEXT]})
    assert out["report"].spec["deadline"] is None
    assert "conflicts_with" not in str(model.calls[0].messages[0].content)
    # A field that was not asked for has no effect, should an adjudicator return it.
    assert ruled_view(PAPER) == "7-belief"
    assert ruled_view(FactorCompiled()) == "7-belief-asked-for"


def ruled_view(spec: FactorCompiled) -> str:
    row = entry_row("u1", role="belief")
    model = ScriptedChatModel([answer(row, asks_view=True, target="world", mode="factual")])
    graph: Any = create_factor_compiled_graph(model, spec=spec)
    out = graph.invoke({"query": "What do I think of it?", "memories": [TEXT]})
    return out["ledger"].verdicts[0].row


def test_the_presets_differ_in_what_is_ours() -> None:
    paper, default = PAPER.model_dump(), FactorCompiled(preset="default").model_dump()
    assert default == FactorCompiled().model_dump()
    assert {"default": FactorCompiled(), "paper": PAPER} == FACTOR_COMPILED_PRESETS
    of_units = PERMISSION_SEMANTIC_PRESETS["paper"].model_dump()
    # Entries are judged whole, so only units can be left out before the model is asked.
    assert of_units == {**paper, "local_first": False}
    assert FactorCompiled.model_validate(paper) == PAPER
    assert FactorCompiled(preset="paper", safety=True).safety
    changed = {name for name in paper if paper[name] != default[name]}
    assert changed == {
        "preset",
        "evidence_conflict",
        "memory_conflict",
        "merge_paraphrases",
        "safety",
        "personalization_guard",
        "withhold_instructions",
        "authorship",
        "asks_view",
        "lookups",
        "reasons",
        "deadline",
        "max_units",
        "max_tokens",
    }
    with pytest.raises(ValueError, match="preset"):
        FactorCompiled.model_validate({"preset": "none"})
