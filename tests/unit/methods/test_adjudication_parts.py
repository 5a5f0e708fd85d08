"""How much goes into one call."""

from hypothesis import given
from hypothesis import strategies as st

from memguard.methods.adjudication.case import clip_evidence
from memguard.methods.adjudication.model import pairs_of
from memguard.methods.adjudication.parts import split_parts
from memguard.methods.adjudication.rendering import estimate_tokens
from memguard.schema.read import Conflict, Evidence


@given(st.lists(st.integers(1, 50)), st.integers(1, 60), st.integers(1, 5))
def test_parts_hold_everything_in_order_within_the_limits(
    costs: list[int], tokens: int, things: int
) -> None:
    given_things = list(range(len(costs)))
    parts = split_parts(given_things, costs=costs, max_tokens=tokens, max_items=things)
    assert [each for part in parts for each in part] == given_things
    for part in parts:
        assert 1 <= len(part) <= things
        assert len(part) == 1 or sum(costs[each] for each in part) <= tokens


@given(st.lists(st.text(max_size=400), max_size=6), st.integers(200, 800))
def test_evidence_is_cut_only_where_it_is_too_long(texts: list[str], most: int) -> None:
    given_evidence = [Evidence(text=text) for text in texts]
    kept, cut = clip_evidence(given_evidence, max_chars=most)
    said = [each for each in given_evidence if each.text.strip()]
    assert len(kept) == len(said)
    assert sum(len(each.text) for each in kept) <= most + 20 * len(said)
    assert cut == (sum(len(each.text) for each in said) > most)
    if not cut:
        assert list(kept) == said


def test_a_long_document_keeps_its_beginning_and_end() -> None:
    long = Evidence(text="begin " + "x" * 100_000 + " end", source="report.pdf")
    short = Evidence(text="A short note.")
    (first, second), cut = clip_evidence([long, short], max_chars=1000)
    assert cut
    assert second == short
    assert first.text.startswith("begin ")
    assert first.text.endswith(" end")
    assert "[... cut ...]" in first.text
    assert first.source == "report.pdf"


def test_tokens_are_estimated_from_bytes() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("abcd" * 10) == 10
    assert estimate_tokens("面包店") == 3


def test_a_group_of_conflicts_that_repeats_a_unit_has_each_pair_once() -> None:
    names = {"u1": "a", "u2": "b", "u3": "c"}
    # Every two entries were a pair before: two thousand million of them.
    groups = [["u1", "u2"] * 30_000, ["u2", "u1", "u9"], ["u1", "u3"]]
    assert pairs_of(groups, names=names) == [
        Conflict(first="a", second="b"),
        Conflict(first="b", second="a"),
        Conflict(first="a", second="c"),
    ]
