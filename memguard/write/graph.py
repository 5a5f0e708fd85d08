"""The write guard: a conversation goes in, what is supported is durably stored.

```text
START -> prepare -> extract (one branch per pass) -> screen -> gates (one per candidate) -> report
```

`gates` is a graph in which each gate is a node; see `memguard.write.gates`. With
`review="interrupt"` a person is asked about quarantined candidates before `report`; see
`memguard.write.review`.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from langgraph.config import get_config
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Overwrite, Send

from memguard.conversations import read_conversation
from memguard.errors import BudgetExhaustedError, MemguardError
from memguard.journal.backing import IN_MEMORY_NOTE, Backings
from memguard.journal.commit import duplicate_decision
from memguard.journal.journal import Journal
from memguard.llm.budget import use_meter
from memguard.llm.models import ModelLike, model_of, resolve_stages
from memguard.methods.consistency_gate.config import ConsistencyGate
from memguard.methods.writer import build_writer_graph, make_reader
from memguard.methods.writer.config import Writer
from memguard.namespaces import NamespaceLike, resolve_namespace
from memguard.portal import dual
from memguard.prompts import Prompt
from memguard.schema.decision import AdmissionDecision
from memguard.schema.failures import failure_of
from memguard.schema.memory import CandidateMemory, Conversation, record_key
from memguard.schema.receipt import MethodReport, ReceiptFactory
from memguard.schema.usage import Budget, Usage
from memguard.state_keys import check_names, rename_keys
from memguard.write.extraction import Meters, plan_passes, propose, read_pass
from memguard.write.gates import (
    PROMPTS,
    STAGES,
    GateGraph,
    GateLike,
    Pipeline,
    build_gates,
    cascade_notes,
    digest_of,
)
from memguard.write.outcome import build_report, emit, first_error, receipts_of
from memguard.write.review import Reviewing, ReviewMode, add_review, check_mode
from memguard.write.screening import merge_repeats, refuse, stored_keys
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

NAME = "write_guard"
OnFailure = Literal["raise", "report"]


@dataclass(frozen=True, kw_only=True)
class Guard:
    """What the nodes share: built once, bound to no event loop."""

    backings: Backings
    namespace: NamespaceLike
    writer: GateGraph
    writer_spec: Writer
    writer_digest: str
    pipeline: Pipeline
    policy_digest: str
    meters: Meters
    on_failure: OnFailure
    asks_person: bool
    receipts: ReceiptFactory = field(default_factory=ReceiptFactory)


async def prepare(state: WriteState, *, guard: Guard) -> dict[str, Any]:
    """Read the input, resolve the namespace, recover from a crash, plan the passes."""
    # A turn is recognized within its thread, where the host has threads.
    thread = str(get_config().get("configurable", {}).get("thread_id") or "")
    conversation = state.conversation or read_conversation(state.messages, conversation_id=thread)
    backing = guard.backings.current()
    namespace = resolve_namespace(guard.namespace, store=backing.store)
    problems = await backing.recover_once()
    run_id = uuid.uuid4().hex
    guard.meters.open(run_id)
    passes: tuple[PassState, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    if state.candidates is not None:
        located = [candidate.located(namespace) for candidate in state.candidates]
        proposals = propose(located, conversation=conversation, spec=guard.writer_spec)
    else:
        passes, proposals = await plan_passes(
            conversation,
            backing=backing,
            namespace=namespace,
            spec=guard.writer_spec,
            digest=guard.writer_digest,
            run_id=run_id,
        )
    emit("planned", passes=len(passes), turns=sum(len(p.new.turns) for p in passes))
    return {
        "run_id": run_id,
        "namespace": namespace,
        "conversation": conversation,
        "passes": passes,
        # A thread with a checkpointer still has the entries of the last run.
        "extracted": Overwrite([PassReport(proposals=proposals, notes=problems)]),
        "ruled": Overwrite([]),
        "spent": Usage(),
        "notes": (),
        "reviews": (),
    }


def to_extract(state: WriteState) -> Sequence[Send | str]:
    """One branch per pass; straight to `screen` when nothing is new."""
    return [Send("extract", planned) for planned in state.passes] or ["screen"]


async def extract(state: PassState, *, guard: Guard) -> dict[str, Any]:
    """Draw candidates from one pass."""
    extraction = await read_pass(
        state,
        backing=guard.backings.current(),
        writer=guard.writer,
        digest=guard.writer_digest,
        meter=guard.meters.of(state.run_id),
    )
    emit("extracted", turns=len(state.new.turns), candidates=len(extraction.proposals))
    return {"extracted": [extraction]}


async def screen(state: WriteState, *, guard: Guard) -> dict[str, Any]:
    """Leave out what was decided before, and decide at once what needs no gate."""
    backing = guard.backings.current()
    proposals = merge_repeats(
        [proposal for extraction in state.extracted for proposal in extraction.proposals],
        conversation=state.conversation or Conversation(),
    )
    decided = await backing.receipts.afind_all(
        [p.candidate.id for p in proposals], policy_digest=guard.policy_digest
    )
    undecided = [p for p in proposals if p.candidate.id not in decided]
    try:
        keys = await stored_keys(backing.store, state.namespace, undecided)
    except MemguardError as error:
        # Judging candidates that cannot be stored would cost the model calls twice.
        failure = failure_of(error, step="screen")
        results = [CandidateResult(unjudged=p.candidate, failure=failure) for p in undecided]
        return {"proposals": (), "resumed": len(decided), "ruled": results}
    to_judge: list[Proposal] = []
    results: list[CandidateResult] = []
    for proposal in undecided:
        decision = refuse(proposal, spec=guard.writer_spec)
        if decision is None and record_key(proposal.candidate.text) in keys:
            decision = duplicate_decision()
        if decision is None:
            to_judge.append(proposal)
        else:
            results.append(
                await _commit(proposal.candidate, decision, run_id=state.run_id, guard=guard)
            )
    emit("screened", to_gate=len(to_judge), decided=len(results), resumed=len(decided))
    return {"proposals": tuple(to_judge), "resumed": len(decided), "ruled": results}


def to_gates(state: WriteState) -> Sequence[Send | str]:
    """One branch per candidate; straight to `report` when there is none."""
    return [
        Send("gates", CandidateState(run_id=state.run_id, proposal=proposal))
        for proposal in state.proposals
    ] or ["report"]


async def judge(state: CandidateState, *, guard: Guard) -> dict[str, Any]:
    """Run the gates on one candidate, then make the decision durable."""
    candidate = state.proposal.candidate
    with use_meter(guard.meters.of(state.run_id).scope()):
        judgement = await guard.pipeline.judge(
            candidate, source=state.proposal.source, run_id=state.run_id
        )
    if judgement.decision is not None:
        result = await _commit(
            candidate,
            judgement.decision,
            reports=judgement.reports,
            run_id=state.run_id,
            guard=guard,
        )
    elif judgement.error is None or isinstance(judgement.error, BudgetExhaustedError):
        # No failure: the caller set the budget, and a later run judges the candidate.
        result = CandidateResult(unjudged=candidate)
    else:
        failure = failure_of(judgement.error, step="gate")
        result = CandidateResult(unjudged=candidate, failure=failure)
    outcome = result.receipt.outcome if result.receipt else "unjudged"
    emit("gated", candidate=candidate.id, text=candidate.text, outcome=outcome)
    return {"ruled": [result]}


async def report(state: WriteState, *, guard: Guard) -> dict[str, Any]:
    """Report on every candidate; raise what stopped the run, now that all else is safe."""
    usage = state.spent + guard.meters.close(state.run_id).usage
    in_memory = guard.backings.current().journal.path is None
    saved = cascade_notes(receipts_of(state), gates=guard.pipeline.gates)
    notes = (IN_MEMORY_NOTE, *saved) if in_memory else saved
    writes = build_report(state, usage=usage, notes=notes)
    emit("reported", **writes.counts)
    error = first_error(writes.failures)
    if error is not None and guard.on_failure == "raise":
        raise error
    return {"writes": writes}


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
    on_failure: OnFailure = "raise",
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """A graph that remembers what a conversation supports; a node of any host graph.

    Args:
        model: Serves every stage that `models` does not name: `"provider:model"`, a chat model,
            a resolved model, or `"local"`, which needs no language model and is weaker.
        store: Where memories go; the host graph's store when left out.
        namespace: Template with placeholders, or a function of the run's `Runtime`.
        gates: What a candidate has to pass, in order, up to the first that does not admit it. Each
            is a node under its own name. Without gates everything is stored.
        writer: How the conversation is read.
        models: Models by stage, `writer` and `judge`; one never serves another stage.
        prompts: Your own prompts by name: `writer/extract`, `consistency_gate/support`.
        receipts: Where receipts and quarantine are stored; alongside a local store when left out.
        budget: The most one run may spend; what is over stays undecided and is taken up again.
        keys: The host's state keys for the guard's, for example `{"messages": "chat"}`; what is
            not named, `messages` aside, is then not read from the host's state.
        review: `quarantine` stores candidates in doubt for later. `interrupt` also pauses the run
            and asks a person, in the shape of LangChain's human-in-the-loop middleware, if the
            graph has a checkpointer to wait with.
        on_failure: `raise` what stopped a part of the run once all else is safe, or only
            `report` it in `writes.failures`.

    Returns:
        A graph that takes `messages`, `conversation` or `candidates`, and returns `writes`, a
        `WriteReport`.

    Raises:
        ConfigurationError: If a model, gate or prompt cannot be used, or a stage has no model.
    """
    check_names(models or {}, allowed=STAGES, what="models")
    check_names(prompts or {}, allowed=PROMPTS, what="prompts")
    stages = resolve_stages(model, models)
    overrides = prompts or {}
    spec = writer or Writer()
    reader = make_reader(model_of(stages, "writer"), prompt=overrides.get("writer/extract"))
    pipeline = Pipeline(build_gates(gates, models=stages, store=store, prompts=overrides))
    guard = Guard(
        backings=Backings(store, receipts),
        namespace=namespace,
        writer=build_writer_graph(reader, spec=spec),
        writer_spec=spec,
        writer_digest=digest_of(reader.fingerprint, spec.model_dump_json()),
        pipeline=pipeline,
        policy_digest=digest_of(*(gate.fingerprint for gate in pipeline.gates)),
        meters=Meters(budget or Budget()),
        on_failure=on_failure,
        asks_person=check_mode(review) == "interrupt",
    )
    graph = _compile(guard)
    if keys is None:
        return graph
    return rename_keys(graph, keys=keys, takes=WriteInput, gives=WriteOutput)


def _compile(guard: Guard) -> CompiledStateGraph[Any, Any, Any, Any]:
    builder = StateGraph(WriteState, input_schema=WriteInput, output_schema=WriteOutput)
    builder.add_node("prepare", dual(partial(prepare, guard=guard)))
    builder.add_node(
        "extract",
        dual(partial(extract, guard=guard), asks=[guard.writer]),
        input_schema=PassState,
    )
    builder.add_node("screen", dual(partial(screen, guard=guard)))
    graph = guard.pipeline.graph
    builder.add_node(
        "gates",
        dual(partial(judge, guard=guard), name="gates", asks=[] if graph is None else [graph]),
        input_schema=CandidateState,
    )
    builder.add_node("report", dual(partial(report, guard=guard)))
    builder.add_edge(START, "prepare")
    builder.add_conditional_edges("prepare", to_extract, ["extract", "screen"])
    builder.add_edge("extract", "screen")
    builder.add_conditional_edges("screen", to_gates, ["gates", "report"])
    if guard.asks_person:
        reviewing = Reviewing(
            backings=guard.backings,
            meters=guard.meters,
            max_chars=guard.writer_spec.max_candidate_chars,
        )
        add_review(builder, reviewing)
    else:
        builder.add_edge("gates", "report")
    builder.add_edge("report", END)
    return builder.compile(name=NAME)


async def _commit(
    candidate: CandidateMemory,
    decision: AdmissionDecision,
    *,
    reports: tuple[MethodReport, ...] = (),
    run_id: str,
    guard: Guard,
) -> CandidateResult:
    """Write the receipt, and the record of an admitted candidate."""
    receipt = guard.receipts.create(
        candidate,
        decision,
        reports=reports,
        run_id=run_id,
        record_key=record_key(candidate.text),
        policy_digest=guard.policy_digest,
    )
    try:
        receipt = await guard.backings.current().committer.commit(receipt)
    except MemguardError as error:
        return CandidateResult(unjudged=candidate, failure=failure_of(error, step="commit"))
    return CandidateResult(receipt=receipt)
