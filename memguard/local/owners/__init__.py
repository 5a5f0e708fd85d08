"""Finds out whose fact each clause of a text is: the user's, a relation's, a named person's.

`split_clauses` reads a text from left to right and begins a new clause at every subject. Rules for
English, German, Spanish, French and Chinese; without a model, in time linear in the text. Whatever
the rules cannot tell is `unknown`, so that a caller can hold it instead of guessing.
"""

import re
from collections.abc import Set as AbstractSet

from memguard.local.owners.clause import UNKNOWN, USER, WORLD, Clause
from memguard.local.owners.reader import language_of, split

__all__ = (
    "UNKNOWN",
    "USER",
    "WORLD",
    "Clause",
    "aliases_of",
    "language_of",
    "owner_of",
    "split_clauses",
)

_OPINION = re.compile(
    r"(?:well,? )?(?:i|we) (?:\w+ )?(?:think|know|believe|guess|heard|hear|hope|learned|said|"
    r"mentioned|told \w+)(?: that)?[\s,]*$|(?:did you know|fyi|note)\b.{0,8}$",
    re.IGNORECASE,
)


def split_clauses(
    text: str, *, speaker: str = "", user_names: AbstractSet[str] = frozenset(), listener: str = ""
) -> tuple[Clause, ...]:
    """The clauses of a text in order, each with its owner.

    Args:
        text: What somebody said, or a memory. A line that begins with a person's name and a colon
            is that person's.
        speaker: Who says it. Without a name, `I` is the user.
        user_names: Names that mean the user, in any case.
        listener: Whom `you` means; by default unknown.

    Returns:
        Clauses that do not overlap. Between them is only white space, punctuation and labels.
    """
    names = frozenset(name.casefold() for name in user_names)
    return split(text, speaker.casefold().strip(), names, listener.casefold().strip())


def owner_of(
    text: str, *, speaker: str = "", user_names: AbstractSet[str] = frozenset(), listener: str = ""
) -> str:
    """The owner of a whole text: that of its main clause.

    This is the first clause that has an owner, and whose subject is not resumed by a later one
    (`I think my brother is vegan` is the brother's). The arguments are those of `split_clauses`.
    """
    clauses = split_clauses(text, speaker=speaker, user_names=user_names, listener=listener)
    for index, clause in enumerate(clauses):
        if _OPINION.match(clause.text) and index + 1 < len(clauses):
            continue
        if clause.owner != UNKNOWN:
            return clause.owner
    return UNKNOWN


def aliases_of(clauses: tuple[Clause, ...]) -> dict[str, str]:
    """Names that clauses give to relations: `my sister Clara` gives `clara` the owner `sister`."""
    return {clause.name: clause.owner for clause in clauses if clause.name}
