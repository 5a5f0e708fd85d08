"""The writer: what in a conversation is worth proposing for storage?

```text
START -> plan -> read (one branch per pass) -> collect -> END
```
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Send

from memguard.llm.ask import ask
from memguard.llm.call import CallSettings
from memguard.llm.metering import current_meter
from memguard.llm.models import Model, ModelLike, resolve_model
from memguard.methods.writer.attribute import attribute_facts
from memguard.methods.writer.state import (
    Extraction,
    Pass,
    PassState,
    Unread,
    WriterInput,
    WriterOutput,
    WriterState,
    Written,
)
from memguard.policy.chunks import plan_chunks, split_long_turns
from memguard.portal import dual
from memguard.prompts import Prompt, load_prompt
from memguard.rendering.quote import quote_turns
from memguard.schema.config import Writer
from memguard.schema.memory import Turn
from memguard.schema.usage import Usage
from memguard.schema.verdict import Inconclusive

NAME = "writer"
MAX_TOKENS = 4096
"""Room for about a hundred facts, or for a reasoning model's thoughts and a few."""


async def plan(state: WriterState) -> dict[str, Any]:
    """Start from nothing written; the passes are cut by `passes`."""
    del state
    return {"written": []}


def passes(state: WriterState, *, spec: Writer) -> Sequence[Send | str]:
    """One branch per pass; straight to `collect` when there is nothing to read."""
    before = readable_turns(state.conversation.turns[: state.new_from], spec=spec)
    after = readable_turns(state.conversation.turns[state.new_from :], spec=spec)
    new = frozenset(range(len(before), len(before) + len(after)))
    chunks = plan_chunks((*before, *after), new=new, spec=spec)
    return [
        Send(
            "read",
            PassState(
                chunk=Pass(earlier=chunk.earlier, new=chunk.new),
                conversation_id=state.conversation.id,
            ),
        )
        for chunk in chunks
    ] or ["collect"]


async def read(state: PassState, *, model: Model, prompt: Prompt) -> dict[str, Any]:
    """Ask the model for the facts of one pass."""
    chunk = state.chunk
    messages = prompt.render(
        earlier=quote_turns(chunk.earlier),
        turns=quote_turns(chunk.new, first=len(chunk.earlier) + 1),
    )
    answer = await ask(
        model,
        messages,
        Extraction,
        settings=CallSettings(temperature=0.0, max_tokens=MAX_TOKENS),
        meter=current_meter(),
    )
    if isinstance(answer.value, Inconclusive):
        turn_ids = tuple(dict.fromkeys(turn.id for turn in chunk.new))
        unread = Unread(turn_ids=turn_ids, reason=answer.value.reason, detail=answer.value.detail)
        return {"written": [Written(unread=(unread,), usage=answer.usage)]}
    candidates, notes = attribute_facts(
        answer.value.facts, chunk=chunk, conversation_id=state.conversation_id
    )
    return {
        "written": [
            Written(candidates=candidates, usage=answer.usage, notes=(*answer.notes, *notes))
        ]
    }


async def collect(state: WriterState) -> dict[str, Any]:
    """Put the passes together, in the order of the conversation."""
    return {
        "candidates": tuple(c for written in state.written for c in written.candidates),
        "unread": tuple(u for written in state.written for u in written.unread),
        "usage": sum((written.usage for written in state.written), Usage()),
        "notes": tuple(dict.fromkeys(n for written in state.written for n in written.notes)),
    }


def readable_turns(turns: Sequence[Turn], *, spec: Writer) -> tuple[Turn, ...]:
    """What a writer reads: what people and the assistant said, never system, tool or our text."""
    spoken = [turn for turn in turns if turn.is_evidence and turn.role in {"user", "assistant"}]
    return split_long_turns(spoken, max_chars=spec.chars_per_chunk)


def create_writer_graph(
    model: ModelLike, *, spec: Writer | None = None, prompt: Prompt | None = None
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The writer as a graph: `{"conversation"}` in, candidates out.

    Args:
        model: Who reads: `"provider:model"`, a `BaseChatModel`, or a resolved model.
        spec: Sizes of a pass.
        prompt: Your own prompt, with the slots `earlier` and `turns`.

    Raises:
        ConfigurationError: If the model or the prompt cannot be used.
    """
    spec = spec or Writer()
    resolved = resolve_model(model)
    builder = StateGraph(WriterState, input_schema=WriterInput, output_schema=WriterOutput)
    builder.add_node("plan", dual(plan))
    builder.add_node(
        "read",
        dual(partial(read, model=resolved, prompt=prompt or load_prompt(NAME, "extract"))),
        input_schema=PassState,
    )
    builder.add_node("collect", dual(collect))
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", partial(passes, spec=spec), ["read", "collect"])
    builder.add_edge("read", "collect")
    builder.add_edge("collect", END)
    return builder.compile(name=NAME)
