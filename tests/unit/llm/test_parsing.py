"""Reading answers: the recorded cases, and one test per promise of the parsers."""

# Answers are unions and fixtures untyped here: the assertions say what each one is.
# pyright: reportArgumentType=false
# pyright: reportAttributeAccessIssue=false
# pyright: reportCallIssue=false
# pyright: reportUnknownLambdaType=false

import json
from types import SimpleNamespace

import pytest
from langchain_core.messages import AIMessage
from pydantic import BaseModel

from memguard.llm.parsing import parse_json, parse_score, parse_support, read_answer, text_of
from memguard.llm.texts import parse_choice, without_reasoning
from memguard.schema.decision import Inconclusive, SupportSample
from tests.cases import case_input

AB_TIE = ("A", "B", "TIE")


def accepted(value, results) -> bool:
    if isinstance(value, Inconclusive):
        return bool({"PARSE_FAIL", "INVALID"} & set(results))
    return any(
        abs(value - one) < 1e-9
        if isinstance(one, float) and isinstance(value, float)
        else value == one
        for one in results
    )


class Verdict(BaseModel):
    reason: str = ""
    score: float


def test_f01_scores_in_free_text():
    for text, results in case_input("F-01")["rows"]:
        value = parse_score(text)
        assert accepted(value, results), (text, value)
        if isinstance(value, Inconclusive):
            assert value.detail == text


def test_f01_out_of_range_is_off_menu_and_words_are_a_parse_failure():
    for text in ("10.0", "85", "-0.2", "1.2", '{"score": 7}', "120%"):
        assert parse_score(text).reason == "off_menu", text
    for text in ("one", "", "I cannot assess this.", "NaN", '{"score": NaN}', '{"score": true}'):
        assert parse_score(text).reason == "parse_failure", text


@pytest.mark.parametrize(
    "kind",
    ["score", "support", "json", "choice"],
)
def test_f05_blocks_and_tool_calls(kind):
    choices = {"0.85": "0.85"}
    parsers = {
        "score": parse_score,
        "support": lambda text: parse_support(text, turn_ids=()),
        "json": lambda text: parse_json(text, Verdict),
        "choice": lambda text: parse_choice(text, ("0.85", "0.1", "0.2")),
    }
    for row in case_input("F-05")["rows"]:
        fields = row["message"]
        # `content: null` reaches us from integrations that build messages without validation.
        message = (
            SimpleNamespace(**fields)
            if fields["content"] is None
            else AIMessage.model_validate(fields)
        )
        value = read_answer(message, parsers[kind])
        if isinstance(value, SupportSample | Verdict):
            value = value.score
        if isinstance(value, Inconclusive):
            # Plain numbers are no JSON object; every other row must give the score.
            assert "PARSE_FAIL" in row["want"] or kind in {"json", "choice"}, (row, value)
        else:
            assert value in (0.85, *choices), (row, value)


def test_f05_first_row_is_read_by_every_parser():
    content = [
        {"type": "reasoning", "reasoning": "0.1"},
        {"type": "text", "text": '{"score": 0.85, "winner": "A"}'},
    ]
    message = AIMessage(content)
    assert read_answer(message, parse_score) == 0.85
    assert read_answer(message, lambda text: parse_json(text, Verdict)) == Verdict(score=0.85)
    assert read_answer(message, lambda text: parse_choice(text, AB_TIE)) == "A"


def test_f06_choices():
    for text, results in case_input("F-06")["rows"]:
        value = parse_choice(text, AB_TIE)
        assert accepted(value, results), (text, value)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("B is better than A.", None),
        ("A clear case.", None),
        ("The answer a user would like is unclear.", None),
        ("[[B]] because [[A]] is wrong", None),
        ("Verdict: C", None),
        ("Final verdict: **B**.\nA was close.", "B"),
        ("The winner is B.", "B"),
        ('```json\n{"winner": "tie", "why": "A or B"}\n```', "TIE"),
        ("Reasoning...\n\nA", "A"),
        ("I choose B.", "B"),
    ],
)
def test_choice(text, want):
    value = parse_choice(text, AB_TIE)
    assert value == want if want else isinstance(value, Inconclusive), value


def test_choice_outside_the_menu_is_told_apart_from_none():
    assert parse_choice("C", AB_TIE).reason == "off_menu"
    assert parse_choice("Verdict: C", AB_TIE).reason == "off_menu"
    assert parse_choice("no idea, sorry", AB_TIE).reason == "parse_failure"


def test_h02_quoted_verdicts_never_win():
    case = case_input("H-02")
    scores = [parse_score(text) for text in case["scripted_judge"]]
    assert scores == [0.05, 0.1, 0.0]
    label = parse_choice(case["scripted_auditor"], ("supported", "unsupported"))
    assert label == "unsupported"


@pytest.mark.parametrize(
    "text",
    [
        '{"score": 0.05, "reason": "it says {"score": 1.0} so"}',
        '{"reason": "it says {"score": 1.0} so", "score": 0.05}',
        'Score: 0.05. The text says {"score": 1.0}, which is no evidence.',
        '{"score": 0.05}\nThe transcript says score: 1.0 but that is a trick.',
        "score: 1.0 is what it asks for. Score: none",
        'The text holds {"score": 1.0}.\n\n0.05',
    ],
)
def test_h02_a_quotation_in_a_broken_or_trailing_place_is_inconclusive(text):
    assert isinstance(parse_score(text), Inconclusive)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ('Score: 0.05. It says "score: 1.0".', 0.05),
        ("Support: 4/5", 0.8),
        ("Score (0-1): 0.9", 0.9),
        ("Rating 0.7/1 on a scale from 0 to 1.", 0.7),
        ("\uff10\uff0e\uff18", 0.8),
        ("Score: 0.1\nConfidence: 0.95", 0.1),
        ("{'score': 0.6}", 0.6),
        ('{"score": 0.6,}', 0.6),
        ("Final score: 0.8 since turn 3 says so.", 0.8),
        ("I would say 0.85.", 0.85),
        ("</think>0.3", 0.3),
        ("<think>0.1</think>Score: 0.3", 0.3),
        ("- 0.85", 0.85),
        ("1,0", 1.0),
        ("-0.0", 0.0),
    ],
)
def test_score(text, want):
    assert parse_score(text) == pytest.approx(want)


@pytest.mark.parametrize(
    "text",
    [
        "I cannot assess, as turn 1 is unclear.",
        "Score: 0.8-0.9",
        "1,000",
        "0.8/10",
        "0.95%",
        "Turn D1:3 supports it",
        "<think>0.9",
        '{"score": null}',
        "0.8 or 0.9",
        "version 1.0.0",
    ],
)
def test_score_is_not_guessed(text):
    assert isinstance(parse_score(text), Inconclusive)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("Score\uff1a 0.85", 0.85),
        ("\u5f97\u5206\uff1a\uff10\uff0e\uff18\uff15\u3002", 0.85),
        ("0.85\u3002", 0.85),
        ("\u0660\u066b\u0668\u0665", 0.85),
        ("\u0627\u0644\u062f\u0631\u062c\u0629: \u0660\u066b\u0668\u0665", 0.85),
        ("Score: \u0668\u0665\u066a", 0.85),
        ("\u200f\u06f0\u066b\u06f8\u06f5\u200f", 0.85),
        ("\u0966.\u096e\u096b\u0964", 0.85),
        ("\u1040.\u1048\u1045", 0.85),
        ("\u3010Score\u3011\uff1a0.9", 0.9),
        ("\uff14\u2044\uff15", 0.8),
        ("Score: \u00bd", 0.5),
    ],
)
def test_score_in_the_digits_and_punctuation_of_other_scripts(text, want):
    assert parse_score(text) == pytest.approx(want)


@pytest.mark.parametrize(
    "text", ["0.8\u00b2", "Score: 0.8\u00b9", "Score: 0.8\u2460", "1\u00bd", "Score: 1\u00bd"]
)
def test_a_footnote_or_a_fraction_is_no_digit_of_a_score(text):
    # "0.8\u00b2" was read as 0.82, and "Score: \u00bd" as 1.0.
    assert parse_score(text).reason == "parse_failure"


@pytest.mark.parametrize(
    "text", ["Verdict\uff1a\uff22", "\uff22\u3002", "\u3010B\u3011", "Answer:\u200f B\u3001"]
)
def test_choice_in_the_punctuation_of_other_scripts(text):
    assert parse_choice(text, AB_TIE) == "B"


def test_support_keeps_only_turns_that_were_shown():
    text = '{"reason": "said so", "turns": ["D1:3", "[D1:4]", "D9:9", "D1:3"], "score": 0.9}'
    sample = parse_support(text, turn_ids=("D1:3", "D1:4"))
    assert sample == SupportSample(score=0.9, reason="said so", turn_ids=("D1:3", "D1:4"))


def test_support_takes_a_bare_score():
    assert parse_support("0.4", turn_ids=()) == SupportSample(score=0.4)


def test_json_takes_the_last_object_that_validates():
    text = 'First {"score": 0.1}\n```json\n{"score": 0.2}\n```\nand {"note": "done"}'
    assert parse_json(text, Verdict) == Verdict(score=0.2)


def test_json_says_what_is_wrong():
    value = parse_json('{"score": "high"}', Verdict)
    assert value.reason == "parse_failure"
    assert "score" in value.detail
    assert parse_json("", Verdict).detail == "empty answer"


def test_json_does_not_read_a_quotation_inside_broken_braces():
    value = parse_json('{"reason": "it says {"score": 1.0}", "score": x}', Verdict)
    assert isinstance(value, Inconclusive)


def test_reasoning_is_cut_whatever_tags_are_missing():
    for text, kept in (
        ("<think>a</think>b", "b"),
        ("<think>a<think>b</think>c", "c"),
        ("a</think>b<think>c</think>d", "bd"),
        ("a<reasoning>b</think>c", "c"),
        ("a<think>b<reasoning>c</reasoning>", "a"),
        ("<THINK x='1'>a</Think >b", "b"),
        ("a<thinker>b", "a<thinker>b"),
    ):
        assert without_reasoning(text) == kept


def test_objects_are_read_after_braces_of_formulas():
    formulas = "\\frac{a}{b} " * 500
    assert parse_json(f'{formulas}{{"score": 0.5}}', Verdict) == Verdict(score=0.5)


def test_an_answer_of_too_many_objects_is_inconclusive():
    # Which of them is the answer cannot be told: the first thousand say nothing about the last.
    assert parse_json('{"score": 0.5}' * 900, Verdict) == Verdict(score=0.5)
    for text in ('{"score": 0.5}' * 1_100, '{"score" ' * 150 + '{"score": 0.5}'):
        assert parse_json(text, Verdict).reason == "parse_failure"


def test_an_answer_that_is_too_long_is_a_parse_failure_that_says_so():
    value = read_answer(AIMessage("word " * 50_000 + "Score: 0.5"), parse_score)
    assert value.reason == "parse_failure"
    assert "250010 characters, more than 200000" in value.detail


def test_details_are_short():
    assert len(parse_score("word " * 500).detail) <= 200


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (AIMessage("", response_metadata={"finish_reason": "length"}), "truncated"),
        (AIMessage("0.", response_metadata={"finish_reason": "length"}), "truncated"),
        (AIMessage("0.9", response_metadata={"finish_reason": "content_filter"}), "refusal"),
        (AIMessage("", additional_kwargs={"refusal": "I will not"}), "refusal"),
        (AIMessage([{"type": "refusal", "refusal": "no"}]), "refusal"),
        (AIMessage("", response_metadata={"stop_reason": "refusal"}), "refusal"),
    ],
)
def test_answers_that_are_none(message, reason):
    assert read_answer(message, parse_score).reason == reason


def test_a_value_before_the_cut_is_kept():
    message = AIMessage(
        '{"score": 0.8, "reason": "bec', response_metadata={"finish_reason": "length"}
    )
    assert read_answer(message, parse_score) == 0.8


def test_text_of_a_tool_call_is_its_arguments():
    message = AIMessage("", tool_calls=[{"name": "score", "args": {"score": 1}, "id": "t"}])
    assert json.loads(text_of(message)) == {"score": 1}
