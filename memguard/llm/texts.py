"""The text of a model's answer, without its reasoning, and the JSON objects in it. Pure."""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memguard.llm.failures import shorten
from memguard.schema.decision import Inconclusive, InconclusiveReason

_TAGS = r"(?:think(?:ing)?|reasoning|thoughts?|reflection|scratchpad)"
_CLOSED = re.compile(rf"<({_TAGS})\b[^>]*>.*?</\1\s*>", re.IGNORECASE | re.DOTALL)
# Anchored: from every other position `.*` would read the whole text again.
_LAST_CLOSER = re.compile(rf"\A.*</{_TAGS}\s*>", re.IGNORECASE | re.DOTALL)
_OPENER = re.compile(rf"<{_TAGS}\b[^>]*>.*", re.IGNORECASE | re.DOTALL)


def text_of(message: object) -> str:
    """What the model answered, as text: never its reasoning, never the repr of a list.

    Args:
        message: A string, or anything with the `content` and `tool_calls` of a chat message.

    Returns:
        The text blocks joined; if there is no text, the arguments of the first tool call as JSON.
    """
    if isinstance(message, str):
        return message
    text = _text_of_content(_get(message, "content"))
    if text.strip():
        return text
    calls = _get(message, "tool_calls")
    if isinstance(calls, Sequence) and calls:
        args = _get(calls[0], "args")
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
        elif isinstance(block, Mapping) and block.get("type") in {"text", "output_text"}:
            parts.append(str(block.get("text") or ""))
    return "".join(parts)


def _get(thing: object, name: str) -> Any:
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def without_reasoning(text: str) -> str:
    """The text after reasoning tags, whether they were closed, opened by the template, or cut off.

    An answer that is one JSON value is left as it is: a tag inside a string is a quotation.
    """
    if _is_json(text):
        return text
    text = _CLOSED.sub("", text)
    text = _LAST_CLOSER.sub("", text)
    return _OPENER.sub("", text)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


@dataclass(frozen=True)
class JsonObject:
    """One JSON object found in a text."""

    value: dict[str, Any]
    """The object."""
    start: int
    """Where it begins."""
    end: int
    """Where it ends."""
    enclosed: bool
    """Whether it lies inside braces that are no JSON: a quotation in a broken answer."""


_DECODER = json.JSONDecoder()
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
MAX_ANSWER_CHARS = 8_000
"""Characters of an answer that are searched for a score or a choice, from its end: a verdict is
stated last, and a runaway answer must not hold up the event loop."""

_MAX_TRIES = 200
"""Openings tried in one text; bounds the work on a text made of braces."""


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
            # Whatever lies within these braces may be a quotation.
            broken_until = max(broken_until, closing)
            position = text.find("{", position + 1)
        else:
            value, end = read
            objects.append(JsonObject(value, position, end, enclosed=position < broken_until))
            position = text.find("{", end)
    return objects


def _read_object(text: str, start: int, *, closing: int) -> tuple[dict[str, Any], int] | None:
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return _read_forgiving(text[start : closing + 1], end=closing + 1)
    return value, end


def _read_forgiving(piece: str, *, end: int) -> tuple[dict[str, Any], int] | None:
    """Read an object whose only fault is a comma before a closing bracket."""
    if not _TRAILING_COMMA.search(piece):
        return None
    try:
        return json.loads(_TRAILING_COMMA.sub(r"\1", piece)), end
    except (ValueError, RecursionError):
        return None


def _closings(text: str) -> dict[int, int]:
    """Where each opening brace is closed, by count alone; a brace that is not closed is absent.

    One pass over the text: counting from every brace anew held the event loop for a second.
    """
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
_NOTHING_MORE = re.compile(r"[\s\"'`*_.)\]}!]*")


@dataclass(frozen=True)
class _ChoiceMark:
    choice: str
    """The option; empty for a word that was not offered."""
    start: int
    is_final: bool


def parse_choice(text: str, options: Sequence[str]) -> str | Inconclusive:
    """Read which of the options an answer names.

    A JSON value, `[[B]]`, or an option under a label (`Verdict: tie`) counts; of several different
    ones the last, and only if it ends the answer or is called final. Without these: the answer is
    the option, or ends by concluding on it ("so TIE."). Letters in prose are never read.

    Args:
        text: The model's answer; reasoning tags are taken off here.
        options: The words offered; compared without case, returned as given.

    Returns:
        The option; `off_menu` for a word that was not offered, `parse_failure` for none.
    """
    plain = unicodedata.normalize("NFKC", without_reasoning(text[-MAX_ANSWER_CHARS:])).strip()
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
    """The option; empty for one that was not offered, `None` for nothing that can be read."""
    marks = sorted(
        [*_in_objects(plain, by_name), *_marked(plain, by_name)], key=lambda one: one.start
    )
    if not marks:
        return _concluded(plain, by_name)
    last = marks[-1]
    if len({one.choice for one in marks}) > 1 and not last.is_final:
        return None
    return last.choice


def _in_objects(plain: str, by_name: Mapping[str, str]) -> list[_ChoiceMark]:
    marks: list[_ChoiceMark] = []
    for one in json_objects(plain):
        value = next((one.value[key] for key in _CHOICE_KEYS if key in one.value), None)
        if isinstance(value, str):
            choice = by_name.get(value.strip(_MARKUP).casefold(), "")
            ends = _NOTHING_MORE.fullmatch(plain, one.end) is not None
            marks.append(_ChoiceMark(choice, one.start, ends and not one.enclosed))
    return marks


def _marked(plain: str, by_name: Mapping[str, str]) -> list[_ChoiceMark]:
    for one in json_objects(plain):
        plain = plain[: one.start] + " " * (one.end - one.start) + plain[one.end :]
    words = _alternatives(by_name)
    pattern = re.compile(
        rf"\[\[\s*(?P<boxed>[\w -]{{1,40}}?)\s*\]\]|{_LABEL}(?P<named>{words})(?!\w)"
        rf"|{_LABEL.replace('<final>', '<final_>').replace('<joint>', '<joint_>')}(?P<other>\w+)",
        re.IGNORECASE,
    )
    return [mark for match in pattern.finditer(plain) if (mark := _of_mark(plain, match, by_name))]


def _of_mark(plain: str, match: re.Match[str], by_name: Mapping[str, str]) -> _ChoiceMark | None:
    groups: dict[str, Any] = match.groupdict()
    word = groups["boxed"] or groups["named"] or groups["other"]
    choice = by_name.get(word.casefold(), "")
    if groups["boxed"] is None:
        # "Answer A" names an option; "the answer a user gave" does not.
        loose = not (groups["joint"] or groups["joint_"])
        is_prose = loose and (not choice or (len(choice) == 1 and word != choice))
        follows = plain[match.end() : match.end() + 2]
        is_article = len(choice) == 1 and word != choice and re.match(r"\s\w", follows)
        if is_prose or is_article or (not choice and groups["joint"] is None and loose):
            return None
    ends = _NOTHING_MORE.fullmatch(plain, match.end()) is not None
    return _ChoiceMark(choice, match.start(), ends or bool(groups["final"] or groups["final_"]))


def _concluded(plain: str, by_name: Mapping[str, str]) -> str | None:
    """The option on the last line, or the one that the last words conclude on."""
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
