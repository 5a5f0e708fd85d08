"""How a conversation is cut into passes for the writer: nothing is left out, nothing cut off."""

import hashlib
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from memguard.schema.base import Namespace
from memguard.schema.config import Writer
from memguard.schema.memory import Conversation, Turn


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """What one pass reads."""

    earlier: tuple[Turn, ...]
    """Turns shown for understanding."""
    new: tuple[Turn, ...]
    """Turns to draw candidates from."""

    @property
    def turns(self) -> tuple[Turn, ...]:
        """All turns shown, in the order they were said."""
        return (*self.earlier, *self.new)


def split_long_turns(turns: Sequence[Turn], *, max_chars: int) -> tuple[Turn, ...]:
    """The turns, each of at most `max_chars` characters; a longer one becomes several parts.

    Parts end at white space where there is some, and keep their turn's id, so that what rests on
    a part rests on the turn.
    """
    return tuple(
        turn if part == turn.content else turn.model_copy(update={"content": part})
        for turn in turns
        for part in _parts(turn.content, max_chars=max_chars)
    )


def _parts(text: str, *, max_chars: int) -> Iterator[str]:
    while len(text) > max_chars:
        # Looking back over a fifth is enough for any script that has spaces.
        spaces = [at for at in range(max_chars - max_chars // 5, max_chars) if text[at].isspace()]
        end = spaces[-1] + 1 if spaces else max_chars
        yield text[:end]
        text = text[end:]
    yield text


def plan_chunks(turns: Sequence[Turn], *, new: AbstractSet[int], spec: Writer) -> tuple[Chunk, ...]:
    """Cut the new turns into passes, each with the turns before it.

    Args:
        turns: All turns in order, none longer than `spec.chars_per_chunk`.
        new: Indexes of the turns to draw from; the rest are at most shown.
        spec: The sizes.

    Returns:
        Passes that hold every new turn exactly once, in order. Neighbours share a pass only if no
        turn that was read before lies between them.
    """
    chunks: list[Chunk] = []
    start = 0
    while start < len(turns):
        if start not in new:
            start += 1
            continue
        end, chars = start, 0
        while (
            end < len(turns)
            and end in new
            and end - start < spec.turns_per_chunk
            and (end == start or chars + len(turns[end].content) <= spec.chars_per_chunk)
        ):
            chars += len(turns[end].content)
            end += 1
        chunks.append(Chunk(earlier=_earlier(turns[:start], spec), new=tuple(turns[start:end])))
        start = end
    return tuple(chunks)


def _earlier(before: Sequence[Turn], spec: Writer) -> tuple[Turn, ...]:
    """The last few turns before a pass, as far as they fit a quarter of its size."""
    kept: list[Turn] = []
    room = spec.chars_per_chunk // 4
    for turn in reversed(before[-spec.context_turns :] if spec.context_turns else ()):
        room -= len(turn.content)
        if room < 0:
            break
        kept.append(turn)
    return tuple(reversed(kept))


def turn_keys(conversation: Conversation, *, namespace: Namespace) -> tuple[str, ...]:
    """A key per turn, to know it again when the conversation comes back longer.

    A turn with an id of its own is named by that. A numbered turn means something only after what
    came before it, so its key is chained: a "Yes." that answers another question is another turn.
    """
    keys: list[str] = []
    chain = _digest(*namespace, conversation.id)
    seen: dict[str, int] = {}
    for turn in conversation.turns:
        words = (turn.role, turn.speaker, turn.content)
        if not turn.id.isdecimal():
            key = _digest(*namespace, conversation.id, turn.id, *words)
        else:
            chain = key = _digest(chain, *words)
        # Equal parts of one long turn are different turns to read.
        seen[key] = seen.get(key, 0) + 1
        keys.append(key if seen[key] == 1 else f"{key}-{seen[key]}")
    return tuple(keys)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:24]
