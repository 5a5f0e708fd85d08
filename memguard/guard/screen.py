"""Before any model call: what cannot be judged, and what is stored already."""

from collections.abc import Sequence
from typing import TypeVar

from langgraph.store.base import BaseStore, GetOp

from memguard.errors import ErrorCode, MemguardError, StoreError
from memguard.guard.state import Proposal
from memguard.policy.dedupe import record_key
from memguard.policy.refusal import refuse_source, refuse_text
from memguard.schema.base import Namespace, is_blank
from memguard.schema.config import Writer
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import SaidBy
from memguard.store_calls import call_store

T = TypeVar("T")


def merge_repeats(proposals: Sequence[Proposal]) -> tuple[Proposal, ...]:
    """One proposal per text, in the order in which the texts were first proposed.

    A repeat adds its turns and its source to the first proposal, so that a candidate is judged on
    every turn that it was drawn from. Blank texts are not merged: each is refused on its own.
    """
    merged: dict[str, Proposal] = {}
    for proposal in proposals:
        key = record_key(proposal.candidate.text)
        first = merged.get(key)
        if first is None:
            merged[key] = proposal
        elif is_blank(proposal.candidate.text):
            merged[f"{key}-{len(merged)}"] = proposal
        else:
            merged[key] = _union(first, proposal)
    return tuple(merged.values())


def _union(first: Proposal, second: Proposal) -> Proposal:
    """The first proposal with the turns of both."""
    if second == first:
        return first
    a, b = first.candidate, second.candidate
    times = [candidate.said_at for candidate in (a, b) if candidate.said_at is not None]
    candidate = a.model_copy(
        update={
            "turn_ids": _ordered_union(a.turn_ids, b.turn_ids),
            "said_by": _said_by(a.said_by, b.said_by),
            "said_at": max(times, default=None),
        }
    )
    turns = _ordered_union(first.source.turns, second.source.turns)
    return Proposal(candidate=candidate, source=first.source.model_copy(update={"turns": turns}))


def _ordered_union(first: Sequence[T], second: Sequence[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys((*first, *second)))


def _said_by(first: SaidBy, second: SaidBy) -> SaidBy:
    if "unknown" in {first, second}:
        return second if first == "unknown" else first
    return first if first == second else "mixed"


def refuse(proposal: Proposal, *, spec: Writer) -> AdmissionDecision | None:
    """The decision on a candidate that needs no gate, or `None`."""
    text = refuse_text(proposal.candidate.text, max_chars=spec.max_candidate_chars)
    # Whether a source is required is up to the gates.
    return text or refuse_source(proposal.source.evidence, required=False)


def repeat() -> AdmissionDecision:
    """The decision on a candidate whose exact text is stored."""
    return AdmissionDecision(
        outcome="reject",
        reason="duplicate",
        explanation="the same text is stored already; a repeat is no new evidence",
    )


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
