"""What holds for the comparison of requests, whatever their text is."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from memguard.methods.conmem.config import ROLES, ProbeRole
from memguard.methods.conmem.screening import (
    MAX_SHARED,
    names_candidate,
    normal_form,
    screen,
    shared_runs,
)

texts = st.text(max_size=60)
words = st.text(min_size=1, max_size=60).filter(normal_form)
roles = st.sampled_from(ROLES)
sets = st.fixed_dictionaries(dict.fromkeys(ROLES, words))


@given(texts)
def test_the_normal_form_is_stable_and_blind_to_case_and_punctuation(text: str) -> None:
    normal = normal_form(text)
    assert normal_form(normal) == normal
    assert normal_form(f"  {text}!? ") == normal
    assert normal_form(unicodedata.normalize("NFKC", text)) == normal


@given(words, texts, texts, roles)
def test_a_request_that_contains_the_candidate_names_it(
    candidate: str, before: str, after: str, role: ProbeRole
) -> None:
    assert names_candidate(f"{before} {candidate} {after}", role=role, candidate=candidate)
    assert shared_runs(candidate, candidate) == 1.0


@given(words, texts)
def test_shared_runs_are_a_share_and_a_longer_request_shares_no_less(
    candidate: str, request: str
) -> None:
    share = shared_runs(candidate, request)
    assert 0.0 <= share <= 1.0
    assert shared_runs(candidate, f"{request} and more") >= share
    names = names_candidate(request, role="irrelevant", candidate=candidate)
    assert names == (share >= MAX_SHARED)
    assert names <= names_candidate(request, role="relevant", candidate=candidate)


@given(sets, words)
def test_no_two_requests_without_a_fault_are_equal_and_none_names_the_candidate(
    requests: dict[ProbeRole, str], candidate: str
) -> None:
    faults = screen(requests, candidate=candidate, current={})
    good: dict[ProbeRole, str] = {r: text for r, text in requests.items() if r not in faults}
    assert len({normal_form(text) for text in good.values()}) == len(good)
    assert not any(names_candidate(t, role=r, candidate=candidate) for r, t in good.items())
    assert all(audit.by_rule and not audit.passes for audit in faults.values())


@given(sets, words)
def test_a_request_that_was_rejected_or_is_another_ones_is_at_fault(
    requests: dict[ProbeRole, str], candidate: str
) -> None:
    all_rejected = screen(requests, candidate=candidate, current={}, rejected=requests.values())
    assert set(all_rejected) == set(ROLES)
    (role, *others) = ROLES
    taken: dict[ProbeRole, str] = {others[0]: requests[role]}
    assert role in screen({role: requests[role]}, candidate=candidate, current=taken)
