"""The admission method of a read: built from an argument, run within the deadline of the read.

A method that fails or is late is replaced by its fallback, which asks no model. The units that
memories were split into are cached in the journal of the read in progress. A method is built once,
but the store, and with it the journal, is known only within a run. A context variable therefore
carries the journal from the guard to the cache that the method was built with.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Literal

from langgraph.graph.state import CompiledStateGraph

from memguard.errors import ConfigurationError, ErrorCode, MemguardError
from memguard.journal.caches import DecompositionLog, owned_by
from memguard.journal.journal import Journal
from memguard.llm.models import ModelLike, model_of
from memguard.local.pieces import pieces_key
from memguard.methods.adjudication.steps import NoAdjudicator, Steps, read_without_adjudicator
from memguard.methods.factor_compiled import create_factor_compiled_graph
from memguard.methods.permission_semantic.graph import (
    create_decomposer,
    create_permission_semantic_graph,
)
from memguard.methods.relevance_gate import create_relevance_gate_graph
from memguard.prompts import Prompt, resolve_prompt
from memguard.read.recall import DEFAULT_SAFETY_K
from memguard.schema.failures import Failure, failure_of
from memguard.schema.read import (
    FACTOR_COMPILED_PRESETS,
    PERMISSION_SEMANTIC_PRESETS,
    FactorCompiled,
    Flag,
    PermissionSemantic,
    RecalledMemory,
)
from memguard.schema.receipt import Budget
from memguard.schema.relevance_gate import RELEVANCE_GATE_PRESETS, RelevanceGate
from memguard.schema.units import Pieces
from memguard.state_keys import spec_named
from memguard.uncheckpointed import Graph, run_uncheckpointed

AdmissionSpec = FactorCompiled | PermissionSemantic | RelevanceGate
AdmissionName = Literal[
    "ps",
    "ps:default",
    "ps:paper",
    "fc",
    "fc:default",
    "fc:paper",
    "relevance",
    "relevance:default",
    "relevance:paper",
]
"""The short name of a method, alone for its default or with one of its presets."""

AdmissionLike = AdmissionSpec | AdmissionName | Graph
"""A spec, its name, or a graph of your own with a method's input and output."""

BY_NAME: dict[str, AdmissionSpec] = {
    "fc": FactorCompiled(),
    "ps": PermissionSemantic(),
    "relevance": RelevanceGate(),
    **{f"fc:{name}": spec for name, spec in FACTOR_COMPILED_PRESETS.items()},
    **{f"ps:{name}": spec for name, spec in PERMISSION_SEMANTIC_PRESETS.items()},
    **{f"relevance:{name}": spec for name, spec in RELEVANCE_GATE_PRESETS.items()},
}
"""The default spec of each method by its short name, and its presets, such as `ps:paper`."""

STAGES = ("default", "adjudicator", "decomposer")
"""The stages that can have their own model; `default` serves the others."""

PROMPTS = (
    "factor_compiled/adjudicate",
    "permission_semantic/adjudicate",
    "permission_semantic/decompose",
)
"""The prompts that can be replaced."""

_METHOD_SHARE = 0.9
"""Share of the deadline for the model calls: recall and the receipt need some of it as well."""
_DEFAULT_K = 10
_DEFAULT_DEADLINE = 20.0

Fallback = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""Takes a method's input and gives its output, without a model call."""

_LOG: ContextVar[DecompositionLog | None] = ContextVar("memguard_pieces", default=None)


@dataclass(frozen=True, kw_only=True)
class AdmissionResult:
    """What a method or its fallback returned, and why the fallback was used."""

    output: dict[str, Any]
    """The method's output."""
    flags: tuple[Flag, ...] = ()
    """Why the fallback was used."""
    failures: tuple[Failure, ...] = ()
    """What stopped the method, with a code of the errors page."""


@dataclass(frozen=True, kw_only=True)
class Admission:
    """A method, ready to judge the memories of a read."""

    graph: Graph
    """The method."""
    fallback: Fallback
    """What runs in its place when it fails or is late."""
    k: int
    """How many memories it judges."""
    deadline: float | None
    """Seconds a whole read may take; `None` for no limit."""
    safety_k: int = DEFAULT_SAFETY_K
    """Safety constraints that recall adds, unless its own settings say how many."""
    lookups: bool = False
    """Whether it tells requests about the past from others, so that recall may give it superseded
    memories."""
    decomposer: str = ""
    """The fingerprint of the decomposer; empty where the method has none."""

    @property
    def name(self) -> str:
        """The method's name, as drawings and streams show it."""
        return self.graph.get_name()

    async def judge(
        self, values: dict[str, Any], *, journal: Journal, seconds: float | None
    ) -> AdmissionResult:
        """Run the method, and use the fallback where it fails or is late.

        Args:
            values: The method's input.
            journal: Where the pieces of memories are cached.
            seconds: How long it may take; `None` for no limit.
        """
        pieces = use_pieces(
            DecompositionLog(journal), memories=values["memories"], fingerprint=self.decomposer
        )
        try:
            async with asyncio.timeout(seconds):
                with pieces:
                    output = await run_uncheckpointed(self.graph, values)
            _check_output(output, name=self.name)
            return AdmissionResult(output=output)
        # The method keeps its own, shorter deadline. This one holds for a user's graph as well.
        except TimeoutError:
            flag: Flag = "adjudication_late"
            failures = ()
        except MemguardError as error:
            # Raised later where it is to be, once the receipt that names it is written.
            flag, failures = "adjudication_failed", (failure_of(error, step="admit"),)
        output = await self.fallback(values)
        return AdmissionResult(output=output, flags=(flag,), failures=failures)


def build_admission(
    admission: AdmissionLike,
    *,
    models: Mapping[str, ModelLike],
    prompts: Mapping[str, Prompt],
    budget: Budget,
    deadline: float | None,
    clock: Callable[[], datetime],
) -> Admission:
    """Build the method that an admission argument selects.

    Args:
        admission: A spec, a name or a graph.
        models: By stage: `adjudicator` and `decomposer`, or else `default`.
        prompts: Your own prompts by name.
        budget: What one read may spend.
        deadline: Seconds of a whole read; the spec's when left out.
        clock: Gives the time.

    Raises:
        ConfigurationError: If the admission is unknown, or a model or prompt cannot be used.
    """
    spec = (
        spec_named(admission, BY_NAME, kind="admission")
        if isinstance(admission, str)
        else admission
    )
    if isinstance(spec, CompiledStateGraph | RelevanceGate):
        seconds = _DEFAULT_DEADLINE if deadline is None else deadline
        if isinstance(spec, CompiledStateGraph):
            # A user's graph may judge by anything, so its fallback assumes only whole memories.
            fallback = _fallback_of(FactorCompiled(), clock=clock)
            return Admission(graph=spec, fallback=fallback, k=_DEFAULT_K, deadline=seconds)
        graph = create_relevance_gate_graph(spec=spec, clock=clock)
        # It asks no model, so it is its own fallback.
        safety_k = 0 if spec.preset == "paper" else DEFAULT_SAFETY_K
        return Admission(
            graph=graph, fallback=graph.ainvoke, k=spec.k, deadline=seconds, safety_k=safety_k
        )
    whole = spec.deadline if deadline is None else deadline
    timed = spec.model_copy(update={"deadline": whole and whole * _METHOD_SHARE})
    graph, decomposer = _method_of(
        timed, models=models, prompts=prompts, budget=budget, clock=clock
    )
    fallback = _fallback_of(timed, clock=clock)
    return Admission(
        graph=graph,
        fallback=fallback,
        k=spec.k,
        deadline=whole,
        safety_k=DEFAULT_SAFETY_K if spec.safety else 0,
        lookups=spec.lookups,
        decomposer=decomposer,
    )


def _method_of(
    spec: FactorCompiled | PermissionSemantic,
    *,
    models: Mapping[str, ModelLike],
    prompts: Mapping[str, Prompt],
    budget: Budget,
    clock: Callable[[], datetime],
) -> tuple[Graph, str]:
    """The method as a graph, and the fingerprint of its decomposer."""
    adjudicator = model_of(models, "adjudicator")
    if isinstance(spec, FactorCompiled):
        graph = create_factor_compiled_graph(
            adjudicator,
            spec=spec,
            budget=budget,
            prompt=prompts.get("factor_compiled/adjudicate"),
            clock=clock,
        )
        return graph, ""
    override = prompts.get("permission_semantic/decompose")
    decomposer = create_decomposer(
        model_of(models, "decomposer"),
        prompt=resolve_prompt("permission_semantic", "decompose", override=override),
        spec=spec,
    )
    graph = create_permission_semantic_graph(
        adjudicator,
        spec=spec,
        decomposer=decomposer,
        # The store, and with it the journal, is known only within a run.
        cache=JournalPieces(),
        budget=budget,
        prompt=prompts.get("permission_semantic/adjudicate"),
        clock=clock,
    )
    return graph, decomposer.fingerprint


def _fallback_of(
    spec: FactorCompiled | PermissionSemantic, *, clock: Callable[[], datetime]
) -> Fallback:
    units = isinstance(spec, PermissionSemantic)
    steps = Steps(
        method="permission_semantic" if units else "factor_compiled",
        scheme="units" if units else "factors",
        spec=spec,
        adjudicator=NoAdjudicator(),
        clock=clock,
    )
    # The same policy and rendering as the method, so that only the verdicts are missing.
    return partial(read_without_adjudicator, steps=steps)


def _check_output(output: Mapping[str, Any], *, name: str) -> None:
    """Refuse a user's graph that does not return what a method returns.

    Raises:
        ConfigurationError: If an output is missing.
    """
    # Before the guard reads them: a missing output would look like a defect of the guard.
    required = ("memory_context", "admitted", "withheld", "report")
    missing = [key for key in required if output.get(key) is None]
    if missing:
        msg = (
            f"the admission {name!r} returned no {', '.join(missing)}: return "
            f"{', '.join(required)}, as the graph of `create_permission_semantic_graph` does"
        )
        raise ConfigurationError(msg, code=ErrorCode.SPEC_INVALID)


class JournalPieces:
    """A `DecompositionCache` over the journal of the read; outside a read it caches nothing."""

    async def aget(self, keys: Sequence[str]) -> Sequence[Pieces | None]:
        """The cached pieces, one entry per key."""
        log = _LOG.get()
        return [None] * len(keys) if log is None else await log.aget(keys)

    async def aput(self, entries: Mapping[str, Pieces]) -> None:
        """Cache pieces."""
        log = _LOG.get()
        if log is not None:
            await log.aput(entries)


@contextmanager
def use_pieces(
    log: DecompositionLog, *, memories: Sequence[RecalledMemory], fingerprint: str
) -> Generator[None]:
    """Cache pieces in a log inside the block, under the candidates that they come from.

    Forgetting a candidate then deletes its pieces as well.

    Args:
        log: The log.
        memories: The memories that may be split.
        fingerprint: The decomposer's.
    """
    owners = {
        pieces_key(memory.text, fingerprint=fingerprint): memory.provenance.candidate_id
        for memory in memories
        if memory.provenance is not None
    }
    # A context variable rather than an argument: concurrent reads share one graph.
    token = _LOG.set(log)
    try:
        with owned_by(owners):
            yield
    finally:
        _LOG.reset(token)
