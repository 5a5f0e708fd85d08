"""Between the gates and the commit: how an admitted candidate changes what is stored.

Candidates of one namespace are reconciled and committed one after the other, so that two of the
same conversation see each other. Other processes are not waited for: where one of them changed a
memory in between, the commit refuses the changes, and the candidate is reconciled again.
"""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from langgraph.store.base import BaseStore

from memguard.errors import RecordChangedError
from memguard.llm.limits import Limiter
from memguard.llm.models import DEFAULT, LOCAL, ModelLike
from memguard.methods.reconcile import Reconcile, build_reconcile_graph
from memguard.methods.reconcile.graph import ReconcileResult
from memguard.methods.reconcile.neighbours import Origins, can_rank
from memguard.methods.reconcile.readers import build_relation_reader
from memguard.prompts import Prompt
from memguard.schema.base import Clock, Namespace
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import CandidateMemory, Lifecycle
from memguard.schema.receipt import MethodReport, Receipt
from memguard.schema.relations import RecordChange
from memguard.uncheckpointed import UncheckpointedGraph, uncheckpointed
from memguard.write.stored_texts import find_stored_texts

STAGE = "reconciler"
PROMPT = "reconcile/relate"

ReconcileLike = bool | Reconcile
"""Whether candidates are reconciled, and with which settings."""

MAX_ATTEMPTS = 3
"""How often a candidate is reconciled before it is stored without changing other memories."""

_MAX_RUNS = 1_000

_CHANGED_NOTE = (
    f"the near memories were changed by another writer {MAX_ATTEMPTS} times: stored as in conflict "
    "with them, without changing them"
)


class RunKeys:
    """The keys of the records that each run stored or confirmed, until it is over."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_run: OrderedDict[str, dict[str, None]] = OrderedDict()

    def add(self, run_id: str, key: str) -> None:
        """Note a record of a run."""
        with self._lock:
            self._by_run.setdefault(run_id, {})[key] = None
            if len(self._by_run) > _MAX_RUNS:
                # Of a run that ended without its report.
                self._by_run.popitem(last=False)

    def of(self, run_id: str) -> tuple[str, ...]:
        """The keys of a run."""
        with self._lock:
            return tuple(self._by_run.get(run_id, ()))

    def close(self, run_id: str) -> None:
        """Forget a run."""
        with self._lock:
            self._by_run.pop(run_id, None)


@dataclass(frozen=True, kw_only=True)
class Reconciled:
    """What reconciliation says about one candidate."""

    decision: AdmissionDecision
    """The decision of the guard: that of the gates, or that the candidate is not stored."""
    report: MethodReport
    """The evidence."""
    key: str
    """The key of its record, or of the record that it confirms or repeats."""
    changes: tuple[RecordChange, ...] = ()
    """Changes of stored memories."""
    lifecycle: Lifecycle = field(default_factory=Lifecycle)
    """What its record begins with."""

    def without_changes(self, admitted: AdmissionDecision) -> "Reconciled":
        """The same candidate, stored without a change of other memories, in conflict with them."""
        keys = tuple(dict.fromkeys(change.key for change in self.changes))
        report = self.report.model_copy(update={"notes": (*self.report.notes, _CHANGED_NOTE)})
        # The event time still holds; what the record would have replaced is not known any more.
        lifecycle = Lifecycle(event_at=self.lifecycle.event_at, conflicts_with=keys)
        explanation = f"{admitted.explanation}; {_CHANGED_NOTE}"
        decision = admitted.model_copy(update={"explanation": explanation})
        return replace(self, decision=decision, report=report, changes=(), lifecycle=lifecycle)


@dataclass(frozen=True, kw_only=True)
class Reconciler:
    """Reconciliation, ready to run inside a guard."""

    graph: UncheckpointedGraph[ReconcileResult]
    """The method."""
    spec: Reconcile
    """Its settings."""

    async def run(
        self,
        candidate: CandidateMemory,
        *,
        admitted: AdmissionDecision,
        store: BaseStore,
        key: str = "",
        **values: Any,
    ) -> Reconciled:
        """Reconcile one admitted candidate.

        Args:
            candidate: The candidate.
            admitted: The decision of the gates.
            store: The memory store.
            key: The key of its record, where that does not follow from its text.
            values: Further input of the graph.

        Raises:
            MemguardError: If the store failed, or no request to the model can succeed.
        """
        if not key:
            # Now rather than before the gates: another candidate may have stored the text since.
            texts = await find_stored_texts(store, candidate.namespace, [candidate.text])
            (key,) = (text.key for text in texts.values())
        result: Any = await self.graph.ainvoke(
            {"candidate": candidate, "record_key": key, **values}
        )
        decision: AdmissionDecision = result["decision"]
        if decision.outcome == "admit":
            # The gates' decision stays: its reason and its score say why this is a memory at all.
            changes_nothing = not result["changes"] and not _tells(result["lifecycle"])
            explanation = f"{admitted.explanation}; {decision.explanation}"
            update = {} if changes_nothing else {"explanation": explanation}
            decision = admitted.model_copy(update=update)
        evidence = result["report"].evidence
        return Reconciled(
            decision=decision,
            report=result["report"],
            key=evidence.get("repeated") or key,
            changes=tuple(result["changes"]),
            lifecycle=result["lifecycle"],
        )


def _tells(lifecycle: Lifecycle) -> bool:
    """Whether a record begins with a relation to others, rather than with an event time alone."""
    return lifecycle.model_copy(update={"event_at": None}) != Lifecycle()


def build_reconciler(
    reconcile: ReconcileLike,
    *,
    models: Mapping[str, ModelLike],
    prompts: Mapping[str, Prompt],
    store: BaseStore | None,
    clock: Clock,
    asks: bool = False,
    origins: Origins | None = None,
) -> Reconciler | None:
    """Reconciliation for a guard; `None` if it is switched off.

    Args:
        reconcile: Whether to reconcile, or the settings.
        models: By stage; the stage `reconciler`, else `judge`, else the default, else the rules.
        prompts: Your own prompts by name.
        store: The memory store; the store of the run by default.
        clock: Returns the time of a run.
        asks: Whether a person is asked in the run, who then decides on conflicts by default.
        origins: Gives the origins of items that do not contain theirs.

    Raises:
        ConfigurationError: If a model or a prompt cannot be used.
    """
    if reconcile is False:
        return None
    default = Reconcile.preset("review") if asks else Reconcile()
    spec = default if reconcile is True else reconcile
    model = next((models[name] for name in (STAGE, "judge", DEFAULT) if name in models), LOCAL)
    reader = build_relation_reader(model, prompt=prompts.get(PROMPT))
    graph = build_reconcile_graph(reader, spec=spec, store=store, clock=clock, origins=origins)
    return Reconciler(graph=uncheckpointed(graph), spec=spec)


_Turns = WeakValueDictionary[Namespace, Limiter]

# Two guards around one store take turns, too. A limiter lives as long as a candidate holds it or
# waits for it.
_TURNS: WeakKeyDictionary[BaseStore, _Turns] = WeakKeyDictionary()
_TURNS_LOCK = Lock()


@asynccontextmanager
async def turn_of(store: BaseStore, namespace: Namespace) -> AsyncGenerator[None]:
    """Wait until no other candidate of the namespace is reconciled in this process.

    In a store that ranks nothing, candidates do not see each other, and nobody waits.
    """
    if not can_rank(store):
        yield
        return
    with _TURNS_LOCK:
        turns = _TURNS.setdefault(store, WeakValueDictionary())
        limiter = turns.get(namespace)
        if limiter is None:
            limiter = turns[namespace] = Limiter()
    async with limiter.slot(1):
        yield


async def commit_reconciled(
    reconciler: Reconciler,
    candidate: CandidateMemory,
    *,
    admitted: AdmissionDecision,
    commit: Callable[[Reconciled], Awaitable[Receipt]],
    store: BaseStore,
    **values: Any,
) -> Receipt:
    """Reconcile a candidate and commit it; again if another writer changed what it changes.

    Args:
        reconciler: The method.
        candidate: The candidate.
        admitted: The decision of the gates.
        commit: Creates the receipt and commits it.
        store: The memory store.
        values: Further input of the graph.

    Raises:
        MemguardError: If the store, the log or the model failed.
    """
    outcome = await reconciler.run(candidate, admitted=admitted, store=store, **values)
    for _ in range(MAX_ATTEMPTS - 1):
        try:
            return await commit(outcome)
        except RecordChangedError:
            outcome = await reconciler.run(candidate, admitted=admitted, store=store, **values)
    try:
        return await commit(outcome)
    except RecordChangedError:
        # An admitted candidate is never lost, and never silently replaces what it did not see.
        return await commit(outcome.without_changes(admitted))
