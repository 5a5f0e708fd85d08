"""What holds for ConMem's arithmetic whatever the verdicts and the weights are."""

import random
from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from memguard.methods.conmem.config import (
    CONMEM_PRESETS,
    ROLES,
    ConMem,
    Frequency,
    ProbeRole,
    Weights,
)
from memguard.methods.conmem.ladder import clip_history, next_step, probe_states
from memguard.methods.conmem.log import (
    AttributionVerdict,
    LadderStep,
    Probe,
    ProbeAudit,
    ProbeRound,
    ProbeTrial,
    QualityVerdict,
    Response,
)
from memguard.methods.conmem.rules import (
    decide_on_effect,
    effect_of,
    grid,
    score_probe,
    score_trials,
    shown_as_a,
)
from memguard.schema.decision import Inconclusive
from memguard.schema.memory import Turn

PAPER = CONMEM_PRESETS["paper"]
BROKEN = Inconclusive(reason="provider_error")
ARMS = st.sampled_from(["control", "treatment"])

qualities = st.builds(QualityVerdict, letter=st.sampled_from(["A", "B", "TIE"]), shown_as_a=ARMS)
attributions = st.builds(
    AttributionVerdict,
    used=st.booleans(),
    changed=st.booleans(),
    label=st.sampled_from(["utility", "unnecessary", "neutral", "risk"]),
)
answers = st.just(Response(text="x"))
numbers = st.floats(0.0, 10.0) | st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.5, 1.0])
weights = st.builds(Weights, **dict.fromkeys(Weights.model_fields, numbers))


def spec_of(**settings: Any) -> ConMem:
    return ConMem(**settings)


@st.composite
def trials(draw: st.DrawFn, *, conclusive: bool = False) -> tuple[ProbeTrial, ...]:
    def one(role: ProbeRole) -> ProbeTrial:
        if not conclusive and draw(st.integers(0, 9)) == 0:
            return ProbeTrial(role=role, valid=False)

        def usable(kind: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
            return kind if conclusive else st.one_of(kind, kind, st.just(BROKEN))

        often: list[Frequency | None] = [
            "common",
            "occasional",
            "rare",
            None,
            *([] if conclusive else ["unknown"]),
        ]
        return ProbeTrial(
            role=role,
            query="?",
            frequency=draw(st.sampled_from(often)),
            control=draw(usable(answers)),
            treatment=draw(usable(answers)),
            quality=draw(usable(qualities)),
            attribution=draw(usable(attributions)),
        )

    return tuple(one(role) for role in ROLES)


@given(trials())
def test_a_risk_penalty_of_2_decides_as_1_5_does(given: tuple[ProbeTrial, ...]) -> None:
    harder = spec_of(preset="paper", weights={"risk_risk": 2.0})
    assert score_trials(given, spec=harder).ruling == score_trials(given, spec=PAPER).ruling


@given(trials(), weights)
def test_the_order_of_probes_cannot_show(given: tuple[ProbeTrial, ...], numbers: Weights) -> None:
    spec = ConMem(weights=numbers)
    mixed = random.Random(len(str(given))).sample(given, k=len(given))
    one, other = score_trials(given, spec=spec), score_trials(mixed, spec=spec)
    assert (one.ruling, one.total, one.cmte) == (other.ruling, other.total, other.cmte)


@given(trials(conclusive=True), weights)
def test_swapping_a_and_b_swaps_the_letter_and_nothing_else(
    given: tuple[ProbeTrial, ...], numbers: Weights
) -> None:
    swapped = tuple(each.model_copy(update={"quality": _swap(each.quality)}) for each in given)
    for spec in (ConMem(weights=numbers), ConMem(weights=numbers, auditor=False)):
        assert score_trials(given, spec=spec) == score_trials(swapped, spec=spec)
    for one, other in zip(given, swapped, strict=True):
        assert isinstance(one.quality, QualityVerdict)
        assert isinstance(other.quality, QualityVerdict)
        assert one.quality.preference == other.quality.preference
        assert one.quality.shown_as_a != other.quality.shown_as_a


def _swap(verdict: object) -> QualityVerdict:
    assert isinstance(verdict, QualityVerdict)
    letters = {"A": "B", "B": "A", "TIE": "TIE"}
    other = {"control": "treatment", "treatment": "control"}
    return QualityVerdict.model_validate(
        {"letter": letters[verdict.letter], "shown_as_a": other[verdict.shown_as_a]}
    )


SPECS = st.builds(
    spec_of,
    weights=weights,
    rare_gain=st.sampled_from([0.0, 0.5, 1.0]),
) | st.one_of(
    st.builds(spec_of, weights=weights, quality_judge=st.sampled_from([False])),
    st.builds(
        spec_of, weights=weights, auditor=st.sampled_from([False]), harmful_as_risk=st.booleans()
    ),
)


def completions(trial: ProbeTrial) -> list[ProbeTrial]:
    """Every trial that could have been, had nothing failed."""
    answered = trial.valid and isinstance(trial.control, Response)
    answered = answered and isinstance(trial.treatment, Response)
    quality: Any = trial.quality if answered else None
    attribution: Any = trial.attribution if answered else None
    preferences = (
        [quality]
        if isinstance(quality, QualityVerdict)
        else [QualityVerdict(letter=letter, shown_as_a="control") for letter in ("A", "B", "TIE")]
    )
    verdicts = (
        [attribution]
        if isinstance(attribution, AttributionVerdict)
        else [
            AttributionVerdict(used=used, changed=changed, label=label)
            for used in (True, False)
            for changed in (True, False)
            for label in ("utility", "unnecessary", "neutral", "risk")
        ]
    )
    often = ("common", "rare") if trial.frequency == "unknown" else (trial.frequency,)
    return [
        ProbeTrial(
            role=trial.role,
            query="?",
            control=Response(text="x"),
            treatment=Response(text="x"),
            quality=judged,
            attribution=audited,
            frequency=frequency,
        )
        for judged in preferences
        for audited in verdicts
        for frequency in often
    ]


@settings(max_examples=150, deadline=None)
@given(trials(), SPECS)
def test_a_ruling_holds_for_every_completion_and_doubt_means_that_two_differ(
    given: tuple[ProbeTrial, ...], spec: ConMem
) -> None:
    score = score_trials(given, spec=spec)
    # Trials with one contribution are one case: what decides is the sum.
    values = [
        {score_probe(each, spec=spec).contribution: each for each in completions(trial)}.values()
        for trial in given
    ]
    rulings = {score_trials(case, spec=spec).ruling for case in product(*values)}
    assert "inconclusive" not in rulings
    if score.n_valid == 0:
        assert (score.ruling, score.cause) == ("inconclusive", "no_usable_probe")
    elif len(rulings) == 1:
        assert ({score.ruling}, score.cause) == (rulings, None)
    else:
        assert (score.ruling, score.cause) == ("inconclusive", "open_ruling")


@given(trials(), SPECS)
def test_possible_contributions_are_those_of_the_completions(
    given: tuple[ProbeTrial, ...], spec: ConMem
) -> None:
    for trial, probe in zip(given, score_trials(given, spec=spec).probes, strict=True):
        all_of = {score_probe(each, spec=spec).contribution for each in completions(trial)}
        assert all_of == set(probe.possible or (probe.contribution,))
        assert (probe.contribution is None) == bool(probe.missing) == bool(probe.possible)


@given(trials(), SPECS)
def test_inconclusive_is_never_read_as_a_label_or_as_zero(
    given: tuple[ProbeTrial, ...], spec: ConMem
) -> None:
    score = score_trials(given, spec=spec)
    for trial, probe in zip(given, score.probes, strict=True):
        verdicts = [trial.quality] * spec.quality_judge + [trial.attribution] * spec.auditor
        lost = not trial.valid or BROKEN in (trial.control, trial.treatment, *verdicts)
        assert probe.contribution is None or not lost
        assert not lost or (probe.effect, probe.label) == (None, None)
    decision = decide_on_effect(score, spec=spec)
    if score.ruling == "inconclusive":
        assert (decision.outcome, decision.reason) == ("quarantine", "inconclusive")
        assert "missing" in decision.explanation


@given(trials(), weights)
def test_one_more_verdict_never_turns_a_ruling_around(
    given: tuple[ProbeTrial, ...], numbers: Weights
) -> None:
    """What is ruled without a verdict is ruled with it too, whatever it is."""
    spec = ConMem(weights=numbers)
    before = score_trials(given, spec=spec).ruling
    complete = tuple(completions(trial)[-1] for trial in given)
    if before != "inconclusive":
        assert score_trials(complete, spec=spec).ruling == before


@given(trials(), weights)
def test_harder_weights_never_admit_more(given: tuple[ProbeTrial, ...], numbers: Weights) -> None:
    harder = numbers.model_copy(
        update={
            "relevant_risk": numbers.relevant_risk + 1,
            "irrelevant_unnecessary": numbers.irrelevant_unnecessary + 1,
            "risk_risk": numbers.risk_risk + 1,
        }
    )
    soft = score_trials(given, spec=ConMem(weights=numbers))
    hard = score_trials(given, spec=ConMem(weights=harder))
    assert hard.total <= soft.total
    assert not (hard.ruling == "positive" and soft.ruling != "positive")
    assert not (soft.ruling == "negative" and hard.ruling != "negative")


@given(trials(conclusive=True))
def test_only_a_helpful_utility_admits(given: tuple[ProbeTrial, ...]) -> None:
    for point in grid(PAPER.weights):
        score = score_trials(given, spec=PAPER.model_copy(update={"weights": point}))
        if score.ruling == "positive":
            gains = [p for p in score.probes if p.label == "utility" and p.effect == "helpful"]
            assert any(probe.role in {"relevant", "risk"} for probe in gains)


@given(ARMS, st.sampled_from(["utility", "unnecessary", "neutral", "risk"]))
def test_a_memory_that_did_nothing_has_no_effect(prefers: str, label: str) -> None:
    verdict = AttributionVerdict.model_validate({"used": False, "changed": True, "label": label})
    assert effect_of(prefers, attribution=verdict) == "neutral"  # pyright: ignore[reportArgumentType]


@given(st.integers(), st.text(max_size=20))
def test_the_order_is_the_same_each_time(seed: int, case: str) -> None:
    once = [shown_as_a(seed=seed, case_id=case, role=role) for role in ROLES]
    assert once == [shown_as_a(seed=seed, case_id=case, role=role) for role in ROLES]


@given(
    st.lists(st.text(max_size=30), max_size=12),
    st.sets(st.integers(0, 11)),
    st.integers(1, 6),
    st.integers(5, 60),
)
def test_a_history_is_never_cut_silently(
    texts: list[str], named: set[int], max_turns: int, max_chars: int
) -> None:
    turns = [Turn(id=str(n), role="user", content=text) for n, text in enumerate(texts)]
    ids = {str(n) for n in named}
    shown = clip_history(turns, named=ids, max_turns=max_turns, max_chars=max_chars)
    assert len(shown.turns) <= max_turns
    assert sum(len(turn.content) for turn in shown.turns) <= max_chars
    assert shown.left_out == len(turns) - len(shown.turns)
    assert bool(shown.notes) == (shown.left_out > 0 or shown.cut_short)
    assert [int(turn.id) for turn in shown.turns] == sorted(int(turn.id) for turn in shown.turns)
    assert bool(shown.turns) == bool(turns)


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=12))
def test_the_ladder_ends_and_a_valid_probe_stays_until_a_fresh_set(
    verdicts: list[list[bool]],
) -> None:
    spec, rounds = ConMem(), list[ProbeRound]()
    stands: dict[ProbeRole, str] = {}
    step: LadderStep | None = "generate"
    for number, valid in enumerate(verdicts):
        if step is None:
            break
        if step == "reconstruct":
            stands = {}
        probes = tuple(Probe(role=role, query=f"{role} {number}") for role in ROLES)
        audits = tuple(
            ProbeAudit(role=role, valid=ok) for role, ok in zip(ROLES, valid, strict=True)
        )
        rounds.append(ProbeRound(step=step, probes=probes, audits=audits))
        for role, now in probe_states(rounds).items():
            if role in stands:
                assert now.query == stands[role]
            elif now.is_valid:
                stands[role] = now.query
        step = next_step(rounds, spec=spec)
    assert len(rounds) <= 1 + spec.regenerations + spec.repairs + spec.reconstructions


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=6))
def test_a_failed_call_never_makes_a_probe_valid_or_invalid(
    repairs: list[tuple[bool, bool]],
) -> None:
    """Whatever fails in whatever order: the last verdict of a validator stands."""
    first = tuple(ProbeAudit(role=role, valid=role == "relevant") for role in ROLES)
    probes = tuple(Probe(role=role, query=role) for role in ROLES)
    rounds = [ProbeRound(step="generate", probes=probes, audits=first)]
    for is_set, writes in repairs:
        step: LadderStep = "reconstruct" if is_set else "repair"
        rounds.append(
            ProbeRound(
                step=step, probes=probes if writes and not is_set else (), failures=(BROKEN,)
            )
        )
        states = probe_states(rounds)
        assert states["relevant"].is_valid
        assert states["relevant"].failure is None
        for role in ("irrelevant", "risk"):
            assert (states[role].is_valid, states[role].failure) == (False, BROKEN)
