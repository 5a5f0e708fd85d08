"""Permission-Semantic Admission (arXiv 2610.11188): what may each unit be used for in this answer?

```text
START -> decompose -> adjudicate -> compile -> render -> END
```

`decompose` cuts memories into typed units, once per memory. `adjudicate` is the one model call of
a read: the situation, then a row of attributes per unit. `compile` looks permissions up in a table
and `render` writes what is permitted; a denied unit is not in the text.
"""

import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from memguard.adjudication.case import distinct
from memguard.adjudication.make import make_adjudicator, make_decomposer
from memguard.adjudication.steps import Steps
from memguard.adjudication.unsaved import unsaved
from memguard.llm.metering import use_meter
from memguard.llm.models import ModelLike
from memguard.methods.permission_semantic.cache import InMemoryPieces
from memguard.methods.permission_semantic.decompose import cut
from memguard.methods.permission_semantic.state import (
    PermissionInput,
    PermissionOutput,
    PermissionState,
)
from memguard.portal import dual
from memguard.prompts import Prompt, load_prompt, prompt_or_own
from memguard.protocols import Adjudicator, Decomposer, DecompositionCache
from memguard.schema.base import is_blank
from memguard.schema.read_config import PermissionSemantic
from memguard.schema.usage import Budget, Usage

NAME = "permission_semantic"

_CUTTING_SHARE = 0.5
"""Of the deadline: a memory that is not cut can still be judged, one that is not judged cannot."""

# Read now, with the module: a graph may be made inside a running event loop.
load_prompt(NAME, "adjudicate")
load_prompt(NAME, "decompose")


async def decompose(
    state: PermissionState, *, steps: Steps, decomposer: Decomposer, cache: DecompositionCache
) -> dict[str, Any]:
    """Cut the memories that will be judged into units; kept ones cost nothing."""
    began = time.monotonic()
    memories, _ = distinct(state.memories)
    judged = [each for each in memories if not (each.superseded or is_blank(state.query))]
    with use_meter(steps.meter(spent=Usage(), seconds=0.0)):
        found = await cut(
            judged,
            decomposer=decomposer,
            cache=cache,
            seconds=_CUTTING_SHARE * steps.spec.deadline,
        )
    made = found.decomposition
    notes = [*(made.notes if made else ()), *(each.note for each in found.pieces.values())]
    return {
        **steps.units(state.memories, pieces=found.pieces),
        "decomposition": made,
        "decomposed": len(found.pieces) - found.cached,
        "cached": found.cached,
        "seconds": time.monotonic() - began,
        "flags": ("decomposition_failed",) if found.failed else (),
        "notes": tuple(dict.fromkeys(note for note in notes if note)),
    }


async def adjudicate(state: PermissionState, *, steps: Steps) -> dict[str, Any]:
    """Ask for the situation, and for the attributes of every unit."""
    return await steps.judge(state, units=state.units)


async def compile_units(state: PermissionState, *, steps: Steps) -> dict[str, Any]:
    """Look every unit up in the table, settle conflicts, and choose what fits."""
    return steps.compile(state)


async def render(state: PermissionState, *, steps: Steps) -> dict[str, Any]:
    """Write the section for the prompt, and the receipt of the read."""
    return steps.render(state)


def create_permission_semantic_graph(
    model: "ModelLike | None" = None,
    *,
    spec: PermissionSemantic | None = None,
    adjudicator: Adjudicator | None = None,
    decomposer: Decomposer | None = None,
    cache: DecompositionCache | None = None,
    budget: Budget | None = None,
    prompt: Prompt | None = None,
    decompose_prompt: Prompt | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """PS as a graph: `{"query", "memories", "dialogue", "evidence"}` in, the section out.

    Args:
        model: Who judges and cuts: `"provider:model"`, a `BaseChatModel`, a resolved model, or
            `"local"` for rules that need no language model. Not needed with an adjudicator and a
            decomposer of your own.
        spec: Settings; the default preset when left out.
        adjudicator: Your own in place of the model.
        decomposer: Your own in place of the model.
        cache: Where units are kept between reads; in the process when left out.
        budget: The most that one read may spend; no limit when left out.
        prompt: Your own adjudication prompt, with the slots of the one that ships.
        decompose_prompt: Your own decomposition prompt, with the slot `memories`.
        clock: Gives the time, of reports and of `now`.
        new_id: Gives ids of reports.

    Raises:
        ConfigurationError: If a model or a prompt cannot be used.
    """
    spec = spec or PermissionSemantic()
    asking = prompt_or_own(NAME, "adjudicate", override=prompt)
    cutting = prompt_or_own(NAME, "decompose", override=decompose_prompt)
    steps = Steps(
        method=NAME,
        scheme="units",
        spec=spec,
        adjudicator=adjudicator
        or make_adjudicator(model, prompt=asking, scheme="units", spec=spec),
        budget=budget or Budget(),
        clock=clock,
        new_id=new_id,
    )
    cutter = decomposer or make_decomposer(model, prompt=cutting)
    kept = cache if cache is not None else InMemoryPieces()
    builder = StateGraph(
        PermissionState, input_schema=PermissionInput, output_schema=PermissionOutput
    )
    first = partial(decompose, steps=steps, decomposer=cutter, cache=kept)
    builder.add_node("decompose", dual(first))
    builder.add_node("adjudicate", dual(partial(adjudicate, steps=steps)))
    builder.add_node("compile", dual(partial(compile_units, steps=steps), name="compile"))
    builder.add_node("render", dual(partial(render, steps=steps)))
    builder.add_edge(START, "decompose")
    builder.add_edge("decompose", "adjudicate")
    builder.add_edge("adjudicate", "compile")
    builder.add_edge("compile", "render")
    builder.add_edge("render", END)
    return unsaved(builder.compile(name=NAME))
