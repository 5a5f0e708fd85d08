"""From a conversation to the proposals that go to the gates.

A proposal is a candidate with the turns that support it. The writer reads a conversation in passes;
a pass is recorded, so that no turn is read twice. Proposals of all passes are merged by text. Those
that cannot be judged, or whose text is stored already, are sorted out before any gate runs.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from langgraph.store.base import BaseStore, GetOp

from memguard.errors import ErrorCode, MemguardError, StoreError
from memguard.journal.caches import LoggedExtraction
from memguard.journal.commit import Backing
from memguard.llm.limits import Meter, use_meter
from memguard.methods.admission import refuse_source, refuse_text
from memguard.methods.writer import Pass, readable_turns
from memguard.methods.writer.config import Writer
from memguard.methods.writer.rules import plan_chunks, turn_keys
from memguard.portal import call_store
from memguard.schema.base import Namespace, is_blank
from memguard.schema.decision import AdmissionDecision
from memguard.schema.failures import Failure, failure_of
from memguard.schema.memory import CandidateMemory, Conversation, SaidBy, record_key, record_keys
from memguard.write.gates import GateGraph
from memguard.write.state import PassReport, PassState, Proposal


async def plan_passes(
    conversation: Conversation,
    *,
    backing: Backing,
    namespace: Namespace,
    spec: Writer,
    digest: str,
    run_id: str,
) -> tuple[tuple[PassState, ...], tuple[Proposal, ...]]:
    """The passes that are still to be read, and the proposals of earlier passes."""
    turns = readable_turns(conversation.turns, spec=spec)
    readable = Conversation(turns=turns, id=conversation.id)
    keys = turn_keys(readable, namespace=namespace)
    earlier = await backing.extractions.aof_turns(keys, writer_digest=digest)
    read_keys = {key for extraction in earlier for key in extraction.turn_keys}
    new = {index for index, key in enumerate(keys) if key not in read_keys}
    if not conversation.has_user_words:
        # No candidate can be admitted: a memory must rest on something that a user said.
        new = set[int]()
    # Chunks contain every new turn once and in order, so their keys can be dealt out in order.
    new_keys = iter([keys[index] for index in sorted(new)])
    passes = tuple(
        PassState(
            run_id=run_id,
            namespace=namespace,
            earlier=Conversation(turns=chunk.earlier, id=conversation.id),
            new=Conversation(turns=chunk.new, id=conversation.id),
            keys=tuple(next(new_keys) for _ in chunk.new),
        )
        for chunk in plan_chunks(turns, new=new, spec=spec)
    )
    return passes, _earlier_proposals(earlier, readable, keys=keys, spec=spec)


def _earlier_proposals(
    extractions: Sequence[LoggedExtraction],
    readable: Conversation,
    *,
    keys: Sequence[str],
    spec: Writer,
) -> tuple[Proposal, ...]:
    """Candidates of earlier passes, with the turns they were extracted from, matched by key."""
    # The receipts decide what is done already: a run may have stopped between reading and judging.
    positions = {key: index for index, key in enumerate(keys)}
    proposals: list[Proposal] = []
    for extraction in extractions:
        indexes = sorted(positions[key] for key in extraction.turn_keys if key in positions)
        if len(indexes) < len(extraction.turn_keys):
            continue  # The conversation no longer contains all turns of that pass.
        turns = readable.turns[: indexes[-1] + 1]
        (chunk, *_) = plan_chunks(turns, new=frozenset(indexes), spec=spec)
        source = Conversation(turns=chunk.turns, id=readable.id)
        proposals += [Proposal(candidate=c, source=source) for c in extraction.candidates]
    return tuple(proposals)


async def read_pass(
    state: PassState, *, backing: Backing, writer: GateGraph, digest: str, meter: Meter
) -> PassReport:
    """Read one pass and record its candidates durably, so that it is never read again.

    After a failure the turns stay unread. The run continues and reports it, and a later run reads
    them.
    """
    turn_ids = tuple(dict.fromkeys(turn.id for turn in state.new.turns))
    about = ", ".join(turn_ids)
    source = Conversation(turns=(*state.earlier.turns, *state.new.turns), id=state.new.id)
    planned = Pass(earlier=state.earlier.turns, new=state.new.turns)
    try:
        # The writer takes planned passes, so that it reads exactly the turns that are recorded.
        with use_meter(meter):
            result: dict[str, Any] = await writer.ainvoke(
                {"conversation": source, "passes": (planned,)}
            )
    except MemguardError as error:
        failure = failure_of(error, step="extract", about=about)
        return PassReport(unread=turn_ids, failures=(failure,))
    if result.get("unread"):
        unread = result["unread"][0]
        failure = Failure(code=unread.reason, message=unread.detail, step="extract", about=about)
        return PassReport(unread=turn_ids, failures=(failure,))
    candidates = tuple(
        candidate.located(state.namespace) for candidate in result.get("candidates", ())
    )
    # A pass without candidates is recorded too, or every later run would read it again.
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
    """Add the source to the caller's own candidates: the turns that they name and those around.

    The source of a candidate that names no turn is the whole conversation.
    """
    return tuple(
        Proposal(candidate=candidate, source=_source_of(candidate, conversation, spec=spec))
        for candidate in candidates
    )


def _source_of(
    candidate: CandidateMemory, conversation: Conversation, *, spec: Writer
) -> Conversation:
    indexes = [i for i, turn in enumerate(conversation.turns) if turn.id in candidate.turn_ids]
    if not indexes:
        return conversation
    # Turns around it are included, because a turn such as "Yes, both." is unclear without them.
    start = max(0, indexes[0] - spec.context_turns)
    end = indexes[-1] + spec.context_turns + 1
    return Conversation(turns=conversation.turns[start:end], id=conversation.id)


def merge_repeats(
    proposals: Sequence[Proposal], *, conversation: Conversation
) -> tuple[Proposal, ...]:
    """One proposal per text, in the order in which the texts were first proposed.

    A repeat adds its turns and its source, so that a candidate is judged on every turn that it was
    extracted from. Blank texts are not merged: each is refused on its own.

    Args:
        proposals: Of all passes.
        conversation: Gives the order of the turns. A resumed run may read the passes in another
            order, and the turns are part of a candidate's id.
    """
    positions: dict[str, int] = {}
    for turn in conversation.turns:
        positions.setdefault(turn.id, len(positions))
    # By the key of the record: texts that would be stored under one key are one candidate.
    groups: dict[str, list[Proposal]] = {}
    for proposal in proposals:
        text = proposal.candidate.text
        key = f"blank {len(groups)}" if is_blank(text) else record_key(text)
        groups.setdefault(key, []).append(proposal)
    return tuple(_union(group, positions=positions) for group in groups.values())


def _union(group: Sequence[Proposal], *, positions: Mapping[str, int]) -> Proposal:
    """The earliest proposal with the turns of all, in the order of the conversation."""
    if len(group) == 1:
        return group[0]

    def position(turn_id: str) -> int:
        return positions.get(turn_id, len(positions))

    def start(proposal: Proposal) -> int:
        turn_ids = proposal.candidate.turn_ids or [turn.id for turn in proposal.source.turns]
        return min((position(turn_id) for turn_id in turn_ids), default=len(positions))

    # Sorting is stable: among proposals from the same turn the first one gives the text.
    ordered = sorted(dict.fromkeys(group), key=start)
    first = ordered[0]
    if len(ordered) == 1:
        return first
    candidates = [proposal.candidate for proposal in ordered]
    turn_ids = dict.fromkeys(turn_id for c in candidates for turn_id in c.turn_ids)
    turns = dict.fromkeys(turn for proposal in ordered for turn in proposal.source.turns)
    candidate = first.candidate.model_copy(
        update={
            "turn_ids": tuple(sorted(turn_ids, key=position)),
            "said_by": reduce(_combined_role, [c.said_by for c in candidates]),
            "said_at": max((c.said_at for c in candidates if c.said_at), default=None),
        }
    )
    source = first.source.model_copy(
        update={"turns": tuple(sorted(turns, key=lambda turn: position(turn.id)))}
    )
    return Proposal(candidate=candidate, source=source)


def _combined_role(first: SaidBy, second: SaidBy) -> SaidBy:
    if "unknown" in {first, second}:
        return second if first == "unknown" else first
    return first if first == second else "mixed"


def refuse(proposal: Proposal, *, spec: Writer) -> AdmissionDecision | None:
    """The decision on a candidate that cannot be judged; `None` if the gates can judge it."""
    text = refuse_text(
        proposal.candidate.text, max_chars=spec.max_candidate_chars, screen=spec.screen
    )
    # Whether a source is required is up to the gates: some compare with stored memories instead.
    return text or refuse_source(proposal.source.evidence, required=False)


async def stored_keys(
    store: BaseStore, namespace: Namespace, proposals: Sequence[Proposal]
) -> Mapping[str, str]:
    """The key under which a text is stored in the namespace, by the record key of the text.

    Texts of proposals that are not stored are left out.

    Raises:
        StoreError: If the store failed.
    """
    # An older record may have an earlier key of its text.
    wanted = [record_keys(proposal.candidate.text) for proposal in proposals]
    pairs = [(keys[0], key) for keys in wanted for key in reversed(keys)]
    try:
        items = await call_store(
            store, [GetOp(namespace, key, refresh_ttl=False) for _, key in pairs]
        )
    except MemguardError:
        raise
    except Exception as error:  # a store of any kind may raise anything
        msg = f"the memory store failed: {type(error).__name__}: {error}; write again"
        raise StoreError(msg, code=ErrorCode.STORE_FAILED) from error
    return {name: key for (name, key), item in zip(pairs, items, strict=True) if item is not None}
