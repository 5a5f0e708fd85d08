"""Before any model is asked: what cannot be judged, what is stored already, what was decided."""

from collections.abc import Sequence

from langgraph.store.base import BaseStore, GetOp

from memguard.errors import ErrorCode, MemguardError, StoreError
from memguard.guard.state import Proposal
from memguard.policy.dedupe import record_key
from memguard.policy.refusal import refuse_source, refuse_text
from memguard.schema.base import Namespace, is_blank
from memguard.schema.config import Writer
from memguard.schema.decision import AdmissionDecision
from memguard.store_calls import call_store


def merge_repeats(proposals: Sequence[Proposal]) -> tuple[Proposal, ...]:
    """One proposal per text: of repeats within a run, the first with all their turns."""
    merged: dict[str, Proposal] = {}
    for proposal in proposals:
        key = record_key(proposal.candidate.text)
        first = merged.get(key)
        if first is None:
            merged[key] = proposal
        elif is_blank(proposal.candidate.text):
            merged[f"{key}-{len(merged)}"] = proposal
    return tuple(merged.values())


def refuse(proposal: Proposal, *, spec: Writer) -> AdmissionDecision | None:
    """The ruling on a candidate that no gate need see, or `None`."""
    text = refuse_text(proposal.candidate.text, max_chars=spec.max_candidate_chars)
    # Whether a source is needed at all is for the gates to say.
    return text or refuse_source(proposal.source.evidence, required=False)


def repeat() -> AdmissionDecision:
    """The ruling on a candidate whose very text is stored."""
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
        found = await call_store(store, [GetOp(namespace, key, refresh_ttl=False) for key in keys])
    except MemguardError:
        raise
    except Exception as error:  # a store of any make may raise anything
        msg = f"the memory store failed: {type(error).__name__}: {error}; write again"
        raise StoreError(msg, code=ErrorCode.STORE_FAILED) from error
    return frozenset(key for key, item in zip(keys, found, strict=True) if item is not None)
