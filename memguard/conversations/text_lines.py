"""The lines of a text with their offsets. Pure."""

from typing import NamedTuple

_CLIP = 400
"""Characters of a line from which its form is read."""


class Line(NamedTuple):
    """A line of a text."""

    start: int
    """Offset of its first character."""
    end: int
    """Offset after its line break."""
    text: str
    """Its beginning, without the line break; as long as any form needs."""

    blank: bool
    """Whether nothing is visible on it."""


def split_lines(text: str) -> list[Line]:
    """The lines of a text; joined, their stretches are the text."""
    lines: list[Line] = []
    start = 0
    while start < len(text):
        stop = text.find("\n", start)
        end = len(text) if stop < 0 else stop + 1
        form = text[start : min(end, start + _CLIP)].rstrip("\r\n")
        lines.append(Line(start, end, form, not form.strip()))
        start = end
    return lines
