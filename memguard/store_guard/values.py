"""The text of a value: what a write to a guarded store adds, as the judge sees it.

All text is judged: the text field (`content`, `text` or `memory`, or the lines of a file), and each
text in any other field, as a line with the name of the field. A number, a truth value, a date, or
one run of printable ASCII characters, such as an id or a tag, is no text. It is stored unjudged,
and the receipt has it.

What is stored under the key already is not judged again. Of a text of several lines, only what a
new version adds is judged; `added_text` finds it.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from difflib import SequenceMatcher
from typing import Any, cast

from memguard.read.recall import text_of
from memguard.schema.base import is_blank

_MAX_COMPARED_PAIRS = 1_000_000
"""Limit of the pairs of lines that are compared, because matching lines takes up to their product.
Of longer texts, everything between the first and the last change counts as new."""


_LABEL = re.compile(r"[!-~]{0,128}")
"""One run of printable ASCII characters; anything longer may be a text without spaces."""


def judged_text(value: Mapping[str, Any], *, old: Mapping[str, Any] | None) -> str:
    """The text that a value adds to what is stored under its key.

    Args:
        value: The value.
        old: The value that is stored now; `None` if there is none.
    """
    text = memory_text(value)
    fields = _field_texts(value, text=text)
    if old is not None:
        if "\n" in text.strip():
            text = added_text(text, old=memory_text(old))
        known = set(_field_texts(old, text=memory_text(old)))
        fields = [line for line in fields if line not in known]
    return "\n".join([text, *fields] if fields else [text])


def adds_to_item(value: Mapping[str, Any]) -> bool:
    """Whether the judged text depends on what is stored under the key."""
    text = memory_text(value)
    return "\n" in text.strip() or bool(_field_texts(value, text=text))


def _field_texts(value: Mapping[str, Any], *, text: str) -> list[str]:
    """A line for each text that is not in the memory's own text."""
    return [
        f"{path}: {entry}"
        for path, entry in _strings(value, path="")
        if entry not in text and json.dumps(entry, ensure_ascii=False)[1:-1] not in text
    ]


def _strings(value: Any, *, path: str) -> Iterator[tuple[str, str]]:
    """The texts in a value and their paths; a key of several words is a text, too."""
    if isinstance(value, str):
        if not _is_label(value):
            yield path, value
    elif isinstance(value, Mapping):
        for key, entry in cast("Mapping[Any, Any]", value).items():
            if isinstance(key, str) and not _is_label(key):
                yield path or "$", f"{key}: {entry}"
            yield from _strings(entry, path=f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for entry in cast("Sequence[Any]", value):
            yield from _strings(entry, path=path)


def _is_label(text: str) -> bool:
    if is_blank(text) or _LABEL.fullmatch(text.strip()):
        return True
    try:
        datetime.fromisoformat(text.strip())
    except ValueError:
        return False
    return True


def memory_text(value: Mapping[str, Any]) -> str:
    """The text of a value of memguard, langmem, deepagents, or of your own `put`.

    A text field (`content`, `text` or `memory`), or the lines of a file as one text, else the value
    as JSON. Empty for an empty value.
    """
    lines = value.get("content")
    if isinstance(lines, list) and all(isinstance(line, str) for line in cast("list[Any]", lines)):
        return "\n".join(cast("list[str]", lines))
    text = text_of(value)
    if is_blank(text) and any(entry not in (None, "", [], {}) for entry in value.values()):
        return json.dumps(value, ensure_ascii=False, default=str)
    return text


def is_encoded(value: Mapping[str, Any]) -> bool:
    """Whether the value is a binary file, as deepagents stores an image."""
    return value.get("encoding") == "base64"


def added_text(new: str, *, old: str) -> str:
    """The lines of a text that the previous version did not have, each under its heading.

    A line that was moved counts as new, because it may have another meaning in its new context.
    Deletions add nothing; if there is nothing else, the result is empty.

    Args:
        new: The new version.
        old: The previous version.
    """
    after, before = new.splitlines(), old.splitlines()
    added = [index for index in _added_lines(after, before) if after[index].strip()]
    return "\n".join(after[index] for index in sorted({*added, *_headings(after, added)}))


def _added_lines(after: Sequence[str], before: Sequence[str]) -> list[int]:
    """Indexes of the lines that are new."""
    # Equal beginnings and ends are skipped first: most changes are small, and files are long.
    start = 0
    while start < min(len(after), len(before)) and after[start] == before[start]:
        start += 1
    end = 0
    while end < min(len(after), len(before)) - start and after[-1 - end] == before[-1 - end]:
        end += 1
    changed, replaced = after[start : len(after) - end], before[start : len(before) - end]
    if len(changed) * len(replaced) > _MAX_COMPARED_PAIRS:
        return list(range(start, start + len(changed)))
    # Without `autojunk`, which ignores frequent lines: a repeated line may be new.
    steps = SequenceMatcher(None, replaced, changed, autojunk=False).get_opcodes()
    return [start + line for kind, _, _, i, j in steps if kind != "equal" for line in range(i, j)]


def _headings(lines: Sequence[str], added: Sequence[int]) -> set[int]:
    """Indexes of the nearest headings above these lines."""
    new, headings, latest = set(added), set[int](), -1
    for index, line in enumerate(lines):
        if index in new and latest >= 0:
            headings.add(latest)
        if line.startswith("#"):
            latest = index
    return headings
