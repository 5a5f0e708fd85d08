"""What holds of support scores whatever they are."""

import math

from hypothesis import given
from hypothesis import strategies as st

from memguard.methods.consistency_gate.rules import (
    adaptive_threshold,
    is_settled,
    passes_threshold,
    rule_on_support,
)

# Floats as judges give them, and floats at the edge of what a float can tell apart.
scores = st.floats(0, 1) | st.sampled_from([0.0, 0.1, 0.5, 0.7, 0.8, 1.0])
samples = st.none() | scores
taus = st.floats(0, 1) | st.sampled_from([0.0, 0.4, 0.6, 0.7, 0.8, 1.0])


@given(st.lists(samples, min_size=1, max_size=9), st.integers(0, 9), taus)
def test_stopping_early_never_changes_the_ruling(
    every: list[float | None], seen: int, tau: float
) -> None:
    seen = min(seen, len(every))
    k = len(every)
    so_far = every[:seen]
    if is_settled(so_far, remaining=k - seen, k=k, tau=tau):
        early = rule_on_support(so_far, k=k, tau=tau).ruling
        assert early == rule_on_support(every, k=k, tau=tau).ruling
        assert early != "inconclusive"


@given(st.lists(samples, min_size=1, max_size=9), taus)
def test_the_full_set_is_settled_unless_inconclusive(every: list[float | None], tau: float) -> None:
    ruling = rule_on_support(every, k=len(every), tau=tau).ruling
    settled = is_settled(every, remaining=0, k=len(every), tau=tau)
    assert settled == (ruling != "inconclusive")


@given(st.lists(samples, min_size=1, max_size=7), taus, st.randoms())
def test_order_does_not_matter(every: list[float | None], tau: float, random: object) -> None:
    shuffled = list(every)
    random.shuffle(shuffled)  # pyright: ignore[reportAttributeAccessIssue]
    one = rule_on_support(every, k=len(every), tau=tau)
    assert one == rule_on_support(shuffled, k=len(every), tau=tau)


@given(st.integers(0, 5000), st.integers(0, 5000), taus, taus, st.integers(1, 2000))
def test_the_threshold_never_falls_as_a_namespace_fills(
    few: int, many: int, one: float, two: float, capacity: int
) -> None:
    few, many = sorted((few, many))
    low, high = sorted((one, two))
    before = adaptive_threshold(few, tau_min=low, tau_max=high, capacity=capacity)
    after = adaptive_threshold(many, tau_min=low, tau_max=high, capacity=capacity)
    assert low <= before <= after <= high


@given(st.lists(scores | st.just(math.nan), max_size=7), taus)
def test_a_nan_never_admits(every: list[float], tau: float) -> None:
    clean = [score for score in every if not math.isnan(score)]
    with_nan = rule_on_support(every, k=max(1, len(every)), tau=tau)
    assert with_nan.usable == len(clean)
    assert not passes_threshold(math.nan, tau=tau)


@given(st.lists(samples, max_size=7), st.integers(1, 9), taus)
def test_inconclusive_is_never_a_ruling_on_support(
    every: list[float | None], k: int, tau: float
) -> None:
    ruled = rule_on_support(every, k=k, tau=tau)
    usable = sum(score is not None for score in every)
    assert (ruled.ruling == "inconclusive") == (usable == 0 or 2 * usable < k)
