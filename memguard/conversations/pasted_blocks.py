"""Finds the blocks of other authors in a text, line by line. Pure.

A block begins where a line shows it: a fence, a mark of quotation, headers of a mail, a salutation
that a closing follows, a label with a time, code, or a phrase that announces a text. The kinds are
tried in a fixed order. What each line may close or begin is noted once before, so that no line is
searched again for every block.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator

from memguard.conversations import passage_cues as cues
from memguard.conversations.mail_lines import (
    announcement,
    closes,
    closes_formally,
    header_of,
    is_name,
    kind_of,
    name_of,
    writer_of,
)
from memguard.conversations.pasted_chats import chat_at, read_labels
from memguard.conversations.pasted_text import (
    COMMENT_LINE,
    SHOUTED_SYSTEM,
    STRONG_CODE,
    SYSTEM,
    SYSTEM_TOKEN,
    TABLE_ROW,
    Span,
    is_code,
    is_log,
    is_yaml,
    object_end,
    separator_of,
)
from memguard.conversations.text_lines import split_lines
from memguard.schema.memory import PassageKind

_FENCE = re.compile(r"^\s{0,8}(?:>\s)?(`{3,}|~{3,})")
_QUOTED = re.compile(r"^\s{0,8}>")
_REPL = re.compile(r"^\s{0,8}>>>\s")
_TAG = re.compile(
    r"<(e-?mail|mail|message|document|doc|text|article|quote|quotation|context|data|content|"
    r"transcript|chat|letter|file|page|source|result|output|blockquote)(?:\s[^>\n]{0,80})?>",
    re.IGNORECASE,
)
_TRIPLE = re.compile("\"\"\"|'''")
_OBJECT = re.compile(
    r'^\s{0,40}(?:\[\s{0,4})?\{\s{0,40}(?:"[^"\n]{1,80}"\s{0,4}:|$)|^\s{0,40}\[\s{0,4}["\[{]'
)
_ADDRESS = re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}\.\w")
_SIGNATURE_LINE = re.compile(
    r"^\s{0,8}(?![Ii]\s|I['\u2019]|Ich\s|Je\s|Yo\s|我)[^\s.!?\u3002][^?\u3002\uff1f]{0,70}$"
)
_SENTENCE_IN = re.compile(r"[.!?\u2026][\"\u201d')]?\s+\S|[\u3002\uff01\uff1f]\S")
_COLON = re.compile(r":(?=\s|$)|\uff1a")
_ENDS = tuple(".!?\u3002\uff01\uff1f")
_CLAUSE = 160
"""Characters before a colon that may announce a text."""
_MAX_HEADERS = 14
_MAX_SIGNATURE = 6
_MIN_ROWS = 2
_KEY = re.compile(r"^[a-z][\w-]{0,40}:(?:\s|$)")
_CODE_GAP = 2
"""Lines of prose between two lines of code that are taken for code too, such as comments."""
_MAX_LEADING = 5
"""Lines of comments before the first line of code."""


def find_blocks(text: str, *, speaker: str) -> Iterator[Span]:
    """The blocks of other authors, in order and without overlap.

    Args:
        text: The text of a turn.
        speaker: The speaker's name in lower case; empty if unknown.
    """
    yield from _Scanner(text, speaker).spans()


class _Scanner:
    """One pass over the lines of a text."""

    def __init__(self, text: str, speaker: str) -> None:
        self.text = text
        self.speaker = speaker
        self.lines = split_lines(text)
        count = len(self.lines)
        self.labels = read_labels(self.lines)
        self.headers = [None if line.blank else header_of(line.text) for line in self.lines]
        self.code = [not line.blank and is_code(line.text) for line in self.lines]
        # One entry more than lines: after the last one nothing closes or begins.
        self.closings = [count] * (count + 1)
        self.heads = [count] * (count + 1)
        self.paragraphs = [count] * (count + 1)
        self.texts = [count] * (count + 1)
        for index in range(count - 1, -1, -1):
            line = self.lines[index]
            if line.blank:
                self._mark_blank(index)
                continue
            self.texts[index] = index
            self.closings[index] = index if closes(line.text) else self.closings[index + 1]
            self.heads[index] = index if self._begins(index) else self.heads[index + 1]
            self.paragraphs[index] = self.paragraphs[index + 1]
        self.comments = [
            match.start()
            for match in cues.SENTENCE_START.finditer(text)
            if cues.STRONG_COMMENT.match(text, match.start())
        ]
        self.unclosed: set[str] = set()

    def _mark_blank(self, index: int) -> None:
        """Note that nothing begins or closes at a blank line, and a paragraph ends."""
        for following in (self.texts, self.closings, self.heads):
            following[index] = following[index + 1]
        self.paragraphs[index] = index

    def spans(self) -> Iterator[Span]:
        """The blocks in order."""
        at = 0
        own_from = 0
        while at < len(self.lines):
            spans, at_next = self._block_at(at, own_from)
            if not spans:
                at += 1
                continue
            yield from spans
            end = spans[-1].end
            at = max(at_next, at)
            # A block may end inside a line, and the rest of the line is looked at for no other.
            while at < len(self.lines) and self.lines[at].start < end:
                at += 1
            own_from = at

    def _block_at(self, at: int, own_from: int) -> tuple[list[Span], int]:
        """The passages of the block that begins at a line, and the line after it."""
        if self.lines[at].blank:
            return [], at
        spans, after = self._marked_block_at(at, own_from)
        return (spans, after) if spans else self._announced(at)

    def _marked_block_at(self, at: int, own_from: int) -> tuple[list[Span], int]:
        """As `_block_at`, for a block that the form of its lines shows."""
        line = self.lines[at]
        for find in (self._fence, self._enclosed, self._system, self._quoted, self._mail_head):
            if (span := find(at)) is not None:
                return [span], at + 1
        chat = chat_at(self.labels, at, speaker=self.speaker, announced=False)
        if chat is not None:
            after, spans = chat
            return spans, after
        for find in (self._machine_text, self._letter):
            if (span := find(at)) is not None:
                return [span], at + 1
        if cues.DEVICE.match(line.text) or line.text.rstrip() == "--":
            return [self._signed(at, own_from)], at + 1
        return [], at

    def _begins(self, at: int) -> bool:
        """Whether a block begins at a line that ends an earlier one."""
        text = self.lines[at].text
        if cues.FORWARDED.match(text) or cues.WROTE.match(text):
            return True
        header = self.headers[at]
        if header is not None and header[0] == "from":
            return self._headers(at) is not None
        return self.labels.stamped[at] is not None

    # Blocks with marks of their own

    def _fence(self, at: int) -> Span | None:
        match = _FENCE.match(self.lines[at].text)
        if match is None:
            return None
        mark = match[1][:3]
        for index in range(at + 1, len(self.lines)):
            if self.lines[index].text.lstrip("> ").startswith(mark):
                return Span(self.lines[at].start, self.lines[index].end, "code")
        # Without an end it takes the rest: what follows may be code.
        return Span(self.lines[at].start, len(self.text), "code")

    def _enclosed(self, at: int) -> Span | None:
        """Text between three quotation marks or two tags."""
        line = self.lines[at]
        match = _TRIPLE.search(line.text) or _TAG.search(line.text)
        if match is None:
            return None
        start = line.start + match.start()
        close = match[0] if match[0] in {'"""', "'''"} else f"</{match[1]}>"
        if close in self.unclosed:
            return None
        end = self.text.find(close, line.start + match.end())
        if end < 0 and close.startswith("<"):
            # Not searched for again: a text may open thousands of tags.
            self.unclosed.add(close)
            return None
        end = len(self.text) if end < 0 else end + len(close)
        is_mail = "mail" in close or "letter" in close
        return Span(start, end, "mail" if is_mail else "quotation")

    def _system(self, at: int) -> Span | None:
        line = self.lines[at]
        inside = SYSTEM_TOKEN.search(line.text) or SHOUTED_SYSTEM.search(line.text)
        head = SYSTEM.match(line.text)
        if inside is None and head is None:
            return None
        start = line.start if head is not None else line.start + (inside.start() if inside else 0)
        end = self._end_of_tokens(at) if SYSTEM_TOKEN.search(line.text) else None
        if end is None and line.text.lstrip().startswith("#"):
            return Span(start, self._end_of_text(at + 1, first=line.end), "system")
        return Span(start, end or self.lines[self._last_of_paragraph(at)].end, "system")

    def _end_of_tokens(self, at: int) -> int | None:
        """The end of the last token of a chat template, or of the text that the last one opens."""
        end = None
        for index in range(at, len(self.lines)):
            line = self.lines[index]
            if tokens := list(SYSTEM_TOKEN.finditer(line.text)):
                last = tokens[-1]
                closes = "end" in last[0] or "/" in last[0]
                opened = self.lines[self._last_of_paragraph(index)].end
                end = line.start + last.end() if closes else opened
        return end

    def _quoted(self, at: int) -> Span | None:
        """Lines that begin with `>`, and the line before that says who wrote them."""
        if not _QUOTED.match(self.lines[at].text):
            return None
        kind: PassageKind = "code" if _REPL.match(self.lines[at].text) else "quotation"
        author = ""
        last = index = at
        while index < len(self.lines) and (
            self.lines[index].blank or _QUOTED.match(self.lines[index].text)
        ):
            if not self.lines[index].blank:
                last = index
                header = self.headers[index]
                if header is not None and header[0] == "from":
                    kind, author = "mail", author or name_of(header[1])
            index += 1
        return Span(self.lines[at].start, self.lines[last].end, kind, author)

    # Mails

    def _mail_head(self, at: int) -> Span | None:
        line = self.lines[at]
        mark = cues.FORWARD_MARK.match(line.text)
        wrote = cues.WROTE.match(line.text)
        if wrote is not None:
            quoted = self._next_text(at + 1)
            if quoted is not None and (span := self._quoted(quoted)) is not None:
                return Span(line.start, span.end, "mail", writer_of(line.text) or span.author)
        if mark is not None or wrote is not None or cues.FORWARDED.match(line.text):
            following = self._next_text(at + 1)
            head = None if following is None else self._headers(following)
            inside = line.start + mark.end() if mark is not None else line.end - 1
            if head is None:
                return self._mail(line.start, at + 1, writer_of(line.text), inside)
            return self._mail(line.start, *head)
        head = self._headers(at)
        return None if head is None else self._mail(line.start, *head)

    def _mail(self, start: int, first: int, author: str, begin: int | None = None) -> Span:
        """The mail whose body begins at a line, or at an offset on the line before."""
        if begin is None:
            begin = self.lines[first].start if first < len(self.lines) else len(self.text)
        end = self._end_of_text(first, first=begin)
        return Span(start, end, "mail", author or self._signer(first, end))

    def _headers(self, at: int) -> tuple[int, str] | None:
        """The line after the headers of a mail, and the sender; `None` without headers."""
        roles: set[str] = set()
        author = ""
        address = False
        index = at
        while index < min(len(self.lines), at + _MAX_HEADERS):
            header = self.headers[index]
            if header is None:
                break
            role, value = header
            roles.add(role)
            address = address or bool(_ADDRESS.search(value))
            author = author or (name_of(value) if role == "from" else "")
            index += 1
        is_head = bool(roles & {"subject", "sent", "copy"}) and len(roles) > 1
        is_head = is_head or ("from" in roles and address)
        # "From: Porto", "To: Lisbon" is a journey, and "From: Kim" before a text is not.
        is_head = is_head or (roles == {"from"} and is_name(author) and self._has_text(index))
        is_head = is_head or (roles == {"subject"} and self._has_letter(index))
        return (index, author) if is_head else None

    def _has_text(self, at: int) -> bool:
        return (
            at < len(self.lines)
            and not self.lines[at].blank
            and ":" not in self.lines[at].text[:20]
        )

    def _has_letter(self, at: int) -> bool:
        index = self._next_text(at)
        return index is not None and (
            cues.SALUTATION.match(self.lines[index].text) is not None
            or self.closings[index] < len(self.lines)
        )

    def _letter(self, at: int) -> Span | None:
        """A text between a salutation and a closing, without any other mark."""
        line = self.lines[at]
        greeting = cues.SALUTATION.match(line.text)
        if closes(line.text):
            return None
        if greeting is None:
            closing = cues.LETTER_IN_A_LINE.match(self.text, line.start, line.end)
            return (
                None
                if closing is None
                else Span(line.start, line.end, "mail", name_of(closing["name"]))
            )
        closing = self.closings[at + 1]
        if closing >= min(len(self.lines), self.heads[at + 1]):
            return None
        name = greeting["name"].strip()
        named = bool(name) and name.casefold() not in {"there", "you"}
        formal = closes_formally(self.lines[closing].text)
        if cues.ASSISTANT_NAMES.search(name) or not (greeting["formal"] or named or formal):
            return None
        # A user may write to the assistant as in a letter, and then asks it something.
        if self._comment(line.end, self.lines[closing].start, strong=True) is not None:
            return None
        end = self._after_signature(closing)
        return Span(line.start, end, "mail", self._signer(at, end))

    def _signed(self, at: int, own_from: int) -> Span:
        """The text before a signature that no salutation or header began."""
        first = own_from
        for index in range(at - 1, own_from - 1, -1):
            if _COLON.search(self.lines[index].text[-2:]):
                first = index + 1
                break
        return Span(
            self.lines[first].start,
            self._after_signature(at),
            "mail",
            self._signer(first, self.lines[at].end),
        )

    def _signer(self, first: int, end: int) -> str:
        """The name below the closing of a mail; empty if there is none."""
        closing = self.closings[first] if first < len(self.lines) else len(self.lines)
        if closing >= len(self.lines) or self.lines[closing].start >= end:
            return ""
        match = cues.FORMAL_CLOSING.match(self.lines[closing].text) or cues.PLAIN_CLOSING.match(
            self.lines[closing].text
        )
        name = name_of(match["name"]) if match is not None and match["name"] else ""
        following = self._next_text(closing + 1)
        if following is not None and closes(self.lines[following].text):
            following = self._next_text(following + 1)
        if not name and following is not None and self.lines[following].start < end:
            name = name_of(self.lines[following].text)
        return name if is_name(name) else ""

    def _end_of_text(self, at: int, *, first: int) -> int:
        """Where a pasted text ends that begins at a line; `first` is its first character."""
        if at >= len(self.lines):
            return self._comment(first, len(self.text), strong=True) or len(self.text)
        head = self.heads[at + 1] if at + 1 < len(self.lines) else len(self.lines)
        stop = self.lines[head].start if head < len(self.lines) else len(self.text)
        closing = self.closings[at]
        if closing < head:
            begin = self.lines[closing].start
            comment = self._comment(first, begin, strong=True)
            # "Thanks, Ana" may be the user's own end of a comment, "Kind regards, Karl" is not.
            if comment is not None and not closes_formally(self.lines[closing].text):
                return comment
            return self._after_signature(closing)
        comment = self._comment(first, stop, strong=True)
        if comment is not None:
            return comment
        return self._comment(first, stop, strong=False) or stop

    def _comment(self, start: int, stop: int, *, strong: bool) -> int | None:
        """Where the user's own comment begins in a stretch; `None` if there is none."""
        if strong:
            index = bisect_right(self.comments, start)
            after = self.comments[index] if index < len(self.comments) else stop
            return after if after < stop else None
        # Only a last paragraph: a mail may ask "Can you come?" as well.
        body = self.text[start:stop].rstrip()
        at = max(body.rfind("\n\n"), body.rfind("\n \n"), body.rfind("\n\r\n"))
        if at < 0:
            return None
        at += len(body[at:]) - len(body[at:].lstrip())
        return start + at if cues.WEAK_COMMENT.match(body, at) else None

    def _after_signature(self, closing: int) -> int:
        """The offset after a closing, the lines of its signature, and what mails add below."""
        at = closing + 1
        match = cues.FORMAL_CLOSING.match(self.lines[closing].text)
        named = match is not None and bool(match["name"])
        if at < len(self.lines) and self.lines[at].blank and not named:
            following = self._next_text(at)
            if following is not None and is_name(self.lines[following].text.strip()):
                at = following
        lines = 0
        while at < len(self.lines) and lines < _MAX_SIGNATURE and self._is_signature(at):
            at += 1
            lines += 1
        while (following := self._next_text(at)) is not None and (
            cues.FURNITURE.match(self.lines[following].text)
            or cues.DEVICE.match(self.lines[following].text)
        ):
            at = self._last_of_paragraph(following) + 1
        return self.lines[at - 1].end

    def _is_signature(self, at: int) -> bool:
        text = self.lines[at].text
        return (
            not self.lines[at].blank
            and _SIGNATURE_LINE.match(text) is not None
            and not cues.STRONG_COMMENT.match(text.lstrip())
            and not cues.WEAK_COMMENT.match(text.lstrip())
            and not text.rstrip().endswith((".", "!", ":"))
        )

    # Text that nobody says

    def _machine_text(self, at: int) -> Span | None:
        """A log, a table, an object of JSON or code that no fence encloses."""
        line = self.lines[at]
        if is_log(line.text):
            return Span(
                line.start,
                self._run(at, lambda i: is_log(self.lines[i].text) or self._is_indented(i)),
                "log",
            )
        if _OBJECT.match(line.text):
            return Span(line.start, object_end(self.text, line.start, end=len(self.text)), "code")
        if TABLE_ROW.match(line.text):
            return Span(
                line.start,
                self._run(at, lambda i: TABLE_ROW.match(self.lines[i].text) is not None),
                "table",
            )
        if at + 1 < len(self.lines) and is_yaml(line.text, self.lines[at + 1].text):
            return Span(line.start, self._run(at, self._is_indented_or_key), "code")
        row = separator_of(line.text)
        if row is not None:
            end = self._run(at, lambda i: separator_of(self.lines[i].text) == row)
            if end > line.end:
                return Span(line.start, end, "table")
        return self._code(at)

    def _run(self, at: int, accepts: Callable[[int], bool]) -> int:
        """The end of the adjacent lines from here on that a rule accepts."""
        index = at + 1
        while index < len(self.lines) and not self.lines[index].blank and accepts(index):
            index += 1
        return self.lines[index - 1].end

    def _is_indented(self, at: int) -> bool:
        return self.lines[at].text.startswith(("  ", "\t"))

    def _is_indented_or_key(self, at: int) -> bool:
        return self._is_indented(at) or _KEY.match(self.lines[at].text) is not None

    def _code(self, at: int) -> Span | None:
        """Adjacent lines of code, with the comments and blank lines between them."""
        if not (self.code[at] or COMMENT_LINE.match(self.lines[at].text)):
            return None
        last: int | None = None
        count = gap = 0
        strong = False
        index = at
        while index < len(self.lines) and gap <= _CODE_GAP:
            if last is None and index - at > _MAX_LEADING:
                break
            text = self.lines[index].text
            if self.code[index] or STRONG_CODE.match(text):
                strong = strong or STRONG_CODE.match(text) is not None
                last, count, gap = index, count + 1, 0
            elif COMMENT_LINE.match(text) or self._is_indented(index):
                gap = 0
                last = None if last is None else index
            else:
                gap += 1
            index += 1
        if last is None or (count < _MIN_ROWS and not strong):
            return None
        return Span(self.lines[at].start, self.lines[last].end, "code")

    # Text that a phrase announces

    def _announced(self, at: int) -> tuple[list[Span], int]:
        """The text after a phrase such as "look at this mail:"."""
        line = self.lines[at]
        for match in _COLON.finditer(line.text):
            before = line.text[max(0, match.start() - _CLAUSE) : match.start()]
            kind, author = announcement(cues.CLAUSE_END.split(before)[-1])
            rest = line.text[match.end() :]
            if kind is None or rest[:1].isdigit():
                continue
            if rest.strip():
                span = self._announced_inside(at, line.start + match.end(), kind, author)
            else:
                span, after = self._announced_below(at, kind, author)
                if after is not None:
                    return span, after
            if span:
                return span, at + 1
        return [], at

    def _announced_inside(self, at: int, start: int, kind: str, author: str) -> list[Span]:
        """The text that begins on the line of its announcement."""
        line = self.lines[at]
        if self.text[start : line.end].lstrip()[:1] in set("\"\u201c\u201e\u00ab\u300c\u2018'`"):
            return []
        if kind == "said":
            rest = self.text[start : line.end].strip()
            # One sentence that somebody says is the user's own report of it.
            if rest.endswith(_ENDS) and not _SENTENCE_IN.search(rest):
                return []
            if self._last_of_paragraph(at) == at and not _SENTENCE_IN.search(rest):
                return []
            end = self.lines[self._last_of_paragraph(at)].end
            return [Span(start, self._comment(start, end, strong=True) or end, "quotation", author)]
        if kind == "task":
            end = self.lines[self._last_of_paragraph(at)].end
            return [Span(start, self._comment(start, end, strong=True) or end, "quotation", author)]
        return [Span(start, self._end_of_text(at + 1, first=start), kind_of(kind), author)]

    def _announced_below(self, at: int, kind: str, author: str) -> tuple[list[Span], int | None]:
        """The text that begins on a line after its announcement."""
        first = self._next_text(at + 1)
        if first is None:
            return [], None
        if kind == "transcript":
            chat = chat_at(self.labels, first, speaker=self.speaker, announced=True)
            if chat is not None:
                return chat[1], chat[0]
        # A block with marks of its own knows its end better.
        spans, after = self._marked_block_at(first, first)
        if spans:
            return spans, after
        start = self.lines[first].start
        if kind in {"code", "log", "table"}:
            return [
                Span(start, self.lines[self._last_of_paragraph(first)].end, kind_of(kind), author)
            ], first + 1
        end = self._end_of_text(first, first=start)
        return [Span(start, end, kind_of(kind), author or self._signer(first, end))], first + 1

    # Lines

    def _next_text(self, at: int) -> int | None:
        """The next line that is not blank."""
        following = self.texts[min(at, len(self.lines))]
        return following if following < len(self.lines) else None

    def _last_of_paragraph(self, at: int) -> int:
        return max(at, self.paragraphs[at] - 1)
