"""What can be read from a model's answer without a schema: text, JSON objects, or a choice.

Reasoning tags are removed first. `json_objects` accepts prose around objects and trailing commas;
`parse_choice` reads which of several options an answer names. Pure.
"""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from memguard.llm.failures import shorten
from memguard.schema.decision import Inconclusive, InconclusiveReason

# A tag has no angle bracket inside: with one allowed, every unclosed tag would read on to the end.
_TAG = re.compile(
    r"<(?P<closes>/)?(?P<name>think(?:ing)?|reasoning|thoughts?|reflection|scratchpad)\b[^<>]*>",
    re.IGNORECASE,
)
_OPENER = re.compile(
    r"<(?:think(?:ing)?|reasoning|thoughts?|reflection|scratchpad)\b", re.IGNORECASE
)


def text_of(message: object) -> str:
    """The text of an answer, without reasoning blocks.

    Args:
        message: A string, or anything with the `content` and `tool_calls` of a chat message.

    Returns:
        The joined text blocks; if there is no text, the arguments of the first tool call as JSON.
    """
    if isinstance(message, str):
        return message
    text = _text_of_content(_field(message, "content"))
    if text.strip():
        return text
    # A provider may answer a request for JSON with the call of a tool.
    calls = _field(message, "tool_calls")
    if isinstance(calls, Sequence) and calls:
        args = _field(calls[0], "args")
        return json.dumps(args) if isinstance(args, Mapping) else ""
    return text


def _text_of_content(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    parts: list[str] = []
    for block in content:
        if isinstance(block, str):
            parts.append(block)
        # Other types of blocks have reasoning, images or refusals.
        elif isinstance(block, Mapping) and block.get("type") in {"text", "output_text"}:
            parts.append(str(block.get("text") or ""))
    return "".join(parts)


def _field(message: object, name: str) -> Any:
    return message.get(name) if isinstance(message, Mapping) else getattr(message, name, None)


def without_reasoning(text: str) -> str:
    """The text without reasoning in tags, whether or not both tags are there."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return _cut_reasoning(text)
    # In an answer that is one JSON value, a tag inside a string is a quotation.
    return text


def _cut_reasoning(text: str) -> str:
    tags = list(_TAG.finditer(text))
    # By name, the index of the next closing tag, filled from the end: one pass, whatever the text.
    closing: list[int | None] = []
    later: dict[str, int] = {}
    for index in range(len(tags) - 1, -1, -1):
        name = tags[index]["name"].lower()
        closing.append(later.get(name))
        if tags[index]["closes"]:
            later[name] = index
    closing.reverse()
    kept: list[str] = []
    unclosed: int | None = None
    index = start = 0
    while index < len(tags):
        tag, pair = tags[index], closing[index]
        kept.append(text[start : tag.start()])
        start = tag.end()
        if tag["closes"]:
            # Some chat templates write the opening tag themselves, so the answer has only the
            # closing one.
            kept, unclosed = [], None
        elif pair is not None:
            index, start = pair, tags[pair].end()
        elif unclosed is None:
            unclosed = len(kept)
        index += 1
    # A truncated answer has only the opening tag, and what follows it is reasoning.
    return "".join(kept[:unclosed] if unclosed is not None else [*kept, text[start:]])


def end_of_reasoning(text: str) -> int:
    """Where the reasoning at the beginning of a text ends; at the end of the text if unclosed."""
    ends = [tag.end() for tag in _TAG.finditer(text) if tag["closes"]]
    if ends:
        return ends[-1]
    return len(text) if _OPENER.search(text) else 0


@dataclass(frozen=True)
class JsonObject:
    """One JSON object found in a text."""

    value: dict[str, Any]
    """The object."""
    start: int
    """Its offset in the text."""
    end: int
    """The offset after it."""
    enclosed: bool
    """Whether it is inside braces that are not JSON: it may be a quotation in a broken answer."""


_DECODER = json.JSONDecoder()
_TRAILING_COMMA = re.compile(r",(?=\s*[}\]])")
# A brace, and what must follow it in an object; any other brace, as in code, costs no attempt.
_OPENING = re.compile(r"\{(\s*[\"}])?")

MAX_ANSWER_CHARS = 200_000
"""A longer answer is not read: it is a `parse_failure` that says so. Ours: about 50,000 tokens, six
times what any stage asks for. It bounds the time that an answer blocks the event loop."""

# A verdict is stated last, so the end of an answer is searched for a score or a choice.
_MAX_CHARS = 8_000

# Of Chinese, Arabic, Urdu and Hindi, and the signs of ratio and fraction.
_PUNCTUATION = {
    "\u3002": ".", "\u3001": ",", "\u066b": ".", "\u066c": ",", "\u060c": ",", "\u061b": ";",
    "\u06d4": ".", "\u066a": "%", "\u0964": ".", "\u2236": ":", "\ua789": ":", "\u2044": "/",
}  # fmt: skip

# Attempts to read an object in one text, and those that may fail, since each reads on to the end.
_MAX_TRIED = 1_000
_MAX_FAILED = 100

# What may follow the last value of an answer.
_CLOSING_MARKS = re.compile(r"[\s\"'`*_.)\]}!]*")


def answer_end(text: str) -> str:
    """The part of an answer that is searched for a score or a choice.

    Compatible characters become plain ones (NFKC), and digits and punctuation of other scripts
    become those of ASCII, so that the rules know one form of a number.
    """
    plain = without_reasoning(text[-_MAX_CHARS:])
    if not plain.isascii():
        plain = "".join(_plain_char(char, after=last) for last, char in pairwise(["", *plain]))
    # Cut again, because one character may have become eighteen.
    return plain[-_MAX_CHARS:].strip()


def _plain_char(char: str, *, after: str) -> str:
    if char.isascii():
        return char
    if char.isdecimal():
        return str(unicodedata.decimal(char))
    # Marks of direction and other invisible characters stand between the digits of a number.
    if unicodedata.category(char) == "Cf":
        return ""
    plain = unicodedata.normalize("NFKC", char)
    if not any(part.isdecimal() for part in plain):
        return "".join(_PUNCTUATION.get(part, part) for part in plain)
    is_fraction = "\u2044" in plain and not after.isdecimal()
    # "0.8\u00b2" has a footnote and "1\u00bd" is no eleven halves: such a number must not be read.
    return plain.replace("\u2044", "/") if is_fraction else "_"


def ends_answer(text: str, end: int) -> bool:
    """Whether nothing but closing marks follows a value that ends at an offset."""
    return end_of_marks(text, end) == len(text)


def end_of_marks(text: str, start: int) -> int:
    """Where the closing marks end that follow a value."""
    marks = _CLOSING_MARKS.match(text, start)
    return marks.end() if marks else start


def blank_objects(text: str, objects: Sequence[JsonObject]) -> str:
    """The text with spaces in place of the objects, so that offsets stay the same."""
    parts: list[str] = []
    start = 0
    for item in objects:
        parts += [text[start : item.start], " " * (item.end - item.start)]
        start = item.end
    return "".join([*parts, text[start:]])


def json_objects(text: str) -> list[JsonObject]:
    """The complete JSON objects in a text, outermost ones only, in order.

    None at all for a text with more than a thousand, or with a hundred broken ones: which of them
    is the answer, and which a quotation, cannot be told.
    """
    objects: list[JsonObject] = []
    closings = _closings(text)
    # Of the same length, so that an offset means the same in both.
    repaired = _TRAILING_COMMA.sub(" ", text)
    end = tried = failed = 0
    broken_until = -1
    for brace in _OPENING.finditer(text):
        position = brace.start()
        if position < end:
            continue
        read = None
        if brace[1]:
            read = _read_object(text, position)
            tried, failed = tried + 1, failed + (read is None)
            if tried > _MAX_TRIED or failed > _MAX_FAILED:
                return []
            read = read or _read_object(repaired, position)
        if read is None:
            # Anything inside these braces may be a quotation.
            broken_until = max(broken_until, closings.get(position, len(text)))
        else:
            value, end = read
            objects.append(JsonObject(value, position, end, enclosed=position < broken_until))
    return objects


def _read_object(text: str, start: int) -> tuple[dict[str, Any], int] | None:
    with suppress(ValueError, RecursionError):
        return _DECODER.raw_decode(text, start)
    return None


def _closings(text: str) -> dict[int, int]:
    """The offset of the closing brace by that of its opening brace; unclosed ones are absent."""
    # One pass over the text: counting again from every brace blocked the event loop for a second.
    closings: dict[int, int] = {}
    openings: list[int] = []
    for brace in re.finditer(r"[{}]", text):
        if brace[0] == "{":
            openings.append(brace.start())
        elif openings:
            closings[openings.pop()] = brace.start()
    return closings


_CHOICE_KEYS = (
    "winner", "verdict", "label", "choice", "answer", "preference", "decision", "result", "better",
)  # fmt: skip
_LABEL = (
    r"(?<!\w)(?P<final>(?:final|overall|own)\s+)?"
    r"(?:winner|verdict|label|choice|answer|preference|decision|result|conclusion)\b"
    r"[\"'*_`\])\s]*(?P<joint>[:=]|->|\u2192|\b(?:is|was)\s)?[\"'*_`\[(\s]*"
)
_CONCLUDING = (
    r"(?:so|thus|hence|therefore|choose|pick|prefer|conclusion|it'?s|i\s+say)[\s:,\"'*_`]+"
)
_MARKUP = " \t\n\"'*_`#[](){}.!:;,\u201c\u201d\u300c\u300d\u3010\u3011"


@dataclass(frozen=True)
class _ChoiceMark:
    choice: str
    """The option; empty for a word that is not an option."""
    start: int
    is_final: bool


def parse_choice(text: str, options: Sequence[str]) -> str | Inconclusive:
    """Read which of the options an answer names.

    A JSON value, `[[B]]`, or an option after a label (`Verdict: tie`) counts. Of several different
    ones the last counts, and only if it ends the answer or is called final. Without any of these,
    the answer must be the option or conclude with it ("so TIE."). Single letters in prose are
    never read as options.

    Args:
        text: The model's answer, with or without reasoning.
        options: The words to choose from; case does not matter.

    Returns:
        The option as in `options`; `off_menu` for another word, `parse_failure` for no word.
    """
    plain = answer_end(text)
    by_name = {option.casefold(): option for option in options}
    bare = plain.strip(_MARKUP)
    if bare.casefold() in by_name:
        return by_name[bare.casefold()]
    chosen = _chosen(plain, by_name)
    if chosen:
        return chosen
    reason: InconclusiveReason = "parse_failure"
    if chosen == "" or (bare and len(bare.split()) == 1 and "{" not in plain):
        reason = "off_menu"
    return Inconclusive(reason=reason, detail=shorten(text))


def _chosen(plain: str, by_name: Mapping[str, str]) -> str | None:
    """The option; empty for a word that is not one, `None` if no choice can be read."""
    objects = json_objects(plain)
    labelled = _marked(blank_objects(plain, objects), by_name)
    marks = sorted([*_in_objects(plain, objects, by_name), *labelled], key=lambda mark: mark.start)
    if not marks:
        return _concluded(plain, by_name)
    last = marks[-1]
    # Different choices mean that the answer weighs them; only a final one is its verdict.
    if len({mark.choice for mark in marks}) > 1 and not last.is_final:
        return None
    return last.choice


def _in_objects(
    plain: str, objects: Sequence[JsonObject], by_name: Mapping[str, str]
) -> list[_ChoiceMark]:
    marks: list[_ChoiceMark] = []
    for item in objects:
        value = next((item.value[key] for key in _CHOICE_KEYS if key in item.value), None)
        if isinstance(value, str):
            choice = by_name.get(value.strip(_MARKUP).casefold(), "")
            is_final = ends_answer(plain, item.end) and not item.enclosed
            marks.append(_ChoiceMark(choice, item.start, is_final))
    return marks


def _marked(plain: str, by_name: Mapping[str, str]) -> list[_ChoiceMark]:
    words = _alternatives(by_name)
    # The label occurs twice in the pattern, and a group name may occur once only.
    other_label = _LABEL.replace("<final>", "<final_>").replace("<joint>", "<joint_>")
    pattern = re.compile(
        rf"\[\[\s*(?P<boxed>[\w -]{{1,40}}?)\s*\]\]|{_LABEL}(?P<named>{words})(?!\w)"
        rf"|{other_label}(?P<other>\w+)",
        re.IGNORECASE,
    )
    return [mark for match in pattern.finditer(plain) if (mark := _of_mark(plain, match, by_name))]


def _of_mark(plain: str, match: re.Match[str], by_name: Mapping[str, str]) -> _ChoiceMark | None:
    groups: dict[str, Any] = match.groupdict()
    word = groups["boxed"] or groups["named"] or groups["other"]
    choice = by_name.get(word.casefold(), "")
    if groups["boxed"] is None:
        is_other_case = len(choice) == 1 and word != choice
        has_joint = groups["joint"] or groups["joint_"]
        # "Answer A" names an option; "the answer a user gave" does not.
        if not has_joint and (not choice or is_other_case):
            return None
        # Nor does "the answer is a bakery", where the letter is an article.
        if is_other_case and re.match(r"\s\w", plain[match.end() : match.end() + 2]):
            return None
    is_final = bool(groups["final"] or groups["final_"]) or ends_answer(plain, match.end())
    return _ChoiceMark(choice, match.start(), is_final)


def _concluded(plain: str, by_name: Mapping[str, str]) -> str | None:
    """The option on the last line, or the one that the last words conclude with."""
    last_line = plain.rsplit("\n", 1)[-1].strip(_MARKUP)
    if last_line.casefold() in by_name:
        return by_name[last_line.casefold()]
    ending = re.search(
        rf"(?<!\w){_CONCLUDING}(?P<word>{_alternatives(by_name)})[\s\"'`*_.)\]!]*$",
        plain,
        re.IGNORECASE,
    )
    return by_name[ending["word"].casefold()] if ending else None


def _alternatives(by_name: Mapping[str, str]) -> str:
    """The options as a pattern, longest first so that `not_supported` is not read as `not`."""
    return "|".join(re.escape(name) for name in sorted(by_name, key=len, reverse=True)) or r"(?!)"
