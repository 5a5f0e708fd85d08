"""What the nodes of the write guard share, and how a decision on one candidate becomes durable."""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Literal

from memguard.errors import BudgetExhaustedError, MemguardError, RecordChangedError
from memguard.journal.commit import Backings
from memguard.llm.limits import Meter
from memguard.methods.writer.config import Writer
from memguard.namespaces import NamespaceLike
from memguard.schema.decision import AdmissionDecision
from memguard.schema.failures import failure_of
from memguard.schema.memory import CandidateMemory, record_key
from memguard.schema.receipt import Budget, Receipt, ReceiptFactory, Usage
from memguard.write.gates import GateGraph, GatesResult, Pipeline
from memguard.write.reconciling import (
    Reconciled,
    Reconciler,
    RunKeys,
    commit_reconciled,
    turn_of,
)
from memguard.write.state import CandidateResult, CandidateState, Proposal
from memguard.write.stored_texts import StoredText, confirmation

OnWriteFailure = Literal["raise", "report"]
ReviewMode = Literal["quarantine", "interrupt"]
"""Whether quarantined candidates only wait in quarantine, or the run also pauses and asks."""

_MAX_METERS = 10_000
"""Limit of meters; those of runs in which a node raised are never closed."""


class Meters:
    """One meter per run, each with the same budget, found by the run's id.

    The branches of a run are separate tasks, possibly in separate threads, that share only its id.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._lock = threading.Lock()
        self._by_run: OrderedDict[str, Meter] = OrderedDict()

    def of(self, run_id: str) -> Meter:
        """The meter of a run; a new one for a run that started now or in another process."""
        with self._lock:
            meter = self._by_run.get(run_id)
            if meter is None:
                meter = self._by_run[run_id] = Meter(self._budget)
                if len(self._by_run) > _MAX_METERS:
                    # The oldest; if that run still goes on, its count starts again.
                    self._by_run.popitem(last=False)
            return meter

    def close(self, run_id: str) -> Usage:
        """Remove the meter of a run, and return what it counted."""
        with self._lock:
            meter = self._by_run.pop(run_id, None)
        return meter.usage if meter else Usage()


@dataclass(frozen=True, kw_only=True)
class WriteGuard:
    """What the nodes share: built once, bound to no event loop."""

    backings: Backings
    namespace: NamespaceLike
    writer: GateGraph
    writer_spec: Writer
    writer_digest: str
    pipeline: Pipeline
    reconciler: Reconciler | None
    policy_digest: str
    meters: Meters
    on_failure: OnWriteFailure
    review: ReviewMode
    receipts: ReceiptFactory = field(default_factory=ReceiptFactory)
    run_keys: RunKeys = field(default_factory=RunKeys)


async def refuse_candidate(
    proposal: Proposal,
    decision: AdmissionDecision,
    *,
    stored: StoredText | None,
    run_id: str,
    guard: WriteGuard,
) -> CandidateResult:
    """Commit a decision that needs no gate; a repeat confirms the record of its text."""
    current = stored.current if stored is not None else None
    if decision.reason != "duplicate" or stored is None:
        return await _commit(proposal.candidate, decision, run_id=run_id, guard=guard)
    key = stored.key if current is not None else stored.ended[-1].key
    change = None
    if guard.reconciler is not None and current is not None:
        change = confirmation(proposal, current, clock=guard.receipts.clock)
        guard.run_keys.add(run_id, key)
    if change is not None:
        said_again = f"{decision.explanation}; it was said again, which confirms it"
        try:
            receipt = await commit_receipt(
                proposal.candidate,
                decision.model_copy(update={"explanation": said_again}),
                key=key,
                run_id=run_id,
                guard=guard,
                changes=(change,),
            )
        except RecordChangedError:
            # Another writer changed the record; what it says stays as it is, confirmed or not.
            pass
        except MemguardError as error:
            return _failed(proposal.candidate, error)
        else:
            return CandidateResult(receipt=receipt)
    return await _commit(proposal.candidate, decision, key=key, run_id=run_id, guard=guard)


async def conclude_candidate(
    state: CandidateState, judgement: GatesResult, *, guard: WriteGuard, receipt_id: str
) -> CandidateResult:
    """Make the decision of the gates durable; what they admit is reconciled before."""
    candidate, decision = state.proposal.candidate, judgement.decision
    if decision is None:
        # Not a failure: the caller set the budget, and a later run judges the candidate.
        if judgement.error is None or isinstance(judgement.error, BudgetExhaustedError):
            return CandidateResult(unjudged=candidate)
        return _failed(candidate, judgement.error, step="gate")
    if decision.outcome != "admit" or guard.reconciler is None:
        return await _commit(
            candidate,
            decision,
            reports=judgement.reports,
            run_id=state.run_id,
            guard=guard,
            receipt_id=receipt_id,
        )
    try:
        receipt = await _reconcile(
            state, judgement, admitted=decision, guard=guard, receipt_id=receipt_id
        )
    except BudgetExhaustedError:
        return CandidateResult(unjudged=candidate)
    except MemguardError as error:
        return _failed(candidate, error)
    return CandidateResult(receipt=receipt)


async def _reconcile(
    state: CandidateState,
    judgement: GatesResult,
    *,
    admitted: AdmissionDecision,
    guard: WriteGuard,
    receipt_id: str,
) -> Receipt:
    """Reconcile and commit an admitted candidate, when it is its turn in the namespace."""
    candidate, reconciler = state.proposal.candidate, guard.reconciler
    if reconciler is None:
        msg = "reconciliation is switched off"
        raise AssertionError(msg)
    store = guard.backings.current().store

    async def commit(outcome: Reconciled) -> Receipt:
        return await commit_receipt(
            candidate,
            outcome.decision,
            reports=(*judgement.reports, outcome.report),
            key=outcome.key,
            run_id=state.run_id,
            guard=guard,
            receipt_id=receipt_id,
            changes=outcome.changes,
            lifecycle=outcome.lifecycle,
        )

    async with turn_of(store, candidate.namespace):
        receipt = await commit_reconciled(
            reconciler,
            candidate,
            admitted=admitted,
            commit=commit,
            store=store,
            context=state.proposal.source,
            run_id=state.run_id,
            turn_order=state.turn_order,
            run_keys=guard.run_keys.of(state.run_id),
        )
        guard.run_keys.add(state.run_id, receipt.record_key)
        return receipt


async def _commit(
    candidate: CandidateMemory, decision: AdmissionDecision, **details: Any
) -> CandidateResult:
    """As `_commit_receipt`, with a failure as the result."""
    try:
        return CandidateResult(receipt=await commit_receipt(candidate, decision, **details))
    except MemguardError as error:
        return _failed(candidate, error)


def _failed(
    candidate: CandidateMemory, error: MemguardError, *, step: str = "commit"
) -> CandidateResult:
    return CandidateResult(unjudged=candidate, failure=failure_of(error, step=step))


async def commit_receipt(
    candidate: CandidateMemory,
    decision: AdmissionDecision,
    *,
    guard: WriteGuard,
    run_id: str,
    key: str = "",
    **details: Any,
) -> Receipt:
    """Write the receipt, the record of an admitted candidate, and the changes of other records.

    Raises:
        RecordChangedError: If a record that is to be changed was changed meanwhile.
        MemguardError: If the log or the store failed.
    """
    receipt = guard.receipts.create(
        candidate,
        decision,
        run_id=run_id,
        record_key=key or record_key(candidate.text),
        policy_digest=guard.policy_digest,
        **details,
    )
    # The committer groups the commits of branches, and may return another receipt: that of an
    # earlier run, or of a duplicate that another run has stored since.
    receipt = await guard.backings.current().committer.commit(receipt)
    # What leaves the log has no secrets: the report is in the host's state and checkpoints.
    return receipt.redacted()
