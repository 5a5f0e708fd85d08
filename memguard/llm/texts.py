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
from typing import Any

from memguard.llm.failures import shorten
from memguard.schema.decision import Inconclusive, InconclusiveReason

_TAGS = r"(?:think(?:ing)?|reasoning|thoughts?|reflection|scratchpad)"
_REASONING = re.compile(rf"<({_TAGS})\b[^>]*>.*?</\1\s*>", re.IGNORECASE | re.DOTALL)
# Anchored: from every other position `.*` would read the whole text again.
_LAST_CLOSER = re.compile(rf"\A.*</{_TAGS}\s*>", re.IGNORECASE | re.DOTALL)
_UNCLOSED = re.compile(rf"<{_TAGS}\b[^>]*>.*", re.IGNORECASE | re.DOTALL)
_OPENER = re.compile(rf"<{_TAGS}\b", re.IGNORECASE)


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
        text = _REASONING.sub("", text)
        # Some chat templates write the opening tag themselves, so the answer has only the closing
        # one. A truncated answer has only the opening one.
        text = _LAST_CLOSER.sub("", text)
        return _UNCLOSED.sub("", text)
    # In an answer that is one JSON value, a tag inside a string is a quotation.
    return text


def end_of_reasoning(text: str) -> int:
    """Where the reasoning at the beginning of a text ends; at the end of the text if unclosed."""
    closed = _LAST_CLOSER.match(text)
    if closed:
        return closed.end()
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
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")

# A verdict is stated last, so the end of an answer is searched. The limit bounds the time that a
# runaway answer blocks the event loop.
_MAX_CHARS = 8_000

# Opening braces tried in one text; bounds the work on a text made of braces.
_MAX_TRIES = 200

# What may follow the last value of an answer.
_CLOSING_MARKS = re.compile(r"[\s\"'`*_.)\]}!]*")


def answer_end(text: str) -> str:
    """The part of an answer that is searched for a score or a choice, with compatible characters.

    NFKC makes ASCII digits and punctuation of their full-width forms.
    """
    return unicodedata.normalize("NFKC", without_reasoning(text[-_MAX_CHARS:])).strip()


def ends_answer(text: str, end: int) -> bool:
    """Whether nothing but closing marks follows a value that ends at an offset."""
    return _CLOSING_MARKS.fullmatch(text, end) is not None


def blank_objects(text: str, objects: Sequence[JsonObject]) -> str:
    """The text with spaces in place of the objects, so that offsets stay the same."""
    for item in objects:
        text = text[: item.start] + " " * (item.end - item.start) + text[item.end :]
    return text


def json_objects(text: str) -> list[JsonObject]:
    """The complete JSON objects in a text, outermost ones only, in order."""
    objects: list[JsonObject] = []
    closings = _closings(text)
    broken_until = -1
    position = text.find("{")
    for _ in range(_MAX_TRIES):
        if position < 0:
            break
        closing = closings.get(position, len(text))
        read = _read_object(text, position, closing=closing)
        if read is None:
            # Anything inside these braces may be a quotation.
            broken_until = max(broken_until, closing)
            position = text.find("{", position + 1)
        else:
            value, end = read
            objects.append(JsonObject(value, position, end, enclosed=position < broken_until))
            position = text.find("{", end)
    return objects


def _read_object(text: str, start: int, *, closing: int) -> tuple[dict[str, Any], int] | None:
    with suppress(ValueError, RecursionError):
        return _DECODER.raw_decode(text, start)
    # A comma before a closing bracket is the one error that is repaired.
    repaired, commas = _TRAILING_COMMA.subn(r"\1", text[start : closing + 1])
    with suppress(ValueError, RecursionError):
        return (json.loads(repaired), closing + 1) if commas else None
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
_MARKUP = " \t\n\"'*_`#[](){}.!:;,"


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
