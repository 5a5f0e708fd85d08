"""Memories that say the same in other words: one of them is judged and shown for all. Pure.

Every memory is compared with the one that represents it, never through a third one. The two have
the same content by `memguard.local.paraphrases`, or by the rules that relate a correction to what
it corrects. Either way values that differ are never merged. Nor are memories of different speakers,
and memories that are no longer current with those that are.
"""

import re
import threading
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from memguard.local.corrections.claims import ClaimText, read_claim
from memguard.local.corrections.lexicon import kinds
from memguard.local.corrections.relating import relate
from memguard.local.paraphrases import has_negation, statement_form
from memguard.schema.memory import SaidBy
from memguard.schema.read import RecalledMemory

_OLDEST = datetime.min.replace(tzinfo=UTC)
_OWN_WORDS: frozenset[SaidBy] = frozenset({"user", "mixed"})
_TIMED = frozenset({"ended", "past", "change"})
# "Have been" and "am" differ by one character in Chinese.
_ASPECTS = re.compile("[过了着]")
# Another person than the user, in a way that a claim does not tell apart.
_PRONOUNS = re.compile(
    r"\b(?:he|him|his|she|hers?|they|them|theirs?|er|ihm|ihn|elle|ella)\b|[他她]"
)


_tables = threading.Event()
"""Set when the tables of words were read from their files."""


def has_read_tables() -> bool:
    """Whether `representatives` reads no file any more, as it does the first time."""
    return _tables.is_set()


@dataclass(frozen=True)
class _Statement:
    """What of a memory is compared."""

    claim: ClaimText
    names: frozenset[str]
    keys: tuple[Hashable, ...]
    """Memories that say the same share one of these."""
    form: Hashable


def representatives(
    memories: Sequence[RecalledMemory],
) -> tuple[tuple[RecalledMemory, ...], dict[str, tuple[RecalledMemory, ...]]]:
    """One memory for all that say the same, and the others by its id.

    The user's own words represent those of others, and among these the latest. The representative
    stands where the first of them was recalled, with the best score of all.

    Args:
        memories: Memories with distinct texts and ids.
    """
    statements = {memory.id: _statement_of(memory) for memory in memories}
    if statements:
        _tables.set()
    by_key: dict[Hashable, list[RecalledMemory]] = {}
    groups: dict[str, list[RecalledMemory]] = {}
    # The representative is the first of its group here, so that the others are compared with it.
    for memory in sorted(memories, key=_rank, reverse=True):
        own = statements[memory.id]
        first = next(
            (
                other
                for key in own.keys
                for other in by_key.get(key, ())
                if _say_the_same(own, statements[other.id])
            ),
            None,
        )
        if first is not None:
            groups[first.id].append(memory)
            continue
        groups[memory.id] = [memory]
        for key in own.keys:
            by_key.setdefault(key, []).append(memory)
    return _in_order(memories, list(groups.values()))


def _in_order(
    memories: Sequence[RecalledMemory], groups: Sequence[Sequence[RecalledMemory]]
) -> tuple[tuple[RecalledMemory, ...], dict[str, tuple[RecalledMemory, ...]]]:
    """The representatives where the first of each group was recalled, and the others."""
    order = {memory.id: index for index, memory in enumerate(memories)}
    ranked = sorted(groups, key=lambda group: min(order[memory.id] for memory in group))
    firsts: list[RecalledMemory] = []
    others: dict[str, tuple[RecalledMemory, ...]] = {}
    for first, *rest in ranked:
        if rest:
            others[first.id] = tuple(sorted(rest, key=lambda memory: order[memory.id]))
            scores = [memory.score for memory in (first, *rest) if memory.score is not None]
            first = first.model_copy(update={"score": max(scores, default=None)})  # noqa: PLW2901
        firsts.append(first)
    return tuple(firsts), others


def _statement_of(memory: RecalledMemory) -> _Statement:
    origin = memory.provenance
    speaker = origin.speaker.casefold() if origin else ""
    names = frozenset({speaker} if speaker else ())
    form = statement_form(memory.text, names)
    claim = read_claim(memory.text, names)
    owner = (speaker, memory.superseded)
    content = claim.content - kinds()["generic"]
    keys: list[Hashable] = [] if form is None else [(owner, form)]
    if form is not None and claim.language != "other" and content:
        keys.append((owner, claim.language, claim.owner, content))
    return _Statement(claim, names, tuple(keys), form)


def _say_the_same(first: _Statement, second: _Statement) -> bool:
    if first.form == second.form:
        return True
    claims = (first.claim, second.claim)
    # Which of two joined values is denied is not in a claim: "fish but not meat".
    if any(claim.is_joint and has_negation(claim.text) for claim in claims):
        return False
    if any(
        len({frozenset(marks.findall(claim.text.casefold())) for claim in claims}) > 1
        for marks in (_ASPECTS, _PRONOUNS)
    ):
        return False
    # "Does not" is not "no longer", and "from Porto to Lyon" is not the way back.
    if len({claim.flags & _TIMED for claim in claims}) > 1:
        return False
    if _change_places(*(claim.text for claim in claims)):
        return False
    sign = relate(*claims, names=first.names)
    return sign.relation == "duplicate" and sign.certain


def _change_places(first: str, second: str) -> bool:
    """Whether two texts have the same names, or numbers, in another order."""
    pairs = [
        [
            tuple(word.strip(".,;!").casefold() for word in text.split()[1:] if test(word[:1]))
            for text in (first, second)
        ]
        for test in (str.isupper, str.isdigit)
    ]
    return any(one != other and sorted(one) == sorted(other) for one, other in pairs)


def _rank(memory: RecalledMemory) -> tuple[bool, datetime]:
    """The user's own words first, then what was said last."""
    own = memory.provenance is not None and memory.provenance.said_by in _OWN_WORDS
    times = (memory.lifecycle.confirmed_at, memory.said_at)
    return own, max((time for time in times if time is not None), default=_OLDEST)
