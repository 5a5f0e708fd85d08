"""Reading a conversation: what is new in it, and the candidates that one pass gives."""

from collections.abc import Sequence
from typing import Any

from memguard.errors import MemguardError
from memguard.guard.backing import Backing
from memguard.guard.failures import failure_of
from memguard.guard.gates import GateGraph
from memguard.guard.state import Extracted, PassState, Proposal
from memguard.llm.budget import Meter
from memguard.llm.metering import use_meter
from memguard.methods.writer import readable_turns
from memguard.policy.chunks import Chunk, plan_chunks, turn_keys
from memguard.schema.base import Namespace
from memguard.schema.config import Writer
from memguard.schema.memory import CandidateMemory, Conversation
from memguard.schema.write import Failure
from memguard.stores.extractions import Extraction


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
) -> Extracted:
    """Read one pass and keep durably what came out, so that it is never asked for again.

    A failure leaves the turns unread: the run goes on, reports it, and a later run reads them.
    """
    turn_ids = tuple(dict.fromkeys(turn.id for turn in state.new.turns))
    shown = Conversation(turns=(*state.earlier.turns, *state.new.turns), id=state.new.id)
    try:
        with use_meter(meter):
            written: dict[str, Any] = await writer.ainvoke(
                {"conversation": shown, "new_from": len(state.earlier.turns)}
            )
    except MemguardError as error:
        return Extracted(
            unread=turn_ids,
            failures=(failure_of(error, step="extract", about=", ".join(turn_ids)),),
        )
    candidates = tuple(
        candidate.located(state.namespace) for candidate in written.get("candidates", ())
    )
    if written.get("unread"):
        failed = written["unread"][0]
        failure = Failure(
            code=failed.reason, message=failed.detail, step="extract", about=", ".join(turn_ids)
        )
        return Extracted(unread=turn_ids, failures=(failure,))
    await backing.extractions.arecord(
        Extraction(
            conversation_key="/".join((*state.namespace, state.new.id)),
            writer_digest=digest,
            turn_keys=state.keys,
            candidates=candidates,
            run_id=state.run_id,
        )
    )
    return Extracted(
        proposals=tuple(Proposal(candidate=c, source=shown) for c in candidates),
        notes=tuple(written.get("notes", ())),
    )


def propose(
    candidates: Sequence[CandidateMemory], *, conversation: Conversation, spec: Writer
) -> tuple[Proposal, ...]:
    """Give each candidate of the caller's own its source: the turns around those it names."""
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
    earlier: Sequence[Extraction],
    readable: Conversation,
    *,
    keys: Sequence[str],
    spec: Writer,
) -> tuple[Proposal, ...]:
    """Candidates of earlier passes with the turns they were drawn from, found by their keys."""
    place = {key: index for index, key in enumerate(keys)}
    proposals: list[Proposal] = []
    for extraction in earlier:
        indexes = sorted(place[key] for key in extraction.turn_keys if key in place)
        if len(indexes) < len(extraction.turn_keys):
            continue  # drawn from turns that this conversation no longer shows
        chunk: Chunk = plan_chunks(
            readable.turns[: indexes[-1] + 1], new=frozenset(indexes), spec=spec
        )[0]
        shown = Conversation(turns=chunk.turns, id=readable.id)
        proposals += [Proposal(candidate=c, source=shown) for c in extraction.candidates]
    return tuple(proposals)
