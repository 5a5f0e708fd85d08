"""The whole record of one decision."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from pydantic import Field, JsonValue

from memguard.schema.base import Frozen, Namespace, is_none
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import CandidateMemory, Turn
from memguard.schema.usage import Usage

WriteOutcome = Literal["stored", "duplicate", "quarantined", "rejected", "refused"]
"""What became of a candidate.

* `stored`: in the store, and read back from there.
* `duplicate`: its text was stored before; the record is as it was.
* `quarantined`: held aside, to be released or discarded.
* `rejected`: judged and not admitted; its text is on the receipt.
* `refused`: not judged, because its text or source cannot be; the reason is on the receipt.
"""

Effect = Literal["commit", "caller", "shadow"]
"""Who puts what is admitted into the store.

* `commit`: memguard, which reads it back before it says so.
* `caller`: the writer of a guarded store, whose own call then goes through.
* `shadow`: the writer, whatever the ruling; it is only recorded, and nothing is held.
"""

_OF_REASON: dict[str, WriteOutcome] = {
    "duplicate": "duplicate",
    "blank_text": "refused",
    "text_too_long": "refused",
    "no_user_words": "refused",
    "no_source": "refused",
}
_OF_RULING: dict[str, WriteOutcome] = {
    "admit": "stored",
    "quarantine": "quarantined",
    "reject": "rejected",
}


def _is_commit(effect: str) -> bool:
    return effect == "commit"


class PromptStamp(Frozen):
    """Which prompt was used: a changed prompt changes the digest."""

    name: str
    """For example `consistency_gate/support`."""
    version: str
    """As its author numbered it."""
    digest: str
    """Of its text, 12 hexadecimal digits."""


class MethodReport(Frozen):
    """What one method saw, measured and ruled."""

    method: str
    """For example `consistency_gate`."""
    spec: dict[str, JsonValue]
    """The method's settings, preset and all."""
    decision: AdmissionDecision
    """Its ruling."""
    evidence: dict[str, JsonValue]
    """Scores, threshold, samples, verdicts: enough to recompute the ruling."""
    context: tuple[Turn, ...] = ()
    """The turns it was shown."""
    usage: Usage = Usage()
    """Its model calls."""
    prompts: tuple[PromptStamp, ...] = ()
    """The prompts it used."""
    models: dict[str, str] = Field(default={})
    """Model name by stage."""
    notes: tuple[str, ...] = ()
    """What a reader should know: settings dropped, weaker stand-ins used."""


class Receipt(Frozen):
    """The whole record of one decision on one candidate."""

    id: str
    """Unique."""
    schema_version: int = 1
    """Of this layout; older receipts stay readable."""
    at: datetime
    """When the decision fell, in UTC."""
    run_id: str
    """The run it belongs to."""
    candidate: CandidateMemory
    """What was proposed."""
    namespace: Namespace
    """Where it would be stored."""
    decision: AdmissionDecision
    """The ruling of the guard: that of the last method asked."""
    reports: tuple[MethodReport, ...] = ()
    """What each method asked saw and ruled, in order."""
    record_key: str = ""
    """Key of the record in the store, for what was stored or is a duplicate."""
    policy_digest: str = ""
    """Of gates, models and prompts: a candidate is judged once under each."""
    effect: Effect = Field(default="commit", exclude_if=_is_commit)
    """Who puts what is admitted into the store."""
    value: dict[str, JsonValue] | None = Field(default=None, exclude_if=is_none)
    """The item as the writer of a guarded store gave it, for its release; `None` for memguard's
    own form, and where JSON cannot hold it."""

    @property
    def usage(self) -> Usage:
        """Model calls of all methods together."""
        return sum((report.usage for report in self.reports), Usage())

    @property
    def outcome(self) -> WriteOutcome:
        """What became of the candidate."""
        special = _OF_REASON.get(self.decision.reason)
        if special is None or self.decision.outcome == "quarantine":
            return _OF_RULING[self.decision.outcome]
        return special


def _now() -> datetime:
    return datetime.now(UTC)


def _new_id() -> str:
    return uuid.uuid4().hex


@dataclass(frozen=True, kw_only=True)
class ReceiptFactory:
    """Creates receipts, with a clock and ids that can be replaced."""

    clock: Callable[[], datetime] = _now
    new_id: Callable[[], str] = _new_id

    def create(
        self,
        candidate: CandidateMemory,
        decision: AdmissionDecision,
        *,
        reports: tuple[MethodReport, ...] = (),
        run_id: str = "",
        record_key: str = "",
        policy_digest: str = "",
        effect: Effect = "commit",
        value: dict[str, JsonValue] | None = None,
    ) -> Receipt:
        """The receipt of a decision that falls now; a run without an id gets one."""
        return Receipt(
            id=self.new_id(),
            at=self.clock(),
            run_id=run_id or self.new_id(),
            candidate=candidate,
            namespace=candidate.namespace,
            decision=decision,
            reports=reports,
            record_key=record_key,
            policy_digest=policy_digest,
            effect=effect,
            value=value,
        )
