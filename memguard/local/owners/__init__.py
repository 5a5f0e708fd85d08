"""Finds out whose fact each clause of a text is: the user's, a relation's, a named person's.

`split_clauses` reads a text from left to right and begins a new clause at every subject. Rules for
English, German, Spanish, French and Chinese; without a model, in time linear in the text. Whatever
the rules cannot tell is `unknown`, so that a caller can hold it instead of guessing.
"""

from memguard.local.owners.clause import UNKNOWN, USER, WORLD, Clause
from memguard.local.owners.reader import aliases_of, owner_of, split_clauses

# In plain order, like every other list of names.
__all__ = (  # noqa: RUF022
    "Clause",
    "UNKNOWN",
    "USER",
    "WORLD",
    "aliases_of",
    "owner_of",
    "split_clauses",
)
