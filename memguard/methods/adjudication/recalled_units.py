"""From recalled memories to the units that are judged: pieces, repeats, and instructions."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from memguard.instructions import find_instruction
from memguard.local.pieces import looks_like_safety, whole, with_span
from memguard.local.statements import split_sentences
from memguard.methods.adjudication.clusters import has_read_tables, representatives
from memguard.methods.adjudication.marks import is_past, store_marks
from memguard.schema.base import is_blank
from memguard.schema.memory import same_text_form
from memguard.schema.read import ReadSpec, RecalledMemory
from memguard.schema.relevance_gate import RelevanceGate
from memguard.schema.units import Instruction, Piece, Pieces, Unit

_MAX_COMPARED_INLINE = 40
"""Memories that are compared on the event loop, in about 20 ms."""
_MAX_SCANNED_INLINE = 10_000
"""Characters that are scanned for instructions on the event loop, in about 30 ms."""


async def instructions_in(
    memories: Sequence[RecalledMemory], *, spec: ReadSpec | RelevanceGate
) -> dict[str, Instruction]:
    """What memories demand of the assistant, by text; nothing where the spec does not ask."""
    texts = {memory.text for memory in memories} if spec.withhold_instructions else set[str]()
    # Long texts are scanned in a thread, so that they do not block the event loop.
    if sum(map(len, texts)) > _MAX_SCANNED_INLINE:
        return await asyncio.to_thread(_find_instructions, texts)
    return _find_instructions(texts)


def _find_instructions(texts: Iterable[str]) -> dict[str, Instruction]:
    instructions: dict[str, Instruction] = {}
    for text in texts:
        if (instruction := find_instruction(text)) is not None:
            instructions[text] = instruction
    return instructions


async def once_each(
    memories: Sequence[RecalledMemory], *, paraphrases: bool
) -> tuple[RecalledMemory, ...]:
    """The memories that are judged: one of each text, and with `paraphrases` of each statement."""
    firsts, _ = distinct(memories)
    if not paraphrases:
        return firsts
    if _may_block(firsts):
        return (await asyncio.to_thread(representatives, firsts))[0]
    return representatives(firsts)[0]


async def units_in_read(
    memories: Sequence[RecalledMemory],
    *,
    instructions: Mapping[str, Instruction],
    pieces: Mapping[str, Pieces] | None = None,
    paraphrases: bool = False,
) -> dict[str, Any]:
    """As `units_with_repeats`, without blocking the event loop."""
    work = partial(
        units_with_repeats,
        memories,
        instructions=instructions,
        pieces=pieces,
        paraphrases=paraphrases,
    )
    return await asyncio.to_thread(work) if paraphrases and _may_block(memories) else work()


def _may_block(memories: Sequence[RecalledMemory]) -> bool:
    # Half a millisecond for a new memory, and once the tables of words are read.
    return not has_read_tables() or len(memories) > _MAX_COMPARED_INLINE


def units_with_repeats(
    memories: Sequence[RecalledMemory],
    *,
    instructions: Mapping[str, Instruction],
    pieces: Mapping[str, Pieces] | None = None,
    paraphrases: bool = False,
) -> dict[str, Any]:
    """The units of the memories, and those of their repeats, as values of the state.

    Args:
        memories: What was recalled.
        instructions: What memories demand of the assistant, by text.
        paraphrases: Whether memories that say the same in other words are repeats as well.
        pieces: What each memory was split into, by its id; a memory without is whole.
    """
    texts, repeats = distinct(memories)
    firsts, reworded = representatives(texts) if paraphrases else (texts, {})
    units: list[Unit] = []
    copies: dict[str, tuple[Unit, ...]] = {}
    for memory in firsts:
        split = pieces.get(memory.id) if pieces else None
        instruction = instructions.get(memory.text)
        memory_units = units_of(memory, pieces=split, instruction=instruction)
        units += memory_units
        # A repeat has the same text, so it splits in the same places: unit n of one is unit n of
        # the other.
        repeat_units = [
            units_of(copy, pieces=split, instruction=instruction) for copy in repeats[memory.id]
        ]
        for number, unit in enumerate(memory_units):
            copies[unit.id] = tuple(other[number] for other in repeat_units)
        # A memory in other words splits in other places, so it is whole, and stands for itself.
        copies[memory_units[0].id] += tuple(
            units_of(copy)[0]
            for other in reworded.get(memory.id, ())
            for copy in (other, *repeats[other.id])
        )
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
    # Copies are judged once: to judge a text twice would cost tokens and could give two verdicts.
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


def units_of(
    memory: RecalledMemory, *, pieces: Pieces | None = None, instruction: Instruction | None = None
) -> tuple[Unit, ...]:
    """The units of a memory: its pieces, or the whole of it.

    A memory with an instruction is one unit, which is withheld. Whoever wrote the instruction may
    have written the rest as well, so only sentences about safety become units in addition.
    """
    split = (pieces.pieces if pieces else ()) or whole(memory.text).pieces
    if instruction is not None:
        split = (*whole(memory.text).pieces, *safety_sentences(memory.text))
    return tuple(
        Unit(
            id=f"{memory.id}.{number}",
            memory_id=memory.id,
            text=piece.text,
            kind=piece.kind,
            start=piece.start,
            end=piece.end,
            instruction=instruction if number == 1 else None,
            **store_marks(memory),
        )
        for number, piece in enumerate(split, start=1)
    )


def safety_sentences(text: str) -> tuple[Piece, ...]:
    """The sentences about safety that contain no instruction themselves."""
    sentences = (
        sentence
        for sentence in split_sentences(text)
        if looks_like_safety(sentence) and find_instruction(sentence) is None
    )
    return tuple(with_span(Piece(text=one, kind="safety"), source=text) for one in sentences)


def units_to_judge(units: Sequence[Unit], *, past: bool = False) -> list[Unit]:
    """The units on which a verdict can have an effect; what is settled would only cost tokens.

    Args:
        units: All units.
        past: Whether the read may be about the past, so that what no longer holds is judged too.
    """
    # An instruction is not shown to the adjudicator either, which it may address as well.
    return [
        unit
        for unit in units
        if unit.instruction is None and (not unit.superseded or (past and is_past(unit)))
    ]
