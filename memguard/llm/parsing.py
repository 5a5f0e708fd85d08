"""Reading a support score out of an answer. Pure; the rule is the table in `parse_score`.

The rule is made to miss rather than to misread: a wrong but valid number flows straight into a
mean, while an unread answer is counted as such.
"""

import math
import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel, ValidationError

from memguard.llm.failures import shorten
from memguard.llm.texts import (
    MAX_ANSWER_CHARS,
    JsonObject,
    json_objects,
    text_of,
    without_reasoning,
)
from memguard.schema.decision import Inconclusive, InconclusiveReason, SupportSample

Reading: TypeAlias = float | InconclusiveReason
"""A score, or why a number is none."""

SCORE_KEYS = (
    "support_score", "score", "support", "rating", "probability", "value", "result", "answer",
    "verdict",
)  # fmt: skip
"""Keys under which a JSON answer may hold the score, the most telling first."""

_NUMBER = re.compile(
    r"(?P<sign>[-+\u2212])?"
    r"(?P<digits>\d+(?:[.,]\d+)?|[.,]\d+)"
    r"(?:e(?P<exponent>[-+]?\d{1,3}))?"
    r"(?:\s*(?P<percent>%|percent\b)|\s*(?:/|out\s+of)\s*(?P<whole>\d{1,4}(?:\.\d{1,4})?))?"
    r"(?![\w%/])(?![.,:]\d)",
    re.IGNORECASE,
)
_FREE_NUMBER = re.compile(r"(?<![\w.,/:])" + _NUMBER.pattern, re.IGNORECASE)

_LABEL = re.compile(
    r"(?<!\w)(?P<final>(?:final|overall|own)\s+)?"
    r"(?P<word>(?:support[ _-]?)?score|rating|grade|support|answer|verdict|result)\b"
    r"[\"'*_`\])\s]*"
    r"(?P<joint>[:=]|->|\u2192|(?:\s|\b)(?:is|was|would\s+be|of)\s|\s[-\u2013\u2014]\s)?"
    r"[\"'*_`\[(\s~\u2248]*",
    re.IGNORECASE,
)
_SPEAKING_FOR_ITSELF = re.compile(r"(?:support[ _-]?)?score|rating|grade", re.IGNORECASE)
"""Words that name a score even with nothing between them and the number."""

# Every run of white space is bounded: an answer may be thousands of blanks, and `\s*` beside `\s*`
# would try every way to share them out.
_SCALE = re.compile(
    r"[\[(]?(?<![\d.,])0(?:\.0+)?\s{0,3}(?:to|and|through|\.{2,3}|[-\u2013\u2014])\s{0,3}1(?:\.0+)?"
    r"(?![.,]?\d)[\])]?"
    r"|\[\s{0,3}0(?:\.0+)?\s{0,3},\s{0,3}1(?:\.0+)?\s{0,3}\]",
    re.IGNORECASE,
)
_RANGE_GOES_ON = re.compile(r"\s*(?:[-\u2013\u2014~]|to\b|\.\.+)\s*[.,]?\d", re.IGNORECASE)
_QUOTED = re.compile(r"[\"\u201c`][^\"\u201c\u201d`\n]{0,300}[\"\u201d`]")
_NOTHING_MORE = re.compile(r"[\s\"'`*_.)\]}!]*")
_ENDS_WITH_NUMBER = re.compile(
    r"(?:^|\n|[.!?]\s)[\s*_`\"'-]*(" + _NUMBER.pattern + r")[\s.!*_`\"']*$", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True)
class FoundScore:
    """A number that the answer names as its score."""

    reading: Reading
    """The score, or why the number is none."""
    start: int
    """Where it stands."""
    end: int
    """Where it ends."""
    is_final: bool = False
    """Whether the answer calls it final, or nothing follows it."""
    enclosed: bool = False
    """Whether it may be a quotation in a broken answer."""
    source: JsonObject | None = None
    """The JSON object it came from."""


def parse_score(text: str) -> float | Inconclusive:
    """Read a score in [0, 1].

    * `0.9`, `.8`, `1`, `0,8`, `95%`, `0.8/1`, `4/5`, full-width digits: read as they stand.
    * A number under a label (`Score: 0.85`) or a JSON key beats any other number. Of several, the
      last one counts, and only if it ends the answer or is called final: a verdict that is quoted
      from a transcript never wins.
    * Without a label: the one number that is there, if it is the answer, stands on a line of its
      own, or begins or ends the answer.
    * Out of range is `off_menu`, never clipped. Words, or several different numbers, are a
      `parse_failure`.

    Args:
        text: The model's answer; reasoning tags are taken off here.
    """
    score = find_score(text)
    return score if isinstance(score, Inconclusive) else _number(score)


def find_score(text: str) -> FoundScore | Inconclusive:
    """The score of an answer, with the place it was found at."""
    plain = unicodedata.normalize("NFKC", without_reasoning(text[-MAX_ANSWER_CHARS:])).strip()
    objects = json_objects(plain)
    named = _in_objects(plain, objects)
    prose = _without_objects(plain, objects)
    if not prose.isspace():
        named = sorted([*named, *_under_labels(prose)], key=lambda labelled: labelled.start)
    chosen = _last_named(named, prose) if named else _only_number(prose)
    reading = chosen if isinstance(chosen, str) else chosen.reading
    if isinstance(reading, str):
        return Inconclusive(reason=reading, detail=shorten(text))
    assert isinstance(chosen, FoundScore)  # noqa: S101 - a string was ruled out above
    return chosen


def _number(labelled: FoundScore) -> float:
    assert not isinstance(labelled.reading, str)  # noqa: S101 - `find_score` returns readings only
    return labelled.reading


def _without_objects(text: str, objects: list[JsonObject]) -> str:
    """The text with JSON objects and mentions of the scale blanked, offsets kept."""
    for json_object in objects:
        text = (
            text[: json_object.start]
            + " " * (json_object.end - json_object.start)
            + text[json_object.end :]
        )
    return _SCALE.sub(lambda scale: " " * len(scale[0]), text)


def _last_named(named: list[FoundScore], prose: str) -> FoundScore | InconclusiveReason:
    last = named[-1]
    if len({score.reading for score in named}) > 1:
        quoted = any(score.enclosed for score in named)
        if quoted or not last.is_final:
            return "parse_failure"
    after = _ENDS_WITH_NUMBER.search(prose[last.end :])
    number = None if after is None else _NUMBER.fullmatch(after[1])
    if number is not None and _reading_of(number) != last.reading:
        return "parse_failure"
    return last


def _in_objects(text: str, objects: list[JsonObject]) -> list[FoundScore]:
    return [
        FoundScore(
            reading=reading,
            start=json_object.start,
            end=json_object.end,
            is_final=_NOTHING_MORE.fullmatch(text, json_object.end) is not None,
            enclosed=json_object.enclosed,
            source=json_object,
        )
        for json_object in objects
        if (reading := _reading_in(json_object.value)) is not None
    ]


def _reading_in(value: Mapping[str, Any]) -> Reading | None:
    """The score in a JSON object; `None` when no key is about one."""
    by_key = {str(key).strip().lower().replace(" ", "_").replace("-", "_"): key for key in value}
    for name in SCORE_KEYS:
        if name in by_key and not isinstance(value[by_key[name]], Mapping | list):
            return _reading_of_json(value[by_key[name]])
    nested: list[Reading | None] = [
        _reading_in(inner) for inner in value.values() if isinstance(inner, Mapping)
    ]
    return next((reading for reading in reversed(nested) if reading is not None), None)


def _reading_of_json(value: object) -> Reading:
    if isinstance(value, str):
        number = _NUMBER.fullmatch(value.strip())
        return "parse_failure" if number is None else _reading_of(number)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "parse_failure"
    # An integer may be too large for a float.
    return "off_menu" if value > 1 or value < 0 else _in_range(float(value))


def _under_labels(prose: str) -> list[FoundScore]:
    whole = prose.strip("\"'`“” \n")
    quotations = [
        (quoted.start(), quoted.end())
        for quoted in _QUOTED.finditer(prose)
        if quoted[0][1:-1].strip() != whole
    ]
    scores: list[FoundScore] = []
    for label in _LABEL.finditer(prose):
        named = _under_label(prose, label)
        if named is not None and not any(
            a <= label.start() and named.end < b for a, b in quotations
        ):
            scores.append(named)
    return scores


def _under_label(prose: str, label: re.Match[str]) -> FoundScore | None:
    speaks = _SPEAKING_FOR_ITSELF.fullmatch(label["word"]) is not None
    number = _NUMBER.match(prose, label.end())
    if number is None:
        # "Score: none" is an answer too, and an earlier number must not stand in for it.
        is_empty = speaks and label["joint"] in {":", "="}
        return (
            FoundScore(reading="parse_failure", start=label.start(), end=label.end())
            if is_empty
            else None
        )
    if not (speaks or label["joint"]):
        return None
    goes_on = _RANGE_GOES_ON.match(prose, number.end()) is not None
    return FoundScore(
        reading="parse_failure" if goes_on else _reading_of(number),
        start=label.start(),
        end=number.end(),
        is_final=bool(label["final"]) or _NOTHING_MORE.fullmatch(prose, number.end()) is not None,
    )


def _only_number(prose: str) -> FoundScore | InconclusiveReason:
    """The one number of an answer without labels."""
    numbers = list(_FREE_NUMBER.finditer(prose))
    readings: set[Reading] = {_reading_of(number) for number in numbers}
    if len(readings) != 1:
        return "parse_failure"
    if not any(_stands_out(prose, number) for number in numbers):
        return "parse_failure"
    first = numbers[0]
    return FoundScore(reading=readings.pop(), start=first.start(), end=first.end())


def _stands_out(prose: str, number: re.Match[str]) -> bool:
    """Whether a number is the answer, and not a number in a sentence."""
    line_start = prose.rfind("\n", 0, number.start()) + 1
    line_end = prose.find("\n", number.end())
    before = prose[line_start : number.start()]
    after = prose[number.end() : line_end if line_end >= 0 else len(prose)]
    alone = re.fullmatch(r"[\s*_`\"'(\[>~\u2248#-]*", before) and _NOTHING_MORE.fullmatch(after)
    if alone:
        return True
    # "Turn 1 is unclear" must not read as full support; "I would say 0.85." may read as 0.85.
    is_fraction = re.search(r"[.,%/]|percent|out", number[0]) is not None
    begins = not prose[: number.start()].strip("*_`\"'([ \n")
    ends = _NOTHING_MORE.fullmatch(prose, number.end()) is not None
    return is_fraction and (begins or ends)


def _reading_of(number: re.Match[str]) -> Reading:
    digits = _with_point(number["digits"])
    if digits is None:
        return "parse_failure"
    value = float(f"{digits}e{number['exponent'] or 0}")
    if number["sign"] in {"-", "\u2212"} and value != 0:
        return "off_menu"
    if number["percent"]:
        # "0.95%" is more likely 95 % mislabelled than 0.0095; it is not ours to guess.
        return "parse_failure" if 0 < value < 1 else _in_range(value / 100)
    if number["whole"]:
        return _share(value, float(number["whole"]))
    return _in_range(value)


def _with_point(digits: str) -> str | None:
    """The digits with a decimal point; `None` where a comma may separate thousands."""
    head, comma, tail = digits.partition(",")
    if not comma:
        return digits
    thousands = len(tail) == 3 and head not in {"", "0"}  # noqa: PLR2004
    return None if thousands else f"{head}.{tail}"


def _share(value: float, whole: float) -> Reading:
    if whole == 0:
        return "parse_failure"
    # "0.8/10" may mean 0.8 or 0.08.
    if 0 < value < 1 and whole != 1:
        return "parse_failure"
    return _in_range(value / whole)


def _in_range(value: float) -> Reading:
    if math.isnan(value):
        return "parse_failure"
    return abs(value) if 0 <= value <= 1 else "off_menu"


T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

Parse = Callable[[str], T | Inconclusive]
"""Reads a value out of an answer's text."""

_TURN_KEYS = ("turns", "turn_ids", "evidence", "sources")
_CUT = frozenset({"length", "max_tokens", "max_output_tokens", "MAX_TOKENS"})
_FILTERED = frozenset({"content_filter", "refusal", "SAFETY", "PROHIBITED_CONTENT"})


def read_answer(message: object, parse: Parse[T], *, partial: bool = False) -> T | Inconclusive:
    """Read a chat message with one of the parsers.

    Args:
        message: An `AIMessage`, or anything shaped like one.
        parse: Reads the value out of the text.
        partial: Whether a value that may have had more digits is welcome, as in prose.

    Returns:
        The value; `refusal` when the model declined; `truncated` when the answer was cut off
        before or within the value; otherwise what `parse` says.
    """
    extra: Any = getattr(message, "additional_kwargs", None) or {}
    finish = _finish_of(message)
    text = text_of(message)
    refusal = extra.get("refusal") or _refusal_block(message)
    if refusal or finish in _FILTERED:
        return Inconclusive(reason="refusal", detail=shorten(str(refusal or text or finish)))
    value = parse(text)
    if finish not in _CUT:
        return value
    if isinstance(value, Inconclusive) or (not partial and _may_be_cut(text)):
        return Inconclusive(reason="truncated", detail=shorten(text))
    return value


def is_cut_off(message: object) -> bool:
    """Whether an answer reached the cap of tokens."""
    return _finish_of(message) in _CUT


def _finish_of(message: object) -> str:
    metadata: Any = getattr(message, "response_metadata", None) or {}
    return metadata.get("finish_reason") or metadata.get("stop_reason") or ""


def _refusal_block(message: object) -> str:
    content: Any = getattr(message, "content", None)
    blocks = content if isinstance(content, list) else []
    parts = (block for block in blocks if isinstance(block, dict))
    return next((str(b.get("refusal") or "") for b in parts if b.get("type") == "refusal"), "")


def _may_be_cut(text: str) -> bool:
    """Whether a number at the very end may have had more digits."""
    return re.search(r"[\d.,]\s*$", text) is not None


def parse_support(text: str, *, turn_ids: Collection[str]) -> SupportSample | Inconclusive:
    """Read a support score with its reason and evidence.

    Args:
        text: The model's answer: `{"reason": ..., "turns": [...], "score": ...}`, or any form
            that `parse_score` takes.
        turn_ids: The turns the model was shown; other ids are left out.
    """
    score = find_score(text)
    if isinstance(score, Inconclusive):
        return score
    assert not isinstance(score.reading, str)  # noqa: S101 - `find_score` returns readings only
    value = score.source.value if score.source is not None else {}
    reason = value.get("reason") or value.get("explanation") or ""
    named = next((value[key] for key in _TURN_KEYS if key in value), ())
    return SupportSample(
        score=score.reading,
        reason=shorten(str(reason), 1_000) if isinstance(reason, str) else "",
        turn_ids=_known(named, turn_ids),
    )


def _known(named: object, turn_ids: Collection[str]) -> tuple[str, ...]:
    if isinstance(named, str):
        named = re.split(r"[,;]\s*|\s+", named)
    if not isinstance(named, Sequence):
        return ()
    ids = (str(one).strip(" \t\n[](){}#\"'") for one in named)
    return tuple(dict.fromkeys(one for one in ids if one in turn_ids))


def parse_json(text: str, schema: type[M]) -> M | Inconclusive:
    """Read a JSON object of a schema: the last complete one that validates.

    Takes fences, prose around the object and a comma too many. An object inside the braces of a
    broken one may be a quotation and is not read.

    Args:
        text: The model's answer; reasoning tags are taken off here.
        schema: The Pydantic model to validate with.
    """
    objects = json_objects(without_reasoning(text))
    problem = "no JSON object"
    for candidate in reversed(objects):
        if candidate.enclosed:
            continue
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
