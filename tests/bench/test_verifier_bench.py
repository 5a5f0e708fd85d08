"""Corruptor, third person, figures and hand-written sets of the verifier's benchmark."""

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.verifier.arrays import write_arrays
from benchmarks.verifier.corruptor import CHANGES, WEIGHTS, Fact, corrupt
from benchmarks.verifier.figures import admission, auc, platt
from benchmarks.verifier.frames import read_frames
from benchmarks.verifier.pairs import share
from benchmarks.verifier.person import HE, SHE, THEY, third_person
from benchmarks.verifier.sets import handmade_groups
from benchmarks.verifier.templates import read_patterns, template_groups
from memguard.calibration.rules import Interval, Proportion
from memguard.local.verifier.words import read_words

FRAMES = read_frames(
    ["I have a dog", "I have a cat", "I like my cat", "I like my dog", "I have a boat"] * 2
)


def fact(text: str, *, window: str, unrelated: tuple[str, ...] = ()) -> Fact:
    return Fact(text=text, window=window, subject="Anna", other="Ben", unrelated=unrelated)


@pytest.mark.parametrize(
    ("original", "expected"),
    [
        ("I have my dog.", "Anna has her dog."),
        ("I'm a nurse and I love my job.", "Anna is a nurse and she loves her job."),
        ("My mother taught me to cook.", "Anna's mother taught her to cook."),
        ("I don't like tea.", "Anna doesn't like tea."),
        ("I never watch TV.", "Anna never watches TV."),
        ("I went home.", "Anna went home."),
        ("I carry it myself.", "Anna carries it herself."),
    ],
)
def test_first_person_becomes_third(original: str, expected: str) -> None:
    assert third_person(original, name="Anna", pronouns=SHE) == expected


def test_they_keeps_its_verb() -> None:
    assert (
        third_person("I think I have it.", name="Kim", pronouns=THEY) == "Kim thinks they have it."
    )
    assert third_person("I think I have it.", name="Kim", pronouns=HE) == "Kim thinks he has it."


@pytest.mark.parametrize(
    ("kind", "text", "window"),
    [
        ("number", "Anna has 7 goats", "Anna: I have 7 goats"),
        ("number", "Anna has seven goats", "Anna: I have 7 goats"),
        ("name", "Anna's sister Kate is here", "Anna: my sister Kate is here"),
        ("place", "Anna lives in Paris", "Anna: I live in Paris"),
        ("occupation", "Anna is a nurse", "Anna: I am a nurse"),
        ("date", "Anna was born in May", "Anna: I was born in May"),
        ("date", "Anna moved in 2019", "Anna: I moved in 2019"),
        ("activity", "Anna likes hiking", "Anna: I like hiking"),
        ("relation", "Anna has two sisters", "Anna: I have two sisters"),
        ("antonym", "Anna loves tea", "Anna: I love tea"),
        ("negation", "Anna is not tall", "Anna: I am not tall"),
        ("negation", "Anna is tall", "Anna: I am tall"),
        ("speaker", "Anna has a goat", "Anna: I have a goat"),
        ("object", "Anna likes my dog", "Anna: I like my dog"),
        ("swap", "Anna has 7 goats", "Anna: I have 7 goats and 9 hens"),
        ("unstated", "Anna has a goat", "Anna: I have a goat"),
    ],
)
def test_each_kind_changes_one_thing(kind: str, text: str, window: str) -> None:
    source = fact(text, window=window, unrelated=("Anna plays chess",))
    changed = CHANGES[kind](source, FRAMES, random.Random(1))
    assert changed is not None
    assert changed != text
    if kind not in {"unstated", "negation"}:
        before, after = Counter(text.split()), Counter(changed.split())
        assert (before - after).total() == 1


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("Anna's sister Kate is a nurse", "Anna is a nurse"),
        ("Anna's youngest daughter is 9", "Anna is 9"),
        ("Anna's house is blue", None),
        ("Anna is a nurse", None),
    ],
)
def test_a_fact_about_a_sister_is_attributed_to_the_subject(text: str, changed: str | None) -> None:
    source = fact(text, window="Anna: it is so")
    assert CHANGES["owner"](source, FRAMES, random.Random(1)) == changed


def test_a_change_for_training_only_is_not_in_an_evaluation_set() -> None:
    assert "owner" not in WEIGHTS


@given(seed=st.integers(0, 10_000))
def test_a_substitute_is_not_in_the_window_unless_it_is_a_swap(seed: int) -> None:
    window = "Anna: In May I had 7 goats in Paris, my sister Kate had 9 and is a nurse"
    source = fact("Anna had 7 goats in Paris in May with Kate", window=window)
    changed = corrupt(source, FRAMES, random.Random(seed))
    assert changed is not None
    text, kind = changed
    there = frozenset(read_words(window).stems) | {"ben"}
    new = frozenset(read_words(text).stems) - frozenset(read_words(source.text).stems)
    if kind in {"swap", "speaker"}:
        assert new <= there
    elif kind != "negation":
        assert new
        assert not new & there


def test_nothing_to_change() -> None:
    source = Fact(text="Hm", window="Hm", subject="", other="")
    assert corrupt(source, FRAMES, random.Random(0)) is None


def test_templates_are_the_same_every_time() -> None:
    assert list(template_groups(30)) == list(template_groups(30))
    assert all(
        "{a}" in pattern.sentence and "{b}" in pattern.sentence for pattern in read_patterns()
    )


@pytest.mark.parametrize("language", ["en", "de"])
def test_hand_written_sets(language: str) -> None:
    groups = handmade_groups(language)
    claims = [claim for group in groups for claim in group.claims]
    assert len(claims) >= 60
    assert sum(claim.supported for claim in claims) * 2 == len(claims)
    assert len({claim.text for claim in claims}) == len(claims)
    assert len({claim.kind for claim in claims}) >= 10


def test_wilson_interval_and_its_edges() -> None:
    interval = Proportion(count=8, total=10).interval or Interval(low=0, high=0)
    low, high = interval.low, interval.high
    assert (round(low, 4), round(high, 4)) == (0.4902, 0.9433)
    assert Proportion(count=0, total=0).value is None
    assert str(Proportion(count=0, total=0)) == "-"


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=2, max_size=40))
def test_auc_is_the_share_of_ordered_pairs(rows: list[tuple[float, bool]]) -> None:
    good = [score for score, label in rows if label]
    bad = [score for score, label in rows if not label]
    value = auc([score for score, _ in rows], [label for _, label in rows])
    if not good or not bad:
        assert value is None
    else:
        wins = sum((g > b) + 0.5 * (g == b) for g in good for b in bad)
        assert value == pytest.approx(wins / (len(good) * len(bad)))


def test_contamination_of_nothing_admitted_is_undefined() -> None:
    figures = admission([0.1, 0.2], [True, False], tau=0.5)
    assert figures.contamination.value is None
    assert figures.recall.value == 0.0


def test_platt_recovers_a_scale() -> None:
    draw = np.random.default_rng(0)
    logits = draw.normal(size=4000) * 3
    labels = draw.random(4000) < 1 / (1 + np.exp(-(0.5 * logits + 0.2)))
    slope, _ = platt(logits, labels)
    assert slope == pytest.approx(0.5, abs=0.06)


@given(st.text())
def test_shares_are_between_zero_and_one(text: str) -> None:
    assert 0.0 <= share(text) < 1.0


def test_equal_arrays_are_equal_files(tmp_path: Path) -> None:
    arrays = {"b": np.ones((2, 3), dtype=np.float32), "a": np.zeros(4, dtype=np.float32)}
    write_arrays(tmp_path / "one.npz", arrays)
    write_arrays(tmp_path / "two.npz", dict(reversed(arrays.items())))
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    with np.load(tmp_path / "one.npz", allow_pickle=False) as stored:
        assert {name: stored[name].tolist() for name in stored.files} == {
            name: item.tolist() for name, item in arrays.items()
        }
