"""Which turns a proposal of an agent rests on, and which memory it means. Pure."""

from collections.abc import Sequence

from memguard.errors import ErrorCode, InvalidInputError
from memguard.memories.values import MemoryEntry
from memguard.methods.authorship import content_words, is_bare
from memguard.normal_form import comparison_form
from memguard.schema.memory import Conversation, Turn

_MIN_QUOTED = 3
"""Characters from which a quotation tells where it is from."""
_NEARLY_SAME = 0.75
"""Share of common words from which a text names a memory. Chosen by hand, as for near repeats."""


def cite_turns(text: str, *, quote: str, conversation: Conversation) -> tuple[str, ...]:
    """The turns that a proposal rests on: the one that is quoted, else those with its words.

    A citation only says where a judge has to look: it admits nothing. If nothing in the text points
    to a turn, it is the user's last one, after which an agent usually proposes. An answer such as
    "yes" is cited with the turn that it answers.

    Args:
        text: The proposal.
        quote: The words that the agent says it copied; empty if it copied none.
        conversation: The conversation of the agent.

    Returns:
        Ids of turns in the order of the conversation; empty if no user said anything.
    """
    turns = conversation.evidence
    users = [index for index, turn in enumerate(turns) if turn.role == "user"]
    if not users:
        return ()
    wanted = _folded(quote)
    quoted = [
        i for i in users if len(wanted) >= _MIN_QUOTED and wanted in _folded(turns[i].content)
    ]
    # The latest, because a user who says it again means it as it is now.
    chosen = quoted[-1:] or _sharing_words(text, turns, users) or users[-1:]
    indexes = set(chosen)
    indexes |= {index - 1 for index in chosen if index > 0 and is_bare(turns[index])}
    return tuple(dict.fromkeys(turns[index].id for index in sorted(indexes)))


def _sharing_words(text: str, turns: Sequence[Turn], users: Sequence[int]) -> list[int]:
    """The user's turns that share most words with a text; none if none shares any."""
    words = content_words(text)
    shared = {index: len(words & content_words(turns[index].content)) for index in users}
    highest = max(shared.values())
    return [index for index, count in shared.items() if count == highest] if highest else []


def find_memory(name: str, memories: Sequence[MemoryEntry]) -> MemoryEntry:
    """The memory that an agent names, by its id or by its text.

    A text must be the memory's, contain it, be contained in it, or have nearly the same words, and
    must mean one memory only. The error names no other memory, since the agent may not be
    permitted to see it.

    Args:
        name: What the agent passed.
        memories: The current memories of the namespace.

    Raises:
        InvalidInputError: If it names none, or several.
    """
    wanted = name.strip()
    folded = _folded(wanted)
    folds = {memory.id: _folded(memory.text) for memory in memories}
    words = content_words(wanted)
    steps = (
        [m for m in memories if wanted and m.id.startswith(wanted)],
        [m for m in memories if folds[m.id] == folded],
        [m for m in memories if folded and (folded in folds[m.id] or folds[m.id] in folded)],
        [m for m in memories if _similarity(words, content_words(m.text)) >= _NEARLY_SAME],
    )
    # The first step with a match decides: an exact text is not made ambiguous by a longer one.
    matches = next((step for step in steps if step), [])
    if len(matches) == 1:
        return matches[0]
    problem = f"names {len(matches)} memories" if matches else "names no current memory"
    msg = f"{wanted!r} {problem}: pass the whole text exactly as `search_memory` returned it"
    raise InvalidInputError(msg, code=ErrorCode.MEMORY_NOT_FOUND)


def _similarity(first: frozenset[str], second: frozenset[str]) -> float:
    return len(first & second) / len(first | second) if first | second else 0.0


def _folded(text: str) -> str:
    words = comparison_form(text).casefold().split()
    return " ".join(words).strip(" .\"'")
