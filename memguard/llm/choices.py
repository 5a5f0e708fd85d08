"""Reading one of a few offered words out of an answer. Pure."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memguard.llm.failures import shorten
from memguard.llm.texts import MAX_ANSWER_CHARS, json_objects, without_reasoning
from memguard.schema.verdict import Inconclusive, InconclusiveReason

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
