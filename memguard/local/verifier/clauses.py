"""What is said by the clause in which a word was found: of whom it speaks, and whether it denies.

`My colleague doesn't eat meat, I do` has every word of `Ines doesn't eat meat`; only the clause
tells that it is about somebody else.
"""

import numpy as np
from numpy.typing import NDArray

from memguard.local.verifier.align import Alignment
from memguard.local.verifier.words import Flags

COLUMNS = 15


def clause_columns(alignment: Alignment) -> tuple[NDArray[np.generic], ...]:
    """Of each word of a candidate: the clause where it was found, beside its own."""
    return (*_persons(alignment), *_owners(alignment), *_denials(alignment))


def _found(alignment: Alignment, name: str) -> Flags:
    flags = np.concatenate([getattr(each.encoded.words, name) for each in alignment.sources])
    return flags[alignment.pool[alignment.roles.place]]


def _persons(alignment: Alignment) -> tuple[NDArray[np.generic], ...]:
    """Whether the clause speaks of the candidate's subject, or of the other one."""
    own = alignment.own[alignment.pool[alignment.roles.place]]
    first, second = _found(alignment, "first"), _found(alignment, "second")
    matches = np.where(own, first, second & ~first)
    differs = np.where(own, second & ~first, first & ~second)
    return own, first, second, _found(alignment, "question"), matches, differs


def _owners(alignment: Alignment) -> tuple[NDArray[np.generic], ...]:
    """Whether it speaks of the subject, or of what is the subject's: a sister, a dog."""
    own = alignment.own[alignment.pool[alignment.roles.place]]
    actor = _found(alignment, "actor")
    theirs = _found(alignment, "first") & ~actor
    possessive = np.full(len(alignment.fact), _is_possessive(alignment))
    dropped = own & theirs & ~possessive
    added = own & actor & possessive
    return actor, theirs, possessive, dropped, added


def _is_possessive(alignment: Alignment) -> bool:
    """Whether the candidate is about what is its subject's: `Ana's sister`, `my sister`."""
    words = alignment.fact.words
    if alignment.subject.any():
        last = words.spans[int(np.flatnonzero(alignment.subject)[-1])].text
        return last.replace("\u2019", "'").endswith(("'s", "s'"))
    return bool((words.first & ~words.actor).any())


def _denials(alignment: Alignment) -> tuple[NDArray[np.generic], ...]:
    """Whether one of the two clauses is negated and the other is not."""
    here, there = alignment.fact.words.negated, _found(alignment, "negated")
    return here, there, here & ~there, there & ~here
