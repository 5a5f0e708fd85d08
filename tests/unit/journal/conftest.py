"""Decisions to log."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from memguard.journal.journal import Journal
from memguard.schema.base import Namespace
from memguard.schema.decision import AdmissionDecision, Outcome, ReasonCode
from memguard.schema.memory import CandidateMemory
from memguard.schema.receipt import Receipt

ANA = ("memories", "ana")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

MakeReceipt = Callable[..., Receipt]


def build_receipt(
    receipt_id: str,
    *,
    outcome: Outcome = "admit",
    reason: ReasonCode | None = None,
    text: str = "",
    turn: str = "t1",
    namespace: Namespace = ANA,
    policy: str = "p1",
    run: str = "run-1",
    at: datetime = NOON,
) -> Receipt:
    usual: ReasonCode = "supported" if outcome == "admit" else "low_support"
    return Receipt(
        id=receipt_id,
        at=at,
        run_id=run,
        candidate=CandidateMemory(
            text=text or f"Ana said {receipt_id}.", namespace=namespace, turn_ids=(turn,)
        ),
        namespace=namespace,
        decision=AdmissionDecision(outcome=outcome, reason=reason or usual, explanation="Because."),
        policy_digest=policy,
    )


@pytest.fixture
def make_receipt() -> MakeReceipt:
    return build_receipt


@pytest.fixture
def journal() -> Iterator[Journal]:
    with Journal.memory(clock=lambda: NOON) as opened:
        yield opened
