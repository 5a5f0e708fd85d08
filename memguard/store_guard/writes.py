"""What a new version of a text adds to the one before it. Pure."""

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

from memguard.errors import MemguardError
from memguard.journal.backing import Backing
from memguard.journal.receipts import record_decisions
from memguard.llm.budget import Meter, use_meter
from memguard.methods.admission import refuse_source, refuse_text
from memguard.read.recall import text_of
from memguard.schema.base import Namespace, is_blank
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import CandidateMemory, Conversation, speaker_roles, turn_time
from memguard.schema.receipt import MethodReport, Receipt, ReceiptFactory
from memguard.schema.usage import Budget
from memguard.store_calls import call_store
from memguard.write.gates import Gate, Pipeline, digest_of

_MOST_COMPARED = 1_000_000
"""Pairs of lines that are compared; of longer texts all between the first and the last change is
taken for new. Matching lines costs up to their product."""


def added_text(new: str, *, old: str) -> str:
    """The lines of a text that the version before did not have, each under its heading.

    A line that was moved counts as new: it may say something else where it stands now. What was
    only taken out adds nothing, and the result is empty.

    Args:
        new: The new version.
        old: The version before.
    """
    after, before = new.splitlines(), old.splitlines()
    added = [at for at in _added(after, before) if after[at].strip()]
    return "\n".join(after[at] for at in sorted({*added, *_headings(after, added)}))


def _added(after: Sequence[str], before: Sequence[str]) -> list[int]:
    """Places of the lines that are new."""
    start = 0
    while start < min(len(after), len(before)) and after[start] == before[start]:
        start += 1
    end = 0
    while end < min(len(after), len(before)) - start and after[-1 - end] == before[-1 - end]:
        end += 1
    changed, was = after[start : len(after) - end], before[start : len(before) - end]
    if len(changed) * len(was) > _MOST_COMPARED:
        return list(range(start, start + len(changed)))
    steps = SequenceMatcher(None, was, changed, autojunk=False).get_opcodes()
    return [start + at for kind, _, _, i, j in steps if kind != "equal" for at in range(i, j)]


def _headings(lines: Sequence[str], added: Sequence[int]) -> set[int]:
    """Places of the headings that these lines stand under."""
    wanted, found, last = set(added), set[int](), -1
    for at, line in enumerate(lines):
        if at in wanted and last >= 0:
            found.add(last)
        if line.startswith("#"):
            last = at
    return found


METHOD = "guard_store"
_NO_SOURCE = (
    "not judged: nobody said what it rests on; write inside a graph run with `messages`, inside "
    "`use_source(...)`, or give `guard_store` a `source`"
)

_NO_TEXT = (
    "not judged: the file is stored as base64 and holds no text; release it, or leave its "
    "namespace out of `guards`"
)


@dataclass(frozen=True, kw_only=True)
class Write:
    """One write, and the conversation it rests on."""

    op: PutOp
    source: Conversation | None


@dataclass(frozen=True, kw_only=True)
class WriteGate:
    """What a guarded store asks before it writes."""

    backing: Backing
    pipeline: Pipeline
    policy_digest: str
    needs_source: bool
    shadow: bool
    budget: Budget

    async def rule(self, writes: Sequence[Write]) -> tuple[Receipt | None, ...]:
        """The decision on each write; `None` for one that holds no text and is let through.

        Raises:
            MemguardError: If a gate cannot judge; nothing may be written then. Never in shadow.
        """
        run_id = uuid.uuid4().hex
        with use_meter(Meter(self.budget)):
            return tuple(
                await asyncio.gather(*(self._rule_one(write, run_id=run_id) for write in writes))
            )

    async def lets_through(self, receipt: Receipt | None) -> bool:
        """Whether the write may be made: it was admitted, or a person released it since."""
        if receipt is None or self.shadow or receipt.outcome == "stored":
            return True
        state = await self.backing.receipts.astate(receipt.id)
        return state in {"releasing", "released"}

    async def _rule_one(self, write: Write, *, run_id: str) -> Receipt | None:
        text = await self._judged_text(write.op)
        if is_blank(text):
            return None
        candidate = _candidate(text, write=write)
        earlier = await self.backing.receipts.afind(candidate.id, policy_digest=self.policy_digest)
        if earlier is not None:
            return earlier
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
            record_key=_writable(write.op.key),
            policy_digest=self.policy_digest,
            effect="shadow" if self.shadow else "caller",
            value=_plain(value),
        )
        (logged,) = await self.backing.journal.awrite(
            functools.partial(
                record_decisions,
                receipts=[receipt],
                actor=METHOD,
                at=self.backing.journal.now(),
            )
        )
        _tell(logged)
        return logged

    async def _judged_text(self, op: PutOp) -> str:
        """What the write adds to the store.

        Of a text of several lines, such as a file, what lies under its key already is not judged
        again: it rests on earlier conversations, which nobody shows here.
        """
        value = cast("Mapping[str, Any]", op.value)
        if is_encoded(value):
            # Named by its bytes: another file under the same key is another candidate.
            named = hashlib.sha256(str(value.get("content")).encode()).hexdigest()
            return f"{op.key}: a file that is no text, sha256 of its base64 {named[:16]}"
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
        refused = refuse_text(candidate.text)
        if refused is not None or not self.pipeline.gates or not self.needs_source:
            return refused
        if source is None:
            # Held, not refused: a person may know what it rests on.
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
        if judgement.error is None:
            msg = "a judgement has a decision or an error"
            raise AssertionError(msg)
        if not self.shadow:
            raise judgement.error
        # Shadow only watches: what fails here must not fail the write.
        return _unjudged(judgement.error), judgement.reports


def memory_text(value: Mapping[str, Any]) -> str:
    """What a value says, whoever shaped it: memguard, langmem, deepagents, a hand-written `put`.

    A text field (`content`, `text`, `memory`), lines of a file as one text, else the value as
    JSON. Empty for a value that holds nothing.
    """
    lines = value.get("content")
    if isinstance(lines, list) and all(isinstance(line, str) for line in cast("list[Any]", lines)):
        return "\n".join(cast("list[str]", lines))
    text = text_of(value)
    if is_blank(text) and any(entry not in (None, "", [], {}) for entry in value.values()):
        return json.dumps(value, ensure_ascii=False, default=str)
    return text


def is_encoded(value: Mapping[str, Any]) -> bool:
    """Whether it is a file whose bytes are no text, as deepagents stores an image."""
    return value.get("encoding") == "base64"


def digest_of_gates(gates: Sequence[Gate], *, needs_source: bool, shadow: bool) -> str:
    """Names the policy: a text from the same source is judged once under each."""
    settings = f"{METHOD}:{needs_source}:{'shadow' if shadow else 'guard'}"
    return digest_of(settings, *(gate.fingerprint for gate in gates))


def _candidate(text: str, *, write: Write) -> CandidateMemory:
    """The write as a candidate that rests on all it was shown with."""
    turns = write.source.turns if write.source is not None else ()
    return CandidateMemory(
        text=text,
        namespace=_labels(write.op.namespace),
        turn_ids=tuple(turn.id for turn in turns),
        said_by=speaker_roles(turns),
        said_at=turn_time(turns),
        conversation_id=write.source.id if write.source is not None else "",
    )


def _labels(namespace: Sequence[Any]) -> Namespace:
    return tuple(_writable(str(label)) for label in namespace)


def _writable(text: str) -> str:
    """The text as a receipt can hold it: an unpaired surrogate, which no file can, is spelled."""
    return text.encode("utf-8", "backslashreplace").decode()


def _plain(value: Mapping[str, Any]) -> dict[str, Any] | None:
    """The value as a receipt can keep it; `None` when JSON would not give it back as it was."""
    try:
        plain = json.loads(json.dumps(value, allow_nan=False, ensure_ascii=False).encode())
    except (TypeError, ValueError, RecursionError):
        return None
    return plain if plain == value else None


def _unjudged(error: MemguardError) -> AdmissionDecision:
    return AdmissionDecision(
        outcome="quarantine",
        reason="inconclusive",
        explanation=f"not judged: {error.message} [{error.code}]",
    )


def _tell(receipt: Receipt) -> None:
    try:
        writer = get_stream_writer()
    except (RuntimeError, KeyError):
        return  # no graph runs here, so nobody streams
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
