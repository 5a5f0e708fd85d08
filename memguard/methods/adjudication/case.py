"""How much goes into one call: tokens estimated, units in parts, evidence clipped."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from memguard.methods.adjudication.relevance import whole_unit
from memguard.methods.adjudication.rendering import quote_marked
from memguard.quoting import quote_time, quote_turns
from memguard.schema.base import is_blank
from memguard.schema.memory import Conversation, same_text_form
from memguard.schema.read import Evidence, ReadCase, ReadSpec, RecalledMemory
from memguard.schema.units import Pieces, Unit

T = TypeVar("T")

_BYTES_PER_TOKEN = 4
_GAP = "\n[... cut ...]\n"


def estimate_tokens(text: str) -> int:
    """Approximate tokens of a text: one per four bytes of UTF-8, rounded up, without a tokenizer.

    English has about four letters a token; a Chinese character, of three bytes, counts as 0.75.
    """
    return -(-len(text.encode()) // _BYTES_PER_TOKEN)


def split_parts(
    items: Sequence[T], *, costs: Sequence[int], max_tokens: int, max_items: int
) -> tuple[tuple[T, ...], ...]:
    """Items in order, in as few parts as the limits allow; an item too large has its own part."""
    parts: list[list[T]] = []
    room = 0
    for item, cost in zip(items, costs, strict=True):
        if not parts or cost > room or len(parts[-1]) >= max_items:
            parts.append([])
            room = max_tokens
        parts[-1].append(item)
        room -= cost
    return tuple(tuple(part) for part in parts)


def clip_evidence(
    evidence: Sequence[Evidence], *, max_chars: int
) -> tuple[tuple[Evidence, ...], bool]:
    """The evidence within a limit, and whether anything was clipped.

    Short texts stay whole. The rest share the remaining room and lose their middle, because
    documents say what they are about at the beginning and what follows from it at the end.
    """
    texts = [entry for entry in evidence if entry.text.strip()]
    room, shares = max_chars, dict[int, int]()
    # The shortest first: what it does not use of its share goes to the longer ones.
    by_length = sorted(range(len(texts)), key=lambda index: len(texts[index].text))
    for number, index in enumerate(by_length):
        shares[index] = min(len(texts[index].text), room // (len(texts) - number))
        room -= shares[index]
    clipped = tuple(_clip(entry, shares[index]) for index, entry in enumerate(texts))
    return clipped, any(len(entry.text) > shares[index] for index, entry in enumerate(texts))


def _clip(evidence: Evidence, share: int) -> Evidence:
    if len(evidence.text) <= share:
        return evidence
    head = max(0, share - len(_GAP)) * 2 // 3
    tail = max(0, share - len(_GAP) - head)
    text = evidence.text[:head] + _GAP + (evidence.text[-tail:] if tail else "")
    return evidence.model_copy(update={"text": text})


ROW_TOKENS = 90
"""Approximate tokens of a unit's row in the answer."""


def make_case(
    query: str,
    *,
    dialogue: Conversation,
    evidence: Sequence[Evidence],
    now: datetime | None,
    spec: ReadSpec,
) -> tuple[ReadCase, bool]:
    """The case within the limits of the spec, and whether evidence was clipped.

    Text that memguard rendered into the conversation is not dialogue, nor are system messages.
    """
    turns = dialogue.evidence[-spec.dialogue_turns :] if spec.dialogue_turns else ()
    entries, clipped = clip_evidence(evidence, max_chars=spec.evidence_chars)
    return ReadCase(query=query, dialogue=turns, evidence=entries, now=now), clipped


def distinct(
    memories: Sequence[RecalledMemory],
) -> tuple[tuple[RecalledMemory, ...], dict[str, tuple[RecalledMemory, ...]]]:
    """The memories with distinct texts and unique ids, and the repeats of each.

    The first of several with the same text represents them, with the latest time at which any of
    them was said. Blank memories are left out.

    Returns:
        The memories in order, and by id the others with the same text.
    """
    named = _with_unique_ids([memory for memory in memories if not is_blank(memory.text)])
    by_text: dict[str, list[RecalledMemory]] = {}
    for memory in named:
        by_text.setdefault(same_text_form(memory.text), []).append(memory)
    firsts: list[RecalledMemory] = []
    repeats: dict[str, tuple[RecalledMemory, ...]] = {}
    for group in by_text.values():
        # A current record represents the group even where a superseded one comes first, because
        # the text is then current.
        first = next((memory for memory in group if not memory.superseded), group[0])
        others = tuple(memory for memory in group if memory is not first)
        times = [memory.said_at for memory in group if memory.said_at is not None]
        if others:
            first = first.model_copy(update={"said_at": max(times, default=None)})
        firsts.append(first)
        repeats[first.id] = others
    return tuple(firsts), repeats


def _with_unique_ids(memories: Sequence[RecalledMemory]) -> list[RecalledMemory]:
    counts: dict[str, int] = {}
    named: list[RecalledMemory] = []
    for memory in memories:
        count = counts[memory.id] = counts.get(memory.id, 0) + 1
        if count > 1:
            memory = memory.model_copy(update={"id": f"{memory.id}~{count}"})  # noqa: PLW2901
        named.append(memory)
    return named


def units_of(memory: RecalledMemory, *, pieces: Pieces | None) -> tuple[Unit, ...]:
    """The units of a memory: its pieces, or the whole of it."""
    if pieces is None or not pieces.pieces:
        return (whole_unit(memory),)
    return tuple(
        Unit(
            id=f"{memory.id}.{number}",
            memory_id=memory.id,
            text=piece.text,
            kind=piece.kind,
            start=piece.start,
            end=piece.end,
            said_at=memory.said_at,
            score=memory.score,
            superseded=memory.superseded,
        )
        for number, piece in enumerate(pieces.pieces, start=1)
    )


def names_of(units: Sequence[Unit]) -> dict[str, str]:
    """Unit ids by the short names that prompts use for them: `u1`, `u2`, ..."""
    return {f"u{number}": unit.id for number, unit in enumerate(units, start=1)}


def unit_lines(units: Sequence[Unit], *, names: Mapping[str, str]) -> list[str]:
    """One line per unit: `[u3] (memory 2, said Tuesday 2025-12-30 22:40-05:00) "..."`.

    Args:
        units: The units to show.
        names: Unit ids by name, of all units of the read.
    """
    name_by_id = {unit_id: name for name, unit_id in names.items()}
    memories: dict[str, int] = {}
    lines: list[str] = []
    for unit in units:
        number = memories.setdefault(unit.memory_id, len(memories) + 1)
        when = f"said {quote_time(unit.said_at)}" if unit.said_at else "time unknown"
        lines.append(f"[{name_by_id[unit.id]}] (memory {number}, {when}) {quote_marked(unit.text)}")
    return lines


def line_costs(lines: Sequence[str]) -> list[int]:
    """Tokens that each unit takes in a call: its line, and its row of the answer."""
    return [estimate_tokens(line) + ROW_TOKENS for line in lines]


def case_slots(case: ReadCase) -> dict[str, str]:
    """The slots of a prompt that the case fills."""
    return {
        "now": quote_time(case.now if case.now.tzinfo else case.now.replace(tzinfo=UTC))
        if case.now
        else "unknown",
        "dialogue": quote_turns(case.dialogue),
        "evidence": "\n".join(_evidence_line(entry) for entry in case.evidence) or "(none)",
        "request": quote_marked(case.query),
    }


def _evidence_line(evidence: Evidence) -> str:
    source = f" from {quote_marked(evidence.source)}" if evidence.source else ""
    when = f", {quote_time(evidence.at)}" if evidence.at else ""
    return f"[evidence{source}{when}] {quote_marked(evidence.text)}"
