"""Parsers for the answers of models: a support score, a JSON object, and typed outcomes. Pure.

`read_answer` applies a parser to a chat message and detects refusals and truncation. `parse_json`
validates an object; `parse_score` and `parse_support` read a score in [0, 1]. The rules for scores
prefer a missed number to a misread one: a wrong but valid number changes a mean unnoticed, while an
answer that cannot be parsed is counted as such.
"""

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel, ValidationError

from memguard.llm.failures import shorten
from memguard.llm.texts import (
    MAX_ANSWER_CHARS,
    JsonObject,
    answer_end,
    blank_objects,
    end_of_marks,
    ends_answer,
    json_objects,
    text_of,
    without_reasoning,
)
from memguard.schema.decision import Inconclusive, InconclusiveReason, SupportSample

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

Parse = Callable[[str], T | Inconclusive]
"""Reads a value from the text of an answer."""

_Reading: TypeAlias = float | InconclusiveReason
"""A score, or why a number is not a score."""

# Keys of a JSON answer that may have the score, the most specific first.
_SCORE_KEYS = (
    "support_score", "score", "support", "rating", "probability", "value", "result", "answer",
    "verdict",
)  # fmt: skip
_TURN_KEYS = ("turns", "turn_ids", "evidence", "sources")

# Finish reasons of several providers: OpenAI, Anthropic, Google.
_CUT = frozenset({"length", "max_tokens", "max_output_tokens", "MAX_TOKENS"})
_FILTERED = frozenset({"content_filter", "refusal", "SAFETY", "PROHIBITED_CONTENT"})

# Objects of one answer that are checked against a schema, from the last one.
_MAX_VALIDATED = 100

# The end of the pattern refuses a number that goes on: a date, a time, a version or a unit.
_NUMBER = re.compile(
    r"(?P<sign>[-+\u2212])?"
    r"(?P<digits>\d+(?:[.,]\d+)?|[.,]\d+)"
    r"(?:e(?P<exponent>[-+]?\d{1,3}))?"
    r"(?:\s*(?P<percent>%|percent\b)|\s*(?:/|out\s+of)\s*(?P<whole>\d{1,4}(?:\.\d{1,4})?))?"
    r"(?![\w%/])(?![.,:]\d)",
    re.IGNORECASE,
)
# After a colon, a number may follow a label, but not another number: a time, or a turn.
_FREE_NUMBER = re.compile(r"(?<![\w.,/])(?<!\d:)" + _NUMBER.pattern, re.IGNORECASE)

_LABEL = re.compile(
    r"(?<!\w)(?P<final>(?:final|overall|own)\s+)?"
    r"(?P<word>(?:support[ _-]?)?score|rating|grade|support|answer|verdict|result)\b"
    r"[\"'*_`\])\s\u201d\u2019\u300d\u3011]*"
    r"(?P<joint>[:=]|->|\u2192|(?:\s|\b)(?:is|was|would\s+be|of)\s|\s[-\u2013\u2014]\s)?"
    r"[\"'*_`\[(\s~\u2248]*",
    re.IGNORECASE,
)
# Labels that mean a score even without a word or sign between them and the number.
_SCORE_LABEL = re.compile(r"(?:support[ _-]?)?score|rating|grade", re.IGNORECASE)

# Every run of white space is bounded: an answer may be thousands of blanks, and `\s*` next to `\s*`
# would try every way to divide them.
_SCALE = re.compile(
    r"[\[(]?(?<![\d.,])0(?:\.0+)?\s{0,3}(?:to|and|through|\.{2,3}|[-\u2013\u2014])\s{0,3}1(?:\.0+)?"
    r"(?![.,]?\d)[\])]?"
    r"|\[\s{0,3}0(?:\.0+)?\s{0,3},\s{0,3}1(?:\.0+)?\s{0,3}\]",
    re.IGNORECASE,
)
_UPPER_BOUND = re.compile(r"\s{0,9}(?:[-\u2013\u2014~]|to\b|\.{2,9})\s{0,9}[.,]?\d", re.IGNORECASE)
_QUOTED = re.compile(r"[\"\u201c`][^\"\u201c\u201d`\n]{0,300}[\"\u201d`]")
_ENDS_WITH_NUMBER = re.compile(
    r"(?:^|\n|[.!?]\s)[\s*_`\"'-]{0,20}(" + _NUMBER.pattern + r")\Z", re.IGNORECASE
)
_LINE_START = re.compile(r"(?:\A|\n)[\s*_`\"'(\[>~\u2248#-]{0,70}\Z")
# A number with its markup is no longer; only so much of the end of an answer is searched.
_LAST_CHARS = 80


@dataclass(frozen=True, kw_only=True)
class _ScoreMark:
    """A number that the answer gives as its score."""

    reading: _Reading
    start: int
    end: int
    is_final: bool = False
    """Whether the answer calls it final, or nothing follows it."""
    enclosed: bool = False
    """Whether it may be a quotation in a broken answer."""
    source: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The JSON object that it comes from; empty for a number in prose."""


def parse_score(text: str) -> float | Inconclusive:
    """Read a score in [0, 1] from an answer, with or without reasoning.

    * `0.9`, `.8`, `1`, `0,8`, `95%`, `0.8/1`, `4/5` and full-width digits are read as written.
    * A number after a label (`Score: 0.85`) or under a JSON key precedes any other number. Of
      several, the last one counts, and only if it ends the answer or is called final: a verdict
      that is quoted from a transcript never counts.
    * Without a label there must be one number, which is the whole answer, is alone on its line, or
      begins or ends the answer.
    * A number out of range is `off_menu`, never clipped. Words, or several different numbers, are
      a `parse_failure`.
    """
    score = _find_score(text)
    return score if isinstance(score, Inconclusive) else score[0]


def parse_support(text: str, *, turn_ids: Collection[str]) -> SupportSample | Inconclusive:
    """Read a support score with its reason and evidence.

    Args:
        text: The model's answer: `{"reason": ..., "turns": [...], "score": ...}`, or any form
            that `parse_score` takes.
        turn_ids: The turns that the model was shown; other ids are left out.
    """
    score = _find_score(text)
    if isinstance(score, Inconclusive):
        return score
    number, source = score
    reason = source.get("reason") or source.get("explanation") or ""
    evidence = next((source[key] for key in _TURN_KEYS if key in source), ())
    return SupportSample(
        score=number,
        reason=shorten(str(reason), 1_000) if isinstance(reason, str) else "",
        turn_ids=_listed_turns(evidence, turn_ids),
    )


def _listed_turns(evidence: object, turn_ids: Collection[str]) -> tuple[str, ...]:
    """The ids in a list, or in a text such as `"[1], #3"`."""
    if isinstance(evidence, str):
        evidence = re.split(r"[,;]\s*|\s+", evidence)
    if not isinstance(evidence, Sequence):
        return ()
    ids = (str(item).strip(" \t\n[](){}#\"'") for item in evidence)
    known = frozenset(turn_ids)
    return tuple(dict.fromkeys(turn_id for turn_id in ids if turn_id in known))


def _find_score(text: str) -> tuple[float, Mapping[str, Any]] | Inconclusive:
    """The score of an answer, and the JSON object that it comes from."""
    plain = answer_end(text)
    objects = json_objects(plain)
    marks = _in_objects(plain, objects)
    # "On a scale from 0 to 1" is no score either. Blanked, so that offsets stay the same.
    prose = _SCALE.sub(lambda scale: " " * len(scale[0]), blank_objects(plain, objects))
    if not prose.isspace():
        marks = sorted([*marks, *_under_labels(prose)], key=lambda mark: mark.start)
    chosen = _last_mark(marks, prose) if marks else _only_number(prose)
    if isinstance(chosen, str):
        return Inconclusive(reason=chosen, detail=shorten(text))
    if isinstance(chosen.reading, str):
        return Inconclusive(reason=chosen.reading, detail=shorten(text))
    return chosen.reading, chosen.source


def _last_mark(marks: list[_ScoreMark], prose: str) -> _ScoreMark | InconclusiveReason:
    last = marks[-1]
    if len({mark.reading for mark in marks}) > 1:
        quoted = any(mark.enclosed for mark in marks)
        if quoted or not last.is_final:
            return "parse_failure"
    # A different number at the very end may correct the labelled one.
    after = prose[last.end :].rstrip(" \t\n.!*_`\"'")
    ending = _ENDS_WITH_NUMBER.search(after, max(0, len(after) - _LAST_CHARS))
    number = None if ending is None else _NUMBER.fullmatch(ending[1])
    if number is not None and _reading_of(number) != last.reading:
        return "parse_failure"
    return last


def _in_objects(text: str, objects: list[JsonObject]) -> list[_ScoreMark]:
    return [
        _ScoreMark(
            reading=reading,
            start=item.start,
            end=item.end,
            is_final=ends_answer(text, item.end),
            enclosed=item.enclosed,
            source=item.value,
        )
        for item in objects
        if (reading := _reading_in(item.value)) is not None
    ]


def _reading_in(value: Mapping[str, Any]) -> _Reading | None:
    """The score in a JSON object; `None` if no key means a score."""
    by_key = {str(key).strip().lower().replace(" ", "_").replace("-", "_"): key for key in value}
    for name in _SCORE_KEYS:
        # An object or a list under such a key may contain the score, but is none.
        if name in by_key and not isinstance(value[by_key[name]], Mapping | list):
            return _reading_of_json(value[by_key[name]])
    nested: list[_Reading | None] = [
        _reading_in(inner) for inner in value.values() if isinstance(inner, Mapping)
    ]
    return next((reading for reading in reversed(nested) if reading is not None), None)


def _reading_of_json(value: object) -> _Reading:
    if isinstance(value, str):
        number = _NUMBER.fullmatch(value.strip())
        return "parse_failure" if number is None else _reading_of(number)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "parse_failure"
    # An integer may be too large for a float.
    return "off_menu" if value > 1 or value < 0 else _in_range(float(value))


def _under_labels(prose: str) -> list[_ScoreMark]:
    whole = prose.strip("\"'`“” \n")
    quotations = [
        (quoted.start(), quoted.end())
        for quoted in _QUOTED.finditer(prose)
        # Some models put their whole answer in quotation marks.
        if quoted[0][1:-1].strip() != whole
    ]
    marks: list[_ScoreMark] = []
    for label in _LABEL.finditer(prose):
        mark = _under_label(prose, label)
        if mark is not None and not any(
            start <= label.start() and mark.end < end for start, end in quotations
        ):
            marks.append(mark)
    return marks


def _under_label(prose: str, label: re.Match[str]) -> _ScoreMark | None:
    means_score = _SCORE_LABEL.fullmatch(label["word"]) is not None
    number = _NUMBER.match(prose, label.end())
    if number is None:
        # "Score: none" is an answer too, and an earlier number must not replace it.
        if means_score and label["joint"] in {":", "="}:
            return _ScoreMark(reading="parse_failure", start=label.start(), end=label.end())
        return None
    if not (means_score or label["joint"]):
        return None
    is_range = _UPPER_BOUND.match(prose, number.end()) is not None
    return _ScoreMark(
        reading="parse_failure" if is_range else _reading_of(number),
        start=label.start(),
        end=number.end(),
        is_final=bool(label["final"]) or ends_answer(prose, number.end()),
    )


def _only_number(prose: str) -> _ScoreMark | InconclusiveReason:
    """The one number of an answer without labels; it may occur several times."""
    numbers = list(_FREE_NUMBER.finditer(prose))
    readings: set[_Reading] = {_reading_of(number) for number in numbers}
    begin = len(prose) - len(prose.lstrip("*_`\"'([ \n"))
    if len(readings) != 1 or not any(_stands_out(prose, n, begin=begin) for n in numbers):
        return "parse_failure"
    return _ScoreMark(reading=readings.pop(), start=numbers[0].start(), end=numbers[0].end())


def _stands_out(prose: str, number: re.Match[str], *, begin: int) -> bool:
    """Whether a number is the answer, and not a number in a sentence; the text starts at `begin`.

    Only what is near a number is looked at, since an answer may have thousands of them.
    """
    before = prose[max(0, number.start() - _LAST_CHARS) : number.start()]
    marks_end = end_of_marks(prose, number.end())
    ends = marks_end == len(prose)
    ends_line = ends or "\n" in prose[number.end() : marks_end]
    if ends_line and _LINE_START.search(before):
        return True
    # "Turn 1 is unclear" must not read as full support; "I would say 0.85." may read as 0.85.
    is_fraction = re.search(r"[.,%/]|percent|out", number[0]) is not None
    return is_fraction and (number.start() <= begin or ends)


def _reading_of(number: re.Match[str]) -> _Reading:
    digits = _with_point(number["digits"])
    if digits is None:
        return "parse_failure"
    value = float(f"{digits}e{number['exponent'] or 0}")
    if number["sign"] in {"-", "\u2212"} and value != 0:
        return "off_menu"
    if number["percent"]:
        # "0.95%" is more likely 95 % with a wrong sign than 0.0095; guessing would hide it.
        return "parse_failure" if 0 < value < 1 else _in_range(value / 100)
    if number["whole"]:
        whole = float(number["whole"])
        # "0.8/10" may mean 0.8 or 0.08.
        if whole == 0 or (0 < value < 1 and whole != 1):
            return "parse_failure"
        return _in_range(value / whole)
    return _in_range(value)


def _with_point(digits: str) -> str | None:
    """The digits with a decimal point; `None` where a comma may separate thousands."""
    head, comma, tail = digits.partition(",")
    if not comma:
        return digits
    thousands = len(tail) == 3 and head not in {"", "0"}  # noqa: PLR2004
    return None if thousands else f"{head}.{tail}"


def _in_range(value: float) -> _Reading:
    if math.isnan(value):
        return "parse_failure"
    # `abs`, because -0.0 would be shown with a sign.
    return abs(value) if 0 <= value <= 1 else "off_menu"


def read_answer(message: object, parse: Parse[T], *, partial: bool = False) -> T | Inconclusive:
    """Read a chat message with one of the parsers.

    Args:
        message: An `AIMessage`, or an object with its attributes.
        parse: Reads the value from the text.
        partial: Whether a value at the end of a truncated answer is accepted although it may be
            incomplete, as in prose.

    Returns:
        The value; `refusal` if the model declined; `truncated` if the answer was cut off before
        or within the value; `parse_failure` if it has more than `MAX_ANSWER_CHARS`; otherwise the
        result of `parse`.
    """
    extra: Any = getattr(message, "additional_kwargs", None) or {}
    finish = _finish_of(message)
    text = text_of(message)
    refusal = extra.get("refusal") or _refusal_block(message)
    if refusal or finish in _FILTERED:
        return Inconclusive(reason="refusal", detail=shorten(str(refusal or text or finish)))
    if len(text) > MAX_ANSWER_CHARS:
        detail = f"{len(text)} characters, more than {MAX_ANSWER_CHARS}: {text[:100]}"
        return Inconclusive(reason="parse_failure", detail=shorten(detail))
    value = parse(text)
    if finish not in _CUT:
        return value
    # A number at the very end may have had more digits.
    if isinstance(value, Inconclusive) or (not partial and re.search(r"[\d.,]\s*$", text)):
        return Inconclusive(reason="truncated", detail=shorten(text))
    return value


def is_cut_off(message: object) -> bool:
    """Whether an answer reached the token limit."""
    return _finish_of(message) in _CUT


def _finish_of(message: object) -> str:
    metadata: Any = getattr(message, "response_metadata", None) or {}
    return metadata.get("finish_reason") or metadata.get("stop_reason") or ""


def _refusal_block(message: object) -> str:
    content: Any = getattr(message, "content", None)
    blocks = [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []
    return next((str(b.get("refusal") or "") for b in blocks if b.get("type") == "refusal"), "")


def parse_json(text: str, schema: type[M]) -> M | Inconclusive:
    """Read a JSON object of a schema: the last complete one that validates, of the last hundred.

    Reasoning, code fences, prose around the object and trailing commas are accepted. An object
    inside the braces of a broken one may be a quotation and is not read.
    """
    objects = [item for item in json_objects(without_reasoning(text)) if not item.enclosed]
    problem = "no JSON object"
    for candidate in reversed(objects[-_MAX_VALIDATED:]):
        try:
            return schema.model_validate(candidate.value)
        except ValidationError as error:
            problem = explain(error)
    detail = f"{problem}: {text}" if text.strip() else "empty answer"
    return Inconclusive(reason="parse_failure", detail=shorten(detail))


def explain(error: ValidationError) -> str:
    """A validation error in a form that a model can act on."""
    lines = [
        f"{'.'.join(str(part) for part in item['loc']) or 'the object'}: {item['msg']}"
        for item in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    return shorten("; ".join(lines), 500)
