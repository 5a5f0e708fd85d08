"""Forms of text that nobody says: code, logs, tables, system-like text and quotations. Pure.

The forms that one line shows are matched against the line. `find_inline` finds what stands inside a
line of the user's own: a quotation in quotation marks, code between back-ticks, an object of JSON.
"""

import re
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from memguard.conversations.passage_cues import BY_USER, says
from memguard.schema.memory import PassageKind


class Span(NamedTuple):
    """A passage by its offsets."""

    start: int
    end: int
    kind: PassageKind
    author: str = ""


LOG = re.compile(
    r"^\s{0,8}(?:\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d)?[\d.,:Z+-]{0,16}\]?\s{1,4}"
    r"[\[(<]?(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL|SEVERE)\b|"
    r"\[(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\]\s|"
    r"\[?(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\]?(?:\s{1,4}\[|:\s|\s{2}|\s\d)|"
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S{0,16}\s|"
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\s{1,2}\d{1,2} \d\d:\d\d:\d\d \S|"
    r"\d{1,3}(?:\.\d{1,3}){3} \S{1,30} \S{1,30} \[|"
    r"traceback \(most recent call last\)|exception in thread|caused by: |"
    r"at [\w$.<>]{2,120}\([\w.]{1,60}(?::\d+){0,2}\)|at \S{1,120} \(?\S{1,200}:\d+:\d+\)?|"
    r"file \"[^\"\n]{1,200}\", line \d+|[\w.]{1,80}(?:error|exception): |goroutine \d+ \[|"
    r"thread '[^'\n]{1,60}' panicked at)",
    re.IGNORECASE,
)
"""A line of a log or a stack trace."""
_MIXED_LOG = re.compile(r"^\s{0,8}(?:info|warning|error|notice|debug)\s?:\s", re.IGNORECASE)
"""A word such as "Info: " before prose, which people write too."""

_CODE = re.compile(
    r"^\s{0,40}(?:(?:def|class) \w{1,80}\s?[(:]|(?:from \S{1,80} )?import [\w{*.]|"
    r"#include\b|#!/|using \w[\w.]{0,80};|package [\w.]{1,80};?$|"
    r"(?:const|let|var|final|static|public|private|protected) [\w<>\[\] ]{1,80}[=({;]|"
    r"(?:async )?function\b.{0,80}\(|func \w{0,60}\(|fn \w{1,60}[<(]|"
    r"(?:if|for|while|switch|elif|except|with|try|else)\b.{0,160}[:{]\s{0,4}$(?<!\w:)|"
    r"(?:else|try|finally)\s?[:{]$|return\b.{0,120};$|return [\w.\[\]()\"']{1,60}$|"
    r"(?:select\s.{1,160}\sfrom|insert into|create table|update \w{1,60} set|delete from)\s|"
    r"[$%#]\s(?:sudo|pip|npm|git|cd|ls|docker|curl|python3?|apt)\b|>>>\s|\.\.\.\s|"
    r"//|/\*|\*/|<!--|</?(?:html|head|body|div|span|script|style|p|ul|li|a|h\d)\b[^>\n]{0,160}>|"
    r"[}\])]{1,4}[;,)]{0,3}\s{0,4}$|[\w.\[\]\"']{1,60}\s?[-+*/]?=\s?[^=\s].{0,200};?$(?<![.!?])|"
    r"[a-z]\w{0,40}(?:\.\w{1,40}){0,4}\(.{0,160}\)[;:]?\s{0,4}$|@\w{1,40}(?:\(.{0,80}\))?$|"
    r"[a-z]{1,30}_\w{1,60}\s?:\s.{1,160}$|[A-Z][A-Z0-9_]{2,60}=\S.{0,200}$|"
    r"[^\n]{1,200}[;{]\s{0,4}$)",
    re.IGNORECASE,
)
COMMENT_LINE = re.compile(r"^\s{0,40}(?:#|//|--\s|\*\s|/\*|;)")
STRONG_CODE = re.compile(
    r"^\s{0,40}(?://\s?\w|/\*|<!--|#include\b|#!/|(?:def|class) \w{1,80}\s?\(|>>>\s|"
    r"(?:const|let|var) \w{1,60}\s?=|from \S{1,80} import \w|import \{|function \w{1,60}\(|"
    r"[\w.]{1,60}\s?=\s?[^=\n]{1,160};\s{0,4}$|"
    r"select\s[^\n]{1,160}\sfrom\s\w{1,60}[^\n]{0,160};\s{0,4}$)",
    re.IGNORECASE,
)
"""A line that is code even if it stands alone."""
TABLE_ROW = re.compile(r"^\s{0,8}\|[^\n]*\|\s{0,4}$|^\s{0,8}[+|][-=+|: ]{3,}$")
_SEPARATORS = (",", ";", "\t")

_MARKER = (
    r"<\|[a-z_]{2,30}\|>|\[/?INST\]|<</?SYS>>|"
    r"</?(?:system|instructions?|assistant|tool_result|tool_call|function_results?|admin|"
    r"developer|system_prompt|user)(?:\s[^>\n]{0,80})?>"
)
SYSTEM_TOKEN = re.compile(_MARKER, re.IGNORECASE)
SYSTEM = re.compile(
    rf"^\s{{0,8}}(?:{_MARKER}|#{{2,4}}\s?(?:new |system |updated )?"
    r"(?:instructions?|system(?: prompt| message)?|response|input|human|assistant|user|"
    r"anweisung(?:en)?|"
    r"instrucci[oó]n(?:es)?|consignes?|指令|系统)\s?[:\uff1a]?\s{0,4}$|"
    r"[\[(*]{1,3}\s?(?:system|admin|developer|assistant|memory|系统|sistema|"
    r"système)\b[^\n\])]{0,60}[\])*]|"
    r"(?:begin|end|start|new|updated)[ _](?:of )?system[ _](?:prompt|message|instructions?)\b|"
    r"(?:system|developer|admin(?:istrator)?)\s?(?:prompt|message|note|notice|instruction|"
    r"override|update|"
    r"nachricht|hinweis)s?\s?[:\uff1a]|(?:mensaje|prompt|instrucción|"
    r"aviso) del sistema\s?[:\uff1a]|"
    r"(?:message|invite|instruction) (?:du )?syst[eè]me\s?[:\uff1a]|"
    r"系统(?:提示|消息|指令|通知)?\s?[:\uff1a]|"
    r"(?:system|sistema|syst[eè]me|assistant|ai|user_memory|"
    r"memory)\s?[:\uff1a][^\n]{0,200}?\b(?:you|the user|users?|"
    r"must|always|never|ignore|remember|store|save|obey|assistant|du|nutzer|immer|usuario|"
    r"siempre|recuerda|l['\u2019]utilisateur|toujours)\b)",
    re.IGNORECASE,
)
SHOUTED_SYSTEM = re.compile(
    r"(?<!\w)(?:SYSTEM|ADMIN|DEVELOPER|SISTEMA|SYSTÈME)(?: [A-Z]{2,20})?\s?[:\uff1a]"
)
"""The label of a system message inside a line, in capitals."""


def is_log(line: str) -> bool:
    """Whether a line is one of a log or a stack trace."""
    return LOG.match(line) is not None and not _MIXED_LOG.match(line)


_YAML_HEAD = re.compile(r"^\s{0,40}[a-z][\w-]{0,40}:\s{0,4}$")
_YAML_BELOW = re.compile(r"^\s{2,40}(?:- )?[a-z][\w-]{0,40}:(?:\s|$)|^\s{2,40}- \S")


def is_yaml(line: str, following: str) -> bool:
    """Whether a line and the next one are a key of YAML and an indented entry below it."""
    return bool(_YAML_HEAD.match(line) and _YAML_BELOW.match(following))


def is_code(line: str) -> bool:
    """Whether a line has the form of code; a few lines of prose have it too."""
    return _CODE.match(line) is not None


def separator_of(line: str) -> tuple[str, int] | None:
    """The separator of a row of CSV and how often it occurs; `None` for prose."""
    for separator in _SEPARATORS:
        count = line.count(separator)
        if count == 0:
            continue
        # Prose has a space after a comma, and fields have none.
        spaced = line.count(f"{separator} ")
        if spaced * 2 <= count and not line.rstrip().endswith((".", "!", "?", "\u3002")):
            return separator, count
    return None


_PAIRS = {
    '"': '"',
    "\u201c": "\u201d",
    "\u201e": "\u201c\u201d",
    "\u00ab": "\u00bb",
    "\u00bb": "\u00ab",
    "\u2018": "\u2019",
    "\u300c": "\u300d",
    "\u300e": "\u300f",
    "'": "'",
    "\u201a": "\u2018\u2019",
    "\uff02": "\uff02",
}
"""Opening quotation marks, with the marks that close them."""
_OPENING = re.compile("[" + "".join(_PAIRS) + "`{]")
_NEAR = 60
"""Characters before a quotation in which a verb of saying may stand."""
_MAX_QUOTATION = 4_000
"""Characters of the longest quotation in a line; a longer one has no end that one can trust."""
_FIRST_PERSON = re.compile(
    r"(?<!\w)(?:i|i['\u2019]m|i['\u2019]ve|my|me|we|our|ich|mein\w*|mir|mich|wir|unser\w*|yo|mi|"
    r"mis|me|soy|estoy|"
    r"tengo|nosotros|je|j['\u2019]\w+|mon|ma|mes|nous|notre|you|your|du|dein\w*|sie|tú|tu|usted|"
    r"vous|votre)"
    r"(?!\w)|[我你您]",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+")
_HAN = re.compile(r"[\u3400-\u9fff]")
_SENTENCE_ENDS = re.compile(r"[.!?\u3002\uff01\uff1f\n]")
_NEAR_AFTER = 40
"""Characters after a quotation in which a verb of saying may stand."""
_SENTENCE_END = re.compile(r"[.!?\u3002\uff01\uff1f\u2026]")
_MIN_WORDS = 3
_MIN_HAN = 4
_JSON_KEY = re.compile(r"[{,]\s{0,40}\"[^\"\n]{1,80}\"\s{0,4}:")


def find_inline(text: str, start: int, end: int) -> Iterator[Span]:
    """Quotations, code and system-like text inside a stretch of the user's own words."""
    at = start
    marks = _Marks(text, end)
    for match in _OPENING.finditer(text, start, end):
        if match.start() < at:
            continue
        span = _span_at(marks, match.start(), start=start, end=end)
        if span is None:
            continue
        if span.kind != "own":
            yield span
        at = span.end


class _Marks:
    """Finds the next of a mark, and searches no stretch of the text twice."""

    def __init__(self, text: str, end: int) -> None:
        self.text = text
        self._end = end
        self._next: dict[str, int] = {}

    def next(self, mark: str, at: int) -> int:
        """The offset of the next such mark from an offset on; the end without one."""
        offset = self._next.get(mark, -1)
        if offset < at:
            offset = self.text.find(mark, at, self._end)
            offset = self._end if offset < 0 else offset
            self._next[mark] = offset
        return offset


def _span_at(marks: _Marks, at: int, *, start: int, end: int) -> Span | None:
    """What the mark at an offset opens; of the kind `own` for a title or a nickname."""
    text = marks.text
    mark = text[at]
    if mark == "{":
        return _json_at(text, at, end=end)
    # A quotation in a line ends in it.
    stop = min(end, at + _MAX_QUOTATION, marks.next("\n", at))
    if mark == "`":
        close = marks.next("`", at + 1)
        inside = text[at + 1 : close] if close < stop else ""
        return Span(at, close + 1, "code") if len(_WORD.findall(inside)) >= _MIN_WORDS else None
    # An apostrophe opens nothing: "don't", "the users' wishes".
    if mark in "'\u2018\u201a" and at > start and text[at - 1].isalnum():
        return None
    close = _closing(marks, at + 1, stop, closing=_PAIRS[mark])
    if close < 0:
        return None
    before = text[max(start, at - _NEAR) : at]
    after = text[close + 1 : min(end, close + 1 + _NEAR)]
    kind = "quotation" if _is_quotation(text[at + 1 : close], before, after) else "own"
    return Span(at, close + 1, kind)


def _closing(marks: _Marks, start: int, stop: int, *, closing: str) -> int:
    """The offset of the mark that closes a quotation; -1 without one."""
    at = start
    while (close := min(marks.next(mark, at) for mark in closing)) < stop:
        following = marks.text[close + 1 : close + 2]
        # "It's" inside single quotation marks closes nothing.
        if marks.text[close] not in "'\u2019" or not following.isalnum():
            return close
        at = close + 1
    return -1


def _is_quotation(inside: str, before: str, after: str) -> bool:
    """Whether words in quotation marks are said by somebody else, not a title or a name."""
    words = _WORD.findall(inside)
    long = len(words) >= _MIN_WORDS or len(_HAN.findall(inside)) >= _MIN_HAN
    clause = _SENTENCE_ENDS.split(before)[-1]
    announced = clause.rstrip().endswith((":", "\uff1a", ","))
    if not words or not (long or announced):
        return False
    if says(clause):
        return BY_USER.search(clause) is None
    if long and says(_SENTENCE_ENDS.split(after)[0][:_NEAR_AFTER]):
        return BY_USER.search(after) is None
    if not long:
        return False
    if _SENTENCE_END.search(inside) or _FIRST_PERSON.search(inside):
        return not _is_title(words) or bool(_SENTENCE_END.search(inside[-2:]))
    return announced and not _is_title(words)


def _is_title(words: list[str]) -> bool:
    """Whether most of the long words have a capital, as in the title of a book."""
    long = [word for word in words if len(word) > _MIN_WORDS]
    return bool(long) and 2 * sum(word[0].isupper() for word in long) > len(long)


def _json_at(text: str, at: int, *, end: int) -> Span | None:
    """The object of JSON at an offset, to its last bracket or the end of the paragraph."""
    if not _JSON_KEY.match(text, at, end):
        return None
    close = object_end(text, at, end=end)
    return Span(at, close, "code")


_BRACKET = re.compile(r"[\[\]{}\"\\]|\n\s{0,40}\n")


_WINDOW = 256


def object_end(text: str, at: int, *, end: int) -> int:
    """The offset after the brackets that open here; the end of the paragraph if they stay open."""
    depth = 0
    quoted = False
    after = at
    # In windows, so that a small object does not look at all that follows it.
    windows = (
        _BRACKET.finditer(text, begin, min(begin + _WINDOW, end))
        for begin in range(at, end, _WINDOW)
    )
    for match in chain.from_iterable(windows):
        sign = match[0]
        if match.start() < after:
            continue
        if sign == "\\":
            after = match.end() + 1
        elif sign == '"':
            quoted = not quoted
        elif sign.startswith("\n"):
            if depth <= 0 or text[match.end() : match.end() + 1] not in tuple('"}]{'):
                return match.start()
        elif not quoted:
            depth += 1 if sign in "[{" else -1
            if depth <= 0:
                return match.end()
    return end
