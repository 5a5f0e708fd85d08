"""Every new turn is read exactly once."""

from hypothesis import given
from hypothesis import strategies as st

from memguard.methods.writer.config import Writer
from memguard.methods.writer.rules import plan_chunks, split_long_turns, turn_keys
from memguard.schema.memory import Conversation, Turn

SMALL = Writer(turns_per_chunk=3, chars_per_chunk=200, context_turns=2)


def turns_of(lengths: list[int]) -> tuple[Turn, ...]:
    return tuple(
        Turn(id=str(n), role="user", content="x" * length) for n, length in enumerate(lengths, 1)
    )


@given(st.lists(st.integers(0, 700), max_size=20), st.data())
def test_chunks_hold_every_new_turn_once_in_order(lengths: list[int], data: st.DataObject) -> None:
    turns = split_long_turns(turns_of(lengths), max_chars=SMALL.chars_per_chunk)
    new = data.draw(st.frozensets(st.sampled_from(range(len(turns))))) if turns else frozenset()
    chunks = plan_chunks(turns, new=new, spec=SMALL)
    assert [t for chunk in chunks for t in chunk.new] == [turns[i] for i in sorted(new)]
    for chunk in chunks:
        assert 1 <= len(chunk.new) <= SMALL.turns_per_chunk
        assert sum(len(t.content) for t in chunk.new) <= SMALL.chars_per_chunk
        assert len(chunk.earlier) <= SMALL.context_turns


@given(st.lists(st.integers(0, 700), max_size=10))
def test_a_long_turn_is_split_not_cut_off(lengths: list[int]) -> None:
    turns = turns_of(lengths)
    parts = split_long_turns(turns, max_chars=200)
    for turn in turns:
        mine = [part.content for part in parts if part.id == turn.id]
        assert "".join(mine) == turn.content
        assert all(len(part) <= 200 for part in mine)


def test_a_conversation_that_grew_keeps_its_keys() -> None:
    turns = turns_of([5, 6, 7])
    before = turn_keys(Conversation(turns=turns[:2]), namespace=("m",))
    after = turn_keys(Conversation(turns=turns), namespace=("m",))
    assert after[:2] == before


def test_the_same_hello_in_two_unnamed_conversations_is_read_in_both() -> None:
    hello = Turn(id="2", role="user", content="Yes.")
    one = Conversation(turns=(Turn(id="1", role="assistant", content="Tea?"), hello))
    two = Conversation(turns=(Turn(id="1", role="assistant", content="Coffee?"), hello))
    assert turn_keys(one, namespace=("m",))[1] != turn_keys(two, namespace=("m",))[1]


def test_keys_differ_between_namespaces() -> None:
    talk = Conversation(turns=turns_of([5]), id="c")
    assert turn_keys(talk, namespace=("a",)) != turn_keys(talk, namespace=("b",))


def test_equal_parts_of_one_turn_have_their_own_keys() -> None:
    parts = split_long_turns(turns_of([600]), max_chars=200)
    assert len(set(turn_keys(Conversation(turns=parts, id="c"), namespace=("m",)))) == 3
