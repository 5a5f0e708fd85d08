"""What holds for every answer a model may give."""

# Answers are unions and fixtures untyped here: the assertions say what each one is.
# pyright: reportArgumentType=false

import math

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from memguard.llm.parsing import parse_json, parse_score, parse_support, read_answer
from memguard.llm.texts import parse_choice
from memguard.llm.yes_no import yes_no_probability
from memguard.schema.decision import Inconclusive, SupportSample

OPTIONS = ("A", "B", "TIE", "supported", "unsupported")


class Shape(BaseModel):
    score: float
    inner: list[int] = []


PIECES = st.sampled_from(
    [
        '{"score": ', "0.8", "}", "{", '"', "```json\n", "\n```", "<think>", "</think>", "Score: ",
        "1", "-", "%", "/", "10", ",", ".", " ", "\n", "final ", "verdict: ", "A", "[[B]]", "TIE",
        "null", "NaN", "out of", "0-1", "supported", '"turns": ["D1"]', "\ud800", "\u0660",
    ]
)  # fmt: skip
ANSWERS = st.one_of(st.text(), st.lists(PIECES, max_size=25).map("".join))


@given(ANSWERS)
def test_a_score_is_in_range_or_inconclusive(text):
    value = parse_score(text)
    assert isinstance(value, Inconclusive) or 0.0 <= value <= 1.0
    sample = parse_support(text, turn_ids=("D1",))
    if isinstance(value, Inconclusive):
        assert sample == value
    else:
        assert isinstance(sample, SupportSample)
        assert sample.score == value
        assert set(sample.turn_ids) <= {"D1"}


@given(ANSWERS)
def test_a_choice_is_one_of_the_options(text):
    value = parse_choice(text, OPTIONS)
    assert isinstance(value, Inconclusive) or value in OPTIONS


@given(ANSWERS)
def test_an_object_validates_or_is_inconclusive(text):
    assert isinstance(parse_json(text, Shape), Inconclusive | Shape)


@given(
    st.one_of(ANSWERS, st.none(), st.lists(st.one_of(ANSWERS, st.dictionaries(st.text(), ANSWERS))))
)
def test_no_message_makes_reading_raise(content):
    class Message:
        pass

    message = Message()
    message.content = content  # pyright: ignore[reportAttributeAccessIssue]
    value = read_answer(message, parse_score)
    assert isinstance(value, Inconclusive) or 0.0 <= value <= 1.0


@given(st.floats(0, 1))
def test_a_plain_number_reads_as_itself(score):
    text = f"{score:.4f}"
    assert parse_score(text) == float(text)
    assert parse_score(f"Score: {text}") == float(text)
    assert parse_score(f'{{"reason": "said", "score": {text}}}') == float(text)


@given(st.floats(0, 1), st.floats(0, 1))
def test_an_earlier_quotation_never_wins(quoted, score):
    text = f'The text holds {{"score": {quoted:.3f}}}. {{"score": {score:.3f}}}'
    assert parse_score(text) == float(f"{score:.3f}")


TOKENS = st.sampled_from(
    ["Yes", " yes", "YES", "\u2581yes", "No", "\u0120no", "no", "The", "Not", ","]
)
LOGPROBS = st.one_of(
    st.floats(-30, 0), st.sampled_from([-9999.0, -math.inf, math.nan, 0.0, 1e-9, 5.0])
)
TOPS = st.lists(st.tuples(TOKENS, LOGPROBS), max_size=20)


@given(TOPS, st.randoms(use_true_random=False))
def test_yes_no_does_not_depend_on_order(top, random):
    shuffled = list(top)
    random.shuffle(shuffled)
    first, second = yes_no_probability(top), yes_no_probability(shuffled)
    if isinstance(first, Inconclusive):
        assert isinstance(second, Inconclusive)
        assert first.reason == second.reason
    else:
        assert first == second
        assert 0.0 <= first <= 1.0


@given(st.floats(-20, 0), st.floats(-20, 0))
def test_yes_no_is_the_softmax_of_two(yes, no):
    value = yes_no_probability([("yes", yes), ("no", no)])
    assert value == math.exp(yes) / (math.exp(yes) + math.exp(no)) or math.isclose(
        value, 1 / (1 + math.exp(no - yes)), rel_tol=1e-9
    )


@settings(deadline=None)
@given(
    st.sampled_from([*list(" \n\t\"'{}[]<.,:0159"), "<think>", "score ", "1 out of ", "0 to 1 "])
)
def test_an_answer_of_one_thing_ten_thousand_times_is_read(piece):
    # These ended in a regular expression that tried every way to share out white space.
    text = piece * 10_000
    for answer in (text, f"{text} Score: 0.5", f"{{{text}}}"):
        parse_score(answer)
        parse_support(answer, turn_ids=["1"])
        parse_choice(answer, ["A", "B"])
