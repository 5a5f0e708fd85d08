"""Every arm over one case that was adjudicated once."""

import json
import re
from typing import Any

import pytest

from memguard import (
    FactorCompiled,
    PermissionSemantic,
    RelevanceGate,
    create_factor_compiled_graph,
    create_permission_semantic_graph,
)
from memguard.arms import (
    ANNOTATED_SENTENCE,
    ARMS,
    SEEDS,
    ArmCase,
    annotated,
    budget_random,
)
from memguard.schema.read import RecalledMemory
from memguard.testing import ScriptedChatModel
from tests.unit.methods.reading import answer, cut, entry_row, unit_row

TEXTS = {
    "The user is allergic to nuts.": ("safety", 0.2, 0.9),
    "The user likes green curry.": ("preference", 0.8, 0.7),
    "The user thinks curry cures colds.": ("belief", 0.7, None),
    "The user owns a wok.": ("fact", 0.6, 0.4),
    "The user lives in Porto.": ("fact", 0.1, 0.0),
}
QUOTED = re.compile(r"^- \([^)]*\) (\".*\")$", re.MULTILINE)


def said(text: str) -> list[str]:
    return [json.loads(each) for each in QUOTED.findall(text)]


@pytest.fixture(scope="module")
def case() -> ArmCase:
    given = [
        {"text": text, "score": score, "said_at": "2025-01-02", "id": f"m{n}"}
        for n, (text, (_, score, _)) in enumerate(TEXTS.items())
    ]
    query: dict[str, Any] = {"query": "Plan a Thai dinner.", "memories": given}
    units = [
        unit_row(
            f"u{n}",
            kind=kind,
            influence=influence,
            relevance="none" if "Porto" in text else "direct",
        )
        for n, (text, (kind, _, influence)) in enumerate(TEXTS.items(), start=1)
    ]
    entries = [
        entry_row(f"u{n}", role={"safety": "constraint"}.get(kind, kind), utility="helpful")
        for n, (_, (kind, _, _)) in enumerate(TEXTS.items(), start=1)
    ]
    cutting = cut(*({text: kind} for text, (kind, _, _) in TEXTS.items()))
    model = ScriptedChatModel([cutting, answer(*units, mode="planning", target="world")])
    ps = create_permission_semantic_graph(model, spec=PermissionSemantic()).invoke(query)
    other = ScriptedChatModel([answer(*entries, mode="planning", target="world")])
    fc = create_factor_compiled_graph(other, spec=FactorCompiled()).invoke(query)
    model.assert_consumed()
    other.assert_consumed()
    return ArmCase(
        memories=tuple(RecalledMemory.model_validate(each) for each in given),
        fc=fc["ledger"],
        ps=ps["ledger"],
        topics={"m0": "health", "m1": "food", "m2": "food", "m3": "food"},
        gate=RelevanceGate(theta=0.65),
    )


ALLERGY, CURRY, BELIEF, WOK, PORTO = TEXTS


@pytest.mark.parametrize(
    ("arm", "lines"),
    [
        ("Bare", [ALLERGY, CURRY, BELIEF, WOK, PORTO]),
        ("Gate", [CURRY, BELIEF]),
        (
            "GroupingOnly",
            ["## health", ALLERGY, "## food", CURRY, BELIEF, WOK, "## none", PORTO],
        ),
    ],
)
def test_the_arms_without_adjudication_inject_word_for_word(
    case: ArmCase, arm: str, lines: list[str]
) -> None:
    assert ARMS[arm](case).splitlines() == lines


@pytest.mark.parametrize(
    ("arm", "shown"),
    [
        ("NoMem", []),
        ("FC", [ALLERGY, CURRY, WOK, PORTO]),
        ("PS+PN", [ALLERGY, CURRY, WOK]),
        ("PS+CH", [ALLERGY, CURRY, WOK]),
        ("PS+neutral", [ALLERGY, CURRY, WOK]),
        ("BudgetRelevance", [CURRY, BELIEF, WOK]),
        ("Annotated", [ALLERGY, CURRY, BELIEF, WOK, PORTO]),
        ("Annotated>=0.5", [ALLERGY, CURRY]),
    ],
)
def test_what_each_arm_shows(case: ArmCase, arm: str, shown: list[str]) -> None:
    assert said(ARMS[arm](case)) == shown


def test_the_random_arms_have_the_budget_of_ps_and_five_draws(case: ArmCase) -> None:
    texts = [ARMS[f"BudgetRandom-{seed}"](case) for seed in SEEDS]
    assert len(SEEDS) == 5
    assert all(len(said(text)) == 3 for text in texts)
    assert all(set(said(text)) <= set(TEXTS) for text in texts)
    assert len(set(texts)) > 1
    assert texts == [budget_random(case.ps, seed=seed) for seed in SEEDS]


def test_every_arm_is_named_once_and_runs(case: ArmCase) -> None:
    assert len(ARMS) == 16
    for name in ARMS:
        text = ARMS[name](case)
        assert (text == "") == (name == "NoMem")


def test_the_renderings_of_ps_differ_only_in_their_headings(case: ArmCase) -> None:
    texts = [ARMS[arm](case) for arm in ("PS+PN", "PS+CH", "PS+neutral")]
    assert len(set(texts)) == 3
    assert said(texts[0]) == said(texts[1]) == said(texts[2])
    assert [text.count("##") for text in texts] == [3, 3, 0]


def test_annotations_say_how_far_and_that_nothing_is_adopted(case: ArmCase) -> None:
    text = ARMS["Annotated"](case)
    assert ANNOTATED_SENTENCE in text
    assert f'- (said 2025-01-02, influence 0.90) "{ALLERGY}"' in text
    assert f'- (said 2025-01-02, influence not judged) "{BELIEF}"' in text
    strict = annotated(case.ps, memories=case.memories, min_influence=0.95)
    assert strict == ""
