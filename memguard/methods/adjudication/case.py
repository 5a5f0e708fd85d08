"""The case that an adjudicator sees: query, dialogue and evidence within the limits of a spec."""

from collections.abc import Sequence
from datetime import datetime

from memguard.schema.memory import Conversation
from memguard.schema.read import Evidence, ReadCase, ReadSpec

_GAP = "\n[... cut ...]\n"


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
