"""From what a user passes as `admission` to a graph to ask, and to one for the worst case.

The second is the same method with nobody to ask: it gives what SPEC section 7 leaves when no
verdict is usable, from the words of the memories alone, in a millisecond or two.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from langgraph.graph.state import CompiledStateGraph

from memguard.adjudication.make import make_adjudicator, make_decomposer
from memguard.errors import ConfigurationError, ErrorCode, MemguardError
from memguard.guard.pieces import JournalPieces, use_pieces
from memguard.guard.relevance import create_relevance_gate_graph
from memguard.guard.unsaved import run_unsaved
from memguard.llm.models import ModelLike
from memguard.llm.stages import model_of
from memguard.local.adjudicator import LocalAdjudicator
from memguard.methods.factor_compiled import create_factor_compiled_graph
from memguard.methods.permission_semantic import create_permission_semantic_graph
from memguard.prompts import Prompt, prompt_or_own
from memguard.protocols import Adjudicator
from memguard.schema.ledger import Adjudication, Decomposition, Flag
from memguard.schema.read import ReadCase
from memguard.schema.read_config import FactorCompiled, PermissionSemantic, RelevanceGate
from memguard.schema.units import Scheme, Unit
from memguard.schema.usage import Budget
from memguard.schema.verdict import Inconclusive
from memguard.schema.write import Failure
from memguard.stores.decompositions import DecompositionLog
from memguard.stores.journal import Journal

Graph = CompiledStateGraph[Any, Any, Any, Any]

AdmissionSpec = FactorCompiled | PermissionSemantic | RelevanceGate
AdmissionLike = AdmissionSpec | str | Graph
"""A spec, the name of a default spec, or a graph of your own with a method's input and output."""

BY_NAME: dict[str, AdmissionSpec] = {
    "fc": FactorCompiled(),
    "ps": PermissionSemantic(),
    "relevance": RelevanceGate(),
}
"""The default spec of each method, by its short name."""

STAGES = ("default", "adjudicator", "decomposer")
"""What a model can be named for; `default` serves where no other is named."""

PROMPTS = (
    "factor_compiled/adjudicate",
    "permission_semantic/adjudicate",
    "permission_semantic/decompose",
)
"""The prompts that can be replaced."""

LOCAL = "local"
_SHARE = 0.9
"""Of the deadline, what the model calls may take: recall and the receipt need some as well."""
_DEFAULT_K = 10
_DEFAULT_DEADLINE = 20.0


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What a method returned, and what a reader must know of how it came about."""

    found: dict[str, Any]
    """The method's output."""
    flags: tuple[Flag, ...] = ()
    """Why the worst case had to do."""
    failures: tuple[Failure, ...] = ()
    """What stopped the method, with a code of the errors page."""


@dataclass(frozen=True, kw_only=True)
class Admission:
    """A method ready to be asked."""

    graph: Graph
    """The method."""
    fallback: Graph
    """The same without anybody to ask."""
    k: int
    """Memories it wants to see."""
    deadline: float
    """Seconds a whole read may take."""
    decomposer: str = ""
    """The fingerprint of who cuts memories; empty where nobody does."""

    async def judge(self, given: dict[str, Any], *, journal: Journal, seconds: float) -> Judged:
        """Ask the method, and do without its judgement where that fails or is late.

        Args:
            given: The method's input.
            journal: Where the pieces of memories are kept.
            seconds: How long it may take.
        """
        pieces = use_pieces(
            DecompositionLog(journal), memories=given["memories"], fingerprint=self.decomposer
        )
        try:
            async with asyncio.timeout(seconds):
                with pieces:
                    return Judged(found=await run_unsaved(self.graph, given))
        except TimeoutError:
            return await self.without(given, flags=("adjudication_late",))
        except MemguardError as error:
            failure = Failure(code=error.code, message=error.message, step="admit")
            return await self.without(given, flags=("adjudication_failed",), failures=(failure,))

    async def without(
        self,
        given: dict[str, Any],
        *,
        flags: tuple[Flag, ...] = (),
        failures: tuple[Failure, ...] = (),
    ) -> Judged:
        """What is left when nobody can be asked."""
        return Judged(found=await self.fallback.ainvoke(given), flags=flags, failures=failures)


def build_admission(
    admission: AdmissionLike,
    *,
    models: Mapping[str, ModelLike],
    prompts: Mapping[str, Prompt],
    budget: Budget,
    deadline: float | None,
    clock: Callable[[], datetime],
) -> Admission:
    """Build the method that an argument asks for.

    Args:
        admission: A spec, a name or a graph.
        models: By stage: `adjudicator` and `decomposer` are asked for, then `default`.
        prompts: Your own prompts by name.
        budget: The most one read may spend.
        deadline: Seconds of a whole read; the spec's when left out.
        clock: Gives the time.

    Raises:
        ConfigurationError: If the admission is unknown, or a model or prompt cannot be used.
    """
    if isinstance(admission, CompiledStateGraph):
        without = create_factor_compiled_graph(adjudicator=_Nobody(), clock=clock)
        late = deadline if deadline is not None else _DEFAULT_DEADLINE
        return Admission(graph=admission, fallback=without, k=_DEFAULT_K, deadline=late)
    spec = _spec_named(admission) if isinstance(admission, str) else admission
    if isinstance(spec, RelevanceGate):
        graph = create_relevance_gate_graph(spec=spec, clock=clock)
        late = deadline if deadline is not None else _DEFAULT_DEADLINE
        return Admission(graph=graph, fallback=graph, k=spec.k, deadline=late)
    late = deadline if deadline is not None else spec.deadline
    timed = spec.model_copy(update={"deadline": late * _SHARE})
    if isinstance(timed, FactorCompiled):
        return _factors(
            timed, models=models, prompts=prompts, budget=budget, deadline=late, clock=clock
        )
    return _permissions(
        timed, models=models, prompts=prompts, budget=budget, deadline=late, clock=clock
    )


def _factors(
    spec: FactorCompiled,
    *,
    models: Mapping[str, ModelLike],
    prompts: Mapping[str, Prompt],
    budget: Budget,
    deadline: float,
    clock: Callable[[], datetime],
) -> Admission:
    own = prompts.get("factor_compiled/adjudicate")
    prompt = prompt_or_own("factor_compiled", "adjudicate", own=own)
    judge = _adjudicator(models, prompt=prompt, scheme="factors", spec=spec)
    return Admission(
        graph=create_factor_compiled_graph(
            spec=spec, adjudicator=judge, budget=budget, clock=clock
        ),
        fallback=create_factor_compiled_graph(spec=spec, adjudicator=_Nobody(), clock=clock),
        k=spec.k,
        deadline=deadline,
    )


def _permissions(
    spec: PermissionSemantic,
    *,
    models: Mapping[str, ModelLike],
    prompts: Mapping[str, Prompt],
    budget: Budget,
    deadline: float,
    clock: Callable[[], datetime],
) -> Admission:
    name = "permission_semantic"
    prompt = prompt_or_own(name, "adjudicate", own=prompts.get(f"{name}/adjudicate"))
    cutting = prompt_or_own(name, "decompose", own=prompts.get(f"{name}/decompose"))
    judge = _adjudicator(models, prompt=prompt, scheme="units", spec=spec)
    cutter = make_decomposer(model_of(models, "decomposer"), prompt=cutting)
    return Admission(
        graph=create_permission_semantic_graph(
            spec=spec,
            adjudicator=judge,
            decomposer=cutter,
            cache=JournalPieces(),
            budget=budget,
            clock=clock,
        ),
        fallback=create_permission_semantic_graph(
            spec=spec, adjudicator=_Nobody(), decomposer=_Whole(cutter.fingerprint), clock=clock
        ),
        k=spec.k,
        deadline=deadline,
        decomposer=cutter.fingerprint,
    )


def _adjudicator(
    models: Mapping[str, ModelLike],
    *,
    prompt: Prompt,
    scheme: Scheme,
    spec: FactorCompiled | PermissionSemantic,
) -> Adjudicator:
    model = model_of(models, "adjudicator")
    if model == LOCAL:
        return _local()
    return make_adjudicator(model, prompt=prompt, scheme=scheme, spec=spec)


@cache
def _local() -> LocalAdjudicator:
    """One per process; it loads its embedder at the first read."""
    return LocalAdjudicator()


@dataclass(frozen=True)
class _Nobody:
    """An adjudicator that says nothing of any unit."""

    name: str = "none"
    fingerprint: str = "none"

    async def adjudicate(
        self, case: ReadCase, *, units: Sequence[Unit], scheme: Scheme, seconds: float
    ) -> Adjudication:
        """Nothing; policy then goes by the words of each unit."""
        del case, units, scheme, seconds
        return Adjudication(situation=Inconclusive(reason="timeout", detail="nobody was asked"))


@dataclass(frozen=True)
class _Whole:
    """A decomposer that leaves memories whole."""

    fingerprint: str
    name: str = "none"

    async def decompose(self, texts: Sequence[str], *, seconds: float) -> Decomposition:
        """Nothing cut."""
        del seconds
        late = Inconclusive(reason="timeout", detail="nobody was asked")
        return Decomposition(pieces=(late,) * len(texts))


def _spec_named(name: str) -> AdmissionSpec:
    try:
        return BY_NAME[name]
    except KeyError:
        msg = f"there is no admission named {name!r}: use one of {sorted(BY_NAME)}, or pass a spec"
        raise ConfigurationError(msg, code=ErrorCode.SPEC_INVALID) from None
