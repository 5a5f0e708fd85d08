"""Admitted units as the section of a prompt: three renderings of the same verdicts.

`channels` heads its sections by the kind of information, `permission_notes` by what a section may
be used for, `neutral` has no sections (arXiv 2610.11188, section 3.3; the wording is ours). All
three show the same lines in the same order, each with the date on which it was said. Text is
quoted, so that a line break in it starts no line of ours and a heading in it is not a heading.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Literal

from memguard.quoting import FIXED_SENTENCE, SECTION_CLOSE, SECTION_OPEN, quote
from memguard.schema.ledger import Ledger, UnitVerdict
from memguard.schema.read import Rendering
from memguard.schema.units import SECTIONS, Permission

CHANNEL_HEADINGS: dict[Permission, str] = {
    "APPLY_CONSTRAINT": "## Constraints: the answer keeps to these",
    "PERSONALIZE": "## Preferences and experience: for choosing and wording the answer",
    "MENTION_VIEW": "## Views of the user: opinions, to be named as such and not adopted",
    "CONTEXT": "## Supporting information: background for the answer",
    "CONTEXT_UNCERTAIN": "## Uncertain information: may be wrong or out of date",
}
"""CH: the kind of information, and its use."""

PERMISSION_HEADINGS: dict[Permission, str] = {
    "APPLY_CONSTRAINT": "## Keep to the following in this answer",
    "PERSONALIZE": "## You may fit this answer to the following",
    "MENTION_VIEW": "## You may mention the following as the user's view, without agreeing to it",
    "CONTEXT": "## You may draw on the following as background",
    "CONTEXT_UNCERTAIN": "## Do not rely on the following; it may be wrong or out of date",
}
"""PN: what the section may be used for in this answer."""

HEADINGS: dict[Rendering, Mapping[Permission, str]] = {
    "channels": CHANNEL_HEADINGS,
    "permission_notes": PERMISSION_HEADINGS,
    "neutral": {},
}
"""The headings of each rendering."""

NOTHING = "(Nothing that is remembered applies to this request.)"
"""The line of a section to which nothing was admitted, where the setting asks for a line."""

_MARKER = re.compile(r"\[(?=/?[A-Z_]{3,}\])")
"""Role markers that some chat templates write in square brackets, such as `[INST]`."""


def render_memories(
    ledger: Ledger, *, rendering: Rendering, when_empty: Literal["empty", "line"] = "empty"
) -> str:
    """The units that the ledger shows, as one section.

    Args:
        ledger: The verdicts; only its `shown` units come into the text.
        rendering: With which headings.
        when_empty: What to render for no units: nothing, or one fixed line.
    """
    return render_verdicts(ledger.shown, rendering=rendering, when_empty=when_empty)


def render_verdicts(
    verdicts: Sequence[UnitVerdict],
    *,
    rendering: Rendering,
    when_empty: Literal["empty", "line"] = "empty",
) -> str:
    """Units in the order of the sequence, under the headings of their permissions."""
    if not verdicts:
        return frame([NOTHING], opening="") if when_empty == "line" else ""
    headings = HEADINGS[rendering]
    lines: list[str] = []
    # `groupby` needs no sorting: a ledger lists its shown units section by section.
    for permission, group in groupby(verdicts, key=_permission):
        if permission in headings:
            lines.append(headings[permission])
        lines += [unit_line(verdict.unit.text, said_at=verdict.unit.said_at) for verdict in group]
    return frame(lines)


def _permission(verdict: UnitVerdict) -> Permission:
    return verdict.permission


def frame(lines: Iterable[str], *, opening: str = FIXED_SENTENCE) -> str:
    """Lines between the tags of memguard's section, below the fixed sentence."""
    return "\n".join(line for line in (SECTION_OPEN, opening, *lines, SECTION_CLOSE) if line)


def unit_line(text: str, *, said_at: datetime | None) -> str:
    """One unit: `- (said 2025-12-30) "..."`, the date as it was where the speaker was."""
    when = f"said {said_at.date().isoformat()}" if said_at else "said at an unknown time"
    return f"- ({when}) {quote_marked(text)}"


def quote_marked(text: str) -> str:
    """Text as a JSON string in which every angle bracket and role marker is escaped."""
    quoted = quote(text)
    # The search for a bracket is cheaper than the expression, and most texts have none.
    return _MARKER.sub(r"\\u005b", quoted) if "[" in quoted else quoted


def frame_texts() -> dict[str, tuple[str, ...]]:
    """The text of a section around its lines, over all renderings, for estimating its size.

    Returns:
        `frame` for the tags with the sentence, and by permission its headings.
    """
    texts: dict[str, tuple[str, ...]] = {"frame": (frame([]),)}
    for permission in SECTIONS:
        texts[permission] = tuple(
            headings[permission] for headings in HEADINGS.values() if permission in headings
        )
    return texts
