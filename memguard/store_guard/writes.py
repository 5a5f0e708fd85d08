"""Judging the writes of a guarded store.

A write becomes a candidate: the text of its value, with the turns of its source as evidence. It
passes the gates of the guard, and its decision is written to the log before the store is called.
After the call, the log says that the item is stored.

All text of a value is judged; see `memguard.store_guard.values`. A text from the same source is
judged once. Every item has a receipt of its own: the same text under another key, or with other
fields, gets one that refers to the first.
"""

import asyncio
import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langgraph.config import get_stream_writer
from langgraph.store.base import BaseStore, GetOp, PutOp

from memguard.journal.commit import Backing, finish_changes, log_decisions
from memguard.journal.receipts import end_writes, is_latest_of_key
from memguard.journal.removal import end_deletions, intend_deletions
from memguard.journal.storing import NamespacedKey, default_ttl
from memguard.llm.limits import Meter, use_meter
from memguard.methods.admission import refuse_source, refuse_text
from memguard.methods.authorship import withhold
from memguard.portal import call_store
from memguard.read.recall import TEXT_FIELDS
from memguard.redaction import Screen, redact_values
from memguard.schema.base import is_blank
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import (
    CandidateMemory,
    Conversation,
    speaker_roles,
    turn_speaker,
    turn_time,
)
from memguard.schema.receipt import Budget, MethodReport, Receipt, ReceiptFactory
from memguard.schema.relations import RecordChange
from memguard.store_guard.values import (
    adds_to_item,
    is_encoded,
    judged_text,
)
from memguard.write.deciding import OnWriteFailure
from memguard.write.gates import Gate, Pipeline, digest_of, screen_digest
from memguard.write.reconciling import Reconciled, Reconciler, commit_reconciled, turn_of

METHOD = "guard_store"
"""The actor of its events and the name of its policy; it is in the digest of every receipt."""
_NO_SOURCE = (
    "not judged: the write has no source; write inside a graph run with `messages`, inside "
    "`use_source(...)`, or give `guard_store` a `source`"
)
_NO_TEXT = (
    "not judged: the file is stored as base64 and holds no text; release it, or leave its "
    "namespace out of `guards`"
)


@dataclass(frozen=True, kw_only=True)
class Write:
    """One write, and the conversation that supports it; `None` if there is none."""

    op: PutOp
    source: Conversation | None


@dataclass(frozen=True, kw_only=True)
class WriteGate:
    """Decides which writes of a guarded store are made."""

    backing: Backing
    pipeline: Pipeline
    policy_digest: str
    needs_source: bool
    shadow: bool
    budget: Budget
    on_failure: OnWriteFailure = "raise"
    screen: Screen = "secrets"
    reconciler: Reconciler | None = None

    async def decide(self, writes: Sequence[Write]) -> tuple[Receipt | None, ...]:
        """The receipt of each write; `None` for one without a text, which is allowed.

        Raises:
            MemguardError: If a gate cannot judge; nothing may be written then. In shadow mode, and
                if failures are reported, such an error is recorded instead.
        """
        # Before the first write: an earlier process may have ended between the log and the store.
        await self.backing.recover_once()
        run_id = uuid.uuid4().hex
        # One meter for all writes of a call, so that the budget limits the call.
        with use_meter(Meter(self.budget)):
            return tuple(
                await asyncio.gather(*(self._decide(write, run_id=run_id) for write in writes))
            )

    async def allows(self, receipt: Receipt | None) -> bool:
        """Whether the write may be made: it was admitted, or a person has released it since."""
        if receipt is None or self.shadow or receipt.outcome == "stored":
            return True
        # Not on the receipt, which is never changed: the log has the state of a quarantined write.
        state = await self.backing.receipts.astate(receipt.id)
        return state in {"releasing", "released"}

    async def _decide(self, write: Write, *, run_id: str) -> Receipt | None:
        text = await self._judged_text(write.op)
        # An empty value, or a new version of a file that only deletes lines: it adds no memory.
        if is_blank(text):
            return None
        candidate = _candidate(text, write=write)
        # The same write may come again, for example from a retried tool call; it is judged once.
        earlier = await self.backing.receipts.afind(candidate.id, policy_digest=self.policy_digest)
        if earlier is not None:
            return await self._repeat(earlier, candidate, write=write, run_id=run_id)
        reports: tuple[MethodReport, ...] = ()
        value = cast("Mapping[str, Any]", write.op.value)
        decision = self._refuse(candidate, value=value, source=write.source)
        if decision is None:
            decision, reports = await self._judge(candidate, source=write.source, run_id=run_id)
        if decision.outcome == "admit" and self.reconciler is not None:
            return await self._reconcile(
                self.reconciler, candidate, decision, write=write, reports=reports, run_id=run_id
            )
        receipt = self._receipt(candidate, decision, write=write, reports=reports, run_id=run_id)
        logged = await self._log(receipt)
        # Of two concurrent writes of the same text, the second one has the receipt of the first.
        if logged.id == receipt.id:
            return logged
        return await self._repeat(logged, candidate, write=write, run_id=run_id)

    async def _reconcile(
        self,
        reconciler: Reconciler,
        candidate: CandidateMemory,
        admitted: AdmissionDecision,
        *,
        write: Write,
        reports: tuple[MethodReport, ...],
        run_id: str,
    ) -> Receipt:
        """Compare an admitted write with the memories near it, and log what it changes."""
        store = self.backing.store

        async def commit(outcome: Reconciled) -> Receipt:
            receipt = self._receipt(
                candidate,
                _decision_on_item(outcome),
                write=write,
                reports=(*reports, outcome.report),
                run_id=run_id,
                changes=outcome.changes,
            )
            return await self._log(receipt)

        async with turn_of(store, candidate.namespace):
            logged = await commit_reconciled(
                reconciler,
                candidate,
                admitted=admitted,
                commit=commit,
                store=store,
                key=_encodable(write.op.key),
                context=write.source or Conversation(),
                run_id=run_id,
            )
            if logged.outcome != "stored" and not self.shadow:
                # No write follows after which the changes could be made.
                await finish_changes(self.backing.journal, store, [logged], actor=METHOD)
            return logged

    def _receipt(
        self,
        candidate: CandidateMemory,
        decision: AdmissionDecision,
        *,
        write: Write,
        run_id: str,
        reports: tuple[MethodReport, ...] = (),
        policy_digest: str = "",
        changes: tuple[RecordChange, ...] = (),
    ) -> Receipt:
        return ReceiptFactory().create(
            candidate,
            decision,
            reports=reports,
            run_id=run_id,
            record_key=_encodable(write.op.key),
            policy_digest=policy_digest or self.policy_digest,
            effect="shadow" if self.shadow else "caller",
            value=_as_json(cast("Mapping[str, Any]", write.op.value)),
            changes=changes,
        )

    async def _log(self, receipt: Receipt) -> Receipt:
        (logged,) = await log_decisions(
            self.backing.journal, self.backing.store, [receipt], actor=METHOD
        )
        # What leaves the log has no secrets.
        visible = logged.redacted()
        if logged.id == receipt.id:
            _emit(visible)
        return visible

    async def _repeat(
        self, first: Receipt, candidate: CandidateMemory, *, write: Write, run_id: str
    ) -> Receipt:
        """The receipt of a write whose text was judged before, without judging it again.

        The receipt of the same write if it still applies, else a new one that refers to the first.
        """
        key, value = _encodable(write.op.key), _as_json(cast("Mapping[str, Any]", write.op.value))
        fields = json.dumps(value, sort_keys=True)
        receipt, number = first, 0
        while not await self._covers(receipt, key=key, value=value):
            number += 1
            # One digest per item, since the log has one receipt per candidate and digest. The
            # number tells apart what was deleted or replaced, and then written again.
            digest = digest_of(self.policy_digest, key, fields, str(number))
            found = await self.backing.receipts.afind(candidate.id, policy_digest=digest)
            if found is None:
                decision = await self._carried(first)
                found = await self._log(
                    self._receipt(
                        candidate, decision, write=write, run_id=run_id, policy_digest=digest
                    )
                )
            receipt = found
        return receipt

    async def _covers(self, receipt: Receipt, *, key: str, value: dict[str, Any] | None) -> bool:
        # A receipt that left the log has no secrets.
        if receipt.record_key != key or receipt.value != redact_values(value, screen=self.screen):
            return False
        return await self.backing.journal.aread(is_latest_of_key, receipt.id)

    async def _carried(self, first: Receipt) -> AdmissionDecision:
        """The decision on the same text, for another item."""
        if first.outcome == "quarantined" and await self.allows(first):
            return AdmissionDecision(
                outcome="admit",
                reason="human_approved",
                explanation=f"a person released the same text; see receipt {first.id}",
            )
        explanation = f"{first.decision.explanation} (judged before; see receipt {first.id})"
        return first.decision.model_copy(update={"explanation": explanation})

    async def confirm(self, made: Sequence[tuple[Write, Receipt]]) -> None:
        """Log that these writes are in the store."""
        done = [
            (receipt.id, receipt.candidate.id, _lifetime(write.op, self.backing.store))
            for write, receipt in made
            if receipt.effect == "caller" and receipt.outcome == "stored"
        ]
        if done:
            journal = self.backing.journal
            await journal.awrite(end_writes, done, actor=METHOD, at=journal.now())
        changing = [receipt for _, receipt in made if receipt.changes]
        if changing and not self.shadow:
            await finish_changes(self.backing.journal, self.backing.store, changing, actor=METHOD)

    async def begin_deletions(self, locations: Sequence[NamespacedKey]) -> tuple[str, ...]:
        """Log that these items are about to be deleted; returns their receipts."""
        if not locations:
            return ()
        return await intend_deletions(
            self.backing.journal, locations, actor=METHOD, reason="deleted through the store"
        )

    async def end_deletions(self, receipt_ids: Sequence[str]) -> None:
        """Log that the items of these receipts were deleted."""
        await end_deletions(self.backing.journal, receipt_ids, actor=METHOD)

    async def _judged_text(self, op: PutOp) -> str:
        """The text that the write adds to the store.

        Of a text of several lines, such as a file, lines that are stored under its key already are
        not judged again: their sources are earlier conversations, which are not available here.
        """
        value = cast("Mapping[str, Any]", op.value)
        if is_encoded(value):
            # The hash makes another file under the same key another candidate.
            digest = hashlib.sha256(str(value.get("content")).encode()).hexdigest()
            return f"{op.key}: a file that is no text, sha256 of its base64 {digest[:16]}"
        if not adds_to_item(value):
            return judged_text(value, old=None)
        location = GetOp(tuple(op.namespace), str(op.key), refresh_ttl=False)
        (item,) = await call_store(self.backing.store, [location])
        return judged_text(value, old=None if item is None else item.value)

    def _refuse(
        self, candidate: CandidateMemory, *, value: Mapping[str, Any], source: Conversation | None
    ) -> AdmissionDecision | None:
        if self.pipeline.gates and is_encoded(value):
            return AdmissionDecision(
                outcome="quarantine", reason="blank_text", explanation=_NO_TEXT
            )
        # A secret in another field of the item would be stored with it.
        others = json.dumps(_without_text(value), ensure_ascii=False, default=str)
        refused = refuse_text(candidate.text, screen=self.screen) or refuse_text(
            others, screen=self.screen
        )
        if refused is not None or not self.pipeline.gates or not self.needs_source:
            return refused
        if source is None:
            # In quarantine rather than refused: a person may know what supports it.
            return AdmissionDecision(
                outcome="quarantine", reason="no_source", explanation=_NO_SOURCE
            )
        refused = refuse_source(source.evidence, required=True)
        return refused or withhold(candidate, source.evidence)

    async def _judge(
        self, candidate: CandidateMemory, *, source: Conversation | None, run_id: str
    ) -> tuple[AdmissionDecision, tuple[MethodReport, ...]]:
        judgement = await self.pipeline.judge(
            candidate, source=source or Conversation(), run_id=run_id
        )
        if judgement.decision is not None:
            return judgement.decision, judgement.reports
        error = judgement.error
        if error is None:
            msg = "a judgement has a decision or an error"
            raise AssertionError(msg)
        if not self.shadow and self.on_failure == "raise":
            raise error
        # Shadow mode only observes, and a reported failure must not fail the caller's run.
        decision = AdmissionDecision(
            outcome="quarantine",
            reason="inconclusive",
            explanation=f"not judged: {error.message} [{error.code}]",
        )
        return decision, judgement.reports


def _decision_on_item(outcome: Reconciled) -> AdmissionDecision:
    """The decision on a caller's item, which is written unchanged, without marks of its own."""
    if outcome.lifecycle.is_current:
        return outcome.decision
    explanation = (
        f"{outcome.decision.explanation}; a caller's own item cannot be stored as past: release it "
        "to store it as current"
    )
    return AdmissionDecision(
        outcome="quarantine",
        reason="conflict",
        explanation=explanation,
        method=outcome.report.method,
    )


def digest_of_gates(
    gates: Sequence[Gate], *, needs_source: bool, shadow: bool, screen: Screen = "secrets"
) -> str:
    """The digest of the policy: a text from the same source is judged once under each policy."""
    settings = f"{METHOD}:{needs_source}:{'shadow' if shadow else 'guard'}"
    fingerprints = (gate.fingerprint for gate in gates)
    return digest_of(settings, *fingerprints, *screen_digest(screen))


def _candidate(text: str, *, write: Write) -> CandidateMemory:
    """The write as a candidate that is based on all turns of its source."""
    turns = write.source.turns if write.source is not None else ()
    return CandidateMemory(
        text=text,
        namespace=tuple(_encodable(str(label)) for label in write.op.namespace),
        turn_ids=tuple(turn.id for turn in turns),
        said_by=speaker_roles(turns),
        said_at=turn_time(turns),
        speaker=turn_speaker(turns),
        conversation_id=write.source.id if write.source is not None else "",
    )


def _lifetime(op: PutOp, store: BaseStore) -> float | None:
    """Minutes until the item of a put expires; `None` if it never does."""
    return op.ttl if isinstance(op.ttl, int | float) else default_ttl(store)


def _encodable(text: str) -> str:
    """The text with unpaired surrogates as escape sequences, because UTF-8 cannot encode them."""
    return text.encode("utf-8", "backslashreplace").decode()


def _as_json(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """The value for the receipt; `None` if JSON would not return it unchanged."""
    # Compared with the original: JSON turns tuples into lists, and keys into strings.
    try:
        plain = json.loads(json.dumps(value, allow_nan=False, ensure_ascii=False).encode())
    except (TypeError, ValueError, RecursionError):
        return None
    return plain if plain == value else None


def _emit(receipt: Receipt) -> None:
    try:
        writer = get_stream_writer()
    except (RuntimeError, KeyError):
        return  # no graph runs here, so there is no stream
    writer(
        {
            "memguard": "store",
            "step": "gated",
            "candidate": receipt.candidate.id,
            "text": receipt.candidate.text,
            "outcome": receipt.outcome,
            "shadow": receipt.effect == "shadow",
        }
    )


def _without_text(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry for name, entry in value.items() if name not in TEXT_FIELDS}
