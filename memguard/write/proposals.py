"""From a conversation to the proposals that go to the gates.

A proposal is a candidate with the turns that support it. The writer reads a conversation in passes;
a pass is recorded, so that no turn is read twice. Proposals of all passes are merged by text. Those
that cannot be judged, or whose text is stored already, are sorted out before any gate runs.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import combinations
from typing import Any

from memguard.errors import MemguardError
from memguard.journal.caches import LoggedExtraction
from memguard.journal.commit import Backing
from memguard.llm.limits import Meter, use_meter
from memguard.methods.admission import refuse_text
from memguard.methods.authorship import SourceWords, attribute, content_words
from memguard.methods.writer import Pass, readable_turns
from memguard.methods.writer.config import Writer
from memguard.methods.writer.rules import plan_chunks, turn_keys
from memguard.schema.base import Namespace, is_blank
from memguard.schema.decision import AdmissionDecision
from memguard.schema.failures import Failure, failure_of
from memguard.schema.memory import CandidateMemory, Conversation, SaidBy, record_key
from memguard.write.gates import GateGraph
from memguard.write.state import PassReport, PassState, Proposal

_ARTICLES = frozenset({"the", "a", "an"})
_PUNCTUATION = ".,;:!?\"'()\u2026\u3002\uff01\uff1f"
_NEARLY_SAME = 0.75
"""Share of common words from which two candidates of the same turns are reported as near repeats.
Chosen by hand: of four words that tell what a text is about, one differs."""
_MAX_COMPARED = 30
"""Candidates of the same turns that are compared with one another."""


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
    if not readable.has_words_of(spec.sources):
        # No candidate can be admitted: a memory must rest on the words of a permitted source.
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
    # A pass of pasted text alone is not read: no candidate of it can be admitted.
    passes = tuple(
        planned
        for planned in passes
        if Pass(earlier=(), new=planned.new.turns).has_source(spec.sources)
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

    The source of a candidate that names no turn is the whole conversation. One that names turns
    gets their time and speaker, as a candidate of the writer does.

    Raises:
        InvalidInputError: If a candidate contradicts the turns that it names.
    """
    positions: dict[str, list[int]] = {}
    for index, turn in enumerate(conversation.turns):
        positions.setdefault(turn.id, []).append(index)
    proposals: list[Proposal] = []
    for candidate in candidates:
        proposed = candidate
        indexes = sorted({i for name in candidate.turn_ids for i in positions.get(name, ())})
        # Without a conversation, nothing is known of the turns that it names.
        if candidate.turn_ids and conversation.turns:
            turns = [conversation.turns[index] for index in indexes]
            proposed = attribute(candidate, turns, conversation_id=conversation.id)
        source = _source_around(indexes, conversation, spec=spec)
        proposals.append(Proposal(candidate=proposed, source=source))
    return tuple(proposals)


def _source_around(
    indexes: Sequence[int], conversation: Conversation, *, spec: Writer
) -> Conversation:
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
    extracted from. Of the same turns, a text with the same words is a repeat too. Blank texts are
    not merged: each is refused on its own.

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
    wordings: dict[tuple[str, ...], str] = {}
    for proposal in proposals:
        candidate = proposal.candidate
        key = f"blank {len(groups)}" if is_blank(candidate.text) else record_key(candidate.text)
        words = _words(candidate.text)
        if candidate.turn_ids and words and key not in groups:
            key = wordings.setdefault((*candidate.turn_ids, "", *words), key)
        groups.setdefault(key, []).append(proposal)
    return tuple(_union(group, positions=positions) for group in groups.values())


def _words(text: str) -> list[str]:
    """The words of a text in order, without articles, capitals and punctuation at their ends."""
    words = [word.strip(_PUNCTUATION) for word in text.casefold().split()]
    return [word for word in words if word and word not in _ARTICLES]


def near_repeats(proposals: Sequence[Proposal]) -> tuple[str, ...]:
    """Notes on candidates from the same turns that have nearly the same words.

    They are judged and stored each, because one different word may be what matters.
    """
    by_turns: dict[tuple[str, ...], list[CandidateMemory]] = {}
    for proposal in proposals:
        if proposal.candidate.turn_ids:
            by_turns.setdefault(proposal.candidate.turn_ids, []).append(proposal.candidate)
    return tuple(
        f"{first.text!r} and {second.text!r} rest on the same turns and may say the same"
        for candidates in by_turns.values()
        for first, second in combinations(candidates[:_MAX_COMPARED], 2)
        if _similarity(first.text, second.text) >= _NEARLY_SAME
    )


def _similarity(first: str, second: str) -> float:
    """The share of the words that two texts have in common, in [0, 1]."""
    one, other = content_words(first), content_words(second)
    return len(one & other) / len(one | other) if one | other else 0.0


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
            "speaker": candidates[-1].speaker if _has_one_speaker(candidates) else "",
        }
    )
    source = first.source.model_copy(
        update={"turns": tuple(sorted(turns, key=lambda turn: position(turn.id)))}
    )
    return Proposal(candidate=candidate, source=source)


def _has_one_speaker(candidates: Sequence[CandidateMemory]) -> bool:
    return len({candidate.speaker.casefold() for candidate in candidates}) == 1


def _combined_role(first: SaidBy, second: SaidBy) -> SaidBy:
    if "unknown" in {first, second}:
        return second if first == "unknown" else first
    if first == second:
        return first
    # `mixed` would say that a user said a part of it.
    if {first, second} & {"user", "mixed"}:
        return "mixed"
    return "tool" if "tool" in {first, second} else "document"


def refuse(
    proposals: Sequence[Proposal], *, repeats: Mapping[str, AdmissionDecision], spec: Writer
) -> tuple[AdmissionDecision | None, ...]:
    """The decision on each candidate that needs no gate; `None` if the gates can judge it.

    Args:
        proposals: The candidates with their sources.
        repeats: The decisions on texts that are stored already, by `record_key` of the text.
        spec: The limits, and whose words may be stored.
    """
    # Many candidates have one source, or the same turns: their words are collected once.
    by_source: dict[int, SourceWords] = {}
    by_turns: dict[tuple[int, ...], SourceWords] = {}
    decisions: list[AdmissionDecision | None] = []
    for proposal in proposals:
        words = by_source.get(id(proposal.source))
        if words is None:
            evidence = proposal.source.evidence
            same_turns = tuple(map(id, evidence))
            words = by_turns.setdefault(same_turns, SourceWords(evidence, spec.sources))
            by_source[id(proposal.source)] = words
        candidate = proposal.candidate
        # A text that cannot be a memory is refused even if it is stored.
        decision = refuse_text(
            candidate.text, max_chars=spec.max_candidate_chars, screen=spec.screen
        )
        if decision is None:
            decision = repeats.get(record_key(candidate.text))
        # Whether a source is required is up to the gates: some compare with stored memories.
        decisions.append(decision or words.withhold(candidate))
    return tuple(decisions)
