"""A graph as Mermaid, LangGraph's own, with names that every renderer reads."""

from typing import Any

from langgraph.graph.state import CompiledStateGraph


def to_mermaid(graph: CompiledStateGraph[Any, Any, Any, Any]) -> str:
    """The graph with all that is nested in it, as a Mermaid flow chart."""
    return graph.get_graph(xray=True).draw_mermaid()
