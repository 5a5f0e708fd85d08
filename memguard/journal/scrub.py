"""Takes secrets out of a store that has them already, so that it can be undone.

Of each record that contains a secret, the log gets the original, in quarantine, and the decision to
store the redacted text, in one transaction. Only then does the store change. An interruption
between the two is completed by `recover`, and by scrubbing again.
"""

import json
import sqlite3
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from langgraph.store.base import BaseStore, Item, PutOp, SearchOp

from memguard.errors import ErrorCode, InvalidInputError, StoreError
from memguard.journal.events import Intent, pending_intents, state_of
from memguard.journal.fulfilment import fulfil
from memguard.journal.journal import Journal
from memguard.journal.quarantine import Quarantine
from memguard.journal.receipts import ReceiptFilter, page, record_decision
from memguard.journal.removal import delete_memory, log_deletion
from memguard.journal.storing import call_or_advise, record_of_item
from memguard.redaction import Screen, Sensitive, is_secret, redact, redact_values
from memguard.schema.base import Namespace
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import CandidateMemory, Provenance, lifecycle_of, record_key
from memguard.schema.receipt import Receipt, ReceiptFactory

METHOD = "scrub"
"""The name of the method on its receipts."""
_BATCH = 500
_KINDS: tuple[Sensitive, ...] = (
    *("private key", "API key", "token", "password", "card number", "account number"),
    *("e-mail address", "phone number", "street address", "identity number"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ScrubReport:
    """What a store contains, or what was done about it; it never repeats a secret."""

    run_id: str
    """Names the run, for undoing it; empty if nothing was changed."""
    examined: int
    """Records that were read."""
    records: int
    """Records that contain something sensitive."""
    kinds: dict[Sensitive, int] = field(default_factory=dict[Sensitive, int])
    """How many of each kind."""


async def scrub(
    journal: Journal,
    store: BaseStore,
    *,
    actor: str,
    namespace: Namespace = (),
    screen: Screen = "secrets",
    apply: bool = False,
) -> ScrubReport:
    """Count the secrets in the namespaces that begin with `namespace`, and redact them if asked.

    Raises:
        StoreError: If the store failed. What was logged is completed by `recover`.
    """
    examined, kinds = 0, Counter[Sensitive]()
    items: list[Item] = []
    # All are read first, because the listing changes when records do.
    async for item in _items(store, namespace):
        examined += 1
        redacted = redact_values(item.value, screen=screen)
        if redacted != item.value:
            items.append(item)
            kinds.update(_kinds_of(item.value, redacted))
    run_id = uuid.uuid4().hex if apply and items else ""
    for item in items if apply else ():
        await _redact(journal, store, item, screen=screen, run_id=run_id, actor=actor)
    return ScrubReport(run_id=run_id, examined=examined, records=len(items), kinds=dict(kinds))


async def undo_scrub(
    journal: Journal, store: BaseStore, run_id: str, *, actor: str
) -> tuple[str, ...]:
    """Restore the records of a run as they were; doing it again changes nothing.

    Returns:
        The receipts of the originals that are in the store again.

    Raises:
        InvalidInputError: If there is no such run.
        StoreError: If the store failed; call again.
    """
    receipts = await journal.aread(_receipts_of, run_id)
    if not receipts:
        msg = f"no scrub has the id {run_id!r}; `memguard scrub --apply` prints the id of its run"
        raise InvalidInputError(msg, code=ErrorCode.RECEIPT_NOT_FOUND)
    held = [receipt for receipt in receipts if receipt.outcome == "quarantined"]
    states = {receipt.id: await journal.aread(state_of, receipt.id) for receipt in receipts}
    waiting = [receipt for receipt in held if states[receipt.id] in {"held", "releasing"}]
    reason = f"scrub {run_id} was undone"
    for receipt in receipts if waiting else ():
        # All redacted records first: one of them may be at the key of an original.
        if receipt.outcome == "stored" and states[receipt.id] == "stored":
            await delete_memory(journal, store, receipt.id, actor=actor, reason=reason)
    quarantine = Quarantine(journal)
    for receipt in waiting:
        await quarantine.arelease(receipt.id, actor=actor, store=store, reason=reason)
    return tuple(receipt.id for receipt in waiting)


async def _items(store: BaseStore, namespace: Namespace) -> AsyncIterator[Item]:
    offset = 0
    while True:
        op = SearchOp(namespace, limit=_BATCH, offset=offset, refresh_ttl=False)
        (items,) = await call_or_advise(store, [op], advice="scrub again")
        for item in items:
            yield item
        offset += len(items)
        if len(items) < _BATCH:
            return


def _kinds_of(value: Mapping[str, Any], redacted: Mapping[str, Any]) -> Counter[Sensitive]:
    before, after = str(value), str(redacted)
    counts: dict[Sensitive, int] = {
        kind: after.count(f"[{kind}]") - before.count(f"[{kind}]") for kind in _KINDS
    }
    return +Counter(counts)


async def _redact(
    journal: Journal, store: BaseStore, item: Item, *, screen: Screen, run_id: str, actor: str
) -> None:
    """Log the original and the redacted record, then change the store."""
    held, redacted = _receipts(item, screen=screen, run_id=run_id)
    intents = await journal.awrite(_log, held, redacted, actor=actor, at=journal.now())
    stored = await fulfil(journal, store, intents, actor=actor)
    if stored.problems:
        raise StoreError("; ".join(stored.problems), code=ErrorCode.STORE_FAILED)
    # Last: an interruption leaves the original, which the next run detects again.
    if redacted.record_key != item.key:
        deletion = PutOp(tuple(item.namespace), item.key, None)
        await call_or_advise(store, [deletion], advice="scrub again")


def _log(
    db: sqlite3.Connection, held: Receipt, redacted: Receipt, *, actor: str, at: datetime
) -> tuple[Intent, ...]:
    record_decision(db, held, actor=actor, at=at)
    # Before the new record has an event of its own: it may have the same key.
    old = (held.namespace, held.record_key)
    log_deletion(db, (old,), actor=actor, reason=f"redacted by scrub {held.run_id}", at=at)
    logged = record_decision(db, redacted, actor=actor, at=at)
    return tuple(intent for _, intent in pending_intents(db, receipt_ids=[logged.id]))


def _receipts(item: Item, *, screen: Screen, run_id: str) -> tuple[Receipt, Receipt]:
    """The receipts of the original, which goes into quarantine, and of the redacted record."""
    value: dict[str, Any] = dict(item.value)
    changed = redact_values(value, screen=screen)
    kinds = tuple(_kinds_of(value, changed))
    candidate = _candidate(item)
    text = redact(candidate.text, screen=screen)
    # memguard's own records have a key that follows from the text; others keep theirs.
    is_own = set(value) == {"content", "memguard"} and text != candidate.text
    hold = AdmissionDecision(
        outcome="quarantine",
        reason="secret" if any(map(is_secret, kinds)) else "personal_data",
        explanation=f"the stored record contained sensitive text ({', '.join(kinds)})",
        method=METHOD,
    )
    store = AdmissionDecision(
        outcome="admit",
        reason="redacted",
        explanation="the record without its sensitive text; the original is in quarantine",
        method=METHOD,
    )
    factory = ReceiptFactory()
    # The run is the policy, so that a record can be scrubbed again after it was restored.
    digest = f"{METHOD}:{run_id}"
    return (
        factory.create(
            candidate, hold, run_id=run_id, record_key=item.key, policy_digest=digest, value=value
        ),
        factory.create(
            candidate.model_copy(update={"text": text}),
            store,
            run_id=run_id,
            record_key=record_key(text) if is_own else item.key,
            # A record whose text did not change has the id of its original.
            policy_digest=f"{digest}:redacted",
            value=None if is_own else changed,
            lifecycle=lifecycle_of(changed) if is_own else None,
        ),
    )


def _candidate(item: Item) -> CandidateMemory:
    """A stored record as the candidate that it was, as far as its provenance tells."""
    content = item.value.get("content")
    text = content if isinstance(content, str) else json.dumps(item.value, ensure_ascii=False)
    record = record_of_item(item)
    origin = Provenance(candidate_id="", receipt_id="") if record is None else record.provenance
    return CandidateMemory(
        text=text,
        namespace=tuple(item.namespace),
        turn_ids=origin.turn_ids,
        subject=origin.subject,
        said_by=origin.said_by,
        said_at=origin.said_at,
        conversation_id=origin.conversation_id,
        speaker=origin.speaker,
    )


def _receipts_of(db: sqlite3.Connection, run_id: str) -> tuple[Receipt, ...]:
    receipts: list[Receipt] = []
    before: int | None = None
    while True:
        receipt_page = page(db, ReceiptFilter(run_id=run_id), limit=_BATCH, before=before)
        receipts += [
            receipt for receipt in receipt_page.receipts if receipt.decision.method == METHOD
        ]
        before = receipt_page.before
        if before is None:
            return tuple(receipts)
