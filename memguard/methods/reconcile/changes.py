"""What becomes of the candidate and of the memories near it, by a plan of `rules`. Pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from memguard.methods.reconcile.rules import NeighbourRuling, ReconcilePlan, SpokenAt
from memguard.schema.memory import CandidateMemory, Lifecycle
from memguard.schema.relations import Neighbour, RecordChange

MAX_CONFIRMATIONS = 50
"""Turns that a memory records as saying it again."""


def explain(plan: ReconcilePlan) -> str:
    """What becomes of the candidate and of the near memories, in one sentence for a person."""
    parts: list[str] = []
    if plan.confirmed is not None:
        verb = "confirms" if plan.outcome == "confirm" else "was stored before, and replaced since:"
        parts.append(f"{verb} {_name(plan.confirmed)}")
    if plan.successor is not None:
        parts.append(f"stored as past, superseded by {_name(plan.successor)}")
    parts += [f"superseded {_name(ruling)}" for ruling in plan.superseded]
    if plan.detail_of is not None:
        parts.append(f"a detail of {_name(plan.detail_of)}")
    prefix = "held, " if plan.outcome == "hold" else ""
    parts += [f"{prefix}in conflict with {_name(ruling)}" for ruling in plan.conflicts]
    return "; ".join(parts) or "changes no stored memory"


def _name(ruling: NeighbourRuling) -> str:
    """A memory as people read it: `"I live in Porto." (said 2026-03-01): the user moved`."""
    at = ruling.neighbour.said_at
    when = f" (said {at.date().isoformat()})" if at is not None else ""
    reason = f": {ruling.verdict.reason}" if ruling.verdict.reason else ""
    return f'"{ruling.neighbour.text}"{when}{reason}'


def changes_of(
    plan: ReconcilePlan, candidate: CandidateMemory, *, key: str, spoken: SpokenAt
) -> tuple[RecordChange, ...]:
    """The changes of near memories that a plan makes.

    Args:
        plan: The plan.
        candidate: The candidate.
        key: Its key.
        spoken: Its times.
    """
    if plan.outcome in {"hold", "repeat"}:
        return ()
    later_key = key if plan.confirmed is None else plan.confirmed.neighbour.key
    changes = [
        _change(
            ruling.neighbour,
            superseded_by=later_key,
            ended_as="superseded",
            valid_until=spoken.event_at or spoken.at,
            reason=ruling.verdict.reason,
        )
        for ruling in plan.superseded
    ]
    changes += [
        _change(
            ruling.neighbour,
            conflicts_with=_with(ruling.neighbour.lifecycle.conflicts_with, (key,)),
        )
        for ruling in plan.conflicts
    ]
    if plan.confirmed is not None:
        confirmation = confirm(plan.confirmed.neighbour, candidate, at=spoken.at)
        changes += [] if confirmation is None else [confirmation]
    return tuple(changes)


def confirm(
    neighbour: Neighbour, candidate: CandidateMemory, *, at: datetime | None
) -> RecordChange | None:
    """The change of a memory that a candidate says again; `None` if it is not news.

    Args:
        neighbour: The memory.
        candidate: The candidate, whose turns it gains.
        at: When the candidate was said.
    """
    before, origin = neighbour.lifecycle, neighbour.provenance
    names = [f"{candidate.conversation_id}:{turn_id}" for turn_id in candidate.turn_ids]
    sources = [f"{origin.conversation_id}:{turn}" for turn in origin.turn_ids] if origin else []
    # The turn that it was stored from does not confirm it, when a conversation is read again.
    turns = [name for name in names if name not in sources and name not in before.confirmed_by]
    # Turns of a conversation without an id have the names of those of any other such.
    if names and not turns and candidate.conversation_id:
        return None
    said_at, confirmed_at = neighbour.said_at, before.confirmed_at
    # An older statement, imported late, confirms nothing after the memory itself.
    if at is not None and (said_at is None or at > said_at):
        confirmed_at = at if confirmed_at is None else max(confirmed_at, at)
    return _change(
        neighbour,
        confirmed_at=confirmed_at,
        # The latest, since a client may send the same turn under ever new ids.
        confirmed_by=(*before.confirmed_by, *turns)[-MAX_CONFIRMATIONS:],
    )


def _change(neighbour: Neighbour, **update: Any) -> RecordChange:
    before = neighbour.lifecycle
    return RecordChange(
        namespace=neighbour.namespace,
        key=neighbour.key,
        before=before,
        after=before.model_copy(update=update),
        candidate_id=neighbour.provenance.candidate_id if neighbour.provenance else "",
        said_at=neighbour.said_at,
    )


def _with(names: Sequence[str], more: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*names, *more)))


def lifecycle_after(plan: ReconcilePlan, *, spoken: SpokenAt) -> Lifecycle:
    """What the record of the candidate begins with."""
    if plan.outcome != "store":
        return Lifecycle()
    successor, detail_of = plan.successor, plan.detail_of
    past: dict[str, Any] = {}
    if successor is not None:
        past = {
            "superseded_by": successor.neighbour.key,
            "ended_as": "superseded",
            "valid_until": successor.spoken.event_at or successor.spoken.at,
            "reason": successor.verdict.reason,
        }
    return Lifecycle(
        event_at=spoken.event_at,
        detail_of=detail_of.neighbour.key if detail_of is not None else "",
        # The mark is on the other author's memory alone: it must not weaken the user's own words.
        conflicts_with=tuple(
            ruling.neighbour.key for ruling in plan.conflicts if ruling.authors == "same"
        ),
        **past,
    )
