"""Which texts of candidates are stored already, and whether they still hold.

A text that is stored and current is a duplicate. One whose record was replaced since may hold
again: somebody moves back. Or the same old conversation is read once more; then nothing is new.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from langgraph.store.base import BaseStore

from memguard.journal.commit import duplicate_decision
from memguard.journal.current_keys import KeyChoice, current_keys
from memguard.methods.authorship import withhold
from memguard.methods.reconcile.changes import confirm
from memguard.methods.reconcile.neighbours import neighbour_of
from memguard.methods.reconcile.rules import authors_of
from memguard.schema.base import Clock, Namespace
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import (
    CandidateMemory,
    Conversation,
    record_key,
)
from memguard.schema.relations import Neighbour, RecordChange
from memguard.write.state import Proposal


@dataclass(frozen=True, kw_only=True)
class StoredText:
    """Where a text is stored, or goes."""

    key: str
    """The key of its current record, else the key of a new one."""
    current: Neighbour | None = None
    """Its current record."""
    ended: tuple[Neighbour, ...] = ()
    """Its records that are no longer current, oldest first."""


async def find_stored_texts(
    store: BaseStore, namespace: Namespace, texts: Iterable[str]
) -> dict[str, StoredText]:
    """Where each text is stored in a namespace, or goes, by the key of its first record.

    Raises:
        StoreError: If the store failed.
    """
    choices = await current_keys(store, namespace, texts)
    return {record_key(text): _stored_text(choice) for text, choice in choices.items()}


def _stored_text(choice: KeyChoice) -> StoredText:
    ended = [neighbour_of(item) for item in choice.ended_items]
    return StoredText(
        key=choice.key,
        # An item with another text under that key keeps the candidate from being stored as well.
        current=None if choice.item is None else neighbour_of(choice.item),
        ended=tuple(record for record in ended if record is not None),
    )


def repeats(
    proposals: Sequence[Proposal],
    stored: Mapping[str, StoredText],
    *,
    conversation: Conversation | None,
) -> dict[str, AdmissionDecision]:
    """The decisions on candidates whose text is stored already, by the key of its first record.

    Args:
        proposals: The candidates of the run.
        stored: Where their texts are stored.
        conversation: Gives the order of the turns.
    """
    order = _turn_positions(conversation)
    decisions: dict[str, AdmissionDecision] = {}
    for proposal in proposals:
        name = record_key(proposal.candidate.text)
        text = stored[name]
        if text.current is not None:
            decisions[name] = duplicate_decision()
        elif text.ended:
            later = _is_answered(proposal, text, proposals, stored=stored, order=order)
            decision = repeats_the_past(proposal.candidate, text, later_in_run=later)
            decisions |= {} if decision is None else {name: decision}
    return decisions


def repeats_the_past(
    candidate: CandidateMemory, text: StoredText, *, later_in_run: bool
) -> AdmissionDecision | None:
    """The decision on a candidate whose text was replaced since, if nothing says it holds again.

    A candidate with a time has to be later than the record and its end. Without one it counts as
    said now, unless the same conversation goes on to repeat what replaced it, or a person has taken
    the record back.

    Args:
        candidate: The candidate.
        text: The records of its text, none of them current.
        later_in_run: Whether a later turn of the run says again what replaced it.
    """
    if text.current is not None or not text.ended:
        return None
    last = text.ended[-1]
    origin, lifecycle = last.provenance, last.lifecycle
    times = (origin.said_at if origin else None, lifecycle.confirmed_at, lifecycle.valid_until)
    end = max((time for time in times if time is not None), default=None)
    if candidate.said_at is not None:
        holds_again = end is None or candidate.said_at > end
    else:
        holds_again = lifecycle.ended_as == "superseded" and not later_in_run
    if holds_again:
        return None
    ending = lifecycle.ended_as or "superseded"
    return AdmissionDecision(
        outcome="reject",
        reason="duplicate",
        explanation=f"the same text was stored before, and {ending} since; nothing says that it "
        "holds again",
    )


def _is_answered(
    proposal: Proposal,
    text: StoredText,
    proposals: Sequence[Proposal],
    *,
    stored: Mapping[str, StoredText],
    order: Mapping[str, int],
) -> bool:
    """Whether a later turn of the run says, word for word, what replaced the text of a proposal."""
    successors = {record.lifecycle.superseded_by for record in text.ended}
    position = _position(proposal, order)
    return any(
        stored[record_key(other.candidate.text)].key in successors
        and _position(other, order) > position
        for other in proposals
    )


def _position(proposal: Proposal, order: Mapping[str, int]) -> int:
    return max((order.get(name, -1) for name in proposal.candidate.turn_ids), default=-1)


def confirmation(proposal: Proposal, record: Neighbour, *, clock: Clock) -> RecordChange | None:
    """The change of a record whose text a candidate repeats word for word; `None` for no change.

    Only a user's own words confirm what the same user said.
    """
    candidate = proposal.candidate
    if authors_of(candidate, record) != "same" or not candidate.turn_ids:
        return None
    if withhold(candidate, proposal.source.evidence) is not None:
        return None
    return confirm(record, candidate, at=candidate.said_at or clock())


def _turn_positions(conversation: Conversation | None) -> dict[str, int]:
    """The place of each turn in a conversation, by its id."""
    positions: dict[str, int] = {}
    for turn in (conversation or Conversation()).turns:
        positions.setdefault(turn.id, len(positions))
    return positions
