"""What a memory is cut into at read time, and the attributes an adjudicator gives each piece.

Factor-Compiled Admission (FC) judges whole entries by `FactorAttributes`; Permission-Semantic
Admission (PS) judges typed pieces by `UnitAttributes` (arXiv 2610.11188, section 3.2). Attributes
describe; what follows from them is policy's to say. The value sets are ours where the paper names
only the attribute.
"""

from typing import Literal

from memguard.schema.base import Frozen, Text, UnitInterval
from memguard.schema.memory import Moment

Scheme = Literal["factors", "units"]
"""Which attributes are asked for: `factors` for FC, `units` for PS."""

Kind = Literal["safety", "constraint", "preference", "belief", "claim", "fact", "experience"]
"""What a unit is (PS).

* `safety`: an allergy, a medication, a disability, an accessibility need. Ours.
* `constraint`: something answers must keep to.
* `preference`: what the person likes, wants or dislikes.
* `belief`: what the person holds to be so about the world.
* `claim`: a statement about the world, put as a fact.
* `fact`: a fact about a person: job, home, family, project.
* `experience`: something the person did or went through.
"""

Subject = Literal["user", "third_party", "bystander", "world", "uncertain"]
"""Whom a unit is about (PS): the user, another person whom the answer is for or about, another
person whom it is not, nobody, or not to be told."""

Epistemic = Literal["verified", "stated", "inferred", "contradicted", "uncertain"]
"""How well a unit is grounded: confirmed beyond the person's word, said by the person, concluded by
somebody else, denied since, or not to be told."""

Temporal = Literal["current", "superseded", "uncertain"]
"""Whether a unit still holds; `superseded` is also what its own date has left behind."""

Relevance = Literal["direct", "indirect", "none", "uncertain"]
"""How a unit bears on the query (PS)."""

Scope = Literal["in", "partial", "out", "uncertain"]
"""Whether an entry was meant for situations like this one (FC); `partial` needs allowed content."""

SubjectMatch = Literal["match", "mismatch", "uncertain"]
"""Whether an entry is about whom the answer is about (FC)."""

FactorRole = Literal["constraint", "preference", "belief", "fact", "context"]
"""What an entry is (FC)."""

Utility = Literal["needed", "helpful", "none"]
"""What an entry adds to the answer (FC)."""


class Piece(Frozen):
    """A typed piece of a memory's text. Depends on the text alone, never on a query."""

    text: Text
    """What it says."""
    kind: Kind | None = None
    """What it is, as the decomposer saw it; `None` for a memory that was not decomposed."""
    start: int | None = None
    """Where it begins in the memory's text; `None` when it is rewritten."""
    end: int | None = None
    """Where it ends, exclusive."""


class Pieces(Frozen):
    """What one memory is cut into; kept with the record, so that a read need not ask again."""

    pieces: tuple[Piece, ...]
    """In order; together they cover the memory and add no word of content."""
    fingerprint: str = ""
    """Of the decomposer: its model and its prompt's version. Another one cuts anew."""
    note: Text = ""
    """Why the memory is one piece after all, where a decomposition was refused."""


class Unit(Frozen):
    """What is adjudicated: a piece of a recalled memory, or the whole of it."""

    id: str
    """Unique within the read."""
    memory_id: str
    """The memory it belongs to; `RecalledMemory.id`."""
    text: Text
    """What it says; rendered as it is."""
    kind: Kind | None = None
    """What it is, as the decomposer saw it."""
    start: int | None = None
    """Where it begins in the memory's text; `None` when it is rewritten."""
    end: int | None = None
    """Where it ends, exclusive."""
    said_at: Moment = None
    """When it was said."""
    score: UnitInterval | None = None
    """The memory's nearness to the query."""
    superseded: bool = False
    """Whether the store knows that a later record took its memory's place."""


class FactorAttributes(Frozen):
    """What an adjudicator found of a whole entry (FC)."""

    scope: Scope
    """Whether it was meant for situations like this one."""
    subject: SubjectMatch
    """Whether it is about whom the answer is about."""
    role: FactorRole
    """What it is."""
    epistemic: Epistemic
    """How well it is grounded."""
    temporal: Temporal
    """Whether it still holds."""
    utility: Utility
    """What it adds."""
    safety: bool = False
    """Whether it is an allergy, a medication, a disability or an accessibility need. Ours."""
    allowed_content: Text = ""
    """With `scope="partial"`: the words of the entry that may be used, in its own words."""


class UnitAttributes(Frozen):
    """What an adjudicator found of a unit (PS)."""

    kind: Kind
    """What it is."""
    subject: Subject
    """Whom it is about."""
    epistemic: Epistemic
    """How well it is grounded."""
    temporality: Temporal
    """Whether it still holds."""
    relevance: Relevance
    """How it bears on the query."""


Attributes = FactorAttributes | UnitAttributes
"""What an adjudicator found, in either scheme."""


Permission = Literal[
    "APPLY_CONSTRAINT", "PERSONALIZE", "MENTION_VIEW", "CONTEXT", "CONTEXT_UNCERTAIN", "DENY"
]
"""What a unit may be used for.

* `APPLY_CONSTRAINT`: the answer must keep to it.
* `PERSONALIZE`: it may shape what is offered and how it is put.
* `MENTION_VIEW`: it may be named as the user's own view, never adopted as true.
* `CONTEXT`: background that may inform the answer; neither a wish nor a rule.
* `CONTEXT_UNCERTAIN`: background that may be wrong or out of date.
* `DENY`: it stays out of the prompt.
"""

Channel = Literal[
    "CONSTRAINTS", "PERSONALIZATION", "USER_VIEWS", "SUPPORTING", "UNCERTAIN", "EXCLUDED"
]
"""Where an entry of Factor-Compiled Admission goes; `EXCLUDED` is nowhere."""

CHANNEL_OF: dict[Permission, Channel] = {
    "APPLY_CONSTRAINT": "CONSTRAINTS",
    "PERSONALIZE": "PERSONALIZATION",
    "MENTION_VIEW": "USER_VIEWS",
    "CONTEXT": "SUPPORTING",
    "CONTEXT_UNCERTAIN": "UNCERTAIN",
    "DENY": "EXCLUDED",
}
"""The channel of each permission."""

PERMISSION_OF: dict[Channel, Permission] = {
    channel: permission for permission, channel in CHANNEL_OF.items()
}
"""The permission of each channel."""

SECTIONS: tuple[Permission, ...] = (
    "APPLY_CONSTRAINT",
    "PERSONALIZE",
    "MENTION_VIEW",
    "CONTEXT",
    "CONTEXT_UNCERTAIN",
)
"""The sections of a rendering, in their fixed order."""

WIDTH: dict[Permission, int] = {
    "DENY": 0,
    "CONTEXT_UNCERTAIN": 1,
    "MENTION_VIEW": 2,
    "CONTEXT": 3,
    "PERSONALIZE": 4,
    "APPLY_CONSTRAINT": 5,
}
"""How far a permission lets a unit reach into the answer; more is wider. Ours."""
