"""The writer: which facts of a conversation are candidates for storage?

```text
START -> plan -> read (one branch per pass) -> collect -> END
```

A pass is a group of new turns, with earlier turns as context. The passes run concurrently, and
`collect` joins their results in the order of the conversation.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Overwrite, Send

from memguard.conversations.passages import expand_turns
from memguard.llm.models import ModelLike
from memguard.methods.writer.config import Writer
from memguard.methods.writer.readers import (
    ModelReader,
    Reader,
    WriterInput,
    WriterOutput,
    WriterPassState,
    WriterResult,
    WriterState,
    build_reader,
)
from memguard.methods.writer.rules import Pass, plan_chunks, split_long_turns
from memguard.portal import dual
from memguard.prompts import Prompt
from memguard.schema.memory import Turn
from memguard.schema.receipt import Usage
from memguard.typed import TypedGraph, typed

NAME = "writer"


async def plan(state: WriterState) -> dict[str, Any]:
    """Discard earlier results: a thread with a checkpointer still has those of the last run."""
    del state
    return {"written": Overwrite([])}


def passes(state: WriterState, *, spec: Writer) -> Sequence[Send | str]:
    """One branch per pass; straight to `collect` if there is nothing to read."""
    planned = _plan(state, spec=spec) if state.passes is None else state.passes
    # Results come back in the order of the branches, whichever pass is read first.
    return [
        Send("read", WriterPassState(chunk=chunk, conversation_id=state.conversation.id))
        for chunk in planned
    ] or ["collect"]


def _plan(state: WriterState, *, spec: Writer) -> tuple[Pass, ...]:
    # Split first: a long turn becomes several, and `new_from` counts turns as they were given.
    before = readable_turns(state.conversation.turns[: state.new_from], spec=spec)
    after = readable_turns(state.conversation.turns[state.new_from :], spec=spec)
    new = frozenset(range(len(before), len(before) + len(after)))
    chunks = plan_chunks((*before, *after), new=new, spec=spec)
    return tuple(chunk for chunk in chunks if chunk.has_source(spec.sources))


async def read(state: WriterPassState, *, reader: Reader, spec: Writer) -> dict[str, Any]:
    """Extract the candidates of one pass."""
    chunk = state.chunk
    # A model sees where pasted text begins and ends. Rules read statements, and take every turn
    # that they get for a source.
    if not isinstance(reader, ModelReader):
        chunk = chunk.for_rules(sources=spec.sources)
    return {"written": [await reader.read(chunk, conversation_id=state.conversation_id)]}


async def collect(state: WriterState) -> dict[str, Any]:
    """Join the results, in the order of the conversation."""
    results = state.written
    return {
        "candidates": tuple(c for result in results for c in result.candidates),
        "unread": tuple(u for result in results for u in result.unread),
        "usage": sum((result.usage for result in results), Usage()),
        # Passes repeat notes about the model; each is said once.
        "notes": tuple(dict.fromkeys(n for result in results for n in result.notes)),
    }


def readable_turns(turns: Sequence[Turn], *, spec: Writer) -> tuple[Turn, ...]:
    """The turns that a writer reads, each with the words of one author, long ones in parts.

    Those of the permitted sources and of the assistant, and what users pasted, without text that
    memguard put into the prompt.
    """
    # What users say is often unclear without the assistant's questions, which are no source, and
    # without the mail that they talk about, which is none either.
    roles = {*spec.sources, "user", "assistant"}
    spoken = [turn for turn in turns if turn.is_evidence and turn.role in roles]
    spoken = expand_turns(spoken)
    return split_long_turns(spoken, max_chars=spec.chars_per_chunk)


def create_writer_graph(
    model: ModelLike, *, spec: Writer | None = None, prompt: Prompt | None = None
) -> TypedGraph[WriterResult]:
    """The writer as a graph: `{"conversation"}` in, candidates out.

    Args:
        model: The reader: `"provider:model"`, a `BaseChatModel`, a resolved model, or `"local"` for
            rules that copy statements word for word.
        spec: Settings, such as the size of a pass.
        prompt: Your own prompt, with the slots `earlier` and `turns`.

    Raises:
        ConfigurationError: If the model or the prompt cannot be used.
    """
    spec = spec or Writer()
    return typed(build_writer_graph(build_reader(model, spec=spec, prompt=prompt), spec=spec))


def build_writer_graph(reader: Reader, *, spec: Writer) -> CompiledStateGraph[Any, Any, Any, Any]:
    """The graph around a reader that exists already."""
    builder = StateGraph(WriterState, input_schema=WriterInput, output_schema=WriterOutput)
    builder.add_node("plan", dual(plan))
    builder.add_node(
        "read", dual(partial(read, reader=reader, spec=spec)), input_schema=WriterPassState
    )
    builder.add_node("collect", dual(collect))
    builder.add_edge(START, "plan")
    builder.add_conditional_edges("plan", partial(passes, spec=spec), ["read", "collect"])
    builder.add_edge("read", "collect")
    builder.add_edge("collect", END)
    return builder.compile(name=NAME)
