"""Running a graph inside a host's thread without checkpoints of its own."""

from typing import Any

from langgraph.graph.state import CompiledStateGraph

from memguard.adjudication.unsaved import UNSAVED


async def run_unsaved(
    graph: CompiledStateGraph[Any, Any, Any, Any], given: dict[str, Any]
) -> dict[str, Any]:
    """Run a graph of which no step can be resumed, and none need be.

    The graphs of memguard that read see to it by themselves; this is for one of a user's own.

    Args:
        graph: The graph; none of its nodes may interrupt.
        given: Its input.
    """
    return await graph.ainvoke(given, UNSAVED)
