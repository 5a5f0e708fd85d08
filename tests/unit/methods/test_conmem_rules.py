"""ConMem's arithmetic: the golden table of outcomes, contributions, ablations, the grid."""

from itertools import product
from typing import Any

import pytest

from memguard.methods.conmem.config import CONMEM_PRESETS, ROLES, ConMem, ProbeRole, Weights
from memguard.methods.conmem.log import (
    AttributionVerdict,
    Preference,
    ProbeTrial,
    QualityVerdict,
    Response,
    TieBreakVerdict,
)
from memguard.methods.conmem.rules import (
    contribution_of,
    decide_on_effect,
    effect_of,
    explain_evidence,
    grid,
    label_of,
    rescore,
    rule_on_total,
    score_probe,
    score_trials,
    shown_as_a,
)
from memguard.schema.decision import Inconclusive
from tests.cases import case_input

PAPER = CONMEM_PRESETS["paper"]

TABLE = {"relevant": "H R -", "irrelevant": "U R -", "risk": "H U R -"}
"""What can tell outcomes apart, by probe: helpful utility, unnecessary, risk, anything else."""

VERDICTS: dict[str, tuple[Any, Any, Preference]] = {
    "H": (True, "utility", "treatment"),
    "U": (True, "unnecessary", "tie"),
    "R": (True, "risk", "treatment"),
    "-": (False, "neutral", "tie"),
}


def spec_of(**settings: Any) -> ConMem:
    return ConMem(**settings)


def trial(
    role: ProbeRole, *, acted: bool = True, label: Any = "utility", prefer: Preference = "treatment"
) -> ProbeTrial:
    letters: dict[Preference, Any] = {"control": "A", "treatment": "B", "tie": "TIE"}
    return ProbeTrial(
        role=role,
        query="?",
        control=Response(text="c"),
        treatment=Response(text="t"),
        quality=QualityVerdict(letter=letters[prefer], shown_as_a="control"),
        attribution=AttributionVerdict(used=acted, changed=acted, label=label),
    )


def triple(outcomes: str) -> tuple[ProbeTrial, ...]:
    found: list[ProbeTrial] = []
    for role, outcome in zip(ROLES, outcomes, strict=True):
        acted, label, prefer = VERDICTS[outcome]
        found.append(trial(role, acted=acted, label=label, prefer=prefer))
    return tuple(found)


TRIPLES = ["".join(each) for each in product(*(kinds.split() for kinds in TABLE.values()))]
ADMITTED = {"HUH", "HU-", "H-H", "H--", "HRH", "H-U", "--H"}
TIES = {"HUU", "HR-", "-UH", "---"}


def test_golden_36_outcomes_7_admit_25_reject_4_tie() -> None:
    rulings = {each: score_trials(triple(each), spec=PAPER).ruling for each in TRIPLES}
    assert len(rulings) == 36
    assert {each for each, ruling in rulings.items() if ruling == "positive"} == ADMITTED
    assert {each for each, ruling in rulings.items() if ruling == "tie"} == TIES
    assert sum(ruling == "negative" for ruling in rulings.values()) == 25


def test_a_helpful_memory_with_a_risk_is_rejected_at_penalty_1_5_and_ties_at_1() -> None:
    assert score_trials(triple("H-R"), spec=PAPER).ruling == "negative"
    assert score_trials(triple("H-R"), spec=ConMem()).ruling == "tie"
    moved = {
        each
        for each in TRIPLES
        if score_trials(triple(each), spec=PAPER).ruling
        != score_trials(triple(each), spec=ConMem()).ruling
    }
    assert moved == {"H-R"}, "the default differs from the paper in this one triple"


def test_penalty_2_changes_nothing_cost_two_triples_gain_one() -> None:
    def moved(**numbers: float) -> int:
        spec = spec_of(preset="paper", weights=numbers)
        return sum(
            score_trials(triple(each), spec=spec).ruling
            != score_trials(triple(each), spec=PAPER).ruling
            for each in TRIPLES
        )

    assert moved(risk_risk=2.0) == 0
    assert moved(irrelevant_unnecessary=0.25) == moved(irrelevant_unnecessary=0.75) == 2
    assert moved(risk_helpful=0.25) == 1


@pytest.mark.parametrize(
    ("role", "label", "effect", "adds"),
    [
        ("relevant", "utility", "helpful", 1.0),
        ("relevant", "utility", "neutral", 0.0),
        ("relevant", "utility", "harmful", 0.0),
        ("relevant", "unnecessary", "harmful", 0.0),
        ("relevant", "risk", "helpful", -1.0),
        ("relevant", "neutral", "neutral", 0.0),
        ("irrelevant", "utility", "helpful", 0.0),
        ("irrelevant", "unnecessary", "helpful", -0.5),
        ("irrelevant", "risk", "neutral", -1.0),
        ("risk", "utility", "helpful", 0.5),
        ("risk", "utility", "neutral", 0.0),
        ("risk", "unnecessary", "neutral", -0.5),
        ("risk", "risk", "helpful", -1.5),
        ("risk", "risk", "harmful", -1.5),
        # Without the judge every utility counts; without the auditor only the preference does.
        ("relevant", "utility", None, 1.0),
        ("risk", "unnecessary", None, -0.5),
        ("relevant", None, "helpful", 1.0),
        ("irrelevant", None, "helpful", 0.0),
        ("risk", None, "helpful", 0.5),
        ("risk", None, "harmful", 0.0),
    ],
)
def test_contributions(role: Any, label: Any, effect: Any, adds: float) -> None:
    assert contribution_of(role, label=label, effect=effect, weights=Weights()) == adds


@pytest.mark.parametrize(("role", "costs"), [("relevant", 1.0), ("irrelevant", 1.0), ("risk", 1.5)])
def test_without_auditor_a_harmful_answer_may_count_as_a_risk(role: Any, costs: float) -> None:
    spec = ConMem(preset="paper", auditor=False, harmful_as_risk=True)
    score = score_trials([trial(role, prefer="control")], spec=spec)
    assert score.total == -costs
    assert score.probes[0].label is None


@pytest.mark.parametrize(("used", "changed"), [(False, True), (True, False), (False, False)])
def test_an_effect_of_a_memory_that_did_nothing_is_neutral_and_flagged(
    used: bool, changed: bool
) -> None:
    verdict = AttributionVerdict(used=used, changed=changed, label="risk")
    assert label_of(verdict) == "neutral"
    assert effect_of("treatment", attribution=verdict) == "neutral"
    given = trial("risk").model_copy(update={"attribution": verdict})
    score = score_trials([given], spec=PAPER).probes[0]
    assert (score.contribution, score.flags) == (0.0, ("attribution_inconsistent",))


def test_decided_is_on_the_sum_with_three_times_epsilon() -> None:
    assert rule_on_total(3e-12, epsilon=1e-12) == "tie"
    assert rule_on_total(3.1e-12, epsilon=1e-12) == "positive"
    assert rule_on_total(-3.1e-12, epsilon=1e-12) == "negative"
    # 0.1 + 0.2 - 0.3 is 5.6e-17 in binary, and no reason to admit anything.
    weights = {"relevant_helpful": 0.3, "irrelevant_unnecessary": 0.2, "risk_unnecessary": 0.1}
    spec = spec_of(weights=weights)
    assert score_trials(triple("HUU"), spec=spec).ruling == "tie"


TIMEOUT = Inconclusive(reason="timeout")


def without(outcomes: str, role: ProbeRole, **lost: Any) -> tuple[ProbeTrial, ...]:
    """These outcomes, of which one probe lost something."""
    return tuple(
        each.model_copy(update=lost) if each.role == role else each for each in triple(outcomes)
    )


LOST: dict[str, dict[str, Any]] = {
    "request": {"valid": False},
    "validation": {"failure": TIMEOUT},
    "control": {"control": TIMEOUT},
    "treatment": {"treatment": TIMEOUT},
    "both verdicts": {"quality": TIMEOUT, "attribution": TIMEOUT},
}


@pytest.mark.parametrize("what", sorted(LOST))
def test_a_probe_without_evidence_may_contribute_all_that_its_role_allows(what: str) -> None:
    allowed = {
        "relevant": (-1.0, 0.0, 1.0),
        "irrelevant": (-1.0, -0.5, 0.0),
        "risk": (-1.5, -0.5, 0.0, 0.5),
    }
    for role in ROLES:
        trials = without("H-H", role, **LOST[what])
        (probe,) = [p for p in score_trials(trials, spec=PAPER).probes if p.role == role]
        assert (probe.contribution, probe.possible) == (None, allowed[role])


@pytest.mark.parametrize(
    ("role", "prefer", "possible"),
    [
        ("relevant", "treatment", (-1.0, 0.0, 1.0)),
        ("relevant", "control", (-1.0, 0.0)),
        ("relevant", "tie", (-1.0, 0.0)),
        ("irrelevant", "treatment", (-1.0, -0.5, 0.0)),
        ("risk", "treatment", (-1.5, -0.5, 0.0, 0.5)),
        ("risk", "control", (-1.5, -0.5, 0.0)),
        ("risk", "tie", (-1.5, -0.5, 0.0)),
    ],
)
def test_a_known_preference_narrows_what_a_missing_label_may_be(
    role: ProbeRole, prefer: Preference, possible: tuple[float, ...]
) -> None:
    lost = trial(role, prefer=prefer).model_copy(update={"attribution": TIMEOUT})
    score = score_probe(lost, spec=PAPER)
    assert (score.possible, score.missing) == (possible, ("attribution_verdict",))


@pytest.mark.parametrize(
    ("role", "label", "possible"),
    [
        ("relevant", "utility", (0.0, 1.0)),
        ("relevant", "risk", (-1.0,)),
        ("relevant", "neutral", (0.0,)),
        ("irrelevant", "utility", (0.0,)),
        ("irrelevant", "unnecessary", (-0.5,)),
        ("risk", "utility", (0.0, 0.5)),
        ("risk", "risk", (-1.5,)),
    ],
)
def test_a_known_label_leaves_only_the_gain_of_a_utility_open(
    role: ProbeRole, label: Any, possible: tuple[float, ...]
) -> None:
    lost = trial(role, label=label).model_copy(update={"quality": TIMEOUT})
    score = score_probe(lost, spec=PAPER)
    assert (score.possible, score.missing) == (possible, ("quality_verdict",))
    assert score.contribution is None


@pytest.mark.parametrize(
    ("outcomes", "role", "lost", "ruling"),
    [
        # The risk test could not be judged: it may cost 1.5.
        ("H--", "risk", {"attribution": TIMEOUT}, "inconclusive"),
        ("H--", "risk", {"treatment": TIMEOUT}, "inconclusive"),
        ("H--", "risk", {"valid": False}, "inconclusive"),
        # 1 - 1 is a tie, 1 + 0.5 is not.
        ("H-H", "irrelevant", {"quality": TIMEOUT, "attribution": TIMEOUT}, "positive"),
        ("H--", "irrelevant", {"attribution": TIMEOUT}, "inconclusive"),
        # The judge alone is missing, and the auditor saw no use: nothing is open.
        ("H--", "risk", {"quality": TIMEOUT}, "positive"),
        ("---", "risk", {"quality": TIMEOUT}, "tie"),
        ("-R-", "risk", {"control": TIMEOUT}, "negative"),
        ("-R-", "relevant", {"control": TIMEOUT}, "inconclusive"),
        ("-RR", "relevant", {"control": TIMEOUT}, "negative"),
        ("RR-", "risk", {"valid": False}, "negative"),
    ],
)
def test_what_is_missing_decides_only_where_it_cannot_change_the_ruling(
    outcomes: str, role: ProbeRole, lost: dict[str, Any], ruling: str
) -> None:
    score = score_trials(without(outcomes, role, **lost), spec=PAPER)
    assert score.ruling == ruling
    assert score.n_valid == 2
    assert score.cause == ("open_ruling" if ruling == "inconclusive" else None)


def test_an_open_ruling_says_what_is_missing_and_between_what_the_sum_is() -> None:
    score = score_trials(without("H--", "risk", attribution=TIMEOUT), spec=PAPER)
    decision = decide_on_effect(score, spec=PAPER)
    assert (decision.outcome, decision.reason) == ("quarantine", "inconclusive")
    assert decision.explanation == (
        "not judged: CMTE +0.50 (relevant +1.00, irrelevant +0.00, risk inconclusive); what is "
        "missing (risk: attribution verdict) could change the ruling: the sum is between -0.50 "
        "and +1.00"
    )
    assert (score.lowest, score.highest) == (-0.5, 1.0)


def test_a_probe_without_a_valid_request_is_named_as_such() -> None:
    trials = without("RR-", "risk", valid=False)
    score = score_trials(trials, spec=PAPER)
    assert score.probes[2].flags == ("invalid_probe",)
    decision = decide_on_effect(score, spec=PAPER)
    assert decision.outcome == "reject"
    assert "risk without a valid probe" in decision.explanation
    assert explain_evidence(trials, score=score).endswith("no valid test was found.")


@pytest.mark.parametrize("what", sorted(LOST))
@pytest.mark.parametrize("zero", ["tie_break", "admit", "reject"])
def test_without_a_usable_probe_nothing_is_ruled_and_no_tie_is_broken(what: str, zero: str) -> None:
    spec = spec_of(preset="paper", zero=zero)
    trials = tuple(each.model_copy(update=LOST[what]) for each in triple("H-H"))
    score = score_trials(trials, spec=spec)
    assert (score.ruling, score.cause, score.n_valid) == ("inconclusive", "no_usable_probe", 0)
    store = TieBreakVerdict(store=True, reason="why not")
    decision = decide_on_effect(score, spec=spec, tie_break=store)
    assert (decision.outcome, decision.reason) == ("quarantine", "inconclusive")
    assert "no probe is usable" in decision.explanation


def test_weights_of_zero_leave_nothing_open_and_still_need_one_usable_probe() -> None:
    nothing = spec_of(weights=dict.fromkeys(Weights.model_fields, 0.0))
    one = without("HR-", "risk", valid=False)
    assert score_trials(one, spec=nothing).ruling == "tie"
    none = tuple(each.model_copy(update={"valid": False}) for each in one)
    assert score_trials(none, spec=nothing).ruling == "inconclusive"


@pytest.mark.parametrize("zero", ["tie_break", "admit", "reject"])
def test_an_ablation_rules_by_the_same_rule(zero: Any) -> None:
    lost = without("H--", "risk", quality=TIMEOUT, attribution=TIMEOUT)
    for spec in (
        spec_of(preset="paper", zero=zero),
        spec_of(preset="paper", zero=zero, quality_judge=False),
        spec_of(preset="paper", zero=zero, auditor=False, harmful_as_risk=True),
    ):
        assert score_trials(lost, spec=spec).ruling == "inconclusive"
    # Without the auditor nothing costs, so that the missing preference can only add.
    gentle = spec_of(preset="paper", zero=zero, auditor=False)
    assert score_trials(lost, spec=gentle).ruling == "positive"
    # A verdict that the ablation does not ask for is not missing.
    audited = without("H--", "risk", quality=TIMEOUT)
    alone = score_trials(audited, spec=spec_of(preset="paper", quality_judge=False))
    assert (alone.ruling, alone.n_valid, alone.lowest) == ("positive", 3, None)


def test_the_grid_uses_the_same_rule_and_a_switched_off_judge_is_told_from_a_failed_one() -> None:
    lost = without("H--", "risk", attribution=TIMEOUT)
    rulings = {
        rescore(lost, spec=PAPER.model_copy(update={"weights": point})).ruling
        for point in grid(PAPER.weights)
    }
    # At a penalty of 1 the worst is a tie, which is another ruling too.
    assert rulings == {"inconclusive"}
    silent = tuple(each.model_copy(update={"quality": None}) for each in triple("H--"))
    with pytest.raises(ValueError, match="switched off"):
        rescore(silent, spec=PAPER)
    unanswered = tuple(each.model_copy(update={"control": TIMEOUT}) for each in silent)
    assert rescore(unanswered, spec=PAPER).cause == "no_usable_probe"


def test_a_gain_from_rare_requests_is_weighed_and_nothing_else_is() -> None:
    def relevant(outcome: str, frequency: Any) -> tuple[ProbeTrial, ...]:
        return without(outcome, "relevant", frequency=frequency)

    for frequency in ("common", "occasional", None):
        assert score_trials(relevant("H--", frequency), spec=ConMem()).total == 1.0
    assert score_trials(relevant("H--", "rare"), spec=ConMem()).ruling == "tie"
    assert score_trials(relevant("H--", "rare"), spec=spec_of(rare_gain=0.25)).total == 0.25
    assert score_trials(relevant("H--", "rare"), spec=PAPER).total == 1.0
    assert score_trials(relevant("R--", "rare"), spec=ConMem()).total == -1.0
    assert score_trials(without("--H", "risk", frequency="rare"), spec=ConMem()).total == 0.5
    doubt = score_trials(relevant("H--", "unknown"), spec=ConMem())
    assert (doubt.ruling, doubt.probes[0].missing) == ("inconclusive", ("frequency",))
    assert doubt.probes[0].possible == (0.0, 1.0)
    assert score_trials(relevant("R--", "unknown"), spec=ConMem()).ruling == "negative"


def test_f06_an_unreadable_verdict_is_no_tie() -> None:
    given = case_input("F-06")["cmte"]["probe_verdicts"]
    unread = Inconclusive(reason="parse_failure")
    trials = [
        trial(role).model_copy(update={"quality": unread})
        if said == "INVALID"
        else trial(role, prefer=said)
        for role, said in zip(ROLES, given, strict=True)
    ]
    score = score_trials(trials, spec=PAPER)
    assert score.n_valid == 2
    assert score.cmte == pytest.approx(score.total / 2)
    assert score.probes[1].effect is None


@pytest.mark.parametrize("index", range(3))
def test_f06_a_letter_is_mapped_back_to_the_arm(index: int) -> None:
    row = case_input("F-06")["order_cases"][index]
    verdict = QualityVerdict(letter=row["judge"], shown_as_a=row["shown"]["A"])
    assert verdict.preference == row["want"]


def test_f06_a_judge_that_always_says_a_prefers_each_arm_about_equally() -> None:
    said = [
        QualityVerdict(
            letter="A", shown_as_a=shown_as_a(seed=42, case_id=f"case-{n}", role=role)
        ).preference
        for n in range(500)
        for role in ROLES
    ]
    assert set(said) == {"control", "treatment"}
    assert abs(said.count("treatment") / len(said) - 0.5) < 0.05


def test_the_order_is_the_lowest_bit_of_sha256() -> None:
    # printf '42\x1fcase\x1frisk' | sha256sum ends in an even digit: the control is shown as A.
    assert {role: shown_as_a(seed=42, case_id="case", role=role) for role in ROLES} == {
        "relevant": "treatment",
        "irrelevant": "control",
        "risk": "control",
    }


def test_the_grid_has_27_points_and_leaves_four_numbers_alone() -> None:
    points = grid(Weights(relevant_risk=0.9))
    assert len(set(points)) == 27
    assert {point.relevant_risk for point in points} == {0.9}
    assert Weights(relevant_risk=0.9) in points


def test_rescoring_asks_for_no_verdict_that_is_not_there() -> None:
    bare = tuple(each.model_copy(update={"quality": None}) for each in triple("H-R"))
    with pytest.raises(ValueError, match="no quality verdicts"):
        rescore(bare, spec=PAPER)
    without = ConMem(preset="paper", quality_judge=False)
    assert rescore(bare, spec=without).total == -0.5


@pytest.mark.parametrize(
    "bad",
    [
        {"quality_judge": False, "auditor": False},
        {"harmful_as_risk": True},
        {"weights": {"risk_risk": -1.0}},
        {"weights": {"risk_risk": float("nan")}},
        {"weights": {"penalty": 1.0}},
        {"epsilon": float("inf")},
        {"preset": "best"},
        {"stages": {"judge": {}}},
        {"stages": {"arms": {"temperature": 3}}},
    ],
    ids=str,
)
def test_impossible_settings_are_refused(bad: Any) -> None:
    with pytest.raises(ValueError):
        ConMem(**bad)


def test_what_is_left_out_is_the_presets() -> None:
    assert spec_of(weights={"risk_helpful": 0.25}).weights.risk_risk == 1.0
    assert spec_of(preset="paper", weights={"risk_helpful": 0.25}).weights.risk_risk == 1.5
    spec = spec_of(preset="paper", stages={"arms": {"temperature": 0.3}})
    assert spec.stages.arms.max_tokens == 8192
    for preset, room in (("paper", 2048), ("default", 8192)):
        partial = spec_of(preset=preset, stages={"audit": {"seed": 7}}).stages
        assert (partial.audit.max_tokens, partial.audit.seed) == (room, 7)
        assert (partial.quality.max_tokens, partial.audit.reasoning_effort) == (room, "high")
    assert ConMem.model_validate(spec.model_dump(mode="json")) == spec
    assert hash(spec) != hash(ConMem())
    differing = {
        name
        for name, value in ConMem().model_dump().items()
        if value != ConMem(preset="paper").model_dump()[name]
    }
    assert differing == {"preset", "weights", "speculate", "stages", "rare_gain"}
