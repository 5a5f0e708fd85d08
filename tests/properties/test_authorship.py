"""Whose words a candidate rests on: no addition to its source lifts the rule."""

from hypothesis import given
from hypothesis import strategies as st

from memguard.methods.authorship import SourceWords, content_words
from memguard.schema.memory import CandidateMemory, Role, Turn

WORDS = st.sampled_from(["porto", "sail", "boat", "yes", "ok", "go", "on", "17", "不", "吃肉", "?"])
TEXTS = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
ROLES: st.SearchStrategy[Role] = st.sampled_from(["user", "assistant", "tool", "document"])
TALKS = st.lists(st.tuples(ROLES, TEXTS), min_size=1, max_size=8).map(
    lambda pairs: tuple(
        Turn(id=str(number), role=role, content=content)
        for number, (role, content) in enumerate(pairs)
    )
)


@given(TEXTS, TALKS, st.data())
def test_without_a_turn_of_the_user_a_candidate_is_held(
    text: str, talk: tuple[Turn, ...], data: st.DataObject
) -> None:
    others = [turn.id for turn in talk if turn.role != "user"]
    named = data.draw(st.lists(st.sampled_from(others), min_size=1, unique=True)) if others else []
    candidate = CandidateMemory(text=text, turn_ids=tuple(named))
    decision = SourceWords(talk).withhold(candidate)
    if named:
        assert decision is not None
        assert decision.outcome == "quarantine"


@given(TEXTS, TALKS)
def test_a_conversation_of_users_alone_is_never_held_by_its_words(
    text: str, talk: tuple[Turn, ...]
) -> None:
    users = tuple(turn for turn in talk if turn.role == "user")
    assert SourceWords(users).withhold(CandidateMemory(text=text)) is None


@given(TEXTS, TALKS, st.data())
def test_a_wider_choice_of_sources_holds_no_more_of_what_names_its_turns(
    text: str, talk: tuple[Turn, ...], data: st.DataObject
) -> None:
    named = data.draw(st.lists(st.sampled_from([turn.id for turn in talk]), unique=True))
    if len(named) in {0, len(talk)}:
        return
    candidate = CandidateMemory(text=text, turn_ids=tuple(named))
    if SourceWords(talk).withhold(candidate) is None:
        assert SourceWords(talk, ("user", "tool", "document")).withhold(candidate) is None


@given(st.text(max_size=200))
def test_any_text_has_words_that_can_be_compared(text: str) -> None:
    words = content_words(text)
    assert all(words)
    assert content_words(text.upper().lower()) <= content_words(f"{text} {text.upper().lower()}")
