"""What a run may cost and has cost, and the receipt of a decision on a candidate.

A receipt contains the reports of the methods that were run, with their model calls, and enough
evidence to compute the decision again.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field, JsonValue, computed_field

from memguard.normal_form import look_alike_words
from memguard.redaction import Screen, redact, redact_values
from memguard.schema.base import Frozen, Namespace, is_none
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import CandidateMemory, Lifecycle, Turn
from memguard.schema.relations import RecordChange
from memguard.schema.tables import Cell, ReportTable, TableReport


class Usage(Frozen):
    """Model calls of one decision or run. Values add up with `+`."""

    calls: int = 0
    """Requests answered by the model, including repairs."""
    attempts: int = 0
    """Requests sent, including retries; never less than `calls`."""
    prompt_tokens: int = 0
    """Tokens read, as counted by the provider; a request for K answers reads its prompt once."""
    completion_tokens: int = 0
    """Tokens written, over all answers of a request."""
    latency: float = 0.0
    """Seconds spent waiting for answers, added over requests (not wall time)."""
    cost: float | None = None
    """Price in the currency of the price list given to the model layer; `None` when unknown."""

    def __add__(self, other: "Usage") -> "Usage":
        """Usage of two pieces of work together."""
        # Unknown prices count as nothing, but the sum of unknown prices alone stays unknown.
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            calls=self.calls + other.calls,
            attempts=self.attempts + other.attempts,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            latency=self.latency + other.latency,
            cost=sum(costs) if costs else None,
        )

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.prompt_tokens + self.completion_tokens


class Budget(Frozen):
    """The limits of one run; `None` sets no limit on that quantity.

    A run stops before the first request beyond a limit; finished work is kept.
    """

    calls: Annotated[int, Field(ge=0)] | None = None
    """Requests."""
    tokens: Annotated[int, Field(ge=0)] | None = None
    """Tokens read and written."""
    seconds: Annotated[float, Field(ge=0)] | None = None
    """Wall time since the run began."""


WriteOutcome = Literal[
    "stored", "duplicate", "quarantined", "rejected", "refused", "deleted", "undone"
]
"""The outcome of a candidate.

* `stored`: in the store, and read back from there.
* `duplicate`: it says what a stored record says, whose text has not changed.
* `quarantined`: in quarantine, until a person releases or discards it.
* `rejected`: judged and not admitted; its text is on the receipt.
* `refused`: not judged, because its text or source cannot be judged; the reason is on the receipt.
* `deleted`: no decision on the candidate itself; a person took the stored memory out of use.
* `undone`: no decision on the candidate itself; a person took back an earlier one.
"""

Effect = Literal["commit", "caller", "shadow"]
"""Who stores an admitted candidate.

* `commit`: memguard, which reads the record back before it reports success.
* `caller`: the caller of a guarded store, whose own write is let through.
* `shadow`: the caller, whatever the decision; the decision is only recorded.
"""

# Without these reasons, the outcome follows from the decision alone.
_REASON_OUTCOMES: dict[str, WriteOutcome] = {
    "duplicate": "duplicate",
    "blank_text": "refused",
    "text_too_long": "refused",
    "no_user_words": "refused",
    "no_source": "refused",
    "human_deleted": "deleted",
}
HIDDEN_REASONS = frozenset({"secret", "personal_data"})
"""Reasons for which only the quarantine shows the candidate's text unchanged."""
_DECISION_OUTCOMES: dict[str, WriteOutcome] = {
    "admit": "stored",
    "quarantine": "quarantined",
    "reject": "rejected",
}


def is_empty(value: tuple[object, ...]) -> bool:
    """Whether a tuple is empty; for fields that JSON leaves out then, as older layouts did."""
    return not value


def is_current_record(lifecycle: Lifecycle) -> bool:
    """Whether a record begins as any other; JSON then leaves the field out."""
    return lifecycle == Lifecycle()


def _is_commit(effect: str) -> bool:
    return effect == "commit"


class PromptStamp(Frozen):
    """Identifies a prompt; a changed prompt has another digest."""

    name: str
    """For example `consistency_gate/support`."""
    version: str
    """The version that its author gave it."""
    digest: str
    """Digest of its text, 12 hexadecimal digits."""


class MethodReport(Frozen):
    """The input, the evidence and the decision of one method."""

    method: str
    """For example `consistency_gate`."""
    spec: dict[str, JsonValue]
    """The method's settings, including those from a preset."""
    decision: AdmissionDecision
    """Its decision."""
    evidence: dict[str, JsonValue]
    """Scores, threshold, samples, verdicts: enough to recompute the decision."""
    context: tuple[Turn, ...] = ()
    """The turns in its prompts."""
    usage: Usage = Usage()
    """Its model calls."""
    prompts: tuple[PromptStamp, ...] = ()
    """The prompts it used."""
    models: dict[str, str] = Field(default={})
    """Model name by stage."""
    notes: tuple[str, ...] = ()
    """Notes for a reader, such as ignored settings and weaker substitutes."""


def _without_secrets(report: MethodReport) -> MethodReport:
    """The report without secrets in source and evidence; scores and verdicts stay."""
    context = tuple(
        turn.model_copy(update={"content": redact(turn.content)}) for turn in report.context
    )
    evidence = redact_values(report.evidence)
    if context == report.context and evidence == report.evidence:
        return report
    return report.model_copy(update={"context": context, "evidence": evidence})


RECEIPT_COLUMNS = ("text", "outcome", "reason", "score", "explanation")
"""The columns of receipts as a table."""


class Receipt(TableReport):
    """The complete record of one decision on one candidate."""

    id: str
    """Unique."""
    schema_version: int = 1
    """Version of this layout; older receipts stay readable."""
    at: datetime
    """The time of the decision, in UTC."""
    run_id: str
    """The run it belongs to."""
    candidate: CandidateMemory
    """The candidate."""
    namespace: Namespace
    """The namespace in which it would be stored."""
    decision: AdmissionDecision
    """The decision of the guard, which is that of the last method it ran."""
    reports: tuple[MethodReport, ...] = ()
    """The reports of the methods, in the order in which they ran."""
    record_key: str = ""
    """Key of the record in the store, if the candidate was stored or is a duplicate."""
    policy_digest: str = ""
    """Digest of gates, models and prompts; a candidate is judged once under each policy."""
    # The next two are left out of JSON if they have their default. A receipt of an earlier version
    # is then written as it was, and its repetition is recognised by its content.
    effect: Effect = Field(default="commit", exclude_if=_is_commit)
    """Who stores an admitted candidate."""
    value: dict[str, JsonValue] | None = Field(default=None, exclude_if=is_none)
    """The item as the caller of a guarded store passed it, for a later release; `None` for
    memguard's own form, and if JSON cannot represent it."""

    look_alikes: tuple[str, ...] = Field(default=(), exclude_if=is_empty)
    """Words of the candidate with letters of another script in place of Latin ones."""

    lifecycle: Lifecycle = Field(default=Lifecycle(), exclude_if=is_current_record)
    """What the stored record begins with: the memory that it is a detail of, those it contradicts,
    or the later one that replaced it already."""
    changes: tuple[RecordChange, ...] = Field(default=(), exclude_if=is_empty)
    """The changes of other stored memories, made together with storing this one."""

    def redacted(self) -> "Receipt":
        """The receipt with `[password]` and the like in the candidate, in place of what is held."""
        screen: Screen = "personal" if self.decision.reason == "personal_data" else "secrets"
        text = redact(self.candidate.text, screen=screen)
        value = redact_values(self.value, screen=screen)
        if text == self.candidate.text and value == self.value:
            return self
        candidate = self.candidate.model_copy(update={"text": text})
        return self.model_copy(update={"candidate": candidate, "value": value})

    @property
    def usage(self) -> Usage:
        """Model calls of all methods together."""
        # Methods that did not run, because an earlier one rejected, have no report.
        return sum((report.usage for report in self.reports), Usage())

    @computed_field
    @property
    def outcome(self) -> WriteOutcome:
        """The outcome of the candidate."""
        # A deleted memory that an undo restores is stored.
        if self.decision.reason == "undone" and self.decision.outcome == "reject":
            return "undone"
        # A candidate in quarantine can be released, whatever the reason.
        if self.decision.outcome != "quarantine" and self.decision.reason in _REASON_OUTCOMES:
            return _REASON_OUTCOMES[self.decision.reason]
        return _DECISION_OUTCOMES[self.decision.outcome]

    @property
    def score(self) -> float | None:
        """The number that the deciding method compared; `None` if it had none.

        It is the support in [0, 1] for ConsistencyGate, and the CMTE for ConMem.
        """
        methods = {report.method: report.evidence.get("score") for report in self.reports}
        score = methods.get(self.decision.method)
        if isinstance(score, dict):
            score = score.get("cmte")
        return float(score) if isinstance(score, int | float) else None

    def to_row(self, *, outcome: str = "", reason: str = "") -> tuple[Cell, ...]:
        """The receipt as a row of `RECEIPT_COLUMNS`, with another outcome and reason if stated."""
        return (
            self.redacted().candidate.text,
            outcome or self.outcome,
            reason or self.decision.reason,
            self.score,
            self.decision.explanation,
        )

    def to_table(self) -> ReportTable:
        """The decision as a table of one row."""
        return ReportTable(
            title=f"decision of {self.decision.method or 'the guard'}",
            columns=RECEIPT_COLUMNS,
            rows=(self.to_row(),),
        )


@dataclass(frozen=True, kw_only=True)
class ReceiptFactory:
    """Creates receipts; tests can replace the clock and the ids."""

    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex

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
        receipt_id: str = "",
        lifecycle: Lifecycle | None = None,
        changes: tuple[RecordChange, ...] = (),
    ) -> Receipt:
        """Create the receipt of a decision made now; a run without an id gets one.

        `receipt_id` is an id that `new_id` gave before, for the trace of the model calls.
        """
        # A source may contain a secret that its candidate does not repeat.
        explanation = redact(decision.explanation)
        return Receipt(
            id=receipt_id or self.new_id(),
            at=self.clock(),
            run_id=run_id or self.new_id(),
            candidate=candidate,
            namespace=candidate.namespace,
            decision=decision.model_copy(update={"explanation": explanation}),
            reports=tuple(map(_without_secrets, reports)),
            look_alikes=look_alike_words(candidate.text),
            record_key=record_key,
            policy_digest=policy_digest,
            effect=effect,
            value=value,
            lifecycle=lifecycle or Lifecycle(),
            changes=changes,
        )
