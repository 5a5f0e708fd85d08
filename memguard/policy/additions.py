"""What a new version of a text adds to the one before it. Pure."""

from collections.abc import Sequence
from difflib import SequenceMatcher

_MOST_COMPARED = 1_000_000
"""Pairs of lines that are compared; of longer texts all between the first and the last change is
taken for new. Matching lines costs up to their product."""


def added_text(new: str, *, old: str) -> str:
    """The lines of a text that the version before did not have, each under its heading.

    A line that was moved counts as new: it may say something else where it stands now. What was
    only taken out adds nothing, and the result is empty.

    Args:
        new: The new version.
        old: The version before.
    """
    after, before = new.splitlines(), old.splitlines()
    added = [at for at in _added(after, before) if after[at].strip()]
    return "\n".join(after[at] for at in sorted({*added, *_headings(after, added)}))


def _added(after: Sequence[str], before: Sequence[str]) -> list[int]:
    """Places of the lines that are new."""
    start = 0
    while start < min(len(after), len(before)) and after[start] == before[start]:
        start += 1
    end = 0
    while end < min(len(after), len(before)) - start and after[-1 - end] == before[-1 - end]:
        end += 1
    changed, was = after[start : len(after) - end], before[start : len(before) - end]
    if len(changed) * len(was) > _MOST_COMPARED:
        return list(range(start, start + len(changed)))
    steps = SequenceMatcher(None, was, changed, autojunk=False).get_opcodes()
    return [start + at for kind, _, _, i, j in steps if kind != "equal" for at in range(i, j)]


def _headings(lines: Sequence[str], added: Sequence[int]) -> set[int]:
    """Places of the headings that these lines stand under."""
    wanted, found, last = set(added), set[int](), -1
    for at, line in enumerate(lines):
        if at in wanted and last >= 0:
            found.add(last)
        if line.startswith("#"):
            last = at
    return found
