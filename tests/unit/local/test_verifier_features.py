"""What the network is shown: alignment, roles, evidence; with vectors made by hand."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from memguard.local.encoder import DIMS
from memguard.local.verifier.alignment import COLUMNS, align, clause_columns
from memguard.local.verifier.encoded import EncodedText
from memguard.local.verifier.features import (
    CONTEXT_SCALARS,
    FACT_SCALARS,
    MAX_CONTEXT,
    MAX_FACT,
    PairFeatures,
    pair_features,
)
from memguard.local.verifier.units import TextUnit, align_claim
from memguard.local.verifier.words import read_words


def encoded(text: str, *, label: int = 0) -> EncodedText:
    """A text whose words have a random vector by stem, so that only equal stems are alike."""
    words = read_words(text)
    rows = [np.random.default_rng(int(key)).normal(size=DIMS) for key in words.keys]
    vectors = np.array(rows, dtype=np.float32).reshape(len(words), DIMS)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    idf = np.full(len(words), 5.0, dtype=np.float32)
    return EncodedText(text=text, words=words, idf=idf, vectors=vectors, label=label)


def laid(claim: str, *turns: tuple[str, str]):
    units = [
        TextUnit(speaker=speaker, text=text, turn=n) for n, (speaker, text) in enumerate(turns)
    ]
    rows = [encoded(unit.labelled, label=unit.label_words) for unit in units]
    return align_claim(encoded(claim), units, rows)


def test_the_best_unit_is_the_one_that_states_the_claim() -> None:
    alignment = laid("Anna has a goat", ("Ben", "How are you?"), ("Anna", "I have a goat"))
    assert alignment.best == 1
    assert alignment.subject.tolist() == [True, False, False, False]
    assert [source.by_subject for source in alignment.sources] == [False, True]


def test_a_swap_is_pulled_to_its_rival() -> None:
    turn = ("Anna", "The blue bike cost 300 euros, the green lamp cost 40 euros")
    true = laid("Anna's green lamp cost 40", turn)
    swapped = laid("Anna's green lamp cost 300", turn)
    number = int(np.flatnonzero(true.fact.words.number)[0])
    assert swapped.roles.rival_pull[number] > 0.5
    assert true.roles.rival_pull[number] < 0.1
    assert swapped.roles.deficit_clause[number] > true.roles.deficit_clause[number]


def test_a_missing_number_is_a_feature() -> None:
    features = pair_features(laid("Anna has 7 goats", ("Anna", "I have 9 goats")))
    again = pair_features(laid("Anna has nine goats", ("Anna", "I have 9 goats")))
    assert features.fact_scalars[2, -3] == 1.0
    assert again.fact_scalars[2, -3] == 0.0


def test_possessions_of_others_are_distinguished_from_the_subjects_own() -> None:
    by_subject, _, _, _, matches, _, actor, theirs, possessive, dropped, added, *_ = range(COLUMNS)
    turn = ("Anna", "My sister plays chess, I like goats")
    rows = [
        np.stack(clause_columns(laid(claim, turn)), axis=1)[-1]
        for claim in (
            "Anna plays chess",
            "Anna's sister plays chess",
            "Anna likes goats",
            "Anna's dog likes goats",
        )
    ]
    assert [row[by_subject] for row in rows] == [1, 1, 1, 1]
    assert [row[matches] for row in rows] == [1, 1, 1, 1]
    assert [(row[actor], row[theirs]) for row in rows] == [(0, 1), (0, 1), (1, 0), (1, 0)]
    assert [row[possessive] for row in rows] == [0, 1, 0, 1]
    assert [(row[dropped], row[added]) for row in rows] == [(1, 0), (0, 0), (0, 0), (0, 1)]


def test_a_negation_on_one_side_only() -> None:
    turn = ("Anna", "I don't like goats")
    lost, gained = COLUMNS - 2, COLUMNS - 1
    for claim, expected in (
        ("Anna likes goats", (0, 1)),
        ("Anna doesn't like goats", (0, 0)),
    ):
        last = np.stack(clause_columns(laid(claim, turn)), axis=1)[-1]
        assert (last[lost], last[gained]) == expected


def test_a_missing_number_or_name_is_a_missing_detail() -> None:
    turn = ("Anna", "I have 9 goats in Rome")
    for claim, lacks in (
        ("Anna has nine goats in Rome", False),
        ("Anna has animals", False),
        ("Anna has 7 goats in Rome", True),
        ("Anna has 9 goats in Oslo", True),
    ):
        assert pair_features(laid(claim, turn)).lacks_detail is lacks


def check(features: PairFeatures) -> None:
    assert features.fact.shape[0] <= MAX_FACT
    assert features.context.shape[0] <= MAX_CONTEXT
    assert features.fact_scalars.shape == (len(features.fact), FACT_SCALARS)
    assert features.context_scalars.shape == (len(features.context), CONTEXT_SCALARS)
    for name in PairFeatures.__slots__:
        assert np.isfinite(getattr(features, name)).all(), name


VOCABULARY = "Anna Ben goat 7 seven 2024-01-02 not never loves hates Rome the and , . May 3rd half"
WORDS = st.lists(
    st.sampled_from(VOCABULARY.split()),
    min_size=1,
    max_size=70,
).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(
    claim=WORDS,
    turns=st.lists(st.tuples(st.sampled_from(["Anna", "Ben", ""]), WORDS), min_size=1, max_size=5),
)
def test_features_of_any_text_are_finite_and_have_one_size(
    claim: str, turns: list[tuple[str, str]]
) -> None:
    if not len(read_words(claim)) or not any(len(read_words(text)) for _, text in turns):
        return
    nonempty = [turn for turn in turns if len(read_words(turn[1]))]
    features = pair_features(laid(claim, *nonempty))
    check(features)
    assert features.whole.shape == pair_features(laid("a b", ("", "c"))).whole.shape


def test_another_turn_never_lowers_the_best_cosine() -> None:
    one = laid("Anna has a goat", ("Anna", "I have animals"))
    two = laid("Anna has a goat", ("Anna", "I have animals"), ("Ben", "My goat is white"))
    assert (two.cos.max(axis=1) >= one.cos.max(axis=1) - 1e-6).all()


def test_align_without_any_weighted_word() -> None:
    fact = encoded("it is")
    alignment = align(
        fact,
        laid("x", ("", "it was so")).sources,
        subject=np.zeros(2, dtype=bool),
    )
    check(pair_features(alignment))
