"""The meters of the runs in progress, found by run id.

The branches of a run are separate tasks, perhaps in separate threads, that share only its id.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from memguard.errors import MemguardError
from memguard.journal.backing import Backing
from memguard.journal.caches import LoggedExtraction
from memguard.llm.budget import Meter, use_meter
from memguard.methods.writer import Pass, readable_turns
from memguard.methods.writer.config import Writer
from memguard.methods.writer.rules import Chunk, plan_chunks, turn_keys
from memguard.schema.base import Namespace
from memguard.schema.failures import Failure, failure_of
from memguard.schema.memory import CandidateMemory, Conversation
from memguard.schema.usage import Budget
from memguard.write.gates import GateGraph
from memguard.write.state import PassReport, PassState, Proposal

_MAX_OPEN = 10_000
"""Limit of open meters; those of runs in which a node raised are never closed."""


class Meters:
    """One meter per run, each with the same budget."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._lock = threading.Lock()
        self._open: OrderedDict[str, Meter] = OrderedDict()

    def open(self, run_id: str) -> Meter:
        """Start the meter of a run."""
        return self.of(run_id)

    def of(self, run_id: str) -> Meter:
        """The meter of a run; a new one for a run that started in another process."""
        with self._lock:
            meter = self._open.get(run_id)
            if meter is None:
                meter = self._open[run_id] = Meter(self._budget)
                if len(self._open) > _MAX_OPEN:
                    self._open.popitem(last=False)
            return meter

    def close(self, run_id: str) -> Meter:
        """End a run and hand over its meter."""
        meter = self.of(run_id)
        with self._lock:
            self._open.pop(run_id, None)
        return meter


async def plan_passes(
    conversation: Conversation,
    *,
    backing: Backing,
    namespace: Namespace,
    spec: Writer,
    digest: str,
    run_id: str,
) -> tuple[tuple[PassState, ...], tuple[Proposal, ...]]:
    """The passes that are still to be read, and what earlier passes proposed."""
    turns = readable_turns(conversation.turns, spec=spec)
    readable = Conversation(turns=turns, id=conversation.id)
    keys = turn_keys(readable, namespace=namespace)
    earlier = await backing.extractions.aof_turns(keys, writer_digest=digest)
    read = {key for extraction in earlier for key in extraction.turn_keys}
    new = {index for index, key in enumerate(keys) if key not in read}
    if not conversation.has_user_words:
        new = set()
    chunks = plan_chunks(turns, new=new, spec=spec)
    new_keys = iter([keys[index] for index in sorted(new)])
    passes = tuple(
        PassState(
            run_id=run_id,
            namespace=namespace,
            earlier=Conversation(turns=chunk.earlier, id=conversation.id),
            new=Conversation(turns=chunk.new, id=conversation.id),
            keys=tuple(next(new_keys) for _ in chunk.new),
        )
        for chunk in chunks
    )
    return passes, _proposed_before(earlier, readable, keys=keys, spec=spec)


async def read_pass(
    state: PassState, *, backing: Backing, writer: GateGraph, digest: str, meter: Meter
) -> PassReport:
    """Read one pass and record its candidates durably, so that it is never read again.

    A failure leaves the turns unread. The run goes on and reports it, and a later run reads them.
    """
    turn_ids = tuple(dict.fromkeys(turn.id for turn in state.new.turns))
    source = Conversation(turns=(*state.earlier.turns, *state.new.turns), id=state.new.id)
    planned = Pass(earlier=state.earlier.turns, new=state.new.turns)
    try:
        with use_meter(meter):
            result: dict[str, Any] = await writer.ainvoke(
                {"conversation": source, "passes": (planned,)}
            )
    except MemguardError as error:
        return PassReport(
            unread=turn_ids,
            failures=(failure_of(error, step="extract", about=", ".join(turn_ids)),),
        )
    candidates = tuple(
        candidate.located(state.namespace) for candidate in result.get("candidates", ())
    )
    if result.get("unread"):
        unread = result["unread"][0]
        failure = Failure(
            code=unread.reason, message=unread.detail, step="extract", about=", ".join(turn_ids)
        )
        return PassReport(unread=turn_ids, failures=(failure,))
    await backing.extractions.arecord(
        LoggedExtraction(
            conversation_key="/".join((*state.namespace, state.new.id)),
            writer_digest=digest,
            turn_keys=state.keys,
            candidates=candidates,
            run_id=state.run_id,
        )
    )
    return PassReport(
        proposals=tuple(Proposal(candidate=c, source=source) for c in candidates),
        notes=tuple(result.get("notes", ())),
    )


def propose(
    candidates: Sequence[CandidateMemory], *, conversation: Conversation, spec: Writer
) -> tuple[Proposal, ...]:
    """Add the source to candidates that the caller proposes: the turns around those they name."""
    return tuple(
        Proposal(candidate=candidate, source=_source_of(candidate, conversation, spec=spec))
        for candidate in candidates
    )


def _source_of(
    candidate: CandidateMemory, conversation: Conversation, *, spec: Writer
) -> Conversation:
    named = [i for i, t in enumerate(conversation.turns) if t.id in candidate.turn_ids]
    if not named:
        return conversation
    start = max(0, named[0] - spec.context_turns)
    end = named[-1] + spec.context_turns + 1
    return Conversation(turns=conversation.turns[start:end], id=conversation.id)


def _proposed_before(
    earlier: Sequence[LoggedExtraction],
    readable: Conversation,
    *,
    keys: Sequence[str],
    spec: Writer,
) -> tuple[Proposal, ...]:
    """Candidates of earlier passes with the turns they were drawn from, matched by key."""
    positions = {key: index for index, key in enumerate(keys)}
    proposals: list[Proposal] = []
    for extraction in earlier:
        indexes = sorted(positions[key] for key in extraction.turn_keys if key in positions)
        if len(indexes) < len(extraction.turn_keys):
            continue  # drawn from turns that this conversation no longer shows
        chunk: Chunk = plan_chunks(
            readable.turns[: indexes[-1] + 1], new=frozenset(indexes), spec=spec
        )[0]
        source = Conversation(turns=chunk.turns, id=readable.id)
        proposals += [Proposal(candidate=c, source=source) for c in extraction.candidates]
    return tuple(proposals)
