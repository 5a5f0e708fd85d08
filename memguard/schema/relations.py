"""How a new memory relates to a stored one, and what became of a memory after it was stored.

A reader gives the relations; policy in `memguard.methods.reconcile.rules` decides what follows from
them. What follows is a `RecordChange` of the stored memory, whose text never changes.
"""

from typing import Literal

from pydantic import Field

from memguard.schema.base import Frozen, Namespace, Text, UnitInterval, is_none
from memguard.schema.decision import Inconclusive
from memguard.schema.memory import Lifecycle, Moment, Provenance

Relation = Literal["duplicate", "refines", "supersedes", "contradicts", "coexists"]
"""The relation of a candidate to a stored memory.

* `duplicate`: it says the same, perhaps in other words.
* `refines`: it says the same with a detail more, and both hold.
* `supersedes`: it says that what the stored memory says no longer holds, or gives its new value.
* `contradicts`: the two cannot both hold, and nothing says which does.
* `coexists`: both hold, or they have nothing to do with each other.
"""

Assertion = Literal["plain", "temporary", "doubtful"]
"""How a candidate says what it says.

* `plain`: as something that holds from then on.
* `temporary`: as an exception that will end, such as "this week I am on nights".
* `doubtful`: as hearsay, a guess, a joke, a wish, a plan or a role play.
"""


class Neighbour(Frozen):
    """A stored memory that is near a candidate."""

    namespace: Namespace
    """Its namespace."""
    key: str
    """Its key within the namespace."""
    text: Text
    """The memory."""
    said_at: Moment = None
    """The time of its source; the time of storing where the record has no better one."""
    score: UnitInterval | None = None
    """Similarity to the candidate; `None` if the store does not rank."""
    provenance: Provenance | None = None
    """Its origin; `None` for a memory that memguard did not write."""
    lifecycle: Lifecycle = Lifecycle()
    """What became of it since it was stored."""


class RelationVerdict(Frozen):
    """A reader's verdict on a candidate and one neighbour."""

    key: str
    """The key of the neighbour."""
    relation: Relation | Inconclusive
    """The relation of the candidate to it."""
    certain: bool = False
    """Whether a clear sign in the words supports the relation."""
    reason: Text = ""
    """Why, in a few words."""


class RelationReading(Frozen):
    """A reader's answer on a candidate and all of its neighbours."""

    verdicts: tuple[RelationVerdict, ...] = ()
    """One per neighbour; a neighbour without a verdict is inconclusive."""
    assertion: Assertion = "plain"
    """How the candidate says it."""
    event_at: Moment = None
    """When what the candidate says happened or began, if its words tell: "last spring I moved"."""
    notes: tuple[str, ...] = ()
    """Notes for the receipt."""


class RecordChange(Frozen):
    """A change of what became of a stored memory; its text stays as it is."""

    namespace: Namespace
    """The namespace of the memory."""
    key: str
    """Its key."""
    before: Lifecycle
    """The state from which the change is made. If the memory has another one by then, somebody
    else changed it, and the change is refused."""
    after: Lifecycle
    """The state that it leads to."""
    candidate_id: str = Field(default="", exclude_if=lambda value: not value)
    """The candidate that the memory came from, if known, so that forgetting finds the change."""
    said_at: Moment = Field(default=None, exclude_if=is_none)
    """When the memory was said, for messages."""
