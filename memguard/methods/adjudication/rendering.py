"""Units as text: the lines that an adjudicator judges, and the section that an answer reads.

The section has three renderings of the same verdicts. `channels` heads its groups by the kind of
information, `permission_notes` by what a group may be used for, and `neutral` has no groups (arXiv
2610.11188, section 3.3; the wording is ours). All three show the same lines in the same order, each
with the date on which it was said. Text is quoted, so that a line break in it does not start a line
of ours and a heading in it is not a heading.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Literal

from memguard.quoting import (
    FIXED_SENTENCE,
    SECTION_CLOSE,
    SECTION_OPEN,
    quote,
    quote_time,
    quote_turns,
)
from memguard.schema.memory import SaidBy
from memguard.schema.read import Evidence, Ledger, ReadCase, Rendering, Situation, UnitFinding
from memguard.schema.units import SECTIONS, FactorAttributes, Permission, Unit, UnitAttributes

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

SOURCES: dict[SaidBy, str] = {
    "tool": " by a tool",
    "document": " in a document",
    "assistant": " by the assistant",
}
"""Where words come from that are not the user's."""

NOTHING = "(Nothing that is remembered applies to this request.)"
"""The line of a section to which nothing was admitted, where the setting asks for a line."""

_BYTES_PER_TOKEN = 4
_ROW_TOKENS = 90
"""Approximate tokens of a unit's row in the answer."""

_MARKER = re.compile(r"\[(?=/?[A-Z_]{3,}\])")
"""Role markers that some chat templates write in square brackets, such as `[INST]`."""


def render_memories(
    ledger: Ledger,
    *,
    rendering: Rendering,
    when_empty: Literal["empty", "line"] = "empty",
    authorship: bool = True,
) -> str:
    """The units that the ledger shows, as one section.

    Args:
        ledger: The verdicts; only its `shown` units come into the text.
        rendering: With which headings.
        when_empty: What to render for no units: nothing, or one fixed line.
        authorship: Whether a line says that its words are not the user's.
    """
    verdicts = ledger.shown
    if not verdicts:
        return frame([NOTHING], opening="") if when_empty == "line" else ""
    headings = HEADINGS[rendering]
    situation = ledger.situation
    is_past = isinstance(situation, Situation) and situation.lookup == "past"
    lines: list[str] = []
    # `groupby` needs no sorting: a ledger lists its shown units section by section.
    for permission, group in groupby(verdicts, key=attrgetter("permission")):
        if permission in headings:
            lines.append(headings[permission])
        lines += [
            line_of(
                verdict.unit,
                # Elsewhere such a unit is shown for doubt, which is no news of its end.
                is_over=is_past and is_over(verdict.attributes),
                authorship=authorship,
            )
            for verdict in group
        ]
    return frame(lines)


def render_verbatim(texts: Iterable[str]) -> str:
    """Texts word for word, one after the other, as the paper injects them (section 3.1).

    For experiments only: nothing here tells a memory from an instruction.
    """
    return "\n".join(texts)


def frame(lines: Iterable[str], *, opening: str = FIXED_SENTENCE) -> str:
    """Lines between the tags of memguard's section, below the fixed sentence."""
    # The tags let a later read recognize the section, so that it is not read as dialogue.
    return "\n".join(line for line in (SECTION_OPEN, opening, *lines, SECTION_CLOSE) if line)


def unit_line(text: str, *, said_at: datetime | None, source: str = "", past: str = "") -> str:
    """One unit: `- (said 2025-12-30) "..."`, the date as it was where the speaker was.

    `source` names words that are not the user's: `- (said 2025-12-30 in a document by "Bo", not by
    the user) "..."`. `past` says what no longer holds: `- (said 2025-12-30; no longer so since
    2026-03) "..."`.
    """
    when = f"said {said_at.date().isoformat()}" if said_at else "said at an unknown time"
    return f"- ({when}{source}{past}) {quote_marked(text)}"


def line_of(unit: Unit, *, is_over: bool, authorship: bool = True) -> str:
    """The line of a unit; `is_over` if it no longer holds, which the store may know as well."""
    past = "; no longer so" if is_over or unit.superseded else ""
    if past and unit.valid_until is not None:
        # The day is often a guess, as in "last spring", so the month has to do.
        past += f" since {unit.valid_until.date().isoformat()[:7]}"
    source = source_of(unit) if authorship else ""
    return unit_line(unit.text, said_at=unit.said_at, source=source, past=past)


def is_over(finding: UnitFinding | None) -> bool:
    """Whether an adjudicator found that a unit no longer holds."""
    if isinstance(finding, FactorAttributes):
        return finding.temporal == "superseded"
    return isinstance(finding, UnitAttributes) and finding.temporality == "superseded"


def source_of(unit: Unit) -> str:
    """Whose words a unit has, where they are not the user's; else an empty text."""
    source = SOURCES.get(unit.said_by, "")
    # A name is somebody's text as well, so it is quoted like the rest.
    name = f" by {quote_marked(unit.author)}" if source and unit.author else ""
    return f"{source}{name}, not by the user" if source else ""


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
    # The rendering can be chosen after the limits were applied, so all of them are estimated.
    by_permission = {
        permission: tuple(texts[permission] for texts in HEADINGS.values() if permission in texts)
        for permission in SECTIONS
    }
    return {"frame": (frame([]),), **by_permission}


def estimate_tokens(text: str) -> int:
    """Approximate tokens of a text: one per four bytes of UTF-8, rounded up, without a tokenizer.

    English has about four letters a token; a Chinese character, of three bytes, counts as 0.75.
    """
    # Bytes rather than characters, so that scripts with more tokens per character count as more.
    return -(-len(text.encode()) // _BYTES_PER_TOKEN)


def names_of(units: Sequence[Unit]) -> dict[str, str]:
    """Unit ids by the short names that prompts use for them: `u1`, `u2`, ..."""
    return {f"u{number}": unit.id for number, unit in enumerate(units, start=1)}


def prompt_lines(
    units: Sequence[Unit], *, names: Mapping[str, str], authorship: bool = True
) -> list[str]:
    """One line per unit: `[u3] (memory 2, said Tuesday 2025-12-30 22:40-05:00) "..."`.

    Args:
        units: The units to show.
        names: Unit ids by name, of all units of the read.
        authorship: Whether a line says that its words are not the user's.
    """
    name_by_id = {unit_id: name for name, unit_id in names.items()}
    # Numbers rather than ids: an id tells a model nothing, and costs it tokens.
    memories: dict[str, int] = {}
    lines: list[str] = []
    for unit in units:
        number = memories.setdefault(unit.memory_id, len(memories) + 1)
        when = f"said {quote_time(unit.said_at)}" if unit.said_at else "time unknown"
        if authorship:
            when += source_of(unit)
        if unit.superseded:
            when += ", marked as no longer so"
            when += f" since {quote_time(unit.valid_until)}" if unit.valid_until else ""
        lines.append(f"[{name_by_id[unit.id]}] (memory {number}, {when}) {quote_marked(unit.text)}")
    return lines


def line_costs(lines: Sequence[str]) -> list[int]:
    """Tokens that each unit takes in a call: its line, and its row of the answer."""
    return [estimate_tokens(line) + _ROW_TOKENS for line in lines]


def case_slots(case: ReadCase) -> dict[str, str]:
    """The slots of a prompt that the case fills."""
    return {
        "now": quote_time(case.now) if case.now else "unknown",
        "dialogue": quote_turns(case.dialogue),
        "evidence": "\n".join(_evidence_line(entry) for entry in case.evidence) or "(none)",
        "request": quote_marked(case.query),
    }


def _evidence_line(evidence: Evidence) -> str:
    source = f" from {quote_marked(evidence.source)}" if evidence.source else ""
    when = f", {quote_time(evidence.at)}" if evidence.at else ""
    return f"[evidence{source}{when}] {quote_marked(evidence.text)}"
