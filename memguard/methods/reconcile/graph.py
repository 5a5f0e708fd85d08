"""Reconciliation as a graph: how does an admitted candidate change what is stored already?

```text
START -> recall -> relate -> decide -> END
```

`recall` finds the current memories near the candidate, `relate` asks a reader how the candidate
relates to them, if there are any, and `decide` applies the table of `rules`. Nothing is written
here: the changes go onto the receipt, and the commit makes them.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore
from pydantic import JsonValue

from memguard.errors import ConfigurationError, ErrorCode
from memguard.llm.models import LOCAL, ModelLike
from memguard.methods.reconcile.changes import changes_of, explain, lifecycle_after
from memguard.methods.reconcile.config import Reconcile
from memguard.methods.reconcile.neighbours import (
    NearMemories,
    Origins,
    find_neighbours,
    spoken_by_candidate,
    spoken_by_neighbour,
    with_origins,
)
from memguard.methods.reconcile.readers import (
    RelationAnswer,
    RelationReader,
    build_relation_reader,
    read_all,
    verdict_row,
)
from memguard.methods.reconcile.rules import (
    METHOD,
    NeighbourRuling,
    ReconcilePlan,
    SpokenAt,
    combine,
    later_side,
    rule_on_neighbour,
)
from memguard.methods.reconcile.state import ReconcileInput, ReconcileOutput, ReconcileState
from memguard.portal import dual
from memguard.prompts import Prompt
from memguard.schema.base import Clock
from memguard.schema.decision import AdmissionDecision, Inconclusive
from memguard.schema.memory import Lifecycle, record_key
from memguard.schema.receipt import MethodReport
from memguard.schema.relations import Neighbour, RecordChange, RelationVerdict
from memguard.typed import TypedGraph, typed

_UNREAD = Inconclusive(reason="parse_failure", detail="the reader gave no verdict")


async def recall(
    state: ReconcileState,
    *,
    spec: Reconcile,
    store: BaseStore | None,
    clock: Clock,
    origins: Origins | None,
) -> dict[str, Any]:
    """Find the memories near the candidate.

    Raises:
        ConfigurationError: If there is no store.
    """
    memory = store if store is not None else get_runtime().store
    # A guard around the store would judge this search by its own query.
    memory = getattr(memory, "unguarded", memory)
    if memory is None:
        msg = (
            "reconciliation compares with stored memories, but there is no store: pass `store=` "
            "or compile the host graph with one"
        )
        raise ConfigurationError(msg, code=ErrorCode.STORE_MISSING)
    near = await find_neighbours(memory, state.candidate, spec=spec, but=state.record_key)
    if origins is not None:
        near = await with_origins(near, origins)
    # A thread with a checkpointer still has the answer about the last candidate.
    now = clock()
    later = _later_keys(state, near, now=now)
    # Memories that were replaced matter only to a candidate that is older than what replaced them.
    past = tuple(n for n in near.past if n.lifecycle.superseded_by in later)
    compared = (*near.current, *past)
    return {"now": now, "near": near, "compared": compared, "later": later, "related": None}


async def relate(state: ReconcileState, *, reader: RelationReader) -> dict[str, Any]:
    """Ask the reader how the candidate relates to the near memories; nobody if there are none."""
    answer = await read_all(
        reader, state.candidate, state.compared, now=_now(state), later=state.later
    )
    return {"related": answer}


def _now(state: ReconcileState) -> datetime:
    return state.now or datetime.now(UTC)


def _later_keys(state: ReconcileState, near: NearMemories, *, now: datetime) -> frozenset[str]:
    candidate = spoken_by_candidate(
        state.candidate, now=now, event_at=None, turn_order=_turn_order(state)
    )
    return frozenset(
        neighbour.key
        for neighbour in (*near.current, *near.past)
        if later_side(candidate, _spoken(state, neighbour)) == "stored"
    )


def _turn_order(state: ReconcileState) -> tuple[str, ...]:
    return state.turn_order or tuple(turn.id for turn in state.context.turns)


def _spoken(state: ReconcileState, neighbour: Neighbour) -> SpokenAt:
    return spoken_by_neighbour(
        neighbour,
        conversation_id=state.candidate.conversation_id,
        turn_order=_turn_order(state),
        same_run=neighbour.key in state.run_keys,
    )


async def decide(state: ReconcileState, *, spec: Reconcile) -> dict[str, Any]:
    """Apply the table, and put together what becomes of the candidate and of the near memories."""
    answer = state.related or RelationAnswer()
    spoken = spoken_by_candidate(
        state.candidate,
        now=state.now,
        event_at=answer.reading.event_at,
        turn_order=_turn_order(state),
    )
    rulings = _rule_on_all(state, answer, spoken=spoken)
    plan = combine(rulings, on_conflict=spec.on_conflict, confirms=spec.duplicates == "confirm")
    decision = AdmissionDecision(**_outcome(plan), explanation=explain(plan), method=METHOD)
    report = MethodReport(
        method=METHOD,
        spec=spec.model_dump(mode="json"),
        decision=decision,
        evidence=_evidence(plan, rulings, answer, spoken=spoken),
        usage=answer.usage,
        prompts=(answer.prompt,) if answer.prompt else (),
        models={"reconciler": answer.model} if answer.model else {},
        notes=_notes(state.near, rulings, answer),
    )
    key = state.record_key or record_key(state.candidate.text)
    return {
        "decision": decision,
        "report": report,
        "changes": changes_of(plan, state.candidate, key=key, spoken=spoken),
        "lifecycle": lifecycle_after(plan, spoken=spoken),
    }


def _rule_on_all(
    state: ReconcileState, answer: RelationAnswer, *, spoken: SpokenAt
) -> list[NeighbourRuling]:
    verdicts = {verdict.key: verdict for verdict in answer.reading.verdicts}
    return [
        rule_on_neighbour(
            state.candidate,
            neighbour,
            verdicts.get(neighbour.key, RelationVerdict(key=neighbour.key, relation=_UNREAD)),
            assertion=answer.reading.assertion,
            times=(spoken, _spoken(state, neighbour)),
        )
        for neighbour in state.compared
    ]


def _outcome(plan: ReconcilePlan) -> dict[str, Any]:
    match plan.outcome:
        case "confirm" | "repeat":
            return {"outcome": "reject", "reason": "duplicate"}
        case "hold":
            return {"outcome": "quarantine", "reason": "conflict"}
        case "store":
            return {"outcome": "admit", "reason": "reconciled"}


def _evidence(
    plan: ReconcilePlan,
    rulings: Sequence[NeighbourRuling],
    answer: RelationAnswer,
    *,
    spoken: SpokenAt,
) -> dict[str, JsonValue]:
    """Enough to compute the decision again. Readers of receipts know these names, so they stay."""
    return {
        "plan": plan.outcome,
        # The record that the candidate confirms, or one of the past that it repeats.
        "repeated": plan.confirmed.neighbour.key if plan.confirmed is not None else None,
        "assertion": answer.reading.assertion,
        "event_at": _iso(spoken.event_at),
        "said_at": _iso(spoken.said_at),
        "assumed_at": _iso(spoken.assumed_at),
        "position": spoken.position,
        "neighbours": [
            verdict_row(
                ruling.neighbour,
                ruling.verdict,
                row=ruling.row,
                action=ruling.action,
                authors=ruling.authors,
                later=ruling.later,
                sureness=ruling.sureness,
                event_at=_iso(ruling.spoken.event_at),
                position=ruling.spoken.position,
                current=ruling.neighbour.lifecycle.is_current,
            )
            for ruling in rulings
        ],
    }


def _iso(at: datetime | None) -> str | None:
    return at.isoformat() if at is not None else None


def _notes(
    near: NearMemories, rulings: Sequence[NeighbourRuling], answer: RelationAnswer
) -> tuple[str, ...]:
    relations = [ruling.verdict.relation for ruling in rulings]
    failures = [relation for relation in relations if isinstance(relation, Inconclusive)]
    if not failures:
        return (*near.notes, *answer.notes, *answer.reading.notes)
    unread = (
        f"no relation to {len(failures)} of {len(rulings)} near memories "
        f"({failures[0].reason}): stored without changing them"
    )
    return (*near.notes, *answer.notes, *answer.reading.notes, unread)


class ReconcileResult(TypedDict):
    """What reconciliation returns, for type checkers."""

    decision: AdmissionDecision
    """Whether the candidate is stored, confirms a memory, or is held."""
    report: MethodReport
    """The evidence for the decision."""
    changes: tuple[RecordChange, ...]
    """The changes of stored memories; whoever commits the candidate makes them."""
    lifecycle: Lifecycle
    """What the record of the candidate begins with."""


def create_reconcile_graph(
    model: "ModelLike | None" = None,
    *,
    store: BaseStore | None = None,
    spec: Reconcile | None = None,
    prompt: Prompt | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> TypedGraph[ReconcileResult]:
    """Reconciliation as a graph: `{"candidate", "context"}` in, decision and changes out.

    It reads the store and changes nothing. The write guard runs it on every admitted candidate, and
    commits the changes together with the candidate.

    Args:
        model: The reader: `"provider:model"`, a `BaseChatModel`, a resolved model, or `"local"`,
            the default, for rules that need no language model and see less.
        store: The memory store; the graph's own store by default. It needs an index.
        spec: Settings.
        prompt: Your own prompt, with the slots `now`, `candidate` and `memories`.
        clock: Returns the time of the run, which a candidate without a time counts as said at.

    Raises:
        ConfigurationError: If the model or the prompt cannot be used.
    """
    reader = build_relation_reader(LOCAL if model is None else model, prompt=prompt)
    return typed(build_reconcile_graph(reader, spec=spec or Reconcile(), store=store, clock=clock))


def build_reconcile_graph(
    reader: RelationReader,
    *,
    spec: Reconcile,
    store: BaseStore | None,
    clock: Clock = lambda: datetime.now(UTC),
    origins: Origins | None = None,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The graph around a reader that exists already."""
    builder = StateGraph(ReconcileState, input_schema=ReconcileInput, output_schema=ReconcileOutput)
    recall_node = partial(recall, spec=spec, store=store, clock=clock, origins=origins)
    builder.add_node("recall", dual(recall_node))
    builder.add_node("relate", dual(partial(relate, reader=reader)))
    builder.add_node("decide", dual(partial(decide, spec=spec)))
    builder.add_edge(START, "recall")
    builder.add_edge("recall", "relate")
    builder.add_edge("relate", "decide")
    builder.add_edge("decide", END)
    return builder.compile(name=METHOD)
