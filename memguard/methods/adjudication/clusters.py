"""Memories that say the same in other words: one of them is judged and shown for all. Pure.

Every memory is compared with the one that represents it, never through a third one. The two have
the same content by `memguard.local.paraphrases`, so that values which differ are never merged, and
the same owner. Memories that are no longer current are not merged with those that are.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from memguard.local.paraphrases import StatementForm, statement_form
from memguard.schema.memory import SaidBy
from memguard.schema.read import RecalledMemory

_OLDEST = datetime.min.replace(tzinfo=UTC)
_OWN_WORDS: frozenset[SaidBy] = frozenset({"user", "mixed"})

_Key = tuple[StatementForm, str, bool]


def representatives(
    memories: Sequence[RecalledMemory],
) -> tuple[tuple[RecalledMemory, ...], dict[str, tuple[RecalledMemory, ...]]]:
    """One memory for all that say the same, and the others by its id.

    The user's own words represent those of others, and among these the latest. The representative
    stands where the first of them was recalled, with the latest time at which the same author said
    it, and with the best score.

    Args:
        memories: Memories with distinct texts and ids.
    """
    groups: dict[object, list[RecalledMemory]] = {}
    for memory in memories:
        # A memory without a form is a group of its own.
        groups.setdefault(_key_of(memory) or memory.id, []).append(memory)
    firsts: list[RecalledMemory] = []
    others: dict[str, tuple[RecalledMemory, ...]] = {}
    for group in groups.values():
        first = max(group, key=_rank)
        if len(group) > 1:
            others[first.id] = tuple(memory for memory in group if memory is not first)
            scores = [memory.score for memory in group if memory.score is not None]
            first = first.model_copy(update={"score": max(scores, default=None)})
        firsts.append(first)
    return tuple(firsts), others


def _key_of(memory: RecalledMemory) -> _Key | None:
    origin = memory.provenance
    speaker = origin.speaker.casefold() if origin else ""
    form = statement_form(memory.text, frozenset({speaker} if speaker else ()))
    return None if form is None else (form, speaker, memory.superseded)


def _rank(memory: RecalledMemory) -> tuple[bool, datetime]:
    """The user's own words first, then what was said last."""
    own = memory.provenance is not None and memory.provenance.said_by in _OWN_WORDS
    return own, memory.said_at or _OLDEST
