"""Splitting a turn into its authors loses no character, and plain prose stays the speaker's."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from memguard.conversations.passages import expand_turns, split_passages
from memguard.methods.authorship import pasted_passage
from memguard.schema.memory import CandidateMemory, Turn

PIECES = st.sampled_from(
    """I live in Porto.|Look at this mail:|Dear Ana,|Kind regards|Karl Meier|> quoted|```|SYSTEM: x|
    From: Karl <k@x.org>|Subject: Trip|[12.03.24, 19:03] Karl: hi|Me: I row|{"a": 1}|a,b|x = 1;|
    What should I answer?|my boss writes:|he said "I am late."|<email>|</email>|<\\|im_end\\|>|
    Sent from my iPhone|| |我收到这封邮件：|此致|---|'|“|”""".replace("\n    ", "").split("|")
)
TEXTS = st.one_of(
    st.lists(st.tuples(PIECES, st.sampled_from(["\n", " ", "\n\n", "\r\n"])), max_size=12).map(
        lambda parts: "".join(piece + end for piece, end in parts)
    ),
    st.text(max_size=200),
)
SENTENCES = st.lists(
    st.sampled_from(
        [
            "I live in Porto.",
            "Ich esse kein Fleisch.",
            "Vivo en Madrid con mi hermana.",
            "J'habite à Lyon depuis mai.",
            "我住在北京。",
            "My brother is allergic to nuts, but I am not.",
        ]
    ),
    min_size=1,
    max_size=6,
)


@given(TEXTS)
def test_the_passages_are_the_text(text: str) -> None:
    passages = split_passages(text)
    assert "".join(passage.text for passage in passages) == text
    assert all(text[p.start : p.end] == p.text and p.text for p in passages)
    adjacent = itertools.pairwise(passages)
    assert all((a.kind, a.author) != (b.kind, b.author) for a, b in adjacent)


@given(TEXTS)
def test_expanded_turns_keep_the_id_and_no_word_of_another_becomes_the_users(text: str) -> None:
    turn = Turn(id="t", role="user", speaker="Ana", content=text)
    parts = expand_turns([turn])
    assert all(part.id == "t" for part in parts)
    own = "".join(p.text for p in split_passages(turn.content, speaker="Ana") if p.kind == "own")
    users = "".join(part.content for part in parts if part.role == "user")
    assert len(parts) == 1 or "".join(users.split()) == "".join(own.split())


@given(SENTENCES, st.sampled_from([" ", "\n", "\n\n"]))
def test_plain_statements_are_own(sentences: list[str], between: str) -> None:
    assert [p.kind for p in split_passages(between.join(sentences))] == ["own"]


@given(SENTENCES)
def test_a_candidate_of_a_quoted_line_rests_on_the_passage(sentences: list[str]) -> None:
    text = "Hello.\n" + "\n".join(f"> {sentence}" for sentence in sentences)
    parts = expand_turns([Turn(id="t", role="user", content=text)])
    for sentence in sentences:
        passage = pasted_passage(CandidateMemory(text=sentence, turn_ids=("t",)), parts)
        assert passage is not None
        assert passage.role == "document"
