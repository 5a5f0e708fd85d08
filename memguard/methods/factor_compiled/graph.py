"""Factor-Compiled Admission (arXiv 2610.11188): which entries may enter the prompt, and as what?

```text
START -> adjudicate -> compile -> render -> END
```

`adjudicate` is the one model call of a read: the situation, then a row of factors per entry.
`compile` looks channels up in a table and `render` writes what is admitted; an excluded entry is
not in the text.
"""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from memguard.adjudication.make import make_adjudicator
from memguard.adjudication.steps import Steps
from memguard.adjudication.unsaved import unsaved
from memguard.llm.models import ModelLike
from memguard.methods.factor_compiled.state import FactorInput, FactorOutput, FactorState
from memguard.portal import dual
from memguard.prompts import Prompt, load_prompt, prompt_or_own
from memguard.protocols import Adjudicator
from memguard.schema.read_config import FactorCompiled
from memguard.schema.usage import Budget

NAME = "factor_compiled"

# Read now, with the module: a graph may be made inside a running event loop.
load_prompt(NAME, "adjudicate")


async def adjudicate(state: FactorState, *, steps: Steps) -> dict[str, Any]:
    """Ask for the situation, and for the factors of every entry."""
    whole = steps.units(state.memories, pieces={})
    return {**whole, **await steps.judge(state, units=whole["units"])}


async def compile_entries(state: FactorState, *, steps: Steps) -> dict[str, Any]:
    """Look every entry up in the table, settle conflicts, and choose what fits."""
    return steps.compile(state)


async def render(state: FactorState, *, steps: Steps) -> dict[str, Any]:
    """Write the section for the prompt, and the receipt of the read."""
    return steps.render(state)


def create_factor_compiled_graph(
    model: "ModelLike | None" = None,
    *,
    spec: FactorCompiled | None = None,
    adjudicator: Adjudicator | None = None,
    budget: Budget | None = None,
    prompt: Prompt | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """FC as a graph: `{"query", "memories", "dialogue", "evidence"}` in, the section out.

    Args:
        model: Who judges: `"provider:model"`, a `BaseChatModel`, a resolved model, or `"local"`
            for rules that need no language model. Not needed with an adjudicator of your own.
        spec: Settings; the default preset when left out.
        adjudicator: Your own in place of the model.
        budget: The most that one read may spend; no limit when left out.
        prompt: Your own adjudication prompt, with the slots of the one that ships.
        clock: Gives the time, of reports and of `now`.
        new_id: Gives ids of reports.

    Raises:
        ConfigurationError: If the model or the prompt cannot be used.
    """
    spec = spec or FactorCompiled()
    asking = prompt_or_own(NAME, "adjudicate", override=prompt)
    steps = Steps(
        method=NAME,
        scheme="factors",
        spec=spec,
        adjudicator=adjudicator
        or make_adjudicator(model, prompt=asking, scheme="factors", spec=spec),
        budget=budget or Budget(),
        clock=clock,
        new_id=new_id,
    )
    builder = StateGraph(FactorState, input_schema=FactorInput, output_schema=FactorOutput)
    builder.add_node("adjudicate", dual(partial(adjudicate, steps=steps)))
    builder.add_node("compile", dual(partial(compile_entries, steps=steps), name="compile"))
    builder.add_node("render", dual(partial(render, steps=steps)))
    builder.add_edge(START, "adjudicate")
    builder.add_edge("adjudicate", "compile")
    builder.add_edge("compile", "render")
    builder.add_edge("render", END)
    return unsaved(builder.compile(name=NAME))
