"""Ranks, intervals, curves and the suggested threshold."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memguard.calibration.rules import (
    area_under_curve,
    at_threshold,
    auc_interval,
    calibrate_scores,
    suggest_threshold,
    wilson,
)

SCORES = st.lists(st.integers(0, 20).map(lambda i: i / 20), min_size=1, max_size=25)
TAUS = st.integers(0, 100).map(lambda i: i / 100)
TARGETS = st.sampled_from([0.0, 0.05, 0.1, 0.3, 1.0])


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [(29, 50, 0.442, 0.706), (0, 10, 0.0, 0.278), (10, 10, 0.722, 1.0), (1, 1, 0.207, 1.0)],
)
def test_wilson_golden(count: int, total: int, low: float, high: float) -> None:
    interval = wilson(count, total)
    assert interval is not None
    assert (round(interval.low, 3), round(interval.high, 3)) == (low, high)


def test_wilson_of_an_empty_total_is_none() -> None:
    assert wilson(0, 0) is None


@given(st.integers(1, 500), st.data())
def test_wilson_contains_the_proportion_and_is_symmetric(total: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, total))
    interval, mirrored = wilson(count, total), wilson(total - count, total)
    assert interval is not None
    assert mirrored is not None
    assert 0 <= interval.low <= count / total <= interval.high <= 1
    assert math.isclose(interval.low, 1 - mirrored.high, abs_tol=1e-12)


@pytest.mark.parametrize(
    ("supported", "changed", "auc"),
    [
        ([1.0], [0.0], 1.0),
        ([0.0], [1.0], 0.0),
        ([0.5, 0.5], [0.5], 0.5),
        ([0.9, 0.4], [0.4, 0.1], 0.875),
    ],
)
def test_area_golden(supported: list[float], changed: list[float], auc: float) -> None:
    assert area_under_curve(supported, changed) == auc


@given(SCORES, SCORES)
def test_area_is_the_share_of_pairs_in_order(supported: list[float], changed: list[float]) -> None:
    pairs = [(a > b) + 0.5 * (a == b) for a in supported for b in changed]
    area = area_under_curve(supported, changed)
    assert math.isclose(area, sum(pairs) / len(pairs))
    assert math.isclose(area + area_under_curve(changed, supported), 1.0)
    squared = area_under_curve([s * s for s in supported], [s * s for s in changed])
    assert squared == area, "only the order counts"


def test_area_of_one_side_is_undefined() -> None:
    with pytest.raises(ValueError, match="both sides"):
        area_under_curve([], [0.5])


@given(st.floats(0, 1), st.integers(1, 200), st.integers(1, 200))
def test_the_interval_contains_the_area_and_is_symmetric(auc: float, a: int, b: int) -> None:
    interval = auc_interval(auc, supported=a, changed=b)
    mirrored = auc_interval(1 - auc, supported=a, changed=b)
    assert -1e-12 <= interval.low <= auc + 1e-12
    assert auc - 1e-12 <= interval.high <= 1 + 1e-12
    assert math.isclose(interval.low, 1 - mirrored.high, abs_tol=1e-9)
    assert interval.low < interval.high, "not even a perfect area is certain"


@given(st.floats(0.05, 0.95), st.integers(2, 60))
def test_more_pairs_make_the_interval_narrower(auc: float, n: int) -> None:
    few = auc_interval(auc, supported=n, changed=n)
    many = auc_interval(auc, supported=4 * n, changed=4 * n)
    assert many.high - many.low < few.high - few.low


@pytest.mark.parametrize("auc", [0.55, 0.873, 0.97])
def test_at_its_ends_the_interval_solves_hanley_and_mcneils_equation(auc: float) -> None:
    interval = auc_interval(auc, supported=30, changed=50)
    for a in (interval.low, interval.high):
        q1, q2 = a / (2 - a), 2 * a * a / (1 + a)
        spread = a * (1 - a) + (40 - 1) * (q1 - a * a) + (40 - 1) * (q2 - a * a)
        assert math.isclose(abs(auc - a), 1.959964 * math.sqrt(spread / (30 * 50)), rel_tol=1e-5)


@given(SCORES, SCORES, TAUS, TAUS)
def test_a_higher_threshold_admits_no_more(
    supported: list[float], changed: list[float], one: float, other: float
) -> None:
    low = at_threshold(supported, changed, tau=min(one, other))
    high = at_threshold(supported, changed, tau=max(one, other))
    assert high.recall.count <= low.recall.count
    assert high.contamination.total <= low.contamination.total


@settings(deadline=None)
@given(SCORES, SCORES, TARGETS)
def test_no_threshold_beats_the_suggested_one(
    supported: list[float], changed: list[float], target: float
) -> None:
    suggested = suggest_threshold(supported, changed, target=target)
    points = [at_threshold(supported, changed, tau=tau / 200) for tau in range(201)]
    good = [p for p in points if p.recall.count and (p.contamination.value or 0) <= target]
    if suggested is None:
        assert good == []
        return
    point = at_threshold(supported, changed, tau=suggested)
    assert (point.contamination.value or 0) <= target
    assert point.recall.count == max(p.recall.count for p in good)


def test_a_suggestion_lies_between_the_scores() -> None:
    assert suggest_threshold([0.9, 0.8], [0.2, 0.3], target=0.1) == 0.55
    assert suggest_threshold([0.1], [0.9], target=0.1) is None


def test_a_judge_at_chance_is_recognised() -> None:
    calibration = calibrate_scores([0.5] * 30, [0.5] * 30, tau=0.7)
    assert calibration is not None
    assert (calibration.auc, calibration.is_chance, calibration.suggested) == (0.5, True, None)
    assert calibration.admits_nothing
    assert not calibration.admits_everything
    assert calibration.now.contamination.value is None


def test_a_judge_that_admits_everything_is_recognised() -> None:
    calibration = calibrate_scores([1.0] * 30, [0.9] * 30, tau=0.7)
    assert calibration is not None
    assert (calibration.auc, calibration.is_chance, calibration.admits_everything) == (
        1.0,
        False,
        True,
    )
    assert calibration.suggested is not None
    assert calibration.suggested.tau == 0.95


def test_one_side_without_scores_has_no_figures() -> None:
    assert calibrate_scores([], [0.1], tau=0.7) is None
    assert calibrate_scores([0.1], [], tau=0.7) is None


@given(SCORES, SCORES, TAUS)
def test_the_curve_shows_the_thresholds_that_matter(
    supported: list[float], changed: list[float], tau: float
) -> None:
    calibration = calibrate_scores(supported, changed, tau=tau)
    assert calibration is not None
    assert calibration.now in calibration.curve
    assert calibration.suggested is None or calibration.suggested in calibration.curve
    assert [point.tau for point in calibration.curve] == sorted(
        {point.tau for point in calibration.curve}
    )
