"""From facts as a model wrote them to candidates with a source. Pure.

Who said something is read off the turns, never off the model's words.
"""

from collections.abc import Sequence

from memguard.methods.writer.state import ExtractedFact, Pass
from memguard.rendering.quote import named_turns
from memguard.schema.base import is_blank
from memguard.schema.memory import CandidateMemory, speaker_roles, turn_time


def attribute_facts(
    facts: Sequence[ExtractedFact], *, chunk: Pass, conversation_id: str
) -> tuple[tuple[CandidateMemory, ...], tuple[str, ...]]:
    """Make candidates of the facts of one pass.

    Args:
        facts: As the model wrote them; turns are named by the numbers it was shown.
        chunk: The turns it was shown, numbered from 1 over earlier and new ones.
        conversation_id: The conversation they are from.

    Returns:
        The candidates in order, and notes on facts that were left out: blank ones, and those that
        rest on earlier turns alone, which an earlier pass has read.
    """
    candidates: list[CandidateMemory] = []
    blank = stale = 0
    for fact in facts:
        candidate = _candidate(fact, chunk=chunk, conversation_id=conversation_id)
        if is_blank(candidate.text):
            blank += 1
        elif candidate.turn_ids and not _rests_on_new(candidate, chunk):
            stale += 1
        else:
            candidates.append(candidate)
    notes = (
        f"{blank} blank facts left out" if blank else "",
        f"{stale} facts left out that rest on earlier turns alone" if stale else "",
    )
    return tuple(candidates), tuple(note for note in notes if note)


def _candidate(fact: ExtractedFact, *, chunk: Pass, conversation_id: str) -> CandidateMemory:
    turns = (*chunk.earlier, *chunk.new)
    turn_ids = named_turns([str(number).strip("[] ") for number in fact.turns], turns)
    sources = tuple(turn for turn in turns if turn.id in turn_ids)
    return CandidateMemory(
        text=fact.text.strip(),
        turn_ids=turn_ids,
        subject=fact.about,
        said_by=speaker_roles(sources),
        said_at=turn_time(sources),
        conversation_id=conversation_id,
    )


def _rests_on_new(candidate: CandidateMemory, chunk: Pass) -> bool:
    new_ids = {turn.id for turn in chunk.new}
    return any(turn_id in new_ids for turn_id in candidate.turn_ids)
