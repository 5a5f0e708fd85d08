"""Running a graph inside a host's thread without checkpoints of its own."""

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph

_UNSAVED: RunnableConfig = {
    "configurable": {
        # Compiling with `checkpointer=False` would say the same, but fails in a host that runs with
        # `durability="sync"` (LangGraph 1.2). The keys are LangGraph's own; a test holds them.
        "__pregel_checkpointer": None,
        "__pregel_durability": "async",
    }
}


async def run_unsaved(
    graph: CompiledStateGraph[Any, Any, Any, Any], given: dict[str, Any]
) -> dict[str, Any]:
    """Run a graph of which no step can be resumed, and none need be.

    A host's checkpointer keeps every step of a graph within, and what the steps hold: memories that
    are forgotten later would live on in threads. It costs time and room besides.

    Args:
        graph: The graph; none of its nodes may interrupt.
        given: Its input.
    """
    return await graph.ainvoke(given, _UNSAVED)
