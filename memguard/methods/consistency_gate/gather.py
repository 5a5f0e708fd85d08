"""What a candidate is compared with: the text that may support it, and the threshold."""

from dataclasses import dataclass

from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore, SearchOp

from memguard.errors import ConfigurationError, ErrorCode
from memguard.methods.consistency_gate.state import SupportState
from memguard.policy.refusal import refuse_source, refuse_text
from memguard.policy.support import adaptive_threshold
from memguard.protocols import CountsRecords
from memguard.schema.base import Namespace
from memguard.schema.config import ConsistencyGate
from memguard.schema.decision import AdmissionDecision
from memguard.schema.memory import Turn
from memguard.store_calls import call_store


@dataclass(frozen=True, kw_only=True)
class SupportContext:
    """What the judge needs."""

    tau: float
    """The threshold in force."""
    source: tuple[Turn, ...] = ()
    """The text that may support the candidate."""
    occupancy: int | None = None
    """Records in the namespace, where the threshold depends on it."""
    refusal: AdmissionDecision | None = None
    """The ruling on what cannot be judged."""


async def gather(
    state: SupportState, *, spec: ConsistencyGate, store: BaseStore | None, check_text: bool
) -> SupportContext:
    """Collect the text that may support the candidate, and the threshold it has to reach.

    Args:
        state: The candidate and its source.
        spec: Settings.
        store: The memory store.
        check_text: Whether the text may be unusable; a guard has refused such texts before.

    Raises:
        ConfigurationError: If the spec needs stored memories and there is no store.
    """
    refusal = refuse_text(state.candidate.text) if check_text else None
    if refusal is None and spec.context != "memory":
        refusal = refuse_source(state.context.evidence, required=spec.context == "source")
    if refusal is not None:
        return SupportContext(refusal=refusal, tau=spec.tau)
    source = state.context.evidence if spec.context != "memory" else ()
    if spec.context == "source" and spec.threshold == "fixed":
        return SupportContext(source=source, tau=spec.tau)
    memory = _store(store)
    if spec.context != "source":
        source += await recall_support(memory, state=state, limit=spec.memory_k)
    if spec.threshold == "fixed":
        return SupportContext(source=source, tau=spec.tau)
    occupancy = await count_records(memory, state.candidate.namespace, limit=spec.capacity)
    tau = adaptive_threshold(
        occupancy, tau_min=spec.tau_min, tau_max=spec.tau_max, capacity=spec.capacity
    )
    return SupportContext(source=source, tau=tau, occupancy=occupancy)


async def recall_support(store: BaseStore, *, state: SupportState, limit: int) -> tuple[Turn, ...]:
    """The stored memories nearest to the candidate, from exactly its namespace."""
    namespace = state.candidate.namespace
    nearest = SearchOp(namespace, query=state.candidate.text, limit=limit, refresh_ttl=False)
    (matches,) = await call_store(store, [nearest])
    return tuple(
        Turn(id=f"memory:{item.key}", role="user", content=str(item.value.get("content", "")))
        for item in matches
        if item.namespace == namespace
    )


async def count_records(store: BaseStore, namespace: Namespace, *, limit: int) -> int:
    """Records in exactly this namespace; counting stops at `limit` in stores without a count."""
    if isinstance(store, CountsRecords):
        return await store.acount(namespace)
    page = SearchOp(namespace, limit=limit, refresh_ttl=False)
    (items,) = await call_store(store, [page])
    return sum(item.namespace == namespace for item in items)


def _store(store: BaseStore | None) -> BaseStore:
    memory = store if store is not None else get_runtime().store
    if memory is None:
        msg = (
            "this ConsistencyGate reads stored memories (`context` or `threshold` say so), but "
            "there is no store: pass `store=` or compile the host graph with one"
        )
        raise ConfigurationError(msg, code=ErrorCode.STORE_MISSING)
    return memory
