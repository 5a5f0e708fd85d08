"""Features of the clause in which a word was found: whom it is about, and whether it is negated.

`My colleague doesn't eat meat, I do` has every word of `Ines doesn't eat meat`. Only the clause
shows that the sentence is about somebody else.
"""

import numpy as np
from numpy.typing import NDArray

from memguard.local.verifier.align import Alignment
from memguard.local.verifier.words import Flags

COLUMNS = 15
"""How many columns `clause_columns` returns."""


def clause_columns(alignment: Alignment) -> tuple[NDArray[np.generic], ...]:
    """For each candidate word, the clause in which it was found, compared with its own clause.

    Returns:
        `COLUMNS` arrays of shape (F,), F being the number of candidate words.
    """
    return (*_persons(alignment), *_owners(alignment), *_denials(alignment))


def _matched(alignment: Alignment, name: str) -> Flags:
    flags = np.concatenate([getattr(unit.encoded.words, name) for unit in alignment.sources])
    return flags[alignment.pool[alignment.roles.position]]


def _persons(alignment: Alignment) -> tuple[NDArray[np.generic], ...]:
    """Whether the clause is about the candidate's subject or about the other speaker."""
    # `I` means the subject only where the subject speaks; where the other speaks, `you` does.
    by_subject = alignment.by_subject[alignment.pool[alignment.roles.position]]
    first, second = _matched(alignment, "first"), _matched(alignment, "second")
    matches = np.where(by_subject, first, second & ~first)
    differs = np.where(by_subject, second & ~first, first & ~second)
    return by_subject, first, second, _matched(alignment, "question"), matches, differs


def _owners(alignment: Alignment) -> tuple[NDArray[np.generic], ...]:
    """Whether the clause is about the subject, or about what belongs to it: a sister, a dog."""
    by_subject = alignment.by_subject[alignment.pool[alignment.roles.position]]
    actor = _matched(alignment, "actor")
    # A first person that is no `I` or `we` is a possessive: `my sister lives in Rome`.
    owned = _matched(alignment, "first") & ~actor
    possessive = np.full(len(alignment.fact), _is_possessive(alignment))
    dropped = by_subject & owned & ~possessive
    added = by_subject & actor & possessive
    return actor, owned, possessive, dropped, added


def _is_possessive(alignment: Alignment) -> bool:
    """Whether the candidate is about what belongs to its subject: `Ana's sister`, `my sister`."""
    words = alignment.fact.words
    if alignment.subject.any():
        last = words.spans[int(np.flatnonzero(alignment.subject)[-1])].text
        return last.replace("\u2019", "'").endswith(("'s", "s'"))
    return bool((words.first & ~words.actor).any())


def _denials(alignment: Alignment) -> tuple[NDArray[np.generic], ...]:
    """Whether one of the two clauses is negated and the other is not."""
    candidate, context = alignment.fact.words.negated, _matched(alignment, "negated")
    return candidate, context, candidate & ~context, context & ~candidate
