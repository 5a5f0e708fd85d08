"""Judging the writes of a guarded store.

A write becomes a candidate: the text of its value, with the turns of its source as evidence. It
passes the gates of the guard, and its decision is written to the log before the store is called.
Of a text of several lines only what a new version adds is judged; `added_text` finds it.
"""

import asyncio
import functools
import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, cast

from langgraph.config import get_stream_writer
from langgraph.store.base import GetOp, PutOp

from memguard.journal.commit import Backing
from memguard.journal.receipts import record_decisions
from memguard.llm.limits import Meter, use_meter
from memguard.methods.admission import refuse_source, refuse_text
from memguard.portal import call_store
from memguard.read.recall import TEXT_FIELDS, text_of
from memguard.redaction import Screen
from memguard.schema.base import is_blank
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import CandidateMemory, Conversation, speaker_roles, turn_time
from memguard.schema.receipt import Budget, MethodReport, Receipt, ReceiptFactory
from memguard.write.gates import Gate, Pipeline, digest_of, screen_digest

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

_MAX_COMPARED_PAIRS = 1_000_000
"""Limit of the pairs of lines that are compared, because matching lines takes up to their product.
Of longer texts, everything between the first and the last change counts as new."""


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
    screen: Screen = "secrets"

    async def decide(self, writes: Sequence[Write]) -> tuple[Receipt | None, ...]:
        """The receipt of each write; `None` for one without a text, which is allowed.

        Raises:
            MemguardError: If a gate cannot judge; nothing may be written then. In shadow mode
                such an error is recorded instead.
        """
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
            return earlier  # without secrets, as the log returns it
        reports: tuple[MethodReport, ...] = ()
        value = cast("Mapping[str, Any]", write.op.value)
        decision = self._refuse(candidate, value=value, source=write.source)
        if decision is None:
            decision, reports = await self._judge(candidate, source=write.source, run_id=run_id)
        receipt = ReceiptFactory().create(
            candidate,
            decision,
            reports=reports,
            run_id=run_id,
            record_key=_encodable(write.op.key),
            policy_digest=self.policy_digest,
            effect="shadow" if self.shadow else "caller",
            value=_as_json(value),
        )
        journal = self.backing.journal
        record = functools.partial(
            record_decisions, receipts=[receipt], actor=METHOD, at=journal.now()
        )
        (logged,) = await journal.awrite(record)
        visible = logged.redacted()
        _emit(visible)
        return visible

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
        text = memory_text(value)
        if "\n" not in text.strip():
            return text
        location = GetOp(tuple(op.namespace), str(op.key), refresh_ttl=False)
        (item,) = await call_store(self.backing.store, [location])
        return text if item is None else added_text(text, old=memory_text(item.value))

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
        return refuse_source(source.evidence, required=True)

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
        if not self.shadow:
            raise error
        # Shadow mode only observes: an error here must not fail the write.
        decision = AdmissionDecision(
            outcome="quarantine",
            reason="inconclusive",
            explanation=f"not judged: {error.message} [{error.code}]",
        )
        return decision, judgement.reports


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
        conversation_id=write.source.id if write.source is not None else "",
    )


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


def memory_text(value: Mapping[str, Any]) -> str:
    """The text of a value of memguard, langmem, deepagents, or of your own `put`.

    A text field (`content`, `text` or `memory`), or the lines of a file as one text, else the value
    as JSON. Empty for an empty value.
    """
    lines = value.get("content")
    if isinstance(lines, list) and all(isinstance(line, str) for line in cast("list[Any]", lines)):
        return "\n".join(cast("list[str]", lines))
    text = text_of(value)
    if is_blank(text) and any(entry not in (None, "", [], {}) for entry in value.values()):
        return json.dumps(value, ensure_ascii=False, default=str)
    return text


def _without_text(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry for name, entry in value.items() if name not in TEXT_FIELDS}


def is_encoded(value: Mapping[str, Any]) -> bool:
    """Whether the value is a binary file, as deepagents stores an image."""
    return value.get("encoding") == "base64"


def added_text(new: str, *, old: str) -> str:
    """The lines of a text that the previous version did not have, each under its heading.

    A line that was moved counts as new, because it may have another meaning in its new context.
    Deletions add nothing; if there is nothing else, the result is empty.

    Args:
        new: The new version.
        old: The previous version.
    """
    after, before = new.splitlines(), old.splitlines()
    added = [index for index in _added_lines(after, before) if after[index].strip()]
    return "\n".join(after[index] for index in sorted({*added, *_headings(after, added)}))


def _added_lines(after: Sequence[str], before: Sequence[str]) -> list[int]:
    """Indexes of the lines that are new."""
    # Equal beginnings and ends are skipped first: most changes are small, and files are long.
    start = 0
    while start < min(len(after), len(before)) and after[start] == before[start]:
        start += 1
    end = 0
    while end < min(len(after), len(before)) - start and after[-1 - end] == before[-1 - end]:
        end += 1
    changed, replaced = after[start : len(after) - end], before[start : len(before) - end]
    if len(changed) * len(replaced) > _MAX_COMPARED_PAIRS:
        return list(range(start, start + len(changed)))
    # Without `autojunk`, which ignores frequent lines: a repeated line may be new.
    steps = SequenceMatcher(None, replaced, changed, autojunk=False).get_opcodes()
    return [start + line for kind, _, _, i, j in steps if kind != "equal" for line in range(i, j)]


def _headings(lines: Sequence[str], added: Sequence[int]) -> set[int]:
    """Indexes of the nearest headings above these lines."""
    new, headings, latest = set(added), set[int](), -1
    for index, line in enumerate(lines):
        if index in new and latest >= 0:
            headings.add(latest)
        if line.startswith("#"):
            latest = index
    return headings
