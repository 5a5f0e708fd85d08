"""The write guard: a conversation goes in, what is supported is durably stored.

```text
START -> prepare -> extract (one branch per pass) -> screen -> gate (one per candidate) -> report
```

With `review="interrupt"` a person is asked about what was held, before `report`; see
`memguard.guard.review`.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from langgraph.config import get_config
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Overwrite, Send

from memguard.conversations import read_conversation
from memguard.errors import BudgetExhaustedError, ConfigurationError, ErrorCode, MemguardError
from memguard.guard.backing import IN_MEMORY_NOTE, Backings
from memguard.guard.cascade import cascade_notes
from memguard.guard.extract import plan_passes, propose, read_pass
from memguard.guard.failures import failure_of
from memguard.guard.gates import (
    PROMPTS,
    STAGES,
    Gate,
    GateGraph,
    GateLike,
    build_gates,
    check_names,
    digest_of,
)
from memguard.guard.keys import rename_keys
from memguard.guard.meters import Meters
from memguard.guard.namespaces import NamespaceLike, resolve_namespace
from memguard.guard.progress import emit
from memguard.guard.report import build_report, first_error
from memguard.guard.review import Reviewing, ReviewMode, add_review, check_mode
from memguard.guard.screen import merge_repeats, refuse, repeat, stored_keys
from memguard.guard.state import (
    Extracted,
    GateState,
    PassState,
    Proposal,
    Ruled,
    WriteInput,
    WriteOutput,
    WriteState,
)
from memguard.llm.metering import use_meter
from memguard.llm.models import ModelLike, resolve_model
from memguard.methods.writer import create_writer_graph, make_reader
from memguard.policy.dedupe import record_key
from memguard.portal import dual
from memguard.prompts import Prompt
from memguard.schema.config import ConsistencyGate, Writer
from memguard.schema.decision import AdmissionDecision
from memguard.schema.receipt import MethodReport, Receipt
from memguard.schema.usage import Budget, Usage
from memguard.stores.journal import Journal

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
    gates: tuple[Gate, ...]
    policy_digest: str
    meters: Meters
    on_failure: OnFailure
    asks_person: bool


async def prepare(state: WriteState, *, guard: Guard) -> dict[str, Any]:
    """Read the input, find the namespace, mend what a crash left, plan what is to be read."""
    # Turns are known again within their thread, where the host has threads.
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
        # A thread with a checkpointer still holds the last run's entries.
        "extracted": Overwrite([Extracted(proposals=proposals, notes=problems)]),
        "ruled": Overwrite([]),
        "spent": Usage(),
        "notes": (),
        "reviews": (),
    }


def to_extract(state: WriteState) -> Sequence[Send | str]:
    """One branch per pass; straight to `screen` when nothing is new."""
    return [Send("extract", each) for each in state.passes] or ["screen"]


async def extract(state: PassState, *, guard: Guard) -> dict[str, Any]:
    """Draw candidates from one pass."""
    got = await read_pass(
        state,
        backing=guard.backings.current(),
        writer=guard.writer,
        digest=guard.writer_digest,
        meter=guard.meters.of(state.run_id),
    )
    emit("extracted", turns=len(state.new.turns), candidates=len(got.proposals))
    return {"extracted": [got]}


async def screen(state: WriteState, *, guard: Guard) -> dict[str, Any]:
    """Leave out what was decided before; decide at once what needs no gate."""
    backing = guard.backings.current()
    proposals = merge_repeats([p for each in state.extracted for p in each.proposals])
    decided = await backing.receipts.afind_all(
        [p.candidate.id for p in proposals], policy_digest=guard.policy_digest
    )
    open_proposals = [p for p in proposals if p.candidate.id not in decided]
    try:
        keys = await stored_keys(backing.store, state.namespace, open_proposals)
    except MemguardError as error:
        # Judging what cannot be stored would be paid for twice.
        failure = failure_of(error, step="screen")
        undecided = [Ruled(unjudged=p.candidate, failure=failure) for p in open_proposals]
        return {"proposals": (), "resumed": len(decided), "ruled": undecided}
    to_gate: list[Proposal] = []
    ruled: list[Ruled] = []
    for proposal in open_proposals:
        ruling = refuse(proposal, spec=guard.writer_spec)
        if ruling is None and record_key(proposal.candidate.text) in keys:
            ruling = repeat()
        if ruling is None:
            to_gate.append(proposal)
        else:
            receipt = _receipt(proposal, ruling, run_id=state.run_id, guard=guard)
            ruled.append(await _commit(receipt, guard=guard))
    emit("screened", to_gate=len(to_gate), decided=len(ruled), resumed=len(decided))
    return {"proposals": tuple(to_gate), "resumed": len(decided), "ruled": ruled}


def to_gates(state: WriteState) -> Sequence[Send | str]:
    """One branch per candidate; straight to `report` when there is none."""
    return [
        Send("gate", GateState(run_id=state.run_id, proposal=proposal))
        for proposal in state.proposals
    ] or ["report"]


async def gate(state: GateState, *, guard: Guard) -> dict[str, Any]:
    """Ask each gate until one does not admit, then make the decision durable."""
    candidate = state.proposal.candidate
    meter = guard.meters.of(state.run_id).scope()
    try:
        with use_meter(meter):
            reports = await _ask_gates(state, gates=guard.gates)
    except MemguardError as error:
        failure = (
            None if isinstance(error, BudgetExhaustedError) else failure_of(error, step="gate")
        )
        ruled = Ruled(unjudged=candidate, failure=failure)
    else:
        ruling = reports[-1].decision if reports else _admit_ungated()
        receipt = _receipt(state.proposal, ruling, run_id=state.run_id, guard=guard)
        ruled = await _commit(receipt.model_copy(update={"reports": reports}), guard=guard)
    outcome = ruled.receipt.outcome if ruled.receipt else "unjudged"
    emit("gated", candidate=candidate.id, text=candidate.text, outcome=outcome)
    return {"ruled": [ruled]}


async def report(state: WriteState, *, guard: Guard) -> dict[str, Any]:
    """Say what became of every candidate; raise what stopped the run, now that all is safe."""
    usage = state.spent + guard.meters.close(state.run_id).usage
    in_memory = guard.backings.current().journal.path is None
    receipts = [each.receipt for each in state.ruled if each.receipt is not None]
    saved = cascade_notes(receipts, gates=guard.gates)
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
        model: Who writes and judges: `"provider:model"`, a chat model, a resolved model, or
            `"local"`, which needs no language model and is weaker.
        store: Where memories go; the host graph's store when left out.
        namespace: Template with placeholders, or a function of the run's `Runtime`.
        gates: What a candidate has to pass, in order; the first that does not admit it ends it.
            With no gate everything is stored.
        writer: How the conversation is read.
        models: Other models by stage: `writer`, `judge`.
        prompts: Your own prompts by name: `writer/extract`, `consistency_gate/support`.
        receipts: Where receipts and quarantine are kept; beside a local store when left out.
        budget: The most one run may spend; what is over stays undecided and is taken up again.
        keys: The host's state keys for the guard's, for example `{"messages": "chat"}`; what is
            not named, `messages` aside, is then not read from the host's state.
        review: `quarantine` holds what is in doubt for later; `interrupt` also pauses the run and
            asks a person, in the shape of LangChain's human-in-the-loop middleware, where the
            graph has a checkpointer to wait with.
        on_failure: `raise` what stopped a part of the run once all else is safe, or only
            `report` it in `writes.failures`.

    Returns:
        A graph that takes `messages`, `conversation` or `candidates`, and returns `writes`, a
        `WriteReport`.

    Raises:
        ConfigurationError: If a model, gate or prompt cannot be used.
    """
    if model is None and not models:
        msg = "create_write_guard needs a model: pass `model='openai:NAME'` or a chat model"
        raise ConfigurationError(msg, code=ErrorCode.MODEL_MISSING)
    check_names(models or {}, known=STAGES, what="models")
    check_names(prompts or {}, known=PROMPTS, what="prompts")
    staged: dict[str, ModelLike] = dict(models or {})
    if model is not None:
        staged.setdefault("default", model)
    else:
        staged.setdefault("default", next(iter(staged.values())))
    # Once, so that the stages share one client; what is resolved is taken as it is from here on.
    staged = {
        stage: each if each == "local" else resolve_model(each) for stage, each in staged.items()
    }
    spec = writer or Writer()
    reads = staged.get("writer", staged["default"])
    own = prompts or {}
    prompt = own.get("writer/extract")
    fingerprint = make_reader(reads, prompt=prompt).fingerprint
    built = build_gates(gates, models=staged, store=store, prompts=own)
    guard = Guard(
        backings=Backings(store, receipts),
        namespace=namespace,
        writer=create_writer_graph(reads, spec=spec, prompt=prompt),
        writer_spec=spec,
        writer_digest=digest_of(fingerprint, spec.model_dump_json()),
        gates=built,
        policy_digest=digest_of(*(each.fingerprint for each in built)),
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
    builder.add_node(
        "gate",
        dual(partial(gate, guard=guard), asks=[each.graph for each in guard.gates]),
        input_schema=GateState,
    )
    builder.add_node("report", dual(partial(report, guard=guard)))
    builder.add_edge(START, "prepare")
    builder.add_conditional_edges("prepare", to_extract, ["extract", "screen"])
    builder.add_edge("extract", "screen")
    builder.add_conditional_edges("screen", to_gates, ["gate", "report"])
    if guard.asks_person:
        most = guard.writer_spec.max_candidate_chars
        add_review(builder, Reviewing(backings=guard.backings, meters=guard.meters, max_chars=most))
    else:
        builder.add_edge("gate", "report")
    builder.add_edge("report", END)
    return builder.compile(name=NAME)


async def _ask_gates(state: GateState, *, gates: Sequence[Gate]) -> tuple[MethodReport, ...]:
    reports: list[MethodReport] = []
    for each in gates:
        ruling: dict[str, Any] = await each.graph.ainvoke(
            {
                "candidate": state.proposal.candidate,
                "context": state.proposal.source,
                "run_id": state.run_id,
            }
        )
        reports.append(ruling["report"])
        if ruling["decision"].outcome != "admit":
            break
    return tuple(reports)


def _receipt(
    proposal: Proposal, ruling: AdmissionDecision, *, run_id: str, guard: Guard
) -> Receipt:
    return Receipt(
        id=uuid.uuid4().hex,
        at=datetime.now(UTC),
        run_id=run_id,
        candidate=proposal.candidate,
        namespace=proposal.candidate.namespace,
        decision=ruling,
        record_key=record_key(proposal.candidate.text),
        policy_digest=guard.policy_digest,
    )


async def _commit(receipt: Receipt, *, guard: Guard) -> Ruled:
    try:
        return Ruled(receipt=await guard.backings.current().committer.commit(receipt))
    except MemguardError as error:
        return Ruled(unjudged=receipt.candidate, failure=failure_of(error, step="commit"))


def _admit_ungated() -> AdmissionDecision:
    return AdmissionDecision(
        outcome="admit", reason="no_gate", explanation="the guard has no gate: all is stored"
    )
