"""The clause, and the owners that are not a person's name or relation."""

from dataclasses import dataclass

USER, WORLD, UNKNOWN = "user", "world", "unknown"
"""Owners that are not a person's relation or name."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause of a text, and whose fact it is."""

    text: str
    """The clause as written, without the space around it."""
    start: int
    """Offset of its first character."""
    end: int
    """Offset one past its last character."""
    owner: str
    """`user`, `world`, `unknown`, a relation (`wife`, `wife's sister`), or a name in small letters
    (`tomas`, `ana's mother`)."""
    subject_end: int = 0
    """Offset one past its subject; `start` if it has none of its own."""
    also: tuple[str, ...] = ()
    """Further owners, as in `my wife and I`."""
    name: str = ""
    """The name that the text gives to the owner, as in `my sister Clara`; in small letters."""
    repeats: str = ""
    """The statement that an elided clause completes: `me too`, `Tomas doesn't, I do`."""
    is_elided: bool = False
    """Whether it says nothing by itself; `repeats` is empty if the statement is in another turn."""
    shares_verb: bool = False
    """Whether its verb is that of the clause before: `I am from Porto, my wife from Lyon`."""
    is_carried: bool = False
    """Whether the owner is that of the clause before, since it has no subject, or `it`."""
