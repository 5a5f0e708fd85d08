"""The units of a memory at read time, and the attributes that an adjudicator gives them.

Factor-Compiled Admission (FC) judges whole entries by `FactorAttributes`; Permission-Semantic
Admission (PS) judges typed pieces by `UnitAttributes` (arXiv 2610.11188, section 3.2). Attributes
only describe; the permission follows from them by policy. Where the paper names an attribute
without its values, the values are ours.
"""

import operator
from typing import Literal

from pydantic import Field

from memguard.schema.base import Frozen, Text, UnitInterval, is_none
from memguard.schema.memory import Ending, Moment, SaidBy

Scheme = Literal["factors", "units"]
"""Which attributes the adjudicator returns: `factors` for FC, `units` for PS."""

Kind = Literal["safety", "constraint", "preference", "belief", "claim", "fact", "experience"]
"""The kind of a unit (PS).

* `safety`: an allergy, a medication, a disability, an accessibility need. Ours.
* `constraint`: a rule that answers must follow.
* `preference`: what the person likes, wants or dislikes.
* `belief`: what the person believes about the world.
* `claim`: a statement about the world, presented as a fact.
* `fact`: a fact about a person: job, home, family, project.
* `experience`: something that the person did or that happened to them.
"""

Subject = Literal["user", "third_party", "bystander", "world", "uncertain"]
"""The subject of a unit (PS).

* `user`: the user.
* `third_party`: another person whom the answer is for or about.
* `bystander`: another person.
* `world`: no person.
* `uncertain`: unclear.
"""

Epistemic = Literal["verified", "stated", "inferred", "contradicted", "uncertain"]
"""How well a unit is supported.

* `verified`: confirmed by more than the person's word.
* `stated`: said by the person.
* `inferred`: concluded by somebody else.
* `contradicted`: denied later.
* `uncertain`: unclear.
"""

Temporal = Literal["current", "superseded", "uncertain"]
"""Whether a unit is still true; a unit whose date has passed is `superseded`, too."""

Relevance = Literal["direct", "indirect", "none", "uncertain"]
"""How a unit is related to the query (PS)."""

Instruction = Literal["override", "concealment", "disclosure", "trigger", "command"]
"""What a text demands of the assistant, according to `memguard.instructions`. Ours.

* `override`: to set its rules aside, or to take another role.
* `concealment`: to hide something from the user.
* `disclosure`: to show, send or change something that is sensitive.
* `trigger`: to do something whenever somebody asks.
* `command`: another standing rule.
"""

Scope = Literal["in", "partial", "out", "uncertain"]
"""Whether an entry applies to situations like this one (FC); `partial` needs allowed content."""

SubjectMatch = Literal["match", "mismatch", "uncertain"]
"""Whether an entry and the answer have the same subject (FC)."""

FactorRole = Literal["constraint", "preference", "belief", "fact", "context"]
"""The role of an entry (FC)."""

Utility = Literal["needed", "helpful", "none"]
"""How useful an entry is for the answer (FC)."""


class Piece(Frozen):
    """A typed piece of a memory's text. Depends on the text alone, never on a query."""

    text: Text
    """The text."""
    kind: Kind | None = None
    """Its kind, according to the decomposer; `None` for a memory that was not decomposed."""
    start: int | None = None
    """Its start in the memory's text; `None` if it is rephrased."""
    end: int | None = None
    """Its end, exclusive."""


class Pieces(Frozen):
    """The pieces of one memory, cached so that the next read needs no model call for them."""

    pieces: tuple[Piece, ...]
    """In order; together they cover the memory and add no content."""
    fingerprint: str = ""
    """Digest of the decomposer's model and prompt version; another decomposer starts anew."""
    note: Text = ""
    """Why the memory is a single piece, if its decomposition was refused."""


class Unit(Frozen):
    """A piece of a recalled memory, or all of it, as it is adjudicated."""

    id: str
    """Unique within the read."""
    memory_id: str
    """The memory it belongs to; `RecalledMemory.id`."""
    text: Text
    """The text, which is rendered without changes."""
    kind: Kind | None = None
    """Its kind, according to the decomposer."""
    start: int | None = None
    """Its start in the memory's text; `None` if it is rephrased."""
    end: int | None = None
    """Its end, exclusive."""
    said_at: Moment = None
    """The time of the memory's source."""
    score: UnitInterval | None = None
    """The memory's similarity to the query."""
    superseded: bool = False
    """Whether the store marks its memory as superseded."""
    said_by: SaidBy = "unknown"
    """Whose turns its memory is based on; `unknown` for a memory that memguard did not write."""
    author: Text = Field(default="", exclude_if=operator.not_)
    """The name of who said it, where that was not the user and the store knows it."""
    ended_as: Ending | None = Field(default=None, exclude_if=is_none)
    """Why its memory is no longer current, as the store marks it; `None` if it does not say."""
    valid_until: Moment = Field(default=None, exclude_if=is_none)
    """When it ceased to hold, as the store marks it; `None` if that is not known."""
    conflicts_with: tuple[str, ...] = Field(default=(), exclude_if=operator.not_)
    """The ids of memories that contradict its memory, as the store marks them."""
    instruction: Instruction | None = None
    """What its text demands of the assistant; such a unit is never in the prompt."""


class FactorAttributes(Frozen):
    """An adjudicator's attributes of a whole entry (FC)."""

    scope: Scope
    """Whether it applies to situations like this one."""
    subject: SubjectMatch
    """Whether it has the subject of the answer."""
    role: FactorRole
    """Its role."""
    epistemic: Epistemic
    """How well it is supported."""
    temporal: Temporal
    """Whether it is still true."""
    utility: Utility
    """How useful it is for the answer."""
    safety: bool = False
    """Whether it is an allergy, a medication, a disability or an accessibility need. Ours."""
    allowed_content: Text = ""
    """With `scope="partial"`: the part of the entry that may be used, quoted from it."""


class UnitAttributes(Frozen):
    """An adjudicator's attributes of a unit (PS)."""

    kind: Kind
    """Its kind."""
    subject: Subject
    """Its subject."""
    epistemic: Epistemic
    """How well it is supported."""
    temporality: Temporal
    """Whether it is still true."""
    relevance: Relevance
    """How it is related to the query."""


Attributes = FactorAttributes | UnitAttributes
"""An adjudicator's attributes, in either scheme."""

Permission = Literal[
    "APPLY_CONSTRAINT", "PERSONALIZE", "MENTION_VIEW", "CONTEXT", "CONTEXT_UNCERTAIN", "DENY"
]
"""The permitted use of a unit.

* `APPLY_CONSTRAINT`: the answer must comply with it.
* `PERSONALIZE`: it may influence the content and style of the answer.
* `MENTION_VIEW`: it may be mentioned as the user's own view, but not presented as true.
* `CONTEXT`: background that may inform the answer; neither a wish nor a rule.
* `CONTEXT_UNCERTAIN`: background that may be wrong or out of date.
* `DENY`: it is not in the prompt.
"""

Channel = Literal[
    "CONSTRAINTS", "PERSONALIZATION", "USER_VIEWS", "SUPPORTING", "UNCERTAIN", "EXCLUDED"
]
"""The channel of an entry of Factor-Compiled Admission; `EXCLUDED` is not in the prompt."""

# The two methods use different names in the paper for what is the same in a prompt.
CHANNEL_OF: dict[Permission, Channel] = {
    "APPLY_CONSTRAINT": "CONSTRAINTS",
    "PERSONALIZE": "PERSONALIZATION",
    "MENTION_VIEW": "USER_VIEWS",
    "CONTEXT": "SUPPORTING",
    "CONTEXT_UNCERTAIN": "UNCERTAIN",
    "DENY": "EXCLUDED",
}
"""The channel of each permission."""

SECTIONS: tuple[Permission, ...] = tuple(name for name in CHANNEL_OF if name != "DENY")
"""The sections of a rendering, in their fixed order."""

# Where two rules apply to a unit, policy compares their permissions by this order.
WIDTH: dict[Permission, int] = {
    "DENY": 0,
    "CONTEXT_UNCERTAIN": 1,
    "MENTION_VIEW": 2,
    "CONTEXT": 3,
    "PERSONALIZE": 4,
    "APPLY_CONSTRAINT": 5,
}
"""How much influence on the answer a permission allows; more is wider. Ours."""
