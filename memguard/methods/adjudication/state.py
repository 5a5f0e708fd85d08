"""What goes into a read-time method, what comes out, and what passes from node to node.

Also what is derived from the input before anything is judged: the case that an adjudicator sees,
with its evidence clipped to the limits, and the units of the memories.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from memguard.conversations.messages import AnyConversation
from memguard.local.pieces import whole
from memguard.schema.base import Text, is_blank
from memguard.schema.ledger import (
    Adjudication,
    Decomposition,
    Flag,
    Ledger,
    ReadReport,
    UnitVerdict,
)
from memguard.schema.memory import Conversation, Moment, same_text_form
from memguard.schema.read import Evidence, ReadCase, ReadSpec, RecalledMemory
from memguard.schema.units import Pieces, Unit

_GAP = "\n[... cut ...]\n"


def _evidence(value: Any) -> Any:
    """Accept plain texts and LangChain documents too, and a single entry as a list of one."""
    if value is None:
        return ()
    # By attribute, so that a document of any library that imitates LangChain's is accepted.
    if isinstance(value, str | Mapping | Evidence) or hasattr(value, "page_content"):
        return (_one_evidence(value),)
    return tuple(_one_evidence(entry) for entry in value)


def _one_evidence(entry: Any) -> Any:
    if isinstance(entry, str):
        return {"text": entry}
    if hasattr(entry, "page_content"):
        metadata: Mapping[str, Any] = getattr(entry, "metadata", None) or {}
        return {"text": entry.page_content, "source": str(metadata.get("source", ""))}
    return entry


Evidences = Annotated[tuple[Evidence, ...], BeforeValidator(_evidence)]
"""Accepts evidence, plain texts, LangChain documents, the JSON of evidence, or one of these."""


class ReadInput(BaseModel):
    """A query, and the memories recalled for it."""

    query: Text = Field(
        description="What is asked now.", examples=["A restaurant for my birthday, please."]
    )
    memories: tuple[RecalledMemory, ...] = Field(
        default=(),
        description="The recalled memories, nearest first; plain texts are accepted.",
        examples=[["The user is vegetarian.", "The user lives in Porto."]],
    )
    dialogue: AnyConversation = Field(
        default_factory=Conversation,
        description="The turns before the query: a text, chat messages, or a conversation.",
    )
    evidence: Evidences = Field(
        default=(),
        description="Text that came with the query: tool output, search results, documents.",
        examples=[["The restaurant is closed on Mondays."]],
    )
    now: Moment = Field(
        default=None, description="When it is asked; the clock's time when left out."
    )
    run_id: str = Field(default="", description="The run it belongs to; a new id when empty.")


class ReadOutput(BaseModel):
    """What may enter the prompt, and why the rest may not."""

    memory_context: str = Field(description="The section for the prompt; empty for nothing.")
    admitted: tuple[UnitVerdict, ...] = Field(description="The units in it, in their order.")
    withheld: tuple[UnitVerdict, ...] = Field(description="The units left out, with the reason.")
    ledger: Ledger = Field(description="Every verdict; other renderings are made of it.")
    report: ReadReport = Field(description="The receipt of the read.")


class ReadState(ReadInput):
    """What passes from node to node."""

    case: ReadCase | None = None
    """Query, dialogue and evidence as the adjudicator sees them."""
    units: tuple[Unit, ...] = ()
    """What is judged."""
    repeats: dict[str, tuple[Unit, ...]] = {}
    """Units of memories with the same text as another, by the unit that represents them."""
    decomposition: Decomposition | None = None
    """The units that were split in this read; `None` when none had to be."""
    decomposed: int = 0
    """Memories decomposed in this read."""
    cached: int = 0
    """Memories whose units were cached."""
    seconds: float = 0.0
    """Seconds that the model calls have taken."""
    adjudication: Adjudication | None = None
    """The verdicts."""
    ledger: Ledger | None = None
    """The rulings."""
    flags: tuple[Flag, ...] = ()
    """What a reader of the report must not overlook."""
    notes: tuple[str, ...] = ()
    """What else a reader should know."""
    memory_context: str = ""
    """The section for the prompt."""
    admitted: tuple[UnitVerdict, ...] = ()
    withheld: tuple[UnitVerdict, ...] = ()
    report: ReadReport | None = None


def create_case(
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
    # `[-0:]` would be all turns.
    turns = dialogue.evidence[-spec.dialogue_turns :] if spec.dialogue_turns else ()
    entries, clipped = clip_evidence(evidence, max_chars=spec.evidence_chars)
    return ReadCase(query=query, dialogue=turns, evidence=entries, now=now), clipped


def units_with_repeats(
    memories: Sequence[RecalledMemory], *, pieces: Mapping[str, Pieces] | None = None
) -> dict[str, Any]:
    """The units of the memories, and those of their repeats, as values of the state.

    Args:
        memories: What was recalled.
        pieces: What each memory was split into, by its id; a memory without is whole.
    """
    firsts, repeats = distinct(memories)
    units: list[Unit] = []
    copies: dict[str, tuple[Unit, ...]] = {}
    for memory in firsts:
        split = pieces.get(memory.id) if pieces else None
        memory_units = units_of(memory, pieces=split)
        units += memory_units
        # A repeat has the same text, so it splits in the same places: unit n of one is unit n of
        # the other.
        repeat_units = [units_of(copy, pieces=split) for copy in repeats[memory.id]]
        for number, unit in enumerate(memory_units):
            copies[unit.id] = tuple(other[number] for other in repeat_units)
    return {"units": tuple(units), "repeats": {k: v for k, v in copies.items() if v}}


def distinct(
    memories: Sequence[RecalledMemory],
) -> tuple[tuple[RecalledMemory, ...], dict[str, tuple[RecalledMemory, ...]]]:
    """The memories with distinct texts and unique ids, and the repeats of each.

    The first of several with the same text represents them, with the latest time at which any of
    them was said. Blank memories are left out.

    Returns:
        The memories in order, and by id the others with the same text.
    """
    by_text: dict[str, list[RecalledMemory]] = {}
    for memory in _with_unique_ids([m for m in memories if not is_blank(m.text)]):
        by_text.setdefault(same_text_form(memory.text), []).append(memory)
    # Copies are judged once: repeat_units text would cost tokens and could get different verdicts.
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
    # Verdicts are matched to memories by id, so two of one id would share theirs.
    counts: dict[str, int] = {}
    unique: list[RecalledMemory] = []
    for memory in memories:
        count = counts[memory.id] = counts.get(memory.id, 0) + 1
        name = memory.id if count == 1 else f"{memory.id}~{count}"
        unique.append(memory.model_copy(update={"id": name}))
    return unique


def units_of(memory: RecalledMemory, *, pieces: Pieces | None = None) -> tuple[Unit, ...]:
    """The units of a memory: its pieces, or the whole of it."""
    split = pieces if pieces and pieces.pieces else whole(memory.text)
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
        for number, piece in enumerate(split.pieces, start=1)
    )


def clip_evidence(
    evidence: Sequence[Evidence], *, max_chars: int
) -> tuple[tuple[Evidence, ...], bool]:
    """The evidence within a limit, and whether anything was clipped.

    Short texts stay whole. The rest share the remaining room and lose their middle, because
    documents say what they are about at the beginning and what follows from it at the end.
    """
    entries = [entry for entry in evidence if entry.text.strip()]
    room, shares = max_chars, dict[int, int]()
    # The shortest first: what it does not use of its share goes to the longer ones.
    by_length = sorted(range(len(entries)), key=lambda index: len(entries[index].text))
    for number, index in enumerate(by_length):
        shares[index] = min(len(entries[index].text), room // (len(entries) - number))
        room -= shares[index]
    clipped = tuple(_clip(entry, shares[index]) for index, entry in enumerate(entries))
    return clipped, any(len(entry.text) > shares[index] for index, entry in enumerate(entries))


def _clip(evidence: Evidence, share: int) -> Evidence:
    if len(evidence.text) <= share:
        return evidence
    # Two thirds for the beginning, where a document says what it is about.
    head = max(0, share - len(_GAP)) * 2 // 3
    tail = max(0, share - len(_GAP) - head)
    text = evidence.text[:head] + _GAP + (evidence.text[-tail:] if tail else "")
    return evidence.model_copy(update={"text": text})
