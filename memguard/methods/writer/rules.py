"""Split a conversation into passes for the writer, without losing any text. Pure.

Every new turn is read in exactly one pass. The keys of turns let a later run recognise those that
were read, when the same conversation comes back with more turns.
"""

import hashlib
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from memguard.methods.writer.config import Writer
from memguard.schema.base import Frozen, Namespace, is_blank
from memguard.schema.memory import Conversation, SourceRole, Turn


class Pass(Frozen):
    """The turns of one pass."""

    earlier: tuple[Turn, ...]
    """Turns shown as context only."""
    new: tuple[Turn, ...]
    """Turns from which candidates are extracted."""

    @property
    def turns(self) -> tuple[Turn, ...]:
        """All turns of the pass, in order."""
        return (*self.earlier, *self.new)

    def has_source(self, sources: Sequence[SourceRole]) -> bool:
        """Whether it is more than text that users pasted, where documents are no source."""
        return "document" in sources or any(turn.pasted_as == "own" for turn in self.new)

    def for_rules(self, *, sources: Sequence[SourceRole]) -> "Pass":
        """The pass as rules read it: whole sentences of permitted sources.

        Text that users pasted is left out unless documents are permitted, and so is the phrase
        that announces it, such as "my boss writes:".
        """
        earlier = len(self.earlier)
        turns = [_without_fragments(self.turns, index) for index in range(len(self.turns))]
        is_read = [
            not is_blank(turn.content) and (turn.pasted_as == "own" or "document" in sources)
            for turn in turns
        ]
        parts = [
            tuple(turns[index] for index in indexes if is_read[index])
            for indexes in (range(earlier), range(earlier, len(turns)))
        ]
        return Pass(earlier=parts[0], new=parts[1])


_QUOTATION_MARKS = tuple("\"'\u201c\u201d\u201e\u00ab\u00bb\u2018\u2019\u201a\u300c\u300e")
_ENDED = tuple(".!?\n\u3002\uff01\uff1f")
_ANNOUNCES = (":", "\uff1a", ",", "\uff0c")


def _without_fragments(turns: Sequence[Turn], index: int) -> Turn:
    """A part of a turn without the pieces of sentences around a passage that was pasted."""
    turn = turns[index]
    text = turn.content
    before, after = (
        turns[at] if 0 <= at < len(turns) and turns[at].id == turn.id else turn
        for at in (index - 1, index + 1)
    )
    if turn.pasted_as != "own" or before.pasted_as == after.pasted_as == "own":
        return turn
    # "..." and left: the sentence began before the quotation.
    if _is_inline(before) and not before.content[:-1].endswith(_ENDED):
        ends = [at for mark in _ENDED if (at := text.find(mark)) >= 0]
        text = text[min(ends) + 1 :] if ends else ""
    if not text.endswith(_ENDED) and (_is_inline(after) or text.endswith(_ANNOUNCES)):
        text = text[: max(map(text.rfind, _ENDED)) + 1] if after.pasted_as != "own" else text
    return turn if text == turn.content else turn.model_copy(update={"content": text.strip()})


def _is_inline(turn: Turn) -> bool:
    """Whether a passage is a quotation inside a sentence of the user."""
    return turn.pasted_as == "quotation" and turn.content.startswith(_QUOTATION_MARKS)


def split_long_turns(turns: Sequence[Turn], *, max_chars: int) -> tuple[Turn, ...]:
    """Split every turn that is longer than `max_chars` characters into several parts.

    Parts end at white space if possible. They keep the id of their turn, so that a candidate that
    cites a part cites the turn.
    """
    return tuple(
        turn if part == turn.content else turn.model_copy(update={"content": part})
        for turn in turns
        for part in _parts(turn.content, max_chars=max_chars)
    )


def _parts(text: str, *, max_chars: int) -> Iterator[str]:
    while len(text) > max_chars:
        # The last fifth is longer than any word of a script that has spaces.
        last_fifth = range(max_chars - max_chars // 5, max_chars)
        spaces = [index for index in last_fifth if text[index].isspace()]
        end = spaces[-1] + 1 if spaces else max_chars
        yield text[:end]
        text = text[end:]
    yield text


def plan_chunks(turns: Sequence[Turn], *, new: AbstractSet[int], spec: Writer) -> tuple[Pass, ...]:
    """Group the new turns into passes, each with the turns before it.

    Args:
        turns: All turns in order, none longer than `spec.chars_per_chunk`.
        new: Indices of the turns to extract from; others serve as context only.
        spec: The sizes.

    Returns:
        Passes that contain every new turn exactly once, in order. The new turns of a pass are
        adjacent: no turn that was read before lies between them.
    """
    chunks: list[Pass] = []
    start = 0
    while start < len(turns):
        if start not in new:
            start += 1
            continue
        # The first turn always fits, since no turn is longer than a pass.
        end, chars = start, 0
        ids: set[str] = set()
        while (
            end < len(turns)
            and end in new
            # A turn with pasted passages is several parts, but one turn to pay for.
            and len(ids | {turns[end].id}) <= spec.turns_per_chunk
            and (end == start or chars + len(turns[end].content) <= spec.chars_per_chunk)
        ):
            chars += len(turns[end].content)
            ids.add(turns[end].id)
            end += 1
        chunks.append(Pass(earlier=_earlier(turns[:start], spec), new=tuple(turns[start:end])))
        start = end
    return tuple(chunks)


def _earlier(before: Sequence[Turn], spec: Writer) -> tuple[Turn, ...]:
    """The last turns before a pass that fit into a quarter of its size."""
    # Context is paid for in every pass, so it must stay small compared with the new turns.
    # Backwards from the pass: the nearest turns explain a pronoun, older ones seldom do.
    context: list[Turn] = []
    ids: set[str] = set()
    room = spec.chars_per_chunk // 4
    for turn in reversed(before):
        ids.add(turn.id)
        # Every part has a character, so this ends soon, however many parts there are.
        room -= max(1, len(turn.content))
        if room < 0 or len(ids) > spec.context_turns:
            break
        context.append(turn)
    return tuple(reversed(context))


def turn_keys(conversation: Conversation, *, namespace: Namespace) -> tuple[str, ...]:
    """A key per turn, which is the same when the conversation comes back with more turns.

    The key of a turn with an id contains that id. A turn that only has a number is identified by
    the turns before it, so its key is chained: "Yes." after another question is another turn.
    """
    # Chat messages have no stable ids; inserting one in the middle makes all later ones new.
    keys: list[str] = []
    chain = _digest(*namespace, conversation.id)
    counts: dict[str, int] = {}
    for turn in conversation.turns:
        words = (turn.role, turn.speaker, turn.content)
        if not turn.id.isdecimal():
            key = _digest(*namespace, conversation.id, turn.id, *words)
        else:
            chain = key = _digest(chain, *words)
        # Equal parts of one long turn must be read each, so they need different keys.
        counts[key] = counts.get(key, 0) + 1
        keys.append(key if counts[key] == 1 else f"{key}-{counts[key]}")
    return tuple(keys)


def _digest(*parts: str) -> str:
    # Joined by a control character, so that moving text from one part to the next changes the key.
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:24]
