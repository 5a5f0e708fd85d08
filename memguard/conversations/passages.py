"""Whose words a turn contains: the speaker's own, and passages of other authors. Pure.

A user pastes mails, forwards, chats, code and logs, and quotes people. Such text is in the user's
turn, but the user does not state it. `split_passages` finds it by its form: headers, marks of
quotation, salutation and signature, labels with times, or a phrase that announces it. A pasted text
without any mark at its end goes on to the end of the turn, or to a sentence in which the user
comments on it. In doubt a line belongs to the other author.

The work grows with the length of the text: every line is looked at a bounded number of times.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from memguard.conversations.pasted_blocks import find_blocks
from memguard.conversations.pasted_text import PastedSpan, find_inline
from memguard.schema.memory import Conversation, PassageKind, Turn

_CACHE = 128
"""Turns whose passages are remembered: every gate of a run asks for the same ones."""


@dataclass(frozen=True)
class Passage:
    """A part of a text that has one author."""

    text: str
    """The part, unchanged."""
    start: int
    """Its first character in the text."""
    end: int
    """The character after its last."""
    kind: PassageKind
    """`own` for the speaker's own words, else what the part is."""
    author: str = ""
    """The name of another author, if the text states it."""


def split_passages(text: str, *, speaker: str = "") -> tuple[Passage, ...]:
    """Split a text into the passages of its authors.

    Args:
        text: What one speaker wrote or pasted.
        speaker: The speaker's name, if known. In a pasted chat, the lines with this name, or with
            "Me", are the speaker's own.

    Returns:
        Passages in order, without gaps: their texts joined are the text. Adjacent passages differ
        in kind or author. Empty for an empty text.
    """
    return _split(text, speaker.casefold().strip())


@lru_cache(maxsize=_CACHE)
def _split(text: str, speaker: str) -> tuple[Passage, ...]:
    spans = list(find_blocks(text, speaker=speaker))
    between: list[tuple[int, int]] = []
    end = 0
    for span in spans:
        between.append((end, span.start))
        end = span.end
    between.append((end, len(text)))
    for start, stop in between:
        spans += find_inline(text, start, stop)
    return tuple(_covering(text, sorted(spans, key=lambda span: span.start)))


def _covering(text: str, spans: Iterable[PastedSpan]) -> Iterable[Passage]:
    """The spans and the speaker's own words between them, adjacent ones of an author as one."""
    pieces: list[PastedSpan] = []
    end = 0
    for span in spans:
        if span.start > end:
            pieces.append(PastedSpan(end, span.start, "own"))
        pieces.append(span)
        end = span.end
    if end < len(text):
        pieces.append(PastedSpan(end, len(text), "own"))
    joined: list[PastedSpan] = []
    for piece in pieces:
        # A blank line between two passages of an author is nobody's.
        if (
            len(joined) > 1
            and (joined[-2].kind, joined[-2].author) == (piece.kind, piece.author)
            and not text[joined[-1].start : joined[-1].end].strip()
        ):
            joined[-2:] = [joined[-2]._replace(end=piece.end)]
        elif joined and (joined[-1].kind, joined[-1].author) == (piece.kind, piece.author):
            joined[-1] = joined[-1]._replace(end=piece.end)
        else:
            joined.append(piece)
    for piece in joined:
        yield Passage(text[piece.start : piece.end], *piece)


def expand_turns(turns: Iterable[Turn]) -> tuple[Turn, ...]:
    """The turns, with each turn of a user split into the words of its authors.

    The parts have the id of their turn. The user's own words keep role and speaker; a passage of
    another author has the role `document`, the author as speaker, and its kind as `pasted_as`.
    Turns of other roles, and turns without such a passage, are unchanged.
    """
    expanded: list[Turn] = []
    for turn in turns:
        # Text that memguard rendered is no evidence, so nobody asks who wrote it.
        if turn.role != "user" or turn.rendered:
            expanded.append(turn)
            continue
        passages = split_passages(turn.content, speaker=turn.speaker)
        if all(passage.kind == "own" for passage in passages):
            expanded.append(turn)
        else:
            expanded += [_part(turn, passage) for passage in passages if passage.text.strip()]
    return tuple(expanded)


def evidence_of(conversation: Conversation) -> tuple[Turn, ...]:
    """The turns that a memory may be based on, each with the words of one author."""
    return expand_turns(conversation.evidence)


def _part(turn: Turn, passage: Passage) -> Turn:
    if passage.kind == "own":
        return turn.model_copy(update={"content": passage.text.strip()})
    # A document, so that every rule about roles holds: its words are not the user's.
    return turn.model_copy(
        update={
            "role": "document",
            "speaker": passage.author,
            "content": passage.text.strip("\n"),
            "pasted_as": passage.kind,
        }
    )
