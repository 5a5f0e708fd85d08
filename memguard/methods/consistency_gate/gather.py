"""What a candidate is held against: the text that may support it, and the threshold."""

from dataclasses import dataclass

from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore, SearchOp

from memguard.errors import ConfigurationError, ErrorCode
from memguard.methods.consistency_gate.state import GateState
from memguard.policy.refusal import refuse_source, refuse_text
from memguard.policy.support import adaptive_threshold
from memguard.protocols import CountsRecords
from memguard.schema.base import Namespace
from memguard.schema.config import ConsistencyGate
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import Turn
from memguard.store_calls import call_store


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """What the judge needs."""

    tau: float
    """The threshold in force."""
    source: tuple[Turn, ...] = ()
    """The text that may support the candidate."""
    occupancy: int | None = None
    """Records in the namespace, where the threshold depends on it."""
    refusal: AdmissionDecision | None = None
    """The ruling on what cannot be judged."""


async def gather(state: GateState, *, spec: ConsistencyGate, store: BaseStore | None) -> Gathered:
    """Collect the text that may support the candidate, and the threshold it has to reach.

    Raises:
        ConfigurationError: If the spec needs stored memories and there is no store.
    """
    refusal = refuse(state, spec=spec)
    if refusal is not None:
        return Gathered(refusal=refusal, tau=spec.tau)
    source = state.context.evidence if spec.context != "memory" else ()
    if spec.context == "source" and spec.threshold == "fixed":
        return Gathered(source=source, tau=spec.tau)
    memory = _store(store)
    if spec.context != "source":
        source += await recall_support(memory, state=state, limit=spec.memory_k)
    if spec.threshold == "fixed":
        return Gathered(source=source, tau=spec.tau)
    occupancy = await count_records(memory, state.candidate.namespace, at_most=spec.capacity)
    tau = adaptive_threshold(
        occupancy, tau_min=spec.tau_min, tau_max=spec.tau_max, capacity=spec.capacity
    )
    return Gathered(source=source, tau=tau, occupancy=occupancy)


def refuse(state: GateState, *, spec: ConsistencyGate) -> AdmissionDecision | None:
    """The ruling on what cannot be judged, or `None` when it can be."""
    return refuse_text(state.candidate.text) or (
        refuse_source(state.context.evidence, required=spec.context == "source")
        if spec.context != "memory"
        else None
    )


async def recall_support(store: BaseStore, *, state: GateState, limit: int) -> tuple[Turn, ...]:
    """The stored memories nearest to the candidate, from exactly its namespace."""
    namespace = state.candidate.namespace
    nearest = SearchOp(namespace, query=state.candidate.text, limit=limit, refresh_ttl=False)
    (found,) = await call_store(store, [nearest])
    return tuple(
        Turn(id=f"memory:{item.key}", role="user", content=str(item.value.get("content", "")))
        for item in found
        if item.namespace == namespace
    )


async def count_records(store: BaseStore, namespace: Namespace, *, at_most: int) -> int:
    """Records in exactly this namespace; counting stops at `at_most` in stores without a count."""
    if isinstance(store, CountsRecords):
        return await store.acount(namespace)
    page = SearchOp(namespace, limit=at_most, refresh_ttl=False)
    (found,) = await call_store(store, [page])
    return sum(item.namespace == namespace for item in found)


def _store(store: BaseStore | None) -> BaseStore:
    found = store if store is not None else get_runtime().store
    if found is None:
        msg = (
            "this ConsistencyGate reads stored memories (`context` or `threshold` say so), but "
            "there is no store: pass `store=` or compile the host graph with one"
        )
        raise ConfigurationError(msg, code=ErrorCode.STORE_MISSING)
    return found
