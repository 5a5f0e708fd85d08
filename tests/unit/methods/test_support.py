"""The arithmetic of ConsistencyGate, with the golden values of its paper."""

import math

import pytest

from memguard.methods.consistency_gate.rules import (
    adaptive_threshold,
    is_settled,
    passes_threshold,
    rule_on_support,
)


@pytest.mark.parametrize(
    ("occupancy", "tau"), [(0, 0.4), (250, 0.6), (500, 0.8), (501, 0.8), (10_000, 0.8)]
)
def test_adaptive_threshold_of_the_paper(occupancy: int, tau: float) -> None:
    got = adaptive_threshold(occupancy, tau_min=0.4, tau_max=0.8, capacity=500)
    assert got == pytest.approx(tau, abs=1e-12)


def test_three_samples_of_point_seven_pass_point_seven() -> None:
    # In binary floating point their mean is 0.6999999999999998.
    assert (0.7 + 0.7 + 0.7) / 3 < 0.7
    assert rule_on_support([0.7, 0.7, 0.7], k=3, tau=0.7).ruling == "supported"


def test_mean_of_five_on_the_threshold_passes() -> None:
    assert rule_on_support([0.5, 1.0, 0.5, 1.0, 0.5], k=5, tau=0.7).ruling == "supported"


def test_a_mean_just_below_is_rejected() -> None:
    assert rule_on_support([0.699], k=1, tau=0.7).ruling == "low_support"


@pytest.mark.parametrize("mean", [math.nan, None])
def test_nan_and_nothing_never_pass(mean: float | None) -> None:
    assert not passes_threshold(mean, tau=0.0)


def test_nan_among_scores_is_not_usable() -> None:
    ruled = rule_on_support([math.nan, 1.0, 1.0], k=3, tau=0.7)
    assert (ruled.usable, ruled.mean) == (2, 1.0)


@pytest.mark.parametrize(
    ("scores", "k", "ruling", "usable"),
    [
        ([0.9, 0.9, None, 0.8, None], 5, "supported", 3),
        ([0.9, None, None, None, None], 5, "inconclusive", 1),
        ([None] * 5, 5, "inconclusive", 0),
        ([0.1, 0.2, None, 0.1, None], 5, "low_support", 3),
        ([0.9, 0.9, None, None], 4, "supported", 2),
        ([], 1, "inconclusive", 0),
    ],
)
def test_fewer_than_half_usable_is_inconclusive(
    scores: list[float | None], k: int, ruling: str, usable: int
) -> None:
    ruled = rule_on_support(scores, k=k, tau=0.7)
    assert (ruled.ruling, ruled.usable) == (ruling, usable)


def test_unusable_samples_are_not_zeros() -> None:
    assert rule_on_support([0.9, 0.9, None, 0.8, None], k=5, tau=0.7).mean == pytest.approx(
        0.8666666667
    )


def test_stops_when_the_rest_cannot_matter() -> None:
    assert is_settled([0.1, 0.1, 0.1], remaining=2, k=5, tau=0.7)
    assert is_settled([1.0, 1.0, 1.0, 0.9], remaining=1, k=5, tau=0.7)
    assert not is_settled([1.0, 1.0, 1.0], remaining=2, k=5, tau=0.7)


def test_never_stops_before_half_are_usable() -> None:
    assert not is_settled([0.0, 0.0], remaining=3, k=5, tau=0.9)
    assert not is_settled([0.0, 0.0, None], remaining=2, k=5, tau=0.9)
