"""Reads a candidate and its context as the pieces that the support verifier compares.

A context becomes text units: turns with their speaker's label, long turns in several units. A
candidate becomes sentences. Of a long context, `best_units` chooses the units that share the rarest
words with a sentence, and `align_claim` aligns the sentence with them.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from memguard.conversations.messages import ConversationLike, read_conversation
from memguard.conversations.passages import evidence_of
from memguard.local.verifier.alignment import Alignment, EncodedUnit, align
from memguard.local.verifier.encoded import EncodedText
from memguard.local.verifier.words import Flags, idf_of, read_words, split_words, stem
from memguard.schema.memory import Turn

UNIT_WORDS = 80
"""Maximum number of words in a unit; a longer turn is split, at sentence ends if possible."""
SENTENCE_WORDS = 40
"""Maximum number of words in a piece; a longer sentence is split."""
_MIN_WORDS = 3
_LABELS = {
    "user": "User",
    "assistant": "Assistant",
    "tool": "Tool",
    "document": "Document",
    "system": "System",
}
# One or two capitalised words before the colon: `Note to self: buy milk` is not a speaker.
_LINE = re.compile(r"^\s*([A-Z][\w'.-]*(?: [A-Z0-9][\w'.-]*)?): +(\S.*)$")
_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])|\n+")
# A full stop after one of these ends no sentence.
_TITLES = ("mr.", "mrs.", "ms.", "dr.", "st.", "prof.", "e.g.", "i.e.", "vs.", "no.")
_INITIAL = re.compile(r"\s\w\.$")
# More characters than the longest title has, with the one before it.
_TAIL = 8
# A label that begins with one of these is recognised only as a whole: `Speaker 1`, `The user`.
_GENERIC = frozenset({"speaker", "user", "assistant", "system", "tool", "the", "mr", "mrs", "dr"})


@dataclass(frozen=True, slots=True)
class TextUnit:
    """A turn, or a piece of a long one."""

    speaker: str
    """Label of the speaker; empty if unknown."""
    text: str
    """The text without the label."""
    turn: int = 0
    """Index of the turn, from 0."""
    at: date | None = None
    """When it was said."""
    by_user: bool = True
    """Whether a user says it, and not the assistant, a tool or another author."""

    @property
    def labelled(self) -> str:
        """The text that is encoded: `Ana: I left`."""
        return f"{self.speaker}: {self.text}" if self.speaker else self.text

    @property
    def label_words(self) -> int:
        """How many words of `labelled` are the label."""
        return len(split_words(self.speaker))


@dataclass(frozen=True, kw_only=True)
class TurnContext:
    """The turns that a candidate is checked against."""

    units: tuple[TextUnit, ...]
    """The turns that contain words; a long turn is several units."""
    turn_ids: tuple[str, ...]
    """Ids of all turns, indexed by `TextUnit.turn`; empty strings for a plain text."""


def read_context(context: ConversationLike) -> TurnContext:
    """Read a text, turns or messages, or a conversation.

    Turns that may not serve as evidence are left out: see `Conversation.evidence`.

    Raises:
        InvalidInputError: If a message has no readable role, text or time, or an id is repeated.
    """
    if isinstance(context, str):
        units = _units_of_text(context)
        lines = 1 + max((unit.turn for unit in units), default=-1)
        return TurnContext(units=units, turn_ids=("",) * lines)
    turns = evidence_of(read_conversation(context))
    units = [unit for index, turn in enumerate(turns) for unit in _units_of_turn(turn, index)]
    return TurnContext(units=tuple(units), turn_ids=tuple(turn.id for turn in turns))


def _units_of_turn(turn: Turn, index: int) -> list[TextUnit]:
    label = turn.speaker or _LABELS[turn.role]
    at = turn.at.date() if turn.at else None
    return [
        TextUnit(speaker=label, text=piece, turn=index, at=at, by_user=turn.role == "user")
        for piece in split_text(turn.content)
        if split_words(piece)
    ]


def _units_of_text(text: str) -> tuple[TextUnit, ...]:
    """Split a plain text into lines; a line like `Ana: I left` is a turn of that speaker."""
    units: list[TextUnit] = []
    lines = [line for line in text.splitlines() if split_words(line)]
    for index, line in enumerate(lines):
        hit = _LINE.match(line)
        speaker, text = (hit[1], hit[2]) if hit else ("", line.strip())
        units += [TextUnit(speaker=speaker, text=piece, turn=index) for piece in split_text(text)]
    return tuple(units)


def split_text(text: str, *, limit: int = UNIT_WORDS) -> list[str]:
    """Split a text into pieces of at most `limit` words, at sentence ends if possible."""
    spans = split_words(text)
    if len(spans) <= limit:
        return [text]
    pieces: list[str] = []
    first = 0
    while first < len(spans):
        last = min(first + limit, len(spans))
        if last < len(spans):
            # Not in the first third, or a short first sentence would be a piece of its own.
            ends = [
                index
                for index in range(first + limit // 3, last)
                if any(mark in text[spans[index].end : spans[index + 1].start] for mark in ".!?\n")
            ]
            last = ends[-1] + 1 if ends else last
        stop = spans[last].start if last < len(spans) else len(text)
        start = spans[first].start if first else 0
        pieces.append(text[start:stop].strip())
        first = last
    return pieces


@dataclass(frozen=True)
class Sentence:
    """One piece of a candidate."""

    text: str
    """The piece."""
    start: int
    """Offset in the candidate, in characters."""


def split_candidate(text: str) -> list[Sentence]:
    """Split a candidate into sentences; one of fewer than three words stays with its neighbour."""
    starts = [0]
    words = read = 0
    for hit in _END.finditer(text):
        # Counted and looked at piece by piece: a text of titles alone would be read again for each.
        words += len(split_words(text[read : hit.start()]))
        read = hit.start()
        before = text[max(0, read - _TAIL) : read].lower()
        # No sentence ends after an initial, as in `J. Smith`.
        is_initial = _INITIAL.search(f" {before}"[-_TAIL:]) is not None
        if words >= _MIN_WORDS and not before.endswith(_TITLES) and not is_initial:
            starts.append(hit.end())
            words = 0
    if len(starts) > 1 and words + len(split_words(text[read:])) < _MIN_WORDS:
        starts.pop()
    pieces: list[Sentence] = []
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        offset = start
        for piece in split_text(text[start:end], limit=SENTENCE_WORDS):
            # Searched for from the piece before, since a sentence may repeat its own words.
            offset = max(offset, text.find(piece, offset, end))
            if split_words(piece):
                pieces.append(Sentence(text=piece, start=offset))
            offset += len(piece)
    return pieces


@dataclass(frozen=True)
class UnitIndex:
    """Which units contain a stem or a value, read once for all sentences of a candidate."""

    units: Sequence[TextUnit]
    """The units, in context order."""
    by_stem: Mapping[str, Sequence[int]]
    """Indexes of the units that contain a stem."""
    by_value: Mapping[str, Sequence[int]]
    """Indexes of the units that state a number or date."""

    @classmethod
    def of(cls, units: Sequence[TextUnit]) -> "UnitIndex":
        """The index of some units."""
        by_stem: defaultdict[str, list[int]] = defaultdict(list)
        by_value: defaultdict[str, list[int]] = defaultdict(list)
        for index, unit in enumerate(units):
            words = read_words(unit.labelled, at=unit.at)
            for stem_ in dict.fromkeys(words.stems):
                by_stem[stem_].append(index)
            for value in words.values:
                by_value[value].append(index)
        return cls(units=units, by_stem=by_stem, by_value=by_value)


def best_units(
    claim: str,
    index: UnitIndex,
    *,
    limit: int,
    idf: Mapping[str, float],
    default: float,
) -> tuple[TextUnit, ...]:
    """The units that share the rarest words with a claim, and their neighbours, in context order.

    Returns at most `limit` units. `idf` has the inverse document frequency by stem, and `default`
    is the value of a stem that is not in it.
    """
    units = index.units
    if len(units) <= limit:
        return tuple(units)
    words = read_words(claim)
    rarity = idf_of(words, table=idf, default=default)
    weights = {
        word: float(value)
        for word, value, stop in zip(words.stems, rarity, words.stop, strict=True)
        if not stop
    }
    scores = [0.0] * len(units)
    # In the order of the claim: in that of a set, equal scores could differ in the last digit.
    for word, value in weights.items():
        for at in index.by_stem.get(word, ()):
            scores[at] += value
    # A shared number or date counts as much as the rarest word.
    shared = Counter(at for value in words.values for at in index.by_value.get(value, ()))
    for at, count in shared.items():
        scores[at] += default * count
    # Ties go to the later unit: a memory is more likely to come from what was just said.
    ranked = sorted(range(len(units)), key=lambda at: (-scores[at], -at))
    chosen: set[int] = set()
    for best in ranked:
        if len(chosen) >= limit:
            break
        # The neighbours too: "Yes, for years" shares no word with the claim, its question does.
        for neighbour in (best, best - 1, best + 1):
            if 0 <= neighbour < len(units) and len(chosen) < limit:
                chosen.add(neighbour)
    return tuple(units[at] for at in sorted(chosen))


def align_claim(
    claim: EncodedText,
    units: Sequence[TextUnit],
    encoded: Sequence[EncodedText],
    *,
    named: str = "",
) -> Alignment:
    """Align a claim with units, and mark the units spoken by its subject; see `find_subject`."""
    mask, subject = find_subject(claim.text, [unit.speaker for unit in units], named=named)
    sources = [
        EncodedUnit(encoded=vectors, by_subject=not subject or unit.speaker in {"", subject})
        for unit, vectors in zip(units, encoded, strict=True)
    ]
    return align(claim, sources, subject=mask)


def find_subject(claim: str, labels: Sequence[str], *, named: str = "") -> tuple[Flags, str]:
    """Find whom a claim is about: the speaker's label that it mentions first.

    `named` is the subject according to the writer. It is used if the claim mentions no label.

    Returns:
        A mask of the claim's words that are the name, and the label; an empty label if none is
        mentioned.
    """
    stems = [stem(span.text) for span in split_words(claim)]
    mask = np.zeros(len(stems), dtype=bool)
    first: tuple[int, str, int] | None = None
    for label in dict.fromkeys(filter(None, labels)):
        parts = [stem(span.text) for span in split_words(label)]
        if parts and parts[0] not in _GENERIC:
            # The first name is enough: a claim about `Ana` matches the label `Ana Lima`.
            parts = parts[:1]
        size = len(parts)
        starts = (at for at in range(len(stems) - size + 1) if stems[at : at + size] == parts)
        start = next(starts, None) if parts else None
        if start is not None and (first is None or start < first[0]):
            first = (start, label, size)
    if first is not None:
        mask[first[0] : first[0] + first[2]] = True
        return mask, first[1]
    same = [label for label in labels if label and label.lower() == named.lower()]
    return mask, same[0] if same else ""
