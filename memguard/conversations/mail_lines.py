"""What single lines of a mail and clauses before a colon say. Pure."""

import re

from memguard.conversations import passage_cues as cues
from memguard.schema.memory import PassageKind

_NOT_NAME = re.compile(r"\s{0,4}[<(\[\u300a].{0,200}$|[\"'*_]")
_NAME = re.compile(
    r"^[A-Z\u00c0-\u00de\u3400-\u9fff][\w'.-]{0,30}(?:\s[A-Z\u00c0-\u00de][\w'.-]{0,30}){0,3}$"
)
_MAX_NAME = 60
_KINDS: dict[str, PassageKind] = {
    "mail": "mail", "transcript": "transcript", "code": "code", "log": "log", "table": "table"
}  # fmt: skip


def header_of(line: str) -> tuple[str, str] | None:
    """The role of a header of a mail and its value."""
    match = cues.HEADER.match(line)
    if match is None:
        return None
    role = next(name for name, _ in cues.HEADERS if match[name] is not None)
    return role, match["value"] or ""


def closes(line: str) -> bool:
    """Whether a line is the closing of a mail."""
    return closes_formally(line) or cues.PLAIN_CLOSING.match(line) is not None


def closes_formally(line: str) -> bool:
    """Whether a line is a closing that people do not write to an assistant."""
    return (
        cues.FORMAL_CLOSING.match(line) is not None
        or cues.DEVICE.match(line) is not None
        or line.rstrip() == "--"
    )


def name_of(value: str | None) -> str:
    """The name in a header or a signature, without address and marks."""
    name = _NOT_NAME.sub("", (value or "").split(",")[0]).strip(" .,;:-\u2013\u3002\uff0c")
    return name if 0 < len(name) <= _MAX_NAME and "@" not in name else ""


def is_name(text: str) -> bool:
    """Whether a text may be the name of a person: one to four words with a capital."""
    return _NAME.match(text) is not None


def writer_of(line: str) -> str:
    """The name in a line such as "On 3 May 2024 at 10:12, Karl Meier <k@x.org> wrote:"."""
    match = cues.WRITER.search(line)
    return name_of(match["name"] or match["german"] or match["chinese"]) if match else ""


def announcement(clause: str) -> tuple[str | None, str]:
    """What a clause before a colon announces: a kind of passage, `said`, `task` or nothing."""
    if cues.NOT_A_TEXT.search(clause):
        return None, ""
    if cues.TASK.search(clause):
        return "task", ""
    # "I wrote to her: ..." are the user's own words.
    if cues.BY_USER.search(clause) and not cues.WITH_OTHER.search(clause):
        return None, ""
    match = cues.SPEAKER.search(clause)
    author = name_of(match["name"] or match["sender"]) if match else ""
    if (kind := cues.announced_kind(clause)) is not None:
        return kind, author
    return ("said", author) if cues.SAID.search(clause) else (None, "")


def kind_of(name: str) -> PassageKind:
    """The kind of a passage that a phrase announced."""
    return _KINDS.get(name, "quotation")
