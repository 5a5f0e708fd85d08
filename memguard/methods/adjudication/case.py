"""The case that an adjudicator sees: query, dialogue and evidence within the limits of a spec."""

from collections.abc import Sequence
from datetime import datetime

from memguard.methods.adjudication.parts import clip_middle, clip_quoted
from memguard.methods.adjudication.rendering import case_slots
from memguard.quoting import quote_turn
from memguard.schema.memory import Conversation, Turn
from memguard.schema.read import Evidence, ReadCase, ReadSpec
from memguard.schema.read_flags import Flag

INSTRUCTION_CHARS = 8_000
"""Characters of a prompt that are left for its instructions, which say what to judge and how."""
UNITS_SHARE = 0.4
"""Share of a prompt that units may take before the case is shortened for them."""
_MIN_CASE_CHARS = 1_000
_MAX_ESCAPED = 6
"""Characters that quoting makes of one, at most."""
_LINE_CHARS = 60
"""Characters of a quoted line in addition to its text, at most."""
_QUERY_SHARE = 0.2
_DIALOGUE_SHARE = 0.3
"""Of the room for the case; the rest is for evidence."""


def create_case(
    query: str,
    *,
    dialogue: Conversation,
    evidence: Sequence[Evidence],
    now: datetime | None,
    spec: ReadSpec,
    unit_chars: int = 0,
) -> tuple[ReadCase, tuple[Flag, ...]]:
    """The case within the limits of the spec, and flags that say what was shortened.

    Text that memguard rendered into the conversation is not dialogue, nor are system messages.

    Args:
        query: What is asked.
        dialogue: The turns before it.
        evidence: Text that came with it.
        now: When it is asked.
        spec: The limits.
        unit_chars: Characters that the units of the read take in prompts, about.
    """
    # `[-0:]` would be all turns.
    turns = dialogue.evidence[-spec.dialogue_turns :] if spec.dialogue_turns else ()
    entries, clipped = clip_evidence(evidence, max_chars=spec.evidence_chars)
    case = ReadCase(query=query, dialogue=turns, evidence=entries, now=now)
    flags: tuple[Flag, ...] = ("evidence_cut",) if clipped else ()
    for_units = min(unit_chars, int(UNITS_SHARE * spec.prompt_chars))
    free = max(_MIN_CASE_CHARS, spec.prompt_chars - INSTRUCTION_CHARS - for_units)
    fitted, more = fit_case(case, max_chars=free)
    return fitted, tuple(dict.fromkeys((*flags, *more)))


def case_chars(case: ReadCase) -> int:
    """Characters that a case takes in a prompt."""
    return sum(map(len, case_slots(case).values()))


def fit_case(case: ReadCase, *, max_chars: int) -> tuple[ReadCase, tuple[Flag, ...]]:
    """The case in at most this many characters of a prompt, and flags that say what was shortened.

    A case that fits stays as it is. Otherwise a long query loses its middle, the dialogue its
    oldest turns, and evidence gets the rest of the room, in that order.
    """
    # Most cases are short, and need not be written out to know it.
    if _max_quoted(case) <= max_chars or case_chars(case) <= max_chars:
        return case, ()
    flags: list[Flag] = []
    query = _fit_text(case.query, max_chars=int(_QUERY_SHARE * max_chars))
    turns = _fit_turns(case.dialogue, max_chars=int(_DIALOGUE_SHARE * max_chars))
    if query != case.query or turns != case.dialogue:
        flags.append("prompt_shortened")
    fitted = case.model_copy(update={"query": query, "dialogue": turns})
    entries, room = case.evidence, sum(len(entry.text) for entry in case.evidence)
    # Quotation marks, sources and escapes take room as well, so the share is found by measuring.
    while (excess := case_chars(fitted) - max_chars) > 0 and room > 0:
        room = max(0, room - max(excess, room // 20))
        entries, _ = clip_evidence(case.evidence, max_chars=room)
        fitted = fitted.model_copy(update={"evidence": entries if room else ()})
    if fitted.evidence != case.evidence:
        flags.append("evidence_cut")
    return fitted, tuple(flags)


def _max_quoted(case: ReadCase) -> int:
    """More characters than a case can take in a prompt."""
    turns = sum(len(turn.content) + len(turn.speaker) + _LINE_CHARS for turn in case.dialogue)
    evidence = sum(len(e.text) + len(e.source) + _LINE_CHARS for e in case.evidence)
    return _MAX_ESCAPED * (len(case.query) + _LINE_CHARS + turns + evidence)


def _fit_text(text: str, *, max_chars: int) -> str:
    overhead = len(case_slots(ReadCase(query=text))["request"]) - len(text)
    if len(text) + overhead <= max_chars:
        return text
    return clip_quoted(text, max_chars=max_chars, overhead=overhead)


def _fit_turns(turns: Sequence[Turn], *, max_chars: int) -> tuple[Turn, ...]:
    """The latest turns that fit; of the latest one its beginning and end, if it alone is longer."""
    fitting: list[Turn] = []
    room = max_chars
    for turn in reversed(turns):
        line = len(quote_turn(turn, number=len(turns))) + 1
        if line > room:
            break
        fitting.append(turn)
        room -= line
    if turns and not fitting:
        last = turns[-1]
        overhead = len(quote_turn(last, number=len(turns))) - len(last.content)
        text = clip_quoted(last.content, max_chars=max_chars, overhead=overhead)
        fitting = [last.model_copy(update={"content": text})]
    return tuple(reversed(fitting))


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
    return evidence.model_copy(update={"text": clip_middle(evidence.text, share)})
