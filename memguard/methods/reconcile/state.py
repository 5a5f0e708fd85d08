"""The input, output and state of reconciliation."""

from datetime import datetime

from pydantic import BaseModel, Field

from memguard.conversations.messages import AnyCandidate, AnyConversation
from memguard.methods.reconcile.neighbours import NearMemories
from memguard.methods.reconcile.readers import RelationAnswer
from memguard.schema.base import GraphInput
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import Conversation, Lifecycle
from memguard.schema.receipt import MethodReport
from memguard.schema.relations import Neighbour, RecordChange


class ReconcileInput(GraphInput):
    """A candidate that may be stored."""

    candidate: AnyCandidate = Field(
        title="Memory to reconcile",
        description="An admitted memory, with its namespace; may be a plain text.",
        examples=["The user moved to Lisbon."],
    )
    context: AnyConversation = Field(
        default_factory=Conversation,
        title="What was said",
        description="The conversation of the candidate, for the order of its turns.",
    )
    run_id: str = Field(default="", description="Id of the run.")
    record_key: str = Field(
        default="", description="Key under which it is to be stored; that of its text if empty."
    )
    turn_order: tuple[str, ...] = Field(
        default=(), description="Ids of turns in their order; those of the context if empty."
    )
    run_keys: tuple[str, ...] = Field(
        default=(), description="Keys of the memories that the same run stored or confirmed."
    )


class ReconcileOutput(BaseModel):
    """The decision, its evidence, and what becomes of the records."""

    decision: AdmissionDecision
    report: MethodReport
    changes: tuple[RecordChange, ...] = ()
    lifecycle: Lifecycle = Lifecycle()


class ReconcileState(ReconcileInput):
    """The state of one candidate."""

    now: datetime | None = None
    """The time at which it began."""
    near: NearMemories = NearMemories()
    """The near memories."""
    compared: tuple[Neighbour, ...] = ()
    """Those that the reader is asked about."""
    later: frozenset[str] = frozenset()
    """Keys of near memories that were said later, as far as that is known before reading."""
    related: RelationAnswer | None = None
    """The reader's answer."""
    decision: AdmissionDecision | None = None
    report: MethodReport | None = None
    changes: tuple[RecordChange, ...] = ()
    lifecycle: Lifecycle = Lifecycle()
