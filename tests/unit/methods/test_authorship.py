"""Whose words a candidate rests on, decided before any judge."""

from datetime import UTC, datetime
from typing import Any

import pytest

from memguard.conversations import read_conversation
from memguard.errors import InvalidInputError
from memguard.methods.authorship import SourceWords, attribute, content_words, withhold
from memguard.schema.memory import CandidateMemory

SAILING = "The user loves sailing."


def reason(text: str, talk: list[tuple[str, str]], *turns: int, sources: Any = ("user",)) -> str:
    """The reason for which a candidate is withheld; empty if a judge may decide."""
    candidate = CandidateMemory(text=text, turn_ids=tuple(map(str, turns)))
    evidence = read_conversation(talk).evidence
    decision = SourceWords(evidence, sources).withhold(candidate)
    assert decision is None or decision.outcome == "quarantine"
    return decision.reason if decision else ""


CLAIM = ("assistant", "I think the user loves sailing.")
HOME = ("user", "I live in Porto.")


@pytest.mark.parametrize("role", ["assistant", "tool", "document"])
def test_a_candidate_that_names_other_turns_only_is_held_whatever_the_user_said(role: str) -> None:
    assert reason(SAILING, [HOME, (role, "The user loves sailing.")], 2) == "no_user_words"


@pytest.mark.parametrize(
    ("talk", "turns"),
    [
        # It names a turn of the user, which says something else.
        ([HOME, CLAIM, ("user", "Tell me more about it.")], (3,)),
        ([HOME, CLAIM], (1,)),
        ([HOME, CLAIM, ("user", "And now?")], (1, 2)),
        # It names nothing, or all turns as a guarded store does.
        ([HOME, CLAIM], ()),
        ([CLAIM, ("user", "Go on.")], ()),
        ([HOME, CLAIM], (1, 2)),
    ],
)
def test_the_words_of_the_assistant_are_not_the_users(
    talk: list[tuple[str, str]], turns: tuple[int, ...]
) -> None:
    assert reason(SAILING, talk, *turns) == "no_user_words"


QUESTION = ("assistant", "Noted. Do you love sailing?")


@pytest.mark.parametrize(
    "answer",
    ["Yes.", "yes, exactly!", "No.", "Ja, genau", "はい", "对", "Sí", "Yes please, thanks"],
)
def test_a_yes_counts_with_its_question(answer: str) -> None:
    talk = [HOME, QUESTION, ("user", answer)]
    assert reason(SAILING, talk, 2, 3) == ""
    assert reason(SAILING, talk, 3) == "bare_answer"
    assert reason(SAILING, talk, 2) == "no_user_words"
    # Naming another turn of the assistant is not naming the question.
    assert reason(SAILING, [CLAIM, QUESTION, ("user", answer)], 1, 3) == "bare_answer"


@pytest.mark.parametrize(
    ("said", "answer", "held"),
    [
        ("So you love sailing.", "Yes, exactly.", ""),
        ("So you love sailing.", "OK, thanks.", "bare_answer"),
        ("So you love sailing. Shall I go on?", "Yes, go on.", "bare_answer"),
        ("Do you love sailing?", "ok", ""),
        ("Do you love sailing?", "Continue.", "bare_answer"),
    ],
)
def test_an_answer_confirms_only_what_it_answers(said: str, answer: str, held: str) -> None:
    assert reason(SAILING, [HOME, ("assistant", said), ("user", answer)], 2, 3) == held


def test_two_answers_in_a_row_answer_one_question() -> None:
    talk = [HOME, QUESTION, ("user", "Yes."), ("user", "Exactly.")]
    assert reason(SAILING, talk, 2, 4) == ""


@pytest.mark.parametrize(
    ("text", "talk", "turns"),
    [
        ("The user lives in Porto.", [HOME, ("assistant", "You live in Porto, noted.")], ()),
        ("The user is vegan.", [("user", "No meat or milk for me."), ("assistant", "OK.")], (1,)),
        ("The user booked the Hotel Miramar.", [CLAIM, ("user", "I booked the Miramar.")], (2,)),
        ("The user wants two tickets.", [QUESTION, ("user", "Two.")], (1, 2)),
        ("用户住在波尔图。", [("user", "我住在波尔图。"), ("assistant", "你住在波尔图。")], ()),
        ("Anything.", [], ()),
    ],
)
def test_what_a_user_said_goes_to_the_judge(
    text: str, talk: list[tuple[str, str]], turns: tuple[int, ...]
) -> None:
    assert reason(text, talk, *turns) == ""


def test_tools_and_documents_are_sources_by_choice() -> None:
    talk = [HOME, ("tool", "Flight TP 443 leaves at 9:40.")]
    text = "According to the tool, flight TP 443 leaves at 9:40."
    assert reason(text, talk, 2) == "no_user_words"
    assert reason(text, talk, 2, sources=("user", "tool")) == ""
    assert reason(SAILING, [*talk, CLAIM], 3, sources=("user", "tool")) == "no_user_words"


def test_a_rendered_memory_or_an_instruction_is_no_turn_to_rest_on() -> None:
    evidence = read_conversation([HOME, ("system", SAILING)]).evidence
    decision = withhold(CandidateMemory(text=SAILING, turn_ids=("2",)), evidence)
    assert decision is not None
    assert decision.reason == "no_user_words"


def test_words_are_compared_by_their_beginning() -> None:
    assert content_words("The user lives in Porto.") == content_words("They LIVE in Porto!")
    assert content_words("17 boats") == {"17", "boat"}
    assert content_words("the user said that") == frozenset()


AT = datetime(2026, 3, 2, 9, tzinfo=UTC)
TALK = read_conversation(
    [{"role": "user", "content": "I row.", "id": "a", "at": AT}], conversation_id="c"
)


def attributed(**fields: Any) -> CandidateMemory:
    candidate = CandidateMemory(text="The user rows.", **fields)
    turns = [turn for turn in TALK.turns if turn.id in candidate.turn_ids]
    return attribute(candidate, turns, conversation_id=TALK.id)


def test_a_candidate_gets_the_time_and_the_speaker_of_its_turns() -> None:
    candidate = attributed(turn_ids=("a",))
    assert (candidate.said_by, candidate.said_at) == ("user", AT)
    assert candidate.conversation_id == "c"
    # Doing it again changes nothing.
    assert attribute(candidate, TALK.turns, conversation_id="c") == candidate


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"turn_ids": ("b",)}, "'b'"),
        ({"turn_ids": ("a",), "said_by": "assistant"}, "`said_by`"),
        ({"turn_ids": ("a",), "said_at": datetime(2020, 1, 1, tzinfo=UTC)}, "`said_at`"),
        ({"turn_ids": ("a",), "conversation_id": "other"}, "`conversation_id`"),
    ],
)
def test_a_candidate_that_contradicts_its_turns_is_an_error(fields: Any, names: str) -> None:
    with pytest.raises(InvalidInputError, match=names):
        attributed(**fields)


def test_an_unknown_time_of_the_turn_contradicts_nothing() -> None:
    talk = read_conversation([("user", "I row.")])
    candidate = CandidateMemory(text="The user rows.", turn_ids=("1",), said_at=AT)
    assert attribute(candidate, talk.turns, conversation_id="").said_at == AT


def test_one_candidate_alone_may_rest_on_the_user_only() -> None:
    evidence = read_conversation([HOME]).evidence
    assert withhold(CandidateMemory(text="The user lives in Porto."), evidence) is None
