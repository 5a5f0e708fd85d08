"""Splits memories into typed pieces by rules: sentences, owners, reasons, and joined statements."""

import asyncio
import re
from collections.abc import Sequence

from memguard.local.adjudicator.attributes import kind_of
from memguard.local.adjudicator.cues import NAME
from memguard.local.owners import UNKNOWN, WORLD, split_clauses
from memguard.local.pieces import MAX_PIECES, problem_of, with_span
from memguard.local.statements import split_sentences
from memguard.schema.read import Decomposition
from memguard.schema.units import Piece, Pieces

PIECES_FINGERPRINT = "local:pieces:3"
"""Part of the key under which pieces are stored. Increase the number when a rule changes them."""
_NOTE = "split by local rules, which separate only sentences, owners, reasons and joined statements"

# `since` with a pronoun gives a reason; `since 2019` is a date. `because of` has no clause after
# it.
_REASON = re.compile(
    r",? (?:because(?= (?!of\b))|given that|since(?= (?:it|its|he|she|they|i|the|his|her|my)\b))",
    re.IGNORECASE,
)
_VERB = (
    r"(?:is|has|works?|lives?|likes?|loves?|prefers?|enjoys?|hates?|dislikes?|avoids?|owns?|plays?|"
    r"wants?|believes?|thinks?|needs?|cannot|can't|does|did|takes?|drinks?|eats?|uses?|was|went|had|"
    r"bought|visited|started|plans?)"
)
_JOINED = re.compile(rf"(?:,|;|,? and|,? but) (?=(?:also )?{_VERB}\b)", re.IGNORECASE)
# Bounded, because each statement of a sentence repeats it.
_STARTS = re.compile(
    r"^(?:[\w'. -]{1,40}: )?(?:the user|user|i|"
    r"(?!(?:my|our|his|her|their|the|this|that|an?|in|on|at|for|if|when|since|after)\b)"
    r"[A-Z][\w-]{1,40})(?= )",
    re.IGNORECASE,
)

_NOBODY = frozenset({UNKNOWN, WORLD})
_BOUND = re.compile(
    r"(?:that|who|whom|whose|which|whether|if|because|since|so|when|while|although|to|dass|ob|weil|"
    r"wenn|der|die|das|que|qui|dont|parce|porque|si|cuando|quand)\b",
    re.IGNORECASE,
)
"""Beginnings of a clause that says nothing by itself."""
_JOINT = re.compile(r"^(?:and|but|und|aber|y|pero|et|mais|而|但)\b\s*", re.IGNORECASE)


def split_memory(text: str) -> Pieces:
    """Split one memory into pieces; unsplit if splitting would lose, add or deny a word.

    Returns:
        The pieces with their kinds; `note` says why a memory was not split.
    """
    parts = _grouped(
        [
            part
            for sentence in split_sentences(text)
            for owned in _by_owner(sentence)
            for part in _clauses(owned)
        ]
    )
    pieces = [
        with_span(Piece(text=part, kind=kind_of(part)), source=text) for part in parts if part
    ]
    problem = problem_of(pieces, source=text)
    if not problem:
        return Pieces(pieces=tuple(pieces), fingerprint=PIECES_FINGERPRINT)
    piece = Piece(text=text, kind=kind_of(text), start=0, end=len(text))
    # A memory of one sentence was not meant to be split, so there is nothing to note.
    note = problem if len(pieces) > 1 else ""
    return Pieces(pieces=(piece,), fingerprint=PIECES_FINGERPRINT, note=note)


def _by_owner(sentence: str) -> list[str]:
    """Split a sentence where the facts of one person end and those of another begin."""
    clauses = split_clauses(sentence)
    # "Tomas doesn't, I do" says nothing without the statement that it repeats.
    if len(clauses) < 2 or any(clause.repeats for clause in clauses):  # noqa: PLR2004
        return [sentence]
    starts = [0]
    owner = clauses[0].owner
    for clause in clauses[1:]:
        # What somebody thinks or says of somebody else stays with who thinks it.
        if clause.owner in _NOBODY or clause.is_carried or _BOUND.match(clause.text):
            continue
        if owner not in _NOBODY and clause.owner != owner:
            starts.append(clause.start)
        owner = clause.owner
    ends = [*starts[1:], len(sentence)]
    parts = (sentence[a:b].strip() for a, b in zip(starts, ends, strict=True))
    return [_JOINT.sub("", part).rstrip(" ,;") for part in parts]


def _clauses(sentence: str) -> list[str]:
    reason = _REASON.search(sentence)
    if reason is None:
        return _statements(sentence)
    return [*_statements(sentence[: reason.start()]), sentence[reason.end() :].strip()]


def _statements(sentence: str) -> list[str]:
    """Split statements that share a subject, and repeat the subject before each."""
    start = _STARTS.match(sentence)
    joints = [hit for hit in _JOINED.finditer(sentence) if start and hit.start() > start.end()]
    if start is None or not joints:
        return [sentence]
    starts = [0, *(hit.end() for hit in joints)]
    ends = [*(hit.start() for hit in joints), len(sentence)]
    parts = [sentence[a:b].strip() for a, b in zip(starts, ends, strict=True)]
    return [parts[0], *(f"{start[0]} {part}" for part in parts[1:])]


def _grouped(parts: Sequence[str]) -> list[str]:
    """Join neighbours so that at most `MAX_PIECES` parts remain; nothing is lost."""
    size = -(-len(parts) // MAX_PIECES) or 1
    return [" ".join(parts[at : at + size]) for at in range(0, len(parts), size)]


class LocalDecomposer:
    """Splits by rules; no key, no network, deterministic."""

    name: str = NAME
    """Shown on reports."""
    fingerprint: str = PIECES_FINGERPRINT
    """Version of the rules."""

    async def decompose(self, texts: Sequence[str], *, seconds: float) -> Decomposition:
        """Split each text, in a thread; a short one takes a fraction of a millisecond."""
        del seconds
        pieces = await asyncio.to_thread(lambda: tuple(split_memory(text) for text in texts))
        return Decomposition(pieces=pieces, notes=(_NOTE,) if texts else ())
