"""Reads the relations of a candidate to its neighbours."""

from collections.abc import Sequence
from datetime import datetime

from memguard.local.event_times import event_time
from memguard.schema.memory import CandidateMemory
from memguard.schema.relations import Neighbour, RelationReading, RelationVerdict


def read_relations(
    candidate: CandidateMemory, neighbours: Sequence[Neighbour], *, now: datetime
) -> RelationReading:
    """Read how a candidate relates to each neighbour."""
    verdicts = tuple(
        RelationVerdict(key=neighbour.key, relation="coexists") for neighbour in neighbours
    )
    event_at = event_time(candidate.text, said_at=candidate.said_at or now)
    return RelationReading(verdicts=verdicts, event_at=event_at)
