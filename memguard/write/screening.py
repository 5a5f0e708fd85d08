"""Before any model call: what cannot be judged, and what is stored already."""

from collections.abc import Mapping, Sequence
from functools import reduce

from langgraph.store.base import BaseStore, GetOp

from memguard.errors import ErrorCode, MemguardError, StoreError
from memguard.methods.admission import refuse_source, refuse_text
from memguard.methods.writer.config import Writer
from memguard.schema.base import Namespace, is_blank
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import Conversation, SaidBy, record_key
from memguard.store_calls import call_store
from memguard.write.state import Proposal


def merge_repeats(
    proposals: Sequence[Proposal], *, conversation: Conversation
) -> tuple[Proposal, ...]:
    """One proposal per text, in the order in which the texts were first proposed.

    A repeat adds its turns and its source, so that a candidate is judged on every turn that it was
    drawn from. Blank texts are not merged: each is refused on its own.

    Args:
        proposals: Of all passes.
        conversation: Orders the turns. A run that is resumed may read the passes in another order,
            and has to know the candidate again by its turns.
    """
    positions: dict[str, int] = {}
    for turn in conversation.turns:
        positions.setdefault(turn.id, len(positions))
    groups: dict[str, list[Proposal]] = {}
    for proposal in proposals:
        text = proposal.candidate.text
        key = f"blank {len(groups)}" if is_blank(text) else record_key(text)
        groups.setdefault(key, []).append(proposal)
    return tuple(_union(group, positions=positions) for group in groups.values())


def _union(group: Sequence[Proposal], *, positions: Mapping[str, int]) -> Proposal:
    """The earliest proposal with the turns of all, in the order of the conversation."""
    if len(group) == 1:
        return group[0]

    def position(turn_id: str) -> int:
        return positions.get(turn_id, len(positions))

    def start(proposal: Proposal) -> int:
        turn_ids = proposal.candidate.turn_ids or [turn.id for turn in proposal.source.turns]
        return min((position(turn_id) for turn_id in turn_ids), default=len(positions))

    ordered = sorted(dict.fromkeys(group), key=start)
    first = ordered[0]
    if len(ordered) == 1:
        return first
    candidates = [proposal.candidate for proposal in ordered]
    turn_ids = dict.fromkeys(turn_id for c in candidates for turn_id in c.turn_ids)
    turns = dict.fromkeys(turn for proposal in ordered for turn in proposal.source.turns)
    candidate = first.candidate.model_copy(
        update={
            "turn_ids": tuple(sorted(turn_ids, key=position)),
            "said_by": reduce(_said_by, [c.said_by for c in candidates]),
            "said_at": max((c.said_at for c in candidates if c.said_at), default=None),
        }
    )
    source = first.source.model_copy(
        update={"turns": tuple(sorted(turns, key=lambda turn: position(turn.id)))}
    )
    return Proposal(candidate=candidate, source=source)


def _said_by(first: SaidBy, second: SaidBy) -> SaidBy:
    if "unknown" in {first, second}:
        return second if first == "unknown" else first
    return first if first == second else "mixed"


def refuse(proposal: Proposal, *, spec: Writer) -> AdmissionDecision | None:
    """The decision on a candidate that needs no gate, or `None`."""
    text = refuse_text(proposal.candidate.text, max_chars=spec.max_candidate_chars)
    # Whether a source is required is up to the gates.
    return text or refuse_source(proposal.source.evidence, required=False)


async def stored_keys(
    store: BaseStore, namespace: Namespace, proposals: Sequence[Proposal]
) -> frozenset[str]:
    """Keys of those proposals whose text the namespace holds.

    Raises:
        StoreError: If the store failed.
    """
    keys = [record_key(proposal.candidate.text) for proposal in proposals]
    try:
        items = await call_store(store, [GetOp(namespace, key, refresh_ttl=False) for key in keys])
    except MemguardError:
        raise
    except Exception as error:  # any store may raise anything
        msg = f"the memory store failed: {type(error).__name__}: {error}; write again"
        raise StoreError(msg, code=ErrorCode.STORE_FAILED) from error
    return frozenset(key for key, item in zip(keys, items, strict=True) if item is not None)
