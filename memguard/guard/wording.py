"""A person's own words, stored as they are: nobody judges them, and the receipt says so."""

import uuid
from collections.abc import Mapping

from langgraph.store.base import BaseStore
from pydantic import JsonValue

from memguard.errors import ErrorCode, InvalidInputError
from memguard.guard.gates import digest_of
from memguard.journal.commit import commit
from memguard.journal.journal import Journal
from memguard.policy.dedupe import record_key
from memguard.policy.refusal import refuse_text
from memguard.schema.base import Namespace
from memguard.schema.config import Writer
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import CandidateMemory
from memguard.schema.receipt import MethodReport, Receipt, ReceiptFactory

METHOD = "human_wording"


async def store_wording(
    journal: Journal,
    store: BaseStore,
    text: str,
    *,
    namespace: Namespace,
    actor: str,
    instead_of: str = "",
) -> Receipt:
    """Store what a person wrote.

    Args:
        journal: The log.
        store: The memory store.
        text: The person's words.
        namespace: Where they go.
        actor: Who wrote them.
        instead_of: The text that they replace; kept on the receipt.

    Raises:
        InvalidInputError: If the text is blank or too long for a memory.
        StoreError: If the store failed; the next `recover` finishes what was begun.
    """
    refused = refuse_text(text, max_chars=Writer().max_candidate_chars)
    if refused is not None:
        raise InvalidInputError(refused.explanation, code=ErrorCode.INPUT_INVALID)
    before = f", in place of {instead_of!r}" if instead_of else ""
    receipt = worded_receipt(
        CandidateMemory(text=text, namespace=namespace),
        run_id=uuid.uuid4().hex,
        method=METHOD,
        explanation=f"worded by a person{before}; not judged",
        evidence={"actor": actor, "instead_of": instead_of},
        # A digest of its own: the same words may be taken back and written again.
        policy_digest=digest_of(METHOD, uuid.uuid4().hex),
    )
    return (await commit(journal, store, [receipt], actor=actor)).receipts[0]


def worded_receipt(
    candidate: CandidateMemory,
    *,
    run_id: str,
    method: str,
    explanation: str,
    evidence: Mapping[str, JsonValue],
    policy_digest: str,
) -> Receipt:
    """The receipt of a person's own words, as admitted."""
    decision = AdmissionDecision(
        outcome="admit", reason="human_approved", explanation=explanation, method=method
    )
    report = MethodReport(method=method, spec={}, decision=decision, evidence={**evidence})
    return ReceiptFactory().create(
        candidate,
        decision,
        reports=(report,),
        run_id=run_id,
        record_key=record_key(candidate.text),
        policy_digest=policy_digest,
    )
