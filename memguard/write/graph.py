"""The write guard: reads a conversation and durably stores the memories that it supports.

```text
START -> prepare -> extract (one branch per pass) -> screen -> gates (one per candidate)
      -> next_batch -> report
```

`gates` is a graph in which each gate is a node; see `memguard.write.gates`. What the gates admit is
reconciled with the memories near it before it is stored; see `memguard.write.reconciling`. At most
1,000 candidates are judged at a time: `next_batch` returns to it as long as some are left. With
`review="interrupt"` the nodes `hold` and `review` follow it: they ask a person about quarantined
candidates; see `memguard.write.review`.

An error in one branch is recorded and does not stop the others. Every decision is durable before
the next node runs, and `report` raises the first error at the end.
"""

import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from langgraph.config import get_config, get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Overwrite, Send, interrupt
from pydantic import JsonValue

from memguard import compat
from memguard.conversations import read_conversation
from memguard.errors import (
    ConfigurationError,
    ErrorCode,
    MemguardError,
)
from memguard.journal.commit import IN_MEMORY_NOTE, Backings
from memguard.journal.journal import Journal
from memguard.llm.call import call_metadata
from memguard.llm.limits import use_meter
from memguard.llm.models import ModelLike, model_of, resolve_stages
from memguard.methods.consistency_gate.config import ConsistencyGate
from memguard.methods.writer import build_reader, build_writer_graph
from memguard.methods.writer.config import Writer
from memguard.namespaces import NamespaceLike, resolve_namespace
from memguard.portal import dual
from memguard.prompts import Prompt
from memguard.schema.failures import failure_of
from memguard.schema.memory import Conversation, record_key
from memguard.schema.receipt import Budget, Receipt, ReceiptFactory, Usage
from memguard.state_keys import check_names, rename_keys
from memguard.typed import TypedGraph, typed
from memguard.uncheckpointed import uncheckpointed
from memguard.write.deciding import (
    Meters,
    OnWriteFailure,
    ReviewMode,
    WriteGuard,
    conclude_candidate,
    refuse_candidate,
)
from memguard.write.gates import (
    PROMPTS,
    STAGES,
    GateLike,
    Pipeline,
    build_gates,
    cascade_notes,
    digest_of,
    screen_digest,
)
from memguard.write.proposals import (
    merge_repeats,
    near_repeats,
    plan_passes,
    propose,
    read_pass,
    refuse,
)
from memguard.write.reconciling import (
    ReconcileLike,
    build_reconciler,
)
from memguard.write.report import Review, WriteReport, WriteResult, first_error
from memguard.write.review import ReviewAnswer, answer_type, carry_out, review_request, reviewer
from memguard.write.state import (
    CandidateResult,
    CandidateState,
    PassReport,
    PassState,
    Proposal,
    WriteInput,
    WriteOutput,
    WriteState,
)
from memguard.write.stored_texts import find_stored_texts, repeats

NAME = "write_guard"
# LangGraph waits for all branches of a step each time that one ends, so that a step of 10,000 takes
# work that grows with their square. With 1,000, a run of 10,000 has 24 steps; hosts may allow 25.
_MAX_BRANCHES = 1_000

WriteStep = Literal["planned", "extracted", "screened", "gated", "held", "reviewed", "reported"]
"""The step that a progress event reports as done.

* `planned`: the number of turns to read, and of passes.
* `extracted`: one pass was read; the number of its candidates.
* `screened`: the number of candidates for the gates, and of those already decided.
* `gated`: one candidate was decided, durably.
* `held`: the number of candidates that wait for a person, and whether the run can ask.
* `reviewed`: a person decided about one of them, and the decision was carried out.
* `reported`: the run is over.
"""


def _emit(step: WriteStep, **details: JsonValue) -> None:
    """Send `{"memguard": "write", "step": ..., ...}` to consumers of custom stream events."""
    get_stream_writer()({"memguard": "write", "step": step, **details})


async def prepare(state: WriteState, *, guard: WriteGuard) -> dict[str, Any]:
    """Read the input, resolve the namespace, recover from a crash, plan the passes."""
    try:
        return await _plan(state, guard=guard)
    except MemguardError as error:
        if guard.on_failure == "raise":
            raise
        # Nothing was read and nothing was asked: the next run of the conversation starts anew.
        stopped = PassReport(failures=(failure_of(error, step="prepare"),))
        return _fresh(run_id=uuid.uuid4().hex, extracted=stopped)


async def _plan(state: WriteState, *, guard: WriteGuard) -> dict[str, Any]:
    # A turn is recognized within its thread, where the host has threads.
    thread = str(get_config().get("configurable", {}).get("thread_id") or "")
    conversation = state.conversation or read_conversation(state.messages, conversation_id=thread)
    backing = guard.backings.current()
    namespace = resolve_namespace(guard.namespace, store=backing.store)
    located = [candidate.located(namespace) for candidate in state.candidates or ()]
    # Before any work: candidates that contradict their turns are the caller's mistake.
    proposals = propose(located, conversation=conversation, spec=guard.writer_spec)
    # First of all: a crash may have left a decision in the log whose record is not stored.
    recovered = await backing.recover_once()
    run_id = uuid.uuid4().hex
    guard.meters.of(run_id)  # starts the clock of the budget
    passes: tuple[PassState, ...] = ()
    if state.candidates is None:
        passes, proposals = await plan_passes(
            conversation,
            backing=backing,
            namespace=namespace,
            spec=guard.writer_spec,
            digest=guard.writer_digest,
            run_id=run_id,
        )
    notes = (*recovered, *conversation.notes)
    _emit("planned", passes=len(passes), turns=sum(len(p.new.turns) for p in passes))
    return {
        **_fresh(run_id=run_id, extracted=PassReport(proposals=proposals, notes=notes)),
        "namespace": namespace,
        # As it was read, so that `screen` orders turns by the same ids when the run is resumed.
        "conversation": conversation,
        "passes": passes,
    }


def _fresh(*, run_id: str, extracted: PassReport) -> dict[str, Any]:
    """The state of a run that begins; a thread with a checkpointer still has that of the last."""
    return {
        "run_id": run_id,
        "namespace": (),
        "passes": (),
        "extracted": Overwrite([extracted]),
        "ruled": Overwrite([]),
        "spent": Usage(),
        "notes": (),
        "reviews": (),
    }


def to_extract(state: WriteState) -> Sequence[Send | str]:
    """One branch per pass; straight to `screen` when nothing is new."""
    return [Send("extract", planned) for planned in state.passes] or ["screen"]


async def extract(state: PassState, *, guard: WriteGuard) -> dict[str, Any]:
    """Extract candidates from one pass."""
    try:
        with call_metadata(run_id=state.run_id):
            extraction = await read_pass(
                state,
                backing=guard.backings.current(),
                writer=guard.writer,
                digest=guard.writer_digest,
                meter=guard.meters.of(state.run_id),
            )
    except MemguardError as error:
        # The log failed: what was read is not recorded, so a later run reads it again.
        about = ", ".join(dict.fromkeys(turn.id for turn in state.new.turns))
        extraction = PassReport(
            unread=tuple(dict.fromkeys(turn.id for turn in state.new.turns)),
            failures=(failure_of(error, step="extract", about=about),),
        )
    _emit("extracted", turns=len(state.new.turns), candidates=len(extraction.proposals))
    return {"extracted": [extraction]}


async def screen(state: WriteState, *, guard: WriteGuard) -> dict[str, Any]:
    """Leave out candidates that were decided before, and decide those that need no gate."""
    proposals = merge_repeats(
        [proposal for extraction in state.extracted for proposal in extraction.proposals],
        conversation=state.conversation or Conversation(),
    )
    try:
        return await _screen(proposals, state=state, guard=guard)
    except MemguardError as error:
        # The log failed. Without it nothing may be judged, since nothing could be recorded.
        failure = failure_of(error, step="screen")
        results = [CandidateResult(unjudged=p.candidate, failure=failure) for p in proposals]
        return {"proposals": (), "resumed": 0, "ruled": results}


async def _screen(
    proposals: Sequence[Proposal], *, state: WriteState, guard: WriteGuard
) -> dict[str, Any]:
    if not proposals:
        _emit("screened", to_gate=0, decided=0, resumed=0)
        return {"proposals": (), "resumed": 0, "ruled": []}
    backing = guard.backings.current()
    # A candidate is decided once under each policy, also if an earlier run was interrupted.
    decided = await backing.receipts.afind_all(
        [p.candidate.id for p in proposals], policy_digest=guard.policy_digest
    )
    undecided = [p for p in proposals if p.candidate.id not in decided]
    to_judge: list[Proposal] = []
    results: list[CandidateResult] = []
    try:
        stored = await find_stored_texts(
            backing.store, state.namespace, [p.candidate.text for p in undecided]
        )
    except MemguardError as error:
        # Judging candidates that cannot be stored would cost the model calls twice.
        failure = failure_of(error, step="screen")
        results = [CandidateResult(unjudged=p.candidate, failure=failure) for p in undecided]
        return {"proposals": (), "resumed": len(decided), "ruled": results}
    decisions = refuse(
        undecided,
        repeats=repeats(undecided, stored, conversation=state.conversation),
        spec=guard.writer_spec,
    )
    for proposal, decision in zip(undecided, decisions, strict=True):
        if decision is None:
            to_judge.append(proposal)
            continue
        text = stored.get(record_key(proposal.candidate.text))
        results.append(
            await refuse_candidate(
                proposal, decision, stored=text, run_id=state.run_id, guard=guard
            )
        )
    _emit("screened", to_gate=len(to_judge), decided=len(results), resumed=len(decided))
    return {
        "proposals": tuple(to_judge),
        "resumed": len(decided),
        "ruled": results,
        "notes": near_repeats(to_judge),
    }


def to_gates(state: WriteState, *, after: str = "report") -> Sequence[Send | str]:
    """One branch per candidate of the next batch; to the node `after` when none is left."""
    batch = state.proposals[:_MAX_BRANCHES]
    cited = {turn_id for proposal in batch for turn_id in proposal.candidate.turn_ids}
    turns = (state.conversation or Conversation()).turns
    turn_order = tuple(dict.fromkeys(turn.id for turn in turns if turn.id in cited))
    return [
        Send(
            "gates",
            CandidateState(run_id=state.run_id, proposal=proposal, turn_order=turn_order),
        )
        for proposal in batch
    ] or [after]


async def next_batch(state: WriteState) -> dict[str, Any]:
    """Leave out the candidates that the gates have judged by now."""
    return {"proposals": state.proposals[_MAX_BRANCHES:]}


async def judge(state: CandidateState, *, guard: WriteGuard) -> dict[str, Any]:
    """Run the gates on one candidate, then make the decision durable."""
    candidate = state.proposal.candidate
    receipt_id = guard.receipts.new_id()
    # A scope of its own, so that a report counts only the model calls of its candidate.
    scope = guard.meters.of(state.run_id).scope()
    with use_meter(scope), call_metadata(run_id=state.run_id, receipt_id=receipt_id):
        judgement = await guard.pipeline.judge(
            candidate, source=state.proposal.source, run_id=state.run_id
        )
        result = await conclude_candidate(state, judgement, guard=guard, receipt_id=receipt_id)
    outcome = result.receipt.outcome if result.receipt else "unjudged"
    _emit("gated", candidate=candidate.id, text=candidate.text, outcome=outcome)
    return {"ruled": [result]}


async def hold(state: WriteState, *, guard: WriteGuard) -> dict[str, Any]:
    """Save the usage in the state: the run may continue in another process, days later."""
    # Not in `review`, which runs from its beginning again after the interrupt, with no meter.
    quarantined = _quarantined(state)
    can_wait = compat.has_checkpointer(get_config().get("configurable", {}))
    _emit("held", candidates=len(quarantined), asks=can_wait)
    not_asked = (
        f"nobody was asked about {len(quarantined)} held candidates, because the graph has no "
        "checkpointer to wait with: compile it with `checkpointer=`, or rule with `memguard "
        "quarantine list`"
    )
    return {
        "spent": guard.meters.close(state.run_id),
        "waiting": tuple(receipt.id for receipt in quarantined) if can_wait else (),
        "notes": (*state.notes, *((not_asked,) if quarantined and not can_wait else ())),
    }


def to_review(state: WriteState) -> Literal["review", "report"]:
    """Ask a person if there is a question and the run can wait for the answer."""
    return "review" if state.waiting else "report"


async def review(state: WriteState, *, guard: WriteGuard) -> dict[str, Any]:
    """Ask a person about all quarantined candidates, and carry out the answer."""
    quarantined = _quarantined(state)
    # `interrupt` raises the first time. When the answer is there, the node runs from its beginning.
    answer: ReviewAnswer = interrupt(
        review_request(quarantined),
        response_schema=answer_type(
            len(quarantined), max_chars=guard.writer_spec.max_candidate_chars
        ),
    )
    backing = guard.backings.current()
    reviews: list[Review] = []
    results: list[CandidateResult] = []
    for receipt, decision in zip(quarantined, answer.decisions, strict=True):
        # Each on its own: what fails for one candidate must not undo the decision on another.
        try:
            done, edited = await carry_out(
                decision, receipt=receipt, backing=backing, actor=reviewer()
            )
        except MemguardError as error:
            failure = failure_of(error, step="review", about=receipt.id)
            results.append(CandidateResult(failure=failure))
            continue
        reviews.append(done)
        if edited is not None:
            results.append(CandidateResult(receipt=edited))
        _emit("reviewed", receipt=receipt.id, ruling=done.ruling, outcome=done.outcome)
    return {"reviews": tuple(reviews), "ruled": results}


async def report(state: WriteState, *, guard: WriteGuard) -> dict[str, Any]:
    """Report on every candidate; raise the first error, now that everything else is durable."""
    passes, results = state.extracted, state.ruled
    receipts = _receipts(state)
    failures = [failure for entry in passes for failure in entry.failures]
    failures += [result.failure for result in results if result.failure is not None]
    # `hold` has closed the meter and saved its usage in `spent`; a new one counts from there.
    usage = state.spent + guard.meters.close(state.run_id)
    guard.run_keys.close(state.run_id)
    notes = [IN_MEMORY_NOTE] if _is_in_memory(guard) else []
    notes += [*cascade_notes(receipts, gates=guard.pipeline.gates), *state.notes]
    notes += [note for entry in passes for note in entry.notes]
    writes = WriteReport(
        run_id=state.run_id,
        namespace=state.namespace,
        receipts=receipts,
        reviews=state.reviews,
        resumed=state.resumed,
        unjudged=tuple(result.unjudged for result in results if result.unjudged is not None),
        unread=tuple(turn_id for entry in passes for turn_id in entry.unread),
        failures=tuple(dict.fromkeys(failures)),
        usage=usage,
        notes=tuple(dict.fromkeys(notes)),
    )
    _emit("reported", **writes.counts)
    error = first_error(writes.failures)
    if error is not None and guard.on_failure == "raise":
        raise error
    return {"writes": writes}


def _is_in_memory(guard: WriteGuard) -> bool:
    try:
        return guard.backings.current().journal.path is None
    except MemguardError:
        return False  # there is no log to note anything about; `prepare` has reported why


def _receipts(state: WriteState) -> tuple[Receipt, ...]:
    """The decisions of the run, in order."""
    return tuple(result.receipt for result in state.ruled if result.receipt is not None)


def _quarantined(state: WriteState) -> tuple[Receipt, ...]:
    """The decisions of the run that put a candidate into quarantine, in order."""
    return tuple(receipt for receipt in _receipts(state) if receipt.outcome == "quarantined")


def create_write_guard(
    model: "ModelLike | None" = None,
    *,
    store: BaseStore | None = None,
    namespace: NamespaceLike = ("memories", "{user_id}"),
    gates: Sequence[GateLike] = (ConsistencyGate(),),
    writer: Writer | None = None,
    models: Mapping[str, ModelLike] | None = None,
    prompts: Mapping[str, Prompt] | None = None,
    receipts: Journal | str | Path | None = None,
    budget: Budget | None = None,
    keys: Mapping[str, str] | None = None,
    review: ReviewMode = "quarantine",
    on_failure: OnWriteFailure = "raise",
    reconcile: ReconcileLike = True,
) -> TypedGraph[WriteResult]:
    """A graph that stores the memories that a conversation supports; a node of any host graph.

    Args:
        model: Serves every stage that `models` does not name: `"provider:model"`, a chat model,
            a resolved model, or `"local"`, which needs no language model and is weaker.
        store: Where memories are stored; the host graph's store by default.
        namespace: Template with placeholders, or a function of the run's `Runtime`.
        gates: What a candidate has to pass, in order, up to the first that does not admit it. Each
            is a node under its own name. Without gates everything is stored.
        writer: Settings for reading the conversation.
        models: Models by stage: `writer`, `judge`, and `reconciler`, for which `judge` is used by
            default. No other model serves another stage.
        prompts: Your own prompts by name: `writer/extract`, `consistency_gate/support`,
            `reconcile/relate`.
        receipts: Where receipts and quarantine are stored; by default alongside a local store.
        budget: Limits of one run; candidates beyond it stay undecided, and a later run judges them.
        keys: The host's state keys for the guard's, for example `{"messages": "chat"}`. Other keys
            of the guard, except `messages`, are then not read from the host's state.
        review: `quarantine` stores candidates in doubt for later. `interrupt` also pauses the run
            and asks a person, in the shape of LangChain's human-in-the-loop middleware, if the
            graph has a checkpointer to wait with.
        on_failure: `raise` the error that stopped a part of the run, after everything else was
            stored; or only `report` it in `writes.failures`.
        reconcile: Whether an admitted candidate is compared with the memories near it, so that a
            correction marks what it replaces; or the settings, see `Reconcile`. With
            `review="interrupt"`, a person decides on contradictions unless the settings say so.

    Returns:
        A graph that takes `messages`, `conversation` or `candidates`, and returns `writes`, a
        `WriteReport`.

    Raises:
        ConfigurationError: If a model, gate or prompt cannot be used, or a stage has no model.
    """
    if review not in get_args(ReviewMode):
        msg = f"`review` is {review!r}: use one of {', '.join(get_args(ReviewMode))}"
        raise ConfigurationError(msg, code=ErrorCode.SPEC_INVALID)
    check_names(models or {}, allowed=STAGES, what="models")
    check_names(prompts or {}, allowed=PROMPTS, what="prompts")
    stages = resolve_stages(model, models)
    overrides = prompts or {}
    spec = writer or Writer()
    reader = build_reader(
        model_of(stages, "writer"), spec=spec, prompt=overrides.get("writer/extract")
    )
    reconciler = build_reconciler(
        reconcile,
        models=stages,
        prompts=overrides,
        store=store,
        clock=ReceiptFactory().clock,
        asks=review == "interrupt",
    )
    pipeline = Pipeline(
        build_gates(gates, models=stages, store=store, prompts=overrides),
        before_commit=None if reconciler is None else reconciler.graph,
    )
    guard = WriteGuard(
        backings=Backings(store, receipts),
        namespace=namespace,
        # A host's checkpointer would keep the conversation and the candidates in its threads.
        writer=uncheckpointed(build_writer_graph(reader, spec=spec)),
        writer_spec=spec,
        # Under another reader or other settings all turns are read again.
        writer_digest=digest_of(reader.fingerprint, spec.model_dump_json(exclude={"screen"})),
        pipeline=pipeline,
        reconciler=reconciler,
        policy_digest=digest_of(
            *(gate.fingerprint for gate in pipeline.gates), *screen_digest(spec.screen)
        ),
        meters=Meters(budget or Budget()),
        on_failure=on_failure,
        review=review,
    )
    graph = _compile(guard)
    if keys is not None:
        graph = rename_keys(graph, keys=keys, takes=WriteInput, gives=WriteOutput)
    # A run that waits for a person has to be resumed from the host's checkpoints. Any other must
    # leave no candidate in them.
    waits = review == "interrupt" or pipeline.interrupts
    return typed(graph) if waits else uncheckpointed(graph)


def _compile(guard: WriteGuard) -> CompiledStateGraph[Any, Any, Any, Any]:
    builder = StateGraph(WriteState, input_schema=WriteInput, output_schema=WriteOutput)
    builder.add_node("prepare", dual(partial(prepare, guard=guard)))
    extract_node = dual(partial(extract, guard=guard), asks=[guard.writer])
    builder.add_node("extract", extract_node, input_schema=PassState)
    builder.add_node("screen", dual(partial(screen, guard=guard)))
    # A node that runs the graph of gates, rather than that graph itself, because it also counts
    # the model calls and commits the decision. `asks` lets LangGraph draw and stream the graph.
    asks = [] if guard.pipeline.drawn is None else [guard.pipeline.drawn]
    gates = dual(partial(judge, guard=guard), name="gates", asks=asks)
    builder.add_node("gates", gates, input_schema=CandidateState)
    builder.add_node("report", dual(partial(report, guard=guard)))
    builder.add_edge(START, "prepare")
    builder.add_conditional_edges("prepare", to_extract, ["extract", "screen"])
    builder.add_edge("extract", "screen")
    builder.add_node("next_batch", dual(next_batch))
    builder.add_conditional_edges("screen", to_gates, ["gates", "report"])
    builder.add_edge("gates", "next_batch")
    if guard.review == "interrupt":
        builder.add_node("hold", dual(partial(hold, guard=guard)))
        builder.add_node("review", dual(partial(review, guard=guard)))
        builder.add_conditional_edges("hold", to_review)
        builder.add_edge("review", "report")
    after = "hold" if guard.review == "interrupt" else "report"
    builder.add_conditional_edges("next_batch", partial(to_gates, after=after), ["gates", after])
    builder.add_edge("report", END)
    return builder.compile(name=NAME)
